// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/platforms"
)

// The prefixes of X's rate limit headers: for 15 minutes, and for an account and an app per day.
const (
	window    = "x-rate-limit"
	userDaily = "x-user-limit-24hour"
	appDaily  = "x-app-limit-24hour"
)

// rateLimits returns X's limits from a response to POST /2/tweets. Every response contains the first limit, but only
// some contain the others.
func rateLimits(h http.Header, now time.Time) []platforms.RateLimit {
	var told []platforms.RateLimit
	for _, limit := range []struct {
		prefix, name string
		appWide      bool
	}{
		{window, platforms.PostsPerWindow, false},
		{userDaily, platforms.PostsPerDay, false},
		{appDaily, platforms.AppPostsPerDay, true},
	} {
		left, err := strconv.Atoi(h.Get(limit.prefix + "-remaining"))
		most, err2 := strconv.Atoi(h.Get(limit.prefix + "-limit"))
		if err != nil || err2 != nil || left < 0 || most <= 0 {
			continue
		}
		a := platforms.RateLimit{Name: limit.name, Limit: most, Remaining: left, AppWide: limit.appWide}
		if at := unixHeader(h, limit.prefix+"-reset"); at.After(now) && !at.After(now.Add(maxWait)) {
			a.ResetsAt = at
			if left == 0 {
				a.BlockedUntil = at
			}
		}
		told = append(told, a)
	}
	return told
}

func exhausted(h http.Header, prefix string) bool { return h.Get(prefix+"-remaining") == "0" }
