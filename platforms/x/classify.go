// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// adviceUnknown is the remedy for a refusal without a specific cause.
const adviceUnknown = "check whether X shows a notice for the account at x.com; if not, change the post and post it again"

// errNotFound is the cause of errors for objects that X does not have, or no longer has.
var errNotFound = errors.New("it is not there")

// documented reports whether a response is a refusal that X documents, which means that the request was certainly not
// executed. Responses with other statuses, or without the explanation that X always adds to the status, may come from a
// proxy in front of X after X executed the request.
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

type answer struct {
	*transport.Response

	said *problem
	// reply reports whether the call publishes a reply.
	reply bool
}

// classify classifies an unsuccessful response, and reports whether it is a documented refusal.
func (p *Platform) classify(resp *transport.Response) (failure *platforms.Error, refused bool) {
	return p.classifyPost(resp, &platforms.Content{})
}

// classifyPost is like classify, for the response to the call that publishes content.
func (p *Platform) classifyPost(resp *transport.Response, content *platforms.Content) (failure *platforms.Error, refused bool) {
	said, explained := parseProblem(resp.Body)
	a := &answer{Response: resp, said: said, reply: content.InReplyTo != ""}
	known, remade := p.classifyAnswer(a)
	refused = documented(resp.Status, explained)
	if !refused && resp.Status < http.StatusInternalServerError {
		code, isUnlisted := known.Code, known.Unlisted
		known = *p.API.Nonsense(resp.Status, nil)
		known.Code, known.Unlisted = code, isUnlisted
	}
	known.RetryAt = retryAt(resp.Header, known.Class, p.Clock.Now())
	known.Err = fmt.Errorf("HTTP status %d, problem %v, codes %v, oauth %q", resp.Status, said.kinds, said.codes, said.oauth)
	if remade || resp.Status == http.StatusNotFound || resp.Status == http.StatusGone {
		known.Err = fmt.Errorf("%w: %w", errNotFound, known.Err)
	}
	return &known, refused
}

// classifyAnswer looks up a response in the table. remade reports whether the files must be uploaded again.
func (p *Platform) classifyAnswer(a *answer) (known platforms.Error, remade bool) {
	if a.Status >= http.StatusInternalServerError {
		return *p.API.Busy(nil), false
	}
	row := rowOf(a)
	if row == nil {
		return unlisted(a), false
	}
	known = row.error
	known.Code = cmp.Or(a.said.code(), row.code())
	return known, row.remakes
}

func rowOf(a *answer) *row {
	foreign := slices.ContainsFunc(a.said.codes, func(code string) bool { return !listed[code] }) ||
		slices.ContainsFunc(a.said.kinds, func(kind string) bool { return kind != kindBlank && !listed[kind] })
	for i := range table {
		r := &table[i]
		if (!r.replies || a.reply) && (!r.general || !foreign) && slices.ContainsFunc(r.signs, a.shows) {
			return r
		}
	}
	return nil
}

var listed = func() map[string]bool {
	known := map[string]bool{}
	for i := range table {
		for _, s := range table[i].signs {
			known[s.kind], known[s.code] = true, true
		}
	}
	return known
}()

func (a *answer) shows(s sign) bool {
	return (s.status == 0 || s.status == a.Status) &&
		(s.kind == "" || a.said.isKind(s.kind)) &&
		(s.code == "" || a.said.hasCode(s.code)) &&
		!slices.ContainsFunc(s.words, func(words string) bool { return !a.said.contains(words) }) &&
		(s.spent == "" || exhausted(a.Header, s.spent))
}

// code returns X's code or kind for a row's error; empty if the row only matches words.
func (r *row) code() string { return cmp.Or(r.signs[0].code, r.signs[0].kind) }

// unlisted returns the error for a response that matches no row of the table. The response does not identify the cause,
// so the error does not name one.
func unlisted(a *answer) platforms.Error {
	code := cmp.Or(a.said.code(), fmt.Sprintf("HTTP %d", a.Status))
	return platforms.Error{
		Class: platforms.ClassPermanent, Code: code, Unlisted: true,
		Problem: fmt.Sprintf("X refused the request with the error %s, which Herald does not recognize", code), Remedy: adviceUnknown,
	}
}

// maxWait is the longest wait that Herald accepts from X, whose longest window is a month.
const maxWait = 32 * 24 * time.Hour

// retryAt returns the time of the next allowed call after a temporary error, or zero if X returns no valid time.
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
