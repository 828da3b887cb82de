// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/json"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/suspension"
)

// Brake: while the team is suspended, nothing is claimed and no waiting target fails. All deadlines move by exactly the
// time that it was suspended.
const Brake Rule = "brake"

// brake shows whether the post's Team is suspended. Equal states share a pointer. The suspensions are computed by the
// real code.
type brake struct {
	n int64
	// pulled is spec.suspend, and entered is status.suspensions.
	pulled  bool
	entered []v1alpha1.Suspension
}

// open reports whether the last suspension that is recorded has not ended.
func (b *brake) open() bool {
	last := len(b.entered) - 1
	return last >= 0 && b.entered[last].Until == nil
}

// on reports whether the team is suspended, as Team.Suspended does.
func (b *brake) on() bool { return b.pulled || b.open() }

// moved returns the brake after a change.
func (x *explorer) moved(pulled bool, entered []v1alpha1.Suspension) *brake {
	data, err := json.Marshal([]any{pulled, entered})
	if err != nil {
		panic(err)
	}
	if b, ok := x.brakes[string(data)]; ok {
		return b
	}
	b := &brake{n: int64(len(x.brakes)), pulled: pulled, entered: entered}
	x.brakes[string(data)] = b
	return b
}

// brakeSteps adds the suspension of the team by users and its recording by managers. Every suspension ends eventually.
func (w *world) brakeSteps(add adder) {
	switch {
	case w.brake.pulled:
		add(nobody, "an operator ends the suspension", "", false, func(n *world) { n.moveBrake(n.x.moved(false, n.brake.entered)) })
	case w.pulls > 0:
		add(nobody, "an operator suspends publishing", "", true, func(n *world) {
			n.pulls--
			n.moveBrake(n.x.moved(true, n.brake.entered))
		})
	}
	for i := range w.manager {
		if w.entersBrake(i) {
			add(i, "enters the brake", "", false, func(n *world) { n.enterBrake(i) })
		}
	}
}

// entersBrake reports whether a manager still has to record the beginning or end of a suspension.
func (w *world) entersBrake(i int) bool {
	m := &w.manager[i]
	return w.brake.pulled != w.brake.open() && m.pc != down && m.pc != absent && !m.stalled
}

// moveBrake stores a change to the Team. The end of a suspension requeues the waiting posts.
func (w *world) moveBrake(to *brake) {
	ends := w.brake.on() && !to.on()
	w.brake = to
	for i := range w.manager {
		if m := &w.manager[i]; ends && m.braked {
			m.dirty, m.braked = m.dirty || !w.x.broken.deafToRelease, false
		}
	}
}

// enterBrake does what a manager's Team controller does.
func (w *world) enterBrake(i int) {
	if w.brake.open() {
		// The time of a suspension counts from when it is recorded.
		w.held += max(w.now, dueAt) - max(w.heldFrom, dueAt)
	}
	w.heldFrom = w.now
	w.moveBrake(w.x.moved(w.brake.pulled, suspension.Update(w.brake.entered, w.brake.pulled, w.local(i), w.x.settings.StartingDeadline)))
}

// readBrake returns the suspension as a manager's reconciliation reads it, which first subscribes to its end.
func (w *world) readBrake(i int) (on bool, recent []v1alpha1.Suspension) {
	on, recent = w.seesBrake(), w.brake.entered
	w.manager[i].braked = w.manager[i].braked || on
	switch broken := &w.x.broken; {
	case broken.deadlinesStay && on:
		recent = []v1alpha1.Suspension{{From: v1alpha1.NewTime(t0.Add(time.Hour))}}
	case broken.deadlinesStay:
		recent = nil
	}
	return on, recent
}

