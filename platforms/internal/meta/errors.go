// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Error is a graph's error, from the "error" object in its response. Its messages are not stored: they are written for
// developers, and some differ between calls.
type Error struct {
	Status int
	// Code and Subcode identify the error; zero if the graph returned none.
	Code, Subcode int
	// Word is an identifier found in the error's messages; usually empty.
	Word string
	// Transient is the graph's own flag for errors where the same call may succeed later.
	Transient bool

	// row is the error's row in the graph's table, or nil if it has none.
	row *Row
}

// Error returns the codes, for logs.
func (e *Error) Error() string {
	return fmt.Sprintf("HTTP status %d with code %d, subcode %d, transient %t", e.Status, e.Code, e.Subcode, e.Transient)
}

// Name returns the name that the error is looked up by: its code, its subcode if any, and its word if any. It is empty
// for an error without a code.
func (e *Error) Name() string {
	name := ""
	switch {
	case e.Subcode != 0 && e.Code != 0:
		name = fmt.Sprintf("%d/%d", e.Code, e.Subcode)
	case e.Subcode != 0:
		name = strconv.Itoa(e.Subcode)
	case e.Code != 0:
		name = strconv.Itoa(e.Code)
	}
	return strings.TrimSpace(name + " " + e.Word)
}

// Parse parses an unsuccessful response. If it came from a proxy in front of the graph, only the status is known.
func (t Table) Parse(resp *transport.Response) *Error {
	answer, _ := jsondoc.Decode[struct {
		Error struct {
			Code        jsondoc.Text `json:"code"`
			Subcode     jsondoc.Text `json:"error_subcode"`
			Transient   jsondoc.Flag `json:"is_transient"`
			Message     jsondoc.Text `json:"message"`
			UserMessage jsondoc.Text `json:"error_user_msg"`
		} `json:"error"`
	}](resp.Body)
	e := &Error{Status: resp.Status, Code: answer.Error.Code.Int(), Subcode: answer.Error.Subcode.Int(), Transient: bool(answer.Error.Transient)}
	texts := answer.Error.Message.String() + " " + answer.Error.UserMessage.String()
	switch {
	case e.Code == codeBlockedApp && appBlocked.MatchString(texts):
		e.Word = wordBlockedApp
	case e.Code != 0:
		e.Word = threadsWord.FindString(texts)
	}
	e.row = t.find(e)
	return e
}

// wordBlockedApp is Herald's name for errors that match appBlocked.
const wordBlockedApp = "API access blocked"

// appBlocked detects a blocked app among the permission errors of code 200: "API access blocked." and "API access
// deactivated. To reactivate, go to the app dashboard." Apart from the message, the response is the same as for an
// account that lacks the permission (incident of 2 September 2026: all connections of one app were refused at once).
var appBlocked = regexp.MustCompile(`(?i)\bAPI access (?:is )?(?:blocked|deactivated|disabled)\b`)

// threadsWord matches the names that Threads gives to some of its errors, such as THREADS_API__LINK_LIMIT_EXCEEDED
// (Threads API changelog, 22 December 2025).
var threadsWord = regexp.MustCompile(`\bTHREADS_API__[A-Z_]{1,64}\b`)

// Missing reports whether the object in the call's path does not exist or is not visible to this token: "Object with ID
// … does not exist, cannot be loaded due to missing permissions, or does not support this operation".
func (e *Error) Missing() bool { return e.Code == codeInvalid && e.Subcode == subcodeMissing }

// IsUnlisted reports whether the graph's table has no row for the error.
func (e *Error) IsUnlisted() bool { return e.row == nil && e.Name() != "" }

// Refusal reports whether the graph certainly did not execute the call: the response has a documented status and a
// graph error, and the error is about the request rather than an outage.
func (e *Error) Refusal() bool {
	switch e.Status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return e.Code != 0 && e.Kind() != KindUnavailable
	default:
		return false
	}
}

// Kind is the meaning of an error.
type Kind string

const (
	// KindOther means any other refusal. Its code does not identify the cause.
	KindOther Kind = "other"
	// KindContent means the content violates the rules.
	KindContent Kind = "content"
	// KindText means the text is at fault.
	KindText Kind = "text"
	// KindFile means a file is at fault.
	KindFile Kind = "file"
	// KindMedia means the graph failed to process a file that may be valid.
	KindMedia Kind = "media"
	// KindLost means the graph no longer has the uploaded or prepared content.
	KindLost Kind = "lost"
	// KindNotReady means the prepared content is not ready yet.
	KindNotReady Kind = "not ready"
	// KindToken means the token is invalid. No graph renews an invalid token.
	KindToken Kind = "token"
	// KindPermission means a permission is missing.
	KindPermission Kind = "permission"
	// KindApp means the app is blocked, and with it all of its accounts.
	KindApp Kind = "app"
	// KindPerson means the account is restricted until its owner takes action on the platform.
	KindPerson Kind = "person"
	// KindLimit means too many calls.
	KindLimit Kind = "limit"
	// KindBlocked means that the account is temporarily blocked from posting, because of the content or frequency of
	// its posts.
	KindBlocked Kind = "blocked"
	// KindQuota means the quota of posts in 24 hours is used up.
	KindQuota Kind = "quota"
	// KindDuplicate means the same content was posted recently.
	KindDuplicate Kind = "duplicate"
	// KindUnavailable means the graph has an outage.
	KindUnavailable Kind = "unavailable"
	// KindNonsense means the response is not a graph error.
	KindNonsense Kind = "nonsense"
)

// OfRequest reports whether errors of this kind are about the request itself, and not about the account, its token or
// an outage.
func (k Kind) OfRequest() bool {
	switch k {
	case KindOther, KindContent, KindText, KindFile, KindMedia, KindLost, KindNotReady:
		return true
	case KindToken, KindPermission, KindApp, KindPerson, KindLimit, KindBlocked, KindQuota, KindDuplicate, KindUnavailable, KindNonsense:
	}
	return false
}

// prevails reports whether errors of this kind are refusals even if the graph flags them as transient.
func (k Kind) prevails() bool {
	switch k {
	case KindContent, KindPerson, KindBlocked, KindQuota, KindDuplicate, KindToken, KindLimit:
		return true
	case KindOther, KindText, KindFile, KindMedia, KindLost, KindNotReady, KindPermission, KindApp, KindUnavailable, KindNonsense:
	}
	return false
}

const (
	codeInvalid          = 100
	codeBlockedApp       = 200
	codeAppLimit         = 4
	codeApplicationLimit = 341

	subcodeMissing = 33
)

// unavailableCodes are the codes for outages of the graph, regardless of the subcode.
var unavailableCodes = []int{-2, -1, 1, 2}

// Kind returns the error's kind: that of its row, unless the graph reports an outage.
func (e *Error) Kind() Kind {
	switch {
	case e.row != nil && e.row.Kind.prevails():
		return e.row.Kind
	case e.Status == http.StatusTooManyRequests:
		return KindLimit
	case e.Transient, e.Status >= http.StatusInternalServerError, slices.Contains(unavailableCodes, e.Code):
		return KindUnavailable
	case e.row != nil:
		return e.row.Kind
	case e.Name() == "":
		return KindNonsense
	default:
		return KindOther
	}
}

// isAppWide reports whether an error is a rate limit or a block of the app, and therefore applies to all of its
// accounts. The code alone is not enough: 4/2207051 is about one account suspected of spam.
func (e *Error) isAppWide() bool {
	kind := e.Kind()
	return kind == KindApp || kind == KindLimit && (e.Code == codeAppLimit || e.Code == codeApplicationLimit)
}
