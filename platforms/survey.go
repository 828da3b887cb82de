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

// Surveyor is a Platform that tells more of an account than whose it is: what
// it may choose, and how much of its limits is left.
type Surveyor interface {
	// Survey asks the platform. It belongs to the examination of an account, so
	// that errors are *Error and mean what those of Identify do. That limits
	// cannot be read is no error: nothing is told of them then.
	Survey(ctx context.Context, account Account) (Survey, error)
}

// Survey is what a platform tells of an account.
type Survey struct {
	// TikTok is what an account of TikTok may choose; nil on other platforms,
	// and where it was not told. A survey that tells it is repeated with each
	// examination; one that tells limits alone only now and then.
	TikTok *v1alpha1.TikTokAccount
	// Allowances are how much of the limits is left.
	Allowances []Allowance
}

// Names of allowances; see the field name of ConnectionLimit.
const (
	PostsPerDay    = "postsPerDay"
	RepliesPerDay  = "repliesPerDay"
	PostsPerWindow = "postsPerWindow"
	AppPostsPerDay = "appPostsPerDay"
	Usage          = "usage"
	AppUsage       = "appUsage"
)

// Allowance is how much of one limit is left, by the platform's own word.
type Allowance struct {
	// Name tells the limits of a platform apart.
	Name string
	// Most is how many there may be, zero if it is not told; Left is how many
	// are left.
	Most, Left int
	// ResetsAt is when there are more again; zero where it is not told.
	ResetsAt time.Time
	// HoldUntil is until when nothing is to be sent on account of it; zero if
	// there is room.
	HoldUntil time.Time
	// AppWide says that all accounts of Herald's app share the limit. When
	// nothing is left of it, all of them are held.
	AppWide bool
}

// Low reports whether a tenth of the limit or less is left.
func (a Allowance) Low() bool { return Low(a.Most, a.Left) }

// Low reports whether what is left is a tenth or less of what there may be.
func Low(most, left int) bool { return left <= most/10 }

// QuotaUsed makes the allowance of posts within 24 hours from how many there
// may be and how many were made, as Meta writes both. Nothing is sent until the
// given time if none is left. What is no number tells nothing.
func QuotaUsed(total, used string, hold time.Time) []Allowance {
	most, err := strconv.Atoi(total)
	made, err2 := strconv.Atoi(used)
	if err != nil || err2 != nil || most < 0 || most > math.MaxInt32 || made < 0 {
		return nil
	}
	a := Allowance{Name: PostsPerDay, Most: most, Left: max(most-made, 0)}
	if a.Left == 0 {
		a.HoldUntil = hold
	}
	return []Allowance{a}
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
func Percentage(name string, appWide bool, used int, shutOut time.Duration, now time.Time) Allowance {
	a := Allowance{Name: name, Most: 100, Left: min(max(100-used, 0), 100), AppWide: appWide}
	switch {
	case shutOut > 0:
		a.Left, a.HoldUntil = 0, now.Add(shutOut)
	case a.Left == 0:
		a.HoldUntil = now.Add(stopFor)
	case used > slowDown:
		a.HoldUntil = now.Add(slowDownFor)
	}
	a.ResetsAt = a.HoldUntil
	return a
}

// Budgets makes the allowances of the budgets of calls of an app and of one of
// its accounts, whose use is told in percent; -1 for one that is not told.
// shutOut is for how long nothing more is taken of the account.
func Budgets(app, account int, shutOut time.Duration, now time.Time) (told []Allowance) {
	if app >= 0 {
		told = append(told, Percentage(AppUsage, true, app, 0, now))
	}
	if account >= 0 {
		told = append(told, Percentage(Usage, false, account, shutOut, now))
	}
	return told
}
