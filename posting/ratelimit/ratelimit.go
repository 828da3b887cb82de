// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ratelimit keeps a platform's rate limits in a Connection's status: how many calls each limit leaves, and when
// a block ends. This way a process that restarts does not call too early. The package is pure.
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

	// longestWindow is the longest window of a rate limit, a month on X. An end later than that is ignored.
	longestWindow = 32 * 24 * time.Hour

	// clockMargin is the largest difference between the clocks of two managers.
	clockMargin = time.Minute
)

// LongestBlock limits how long a single response can block an account. After that, a call probes the
// limit before its announced end, because the response may have come from a proxy or a wrong clock, or from before a
// payment.
const LongestBlock = time.Hour

// The pauses for limits whose end was not announced.
const (
	// QuotaPause is the pause for a quota, which covers 24 hours (TikTok) or ends with a payment (X's credits and usage
	// cap); platforms discourage polling. One call per hour, for all accounts that share the limit, notices its end soon
	// enough.
	QuotaPause = time.Hour
	// PostQuotaPause is the pause for a quota on posts of one kind, such as the five drafts in TikTok's inbox. The
	// owner ends it by finishing a draft. An hour, the usual starting deadline, would not allow a second attempt.
	PostQuotaPause = 15 * time.Minute
	// RatePause is the pause after too many calls. The shortest window of any platform is TikTok's sliding minute.
	RatePause = time.Minute
)

const msgExhausted = "the platform's limit %q is currently exhausted; see status.rateLimits for the details"

// Apply stores a platform's rate limits and any block of the account. It reports whether the block is longer now.
func Apply(status *v1alpha1.ConnectionStatus, limits []platforms.RateLimit, now time.Time) (longer bool) {
	for _, a := range limits {
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
		longer = Block(status, a.BlockedUntil, a.AppWide && a.Remaining == 0, fmt.Sprintf(msgExhausted, a.Name), now) || longer
	}
	slices.SortFunc(status.RateLimits, func(a, b v1alpha1.RateLimit) int { return strings.Compare(a.Name, b.Name) })
	return longer
}

// ApplyAccountInfo stores the account data that the platform reports. It first drops limits without a total, because
// platforms report these only while they are exhausted.
func ApplyAccountInfo(status *v1alpha1.ConnectionStatus, found platforms.AccountInfo, now time.Time) (longer bool) {
	if found.TikTok != nil {
		status.TikTok = found.TikTok
	}
	if found.Mastodon != nil {
		status.Mastodon = found.Mastodon
	}
	status.RateLimits = slices.DeleteFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool { return l.Limit == 0 })
	return Apply(status, found.RateLimits, now)
}

// Block stores the end of a block of the account, or of all the app's accounts. The end is at most LongestBlock from
// now. It returns false if such a block is already stored, or if until is in the past.
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

// Sanitize returns a platform's error with plausible limits. token is the token that the call used. A rate limit error
// without a plausible RetryAt gets one, at most LongestBlock from now. AppWide is kept only if the token is known to
// belong to the installation's app: a team's own app must not block other teams. The argument is not modified.
func Sanitize(err *platforms.Error, token platforms.Token, now time.Time) *platforms.Error {
	if err == nil {
		return nil
	}
	bounded := *withRetryAt(err, now)
	bounded.RetryAt, bounded.AppWide = clampBlock(bounded.RetryAt, now), bounded.AppWide && token.App != ""
	return &bounded
}

// SanitizeResult applies Sanitize and SanitizeLimits to the result of a publishing call.
func SanitizeResult(r platforms.Result, token platforms.Token, now time.Time) platforms.Result {
	r.Err, r.RateLimits = Sanitize(r.Err, token, now), SanitizeLimits(r.RateLimits, token)
	return r
}

// SanitizeLimits returns the limits reported in response to a token's call. App-wide limits become limits of the
// account, unless the token is known to belong to the installation's app.
func SanitizeLimits(limits []platforms.RateLimit, token platforms.Token) []platforms.RateLimit {
	if token.App != "" || !slices.ContainsFunc(limits, func(l platforms.RateLimit) bool { return l.AppWide }) {
		return limits
	}
	limits = slices.Clone(limits)
	for i := range limits {
		limits[i].AppWide = false
	}
	return limits
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

// BlockedUntil returns the end of the account's block, or zero if it is not blocked.
func BlockedUntil(status *v1alpha1.ConnectionStatus, now time.Time) time.Time {
	return ahead(status.RateLimitedUntil, now)
}

// AppBlockedUntil returns the end of the app's block according to this account's responses, or zero.
func AppBlockedUntil(status *v1alpha1.ConnectionStatus, now time.Time) time.Time {
	return ahead(status.AppRateLimitedUntil, now)
}

// ahead returns a stored end if it is in the future, and otherwise zero. An end further away than LongestBlock was
// stored by an earlier version of Herald and is ignored, so that a call probes the limit.
func ahead(until *v1alpha1.Time, now time.Time) time.Time {
	if until == nil || !until.After(now) || until.After(now.Add(LongestBlock+clockMargin)) {
		return time.Time{}
	}
	return until.Time
}

// DropExpired removes blocks and limits that have ended.
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

// Exhausted reports whether a limit whose end was not announced is exhausted.
func Exhausted(status *v1alpha1.ConnectionStatus) bool {
	return slices.ContainsFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool { return l.Remaining == 0 && l.ResetsAt == nil })
}

// Low reports whether a tenth of a limit or less is left, with since posts made after the platform reported it.
func Low(l *v1alpha1.RateLimit, since int) bool {
	return platforms.Low(int(l.Limit), int(l.Remaining)-since)
}

func plausible(t, now time.Time) bool { return t.After(now) && !t.After(now.Add(longestWindow)) }

func clampBlock(t, now time.Time) time.Time {
	if latest := now.Add(LongestBlock); t.After(latest) {
		return latest
	}
	return t
}

func clampInt32(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
