// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reason classifies the errors of this package by the reaction that they call for.
type Reason string

// The reasons.
const (
	// NotFound: the Secret does not exist (yet).
	NotFound Reason = "NotFound"
	// Invalid: a user must correct the Secret.
	Invalid Reason = "Invalid"
	// Conflict: the Secret was changed after it was read.
	Conflict Reason = "Conflict"
	// Unavailable: the Kubernetes API did not read or write the Secret. Retry.
	Unavailable Reason = "Unavailable"
	// Unverified: the platform has not confirmed that the current tokens belong to the account; the manager will ask.
	Unverified Reason = "Unverified"
)

// Error describes a problem with a Connection's credentials. Its message does not contain data from the Secret.
type Error struct {
	Reason Reason
	// Key is the Secret key at fault. It is set with Invalid.
	Key string
	// Message gives the problem, its location and the remedy.
	Message string
	// Err is the cause. It may be nil.
	Err error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an error from this package, Unavailable for any other error, and "" for nil.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Unavailable
}

func invalid(secret *corev1.Secret, key, problem string) *Error {
	return &Error{Reason: Invalid, Key: key, Message: fmt.Sprintf("key %q of Secret %q %s", key, secret.Name, problem)}
}

func unverified(name string) *Error {
	return &Error{Reason: Unverified, Message: fmt.Sprintf(
		"those in Secret %q have changed and have not been checked yet; Herald checks them with the platform and reports the result in the connection's status", name)}
}

func fromAPI(err error, name, verb string) *Error {
	e := &Error{Reason: Unavailable, Err: err}
	switch {
	case apierrors.IsNotFound(err):
		e.Reason = NotFound
		e.Message = fmt.Sprintf("Secret %q does not exist; create it with the account's tokens, or connect the account again", name)
	case apierrors.IsConflict(err):
		e.Reason = Conflict
		e.Message = fmt.Sprintf("Secret %q was changed by another client at the same time", name)
	case apierrors.IsForbidden(err):
		e.Message = fmt.Sprintf("Herald has no permission to %s Secret %q; check that a Team owns this namespace and is ready", verb, name)
	case apierrors.IsInvalid(err):
		e.Reason = Invalid
		e.Message = fmt.Sprintf("Secret %q cannot store the tokens; delete it, and Herald creates it again", name)
	default:
		e.Message = fmt.Sprintf("Herald could not %s Secret %q, because of an error of the Kubernetes API; it retries", verb, name)
	}
	return e
}
