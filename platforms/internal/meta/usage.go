// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// appUsageHeader contains the used share of the app's call budget.
	appUsageHeader = "X-App-Usage"
	// usageHeader contains the used share of a business's limits, and the number of minutes until its block ends.
	usageHeader = "X-Business-Use-Case-Usage"
)

const (
	// limitPause and blockPause are the default pauses if the graph does not return one. Calls during a rate limit
	// prolong the block, and daily quotas and penalties last for hours.
	limitPause = 5 * time.Minute
	blockPause = time.Hour

	// longestWait is the longest pause that Herald accepts from a graph. Limits are counted over 24 hours.
	longestWait = 24 * time.Hour
)

// Usage is the used share of the call budgets, according to a response.
type Usage struct {
	// App and Account are percentages of the app's and the account's budget; -1 if unknown.
	App, Account int
	// RetryAfter is how long the graph refuses the account's calls; zero if it does not.
	RetryAfter time.Duration
}

// budgets are Meta's usage counters, in percent, and the number of minutes until access is regained.
type budgets struct {
	Calls   jsondoc.Text `json:"call_count"`
	Time    jsondoc.Text `json:"total_time"`
	CPUTime jsondoc.Text `json:"total_cputime"`
	ShutOut jsondoc.Text `json:"estimated_time_to_regain_access"`
}

func (b budgets) most() int { return max(b.Calls.Int(), b.Time.Int(), b.CPUTime.Int(), 0) }

// ParseUsage parses the headers of a response, successful or not.
func ParseUsage(h http.Header) Usage {
	used := Usage{App: -1, Account: -1}
	if app, ok := jsondoc.Decode[budgets]([]byte(h.Get(appUsageHeader))); ok {
		used.App = app.most()
	}
	businesses, _ := jsondoc.Decode[map[string][]budgets]([]byte(h.Get(usageHeader)))
	for _, useCases := range businesses {
		for _, use := range useCases {
			used.Account = max(used.Account, use.most())
			if minutes := use.ShutOut.Int(); minutes > 0 && minutes <= int(longestWait/time.Minute) {
				used.RetryAfter = max(used.RetryAfter, time.Duration(minutes)*time.Minute)
			}
		}
	}
	return used
}

// RetryAt returns the time of the next allowed call after a temporary kind of error, or zero for other kinds.
func RetryAt(h http.Header, kind Kind, now time.Time) time.Time {
	wait := ParseUsage(h).RetryAfter
	switch {
	case kind == KindBlocked, kind == KindQuota, kind == KindApp, kind == KindPerson:
		wait = max(wait, blockPause)
	case kind != KindLimit:
		return time.Time{}
	case wait == 0:
		wait = limitPause
	}
	return now.Add(wait)
}

// quotaLimit returns the rate limit for posts in 24 hours, given the total and the number used. If none remain, the
// account is blocked until hold. It returns nil for malformed numbers.
func quotaLimit(total, used string, hold time.Time) []platforms.RateLimit {
	most, err := strconv.Atoi(total)
	count, err2 := strconv.Atoi(used)
	if err != nil || err2 != nil || most < 0 || most > math.MaxInt32 || count < 0 {
		return nil
	}
	a := platforms.RateLimit{Name: platforms.PostsPerDay, Limit: most, Remaining: max(most-count, 0)}
	if a.Remaining == 0 {
		a.BlockedUntil = hold
	}
	return []platforms.RateLimit{a}
}

const (
	// slowDown is the used percentage above which calls are made less often; Meta recommends this value.
	slowDown = 90
	// slowDownFor and stopFor are an account's pauses above slowDown and at 100 percent, if the platform does not
	// return a pause. Budgets are counted over a sliding window of one hour.
	slowDownFor = time.Minute
	stopFor     = 5 * time.Minute
)

// usageLimit returns the rate limit for a call budget, given its used percentage. shutOut is how long the graph refuses
// all calls.
func usageLimit(name string, appWide bool, used int, shutOut time.Duration, now time.Time) platforms.RateLimit {
	a := platforms.RateLimit{Name: name, Limit: 100, Remaining: min(max(100-used, 0), 100), AppWide: appWide}
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

func (u Usage) rateLimits(now time.Time) (limits []platforms.RateLimit) {
	if u.App >= 0 {
		limits = append(limits, usageLimit(platforms.AppUsage, true, u.App, 0, now))
	}
	if u.Account >= 0 {
		limits = append(limits, usageLimit(platforms.Usage, false, u.Account, u.RetryAfter, now))
	}
	return limits
}
