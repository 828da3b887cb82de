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

// counter is a manager's program counter: what it will do next that others can observe. In between, it only computes.
type counter int64

const (
	down counter = iota
	idle
	// describing writes a status without new call facts.
	describing
	// resolving writes a user's resolution, and tidying removes the annotation.
	resolving
	tidying
	// asking sends lookups to the platform, and entering writes their results.
	asking
	entering
	// claiming writes attempts, and sending makes the calls and records results.
	claiming
	sending
	// holding writes that the process holds a preparation.
	holding
	// grouping arms the group, and armed waits to open it. takingBack closes the group of another process.
	grouping
	armed
	takingBack
	// absent: the process never starts.
	absent
)

// manager is a process: its program counter and memory.
type manager struct {
	pc      counter
	stalled bool
	// offset is its clock offset in milliseconds.
	offset int64
	// read is the post as read by the reconciliation, and copy is its changed copy. behind is the number of versions by
	// which the copy is behind etcd. first is the first version that the process has read.
	read, copy, first *version
	behind            int8
	// wrote and seen are the numbers of versions by which the last version written and the last one read are behind.
	wrote, seen int8
	// dirty means that there is an event to handle; wake is the time of the next reconciliation.
	dirty bool
	wake  int64
	// braked means that the post waits for the end of a suspension.
	braked bool
	// passAt is the start of the reconciliation, by the local clock.
	passAt time.Time
	// ready lists the targets to claim, and lookups the lookups to make.
	ready   []int
	lookups []lookup
	// claimed is the result of writing the claim, and ships are its calls.
	claimed *version
	ships   []ship
	// kept holds the results that could not be written. unsent lists the attempts whose claim may be stored although
	// writing it failed.
	kept   []ship
	unsent []string
	prep   preparation
	// standby: the process only prepares. life counts its starts, since each process holds preparations under its own
	// name.
	standby bool
	life    int8
	// group is the version of the group that the process is about to claim in, or 0. groupsRead are the versions whose
	// state it knows, and groupsClosed those of them that were closed, as bits.
	group                    int8
	groupsRead, groupsClosed uint16
	// opened is the result of opening the group before the claim was stored.
	opened opening
	// known lists the published posts whose ID the process has received; see I4.
	known []ship
}

// managerSteps adds what a manager may do next, and the faults that may happen.
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
		w.uploadSteps(i, add)
	}
	switch m.pc {
	case idle:
		w.passSteps(i, add)
	case asking:
		add(i, "asks the platform", "", false, func(n *world) { n.sendLookups(i) })
		add(i, "asks without an answer", blind, false, func(n *world) { n.failLookups(i, noAnswer) })
		add(i, "asks and is refused", denied, false, func(n *world) { n.failLookups(i, noPermission) })
	case sending:
		w.sendSteps(i, add)
	case grouping, armed, takingBack:
		w.armSteps(i, add)
	case describing, resolving, tidying, entering, claiming, holding:
		w.openEarlySteps(i, add)
		name := map[counter]string{describing: "describes", resolving: "writes the resolution", tidying: "takes the annotation off", entering: "writes what it found", claiming: "claims", holding: "holds the preparation"}[m.pc]
		add(i, name, "", false, func(n *world) { n.write(i) })
		add(i, name+" (landed)", writeLost, false, func(n *world) { n.write(i); n.lostAnswer(i, m, true) })
		add(i, name+" (did not land)", writeLost, false, func(n *world) { n.lostAnswer(i, m, false) })
	case down, absent:
	}
}

// start starts a process with empty memory and the oldest possible cache.
func (m *manager) start() {
	*m = manager{pc: idle, offset: m.offset, standby: m.standby, life: m.life, wrote: forgotten, seen: forgotten, wake: never, dirty: true}
}

// kill kills a process. Its calls continue.
func (w *world) kill(i int) {
	m := &w.manager[i]
	for _, s := range m.ships {
		if s.phase == waiting {
			w.orphans = append(w.orphans, s.call)
		}
	}
	life := m.life
	if w.x.shares {
		life++
	}
	*m = manager{pc: down, offset: m.offset, standby: m.standby, life: life, wake: never, wrote: forgotten, seen: forgotten}
}

// due reports whether an idle manager has a reason to reconcile the post.
func (w *world) due(i int) bool {
	m := &w.manager[i]
	return m.dirty || m.wake != never && m.wake <= w.now
}

// busy reports whether a manager has work to do now.
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
		return w.due(i) || m.prep.running && (!w.x.shares || m.prep.limit <= w.now)
	case m.pc == armed:
		return w.opens(i)
	case m.pc == sending:
		return slices.ContainsFunc(m.ships, func(s ship) bool { return s.phase != waiting && s.phase != recorded })
	}
	return true
}

