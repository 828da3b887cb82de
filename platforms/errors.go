// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"time"
)

// Class says what an error of a platform asks for.
type Class string

// The classes of errors.
const (
	// ClassReconnect: the token is dead or a permission is missing; a person
	// must connect the account again.
	ClassReconnect Class = "reconnect"
	// ClassRefresh: the access token has ended; renew it and call again.
	ClassRefresh Class = "refresh"
	// ClassRateLimited: too many calls; wait until RetryAt.
	ClassRateLimited Class = "rateLimited"
	// ClassQuota: a daily or rolling cap is used up; wait for hours.
	ClassQuota Class = "quota"
	// ClassRestricted: the platform keeps the account from posting until its
	// owner acts there, as with a locked or suspended account. A new token does
	// not help, and nothing but the next call tells when the restriction ends.
	ClassRestricted Class = "restricted"
	// ClassTransient: the platform has trouble; try again later.
	ClassTransient Class = "transient"
	// ClassPermanent: the content or the request is refused; never repeat it
	// unchanged.
	ClassPermanent Class = "permanent"
	// ClassDuplicate: the platform says that it already has this content, so
	// an earlier call may have taken effect.
	ClassDuplicate Class = "duplicate"
	// ClassUnknown: the answer was lost or makes no sense.
	ClassUnknown Class = "unknown"
)

// Subject names what an error is about.
type Subject string

// The subjects of errors. An error has one only if the platform's code names
// it; the zero value means that the code does not.
const (
	SubjectText         Subject = "text"
	SubjectFile         Subject = "file"
	SubjectAccount      Subject = "account"
	SubjectApp          Subject = "app"
	SubjectInstallation Subject = "installation"
)

// Error is what a platform, or the way to it, answered instead of a success.
// Its words are meant for people, are stable from one call to the next, and
// hold no secret. They do not say what Herald does next: that follows from the
// class, and is told where the state of a post or a connection is described.
type Error struct {
	Class Class
	// Problem says what is wrong.
	Problem string
	// Remedy says what a person can do about it; empty if nothing.
	Remedy string
	// Subject is what the error is about, if the platform's code says so.
	Subject Subject
	// Code is the platform's own name of the error, such as "190/463" or
	// "spam_risk_too_many_posts"; empty if the answer had none.
	Code string
	// Unlisted is set if the platform's table of errors has no row for Code.
	Unlisted bool
	// RetryAt is when to try again, where the platform said so.
	RetryAt time.Time
	// AppWide says, with ClassRateLimited and ClassQuota, that the limit is one
	// of the app that the token is of: until RetryAt no account can be used by it.
	AppWide bool
	// PostOnly says, with ClassQuota, that posts like this one alone are stopped,
	// as drafts are by an inbox that is full: others of the account may go out.
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

// Errorf makes an Error of a class whose problem is given; it has no remedy.
func Errorf(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Problem: fmt.Sprintf(format, args...)}
}

// Advise adds what a person can do about the error, and returns it.
func (e *Error) Advise(remedy string) *Error {
	e.Remedy = remedy
	return e
}

// Because adds the cause of the error, and returns it.
func (e *Error) Because(cause error) *Error {
	e.Err = cause
	return e
}
