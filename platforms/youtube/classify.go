// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // YouTube's quota day ends at midnight Pacific time, even on a machine without time zone data

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// perDay detects a daily quota from the message of a rate limit. When a project's upload quota (100 per day since June
// 2026, counted separately; YouTube Data API, "Quota Calculator") is exhausted, the reason is that of a rate limit:
// "Quota exceeded for quota metric 'Video Uploads' and limit 'Video Uploads per day' …", with status 429
// (googleapis/google-api-python-client#2753, May 2026).
var perDay = regexp.MustCompile(`(?i)\bper day\b`)

// classify classifies a Data API error by its status and the reason in its first entry. The reason is empty if the
// response is not in Google's format.
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
	now := p.Clock.Now()
	switch failure.Class {
	case platforms.ClassQuota:
		// The quota is the Google project's, while the upload limit is the channel's.
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

// classifyReason returns the table's error for a reason, or a default for the status.
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
		found = *p.API.Busy(nil)
	default:
		found = *p.API.Nonsense(status, nil)
	}
	if reason != "" {
		found.Code, found.Unlisted = sanitizeWord(reason), true
	}
	return found
}

// sanitizeWord returns a word that has the form of a documented reason, and "unspecified" for any other text.
func sanitizeWord(s string) string {
	if text.Consists(s, 1, 64, text.Letters+text.Digits+"_") && strings.IndexByte(text.Letters, s[0]) >= 0 {
		return s
	}
	return "unspecified"
}

// classifyVideo classifies a video call's error. In Google's format, the statuses 400 and 403 are refusals, regardless
// of the reason. A reason that is not in the table does not identify the cause.
func (p *Platform) classifyVideo(resp *transport.Response) (failure *platforms.Error, reason string) {
	failure, reason = p.classify(resp)
	refuses := resp.Status == http.StatusBadRequest || resp.Status == http.StatusForbidden
	if failure.Class != platforms.ClassUnknown || !refuses || reason == "" {
		return failure, reason
	}
	failure.Class = platforms.ClassPermanent
	failure.Problem = fmt.Sprintf("YouTube refused the video with the reason %s", failure.Code)
	failure.Remedy = "check the video and the channel in YouTube Studio"
	return failure, reason
}

// channelDay is how long a channel pauses after uploading too many videos. The limit is counted over about 24 hours.
const channelDay = 24 * time.Hour

// pacific returns the time zone of Google's quota days.
var pacific = sync.OnceValue(func() *time.Location {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil { // The time zones are compiled in.
		return time.FixedZone("PST", -8*60*60)
	}
	return zone
})

// quotaRenewed returns the time of the quota's next renewal: midnight Pacific time.
func quotaRenewed(now time.Time) time.Time {
	now = now.In(pacific())
	return time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, pacific()).UTC()
}

// maxWait is the longest Retry-After that Herald accepts.
const maxWait = 24 * time.Hour

// retryAfter returns the time in Google's Retry-After header, or zero if there is none.
func retryAfter(h http.Header, now time.Time) time.Time {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 || seconds > int(maxWait/time.Second) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds) * time.Second)
}
