// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package posting derives the state of a post: its phase, its due time, and what lists show. It does not perform I/O or
// read a clock. Its subpackages contain validation, delivery decisions and the write-ahead log.
package posting

import (
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/herald-social/herald/api/v1alpha1"
)

// titleLength is the maximum length of a title in code points (spec: "the first 30 characters of the caption").
const titleLength = 30

// headingLength is the maximum length of a heading in code points: about two lines of a list.
const headingLength = 120

// View derives properties of a post from its spec and status. It does not cache them, so a View remains valid while the
// post's status changes.
type View struct{ Post *v1alpha1.Post }

// Of returns the view of a post.
func Of(post *v1alpha1.Post) View { return View{Post: post} }

// Target returns the status of target i, or nil if there is none.
func (v View) Target(i int) *v1alpha1.TargetStatus {
	for n := range v.Post.Status.Targets {
		if int(v.Post.Status.Targets[n].Index) == i {
			return &v.Post.Status.Targets[n]
		}
	}
	return nil
}

// Unfinished reports whether a post in this phase still has something to deliver.
func Unfinished(phase v1alpha1.PostPhase) bool {
	return phase == v1alpha1.PhaseDraft || phase == v1alpha1.PhaseScheduled || phase == v1alpha1.PhaseProcessing
}

// Started reports whether a call to a platform was ever claimed for the post. After that, its spec is immutable, except
// that an Unsent post can be cancelled.
func (v View) Started() bool {
	for i := range v.Post.Status.Targets {
		if v.Post.Status.Targets[i].Attempt != nil {
			return true
		}
	}
	return false
}

// Unsent reports whether it is certain that no call to a platform was made for the post: none was claimed, or each
// claim was in a group and is proven not to have been sent. Such a post can be cancelled.
func (v View) Unsent() bool {
	return !slices.ContainsFunc(v.Post.Status.Targets, func(t v1alpha1.TargetStatus) bool { return t.Attempt != nil && !isUnsent(&t) })
}

// isUnsent reports whether the target's last attempt is proven not to have been sent, and no earlier call may have been
// made. The schema of Post.spec has the same rule.
func isUnsent(t *v1alpha1.TargetStatus) bool {
	a := t.Attempt
	return a.Outcome == v1alpha1.OutcomeNotSent && a.Group != "" && a.SearchFrom == nil && a.UnknownSince == nil && a.EndedAt == nil && a.Lookups == 0 &&
		t.ExternalID == "" && len(t.Cards) == 0
}

