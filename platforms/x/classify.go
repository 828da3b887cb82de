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

// kindClient is the kind of a refusal that is about the app. With the reason
// client-not-enrolled ("App not enrolled or lacks required access", X's response
// codes and errors) it stops all accounts, and connecting one again does not help.
const kindClient = "client-forbidden"

// legacyDuplicate is the code of the old API for a post that repeats another.
const legacyDuplicate = "187"

// What X's errors ask for. No text changes from one call to the next.
var (
	refresh   = platforms.Error{Class: platforms.ClassRefresh, Problem: "X does not accept the access token: it has ended or was revoked"}
	reconnect = platforms.Error{
		Class:   platforms.ClassReconnect,
		Problem: "X refuses Herald's access to this account: a permission is missing, or the app may not post for it",
		Remedy:  "connect the account again and allow reading and writing",
	}
	wrongToken = platforms.Error{Class: platforms.ClassReconnect, Problem: "X does not accept this kind of token", Remedy: "connect the account again, with OAuth 2.0"}
	suspended  = platforms.Error{Class: platforms.ClassPermanent, Problem: "X has suspended this account", Remedy: "appeal to X, then connect the account again"}
	credits    = platforms.Error{
		Class:   platforms.ClassQuota,
		Problem: "the credits of the X app are used up",
		Remedy:  "the owner of the app has to add credits in X's developer console",
	}
	usageCap = platforms.Error{
		Class:   platforms.ClassQuota,
		Problem: "the X app has reached its usage cap",
		Remedy:  "the owner of the app has to raise it, or wait for the next period",
	}
	notEnrolled = platforms.Error{
		Class:   platforms.ClassQuota,
		Problem: "the X app is not enrolled: it belongs to no project, or its plan does not allow this",
		Remedy:  "the owner of the app has to attach it to a project in X's developer console",
		AppWide: true,
	}
	appLimit = platforms.Error{
		Class:   platforms.ClassQuota,
		Problem: "the X app has reached X's limit of posts for 24 hours, of all its accounts together",
		Remedy:  "wait, or post less",
	}
	dailyLimit = platforms.Error{Class: platforms.ClassQuota, Problem: "this account has reached X's limit of posts for 24 hours", Remedy: "wait, or post less"}
	rateLimit  = platforms.Error{Class: platforms.ClassRateLimited, Problem: "X limits how often this account may be used, and the limit is reached"}
	duplicate  = platforms.Error{
		Class:   platforms.ClassDuplicate,
		Problem: "X refused the post as a repetition of an earlier one of this account",
		Remedy:  "if no earlier one exists, change the text",
	}
	cashtag    = platforms.Error{Class: platforms.ClassPermanent, Problem: "X allows at most one cashtag ($ABC) in a post sent by an app", Remedy: "remove the others"}
	notAllowed = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "X does not permit this post: it may be too long, hold an address that X blocks, or break another of X's rules",
		Remedy:  "change the text",
	}
	invalid = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "X found the request invalid: the text may be too long or hold characters that X refuses",
		Remedy:  "change it",
	}
)

// errGone is the cause of an error that says that X does not know, or know any
// more, what was asked for.
var errGone = errors.New("it is not there")

// documented reports whether an answer is one of the refusals that X documents,
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
func (p *Platform) classify(resp *transport.Response) (failure *platforms.Error, refused bool) {
	said, explained := parseProblem(resp.Body)
	known := p.meaning(resp, said)
	refused = documented(resp.Status, explained)
	if !refused && resp.Status < http.StatusInternalServerError {
		known = *p.api.Nonsense(resp.Status, nil)
	}
	known.RetryAt = retryAt(resp.Header, known.Class, p.clock.Now())
	known.AppWide = known.AppWide || resp.Status == http.StatusPaymentRequired || said.isKind("usage-capped") || resp.Status == http.StatusTooManyRequests && exhausted(resp.Header, appDaily)
	known.Err = fmt.Errorf("HTTP status %d, problem %v, codes %v, oauth %q", resp.Status, said.kinds, said.codes, said.oauth)
	if resp.Status == http.StatusNotFound || resp.Status == http.StatusGone {
		known.Err = fmt.Errorf("%w: %w", errGone, known.Err)
	}
	return &known, refused
}

// meaning is the table of X's errors.
func (p *Platform) meaning(resp *transport.Response, said *problem) platforms.Error {
	switch status := resp.Status; {
	case status >= http.StatusInternalServerError:
		return *p.api.Busy(nil)
	case status == http.StatusUnauthorized && said.isKind("unsupported-authentication"):
		return wrongToken
	case status == http.StatusUnauthorized:
		return refresh
	case status == http.StatusPaymentRequired:
		return credits
	case status == http.StatusTooManyRequests && said.isKind("usage-capped"):
		return usageCap
	case status == http.StatusTooManyRequests && exhausted(resp.Header, appDaily):
		return appLimit
	case status == http.StatusTooManyRequests && exhausted(resp.Header, userDaily):
		return dailyLimit
	case status == http.StatusTooManyRequests:
		return rateLimit
	case status == http.StatusForbidden:
		return forbidden(said)
	default:
		return invalid
	}
}

// forbidden tells apart what X says with status 403.
func forbidden(said *problem) platforms.Error {
	switch {
	case said.says("duplicate content") || said.hasCode(legacyDuplicate):
		return duplicate
	case said.isKind("unsupported-authentication"):
		return wrongToken
	case said.isKind(kindClient) && said.says("client-not-enrolled"):
		return notEnrolled
	case said.isKind(kindClient, "oauth1-permissions", "not-authorized-for-resource"):
		return reconnect
	case said.isKind("user-suspended"):
		return suspended
	case said.isKind("usage-capped"):
		return usageCap
	case said.says("cashtag"):
		return cashtag
	default:
		return notAllowed
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
	case platforms.ClassReconnect, platforms.ClassRefresh, platforms.ClassRestricted, platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown:
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
