// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

const account = "account"

// noteTargets gives every target its ledger entry.
func noteTargets(p *v1alpha1.Post) {
	for i := range p.Spec.Targets {
		t := posting.Target(p, i)
		if t == nil {
			p.Status.Targets = append(p.Status.Targets, v1alpha1.TargetStatus{Index: int32(i)})
			t = &p.Status.Targets[len(p.Status.Targets)-1]
		}
		if t.Attempt != nil {
			continue
		}
		t.Platform = v1alpha1.PlatformX
		if p.Status.ObservedGeneration != p.Generation {
			attempt.Reset(t)
		}
	}
}

// deliver looks for calls whose answer was lost, or goes on with what is ready.
func (w *world) deliver(i int) {
	m := &w.manager[i]
	m.copy = w.changed(m.copy, noteTargets)
	now := w.local(i)
	for k := range m.copy.post.Status.Targets {
		t := &m.copy.post.Status.Targets[k]
		if attempt.IsOpen(t.Attempt) && (w.x.broken.settleEarly || !attempt.NextLookup(t, w.timing()).After(now)) {
			m.lookups = append(m.lookups, look{target: k})
		}
	}
	if len(m.lookups) > 0 {
		m.pc = asking
		return
	}
	w.publish(i)
}

// publish goes on with the targets that are ready: they are prepared, then
// claimed. Without any, what is new is written.
func (w *world) publish(i int) {
	m := &w.manager[i]
	now := w.local(i)
	var ready []int
	waited := false
	next := w.changed(m.copy, func(p *v1alpha1.Post) {
		ready, waited = w.readyTargets(p, now)
	})
	if ready = w.prepare(i, next, ready); len(ready) > 0 {
		m.copy, m.ready, m.openedAt, m.pc = next, ready, now.Sub(t0).Milliseconds(), claiming
		return
	}
	if !waited && !posting.AllSettled(next.post) {
		w.end(i, w.nextWake(next.post, now))
		return
	}
	w.describeAnd(i, w.nextWake(next.post, now), func(p *v1alpha1.Post) { p.Status = *next.post.Status.DeepCopy() })
}

func (w *world) readyTargets(p *v1alpha1.Post, now time.Time) (ready []int, waited bool) {
	for k := range p.Spec.Targets {
		t := posting.Target(p, k)
		if posting.Settled(p, k) || attempt.IsOpen(t.Attempt) {
			continue
		}
		if t.TryUntil == nil {
			until, fixed := posting.TryUntil(p, now, w.x.deadline)
			t.TryUntil = v1alpha1.NewTimePtr(until)
			waited = waited || !fixed
		}
		switch {
		case now.After(t.TryUntil.Time):
			late := v1alpha1.Blocked{Reason: v1alpha1.ReasonMissedSchedule, Problem: "its time passed"}
			if t.Blocked != nil {
				late = *t.Blocked
			}
			waited = attempt.Fail(t, late) == nil || waited
		case t.NextTryAt != nil && t.NextTryAt.After(now):
		default:
			ready = append(ready, k)
		}
	}
	return ready, waited
}

// prepare returns the targets that can be claimed. Where the platform makes
// containers, the one target of the scenario waits for its own.
func (w *world) prepare(i int, v *version, ready []int) []int {
	m := &w.manager[i]
	if !w.x.containers || len(ready) == 0 {
		return ready
	}
	hash := hashOf(v.post, ready[0])
	if m.prep.container > 0 && (m.prep.hash == hash || w.x.broken.otherCheckpoint) {
		return ready
	}
	if m.prep.running && m.prep.hash == hash {
		return nil
	}
	m.prep = preparation{hash: hash, running: true}
	if earlier := attempt.Checkpoint(posting.Target(v.post, ready[0]).Attempt, hash); earlier != "" {
		m.prep.container, _ = strconv.Atoi(earlier)
	}
	return nil
}

// prepared is the end of a preparation: a container that was made before is used
// again unless it is visible by now.
func (w *world) prepared(i int) {
	m := &w.manager[i]
	m.prep.running = false
	m.dirty = true
	if c := m.prep.container; c > 0 {
		m.prep.doubt = w.containers[c-1].post > 0
		return
	}
	w.containers = append(w.containers, container{text: w.textOf(m.prep.hash)})
	m.prep.container = len(w.containers)
}

func hashOf(p *v1alpha1.Post, target int) string {
	return attempt.ContentHash("connection", account, contentOf(p, target))
}

// textOf is the content that has a hash. A container holds what it was made from.
func (w *world) textOf(hash string) string {
	for text := range w.x.texts {
		if attempt.ContentHash("connection", account, text) == hash {
			return text
		}
	}
	panic("no content has this hash")
}

