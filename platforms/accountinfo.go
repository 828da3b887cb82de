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
	// Inspect queries the platform as part of the account check. Its errors are *Error, as in Identify. Limits that
	// cannot be read are not an error; they are left out of the result.
	Inspect(ctx context.Context, account Account) (AccountInfo, error)
}

// AccountInfo is a platform's report on an account.
type AccountInfo struct {
	// TikTok holds the options of a TikTok account. It is nil on other platforms, or if TikTok did not return them.
	// An inspection that returns options is part of every account check; one that returns only rate limits runs
	// less often.
	TikTok *v1alpha1.TikTokAccount
	// Mastodon holds the limits of a Mastodon account's server. It is nil on other platforms, or if they are unknown.
	Mastodon *v1alpha1.MastodonServer
	// RateLimits are the account's limits and how much of each remains.
	RateLimits []RateLimit
}

// Names of rate limits, as in v1alpha1.RateLimit.Name.
const (
	PostsPerDay    = "postsPerDay"
	PostsPerWindow = "postsPerWindow"
	AppPostsPerDay = "appPostsPerDay"
	Usage          = "usage"
	AppUsage       = "appUsage"
)

// RateLimit is a rate limit as reported by a platform.
type RateLimit struct {
	// Name identifies the limit within the platform.
	Name string
	// Limit is the maximum, or zero if unknown. Remaining is the unused amount.
	Limit, Remaining int
	// ResetsAt is when the limit next resets, or zero if unknown.
	ResetsAt time.Time
	// BlockedUntil is set once the limit is reached: nothing may be sent before then.
	BlockedUntil time.Time
	// AppWide reports whether all accounts of the token's app share the limit. When no calls remain, all of them are
	// blocked.
	AppWide bool
}

// Low reports whether at most a tenth of the limit remains.
func (a RateLimit) Low() bool { return Low(a.Limit, a.Remaining) }

// Low reports whether at most a tenth of the limit remains.
func Low(limit, remaining int) bool { return remaining <= limit/10 }
