// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/binary"
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
	// judging writes a person's verdict, tidying takes its annotation off.
	judging
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
	// copy is the post as the pass has it; behind is how many versions it is
	// behind etcd. first is what it said when the process first read it.
	copy, first *version
	behind      int8
	// wrote and seen are how far behind the last version is that the process
	// wrote, and read.
	wrote, seen int8
	// dirty is set when an event is on its way; wake is when the post comes back
	// by itself.
	dirty bool
	wake  int64
	// ready are the targets to be claimed, as of a time by the local clock.
	ready    []int
	openedAt int64
	// claimed is what the claim's write returned, and ships are its calls;
	// recovers says that they are those of an earlier pass.
	claimed  *version
	ships    []ship
	recovers bool
	// looks are the targets that are looked for.
	lookups []look
	// kept are results that could not be written; unsent are attempts whose
	// claim may have landed although its write failed.
	kept   []ship
	unsent []string
	prep   preparation
	// known are the published posts whose id the process has learnt; see I4.
	known []ship
}

// preparation is what one target's next call makes visible.
type preparation struct {
	hash string
	// container is its number; doubt says that it is visible already.
	container int
	doubt     bool
	running   bool
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
		add(i, "asks in vain", blind, false, func(n *world) { n.askInVain(i) })
	case sending:
		w.sendSteps(i, add)
	case describing, judging, tidying, entering, claiming:
		name := map[counter]string{describing: "describes", judging: "writes the verdict", tidying: "takes the annotation off", entering: "writes what it found", claiming: "claims"}[m.pc]
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
		consider(w.truly(i, proofAt(posting.Target(m.copy.post, l.target).Attempt, w.timing())))
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
	at := moment{w.etcd, w.local(i)}
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

// end ends a pass; the post comes back after a while, never or at once.
func (w *world) end(i int, after time.Duration) {
	m := &w.manager[i]
	m.pc, m.copy, m.claimed, m.ships, m.ready, m.lookups, m.recovers, m.openedAt = idle, nil, nil, nil, nil, nil, false, 0
	m.behind, m.wake = 0, never
	if after > 0 {
		m.wake = w.now + after.Milliseconds()
	}
}

// again ends a pass with an error: it is made again at once.
func (w *world) again(i int) {
	w.end(i, 0)
	w.manager[i].dirty = true
}

// begin is the start of Reconcile and of sync.
func (w *world) begin(i int, v *version, behind int8) {
	m := &w.manager[i]
	m.dirty, m.wake, m.seen = behind > 0, never, behind
	if m.first == nil && w.x.broken.fromCache {
		m.first = v
	}
	if behind > m.wrote && !w.x.broken.noStaleness {
		w.end(i, 0)
		return
	}
	m.copy, m.behind = v, behind
	m.recall()
	if len(m.ships) > 0 {
		m.pc, m.claimed, m.recovers = sending, v, true
		return
	}
	if value, ok := v.post.Annotations[v1alpha1.SettleAnnotation]; ok {
		w.judge(i, value)
		return
	}
	w.decide(i)
}

// recall finds what the process knows of open attempts; they leave its memory.
func (m *manager) recall() {
	for i := range m.copy.post.Status.Targets {
		t := &m.copy.post.Status.Targets[i]
		if t.Attempt == nil {
			continue
		}
		id, open := t.Attempt.ID, attempt.IsOpen(t.Attempt)
		if k := slices.IndexFunc(m.kept, func(s ship) bool { return s.attempt == id }); k >= 0 {
			if s := m.kept[k]; open || attempt.EndsUnknown(t.Attempt, s.answer.result(s.post), posting.Cards(&m.copy.post.Spec)) {
				m.ships = append(m.ships, s)
			}
			m.kept = slices.Delete(m.kept, k, k+1)
		} else if k := slices.Index(m.unsent, id); k >= 0 && open {
			m.ships = append(m.ships, ship{target: i, card: int(t.Attempt.Card), attempt: id, phase: answered, answer: neverClaimed})
			m.unsent = slices.Delete(m.unsent, k, k+1)
		}
	}
}

func (w *world) judge(i int, value string) {
	m := &w.manager[i]
	resolutions, err := attempt.ParseResolutions(value)
	if err != nil {
		panic(err)
	}
	now := w.local(i)
	next := w.changed(m.copy, func(p *v1alpha1.Post) {
		for _, v := range resolutions {
			// One that was entered before is refused, which is as it should be.
			_ = attempt.Resolve(posting.Target(p, int(v.Index)), v, posting.Cards(&p.Spec), now.Add(w.x.deadline), now)
		}
		describe(p)
	})
	m.pc = judging
	if next == m.copy {
		m.pc = tidying
	}
	m.copy = next
}

// decide is the switch of sync, without what leads to no call: drafts, rules
// that a post breaks, deletions.
func (w *world) decide(i int) {
	m := &w.manager[i]
	now := w.local(i)
	post := m.copy.post
	switch {
	case posting.Started(post):
		w.deliver(i)
	case post.Status.Finished:
		w.end(i, 0)
	case post.Spec.Cancelled:
		w.describeAnd(i, 0, func(*v1alpha1.Post) {})
	case posting.Wait(post, now) > 0:
		w.describeAnd(i, max(posting.Wait(post, now), time.Millisecond), noteTargets)
	default:
		w.deliver(i)
	}
}

// describeAnd writes what changed, if anything did, and ends the pass.
func (w *world) describeAnd(i int, after time.Duration, change func(*v1alpha1.Post)) {
	m := &w.manager[i]
	next := w.changed(m.copy, func(p *v1alpha1.Post) { change(p); describe(p) })
	if next == m.copy {
		w.end(i, after)
		return
	}
	m.copy, m.pc = next, describing
	m.wake = never
	if after > 0 {
		m.wake = w.now + after.Milliseconds()
	}
}

// key identifies a manager's state.
func (m *manager) key() []byte {
	var buf []byte
	put := func(values ...int64) {
		for _, v := range values {
			buf = binary.AppendVarint(buf, v)
		}
	}
	text := func(s string) {
		put(int64(len(s)))
		buf = append(buf, s...)
	}
	put(int64(m.pc), bit(m.stalled), m.offset, m.copy.number(), m.first.number(), m.claimed.number(), int64(m.behind), int64(m.wrote), int64(m.seen),
		bit(m.dirty), m.wake, m.openedAt, bit(m.recovers), int64(len(m.ready)), int64(len(m.ships)), int64(len(m.kept)), int64(len(m.unsent)), int64(len(m.lookups)))
	for _, r := range m.ready {
		put(int64(r))
	}
	for _, s := range append(slices.Clone(m.ships), m.kept...) {
		text(s.attempt)
		text(s.text)
		text(string(s.answer))
		put(int64(s.target), int64(s.card), int64(s.phase), int64(s.container), bit(s.doubt), s.by, bit(s.slow), int64(s.post), s.call.limit, bit(s.late), bit(s.alone))
	}
	for _, u := range m.unsent {
		text(u)
	}
	for _, l := range m.lookups {
		text(l.id + string(l.gave))
		put(int64(l.target), int64(l.matches), bit(l.proof), bit(l.failed))
	}
	text(m.prep.hash)
	put(int64(m.prep.container), bit(m.prep.doubt), bit(m.prep.running))
	return buf
}
