// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ratelimit stores a platform's rate limits in a Connection's status: the remaining calls per limit, and the end of a block.
// Storing them in the status prevents a restarted process from calling too early. The package is pure.
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
	// maxRateLimits and longestMessage are schema limits.
	maxRateLimits  = 16
	longestMessage = 1024

	// longestWindow is the longest rate limit window, a month on X. Limits with a later end are treated as having none.
	longestWindow = 32 * 24 * time.Hour

	// clockMargin is the maximum clock difference between two managers.
	clockMargin = time.Minute
)

// LongestBlock is the maximum block from a single response. After it, a call probes the limit before its announced end, because the
// response may have come from a proxy or a wrong clock, or before a payment.
const LongestBlock = time.Hour

// Pauses for limits without an announced end.
const (
	// QuotaPause is the pause for a quota. Quotas cover 24 hours (TikTok) or end with a payment (X's credits and usage cap), and platforms
	// discourage polling. One call an hour, for all accounts sharing the limit, detects its end soon enough.
	QuotaPause = time.Hour
	// PostQuotaPause is the pause for a quota on posts of one kind, such as the five drafts in TikTok's inbox. The owner ends it by
	// finishing a draft. A pause of an hour, the usual starting deadline, would leave no second attempt.
	PostQuotaPause = 15 * time.Minute
	// RatePause is the pause after too many calls. The shortest platform window is TikTok's sliding minute.
	RatePause = time.Minute
)

const msgExhausted = "the platform's limit %q leaves no room for now; what remains of it stands in status.rateLimits"

// Apply stores a platform's rate limits, and blocks the account if required. It reports whether the block has become longer.
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

// ApplyAccountInfo stores the platform's account data. It first drops limits without a total, because platforms report these only while
// exhausted.
func ApplyAccountInfo(status *v1alpha1.ConnectionStatus, found platforms.AccountInfo, now time.Time) (held bool) {
	if found.TikTok != nil {
		status.TikTok = found.TikTok
	}
	status.RateLimits = slices.DeleteFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool { return l.Limit == 0 })
	return Apply(status, found.RateLimits, now)
}

// Block stores the end of a block of the account, or of all accounts of the app. The maximum length is LongestBlock. It returns false if
// such a block is already stored, or if until is in the past.
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

// Sanitize returns a platform's error with plausible limits. token is the call's token. For a rate limit error without a plausible RetryAt,
// Sanitize sets one, at most LongestBlock ahead. AppWide is kept only if the token is known to belong to the installation's app, because a
// team with its own app must not block other teams. Sanitize does not modify its argument.
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

// SanitizeResult applies Sanitize and SanitizeLimits to a publishing call's result.
func SanitizeResult(r platforms.Result, token platforms.Token, now time.Time) platforms.Result {
	r.Err, r.RateLimits = Sanitize(r.Err, token, now), SanitizeLimits(r.RateLimits, token)
	return r
}

// SanitizeLimits returns the limits reported to a token's call. App-wide limits become account limits unless the token is known to belong
// to the installation's app.
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

// BlockedUntil returns the end of the account's block, or zero without one.
func BlockedUntil(status *v1alpha1.ConnectionStatus, now time.Time) time.Time {
	return ahead(status.RateLimitedUntil, now)
}

// AppBlockedUntil returns the end of the app's block according to this account's responses, or zero without one.
func AppBlockedUntil(status *v1alpha1.ConnectionStatus, now time.Time) time.Time {
	return ahead(status.AppRateLimitedUntil, now)
}

// ahead returns a stored end if it is in the future, else zero. An end beyond LongestBlock was stored by an earlier version of Herald and
// is ignored, so a call probes the limit.
func ahead(until *v1alpha1.Time, now time.Time) time.Time {
	if until == nil || !until.After(now) || until.After(now.Add(LongestBlock+clockMargin)) {
		return time.Time{}
	}
	return until.Time
}

// DropExpired removes expired blocks and limits.
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

// Exhausted reports whether a limit without an announced end is exhausted.
func Exhausted(status *v1alpha1.ConnectionStatus) bool {
	return slices.ContainsFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool { return l.Remaining == 0 && l.ResetsAt == nil })
}

// Low reports whether at most a tenth of a limit remains. since is the number of posts since the platform's report.
func Low(l *v1alpha1.RateLimit, since int) bool {
	return platforms.Low(int(l.Limit), int(l.Remaining)-since)
}

// plausible reports whether a time is plausible as a limit's end.
func plausible(t, now time.Time) bool { return t.After(now) && !t.After(now.Add(longestWindow)) }

// clampBlock limits a block's end to LongestBlock.
func clampBlock(t, now time.Time) time.Time {
	if latest := now.Add(LongestBlock); t.After(latest) {
		return latest
	}
	return t
}

func clampInt32(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
