// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"net/http"
	"time"

	"github.com/herald-social/herald/platforms/internal/jsondoc"
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

// usageHeader tells how much of its limits a business has used, and for how
// many minutes it is shut out.
const usageHeader = "X-Business-Use-Case-Usage"

// RetryAt is when an error of a kind that passes allows the next call; zero for
// the other kinds.
func RetryAt(h http.Header, kind Kind, now time.Time) time.Time {
	switch kind {
	case KindLimit:
		if wait := shutOut(h); wait > 0 {
			return now.Add(wait)
		}
		return now.Add(limitPause)
	case KindBlocked, KindQuota:
		return now.Add(max(shutOut(h), blockPause))
	case KindOther, KindToken, KindPermission, KindPerson, KindDuplicate, KindUnavailable, KindNonsense:
		return time.Time{}
	default:
		return time.Time{}
	}
}

// shutOut reads the longest time until access is regained.
func shutOut(h http.Header) time.Duration {
	doc, _ := jsondoc.Parse([]byte(h.Get(usageHeader)))
	var longest time.Duration
	for business := range doc {
		uses, _ := doc.List(business)
		for _, use := range uses {
			minutes := use.Int("estimated_time_to_regain_access")
			if minutes > 0 && minutes <= int(longestWait/time.Minute) {
				longest = max(longest, time.Duration(minutes)*time.Minute)
			}
		}
	}
	return longest
}
