// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/suspension"
)

var suspended = v1alpha1.Blocked{
	Reason:  v1alpha1.ReasonSuspended,
	Problem: "the team is suspended; this post is published when the suspension ends, and its deadline moves with it",
}

// blockSuspended blocks a target that only its team's suspension holds back. Preparations still run and record their
// progress: suspensions are long, and another process may be the one to send the target.
func (f *Facts) blockSuspended(d *targets, i int, t *v1alpha1.TargetStatus, p *Preparation) {
	d.forInputs = true
	switch p.State {
	case PreparationNotNeeded, PreparationVisible, PreparationFailed:
	case PreparationMissing:
		f.startPreparation(&d.preparations, i, t, p)
	case PreparationRunning:
		if !f.losePreparation(&d.preparations, i, t, p) {
			d.changed = f.continuePreparation(&d.preparations, t, p, f.shares(i)) || d.changed
		}
	case PreparationReady:
		before := t.Prepared
		f.recordPrepared(t, p, len(Files(f.Post, i)) > 0)
		d.changed = before != t.Prepared || d.changed
	}
	d.changed = attempt.Block(t, suspended) || d.changed
}

// setTryUntil sets a target's deadline if it has none, and shifts it by suspensions of the team that have ended. It
// unblocks a target after a suspension. It reports whether a later reconciliation would arrive at a different deadline.
// Other changes are stored with the next write.
func (f *Facts) setTryUntil(t *v1alpha1.TargetStatus) (changed bool) {
	if !f.Suspended && attempt.BlockedBy(t, v1alpha1.ReasonSuspended) {
		t.Blocked = nil
	}
	if t.TryUntil == nil {
		until, fixed := f.TryUntil(f.Now, f.Settings.StartingDeadline)
		t.TryUntil, t.SuspendedUntil = v1alpha1.NewTimePtr(until), nil
		changed = !fixed
	}
	f.deadlines().shift(t)
	return changed
}

// expired reports whether a target's deadline has passed. A current suspension shifts later deadlines.
func (f *Facts) expired(t *v1alpha1.TargetStatus) bool {
	return f.Now.After(t.TryUntil.Time) && !f.mayShift(t)
}

// mayShift reports whether the current suspension shifts a target's deadline: the suspension began before the deadline,
// or is not recorded.
func (f *Facts) mayShift(t *v1alpha1.TargetStatus) bool { return f.deadlines().mayShift(t) }

func (f *Facts) deadlines() *Deadlines {
	return &Deadlines{
		Suspended: f.Suspended, Suspensions: f.Suspensions,
		StartingDeadline: f.Settings.StartingDeadline, LongestDelay: f.Settings.LongestDelay,
	}
}

// Deadlines contains the reasons to shift deadlines. The zero value shifts none.
type Deadlines struct {
	// Suspended and Suspensions are the fields of Facts.
	Suspended   bool
	Suspensions []v1alpha1.Suspension
	// StartingDeadline and LongestDelay are the fields of Settings.
	StartingDeadline, LongestDelay time.Duration
}

func (h *Deadlines) shift(t *v1alpha1.TargetStatus) {
	since := t.TryUntil.Add(-h.StartingDeadline)
	if counted := t.SuspendedUntil; counted != nil && counted.After(since) {
		since = counted.Time
	}
	if until, by := suspension.ShiftDeadline(t.TryUntil.Time, since, h.Suspensions); !by.IsZero() {
		if t.InitialDeadline != nil {
			t.InitialDeadline = v1alpha1.NewTimePtr(t.InitialDeadline.Add(until.Sub(t.TryUntil.Time)))
		}
		t.TryUntil, t.SuspendedUntil = v1alpha1.NewTimePtr(until), v1alpha1.NewTimePtr(by)
	}
}

// extend moves a target's deadline after a pause announced by its platform: the starting deadline counts from its end.
// It reports whether the deadline moved. Pauses that end after LongestDelay or begin after the deadline have no effect.
func (h *Deadlines) extend(t *v1alpha1.TargetStatus, pause, now time.Time) (moved bool) {
	if t.TryUntil == nil || !pause.After(now) || now.After(t.TryUntil.Time) {
		return false
	}
	initial := t.TryUntil
	if t.InitialDeadline != nil {
		initial = t.InitialDeadline
	}
	latest := initial.Add(h.LongestDelay - h.StartingDeadline)
	if pause.After(latest) {
		return false
	}
	until := pause.Add(h.StartingDeadline)
	if until.After(latest) {
		until = latest
	}
	if !until.After(t.TryUntil.Time) {
		return false
	}
	t.InitialDeadline, t.TryUntil = initial, v1alpha1.NewTimePtr(until)
	return true
}

func (h *Deadlines) mayShift(t *v1alpha1.TargetStatus) bool {
	since := suspension.OngoingSince(h.Suspensions)
	return h.Suspended && (since.IsZero() || !since.After(t.TryUntil.Time))
}

// apply calls enter, which may fail a target if its next attempt would miss the deadline. Before that, suspensions and
// a pause announced in err shift the deadline; while a suspension shifts it, there is no deadline. If enter returns an
// error, the deadlines are restored.
func (h *Deadlines) apply(t *v1alpha1.TargetStatus, err *platforms.Error, now time.Time, enter func() error) error {
	if t.TryUntil == nil {
		return enter()
	}
	before, counted, initial := t.TryUntil, t.SuspendedUntil, t.InitialDeadline
	h.shift(t)
	if err != nil {
		h.extend(t, err.RetryAt, now)
	}
	until := t.TryUntil
	if h.mayShift(t) {
		t.TryUntil = nil
	}
	failed := enter()
	switch {
	case failed != nil:
		t.TryUntil, t.SuspendedUntil, t.InitialDeadline = before, counted, initial
	case !attempt.Settled(t):
		t.TryUntil = until
	default:
		t.InitialDeadline = nil
	}
	return failed
}
