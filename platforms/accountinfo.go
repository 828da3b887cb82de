// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// AccountInspector is a Platform that also reports an account's options and rate limits.
type AccountInspector interface {
	// Inspect queries the platform as part of the account check. Its errors are *Error, with the same meaning as in
	// Identify. Unreadable limits are no error: the result then omits them.
	Inspect(ctx context.Context, account Account) (AccountInfo, error)
}

// AccountInfo is a platform's report on an account.
type AccountInfo struct {
	// TikTok holds the options of a TikTok account; nil on other platforms and where the platform did not return them.
	// An inspection that returns them is repeated with each account check, and one that returns only rate limits less
	// often.
	TikTok *v1alpha1.TikTokAccount
	// RateLimits are the limits of the account and their remainders.
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

// RateLimit is one limit of a platform and its remainder, as reported by the platform.
type RateLimit struct {
	// Name identifies the limit within the platform.
	Name string
	// Limit is the maximum, zero if unknown. Remaining is the unused part of it.
	Limit, Remaining int
	// ResetsAt is the limit's next reset; zero if unknown.
	ResetsAt time.Time
	// BlockedUntil is set if the limit is reached: nothing may be sent earlier.
	BlockedUntil time.Time
	// AppWide reports whether all accounts of the token's app share the limit. At zero remaining, all of them are
	// blocked.
	AppWide bool
}

// Low reports whether a tenth of the limit or less remains.
func (a RateLimit) Low() bool { return Low(a.Limit, a.Remaining) }

// Low reports whether a tenth of a limit or less remains.
func Low(limit, remaining int) bool { return remaining <= limit/10 }
