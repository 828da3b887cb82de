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
	// appUsageHeader tells how much of its budget of calls the app has used.
	appUsageHeader = "X-App-Usage"
	// usageHeader tells how much of its limits a business has used, and for how
	// many minutes it is shut out.
	usageHeader = "X-Business-Use-Case-Usage"
)

const (
	// limitPause and blockPause are how long to stay away when the graph does
	// not say: calling while limited prolongs the block, and what counts over a
	// day, or punishes, lasts for hours.
	limitPause = 5 * time.Minute
	blockPause = time.Hour

	// longestWait bounds what is believed: limits count over 24 hours.
	longestWait = 24 * time.Hour
)

// Usage is how much of its budgets of calls was used up, as an answer tells.
type Usage struct {
	// App and Account are percents of the app's budget and of the account's;
	// -1 if they are not told.
	App, Account int
	// RetryAfter is for how long the graph takes no calls of the account; zero if
	// it does.
	RetryAfter time.Duration
}

// budgets are those that Meta counts, in percent, and the minutes until access
// is regained.
type budgets struct {
	Calls   jsondoc.Text `json:"call_count"`
	Time    jsondoc.Text `json:"total_time"`
	CPUTime jsondoc.Text `json:"total_cputime"`
	ShutOut jsondoc.Text `json:"estimated_time_to_regain_access"`
}

// most is the most used of the budgets.
func (b budgets) most() int { return max(b.Calls.Int(), b.Time.Int(), b.CPUTime.Int(), 0) }

// ParseUsage reads the headers of an answer, a success or not.
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

// RetryAt is when an error of a kind that passes allows the next call; zero for
// the other kinds.
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

// quotaLimit is the rate limit of posts within 24 hours, from how many there may
// be and how many were made. Nothing is sent until the given time if none is
// left. It returns nil for what is no number.
func quotaLimit(total, used string, hold time.Time) []platforms.RateLimit {
	most, err := strconv.Atoi(total)
	made, err2 := strconv.Atoi(used)
	if err != nil || err2 != nil || most < 0 || most > math.MaxInt32 || made < 0 {
		return nil
	}
	a := platforms.RateLimit{Name: platforms.PostsPerDay, Limit: most, Remaining: max(most-made, 0)}
	if a.Remaining == 0 {
		a.BlockedUntil = hold
	}
	return []platforms.RateLimit{a}
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

// usageLimit is the rate limit of a budget of calls, from its use in percent. For
// shutOut the graph takes no calls at all.
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

// rateLimits are the budgets of calls of the app and of the account.
func (u Usage) rateLimits(now time.Time) (told []platforms.RateLimit) {
	if u.App >= 0 {
		told = append(told, usageLimit(platforms.AppUsage, true, u.App, 0, now))
	}
	if u.Account >= 0 {
		told = append(told, usageLimit(platforms.Usage, false, u.Account, u.RetryAfter, now))
	}
	return told
}
