// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"time"
)

// Class groups errors by the reaction they call for.
type Class string

const (
	// ClassReconnect means the token is invalid or a permission is missing; a user must connect the account again.
	ClassReconnect Class = "reconnect"
	// ClassRefresh means the access token has expired; renew it and call again.
	ClassRefresh Class = "refresh"
	// ClassRateLimited means too many calls; wait until RetryAt.
	ClassRateLimited Class = "rateLimited"
	// ClassQuota means a daily or rolling quota is used up; wait several hours.
	ClassQuota Class = "quota"
	// ClassRestricted means the platform blocks posting until the account's owner takes action there, for example
	// because the account is locked or suspended. A new token does not help, and only the next call shows whether
	// the restriction has been lifted.
	ClassRestricted Class = "restricted"
	// ClassTransient means the platform has an outage or a temporary error; try again later.
	ClassTransient Class = "transient"
	// ClassPermanent means the platform refuses the content or the request; never repeat it unchanged.
	ClassPermanent Class = "permanent"
	// ClassDuplicate means the platform reports that it already has this content, so an earlier call may have taken effect.
	ClassDuplicate Class = "duplicate"
	// ClassUnknown means the response was lost or is malformed.
	ClassUnknown Class = "unknown"
)

// Subject is what caused an error.
type Subject string

// An error has a subject only if the platform's code identifies one.
const (
	SubjectText         Subject = "text"
	SubjectFile         Subject = "file"
	SubjectAccount      Subject = "account"
	SubjectApp          Subject = "app"
	SubjectInstallation Subject = "installation"
)

// Error is a failure reported by a platform or by the connection to it. Its messages are written for users, do not vary
// between calls, and do not contain secrets. They do not describe Herald's reaction, which follows from the class and
// appears in the status of the post or the connection.
type Error struct {
	Class Class
	// Problem describes the failure.
	Problem string
	// Remedy is what the user can do about it; may be empty.
	Remedy  string
	Subject Subject
	// Code is the platform's name for the error, such as "190/463" or "spam_risk_too_many_posts"; empty if the
	// response has none.
	Code string
	// Unlisted is set if the platform's error table has no row for Code.
	Unlisted bool
	// RetryAt is when to try again, if the platform returned a time.
	RetryAt time.Time
	// AppWide reports, for ClassRateLimited and ClassQuota, whether the limit applies to the token's app: until
	// RetryAt, the app cannot be used for any account.
	AppWide bool
	// PostOnly reports, for ClassQuota, whether only posts of this kind are blocked, such as drafts while the inbox is
	// full. The account's other posts may still be sent.
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

func (e *Error) Unwrap() error { return e.Err }

// NewError returns an Error for a platform's error table. The subject and the remedy may be empty.
func NewError(class Class, subject Subject, problem, remedy string) Error {
	return Error{Class: class, Subject: subject, Problem: problem, Remedy: remedy}
}

// Errorf returns an Error with the given class and problem, without a remedy.
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
