// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// The bounds of a page (contract: limit 1 to 100, default 20).
const (
	DefaultLimit = 20
	maxLimit     = 100
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
	// MIMEType is the only Content-Type that the upload may have, one of those
	// that v1alpha1.MediaSpec takes.
	MIMEType string
	// Name is the file's name, for people.
	Name string
	// SizeBytes is the file's size in bytes.
	SizeBytes int64
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
}

// CreatePost is a post to create.
type CreatePost struct {
	Category v1alpha1.Category
	// ScheduledAt is when to publish; nil means at once.
	ScheduledAt *time.Time
	Draft       bool
	Targets     []CreateTarget
	// MediaIDs are the files of a post of category image, or the one of a
	// video. Other categories have none here.
	MediaIDs []string
	// ThumbnailTime is the position in a video, in seconds, of the picture that
	// stands for it; nil leaves the choice to the platform.
	ThumbnailTime *float64
	// Cards are those of a tree; other categories have none.
	Cards []Card
	// IdempotencyKey makes the request safe to send again; empty for none.
	IdempotencyKey string
}

// Card is one card of a tree.
type Card struct {
	// Caption is empty for a card without text.
	Caption  string
	MediaIDs []string
}

// CreateTarget is one account to publish to.
type CreateTarget struct {
	ConnectionID string
	// Caption is empty where it was left out.
	Caption string
	// YouTubeTitle is empty where it was left out.
	YouTubeTitle string
	TikTok       TikTokOptions
}

// TikTokOptions are what only TikTok asks for. Nil means left out, which is not
// always the same as false: some combinations are refused whatever the value
// and whatever the platform of the target.
type TikTokOptions struct {
	AutoAddMusic  *bool
	Draft         *bool
	PrivacyLevel  *string
	AllowComment  *bool
	AllowDuet     *bool
	AllowStitch   *bool
	IsAIGenerated *bool
}

// PostDetail is a post with what became of it.
type PostDetail struct {
	ID       string
	Status   v1alpha1.PostPhase
	Category v1alpha1.Category
	// MediaIDs are the files of an image or video post that came through the
	// API; other posts have none here.
	MediaIDs []string
	// Cards are those of a tree.
	Cards []Card
	// ScheduledAt is nil for an immediate post.
	ScheduledAt *time.Time
	CanCancel   bool
	Platforms   []PlatformDetail
	DisplayAt   time.Time
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

// ListPosts selects posts.
type ListPosts struct {
	// Status and Platform narrow the list; empty means any.
	Status   v1alpha1.PostPhase
	Platform v1alpha1.Platform
	// Page and Limit are moved into their bounds.
	Page, Limit int
	// Into, which may be nil, is written over to hold the page.
	Into []postindex.Summary
}

// PostPage is one page of a list of posts.
type PostPage struct {
	Posts       []postindex.Summary
	Total       int
	Page, Limit int
	HasNext     bool
}
