// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
	_ "time/tzdata" // the day of YouTube's quotas ends at midnight Pacific time, also where the machine knows no zones

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// What people are told. None of it changes from one call to the next.
const (
	msgRefresh     = "YouTube does not accept the access token: it has ended or was revoked"
	msgNoChannel   = "this Google account has no YouTube channel; create one, then connect the account again"
	msgScope       = "YouTube refuses Herald's access to this channel, because a permission is missing; connect the channel again and grant all of them"
	msgClosed      = "YouTube has closed or suspended this channel; appeal to YouTube, then connect the channel again"
	msgNotEnabled  = "the YouTube Data API is not enabled for Herald's Google project; the administrator has to enable it in the Google Cloud console"
	msgForbidden   = "YouTube does not allow this channel to do that; look at the channel's state in YouTube Studio"
	msgQuota       = "the quota of Herald's Google project is used up for today; it is renewed at midnight Pacific time"
	msgUploadLimit = "the channel has uploaded as many videos as YouTube allows it in a day; Herald tries again a day later"
	msgLimit       = "YouTube limits how often it may be called, and the limit is reached; Herald tries again later"
	msgBusy        = "YouTube has trouble and did not do what it was asked; try again later"
	msgNonsense    = "YouTube gave an answer that Herald does not understand (HTTP status %d)"
	msgNotSent     = "YouTube could not be reached; check the network between Herald and YouTube"
	msgLost        = "the connection to YouTube broke before the answer came"
	msgBadAddress  = "the configured address of YouTube's API is not a URL; the administrator has to correct it in Herald's configuration"

	msgTitle       = "YouTube refuses the title; change it"
	msgDescription = "YouTube refuses the caption as a description; change it"
	msgPrivacy     = "the settings of the channel do not allow a public video; change them in YouTube Studio"
	msgInvalid     = "YouTube refuses the video as Herald describes it (%s); change its title, caption or file"
)

// The reasons that more than the table of errors looks at.
const (
	reasonNotEnabled = "accessNotConfigured"
	reasonBackend    = "backendError"
)

// refused reads an error of the Data API: the status, and the reason of its
// first entry, which is empty if the answer is not in the form of Google's.
func (p *Platform) refused(resp *transport.Response) (failure *platforms.Error, reason string) {
	doc, _ := jsondoc.Parse(resp.Body)
	if entries, ok := doc.Object("error").List("errors"); ok && len(entries) > 0 {
		reason = entries[0].Text("reason")
	}
	class, message := classOf(resp.Status, reason)
	failure = &platforms.Error{Class: class, Problem: message, Err: fmt.Errorf("HTTP status %d with reason %.64q", resp.Status, reason)}
	now := p.config.Clock.Now()
	switch class {
	case platforms.ClassQuota:
		// The quota is the Google project's, the limit of uploads the channel's.
		failure.RetryAt, failure.AppWide = quotaRenewed(now), true
		if reason == "uploadLimitExceeded" {
			failure.RetryAt, failure.AppWide = now.Add(channelDay).UTC(), false
		}
	case platforms.ClassRateLimited, platforms.ClassTransient:
		failure.RetryAt = retryAfter(resp.Header, now)
	case platforms.ClassReconnect, platforms.ClassRefresh, platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown:
	}
	return failure, reason
}

// classOf is the table of YouTube's errors.
func classOf(status int, reason string) (platforms.Class, string) {
	switch reason {
	case "youtubeSignupRequired":
		return platforms.ClassReconnect, msgNoChannel
	case "insufficientPermissions":
		return platforms.ClassReconnect, msgScope
	case "authenticatedUserAccountClosed", "authenticatedUserAccountSuspended", "channelClosed", "channelSuspended":
		return platforms.ClassPermanent, msgClosed
	case "forbidden":
		return platforms.ClassPermanent, msgForbidden
	case reasonNotEnabled:
		return platforms.ClassPermanent, msgNotEnabled
	case "quotaExceeded", "dailyLimitExceeded":
		return platforms.ClassQuota, msgQuota
	case "uploadLimitExceeded":
		return platforms.ClassQuota, msgUploadLimit
	case "rateLimitExceeded", "userRateLimitExceeded", "uploadRateLimitExceeded":
		return platforms.ClassRateLimited, msgLimit
	case "invalidTitle":
		return platforms.ClassPermanent, msgTitle
	case "invalidDescription":
		return platforms.ClassPermanent, msgDescription
	case "forbiddenPrivacySetting":
		return platforms.ClassPermanent, msgPrivacy
	case "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata", "invalidRecordingDetails", "invalidFilename",
		"defaultLanguageNotSet", "mediaBodyRequired", "forbiddenLicenseSetting":
		return platforms.ClassPermanent, fmt.Sprintf(msgInvalid, reason)
	}
	switch {
	case status == http.StatusUnauthorized:
		return platforms.ClassRefresh, msgRefresh
	case status == http.StatusTooManyRequests:
		return platforms.ClassRateLimited, msgLimit
	case status >= http.StatusInternalServerError:
		return platforms.ClassTransient, msgBusy
	default:
		return platforms.ClassUnknown, fmt.Sprintf(msgNonsense, status)
	}
}

// videoRefused reads an error of a call about a video. There a bad request in
// Google's own words is a refusal, whatever its reason.
func (p *Platform) videoRefused(resp *transport.Response) (failure *platforms.Error, reason string) {
	failure, reason = p.refused(resp)
	if failure.Class == platforms.ClassUnknown && resp.Status == http.StatusBadRequest && reason != "" {
		failure.Class, failure.Problem = platforms.ClassPermanent, fmt.Sprintf(msgInvalid, "badRequest")
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

// unanswered says what the absence of an answer means for a call that may be
// repeated.
func unanswered(err error) *platforms.Error {
	message := msgLost
	if notSent(err) {
		message = msgNotSent
	}
	return &platforms.Error{Class: platforms.ClassTransient, Problem: message, Err: err}
}

// notSent tells whether nothing of a call can have reached YouTube.
func notSent(err error) bool {
	failure, ok := errors.AsType[*transport.Error](err)
	return ok && !failure.Sent
}

// badAddress says that the configured address of YouTube is none.
func badAddress(err error) *platforms.Error {
	return &platforms.Error{Class: platforms.ClassTransient, Problem: msgBadAddress, Err: err}
}