// nextWake is when the earliest target that is not settled wants attention.
func (w *world) nextWake(p *v1alpha1.Post, now time.Time) time.Duration {
	var next time.Time
	for k := range p.Spec.Targets {
		t := posting.Target(p, k)
		if t == nil || posting.Settled(p, k) {
			continue
		}
		var at time.Time
		switch {
		case attempt.IsOpen(t.Attempt):
			if !w.x.broken.noWake {
				at = attempt.NextLookup(t, w.timing()).Add(time.Millisecond)
			}
		case t.NextTryAt != nil && t.NextTryAt.After(now):
			at = t.NextTryAt.Time
		case t.TryUntil != nil:
			at = t.TryUntil.Add(time.Millisecond)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}

// look is a question about a target, and its answer.
type look struct {
	target  int
	matches int
	id      string
	proof   bool
	failed  bool
	// gave is what the platform says of what it gave up.
	gave answer
}

// ask puts the question of each look to the platform.
func (w *world) ask(i int) {
	m := &w.manager[i]
	m.pc = entering
	for k := range m.lookups {
		l := &m.lookups[k]
		w.checkAsked(m.copy.post, l.target)
		if name := posting.Target(m.copy.post, l.target).Attempt.OperationID; name != "" {
			w.told(name, l)
			continue
		}
		f := w.lookupResult(m.copy.post, l.target)
		l.matches, l.id, l.proof = f.Matches, f.ExternalID, f.Proof
	}
}

func (w *world) askInVain(i int) {
	m := &w.manager[i]
	m.pc = entering
	for k := range m.lookups {
		w.checkAsked(m.copy.post, m.lookups[k].target)
		m.lookups[k].failed = true
	}
}

// found is the post with the answers to the looks entered.
func (w *world) found(i int) *version {
	m := &w.manager[i]
	now := w.local(i)
	timing := w.timing()
	timing.Authoritative = timing.Authoritative || w.x.broken.trustListing
	return w.changed(m.copy, func(p *v1alpha1.Post) {
		policy := p.Spec.OnUnknownOutcome
		if w.x.broken.alwaysRetry {
			policy = v1alpha1.OnUnknownRetry
		}
		for _, l := range m.lookups {
			t := posting.Target(p, l.target)
			if l.failed {
				must(attempt.RecordLookupFailure(t, platforms.Errorf(platforms.ClassTransient, "no answer"), timing, policy, now))
				continue
			}
			f := l.lookupResult()
			must(attempt.RecordLookup(t, f, timing, policy, posting.Cards(&p.Spec), now))
			if w.x.broken.oneLook && attempt.IsOpen(t.Attempt) && t.Attempt.Lookups > 0 {
				must(attempt.RecordLookup(t, f, timing, policy, posting.Cards(&p.Spec), now))
			}
		}
		describe(p)
		for _, l := range m.lookups {
			if t := posting.Target(p, l.target); w.x.broken.silent && t.Attempt.Outcome == v1alpha1.OutcomeUnknown {
				t.Message = "failed"
			}
		}
	})
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// write makes the write that the manager stands before, and goes on.
func (w *world) write(i int) {
	m := &w.manager[i]
	switch m.pc {
	case describing:
		wake := m.wake
		if w.put(i, m.copy, m.behind, false, nil) != stored {
			w.end(i, conflictPause)
			return
		}
		w.end(i, 0)
		m.wake = wake
	case judging:
		if w.put(i, m.copy, m.behind, false, targetsOf(m.copy.post)) != stored {
			w.end(i, conflictPause)
			return
		}
		m.behind, m.pc = 0, tidying
	case tidying:
		if m.behind != 0 {
			w.end(i, conflictPause)
			return
		}
		m.copy = w.changed(m.copy, func(p *v1alpha1.Post) { p.Annotations = nil })
		w.store(w.changed(w.etcd, func(p *v1alpha1.Post) { p.Annotations = nil }))
		m.behind, m.wrote, m.seen = 0, 0, 0
		w.decide(i)
	case entering:
		about := make([]int, 0, len(m.lookups))
		for _, l := range m.lookups {
			about = append(about, l.target)
		}
		next := w.found(i)
		if w.put(i, next, m.behind, false, about) != stored {
			w.end(i, conflictPause)
			return
		}
		m.copy, m.behind, m.lookups = next, 0, nil
		w.publish(i)
	case claiming:
		w.claim(i)
	case down, idle, asking, sending, absent:
	}
}

// conflictPause is how soon a pass that lost a write is made again.
const conflictPause = 50 * time.Millisecond

func targetsOf(p *v1alpha1.Post) []int {
	var all []int
	for i := range p.Spec.Targets {
		all = append(all, i)
	}
	return all
}

// lostAnswer is the end of a pass whose write got no answer. before is the
// manager as it stood when it wrote; landed tells whether the write took effect,
// which the process does not know.
func (w *world) lostAnswer(i int, before *manager, landed bool) {
	m := &w.manager[i]
	m.seen, m.wrote = before.seen, before.wrote
	if landed {
		m.seen, m.wrote = min(m.seen+1, forgotten), min(m.wrote+1, forgotten)
	}
	if before.pc == claiming {
		for _, s := range m.ships {
			m.unsent = append(m.unsent, s.attempt)
		}
		if w.x.broken.sendUnconfirmed && len(m.ships) > 0 {
			return
		}
	}
	w.again(i)
}
