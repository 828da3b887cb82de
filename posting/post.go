// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package posting is the pure heart of Herald: how a post stands, when it is
// due, how it reads in a list. It does no I/O and reads no clock. Its folders
// hold the rules that a post must pass, the write-ahead record of its delivery,
// and the decisions that follow from it.
package posting

import (
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// titleLength is how many code points of a caption make a title
// (spec: "the first 30 characters of the caption").
const titleLength = 30

// Target returns the status of target i, or nil while it has none.
func Target(post *v1alpha1.Post, i int) *v1alpha1.TargetStatus {
	for n := range post.Status.Targets {
		if int(post.Status.Targets[n].Index) == i {
			return &post.Status.Targets[n]
		}
	}
	return nil
}

// Unfinished reports whether a post in this phase is still to be delivered, as far as its
// people and the platforms let it.
func Unfinished(phase v1alpha1.PostPhase) bool {
	return phase == v1alpha1.PhaseDraft || phase == v1alpha1.PhaseScheduled || phase == v1alpha1.PhaseProcessing
}

// Started reports whether a call to a platform was ever claimed for the post.
// From then on its spec is frozen.
func Started(post *v1alpha1.Post) bool {
	for i := range post.Status.Targets {
		if post.Status.Targets[i].Attempt != nil {
			return true
		}
	}
	return false
}

// Cancelled reports whether a post is cancelled, by its spec or by an earlier one. A later spec
// does not take a cancel back: a tool may apply a file from before it.
func Cancelled(post *v1alpha1.Post) bool {
	return post.Spec.Cancelled || post.Status.CancelledAt != nil
}

// StateOf returns what is settled of a target. A version of Herald that did not
// record states kept this in phase and reason; they are read here alone, and
// only of an entry without a state. The manager records the state with the next
// write of the post; a finished post keeps its entries as they are.
func StateOf(t *v1alpha1.TargetStatus) v1alpha1.TargetState {
	switch {
	case t.State != "":
		return t.State
	case t.Phase == v1alpha1.PhasePosted:
		return v1alpha1.TargetPosted
	case t.Phase == v1alpha1.PhaseFailed && t.Reason == v1alpha1.ReasonOutcomeUnknown:
		return v1alpha1.TargetUndecided
	case t.Phase == v1alpha1.PhaseFailed:
		return v1alpha1.TargetFailed
	case t.Phase == v1alpha1.PhaseCancelled:
		return v1alpha1.TargetWithdrawn
	default:
		return v1alpha1.TargetPending
	}
}

// Settled reports whether target i is posted or has failed. An undecided target
// has failed, until a person says what became of it.
func Settled(post *v1alpha1.Post, i int) bool {
	t := Target(post, i)
	if t == nil {
		return false
	}
	state := StateOf(t)
	return state == v1alpha1.TargetPosted || state == v1alpha1.TargetFailed || state == v1alpha1.TargetUndecided
}

// AllSettled reports whether every target is.
func AllSettled(post *v1alpha1.Post) bool {
	for i := range post.Spec.Targets {
		if !Settled(post, i) {
			return false
		}
	}
	return true
}

// Waits reports whether the post is due and what it waits for is recorded.
func Waits(post *v1alpha1.Post) bool {
	for i := range post.Spec.Targets {
		if t := Target(post, i); t != nil && t.TryUntil != nil {
			return !post.Spec.Draft
		}
	}
	return false
}

// PhaseOf derives the phase of a post from its spec and its recorded facts.
func PhaseOf(post *v1alpha1.Post) v1alpha1.PostPhase {
	if withdrawnForGood(post) {
		return v1alpha1.PhaseCancelled
	}
	if !AllSettled(post) {
		return unsettledPhase(post)
	}
	for i := range post.Spec.Targets {
		if settledPhase(Target(post, i)) == v1alpha1.PhaseFailed {
			return v1alpha1.PhaseFailed
		}
	}
	return v1alpha1.PhasePosted
}

// withdrawnForGood reports whether the cancel of a post is recorded, and no target of it is published or may be. Another
// spec, such as one with fewer targets, does not change that.
func withdrawnForGood(post *v1alpha1.Post) bool {
	return post.Status.CancelledAt != nil && !Started(post) && !slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool {
		state := StateOf(&t)
		return state == v1alpha1.TargetPosted || state == v1alpha1.TargetUndecided
	})
}

// settledPhase is the phase of a settled target.
func settledPhase(t *v1alpha1.TargetStatus) v1alpha1.PostPhase {
	if StateOf(t) == v1alpha1.TargetPosted {
		return v1alpha1.PhasePosted
	}
	return v1alpha1.PhaseFailed
}