// Cancelled reports whether the current spec or an earlier one cancelled the post. A later spec does not undo a
// cancellation, because a tool may apply an outdated file.
func (v View) Cancelled() bool {
	return v.Post.Spec.Cancelled || v.Post.Status.CancelledAt != nil
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

// Settled reports whether target i is posted or has failed. An undecided target counts as failed until a user resolves
// it.
func (v View) Settled(i int) bool {
	t := v.Target(i)
	if t == nil {
		return false
	}
	state := StateOf(t)
	return state == v1alpha1.TargetPosted || state == v1alpha1.TargetFailed || state == v1alpha1.TargetUndecided
}

// AllSettled reports whether every target is settled.
func (v View) AllSettled() bool {
	for i := range v.Post.Spec.Targets {
		if !v.Settled(i) {
			return false
		}
	}
	return true
}

// Waits reports whether the post is due and a deadline is recorded for one of its targets.
func (v View) Waits() bool {
	for i := range v.Post.Spec.Targets {
		if t := v.Target(i); t != nil && t.TryUntil != nil {
			return !v.Post.Spec.Draft
		}
	}
	return false
}

// Phase derives a post's phase from its spec and recorded facts.
func (v View) Phase() v1alpha1.PostPhase {
	if v.withdrawnForGood() {
		return v1alpha1.PhaseCancelled
	}
	if !v.AllSettled() {
		return v.unsettledPhase()
	}
	for i := range v.Post.Spec.Targets {
		if settledPhase(v.Target(i)) == v1alpha1.PhaseFailed {
			return v1alpha1.PhaseFailed
		}
	}
	return v1alpha1.PhasePosted
}

// withdrawnForGood reports whether the post's cancellation is recorded and none of its targets may have been published.
// A later spec, such as one with fewer targets, does not change that.
func (v View) withdrawnForGood() bool {
	return v.Post.Status.CancelledAt != nil && v.Unsent() && !slices.ContainsFunc(v.Post.Status.Targets, func(t v1alpha1.TargetStatus) bool {
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

// unsettledPhase returns the phase of an unsettled post or target.
func (v View) unsettledPhase() v1alpha1.PostPhase {
	switch {
	case !v.Unsent():
		return v1alpha1.PhaseProcessing
	case v.Cancelled():
		return v1alpha1.PhaseCancelled
	case v.Post.Spec.Draft:
		return v1alpha1.PhaseDraft
	case v.Post.Spec.ScheduledAt != nil && !v.Waits():
		return v1alpha1.PhaseScheduled
	default:
		return v1alpha1.PhaseProcessing
	}
}

// TargetPhase derives the phase of target i.
func (v View) TargetPhase(i int) v1alpha1.PostPhase {
	if v.Settled(i) {
		return settledPhase(v.Target(i))
	}
	return v.unsettledPhase()
}

// Cancellable reports whether clients may cancel a post: if it is a draft, or if it is scheduled, Unsent and without
// a recorded deadline.
func (v View) Cancellable() bool {
	phase := v.Phase()
	return phase == v1alpha1.PhaseDraft || phase == v1alpha1.PhaseScheduled
}

// CanCancel returns what clients are shown. It is true for a Cancellable draft or future post. A due post may be
// claimed at any moment, so cancelling it could fail.
func (v View) CanCancel(now time.Time) bool {
	return v.Cancellable() && (v.Post.Spec.Draft || v.Post.Spec.ScheduledAt.After(now))
}

// DisplayAt returns the time that lists show for a post: when it was published or, failing that, scheduled or created.
func (v View) DisplayAt() time.Time {
	var posted time.Time
	for i := range v.Post.Status.Targets {
		at := v.Post.Status.Targets[i].PostedAt
		if at != nil && (posted.IsZero() || at.Before(posted)) {
			posted = at.Time
		}
	}
	switch {
	case !posted.IsZero():
		return posted
	case v.Post.Spec.ScheduledAt != nil:
		return v.Post.Spec.ScheduledAt.Time
	default:
		return v.Created()
	}
}

// Created returns a post's creation time. creationTimestamp has a resolution of one second, so the apiserver also
// records the time in an annotation. Users who apply a Post can set the annotation themselves, so it is ignored if it
// differs from creationTimestamp by more than the allowed clock skew. If creationTimestamp is unset, Created returns
// the annotation's value.
func (v View) Created() time.Time {
	created := v.Post.CreationTimestamp.Time
	noted, ok := v.born()
	if ok && (created.IsZero() || created.Sub(noted).Abs() <= clockMargin) {
		return noted
	}
	return created
}

// Title returns the title that lists show for a post: its first YouTube title or, failing that, the first 30 code
// points of its first caption or card that is not empty. platformOf returns a target's platform.
func (v View) Title(platformOf func(target int) v1alpha1.Platform) string {
	if title := v.youTubeTitle(platformOf); title != "" {
		return title
	}
	return firstCodePoints(v.firstText(), titleLength)
}

// Heading is Title with up to 120 code points of the text, instead of 30. A longer text ends with "…", after a whole
// word that is not part of Title. A heading begins with the title.
func (v View) Heading(platformOf func(target int) v1alpha1.Platform) string {
	if title := v.youTubeTitle(platformOf); title != "" {
		return title
	}
	whole := v.firstText()
	heading := firstCodePoints(whole, headingLength)
	if len(heading) == len(whole) {
		return heading
	}
	if end := strings.LastIndexFunc(heading, unicode.IsSpace); end >= len(firstCodePoints(whole, titleLength)) {
		heading = heading[:end]
	}
	return heading + "…"
}

func (v View) youTubeTitle(platformOf func(target int) v1alpha1.Platform) string {
	spec := &v.Post.Spec
	for i := range spec.Targets {
		if options := spec.Targets[i].YouTube; options != nil && options.Title != "" && platformOf(i) == v1alpha1.PlatformYouTube {
			return options.Title
		}
	}
	return ""
}

// firstText returns the first caption or card that is not empty.
func (v View) firstText() string {
	for text := range v.Texts() {
		return text
	}
	return ""
}

// Texts returns the captions and the cards' texts that are not empty.
func (v View) Texts() iter.Seq[string] {
	return func(yield func(string) bool) {
		spec := &v.Post.Spec
		for i := range spec.Targets {
			if caption := spec.Targets[i].Caption; caption != "" && !yield(caption) {
				return
			}
		}
		if spec.Tree == nil {
			return
		}
		for i := range spec.Tree.Cards {
			if caption := spec.Tree.Cards[i].Caption; caption != "" && !yield(caption) {
				return
			}
		}
	}
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
func (v View) Cards() int {
	spec := &v.Post.Spec
	if spec.Category != v1alpha1.CategoryTree || spec.Tree == nil {
		return 0
	}
	return len(spec.Tree.Cards)
}

// MediaNames returns the names of a post's media files, in order and without duplicates.
func (v View) MediaNames() (names []string) {
	seen := map[string]bool{}
	for ref := range v.Post.Spec.MediaReferences() {
		if !seen[ref.Name] {
			seen[ref.Name] = true
			names = append(names, ref.Name)
		}
	}
	return names
}

// OwnMedia returns the references to the files of a post that is not a tree.
func OwnMedia(spec *v1alpha1.PostSpec) []v1alpha1.MediaReference {
	switch {
	case spec.Image != nil:
		return spec.Image.MediaRefs
	case spec.Video != nil:
		return []v1alpha1.MediaReference{spec.Video.MediaRef}
	default:
		return nil
	}
}

// TextToSend returns the text to send for a caption. If there are files, a caption of white space counts as empty:
// every platform accepts files without a caption, and none documents how it treats white space.
func TextToSend(caption string, besideFiles bool) string {
	if besideFiles && strings.TrimSpace(caption) == "" {
		return ""
	}
	return caption
}
