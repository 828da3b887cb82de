// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ratelimit keeps a platform's rate limits in the status of a Connection: what
// remains of each, and until when nothing may be sent. They are there and not in
// memory, so that a restarted process does not call too early. It is pure.
package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
)

const (
	// maxRateLimits and longestMessage are the schema's bounds.
	maxRateLimits  = 16
	longestMessage = 1024

	// longestWindow is that of X, a month: the end of a limit that lies beyond is none.
	longestWindow = 32 * 24 * time.Hour

	// clockMargin is how far the clocks of two managers may differ.
	clockMargin = time.Minute
)

// LongestBlock bounds how long a platform's word is believed that it takes no calls. Then
// one call asks again, however long the limit was said to last: the answer may have come
// from a proxy, from a clock that is wrong, or before somebody paid.
const LongestBlock = time.Hour

// How long calls wait for a limit if the platform does not say when it ends.
const (
	// QuotaPause is for a quota. Quotas count over 24 hours (TikTok) or end with a
	// payment (X's credits and usage cap), and no platform wants calls in a loop.
	// One call an hour for all accounts that share the limit notices its end soon
	// enough.
	QuotaPause = time.Hour
	// PostQuotaPause is for a quota that stops posts of one kind only, such as the
	// five drafts of TikTok's inbox: its owner ends it by finishing one, and an
	// hour, the usual starting deadline, would leave no second try.
	PostQuotaPause = 15 * time.Minute
	// RatePause is for too many calls: the shortest window of a platform is that
	// of TikTok, a minute that slides.
	RatePause = time.Minute
)

const msgExhausted = "the platform's limit %q leaves no room for now; what remains of it stands in status.rateLimits"

// Apply writes a platform's rate limits, and blocks the account if one asks for that.
// It reports whether the account is blocked for longer than before.
func Apply(status *v1alpha1.ConnectionStatus, told []platforms.RateLimit, now time.Time) (held bool) {
	for _, a := range told {
		limit := v1alpha1.RateLimit{Name: a.Name, Limit: clampInt32(a.Limit), Remaining: clampInt32(a.Remaining), ObservedAt: v1alpha1.NewTime(now)}
		if plausible(a.ResetsAt, now) {
			limit.ResetsAt = v1alpha1.NewTimePtr(a.ResetsAt)
		}
		at := slices.IndexFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool { return l.Name == a.Name })
		switch {
		case at >= 0:
			status.RateLimits[at] = limit
		case len(status.RateLimits) < maxRateLimits:
			status.RateLimits = append(status.RateLimits, limit)
		}
		held = Block(status, a.BlockedUntil, a.AppWide && a.Remaining == 0, fmt.Sprintf(msgExhausted, a.Name), now) || held
	}
	slices.SortFunc(status.RateLimits, func(a, b v1alpha1.RateLimit) int { return strings.Compare(a.Name, b.Name) })
	return held
}

// ApplyAccountInfo records what a platform says about an account. It drops limits
// without a total first: a platform tells them only while nothing remains of them.
func ApplyAccountInfo(status *v1alpha1.ConnectionStatus, found platforms.AccountInfo, now time.Time) (held bool) {
	if found.TikTok != nil {
		status.TikTok = found.TikTok
	}
	status.RateLimits = slices.DeleteFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool { return l.Limit == 0 })
	return Apply(status, found.RateLimits, now)
}

// Block records until when the platform takes no calls for the account, or for all
// accounts of the app: LongestBlock at most. It reports false if that is already
// recorded, or lies in the past.
func Block(status *v1alpha1.ConnectionStatus, until time.Time, appWide bool, message string, now time.Time) (longer bool) {
	if !plausible(until, now) {
		return false
	}
	until = clampBlock(until, now)
	later := func(known *v1alpha1.Time) bool { return known == nil || until.After(known.Time) }
	if appWide && later(status.AppRateLimitedUntil) {
		status.AppRateLimitedUntil, longer = v1alpha1.NewTimePtr(until), true
	}
	if later(status.RateLimitedUntil) {
		status.RateLimitedUntil, longer = v1alpha1.NewTimePtr(until), true
	}
	if longer {
		status.RateLimitedMessage = text.Truncate(message, longestMessage)
	}
	return longer
}