// unsettledPhase is the phase of a post, or of one of its targets, while
// delivery is not settled.
func unsettledPhase(post *v1alpha1.Post) v1alpha1.PostPhase {
	switch {
	case Started(post):
		return v1alpha1.PhaseProcessing
	case Cancelled(post):
		return v1alpha1.PhaseCancelled
	case post.Spec.Draft:
		return v1alpha1.PhaseDraft
	case post.Spec.ScheduledAt != nil && !Waits(post):
		return v1alpha1.PhaseScheduled
	default:
		return v1alpha1.PhaseProcessing
	}
}

// TargetPhaseOf derives the phase of target i.
func TargetPhaseOf(post *v1alpha1.Post, i int) v1alpha1.PostPhase {
	if Settled(post, i) {
		return settledPhase(Target(post, i))
	}
	return unsettledPhase(post)
}

// Cancellable reports whether clients may withdraw a post: a draft, or a scheduled
// post of which neither a claim nor what it waits for is recorded yet.
func Cancellable(post *v1alpha1.Post) bool {
	phase := PhaseOf(post)
	return phase == v1alpha1.PhaseDraft || phase == v1alpha1.PhaseScheduled
}

// CanCancel is what clients are told about cancelling: true for a draft, and for
// a post scheduled for a time in the future, while it is Cancellable. A post
// whose time has come is about to be claimed: it is too late to promise that.
func CanCancel(post *v1alpha1.Post, now time.Time) bool {
	return Cancellable(post) && (post.Spec.Draft || post.Spec.ScheduledAt.After(now))
}

// DisplayAt is the time under which a post is listed: when it was posted, else
// when it is scheduled, else when it was created.
func DisplayAt(post *v1alpha1.Post) time.Time {
	var posted time.Time
	for i := range post.Status.Targets {
		at := post.Status.Targets[i].PostedAt
		if at != nil && (posted.IsZero() || at.Before(posted)) {
			posted = at.Time
		}
	}
	switch {
	case !posted.IsZero():
		return posted
	case post.Spec.ScheduledAt != nil:
		return post.Spec.ScheduledAt.Time
	default:
		return Created(post)
	}
}

// Created is when a post was created, to the millisecond where the apiserver
// noted it: Kubernetes keeps seconds only. A note that is further from the
// object's own time than clocks differ is not believed, for anyone who applies a
// post can write it. A post that Kubernetes has not seen yet has the note only.
func Created(post *v1alpha1.Post) time.Time {
	created := post.CreationTimestamp.Time
	noted, ok := born(post)
	if ok && (created.IsZero() || created.Sub(noted).Abs() <= clockMargin) {
		return noted
	}
	return created
}

// Title is how a post is called in a list: the title of its first YouTube
// target that has one, or else the first 30 code points of its first caption, or
// card, that is not empty. platformOf tells the platform of a target.
func Title(post *v1alpha1.Post, platformOf func(target int) v1alpha1.Platform) string {
	spec := &post.Spec
	for i := range spec.Targets {
		if options := spec.Targets[i].YouTube; options != nil && options.Title != "" && platformOf(i) == v1alpha1.PlatformYouTube {
			return options.Title
		}
	}
	for i := range spec.Targets {
		if caption := spec.Targets[i].Caption; caption != "" {
			return firstCodePoints(caption, titleLength)
		}
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			if caption := spec.Tree.Cards[i].Caption; caption != "" {
				return firstCodePoints(caption, titleLength)
			}
		}
	}
	return ""
}

func firstCodePoints(s string, n int) string {
	for at := range s {
		if n == 0 {
			return s[:at]
		}
		n--
	}
	return s
}

// Cards is how many cards are published one after another for each target of a
// post: those of a tree; 0 for anything else.
func Cards(spec *v1alpha1.PostSpec) int {
	if spec.Category != v1alpha1.CategoryTree || spec.Tree == nil {
		return 0
	}
	return len(spec.Tree.Cards)
}

// MediaNames lists the media files that a post refers to, each once, in order.
func MediaNames(spec *v1alpha1.PostSpec) (names []string) {
	seen := map[string]bool{}
	add := func(refs ...v1alpha1.LocalReference) {
		for _, ref := range refs {
			if !seen[ref.Name] {
				seen[ref.Name] = true
				names = append(names, ref.Name)
			}
		}
	}
	if spec.Image != nil {
		add(spec.Image.MediaRefs...)
	}
	if spec.Video != nil {
		add(spec.Video.MediaRef)
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			add(spec.Tree.Cards[i].MediaRefs...)
		}
	}
	return names
}

// TextToSend is what is sent of a caption. Blanks alone beside files are no text:
// each platform takes files without one, and none says what blanks are to it.
func TextToSend(caption string, besideFiles bool) string {
	if besideFiles && strings.TrimSpace(caption) == "" {
		return ""
	}
	return caption
}
