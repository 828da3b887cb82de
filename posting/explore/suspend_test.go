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

// Brake: while the team is suspended nothing is claimed, and nothing that waits is given up; and
// by the time suspended everything is tried later, by no less and by no more.
const Brake Rule = "brake"

// brake is one state of the post's Team, as far as it is about the brake. Equal ones are the same
// pointer. What becomes of a suspension is reckoned by the program's own package.
type brake struct {
	n int64
	// pulled is spec.suspend, and entered status.suspensions.
	pulled  bool
	entered []v1alpha1.Suspension
}

// open reports whether the last suspension that is entered has not ended.
func (b *brake) open() bool {
	last := len(b.entered) - 1
	return last >= 0 && b.entered[last].Until == nil
}

// on reports whether nothing is published, as Team.Suspended does.
func (b *brake) on() bool { return b.pulled || b.open() }

// moved is the brake after a change.
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

// brakeSteps are what people do with the brake, and what managers enter of it. Somebody who has
// pulled it releases it at some time.
func (w *world) brakeSteps(add adder) {
	switch {
	case w.brake.pulled:
		add(nobody, "somebody releases the brake", "", false, func(n *world) { n.moveBrake(n.x.moved(false, n.brake.entered)) })
	case w.pulls > 0:
		add(nobody, "somebody pulls the brake", "", true, func(n *world) {
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

// entersBrake reports whether a manager has to enter that the brake was pulled or released.
func (w *world) entersBrake(i int) bool {
	m := &w.manager[i]
	return w.brake.pulled != w.brake.open() && m.pc != down && m.pc != absent && !m.stalled
}

// moveBrake stores a change of the Team. One that ends the suspension wakes what waits for that.
func (w *world) moveBrake(to *brake) {
	ends := w.brake.on() && !to.on()
	w.brake = to
	for i := range w.manager {
		if m := &w.manager[i]; ends && m.braked {
			m.dirty, m.braked = m.dirty || !w.x.broken.deafToRelease, false
		}
	}
}

// enterBrake is what the controller of Teams does in a manager.
func (w *world) enterBrake(i int) {
	if w.brake.open() {
		// What the suspension has held counts from when it was entered.
		w.held += max(w.now, dueAt) - max(w.heldFrom, dueAt)
	}
	w.heldFrom = w.now
	w.moveBrake(w.x.moved(w.brake.pulled, suspension.Update(w.brake.entered, w.brake.pulled, w.local(i), w.x.settings.StartingDeadline)))
}

// readBrake is what a pass of a manager reads of the brake. It waits for the end before it reads.
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

// heldBy returns what moves deadlines, as a manager reads it that enters what ended a call.
func (w *world) heldBy() *delivery.Deadlines {
	held := &delivery.Deadlines{StartingDeadline: w.x.settings.StartingDeadline, LongestDelay: 2 * w.x.settings.StartingDeadline}
	if w.brake != nil && !w.x.broken.resultsUnheld {
		held.Suspended, held.Suspensions = w.seesBrake(), w.brake.entered
	}
	return held
}

// mayClaim is the last look at the brake before a claim is written, and mayGoOn that before the next
// card is claimed.
func (w *world) mayClaim() bool {
	return !w.seesBrake() || w.x.broken.oneLookAtBrake && !w.x.broken.honestClaims
}

func (w *world) mayGoOn() bool { return !w.seesBrake() || w.x.broken.oneLookAtBrake }

// seesBrake reports whether managers take the team for suspended.
func (w *world) seesBrake() bool {
	return w.brake != nil && (w.brake.pulled || w.brake.open() && !w.x.broken.forgetEnd)
}

// dueAt is when the post is due, in milliseconds.
const dueAt = 1000

// brakeTimes names the times that matter while the brake is pulled and nothing else happens:
// around the deadline of what waits, and long after it.
func (w *world) brakeTimes(consider func(int64)) {
	if !w.brake.pulled {
		return
	}
	deadline := dueAt + w.x.settings.StartingDeadline.Milliseconds() + w.held
	for _, at := range []int64{deadline - 1, deadline + 1, deadline + 5000} {
		consider(at)
	}
}

// tried is for how long, in milliseconds, the post has been due without being suspended.
func (w *world) tried() int64 {
	held := w.held
	if w.brake.open() {
		held += max(w.now, dueAt) - max(w.heldFrom, dueAt)
	}
	return w.now - dueAt - held
}

// checkBraked is called for each target of a status that a manager has written: opened tells that
// it has a new attempt.
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

// checkGivenUp is called when a target has failed of which no call was refused for good: its time
// was over, or what ended its last call lets it be tried again only when it is.
func (w *world) checkGivenUp(o, n *v1alpha1.TargetStatus, deadline int64) {
	closed := o.Attempt != nil && attempt.IsOpen(o.Attempt) && !attempt.IsOpen(n.Attempt)
	if w.tried() < deadline && (w.brake.on() || !closed) {
		w.failf(Brake, "target %d is given up after it was due for %d ms without being suspended (%s)", n.Index, w.tried(), n.Reason)
	}
}

// tolerance is by how much the clocks of managers may have deadlines lie elsewhere: one tells the
// begin of a suspension and another one its end.
func (w *world) tolerance() int64 {
	var most int64
	for i := range w.manager {
		most = max(most, w.manager[i].offset, -w.manager[i].offset)
	}
	return 2*most + 1
}

// forgetCounted has the targets of a post forget by which suspensions their deadlines were moved.
func (w *world) forgetCounted(p *v1alpha1.Post) {
	for i := range p.Spec.Targets {
		if t := posting.Target(p, i); t != nil && w.x.broken.countTwice {
			t.SuspendedUntil = nil
		}
	}
}