// deadlines returns what shifts deadlines, as a manager reads it when it records that a call has ended.
func (w *world) deadlines() *delivery.Deadlines {
	held := &delivery.Deadlines{StartingDeadline: w.x.settings.StartingDeadline, LongestDelay: 2 * w.x.settings.StartingDeadline}
	if w.brake != nil && !w.x.broken.resultsUnheld {
		held.Suspended, held.Suspensions = w.seesBrake(), w.brake.entered
	}
	return held
}

// mayClaim is the last check for a suspension before a claim is written; mayGoOn is the check before the next card is
// claimed.
func (w *world) mayClaim() bool {
	return !w.seesBrake() || w.x.broken.oneLookAtBrake && !w.x.broken.honestClaims
}

func (w *world) mayGoOn() bool { return !w.seesBrake() || w.x.broken.oneLookAtBrake }

// seesBrake reports whether managers treat the team as suspended.
func (w *world) seesBrake() bool {
	return w.brake != nil && (w.brake.pulled || w.brake.open() && !w.x.broken.forgetEnd)
}

// dueAt is the post's due time in milliseconds.
const dueAt = 1000

// brakeTimes calls consider with the times that matter if nothing else happens during a suspension: around a waiting
// target's deadline, and long after it.
func (w *world) brakeTimes(consider func(int64)) {
	if !w.brake.pulled {
		return
	}
	deadline := dueAt + w.x.settings.StartingDeadline.Milliseconds() + w.held
	for _, at := range []int64{deadline - 1, deadline + 1, deadline + 5000} {
		consider(at)
	}
}

// tried returns the time since the post was due without suspensions, in milliseconds.
func (w *world) tried() int64 {
	held := w.held
	if w.brake.open() {
		held += max(w.now, dueAt) - max(w.heldFrom, dueAt)
	}
	return w.now - dueAt - held
}

// checkBraked is called for each target in a manager's status write. opened is whether the target has a new attempt.
func (w *world) checkBraked(who int, o, n *v1alpha1.TargetStatus, opened bool) {
	if w.brake == nil {
		return
	}
	deadline, tolerance := w.x.settings.StartingDeadline.Milliseconds(), w.tolerance()
	if opened {
		switch asDecided := w.manager[who].passAt.Equal(w.local(who)); {
		case w.brake.on():
			w.failf(Brake, "attempt %s is stored while the team is suspended", n.Attempt.ID)
		case asDecided && w.tried() > deadline+tolerance:
			w.failf(Brake, "attempt %s is stored although target %d was due for %d ms without being suspended", n.Attempt.ID, n.Index, w.tried())
		}
	}
	if !attempt.Settled(o) && attempt.Settled(n) && !attempt.Posted(n) && !attempt.Undecided(n) && n.Reason != v1alpha1.ReasonRefused {
		w.checkGivenUp(o, n, deadline-tolerance)
	}
}

// checkGivenUp is called when a target has failed without a permanent refusal: its deadline had passed, or its retry
// would be after the deadline.
func (w *world) checkGivenUp(o, n *v1alpha1.TargetStatus, deadline int64) {
	closed := o.Attempt != nil && attempt.IsOpen(o.Attempt) && !attempt.IsOpen(n.Attempt)
	if w.tried() < deadline && (w.brake.on() || !closed) {
		w.failf(Brake, "target %d is given up after it was due for %d ms without being suspended (%s)", n.Index, w.tried(), n.Reason)
	}
}

// tolerance returns the time by which a deadline may be off because clocks differ: one manager may record the beginning
// of a suspension and another its end.
func (w *world) tolerance() int64 {
	var most int64
	for i := range w.manager {
		most = max(most, w.manager[i].offset, -w.manager[i].offset)
	}
	return 2*most + 1
}

// forgetCounted drops recorded suspensions that have already shifted the deadlines of a post's targets.
func (w *world) forgetCounted(p *v1alpha1.Post) {
	for i := range p.Spec.Targets {
		if t := posting.Of(p).Target(i); t != nil && w.x.broken.countTwice {
			t.SuspendedUntil = nil
		}
	}
}
