// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"time"
)

// Class is the kind of an error, by the reaction that it needs.
type Class string

// The classes of errors.
const (
	// ClassReconnect: the token is invalid or a permission is missing; a person must connect the account again.
	ClassReconnect Class = "reconnect"
	// ClassRefresh: the access token has expired; renew it and call again.
	ClassRefresh Class = "refresh"
	// ClassRateLimited: too many calls; wait until RetryAt.
	ClassRateLimited Class = "rateLimited"
	// ClassQuota: a daily or rolling quota is used up; wait for hours.
	ClassQuota Class = "quota"
	// ClassRestricted: the platform blocks posting until the account's owner acts there, for example on a locked or
	// suspended account. A new token does not help, and only the next call shows whether the restriction has ended.
	ClassRestricted Class = "restricted"
	// ClassTransient: the platform has an outage or a temporary error; try again later.
	ClassTransient Class = "transient"
	// ClassPermanent: the platform refuses the content or the request; never repeat it unchanged.
	ClassPermanent Class = "permanent"
	// ClassDuplicate: the platform reports that it already has this content, so an earlier call may have taken effect.
	ClassDuplicate Class = "duplicate"
	// ClassUnknown: the answer was lost or is malformed.
	ClassUnknown Class = "unknown"
)

// Subject is the cause of an error.
type Subject string

// The subjects of errors. An error has a subject only if the platform's code identifies one; otherwise it is empty.
const (
	SubjectText         Subject = "text"
	SubjectFile         Subject = "file"
	SubjectAccount      Subject = "account"
	SubjectApp          Subject = "app"
	SubjectInstallation Subject = "installation"
)

// Error is a failure reported by a platform or by the connection to it. Its texts are written for users, are identical
// for repeated calls, and contain no secret. They do not describe Herald's reaction: it follows from the class, and is
// part of the status of the post or the connection.
type Error struct {
	Class Class
	// Problem describes the failure.
	Problem string
	// Remedy is the user's fix; empty if there is none.
	Remedy string
	// Subject is the cause, if the platform's code identifies one.
	Subject Subject
	// Code is the platform's name of the error, such as "190/463" or "spam_risk_too_many_posts"; empty if the answer
	// had none.
	Code string
	// Unlisted is set if the platform's table of errors has no row for Code.
	Unlisted bool
	// RetryAt is the time of the next try, if the platform gave one.
	RetryAt time.Time
	// AppWide reports, with ClassRateLimited and ClassQuota, whether the limit applies to the token's app: until
	// RetryAt, no account can then be used with the app.
	AppWide bool
	// PostOnly reports, with ClassQuota, whether only posts of this kind are blocked, for example drafts when the inbox
	// is full. Other posts of the account may then be sent.
	PostOnly bool
	// Err is the cause, for logs; may be nil.
	Err error
}

// Error returns the problem and its remedy.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Problem
	}
	return e.Problem + "; " + e.Remedy
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error with a class and a problem, without a remedy.
func Errorf(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Problem: fmt.Sprintf(format, args...)}
}

// Advise sets the remedy and returns the error.
func (e *Error) Advise(remedy string) *Error {
	e.Remedy = remedy
	return e
}

// Because sets the cause and returns the error.
func (e *Error) Because(cause error) *Error {
	e.Err = cause
	return e
}
