// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"math"
	"strconv"
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
	RepliesPerDay  = "repliesPerDay"
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
	// Most is how many there may be, zero if it is not told; Left is how many
	// are left.
	Limit, Remaining int
	// ResetsAt is when there are more again; zero where it is not told.
	ResetsAt time.Time
	// BlockedUntil is until when nothing may be sent because of it; zero if
	// there is room.
	BlockedUntil time.Time
	// AppWide says that all accounts of Herald's app share the limit. When
	// nothing is left of it, all of them are held.
	AppWide bool
}

// Low reports whether a tenth of the limit or less is left.
func (a RateLimit) Low() bool { return Low(a.Limit, a.Remaining) }

// Low reports whether what is left is a tenth or less of what there may be.
func Low(most, left int) bool { return left <= most/10 }

// QuotaUsed makes the allowance of posts within 24 hours from how many there
// may be and how many were made, as Meta writes both. Nothing is sent until the
// given time if none is left. What is no number tells nothing.
func QuotaUsed(total, used string, hold time.Time) []RateLimit {
	most, err := strconv.Atoi(total)
	made, err2 := strconv.Atoi(used)
	if err != nil || err2 != nil || most < 0 || most > math.MaxInt32 || made < 0 {
		return nil
	}
	a := RateLimit{Name: PostsPerDay, Limit: most, Remaining: max(most-made, 0)}
	if a.Remaining == 0 {
		a.BlockedUntil = hold
	}
	return []RateLimit{a}
}

const (
	// slowDown is from how much of a budget on calls are made less often, in
	// percent: Meta advises it above 90.
	slowDown = 90
	// slowDownFor and stopFor are how long an account is left alone then, and
	// when the budget is used up, if the platform says no more. The budgets are
	// counted over an hour that slides.
	slowDownFor = time.Minute
	stopFor     = 5 * time.Minute
)

// Percentage makes an allowance of a budget whose use is told in percent, and
// perhaps for how long nothing more is taken.
func Percentage(name string, appWide bool, used int, shutOut time.Duration, now time.Time) RateLimit {
	a := RateLimit{Name: name, Limit: 100, Remaining: min(max(100-used, 0), 100), AppWide: appWide}
	switch {
	case shutOut > 0:
		a.Remaining, a.BlockedUntil = 0, now.Add(shutOut)
	case a.Remaining == 0:
		a.BlockedUntil = now.Add(stopFor)
	case used > slowDown:
		a.BlockedUntil = now.Add(slowDownFor)
	}
	a.ResetsAt = a.BlockedUntil
	return a
}

// UsageLimits converts the use of an app's and of one account's budget of calls,
// in percent, to rate limits; -1 stands for one that the platform does not tell.
// shutOut is for how long the platform takes nothing more from the account.
func UsageLimits(app, account int, shutOut time.Duration, now time.Time) (told []RateLimit) {
	if app >= 0 {
		told = append(told, Percentage(AppUsage, true, app, 0, now))
	}
	if account >= 0 {
		told = append(told, Percentage(Usage, false, account, shutOut, now))
	}
	return told
}
