// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/postindex"
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

// CreatePost is a post to create.
type CreatePost struct {
	Category v1alpha1.Category
	// ScheduledAt is when to publish; nil means at once.
	ScheduledAt *time.Time
	Draft       bool
	Targets     []CreateTarget
}

// CreateTarget is one account to publish to.
type CreateTarget struct {
	ConnectionID string
	// Caption is empty where it was left out.
	Caption string
	TikTok  TikTokOptions
}

// TikTokOptions are those options whose combination is refused whatever the
// platform of the target. Nil means left out.
type TikTokOptions struct {
	AutoAddMusic *bool
	Draft        *bool
	PrivacyLevel *string
	AllowDuet    *bool
	AllowStitch  *bool
}

// PostDetail is a post with what became of it.
type PostDetail struct {
	ID       string
	Status   v1alpha1.PostPhase
	Category v1alpha1.Category
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
}

// PostPage is one page of a list of posts.
type PostPage struct {
	Posts       []postindex.Summary
	Total       int
	Page, Limit int
	HasNext     bool
}
