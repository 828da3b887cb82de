// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Target calls View.Target.
func Target(post *v1alpha1.Post, i int) *v1alpha1.TargetStatus { return Of(post).Target(i) }

// Started calls View.Started.
func Started(post *v1alpha1.Post) bool { return Of(post).Started() }

// Cancelled calls View.Cancelled.
func Cancelled(post *v1alpha1.Post) bool { return Of(post).Cancelled() }

// Settled calls View.Settled.
func Settled(post *v1alpha1.Post, i int) bool { return Of(post).Settled(i) }

// AllSettled calls View.AllSettled.
func AllSettled(post *v1alpha1.Post) bool { return Of(post).AllSettled() }

// PhaseOf calls View.Phase.
func PhaseOf(post *v1alpha1.Post) v1alpha1.PostPhase { return Of(post).Phase() }

// TargetPhaseOf calls View.TargetPhase.
func TargetPhaseOf(post *v1alpha1.Post, i int) v1alpha1.PostPhase { return Of(post).TargetPhase(i) }

// Cancellable calls View.Cancellable.
func Cancellable(post *v1alpha1.Post) bool { return Of(post).Cancellable() }

// CanCancel calls View.CanCancel.
func CanCancel(post *v1alpha1.Post, now time.Time) bool { return Of(post).CanCancel(now) }

// DisplayAt calls View.DisplayAt.
func DisplayAt(post *v1alpha1.Post) time.Time { return Of(post).DisplayAt() }

// Created calls View.Created.
func Created(post *v1alpha1.Post) time.Time { return Of(post).Created() }

// Title calls View.Title.
func Title(post *v1alpha1.Post, platformOf func(target int) v1alpha1.Platform) string {
	return Of(post).Title(platformOf)
}

// Due calls View.Due.
func Due(post *v1alpha1.Post) time.Time { return Of(post).Due() }

// UntilDue calls View.UntilDue.
func UntilDue(post *v1alpha1.Post, now time.Time) time.Duration { return Of(post).UntilDue(now) }

// TryUntil calls View.TryUntil.
func TryUntil(post *v1alpha1.Post, now time.Time, startingDeadline time.Duration) (until time.Time, fixed bool) {
	return Of(post).TryUntil(now, startingDeadline)
}

// Restored calls View.Restored.
func Restored(post *v1alpha1.Post) bool { return Of(post).Restored() }

// Recreated calls View.Recreated.
func Recreated(post *v1alpha1.Post) bool { return Of(post).Recreated() }

// RecreatedVisibleFrom calls View.RecreatedVisibleFrom.
func RecreatedVisibleFrom(post *v1alpha1.Post, margin time.Duration) time.Time {
	return Of(post).RecreatedVisibleFrom(margin)
}

// MarkOf calls View.Mark.
func MarkOf(post *v1alpha1.Post, i int) v1alpha1.TargetMark { return Of(post).Mark(i) }

// ProvenAbsent calls View.ProvenAbsent.
func ProvenAbsent(post *v1alpha1.Post, i int) bool { return Of(post).ProvenAbsent(i) }

// Size calls View.Size.
func Size(post *v1alpha1.Post) int { return Of(post).Size() }

// Footprint calls View.Footprint.
func Footprint(post *v1alpha1.Post) int64 { return Of(post).Footprint() }

// MaxStorableSize calls View.MaxStorableSize.
func MaxStorableSize(post *v1alpha1.Post) int { return Of(post).MaxStorableSize() }

// Cards calls View.Cards.
func Cards(spec *v1alpha1.PostSpec) int { return Of(&v1alpha1.Post{Spec: *spec}).Cards() }

// MediaNames calls View.MediaNames.
func MediaNames(spec *v1alpha1.PostSpec) []string {
	return Of(&v1alpha1.Post{Spec: *spec}).MediaNames()
}
