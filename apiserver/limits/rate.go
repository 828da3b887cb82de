// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// rateWindow is the time window of a limit.
	rateWindow = time.Minute
	// maxRateCallers limits the tracked callers. There are fewer teams than that, but unauthenticated clients may have
	// any number of addresses. An evicted caller starts with a full limit, so a full table only weakens the limits.
	maxRateCallers = 10_000
)

// RateLimiter limits each caller's requests per minute: a team, a user, or the address of an unauthenticated client.
// Each replica counts separately, because the limit protects the service and is not a product feature. A nil
// RateLimiter allows all requests.
type RateLimiter struct {
	perMinute int
	clock     clock.PassiveClock

	mu        sync.Mutex
	callers   map[string]*rate.Limiter
	cleanedAt time.Time
}

// NewRateLimiter returns a RateLimiter that allows each caller perMinute requests, with a burst of the same size. It
// returns nil, which has no limit, if perMinute is not positive.
func NewRateLimiter(perMinute int, c clock.PassiveClock) *RateLimiter {
	if perMinute <= 0 {
		return nil
	}
	return &RateLimiter{perMinute: perMinute, clock: c, callers: map[string]*rate.Limiter{}, cleanedAt: c.Now()}
}

// Allow counts a request and reports whether it is within the limit. It sets the rate limit headers
// (draft-ietf-httpapi-ratelimit-headers, in its widely used form), and Retry-After for a rejected request.
func (l *RateLimiter) Allow(caller string, answer http.Header) (allowed bool, retryAfter time.Duration) {
	if l == nil {
		return true, 0
	}
	now := l.clock.Now()
	l.mu.Lock()
	bucket := l.bucket(caller, now)
	allowed = bucket.AllowN(now, 1)
	left := bucket.TokensAt(now)
	l.mu.Unlock()

	l.setHeaders(answer, left)
	if allowed {
		return true, 0
	}
	retryAfter = time.Duration((1 - left) / float64(l.perMinute) * float64(rateWindow))
	answer.Set("Retry-After", strconv.Itoa(max(seconds(retryAfter), 1)))
	return false, retryAfter
}

// Charge counts the additional cost of a request that is being served. It never rejects: the caller's balance may
// become negative, by at most a whole limit, and more requests are rejected until it has recovered.
func (l *RateLimiter) Charge(caller string, requests int, answer http.Header) {
	if l == nil || requests <= 0 {
		return
	}
	now := l.clock.Now()
	l.mu.Lock()
	bucket := l.bucket(caller, now)
	most := int(bucket.TokensAt(now)) + l.perMinute
	bucket.ReserveN(now, min(requests, l.perMinute, max(most, 0)))
	left := bucket.TokensAt(now)
	l.mu.Unlock()
	l.setHeaders(answer, left)
}

// ChargeSparing is like Charge, but leaves the caller half of its limit. It is for actions that others take in the
// caller's name, which also have a separate limit.
func (l *RateLimiter) ChargeSparing(caller string, requests int) {
	if l == nil || requests <= 0 {
		return
	}
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.bucket(caller, now)
	spare := int(bucket.TokensAt(now)) - l.perMinute/2
	bucket.ReserveN(now, min(requests, max(spare, 0)))
}

func (l *RateLimiter) setHeaders(answer http.Header, left float64) {
	full := time.Duration((float64(l.perMinute) - left) / float64(l.perMinute) * float64(rateWindow))
	answer.Set("RateLimit-Limit", strconv.Itoa(l.perMinute))
	answer.Set("RateLimit-Remaining", strconv.Itoa(max(int(left), 0)))
	answer.Set("RateLimit-Reset", strconv.Itoa(seconds(full)))
}

func (l *RateLimiter) bucket(caller string, now time.Time) *rate.Limiter {
	l.cleanUp(now)
	bucket := l.callers[caller]
	if bucket == nil {
		l.evictOne()
		bucket = rate.NewLimiter(rate.Every(rateWindow/time.Duration(l.perMinute)), l.perMinute)
		l.callers[caller] = bucket
	}
	return bucket
}

// cleanUp removes, once per window, the callers whose limit is full again.
func (l *RateLimiter) cleanUp(now time.Time) {
	if now.Sub(l.cleanedAt) < rateWindow {
		return
	}
	l.cleanedAt = now
	for caller, bucket := range l.callers {
		if bucket.TokensAt(now) >= float64(l.perMinute) {
			delete(l.callers, caller)
		}
	}
}

func (l *RateLimiter) evictOne() {
	if len(l.callers) < maxRateCallers {
		return
	}
	for caller := range l.callers {
		delete(l.callers, caller)
		return
	}
}

// seconds rounds up, so a client that waits for that long is not early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
