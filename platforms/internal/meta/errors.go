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

// Error is what a graph says is wrong, in the object "error" of its answer.
// Its texts are not kept: they are written for developers, and some change
// from one call to the next.
type Error struct {
	// Status is the HTTP status of the answer.
	Status int
	// Code and Subcode name the error; zero where the graph gives none.
	Code, Subcode int
	// Word is a name that the graph gives within its texts; usually empty.
	Word string
	// Transient is what the graph says itself: the same call may succeed
	// later.
	Transient bool

	// row is the error's row of the graph's table; nil if it has none.
	row *Row
}

// Error names the codes, for logs.
func (e *Error) Error() string {
	return fmt.Sprintf("HTTP status %d with code %d, subcode %d, transient %t", e.Status, e.Code, e.Subcode, e.Transient)
}

// Name is how people can look the error up: its code, its subcode if there is one,
// and its word if there is one. It is empty for what has no code.
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

// Parse reads an answer that is not a success. If something between the graph and
// us answered, only the status is known.
func (t Table) Parse(resp *transport.Response) *Error {
	said, _ := jsondoc.Decode[struct {
		Error struct {
			Code        jsondoc.Text `json:"code"`
			Subcode     jsondoc.Text `json:"error_subcode"`
			Transient   jsondoc.Flag `json:"is_transient"`
			Message     jsondoc.Text `json:"message"`
			UserMessage jsondoc.Text `json:"error_user_msg"`
		} `json:"error"`
	}](resp.Body)
	e := &Error{Status: resp.Status, Code: said.Error.Code.Int(), Subcode: said.Error.Subcode.Int(), Transient: bool(said.Error.Transient)}
	texts := said.Error.Message.String() + " " + said.Error.UserMessage.String()
	switch {
	case e.Code == codeBlockedApp && appBlocked.MatchString(texts):
		e.Word = wordBlockedApp
	case e.Code != 0:
		e.Word = threadsWord.FindString(texts)
	}
	e.row = t.find(e)
	return e
}

// wordBlockedApp is our name of what appBlocked finds.
const wordBlockedApp = "API access blocked"

// appBlocked finds a blocked app among the permissions that code 200 is about:
// "API access blocked." and "API access deactivated. To reactivate, go to the app
// dashboard." No other part of such an answer differs from that of an account
// without the permission (incident of 2 September 2026, in which all connections
// of one app were refused at once).
var appBlocked = regexp.MustCompile(`(?i)\bAPI access (?:is )?(?:blocked|deactivated|disabled)\b`)

// threadsWord finds the names that Threads gives some of its errors, such as
// THREADS_API__LINK_LIMIT_EXCEEDED (Threads API changelog, 22 December 2025).
var threadsWord = regexp.MustCompile(`\bTHREADS_API__[A-Z_]{1,64}\b`)

// Missing reports whether the graph does not know what the call's path names, or
// does not show it to this token: "Object with ID … does not exist, cannot be loaded
// due to missing permissions, or does not support this operation".
func (e *Error) Missing() bool { return e.Code == codeInvalid && e.Subcode == subcodeMissing }

// IsUnlisted reports whether the graph's table has no row for the error's code.
func (e *Error) IsUnlisted() bool { return e.row == nil && e.Name() != "" }

// Refusal reports whether the graph certainly did not do what it was asked: it
// answered, with a status that it documents, an error of its own that is about
// the request and not about its own trouble.
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

// Kind sorts errors by what they mean.
type Kind string

// The kinds of errors.
const (
	// KindOther: any other refusal. Its code does not tell what is at fault.
	KindOther Kind = "other"
	// KindContent: what the post says or shows is against the rules.
	KindContent Kind = "content"
	// KindText: the text is at fault.
	KindText Kind = "text"
	// KindFile: a file is at fault.
	KindFile Kind = "file"
	// KindMedia: the graph failed to take a file that may be good.
	KindMedia Kind = "media"
	// KindLost: the graph no longer has what was uploaded or prepared.
	KindLost Kind = "lost"
	// KindNotReady: the graph cannot use yet what was prepared.
	KindNotReady Kind = "not ready"
	// KindToken: the token is dead. No graph renews a dead token.
	KindToken Kind = "token"
	// KindPermission: a permission is missing.
	KindPermission Kind = "permission"
	// KindApp: the app is blocked, and with it every account.
	KindApp Kind = "app"
	// KindPerson: the account is restricted until its owner does something on the
	// platform.
	KindPerson Kind = "person"
	// KindLimit: too many calls.
	KindLimit Kind = "limit"
	// KindBlocked: the account is kept from posting for a while, for what it
	// posted or how often.
	KindBlocked Kind = "blocked"
	// KindQuota: as much was posted as may be within 24 hours.
	KindQuota Kind = "quota"
	// KindDuplicate: the same content was posted just before.
	KindDuplicate Kind = "duplicate"
	// KindUnavailable: the graph has trouble.
	KindUnavailable Kind = "unavailable"
	// KindNonsense: the answer is no error of a graph's.
	KindNonsense Kind = "nonsense"
)

// OfRequest reports whether errors of a kind are about the request itself, and not
// about the account, its token or the graph's own trouble.
func (k Kind) OfRequest() bool {
	switch k {
	case KindOther, KindContent, KindText, KindFile, KindMedia, KindLost, KindNotReady:
		return true
	case KindToken, KindPermission, KindApp, KindPerson, KindLimit, KindBlocked, KindQuota, KindDuplicate, KindUnavailable, KindNonsense:
	}
	return false
}

// prevails reports whether errors of a kind are refusals, also where the graph calls
// them transient.
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

// unavailableCodes are about the graph's own trouble, whatever the subcode.
var unavailableCodes = []int{-2, -1, 1, 2}

// Kind returns what the error means: the kind of its row, unless the graph says
// that it has trouble of its own.
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

// isAppWide reports whether an error is about a limit or a block of the app, and so
// of all accounts that it is connected to. The code alone does not tell: 4/2207051
// is about one account that is suspected of spam.
func (e *Error) isAppWide() bool {
	kind := e.Kind()
	return kind == KindApp || kind == KindLimit && (e.Code == codeAppLimit || e.Code == codeApplicationLimit)
}
