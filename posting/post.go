// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package posting derives the state of a post: its phase, when it is due, and its fields in a list. It does no I/O and
// reads no clock. Its subpackages contain the validation rules, the write-ahead log of the delivery, and the decisions
// of the delivery.
package posting

import (
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// titleLength is the length of a title from a caption, in code points (spec: "the first 30 characters of the
// caption").
const titleLength = 30

// Target returns the status of target i, or nil if it has none.
func Target(post *v1alpha1.Post, i int) *v1alpha1.TargetStatus {
	for n := range post.Status.Targets {
		if int(post.Status.Targets[n].Index) == i {
			return &post.Status.Targets[n]
		}
	}
	return nil
}

// Unfinished reports whether a post in this phase is still to be delivered, unless its owner or a platform prevents
// it.
func Unfinished(phase v1alpha1.PostPhase) bool {
	return phase == v1alpha1.PhaseDraft || phase == v1alpha1.PhaseScheduled || phase == v1alpha1.PhaseProcessing
}

// Started reports whether a call to a platform was ever claimed for the post. From then on its spec is frozen.
func Started(post *v1alpha1.Post) bool {
	for i := range post.Status.Targets {
		if post.Status.Targets[i].Attempt != nil {
			return true
		}
	}
	return false
}

// Cancelled reports whether a post is cancelled, by its spec or by an earlier spec. A later spec does not revoke a
// cancel, because a tool may apply an old file.
func Cancelled(post *v1alpha1.Post) bool {
	return post.Spec.Cancelled || post.Status.CancelledAt != nil
}

// StateOf returns the state of a target. An earlier version of Herald recorded phase and reason instead of a state.
// Only StateOf reads them, and only for an entry without a state. The manager stores the state with the next write of
// the post; a finished post keeps its entries unchanged.
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

// Settled reports whether target i is posted or has failed. An undecided target counts as failed until a person
// resolves it.
func Settled(post *v1alpha1.Post, i int) bool {
	t := Target(post, i)
	if t == nil {
		return false
	}
	state := StateOf(t)
	return state == v1alpha1.TargetPosted || state == v1alpha1.TargetFailed || state == v1alpha1.TargetUndecided
}

// AllSettled reports whether every target is settled.
func AllSettled(post *v1alpha1.Post) bool {
	for i := range post.Spec.Targets {
		if !Settled(post, i) {
			return false
		}
	}
	return true
}

// Waits reports whether the post is due and the deadline of a target is recorded.
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

// withdrawnForGood reports whether the cancel of a post is recorded, and no target of it is published or may be.
// Another spec, such as one with fewer targets, does not change that.
func withdrawnForGood(post *v1alpha1.Post) bool {
	return post.Status.CancelledAt != nil && !Started(post) && !slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool {
		state := StateOf(&t)
		return state == v1alpha1.TargetPosted || state == v1alpha1.TargetUndecided
	})
}

// settledPhase returns the phase of a settled target.
func settledPhase(t *v1alpha1.TargetStatus) v1alpha1.PostPhase {
	if StateOf(t) == v1alpha1.TargetPosted {
		return v1alpha1.PhasePosted
	}
	return v1alpha1.PhaseFailed
}

// unsettledPhase returns the phase of a post, or of one of its targets, before it is settled.
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

// Cancellable reports whether clients may cancel a post: a draft, or a scheduled post without a recorded claim or
// deadline.
func Cancellable(post *v1alpha1.Post) bool {
	phase := PhaseOf(post)
	return phase == v1alpha1.PhaseDraft || phase == v1alpha1.PhaseScheduled
}

// CanCancel returns the value that clients see: true for a draft, and for a post that is scheduled in the future,
// while it is Cancellable. A post that is due is about to be claimed, so a successful cancel cannot be promised.
func CanCancel(post *v1alpha1.Post, now time.Time) bool {
	return Cancellable(post) && (post.Spec.Draft || post.Spec.ScheduledAt.After(now))
}

// DisplayAt returns the time of a post in a list: when it was posted, else when it is scheduled, else when it was
// created.
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

// Created returns when a post was created, with milliseconds if the apiserver recorded them: Kubernetes stores only
// seconds. A recorded time that differs from the object's own time by more than the clock margin is ignored, because
// any author of an applied post can write it. A post that Kubernetes has not stored yet has only the recorded time.
func Created(post *v1alpha1.Post) time.Time {
	created := post.CreationTimestamp.Time
	noted, ok := born(post)
	if ok && (created.IsZero() || created.Sub(noted).Abs() <= clockMargin) {
		return noted
	}
	return created
}

// Title returns the title of a post in a list: the title of its first YouTube target that has one, or else the first
// 30 code points of the first caption or card that is not empty. platformOf returns the platform of a target.
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

// Cards returns the number of cards that each target of a tree publishes one after another, or 0 for any other post.
func Cards(spec *v1alpha1.PostSpec) int {
	if spec.Category != v1alpha1.CategoryTree || spec.Tree == nil {
		return 0
	}
	return len(spec.Tree.Cards)
}

// MediaNames returns the names of a post's media files without duplicates, in order.
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

// TextToSend returns the text to send for a caption. With files, a caption of only whitespace counts as empty: every
// platform accepts files without a caption, and none documents how it handles whitespace.
func TextToSend(caption string, besideFiles bool) string {
	if besideFiles && strings.TrimSpace(caption) == "" {
		return ""
	}
	return caption
}
