// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// The bounds of a page (contract: limit 1 to 100, default 20). A page is echoed, so
// that it is no greater than what every reader of JSON holds exactly: 2^53 - 1
// (RFC 8259, section 6).
const (
	DefaultLimit = 20
	maxLimit     = 100
	maxPage      = 1<<53 - 1
)

// Connection is a connected account as clients see it.
type Connection struct {
	ID       string
	Platform v1alpha1.Platform
	// AccountName and IconURL are empty while they are not known.
	AccountName string
	IconURL     string
	ConnectedAt time.Time
}

// CreateMediaUpload is a file to upload.
type CreateMediaUpload struct {
	Spec v1alpha1.MediaSpec
	// IdempotencyKey makes the request safe to send again; empty for none.
	IdempotencyKey string
}

// MediaUpload is where a file is to be uploaded to.
type MediaUpload struct {
	// ID names the media in posts.
	ID string
	// UploadURL takes one PUT of the file while it is valid. It carries
	// authority and must not be logged.
	UploadURL string
	Name      string
	// Replayed says that an earlier request under the same Idempotency-Key has
	// registered the file.
	Replayed bool
}

// CreatePost is a post to create.
type CreatePost struct {
	Spec v1alpha1.PostSpec
	// Problems say, with paths, what is wrong with the request although Spec does
	// not show it: options of TikTok that cannot stand together, for one. They are
	// refused together with what the rules find.
	Problems []string
	// IdempotencyKey makes the request safe to send again; empty for none.
	IdempotencyKey string
	// UnlessRepeated has the request refused, with a RepeatedError, if the same person has
	// published the same to the same accounts a moment ago. Drafts are not refused.
	UnlessRepeated bool
}

// PostDetail is a post with what became of it.
type PostDetail struct {
	ID       string
	Status   v1alpha1.PostPhase
	Category v1alpha1.Category
	// Media are the files of an image or video post that came through the API;
	// other posts have none here.
	Media []v1alpha1.LocalReference
	// Cards are those of a tree.
	Cards []v1alpha1.TreeCard
	// ScheduledAt is nil for an immediate post.
	ScheduledAt *time.Time
	CanCancel   bool
	Platforms   []PlatformDetail
	DisplayAt   time.Time
	// Replayed says that an earlier request under the same Idempotency-Key has
	// created the post.
	Replayed bool
	// Waits says that an agent wanted to publish the post, which is a draft until a person
	// publishes it.
	Waits bool
}

// PlatformDetail is one target of a post with what became of it.
type PlatformDetail struct {
	Platform v1alpha1.Platform
	// ConnectionID is empty when the connection no longer exists, AccountName
	// when it is not known.
	ConnectionID string
	AccountName  string
	Status       v1alpha1.PostPhase
	Caption      string
	// YouTubeTitle is empty for other platforms, and where there is none.
	YouTubeTitle string
	// ExternalURL and ErrorMessage are empty where there is none.
	ExternalURL  string
	ErrorMessage string
}

// PostPage is one page of a list of posts.
type PostPage struct {
	Posts       []postindex.Summary
	Total       int
	Page, Limit int
	HasNext     bool
}
