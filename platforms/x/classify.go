// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// legacyDuplicate is the code of the old API for a post that repeats another.
const legacyDuplicate = "187"

// What people are told. None of it changes from one call to the next.
const (
	msgRefresh    = "X does not accept the access token: it has ended or was revoked"
	msgReconnect  = "X refuses Herald's access to this account: a permission is missing, or the app may not post for it; connect the account again and allow reading and writing"
	msgWrongToken = "X does not accept this kind of token; connect the account again, with OAuth 2.0"
	msgSuspended  = "X has suspended this account; appeal to X, then connect the account again"
	msgCredits    = "the credits of the X app are used up; the owner of the app has to add credits in X's developer console"
	msgUsageCap   = "the X app has reached its usage cap; the owner of the app has to raise it, or wait for the next period"
	msgAppLimit   = "the X app has reached X's limit of posts for 24 hours, of all its accounts together; wait, or post less"
	msgDailyLimit = "this account has reached X's limit of posts for 24 hours; wait, or post less"
	msgRateLimit  = "X limits how often this account may be used, and the limit is reached; Herald tries again when X allows it"
	msgDuplicate  = "X refused the post as a repetition of an earlier one of this account; if no earlier one exists, change the text"
	msgCashtag    = "X allows at most one cashtag ($ABC) in a post sent by an app; remove the others"
	msgNotAllowed = "X does not permit this post: it may be too long, hold an address that X blocks, or break another of X's rules; change the text"
	msgInvalid    = "X found the request invalid: the text may be too long or hold characters that X refuses; change it"
	msgBusy       = "X has trouble and did not do what it was asked; try again later"
	msgNonsense   = "X gave an answer that Herald does not understand"
	msgNotSent    = "X could not be reached; check the network between Herald and X"
	msgLost       = "the connection to X broke before the answer came"
)

// errGone is the cause of an error that says that X does not know, or know any
// more, what was asked for.
var errGone = errors.New("it is not there")

// documented tells whether an answer is one of the refusals that X documents,
// so that what was asked was certainly not done. An answer with another
// status, or a status that stands alone where X always explains itself, may
// come from something between X and us, after X did its part.
func documented(status int, explained bool) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusTooManyRequests:
		return true
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusForbidden:
		return explained
	default:
		return false
	}
}

// classify reads an answer that is not a success: what it asks for, and
// whether it is a documented refusal.
func classify(resp *transport.Response, now time.Time) (failure *platforms.Error, refused bool) {
	p, explained := parseProblem(resp.Body)
	class, message := classOf(resp.Status, p)
	switch {
	case class != platforms.ClassRateLimited:
	case exhausted(resp.Header, appDaily):
		class, message = platforms.ClassQuota, msgAppLimit
	case exhausted(resp.Header, userDaily):
		class, message = platforms.ClassQuota, msgDailyLimit
	}
	refused = documented(resp.Status, explained)
	if !refused && resp.Status < http.StatusInternalServerError {
		class, message = platforms.ClassUnknown, fmt.Sprintf("%s (HTTP status %d)", msgNonsense, resp.Status)
	}
	failure = platforms.Errorf(class, "%s", message)
	failure.RetryAt = retryAt(resp.Header, class, now)
	failure.AppWide = resp.Status == http.StatusPaymentRequired || p.isKind("usage-capped") || resp.Status == http.StatusTooManyRequests && exhausted(resp.Header, appDaily)
	failure.Err = fmt.Errorf("HTTP status %d, problem %v, codes %v, oauth %q", resp.Status, p.kinds, p.codes, p.oauth)
	if resp.Status == http.StatusNotFound || resp.Status == http.StatusGone {
		failure.Err = fmt.Errorf("%w: %w", errGone, failure.Err)
	}
	return failure, refused
}

// classOf is the table of X's errors.
func classOf(status int, p *problem) (platforms.Class, string) {
	switch {
	case status >= http.StatusInternalServerError:
		return platforms.ClassTransient, msgBusy
	case status == http.StatusUnauthorized && p.isKind("unsupported-authentication"):
		return platforms.ClassReconnect, msgWrongToken
	case status == http.StatusUnauthorized:
		return platforms.ClassRefresh, msgRefresh
	case status == http.StatusPaymentRequired:
		return platforms.ClassQuota, msgCredits
	case status == http.StatusTooManyRequests && p.isKind("usage-capped"):
		return platforms.ClassQuota, msgUsageCap
	case status == http.StatusTooManyRequests:
		return platforms.ClassRateLimited, msgRateLimit
	case status == http.StatusForbidden:
		return classOfForbidden(p)
	default:
		return platforms.ClassPermanent, msgInvalid
	}
}

// classOfForbidden tells apart what X says with status 403.
func classOfForbidden(p *problem) (platforms.Class, string) {
	switch {
	case p.says("duplicate content") || p.hasCode(legacyDuplicate):
		return platforms.ClassDuplicate, msgDuplicate
	case p.isKind("unsupported-authentication"):
		return platforms.ClassReconnect, msgWrongToken
	case p.isKind("client-forbidden", "oauth1-permissions", "not-authorized-for-resource"):
		return platforms.ClassReconnect, msgReconnect
	case p.isKind("user-suspended"):
		return platforms.ClassPermanent, msgSuspended
	case p.isKind("usage-capped"):
		return platforms.ClassQuota, msgUsageCap
	case p.says("cashtag"):
		return platforms.ClassPermanent, msgCashtag
	default:
		return platforms.ClassPermanent, msgNotAllowed
	}
}

// maxWait bounds how far ahead a time to try again is believed: X's longest
// window is a month.
const maxWait = 32 * 24 * time.Hour

// retryAt reads when X allows the next call, for the errors that pass by
// themselves; zero where X does not say, or says what cannot be.
func retryAt(h http.Header, class platforms.Class, now time.Time) time.Time {
	switch class {
	case platforms.ClassRateLimited, platforms.ClassQuota, platforms.ClassTransient:
	case platforms.ClassReconnect, platforms.ClassRefresh, platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown:
		return time.Time{}
	}
	var at time.Time
	if remaining := h.Get(window + "-remaining"); remaining == "" || remaining == "0" {
		at = unixHeader(h, window+"-reset")
	}
	for _, prefix := range []string{userDaily, appDaily} {
		if daily := unixHeader(h, prefix+"-reset"); exhausted(h, prefix) && daily.After(at) {
			at = daily
		}
	}
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); at.IsZero() && err == nil && seconds > 0 && seconds <= int(maxWait/time.Second) {
		at = now.Add(time.Duration(seconds) * time.Second)
	}
	if !at.After(now) || at.After(now.Add(maxWait)) {
		return time.Time{}
	}
	return at
}

func unixHeader(h http.Header, name string) time.Time {
	seconds, err := strconv.ParseInt(h.Get(name), 10, 64)
	if err != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