// Sanitize returns what is believed of a platform's error, which a call with a token met.
// It says when to try again if it is about a limit and the platform gave no plausible
// time, and never later than after LongestBlock. It is about the app only if the token is
// known to be of the installation's app: a team that uses its own app must not stop the others.
// It does not change its argument.
func Sanitize(err *platforms.Error, token platforms.Token, now time.Time) *platforms.Error {
	if err == nil {
		return nil
	}
	err = withRetryAt(err, now)
	late, ofOtherApp := err.RetryAt.After(clampBlock(err.RetryAt, now)), err.AppWide && token.App == ""
	if !late && !ofOtherApp {
		return err
	}
	bounded := *err
	bounded.RetryAt, bounded.AppWide = clampBlock(err.RetryAt, now), err.AppWide && token.App != ""
	return &bounded
}

// SanitizeResult is Believe for the answer to a publishing call, with the limits that it
// tells.
func SanitizeResult(r platforms.Result, token platforms.Token, now time.Time) platforms.Result {
	r.Err, r.RateLimits = Sanitize(r.Err, token, now), SanitizeLimits(r.RateLimits, token)
	return r
}

// SanitizeLimits returns limits that a call with a token was told: those of an app are the
// account's alone unless the token is known to be of the installation's app.
func SanitizeLimits(told []platforms.RateLimit, token platforms.Token) []platforms.RateLimit {
	if token.App != "" || !slices.ContainsFunc(told, func(l platforms.RateLimit) bool { return l.AppWide }) {
		return told
	}
	told = slices.Clone(told)
	for i := range told {
		told[i].AppWide = false
	}
	return told
}

func withRetryAt(err *platforms.Error, now time.Time) *platforms.Error {
	if plausible(err.RetryAt, now) {
		return err
	}
	var pause time.Duration
	switch {
	case err.Class == platforms.ClassQuota && err.PostOnly:
		pause = PostQuotaPause
	case err.Class == platforms.ClassQuota, err.Class == platforms.ClassRestricted:
		pause = QuotaPause
	case err.Class == platforms.ClassRateLimited:
		pause = RatePause
	default:
		return err
	}
	timed := *err
	timed.RetryAt = now.Add(pause)
	return &timed
}

// BlockedUntil returns until when nothing may be sent to the account; zero if it may.
func BlockedUntil(status *v1alpha1.ConnectionStatus, now time.Time) time.Time {
	return ahead(status.RateLimitedUntil, now)
}

// AppBlockedUntil returns until when nothing may be sent to any account of the app, as
// the platform told this account; zero if it may.
func AppBlockedUntil(status *v1alpha1.ConnectionStatus, now time.Time) time.Time {
	return ahead(status.AppRateLimitedUntil, now)
}

// ahead returns a recorded end that lies ahead; zero without one. One that lies further
// ahead than is believed was recorded by an earlier version of Herald, and one call may
// ask.
func ahead(until *v1alpha1.Time, now time.Time) time.Time {
	if until == nil || !until.After(now) || until.After(now.Add(LongestBlock+clockMargin)) {
		return time.Time{}
	}
	return until.Time
}

// DropExpired removes the blocks and limits whose time is over.
func DropExpired(status *v1alpha1.ConnectionStatus, now time.Time) {
	if AppBlockedUntil(status, now).IsZero() {
		status.AppRateLimitedUntil = nil
	}
	if BlockedUntil(status, now).IsZero() {
		status.RateLimitedUntil, status.RateLimitedMessage = nil, ""
	}
	status.RateLimits = slices.DeleteFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool {
		return l.ResetsAt != nil && !l.ResetsAt.After(now)
	})
	if len(status.RateLimits) == 0 {
		status.RateLimits = nil
	}
}

// Exhausted reports whether nothing remains of a limit for which the platform gave no
// end.
func Exhausted(status *v1alpha1.ConnectionStatus) bool {
	return slices.ContainsFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool { return l.Remaining == 0 && l.ResetsAt == nil })
}

// Low reports whether a tenth of a limit or less remains, after so many posts since
// the platform told it.
func Low(l *v1alpha1.RateLimit, since int) bool {
	return platforms.Low(int(l.Limit), int(l.Remaining)-since)
}

// plausible reports whether a time may be the end of a limit.
func plausible(t, now time.Time) bool { return t.After(now) && !t.After(now.Add(longestWindow)) }

// clampBlock bounds a time until which a platform wants no calls.
func clampBlock(t, now time.Time) time.Time {
	if latest := now.Add(LongestBlock); t.After(latest) {
		return latest
	}
	return t
}

func clampInt32(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
