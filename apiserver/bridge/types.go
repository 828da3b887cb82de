// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// Bounds of a page (contract: limit 1 to 100, default 20). The page number is part of the response, so it must not
// exceed the largest integer that every JSON parser represents exactly: 2^53 - 1 (RFC 8259, section 6).
const (
	DefaultLimit = 20
	maxLimit     = 100
	maxPage      = 1<<53 - 1
)

// Connection is a connected account for clients.
type Connection struct {
	ID       string
	Platform v1alpha1.Platform
	// AccountName and IconURL are empty while unknown.
	AccountName string
	IconURL     string
	ConnectedAt time.Time
}

// CreateMediaUpload is a request to register a file.
type CreateMediaUpload struct {
	Spec v1alpha1.MediaSpec
	// IdempotencyKey makes the request safe to retry; empty for none.
	IdempotencyKey string
}

// MediaUpload is a registered file with its upload URL.
type MediaUpload struct {
	// ID is the media's id in posts.
	ID string
	// UploadURL accepts one PUT of the file while it is valid. It grants access and must not be logged.
	UploadURL string
	Name      string
	// AltText is the file's own alt text; empty if it has none.
	AltText string
	// Replayed is true if an earlier request with the same Idempotency-Key registered the file.
	Replayed bool
}

// CreatePost is a request to create a post.
type CreatePost struct {
	Spec v1alpha1.PostSpec
	// Problems are the request's problems, with paths, that Spec cannot represent, such as contradictory TikTok
	// options. They are reported together with violated rules.
	Problems []string
	// IdempotencyKey makes the request safe to retry; empty for none.
	IdempotencyKey string
	// UnlessRepeated rejects the request with a RepeatedError if the same user has recently published the same content
	// to the same accounts. Drafts are never rejected.
	UnlessRepeated bool
	// Delay schedules an immediate post for this long from now. It is not part of the request's identity, so a repeated
	// request does not conflict.
	Delay time.Duration
	// Identity, if it is set, identifies the request instead of Spec.
	Identity any
	// Composed means that the key alone identifies the request, regardless of its content; see Autosave.
	Composed bool
}

// PostDetail is a post with its results.
type PostDetail struct {
	ID       string
	Status   v1alpha1.PostPhase
	Category v1alpha1.Category
	// Media are the files of an image or video post that came through the API; empty for other posts.
	Media []v1alpha1.MediaReference
	// Cards are the cards of a tree.
	Cards []v1alpha1.TreeCard
	// ScheduledAt is nil for an immediate post.
	ScheduledAt *time.Time
	CanCancel   bool
	Platforms   []PlatformDetail
	DisplayAt   time.Time
	// Replayed is true if an earlier request with the same Idempotency-Key created the post.
	Replayed bool
	// Waits is true if an agent wanted to publish the post, which remains a draft until a user publishes it.
	Waits bool
	// Version identifies the content; see the function Version.
	Version string
	// CreatedAt is when the post was created.
	CreatedAt time.Time
	// Content is the content to edit, of every post. It must not be modified.
	Content *v1alpha1.PostSpec
	// PostedAt are the times when the targets were published, in the order of the targets; zero for a target that was not
	// published.
	PostedAt []time.Time
}

// PlatformDetail is one of a post's targets, with its result.
type PlatformDetail struct {
	Platform v1alpha1.Platform
	// ConnectionID is empty if the connection no longer exists, and AccountName if it is unknown.
	ConnectionID string
	AccountName  string
	Status       v1alpha1.PostPhase
	Caption      string
	// YouTubeTitle is empty for other platforms and for posts without a title.
	YouTubeTitle string
	// RetriedBy is the id of the post that retries this target; empty if none does.
	RetriedBy string
	// ExternalURL and ErrorMessage are empty if there is none.
	ExternalURL  string
	ErrorMessage string
}

// PostPage is one page of a list of posts.
type PostPage struct {
	Posts       []postindex.Summary
	Total       int
	Page, Limit int
	HasNext     bool
	// Previous and Next are the cursors of the pages before and after this one; nil if there is none.
	Previous, Next *postindex.Cursor
	// CoversArchive is true if archived posts were also searched.
	CoversArchive bool
}
