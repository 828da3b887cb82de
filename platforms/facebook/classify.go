// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"errors"
	"fmt"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// What people are told. None of it changes from one call to the next.
const (
	msgToken      = "Facebook no longer accepts the Page's access token: access was withdrawn, or the password or the role of the person who connected it has changed; connect the Page again"
	msgPermission = "Facebook refuses Herald's access to this Page, because a permission or the task of creating content is missing; connect the Page again and allow posting"
	msgPerson     = "Facebook asks the Page's owner to confirm something first; open Facebook, do what it asks for, and then post again"
	msgLimit      = "Facebook limits how often this Page may be used, and the limit is reached; Herald tries again when Facebook allows it"
	msgBlocked    = "Facebook keeps this Page from posting for a while, because of what or how often it posted; wait, or post less"
	msgQuota      = "this Page has reached Facebook's limit of posts for 24 hours; wait, or post less"
	msgDuplicate  = "Facebook refused the post as a repetition of the Page's latest one; if there is none, change the text"
	msgBusy       = "Facebook has trouble and did not do what it was asked; try again later"
	msgRefused    = "Facebook refused the post (error %s): it may be too long, hold an address that Facebook does not allow, or break another of its rules; change the text"
	msgNonsense   = "Facebook gave an answer that Herald does not understand (HTTP status %d)"
	msgNotSent    = "Facebook could not be reached; check the network between Herald and Facebook"
	msgLost       = "the connection to Facebook broke before the answer came"
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

// classOf is the table of Facebook's errors.
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
