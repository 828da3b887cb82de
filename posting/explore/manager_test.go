// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// counter says where a manager stands: what it will do next to the world
// outside. Between two of these it only thinks.
type counter int64

const (
	down counter = iota
	idle
	// describing writes a status that holds no new facts about calls.
	describing
	// resolving writes what a person found out, tidying takes the annotation off.
	resolving
	tidying
	// asking asks the platform, entering writes what it said.
	asking
	entering
	// claiming writes attempts, sending makes the calls and records results.
	claiming
	sending
	// absent is one that never comes.
	absent
)

// manager is one process: where it stands, and what it has in memory.
type manager struct {
	pc      counter
	stalled bool
	// offset is how far its clock is ahead, in milliseconds.
	offset int64
	// read is the post as the pass has read it, and copy what the pass makes of it;
	// behind is how many versions it is behind etcd. first is what it said when the
	// process first read it.
	read, copy, first *version
	behind            int8
	// wrote and seen are how far behind the last version is that the process
	// wrote, and read.
	wrote, seen int8
	// dirty is set when an event is on its way; wake is when the post comes back
	// by itself.
	dirty bool
	wake  int64
	// braked is set when the post waits for the end of a suspension.
	braked bool
	// passAt is when the pass was begun, by the local clock.
	passAt time.Time
	// ready are the targets to be claimed, and lookups those that are asked about.
	ready   []int
	lookups []lookup
	// claimed is what the claim's write returned, and ships are its calls.
	claimed *version
	ships   []ship
	// kept are results that could not be written; unsent are attempts whose
	// claim may have landed although its write failed.
	kept   []ship
	unsent []string
	prep   preparation
	// known are the published posts whose id the process has learnt; see I4.
	known []ship
}

// managerSteps are what a manager does next, and what can befall it.
func (w *world) managerSteps(i int, add adder) {
	m := &w.manager[i]
	if m.pc == absent {
		return
	}
	if m.pc == down {
		add(i, "starts", "", false, func(n *world) { n.manager[i].start() })
		return
	}
	add(i, "is killed", crash, false, func(n *world) { n.kill(i) })
	for _, offset := range w.x.jumps {
		if offset != m.offset {
			add(i, fmt.Sprintf("has its clock set to %+d ms", offset), clockJump, false, func(n *world) { n.manager[i].offset = offset })
		}
	}
	w.answers(i, add)
	if m.stalled {
		add(i, "goes on", "", false, func(n *world) { n.manager[i].stalled = false })
		return
	}
	if m.pc != idle || w.due(i) {
		add(i, "stalls", stall, false, func(n *world) { n.manager[i].stalled = true })
	}
	if m.prep.running {
		add(i, "has prepared", "", false, func(n *world) { n.prepared(i) })
	}
	switch m.pc {
	case idle:
		w.passSteps(i, add)
	case asking:
		add(i, "asks the platform", "", false, func(n *world) { n.ask(i) })
		add(i, "asks without an answer", blind, false, func(n *world) { n.askBlind(i, noAnswer) })
		add(i, "asks and is refused", denied, false, func(n *world) { n.askBlind(i, noPermission) })
	case sending:
		w.sendSteps(i, add)
	case describing, resolving, tidying, entering, claiming:
		name := map[counter]string{describing: "describes", resolving: "writes the resolution", tidying: "takes the annotation off", entering: "writes what it found", claiming: "claims"}[m.pc]
		add(i, name, "", false, func(n *world) { n.write(i) })
		add(i, name+" (landed)", writeLost, false, func(n *world) { n.write(i); n.lostAnswer(i, m, true) })
		add(i, name+" (did not land)", writeLost, false, func(n *world) { n.lostAnswer(i, m, false) })
	case down, absent:
	}
}

// start begins a process: its memory is empty, its cache as old as it may be.
func (m *manager) start() {
	*m = manager{pc: idle, offset: m.offset, wrote: forgotten, seen: forgotten, wake: never, dirty: true}
}

