// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/suspension"
)

// suspended says that a target waits for its team to be suspended no longer.
var suspended = v1alpha1.Blocked{
	Reason:  v1alpha1.ReasonSuspended,
	Problem: "the team is suspended, and nothing of it is published; its deadline moves along, and it goes out when that ends",
}

// blockSuspended keeps a target back that could go out, or be prepared to, if its team were not suspended. What precedes its
// call is made all the same, and is recorded with what the target waits for: a suspension is
// long, and another process may end it.
func (f *Facts) blockSuspended(d *targets, i int, t *v1alpha1.TargetStatus, p *Preparation) {
	d.forInputs = true
	switch p.State {
	case PreparationNotNeeded, PreparationVisible, PreparationFailed:
	case PreparationMissing:
		d.missing = append(d.missing, i)
	case PreparationRunning:
		d.changed = f.recordProgress(t, p) || d.changed
	case PreparationReady:
		before := t.Prepared
		recordPrepared(t, p, len(Files(f.Post, i)) > 0)
		d.changed = before != t.Prepared || d.changed
	}
	d.changed = attempt.Block(t, suspended) || d.changed
}

// setTryUntil enters until when a target is tried, if that is not known yet, and moves it by
// the suspensions of the team that have ended since: a target does not wait for their end any
// more. It reports whether another pass would come to another time; the rest is stored with what
// follows.
func (f *Facts) setTryUntil(t *v1alpha1.TargetStatus) (changed bool) {
	if !f.Suspended && attempt.BlockedBy(t, v1alpha1.ReasonSuspended) {
		t.Blocked = nil
	}
	if t.TryUntil == nil {
		until, fixed := posting.TryUntil(f.Post, f.Now, f.Settings.StartingDeadline)
		t.TryUntil, t.SuspendedUntil = v1alpha1.NewTimePtr(until), nil
		changed = !fixed
	}
	f.deadlines().shift(t)
	return changed
}

// expired reports whether the time of a target is over. That of one that waits in a suspension
// moves on; but not if it was over before.
func (f *Facts) expired(t *v1alpha1.TargetStatus) bool {
	return f.Now.After(t.TryUntil.Time) && !f.mayShift(t)
}

// mayShift reports whether the suspension that lasts will move the deadline of a target: it began
// before that, or is so new that its begin is not recorded.
func (f *Facts) mayShift(t *v1alpha1.TargetStatus) bool { return f.deadlines().mayShift(t) }

func (f *Facts) deadlines() *Deadlines {
	return &Deadlines{
		Suspended: f.Suspended, Suspensions: f.Suspensions,
		StartingDeadline: f.Settings.StartingDeadline, LongestDelay: f.Settings.LongestDelay,
	}
}

// Deadlines holds what moves deadlines. The zero Held moves none.
type Deadlines struct {
	// Suspended and Suspensions are as in Facts.
	Suspended   bool
	Suspensions []v1alpha1.Suspension
	// StartingDeadline and LongestDelay are as in Settings.
	StartingDeadline, LongestDelay time.Duration
}

// shift moves until when a target is tried by the suspensions that have ended since.
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

// extend moves until when a target is tried behind a pause that its platform announced: the
// starting deadline counts from the end of the pause. It reports whether it did; a pause that
// ends after LongestDelay moves nothing, nor does one of a target whose time is over.
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

// apply enters into a target what gives it up if the next try would come after its deadline: that
// is moved before, by suspensions and by a pause that err announces, and while a suspension lasts
// that will move it, it lies further ahead than is known. What is not entered changes nothing.
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
