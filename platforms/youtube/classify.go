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

// What YouTube's errors ask for. No text changes from one call to the next.
var (
	refresh   = platforms.Error{Class: platforms.ClassRefresh, Problem: "YouTube does not accept the access token: it has ended or was revoked"}
	noChannel = platforms.Error{Class: platforms.ClassReconnect, Problem: "this Google account has no YouTube channel", Remedy: "create one, then connect the account again"}
	noScope   = platforms.Error{
		Class:   platforms.ClassReconnect,
		Problem: "YouTube refuses Herald's access to this channel, because a permission is missing",
		Remedy:  "connect the channel again and grant all of them",
	}
	closed = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "YouTube has closed or suspended this channel",
		Remedy:  "appeal to YouTube, then connect the channel again",
	}
	notEnabled = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "the YouTube Data API is not enabled for Herald's Google project",
		Remedy:  "the administrator has to enable it in the Google Cloud console",
	}
	forbidden = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "YouTube does not allow this channel to do that",
		Remedy:  "look at the channel's state in YouTube Studio",
	}
	quota          = platforms.Error{Class: platforms.ClassQuota, Problem: "the quota of Herald's Google project is used up until midnight Pacific time"}
	uploadLimit    = platforms.Error{Class: platforms.ClassQuota, Problem: "the channel has uploaded as many videos as YouTube allows it in a day"}
	rateLimit      = platforms.Error{Class: platforms.ClassRateLimited, Problem: "YouTube limits how often it may be called, and the limit is reached"}
	badTitle       = platforms.Error{Class: platforms.ClassPermanent, Problem: "YouTube refuses the title", Remedy: "change it"}
	badDescription = platforms.Error{Class: platforms.ClassPermanent, Problem: "YouTube refuses the caption as a description", Remedy: "change it"}
	badPrivacy     = platforms.Error{Class: platforms.ClassPermanent, Problem: "the settings of the channel do not allow a public video", Remedy: "change them in YouTube Studio"}
)

// invalid says that YouTube refuses what Herald says of a video.
func invalid(reason string) *platforms.Error {
	return platforms.Errorf(platforms.ClassPermanent, "YouTube refuses the video as Herald describes it (%s)", reason).Advise("change its title, caption or file")
}

// The reasons that more than the table of errors looks at.
const (
	reasonNotEnabled = "accessNotConfigured"
	reasonBackend    = "backendError"
)

// perDay finds a quota of a day in the words of a limit. That of a project's
// uploads (100 a day in a bucket of their own since June 2026; YouTube Data API,
// "Quota Calculator") has the reason of a rate limit: "Quota exceeded for quota
// metric 'Video Uploads' and limit 'Video Uploads per day' …", with status 429
// (googleapis/google-api-python-client#2753, May 2026).
var perDay = regexp.MustCompile(`(?i)\bper day\b`)

// refused reads an error of the Data API: the status, and the reason of its
// first entry, which is empty if the answer is not in the form of Google's.
func (p *Platform) refused(resp *transport.Response) (failure *platforms.Error, reason string) {
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
	known := p.meaning(resp.Status, reason)
	if known.Class == platforms.ClassRateLimited && perDay.MatchString(words.String()) {
		known = quota
	}
	failure = &known
	failure.Err = fmt.Errorf("HTTP status %d with reason %.64q", resp.Status, reason)
	now := p.clock.Now()
	switch failure.Class {
	case platforms.ClassQuota:
		// The quota is the Google project's, the limit of uploads the channel's.
		failure.RetryAt, failure.AppWide = quotaRenewed(now), true
		if reason == "uploadLimitExceeded" {
			failure.RetryAt, failure.AppWide = now.Add(channelDay).UTC(), false
		}
	case platforms.ClassRateLimited, platforms.ClassTransient:
		failure.RetryAt = retryAfter(resp.Header, now)
	case platforms.ClassReconnect, platforms.ClassRefresh, platforms.ClassRestricted, platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown:
	}
	return failure, reason
}

// meaning is the table of YouTube's errors.
func (p *Platform) meaning(status int, reason string) platforms.Error {
	switch reason {
	case "youtubeSignupRequired":
		return noChannel
	case "insufficientPermissions":
		return noScope
	case "authenticatedUserAccountClosed", "authenticatedUserAccountSuspended", "channelClosed", "channelSuspended":
		return closed
	case "forbidden":
		return forbidden
	case reasonNotEnabled:
		return notEnabled
	case "quotaExceeded", "dailyLimitExceeded":
		return quota
	case "uploadLimitExceeded":
		return uploadLimit
	case "rateLimitExceeded", "userRateLimitExceeded", "uploadRateLimitExceeded":
		return rateLimit
	case "invalidTitle":
		return badTitle
	case "invalidDescription":
		return badDescription
	case "forbiddenPrivacySetting":
		return badPrivacy
	case "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata", "invalidRecordingDetails", "invalidFilename",
		"defaultLanguageNotSet", "mediaBodyRequired", "forbiddenLicenseSetting":
		return *invalid(reason)
	}
	switch {
	case status == http.StatusUnauthorized:
		return refresh
	case status == http.StatusTooManyRequests:
		return rateLimit
	case status >= http.StatusInternalServerError:
		return *p.api.Busy(nil)
	default:
		return *p.api.Nonsense(status, nil)
	}
}

// videoRefused reads an error of a call about a video. There a bad request in
// Google's own words is a refusal, whatever its reason.
func (p *Platform) videoRefused(resp *transport.Response) (failure *platforms.Error, reason string) {
	failure, reason = p.refused(resp)
	if failure.Class == platforms.ClassUnknown && resp.Status == http.StatusBadRequest && reason != "" {
		failure = invalid("badRequest").Because(failure.Err)
	}
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