// kill ends a process; its calls go on without it.
func (w *world) kill(i int) {
	m := &w.manager[i]
	for _, s := range m.ships {
		if s.phase == waiting {
			w.orphans = append(w.orphans, s.call)
		}
	}
	*m = manager{pc: down, offset: m.offset, wake: never, wrote: forgotten, seen: forgotten}
}

// due reports whether an idle manager has a reason to look at the post.
func (w *world) due(i int) bool {
	m := &w.manager[i]
	return m.dirty || m.wake != never && m.wake <= w.now
}

// busy reports whether a manager has something to do at this instant.
func (w *world) busy(i int) bool {
	m := &w.manager[i]
	for _, s := range m.ships {
		if s.phase == waiting && (!s.slow || s.call.limit <= w.now || s.by <= w.now && !m.stalled) {
			return true
		}
	}
	switch {
	case m.pc == down, m.pc == absent, m.stalled:
		return false
	case w.brake != nil && w.entersBrake(i):
		return true
	case m.pc == idle:
		return w.due(i) || m.prep.running
	case m.pc == sending:
		return slices.ContainsFunc(m.ships, func(s ship) bool { return s.phase != waiting && s.phase != recorded })
	}
	return true
}

// instants names the times at which a manager's situation changes by itself.
func (w *world) instants(i int, consider func(int64)) {
	m := &w.manager[i]
	if m.wake != never {
		consider(m.wake)
	}
	for _, s := range m.ships {
		switch s.phase {
		case claimed:
			if a := posting.Target(m.claimed.post, s.target).Attempt; a != nil {
				// The last moment at which it may be begun, and the first at which not.
				consider(w.truly(i, a.SendBefore.Time) - 1)
				consider(w.truly(i, a.SendBefore.Time))
			}
		case underway, waiting:
			consider(s.by - 1)
			consider(s.by)
			consider(s.call.limit)
		case answered, recorded:
		}
	}
	if m.pc != entering {
		return
	}
	for _, l := range m.lookups {
		consider(w.truly(i, proofAt(posting.Target(m.copy.post, l.Target).Attempt, w.timing())))
	}
}

// proofAt is when absence may begin to count, told apart from attempt's own
// reckoning: it only names an instant that is worth exploring.
func proofAt(a *v1alpha1.Attempt, t attempt.Timing) time.Time {
	from := a.SendBefore.Add(t.CallTimeout)
	if a.EndedAt != nil {
		from = a.EndedAt.Time
	}
	return from.Add(t.CallTimeout + t.ClockMargin + t.Lag)
}

// moment is what a pass decides from, if the process has nothing in memory.
type moment struct {
	v     *version
	local time.Time
	brake *brake
}

// skipIdlePass makes at once a pass that would find nothing to do but to come
// back later. When it is made makes no difference to anybody, and leaving the
// choice open would only multiply states. Such a process may still read an
// older version.
func (w *world) skipIdlePass(i int) {
	m := &w.manager[i]
	if m.pc != idle || m.stalled || !w.due(i) || len(m.kept)+len(m.unsent) > 0 || w.violation != nil {
		return
	}
	at := moment{w.etcd, w.local(i), w.brake}
	after, known := w.x.idles[at]
	if !known {
		trial := *w
		t := &trial.manager[i]
		t.prep = preparation{}
		trial.begin(i, w.etcd, 0)
		switch {
		case t.pc != idle || t.prep != (preparation{}):
			after = never
		case t.wake != never:
			after = t.wake - w.now
		}
		w.x.idles[at] = after
	}
	if after == never {
		return
	}
	m.dirty, m.wake = false, never
	m.braked = m.braked || w.brake != nil && w.brake.on()
	if after > 0 {
		m.wake = w.now + after
	}
}

