// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ratelimit bounds how many requests each API key may make. Each replica
// counts for itself: the bound is there to protect the service, not to be sold.
package ratelimit

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// window is what a limit is counted over.
const window = time.Minute

// Limiter counts the requests of each caller. A nil Limiter lets everything
// through.
type Limiter struct {
	perMinute int
	clock     clock.PassiveClock

	mu      sync.Mutex
	callers map[string]*rate.Limiter
	tidied  time.Time
}

// New makes a limiter that lets each caller make so many requests a minute, all
// of them at once if need be; nil, which limits no caller, if it is not positive.
func New(perMinute int, c clock.PassiveClock) *Limiter {
	if perMinute <= 0 {
		return nil
	}
	return &Limiter{perMinute: perMinute, clock: c, callers: map[string]*rate.Limiter{}, tidied: c.Now()}
}

// Take counts a request of a caller and reports whether it may be served. It
// says in the headers of the answer how much is left (draft-ietf-httpapi-ratelimit-headers,
// in its widely used form), and of a refused request when to come back.
func (l *Limiter) Take(caller string, answer http.Header) (allowed bool, retryAfter time.Duration) {
	if l == nil {
		return true, 0
	}
	now := l.clock.Now()
	l.mu.Lock()
	bucket := l.callers[caller]
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Every(window/time.Duration(l.perMinute)), l.perMinute)
		l.callers[caller] = bucket
	}
	allowed = bucket.AllowN(now, 1)
	left := bucket.TokensAt(now)
	l.tidy(now)
	l.mu.Unlock()

	full := time.Duration((float64(l.perMinute) - left) / float64(l.perMinute) * float64(window))
	answer.Set("RateLimit-Limit", strconv.Itoa(l.perMinute))
	answer.Set("RateLimit-Remaining", strconv.Itoa(max(int(left), 0)))
	answer.Set("RateLimit-Reset", strconv.Itoa(seconds(full)))
	if allowed {
		return true, 0
	}
	retryAfter = time.Duration((1 - left) / float64(l.perMinute) * float64(window))
	answer.Set("Retry-After", strconv.Itoa(max(seconds(retryAfter), 1)))
	return false, retryAfter
}

// tidy forgets, now and then, those who have made no request for so long that
// their limit is whole again.
func (l *Limiter) tidy(now time.Time) {
	if now.Sub(l.tidied) < window {
		return
	}
	l.tidied = now
	for caller, bucket := range l.callers {
		if bucket.TokensAt(now) >= float64(l.perMinute) {
			delete(l.callers, caller)
		}
	}
}

// seconds rounds up, so that a client that waits for so long does not come too early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
