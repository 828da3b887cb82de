// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// What people are told. None of it changes from one call to the next.
const (
	msgToken      = "Instagram no longer accepts the access token: it has ended or was revoked; connect the account again"
	msgPermission = "Instagram refuses Herald's access to this account, because a permission is missing; connect the account again and allow publishing"
	msgPerson     = "Instagram has restricted this account; open Instagram, do what it asks for, and then post again"
	msgLimit      = "Instagram limits how often this account may be used, and the limit is reached; Herald tries again when Instagram allows it"
	msgBlocked    = "Instagram keeps this account from posting for a while, because it suspects spam; wait, or post less"
	msgQuota      = "this account has reached Instagram's limit of posts for 24 hours; wait, or post less"
	msgDuplicate  = "Instagram refused the post as a repetition of an earlier one of this account; if no earlier one exists, change it"
	msgBusy       = "Instagram has trouble and did not do what it was asked; try again later"
	msgRefused    = "Instagram refused %s (error %s); change it"
	msgNonsense   = "Instagram gave an answer that Herald does not understand (HTTP status %d)"
	msgNotSent    = "Instagram could not be reached; check the network between Herald and Instagram"
	msgLost       = "the connection to Instagram broke before the answer came"
)

// thePost and theFile are what an error is about, in messages.
const thePost = "the post"

func theFile(file *platforms.File) string { return fmt.Sprintf("the file %q", file.Name) }

// meaning is what a subcode asks for.
type meaning struct {
	class platforms.Class
	// again says that another container may mend it at once.
	again bool
	// message has a place for what it is about.
	message string
}

const (
	msgTooSlow    = "Instagram took too long to fetch %s from the media store; Herald tries again"
	msgNotFetched = "Instagram could not fetch %s from the media store; make the store's public address reachable from the internet, without a login"
	msgNotTaken   = "Instagram failed to take %s; Herald tries again"
	msgForgotten  = "Instagram no longer has what was prepared of %s; Herald prepares it again"
	msgWait       = "Instagram is not done with preparing %s; Herald tries again"
	msgVideo      = "Instagram refused %s: a reel is an MP4 or QuickTime film in H.264 or HEVC, 3 seconds to 15 minutes long, at most 1920 pixels wide, with 23 to 60 frames and at most 25 Mbit a second; change the video"
	msgThumbnail  = "Instagram refused %s: the moment of its thumbnail does not lie within the video; choose an earlier one"
	msgImageSize  = "Instagram refused %s: an image may have 8 MiB at most; make it smaller"
	msgImageType  = "Instagram refused %s: an image must be a JPEG; convert it"
	msgAspect     = "Instagram refused %s: an image must be between 4:5 and 1.91:1 in shape; crop it"
	msgCaption    = "Instagram refused the caption of %s: it is too long, or has too many hashtags or mentions; shorten it"
	msgCarousel   = "Instagram refused %s: a carousel shows 2 to 10 images"
	msgTags       = "Instagram refused the tags of %s; change them"
)

// meanings is the table of Instagram's subcodes (Graph API reference, "Error
// codes" of Content Publishing); those that two clients have seen and no page
// names are 2207077, 2207081 and 2207082. Those that a Kind tells stand there.
var meanings = map[int]meaning{
	2207001: {platforms.ClassTransient, true, msgNotTaken},
	2207003: {platforms.ClassTransient, true, msgTooSlow},
	2207004: {platforms.ClassPermanent, false, msgImageSize},
	2207005: {platforms.ClassPermanent, false, msgImageType},
	2207006: {platforms.ClassTransient, true, msgForgotten},
	2207008: {platforms.ClassTransient, false, msgWait},
	2207009: {platforms.ClassPermanent, false, msgAspect},
	2207010: {platforms.ClassPermanent, false, msgCaption},
	2207020: {platforms.ClassTransient, true, msgForgotten},
	2207026: {platforms.ClassPermanent, false, msgVideo},
	2207027: {platforms.ClassTransient, false, msgWait},
	2207028: {platforms.ClassPermanent, false, msgCarousel},
	2207032: {platforms.ClassTransient, true, msgNotTaken},
	2207035: {platforms.ClassPermanent, false, msgTags},
	2207036: {platforms.ClassPermanent, false, msgTags},
	2207037: {platforms.ClassPermanent, false, msgTags},
	2207040: {platforms.ClassPermanent, false, msgTags},
	2207052: {platforms.ClassPermanent, true, msgNotFetched},
	2207053: {platforms.ClassTransient, true, msgNotTaken},
	2207057: {platforms.ClassPermanent, false, msgThumbnail},
	2207077: {platforms.ClassTransient, true, msgNotTaken},
	2207082: {platforms.ClassTransient, true, msgNotTaken},
}

// classify reads an answer that is not a success, for what it asks for. about
// is what the call was about.
func (h *host) classify(resp *transport.Response, about string) *failure {
	said := meta.ParseError(resp)
	out := &failure{Error: &platforms.Error{Err: said, RetryAt: meta.RetryAt(resp.Header, said.Kind(), h.clock.Now()), AppWide: said.AppWide()}, said: said}
	if known, ok := meanings[said.Subcode]; ok && said.Status < http.StatusInternalServerError {
		out.Class, out.Problem, out.again = known.class, fmt.Sprintf(known.message, about), known.again
		return out
	}
	out.Class, out.Problem = classOf(said, about)
	return out
}

// classOf is the table of the errors that Meta's graphs share.
func classOf(said *meta.Error, about string) (platforms.Class, string) {
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
		return platforms.ClassPermanent, fmt.Sprintf(msgRefused, about, said.Name())
	case meta.KindNonsense:
		return platforms.ClassUnknown, fmt.Sprintf(msgNonsense, said.Status)
	default:
		return platforms.ClassUnknown, fmt.Sprintf(msgNonsense, said.Status)
	}
}

// codeParameter is the code under which refusals without one of their own are
// listed.
const codeParameter = 100

// subcodes are how the status of a container that failed names its error, in a
// sentence for people.
var subcodes = regexp.MustCompile(`\b22\d{5}\b`)

// ended says what became of a container that cannot be published: its state,
// and what its status tells of that.
func (h *host) ended(state meta.State, status, about string) *failure {
	if state != meta.StateError {
		out := because(platforms.ClassTransient, msgForgotten, about)
		out.again = true
		return out
	}
	word := subcodes.FindString(status)
	said := &meta.Error{Status: http.StatusBadRequest, Code: codeParameter}
	said.Subcode, _ = strconv.Atoi(word)
	if known, ok := meanings[said.Subcode]; ok {
		return &failure{Error: platforms.Errorf(known.class, known.message, about), said: said, again: known.again}
	}
	class, message := classOf(said, about)
	return &failure{
		Error: &platforms.Error{Class: class, Problem: message, Err: said, RetryAt: meta.RetryAt(nil, said.Kind(), h.clock.Now())},
		said:  said, again: class == platforms.ClassPermanent && said.Kind() == meta.KindOther,
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
