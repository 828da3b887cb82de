// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"errors"
	"fmt"

	"github.com/herald-social/herald/internal/graph"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
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
func (p *Platform) classify(resp *transport.Response) (*platforms.Error, *graph.Error) {
	said := graph.ParseError(resp)
	class, message := classOf(said)
	return &platforms.Error{
		Class: class, Message: message, Err: said,
		RetryAt: graph.RetryAt(resp.Header, said.Kind(), p.config.Clock.Now()), AppWide: said.AppWide(),
	}, said
}

// classOf is the table of the errors of Threads.
func classOf(said *graph.Error) (platforms.Class, string) {
	switch said.Kind() {
	case graph.KindToken:
		return platforms.ClassReconnect, msgToken
	case graph.KindPermission:
		return platforms.ClassReconnect, msgPermission
	case graph.KindPerson:
		return platforms.ClassPermanent, msgPerson
	case graph.KindLimit:
		return platforms.ClassRateLimited, msgLimit
	case graph.KindBlocked:
		return platforms.ClassQuota, msgBlocked
	case graph.KindQuota:
		return platforms.ClassQuota, msgQuota
	case graph.KindDuplicate:
		return platforms.ClassDuplicate, msgDuplicate
	case graph.KindUnavailable:
		return platforms.ClassTransient, msgBusy
	case graph.KindOther:
		return platforms.ClassPermanent, fmt.Sprintf(msgRefused, said.Name())
	case graph.KindNonsense:
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
	return &platforms.Error{Class: platforms.ClassTransient, Message: message, Err: err}
}

// notSent tells whether nothing of a request can have left.
func notSent(err error) bool {
	failure, ok := errors.AsType[*transport.Error](err)
	return ok && !failure.Sent
}