// instants calls consider with the times of a manager's next events.
func (w *world) instants(i int, consider func(int64)) {
	m := &w.manager[i]
	if m.wake != never {
		consider(m.wake)
	}
	if m.prep.running && w.x.shares {
		consider(m.prep.limit)
	}
	if m.pc == armed {
		consider(w.truly(i, t0) + dueAt)
	}
	for _, s := range m.ships {
		switch s.phase {
		case claimed:
			if a := posting.Of(m.claimed.post).Target(s.target).Attempt; a != nil {
				// The last time when it may start, and the first when it may not.
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
		consider(w.truly(i, proofAt(posting.Of(m.copy.post).Target(l.Target).Attempt, w.timing())))
	}
}

// proofAt returns the time from which absence may count. It does not depend on package attempt, because it only picks a
// time worth exploring.
func proofAt(a *v1alpha1.Attempt, t attempt.Timing) time.Time {
	from := a.SendBefore.Add(t.CallTimeout)
	if a.EndedAt != nil {
		from = a.EndedAt.Time
	}
	return from.Add(t.CallTimeout + t.ClockMargin + t.Lag)
}

// moment is everything that a reconciliation depends on in a process with empty memory.
type moment struct {
	v     *version
	local time.Time
	brake *brake
	// groupsRead and groupsClosed are what the process knows about groups.
	groupsRead, groupsClosed uint16
	// who, standby and life identify the process, if it may upload the post's files.
	who     int
	standby bool
	life    int8
}

// skipIdlePass immediately carries out a reconciliation that would only requeue the post. Its timing makes no
// difference to anything else, and exploring it would only multiply states. The process may still read an older
// version.
func (w *world) skipIdlePass(i int) {
	m := &w.manager[i]
	if m.pc != idle || m.stalled || !w.due(i) || len(m.kept)+len(m.unsent) > 0 || w.violation != nil || w.x.shares && m.prep != (preparation{}) {
		return
	}
	at := moment{v: w.etcd, local: w.local(i), brake: w.brake, groupsRead: m.groupsRead, groupsClosed: m.groupsClosed}
	if w.x.shares {
		at.who, at.standby, at.life = i, m.standby, m.life
	}
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

// passSteps adds the start of a reconciliation of the post's current or an earlier version.
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

// end ends a reconciliation and requeues the post for the given time, or never.
func (w *world) end(i int, wake int64) {
	m := &w.manager[i]
	m.pc, m.read, m.copy, m.claimed, m.ships, m.ready, m.lookups, m.passAt = idle, nil, nil, nil, nil, nil, nil, time.Time{}
	m.behind, m.wake, m.group, m.opened = 0, wake, 0, unopened
}

// conflicted ends a reconciliation after a conflict and schedules the retry.
func (w *world) conflicted(i int) { w.end(i, w.now+conflictPause) }

// conflictPause is the delay before the retry after a conflict, in milliseconds.
const conflictPause = 50

// again ends a reconciliation with an error and requeues it immediately.
func (w *world) again(i int) {
	w.end(i, never)
	w.manager[i].dirty = true
}

// write makes the manager's next write. That ends the reconciliation, unless calls follow or an annotation still has to
// be removed.
func (w *world) write(i int) {
	m := &w.manager[i]
	if m.pc == claiming {
		w.claim(i)
		return
	}
	if m.pc == tidying {
		w.removeAnnotation(i)
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
	case down, idle, describing, asking, tidying, claiming, sending, holding, grouping, armed, takingBack, absent:
	}
	switch {
	case m.copy == m.read: // nothing to write
	case w.put(i, m.copy, m.behind, w.x.broken.blindNotes && m.standby && m.pc == describing, about) != stored:
		if m.pc == holding && w.x.broken.startUnheld {
			w.prepare(i, m.ready[0])
		}
		w.conflicted(i)
		return
	}
	if m.pc == holding {
		w.prepare(i, m.ready[0])
	}
	if m.pc == resolving {
		m.pc, m.read, m.behind = tidying, m.copy, 0
		return
	}
	w.end(i, never)
}

// removeAnnotation removes the annotation of a recorded resolution.
func (w *world) removeAnnotation(i int) {
	if w.manager[i].behind != 0 {
		w.conflicted(i)
		return
	}
	w.store(w.changed(w.etcd, func(p *v1alpha1.Post) { p.Annotations = nil }))
	w.manager[i].wrote, w.manager[i].seen = 0, 0
	w.end(i, never)
}

// lostAnswer ends a reconciliation whose write got no response. before is the manager before the write. landed is
// whether the write took effect, which the process cannot know.
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
		int64(m.group), int64(m.opened), int64(m.groupsRead), int64(m.groupsClosed), bit(m.dirty), bit(m.braked), m.wake, millis(m.passAt), int64(len(m.ready)), int64(len(m.ships)), int64(len(m.kept)), int64(len(m.unsent)), int64(len(m.lookups)))
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
	k.put(int64(m.prep.container), bit(m.prep.visible), bit(m.prep.running), millis(m.prep.begunAt), bit(m.prep.failed), millis(m.prep.endedAt), m.prep.limit)
	k.put(bit(m.standby), int64(m.life))
	return k
}
