// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// AccountInspector is a Platform that tells more of an account than whose it
// is: what it may choose, and how much of its limits is left.
type AccountInspector interface {
	// Inspect asks the platform. It belongs to the examination of an account, so
	// that errors are *Error and mean what those of Identify do. That limits
	// cannot be read is no error: nothing is told of them then.
	Inspect(ctx context.Context, account Account) (AccountInfo, error)
}

// AccountInfo is what a platform tells of an account.
type AccountInfo struct {
	// TikTok is what an account of TikTok may choose; nil on other platforms,
	// and where it was not told. An inspection that tells it is repeated with
	// each examination; one that tells rate limits alone only now and then.
	TikTok *v1alpha1.TikTokAccount
	// RateLimits are the limits of the account, and what remains of them.
	RateLimits []RateLimit
}

// Names of rate limits; see the field name of v1alpha1.RateLimit.
const (
	PostsPerDay    = "postsPerDay"
	PostsPerWindow = "postsPerWindow"
	AppPostsPerDay = "appPostsPerDay"
	Usage          = "usage"
	AppUsage       = "appUsage"
)

// RateLimit is one limit of a platform and what remains of it, as the
// platform says.
type RateLimit struct {
	// Name tells the limits of a platform apart.
	Name string
	// Limit is how many there may be, zero if the platform does not tell.
	// Remaining is how many are left.
	Limit, Remaining int
	// ResetsAt is when there are more again; zero where it is not told.
	ResetsAt time.Time
	// BlockedUntil is until when nothing may be sent because of it; zero if
	// there is room.
	BlockedUntil time.Time
	// AppWide says that all accounts of the app that the token is of share the
	// limit. When nothing is left of it, all of them are held.
	AppWide bool
}

// Low reports whether a tenth of the limit or less is left.
func (a RateLimit) Low() bool { return Low(a.Limit, a.Remaining) }

// Low reports whether a tenth of a limit or less remains.
func Low(limit, remaining int) bool { return remaining <= limit/10 }
