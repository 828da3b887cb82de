// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package posting derives the state of a post: its phase, when it is due, and what lists show. It does no I/O and reads
// no clock. Its subpackages contain validation, delivery decisions and the write-ahead log.
package posting

import (
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// titleLength is the maximum length of a title in code points (spec: "the first 30 characters of the caption").
const titleLength = 30

// Target returns the status of target i, or nil if there is none.
func Target(post *v1alpha1.Post, i int) *v1alpha1.TargetStatus {
	for n := range post.Status.Targets {
		if int(post.Status.Targets[n].Index) == i {
			return &post.Status.Targets[n]
		}
	}
	return nil
}

// Unfinished reports whether a post in this phase still has something to deliver.
func Unfinished(phase v1alpha1.PostPhase) bool {
	return phase == v1alpha1.PhaseDraft || phase == v1alpha1.PhaseScheduled || phase == v1alpha1.PhaseProcessing
}

// Started reports whether a call to a platform was ever claimed for the post. After that, its spec is immutable.
func Started(post *v1alpha1.Post) bool {
	for i := range post.Status.Targets {
		if post.Status.Targets[i].Attempt != nil {
			return true
		}
	}
	return false
}

// Cancelled reports whether the current spec or an earlier one cancelled the post. A later spec does not undo a
// cancellation, because a tool may apply an outdated file.
func Cancelled(post *v1alpha1.Post) bool {
	return post.Spec.Cancelled || post.Status.CancelledAt != nil
}

// StateOf returns a target's state. An earlier version recorded a phase and reason instead; only StateOf reads those.
// The manager stores the state with the next write. Entries of finished posts are not migrated.
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

// Settled reports whether target i is posted or failed. An undecided target counts as failed until a user resolves it.
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

// Waits reports whether the post is due and a deadline is recorded for one of its targets.
func Waits(post *v1alpha1.Post) bool {
	for i := range post.Spec.Targets {
		if t := Target(post, i); t != nil && t.TryUntil != nil {
			return !post.Spec.Draft
		}
	}
	return false
}

// PhaseOf derives a post's phase from its spec and recorded facts.
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

// withdrawnForGood reports whether the post's cancellation is recorded and none of its targets may have been published.
// A later spec, such as one with fewer targets, makes no difference.
func withdrawnForGood(post *v1alpha1.Post) bool {
	return post.Status.CancelledAt != nil && !Started(post) && !slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool {
		state := StateOf(&t)
		return state == v1alpha1.TargetPosted || state == v1alpha1.TargetUndecided
	})
}

func settledPhase(t *v1alpha1.TargetStatus) v1alpha1.PostPhase {
	if StateOf(t) == v1alpha1.TargetPosted {
		return v1alpha1.PhasePosted
	}
	return v1alpha1.PhaseFailed
}

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

// Cancellable reports whether clients may cancel a post: a draft, or scheduled with no recorded claim or deadline.
func Cancellable(post *v1alpha1.Post) bool {
	phase := PhaseOf(post)
	return phase == v1alpha1.PhaseDraft || phase == v1alpha1.PhaseScheduled
}

// CanCancel returns what clients are shown. It is true for a Cancellable draft or future post. A due post may be
// claimed at any moment, so cancelling it could fail.
func CanCancel(post *v1alpha1.Post, now time.Time) bool {
	return Cancellable(post) && (post.Spec.Draft || post.Spec.ScheduledAt.After(now))
}

// DisplayAt returns the time that lists show for a post: when it was published or, failing that, scheduled or created.
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

// Created returns when a post was created, with milliseconds if the apiserver recorded them, because Kubernetes stores
// whole seconds. Any author of an applied post can write the annotation, so it is ignored if it differs from the
// object's own time by more than the clock margin. A post without a creationTimestamp has only the recorded time.
func Created(post *v1alpha1.Post) time.Time {
	created := post.CreationTimestamp.Time
	noted, ok := born(post)
	if ok && (created.IsZero() || created.Sub(noted).Abs() <= clockMargin) {
		return noted
	}
	return created
}

// Title returns the title that lists show for a post: its first YouTube title or, failing that, the first 30 code
// points of its first caption or card that is not empty. platformOf returns a target's platform.
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

// Cards returns the number of tree cards per target, or 0 for other posts.
func Cards(spec *v1alpha1.PostSpec) int {
	if spec.Category != v1alpha1.CategoryTree || spec.Tree == nil {
		return 0
	}
	return len(spec.Tree.Cards)
}

// MediaNames returns the names of a post's media files, in order and without duplicates.
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

// TextToSend returns the text to send for a caption. If there are files, a caption of white space counts as empty,
// because every platform accepts files without a caption and none documents how it treats white space.
func TextToSend(caption string, besideFiles bool) string {
	if besideFiles && strings.TrimSpace(caption) == "" {
		return ""
	}
	return caption
}
