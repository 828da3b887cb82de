// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

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
	// Transient is what the graph says itself: the same call may succeed
	// later.
	Transient bool
	// AppBlocked says that the graph takes no calls of the app, whatever the
	// account.
	AppBlocked bool
}

// Error names the codes, for logs.
func (e *Error) Error() string {
	return fmt.Sprintf("HTTP status %d with code %d, subcode %d, transient %t", e.Status, e.Code, e.Subcode, e.Transient)
}

// Name is how people can look the error up: its code, and its subcode if there
// is one.
func (e *Error) Name() string {
	if e.Subcode == 0 {
		return fmt.Sprint(e.Code)
	}
	return fmt.Sprintf("%d/%d", e.Code, e.Subcode)
}

// ParseError reads an answer that is not a success. If something between the
// graph and us answered, only the status is known.
func ParseError(resp *transport.Response) *Error {
	said, _ := jsondoc.Decode[struct {
		Error struct {
			Code      jsondoc.Text `json:"code"`
			Subcode   jsondoc.Text `json:"error_subcode"`
			Transient jsondoc.Flag `json:"is_transient"`
			Message   jsondoc.Text `json:"message"`
		} `json:"error"`
	}](resp.Body)
	e := &Error{Status: resp.Status, Code: said.Error.Code.Int(), Subcode: said.Error.Subcode.Int(), Transient: bool(said.Error.Transient)}
	e.AppBlocked = e.Code == codeBlockedApp && appBlocked.MatchString(said.Error.Message.String())
	return e
}

// appBlocked finds a blocked app among the permissions that code 200 is about:
// "API access blocked." and "API access deactivated. To reactivate, go to the app
// dashboard." No other part of such an answer differs from that of an account
// without the permission (incident of 2 September 2026, in which all connections
// of one app were refused at once).
var appBlocked = regexp.MustCompile(`(?i)\bAPI access (?:is )?(?:blocked|deactivated|disabled)\b`)

// Missing reports whether the graph does not know what the call's path names, or
// does not show it to this token: "Object with ID … does not exist, cannot be loaded
// due to missing permissions, or does not support this operation".
func (e *Error) Missing() bool { return e.Code == codeInvalid && e.Subcode == subcodeMissing }

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
	// KindOther: any other refusal. It is about the request itself.
	KindOther Kind = "other"
	// KindToken: the token is dead. No graph renews a dead token.
	KindToken Kind = "token"
	// KindPermission: a permission is missing.
	KindPermission Kind = "permission"
	// KindApp: the app is blocked, and with it every account.
	KindApp Kind = "app"
	// KindPerson: the account or the app is restricted until its owner does
	// something on the platform.
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

// The codes, as Meta's pages "Handling Errors" and "Error Codes" list them, and
// some that only clients have seen.
var (
	tokenCodes       = []int{102, 104, 190}
	permissionCodes  = []int{3, 10}
	limitCodes       = []int{4, 17, 32, 341, 613}
	unavailableCodes = []int{-2, -1, 1, 2}

	contentSubcodes     = []int{1346003, 1404102}
	personSubcodes      = []int{1404006, 1404078, 1404112, 2207050, 4279013, 4854002}
	blockedSubcodes     = []int{1390008, 2207051}
	duplicateSubcodes   = []int{1366051}
	unavailableSubcodes = []int{1363047, 1609010}
)

const (
	codeQuota      = 9
	codeInvalid    = 100
	codeBlockedApp = 200
	codeBlocked    = 368
	codeDuplicate  = 506

	subcodeMissing = 33
)

// Kind says what the error means. The subcode is the more exact word.
func (e *Error) Kind() Kind {
	switch {
	case slices.Contains(contentSubcodes, e.Subcode):
		return KindOther
	case slices.Contains(personSubcodes, e.Subcode):
		return KindPerson
	case slices.Contains(blockedSubcodes, e.Subcode), e.Code == codeBlocked:
		return KindBlocked
	case e.Code == codeQuota:
		return KindQuota
	case slices.Contains(duplicateSubcodes, e.Subcode), e.Code == codeDuplicate:
		return KindDuplicate
	case slices.Contains(unavailableSubcodes, e.Subcode):
		return KindUnavailable
	case slices.Contains(tokenCodes, e.Code):
		return KindToken
	case slices.Contains(limitCodes, e.Code), businessLimit(e.Code), e.Status == http.StatusTooManyRequests:
		// A limit is a refusal, also where it is called transient.
		return KindLimit
	case e.Transient, e.Status >= http.StatusInternalServerError, slices.Contains(unavailableCodes, e.Code):
		return KindUnavailable
	case e.AppBlocked:
		return KindApp
	case slices.Contains(permissionCodes, e.Code), permission(e.Code):
		return KindPermission
	case e.Code == 0:
		return KindNonsense
	default:
		return KindOther
	}
}

// businessLimit reports whether a code is one of the limits of a business use
// case.
func businessLimit(code int) bool { return code >= 80000 && code <= 80014 }

// permission reports whether a code names a missing permission: Meta keeps 200
// to 299 for them.
func permission(code int) bool { return code >= 200 && code <= 299 }
