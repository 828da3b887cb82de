// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

const limitHeaders = "X-Rate-Limit"

// windowEnd is when the present window of the limits per user ends. Windows begin at round quarter hours.
func (p *Platform) windowEnd() time.Time { return p.Clock.Now().Truncate(rateWindow).Add(rateWindow) }

// rateHeaders sets the three headers that every answer carries. Without documented limits, none is ever used up: a limit
// that tests and benchmarks ran into would be in their way. What is enforced then is the quota that the control API sets,
// and the rate_limit fault.
func (p *Platform) rateHeaders(w http.ResponseWriter, of endpoint, spent bool) {
	header := w.Header()
	if header.Get(limitHeaders+"-Reset") != "" {
		return // limitedUntil or admit has said it already
	}
	remaining := of.limit - 1
	if spent {
		remaining = 0
	}
	setLimit(header, limitHeaders, of.limit, remaining, p.windowEnd())
}

// admit counts a request of an account whose documented limits apply. When they are used up, it answers so and returns
// false.
func (p *Platform) admit(w http.ResponseWriter, of endpoint, account state.Account) bool {
	if !account.Settings.DocumentedLimits || of.name == "" {
		return true
	}
	end := p.windowEnd()
	remaining, ok := p.meter.take(end, account.ID, of)
	if !ok {
		p.limitedUntil(w, of, end)
		return false
	}
	setLimit(w.Header(), limitHeaders, of.limit, remaining, end)
	return true
}

// limitedUntil answers 429 with the time at which the window ends.
func (p *Platform) limitedUntil(w http.ResponseWriter, of endpoint, reset time.Time) {
	setLimit(w.Header(), limitHeaders, of.limit, 0, reset)
	p.fail(w, of, tooManyRequests())
}

// quotaHeaders adds the daily limit of an account that has one.
func (p *Platform) quotaHeaders(w http.ResponseWriter, a state.Account) {
	if a.Settings.Quota == nil {
		return
	}
	used, _ := p.Store.QuotaUsed(a.Key)
	setLimit(w.Header(), "X-User-Limit-24hour", *a.Settings.Quota, max(0, *a.Settings.Quota-used), p.Clock.Now().Add(state.QuotaWindow))
}

func setLimit(header http.Header, prefix string, limit, remaining int, reset time.Time) {
	header.Set(prefix+"-Limit", strconv.Itoa(limit))
	header.Set(prefix+"-Remaining", strconv.Itoa(remaining))
	// Whole seconds, rounded up: who waits until then must not be early.
	header.Set(prefix+"-Reset", strconv.FormatInt(reset.Add(time.Second-time.Nanosecond).Unix(), 10))
}
