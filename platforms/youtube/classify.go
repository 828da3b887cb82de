// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
	_ "time/tzdata" // the day of YouTube's quotas ends at midnight Pacific time, also where the machine knows no zones

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// perDay finds a quota of a day in the words of a limit. That of a project's
// uploads (100 a day in a bucket of their own since June 2026; YouTube Data API,
// "Quota Calculator") has the reason of a rate limit: "Quota exceeded for quota
// metric 'Video Uploads' and limit 'Video Uploads per day' …", with status 429
// (googleapis/google-api-python-client#2753, May 2026).
var perDay = regexp.MustCompile(`(?i)\bper day\b`)

// classify reads an error of the Data API: the status, and the reason of its
// first entry, which is empty if the answer is not in the form of Google's.
func (p *Platform) classify(resp *transport.Response) (failure *platforms.Error, reason string) {
	answer, _ := jsondoc.Decode[struct {
		Error struct {
			Message jsondoc.Text `json:"message"`
			Errors  []struct {
				Reason  jsondoc.Text `json:"reason"`
				Message jsondoc.Text `json:"message"`
			} `json:"errors"`
		} `json:"error"`
	}](resp.Body)
	words := answer.Error.Message
	if entries := answer.Error.Errors; len(entries) > 0 {
		reason = entries[0].Reason.String()
		words += " " + entries[0].Message
	}
	found := p.classifyReason(resp.Status, reason)
	if found.Class == platforms.ClassRateLimited && perDay.MatchString(words.String()) {
		found, _ = lookupError(codeQuota)
		found.Code = reason
	}
	failure = &found
	failure.Err = fmt.Errorf("HTTP status %d with reason %.64q", resp.Status, reason)
	now := p.clock.Now()
	switch failure.Class {
	case platforms.ClassQuota:
		// The quota is the Google project's, the limit of uploads the channel's.
		failure.RetryAt = quotaRenewed(now)
		if reason == codeUploadLimit {
			failure.RetryAt = now.Add(channelDay).UTC()
		}
	case platforms.ClassRateLimited, platforms.ClassTransient:
		failure.RetryAt = retryAfter(resp.Header, now)
	case platforms.ClassReconnect, platforms.ClassRefresh, platforms.ClassRestricted, platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown:
	}
	return failure, reason
}

// classifyReason is what an error asks for: what the table says of its reason, or else what
// its status says.
func (p *Platform) classifyReason(status int, reason string) platforms.Error {
	if found, ok := lookupError(sanitizeWord(reason)); ok {
		return found
	}
	var found platforms.Error
	switch {
	case status == http.StatusUnauthorized:
		found = refresh
	case status == http.StatusTooManyRequests:
		found = rateLimit
	case status >= http.StatusInternalServerError:
		found = *p.api.Busy(nil)
	default:
		found = *p.api.Nonsense(status, nil)
	}
	if reason != "" {
		found.Code, found.Unlisted = sanitizeWord(reason), true
	}
	return found
}

// reasonWord is the form of the documented reasons.
var reasonWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// sanitizeWord returns what has the form of a documented reason as it is, and nothing else
// that YouTube says.
func sanitizeWord(s string) string {
	if reasonWord.MatchString(s) {
		return s
	}
	return "unspecified"
}

// classifyVideo reads an error of a call about a video. There a bad request and a
// prohibition in Google's own words are refusals, whatever their reason. One that the
// table lacks names nothing that is at fault.
func (p *Platform) classifyVideo(resp *transport.Response) (failure *platforms.Error, reason string) {
	failure, reason = p.classify(resp)
	refuses := resp.Status == http.StatusBadRequest || resp.Status == http.StatusForbidden
	if failure.Class != platforms.ClassUnknown || !refuses || reason == "" {
		return failure, reason
	}
	failure.Class = platforms.ClassPermanent
	failure.Problem = fmt.Sprintf("YouTube refuses the video, with the reason %s", failure.Code)
	failure.Remedy = "look at the video and at the channel in YouTube Studio"
	return failure, reason
}

// channelDay is how long a channel that has uploaded too many videos waits; the
// limit is counted over about 24 hours.
const channelDay = 24 * time.Hour

// pacific is where the days of Google's quotas begin and end.
var pacific = sync.OnceValue(func() *time.Location {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil { // The zones are part of the program.
		return time.FixedZone("PST", -8*60*60)
	}
	return zone
})

// quotaRenewed is when the quota that is used up at now is renewed: at the next
// midnight Pacific time.
func quotaRenewed(now time.Time) time.Time {
	now = now.In(pacific())
	return time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, pacific()).UTC()
}

// maxWait bounds how far ahead a time to try again is believed.
const maxWait = 24 * time.Hour

// retryAfter reads when to try again, where Google says so.
func retryAfter(h http.Header, now time.Time) time.Time {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 || seconds > int(maxWait/time.Second) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds) * time.Second)
}
