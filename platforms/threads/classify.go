// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"errors"
	"fmt"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// What people are told. None of it changes from one call to the next.
const (
	msgToken      = "Threads no longer accepts the access token: it has ended or was revoked; connect the account again"
	msgPermission = "Threads refuses Herald's access to this account, because a permission is missing; connect the account again and allow publishing"
	msgPerson     = "Threads has restricted this account; open Threads, do what it asks for, and then post again"
	msgLimit      = "Threads limits how often this account may be used, and the limit is reached; Herald tries again when Threads allows it"
	msgBlocked    = "Threads keeps this account from posting for a while, because it suspects spam; wait, or post less"
	msgQuota      = "this account has reached Threads' limit of posts for 24 hours; wait, or post less"
	msgDuplicate  = "Threads refused the post as a repetition of an earlier one of this account; if no earlier one exists, change the text"
	msgBusy       = "Threads has trouble and did not do what it was asked; try again later"
	msgRefused    = "Threads refused the post (error %s): it may be too long, hold too many addresses, or break another of Threads' rules; change the text"
	msgNonsense   = "Threads gave an answer that Herald does not understand (HTTP status %d)"
	msgNotSent    = "Threads could not be reached; check the network between Herald and Threads"
	msgLost       = "the connection to Threads broke before the answer came"
)

// classify reads an answer that is not a success, for what it asks for.
func (p *Platform) classify(resp *transport.Response) (*platforms.Error, *meta.Error) {
	said := meta.ParseError(resp)
	class, message := classOf(said)
	return &platforms.Error{
		Class: class, Problem: message, Err: said,
		RetryAt: meta.RetryAt(resp.Header, said.Kind(), p.config.Clock.Now()), AppWide: said.AppWide(),
	}, said
}

// classOf is the table of the errors of Threads.
func classOf(said *meta.Error) (platforms.Class, string) {
	switch said.Kind() {
	case meta.KindToken:
		return platforms.ClassReconnect, msgToken
	case meta.KindPermission:
		return platforms.ClassReconnect, msgPermission
	case meta.KindPerson:
		return platforms.ClassPermanent, msgPerson
	case meta.KindLimit:
		return platforms.ClassRateLimited, msgLimit
	case meta.KindBlocked:
		return platforms.ClassQuota, msgBlocked
	case meta.KindQuota:
		return platforms.ClassQuota, msgQuota
	case meta.KindDuplicate:
		return platforms.ClassDuplicate, msgDuplicate
	case meta.KindUnavailable:
		return platforms.ClassTransient, msgBusy
	case meta.KindOther:
		return platforms.ClassPermanent, fmt.Sprintf(msgRefused, said.Name())
	case meta.KindNonsense:
		return platforms.ClassUnknown, fmt.Sprintf(msgNonsense, said.Status)
	default:
		return platforms.ClassUnknown, fmt.Sprintf(msgNonsense, said.Status)
	}
}

// unanswered says what the absence of an answer means for a call that may be
// repeated.
func unanswered(err error) *platforms.Error {
	message := msgLost
	if notSent(err) {
		message = msgNotSent
	}
	return &platforms.Error{Class: platforms.ClassTransient, Problem: message, Err: err}
}

// notSent tells whether nothing of a request can have left.
func notSent(err error) bool {
	failure, ok := errors.AsType[*transport.Error](err)
	return ok && !failure.Sent
}
