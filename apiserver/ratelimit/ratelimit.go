// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ratelimit bounds how much each caller may ask for in a minute: a team, a person,
// or the address of a stranger. Each replica counts for itself: the bound is there to protect
// the service, not to be sold.
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

const (
	// window is what a limit is counted over.
	window = time.Minute
	// maxCallers is how many callers are remembered. There are fewer teams than that;
	// strangers have more addresses than any memory. One that is forgotten begins anew, so
	// that whoever fills the table sets others free and locks out nobody.
	maxCallers = 10_000
)

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

// Allow counts a request of a caller and reports whether it may be served. It
// says in the headers of the answer how much is left (draft-ietf-httpapi-ratelimit-headers,
// in its widely used form), and of a refused request when to come back.
func (l *Limiter) Allow(caller string, answer http.Header) (allowed bool, retryAfter time.Duration) {
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
	retryAfter = time.Duration((1 - left) / float64(l.perMinute) * float64(window))
	answer.Set("Retry-After", strconv.Itoa(max(seconds(retryAfter), 1)))
	return false, retryAfter
}

// Charge counts what a request that is being served costs beyond one. It refuses nothing:
// the caller is in debt then, of at most a whole limit, and its next requests wait until that
// is paid.
func (l *Limiter) Charge(caller string, requests int, answer http.Header) {
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

// ChargeSparing is Charge for what others do in the caller's name, whose own limit is another
// one: it leaves the caller half of its limit.
func (l *Limiter) ChargeSparing(caller string, requests int) {
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

// setHeaders says how much is left.
func (l *Limiter) setHeaders(answer http.Header, left float64) {
	full := time.Duration((float64(l.perMinute) - left) / float64(l.perMinute) * float64(window))
	answer.Set("RateLimit-Limit", strconv.Itoa(l.perMinute))
	answer.Set("RateLimit-Remaining", strconv.Itoa(max(int(left), 0)))
	answer.Set("RateLimit-Reset", strconv.Itoa(seconds(full)))
}

// bucket returns what a caller has left.
func (l *Limiter) bucket(caller string, now time.Time) *rate.Limiter {
	l.tidy(now)
	bucket := l.callers[caller]
	if bucket == nil {
		l.evictOne()
		bucket = rate.NewLimiter(rate.Every(window/time.Duration(l.perMinute)), l.perMinute)
		l.callers[caller] = bucket
	}
	return bucket
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

// evictOne forgets one caller, whichever it is, if there are too many.
func (l *Limiter) evictOne() {
	if len(l.callers) < maxCallers {
		return
	}
	for caller := range l.callers {
		delete(l.callers, caller)
		return
	}
}

// seconds rounds up, so that a client that waits for so long does not come too early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