// passSteps begin a pass, over the post as it stands or as it stood.
func (w *world) passSteps(i int, add adder) {
	if w.due(i) {
		add(i, "begins a pass", "", false, func(n *world) { n.begin(i, n.etcd, 0) })
	}
	for k, v := range w.past {
		if behind := int8(k + 1); behind <= w.manager[i].seen {
			add(i, fmt.Sprintf("begins a pass, %d behind", behind), stale, false, func(n *world) { n.begin(i, v, behind) })
		}
	}
}

// end ends a pass; the post comes back at a time, or never.
func (w *world) end(i int, wake int64) {
	m := &w.manager[i]
	m.pc, m.read, m.copy, m.claimed, m.ships, m.ready, m.lookups, m.passAt = idle, nil, nil, nil, nil, nil, nil, time.Time{}
	m.behind, m.wake = 0, wake
}

// conflicted ends a pass that lost a write; it is made again soon.
func (w *world) conflicted(i int) { w.end(i, w.now+conflictPause) }

// conflictPause is how soon, in milliseconds, a pass that lost a write is made again.
const conflictPause = 50

// again ends a pass with an error: it is made again at once.
func (w *world) again(i int) {
	w.end(i, never)
	w.manager[i].dirty = true
}

// write makes the write that the manager stands before. The pass ends with it,
// unless calls follow or an annotation is still to be taken off.
func (w *world) write(i int) {
	m := &w.manager[i]
	if m.pc == claiming {
		w.claim(i)
		return
	}
	if m.pc == tidying {
		w.tidy(i)
		return
	}
	var about []int
	switch m.pc {
	case resolving:
		for k := range m.copy.post.Spec.Targets {
			about = append(about, k)
		}
	case entering:
		for _, l := range m.lookups {
			about = append(about, l.Target)
		}
		m.copy = w.found(i)
	case down, idle, describing, asking, tidying, claiming, sending, absent:
	}
	switch {
	case m.copy == m.read: // nothing to write
	case w.put(i, m.copy, m.behind, false, about) != stored:
		w.conflicted(i)
		return
	}
	if m.pc == resolving {
		m.pc, m.read, m.behind = tidying, m.copy, 0
		return
	}
	w.end(i, never)
}

// tidy takes a resolution off that is entered.
func (w *world) tidy(i int) {
	if w.manager[i].behind != 0 {
		w.conflicted(i)
		return
	}
	w.store(w.changed(w.etcd, func(p *v1alpha1.Post) { p.Annotations = nil }))
	w.manager[i].wrote, w.manager[i].seen = 0, 0
	w.end(i, never)
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

// key identifies a manager's state.
func (m *manager) key() []byte {
	var k key
	k.put(int64(m.pc), bit(m.stalled), m.offset, m.read.number(), m.copy.number(), m.first.number(), m.claimed.number(), int64(m.behind), int64(m.wrote), int64(m.seen),
		bit(m.dirty), bit(m.braked), m.wake, millis(m.passAt), int64(len(m.ready)), int64(len(m.ships)), int64(len(m.kept)), int64(len(m.unsent)), int64(len(m.lookups)))
	for _, r := range m.ready {
		k.put(int64(r))
	}
	for _, s := range append(slices.Clone(m.ships), m.kept...) {
		k.text(s.attempt)
		k.text(s.text)
		k.text(string(s.answer))
		k.put(int64(s.target), int64(s.card), int64(s.phase), int64(s.container), bit(s.visible), s.by, bit(s.slow), int64(s.post), s.call.limit, bit(s.late), bit(s.alone))
	}
	for _, u := range m.unsent {
		k.text(u)
	}
	for _, l := range m.lookups {
		k.text(l.ExternalID + string(l.gave))
		k.put(int64(l.Target), int64(l.Matches), bit(l.Proof), bit(l.Err != nil))
	}
	k.text(m.prep.hash)
	k.put(int64(m.prep.container), bit(m.prep.visible), bit(m.prep.running), millis(m.prep.begunAt))
	return k
}
