// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// rateWindow is the window of X's limits per user.
const rateWindow = 15 * time.Minute

// limitOf is X's documented number of requests per user and window. For the OAuth endpoints X documents none; they say
// what creating a post says.
func limitOf(op faults.Operation) int {
	switch op {
	case faults.Identity:
		return 75
	case faults.List:
		return 900
	case opDelete:
		return 50
	default:
		return 100
	}
}

// rateHeaders sets the three headers that every answer carries. Windows begin at round quarter hours, and none is ever
// used up: a limit that tests and benchmarks ran into would be in their way. What is enforced is the quota that the
// control API sets, and the rate_limit fault.
func (p *Platform) rateHeaders(w http.ResponseWriter, op faults.Operation, spent bool) {
	header := w.Header()
	if header.Get("X-Rate-Limit-Reset") != "" {
		return // limitedUntil has said it already
	}
	remaining := limitOf(op) - 1
	if spent {
		remaining = 0
	}
	setLimit(header, "X-Rate-Limit", limitOf(op), remaining, p.Clock.Now().Truncate(rateWindow).Add(rateWindow))
}

// limitedUntil answers 429 with the time at which the window ends.
func (p *Platform) limitedUntil(w http.ResponseWriter, op faults.Operation, reset time.Time) {
	setLimit(w.Header(), "X-Rate-Limit", limitOf(op), 0, reset)
	p.fail(w, op, tooManyRequests())
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
