// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// phase is a call's progress.
type phase int64

const (
	// claimed: its attempt is stored. underway: its time was checked, and the connection is being made. waiting: its bytes
	// have left.
	claimed phase = iota
	underway
	waiting
	answered
	recorded
)

// ship is a claimed target with its call.
type ship struct {
	target, card int
	attempt      string
	phase        phase
	text         string
	container    int
	visible      bool
	// by is the time when the process stops waiting for the call. late means that the window was over when the call
	// started.
	by   int64
	late bool
	call call
	slow bool
	// alone means that the record cannot include a claim, since a claim is never retried.
	alone bool
	// answer is the response. post is the number of the published post or ticket.
	answer answer
	post   int
}

// claim writes attempts for the ready targets.
func (w *world) claim(i int) {
	m := &w.manager[i]
	if !w.mayClaim() {
		w.again(i)
		return
	}
	var ships []ship
	next := w.changed(m.copy, func(p *v1alpha1.Post) { ships = w.open(p, m.ready, m.passAt, m.prep, m.group) })
	if ships == nil {
		w.again(i)
		return
	}
	switch w.put(i, next, m.behind, w.x.broken.blindClaim, m.ready) {
	case stored:
		w.attempts += len(ships)
		m.copy, m.claimed, m.behind, m.pc, m.ships, m.ready, m.prep = next, next, 0, sending, ships, nil, preparation{}
		if m.group > 0 {
			w.armed(i)
		}
	case conflict:
		if w.x.broken.retryClaim {
			m.copy, m.behind = w.etcd, 0
			return
		}
		w.conflicted(i)
	case invalid:
		w.end(i, w.now+1000)
	}
}

// open records the claims of targets, in a group unless in is 0. It returns their calls, or none if a target cannot be
// claimed.
func (w *world) open(p *v1alpha1.Post, targets []int, now time.Time, prep preparation, in int8) []ship {
	claims := make([]delivery.TargetClaim, len(targets))
	for n, k := range targets {
		claims[n] = delivery.TargetClaim{Target: k, Claim: attempt.Claim{
			ID: "a" + strconv.Itoa(w.attempts+n+1), ContentHash: hashOf(p, k), AccountID: accounts["account-0"].Spec.AccountID, Window: w.x.settings.SendWindow,
		}}
		if in > 0 {
			claims[n].Group = groupName(in)
			claims[n].Window = delivery.ArmedWindow(posting.Of(p).UntilDue(now), w.x.settings.SendWindow)
		}
		if prep.container > 0 {
			claims[n].Checkpoint = strconv.Itoa(prep.container)
		}
	}
	if delivery.RecordClaims(p, claims, now) != nil {
		return nil
	}
	ships := make([]ship, len(claims))
	for n, c := range claims {
		ships[n] = ship{target: c.Target, card: int(c.Card), attempt: c.ID, container: prep.container, visible: prep.visible}
		if w.x.broken.forgetDoubt {
			posting.Of(p).Target(c.Target).Attempt.UnknownSince = nil
		}
		if w.x.broken.searchLate {
			posting.Of(p).Target(c.Target).Attempt.SearchFrom = nil
		}
	}
	return ships
}

// sendSteps adds the steps of a manager's calls and of recording them.
func (w *world) sendSteps(i int, add adder) {
	m := &w.manager[i]
	toRecord, over := false, true
	for k := range m.ships {
		switch m.ships[k].phase {
		case claimed:
			add(i, "checks the time of attempt "+m.ships[k].attempt, "", false, func(n *world) { n.check(i, k) })
		case underway:
			add(i, "sends attempt "+m.ships[k].attempt, "", false, func(n *world) { n.send(i, k) })
			add(i, "cannot send attempt "+m.ships[k].attempt, notReached, false, func(n *world) { n.answer(i, k, notSent, 0) })
		case answered:
			toRecord = true
		case waiting, recorded:
		}
		over = over && m.ships[k].phase >= answered
	}
	if !toRecord {
		return
	}
	add(i, "records", "", false, func(n *world) { n.record(i) })
	if m.behind == 0 {
		add(i, "records (landed)", writeLost, false, func(n *world) { n.recordLost(i, m) })
	}
	if w.x.chained {
		add(i, "records (did not land)", writeLost, false, func(n *world) { n.recordAlone(i) })
	}
	if over {
		add(i, "gives up recording", writeLost, false, func(n *world) { n.retainResults(i) })
	}
}

// check is the last check of the time before a call starts.
func (w *world) check(i, k int) {
	m := &w.manager[i]
	s := &m.ships[k]
	a := posting.Of(m.claimed.post).Target(s.target).Attempt
	now := w.local(i)
	switch {
	case a == nil || a.ID != s.attempt || !attempt.MaySend(a, now) && !w.x.broken.sendLate:
		w.answer(i, k, notSent, 0)
		return
	case attempt.IsArmed(a) && w.seesBrake() && !w.x.broken.callUnderBrake:
		w.answer(i, k, withheld, 0)
		return
	case s.visible:
		w.answer(i, k, twin, 0)
		return
	}
	if attempt.IsArmed(a) && w.brake != nil && w.brake.on() {
		w.failf(Brake, "the armed call of attempt %s starts while the team is suspended", s.attempt)
	}
	s.phase = underway
	s.late = !now.Before(a.SendBefore.Time)
	s.by = w.now + w.timing().CallTimeout.Milliseconds()
	from := m.claimed.post
	if w.x.broken.fromCache {
		from = m.first.post
	}
	s.text = contentOf(from, s.target)
	if s.container > 0 {
		s.text = w.containers[s.container-1].text
	}
}

// send sends the bytes of a call, unless the call has timed out.
func (w *world) send(i, k int) {
	s := &w.manager[i].ships[k]
	if w.now >= s.by && !w.x.beyond.sleeper {
		w.answer(i, k, notSent, 0)
		return
	}
	w.checkSent(i, s)
	w.sent = append(w.sent, s.attempt)
	s.phase = waiting
	s.call = call{s.attempt, s.target, s.card, s.text, s.container, w.now + w.timing().CallTimeout.Milliseconds() + w.x.beyond.work}
}

// answer ends a call for the process that made it.
func (w *world) answer(i, k int, a answer, post int) {
	if a == lost && w.x.broken.lostIsNo {
		a = later
	}
	s := &w.manager[i].ships[k]
	*s = ship{target: s.target, card: s.card, attempt: s.attempt, phase: answered, answer: a, post: post, alone: s.alone}
	if a == yes || a == took {
		w.manager[i].known = append(slices.Clone(w.manager[i].known), *s)
	}
}

// record writes the results of calls to the post that was reconciled. After a conflict the post is read again, and the
// next step retries the write.
func (w *world) record(i int) {
	m := &w.manager[i]
	next, about, chained := w.entered(i)
	switch w.put(i, next, m.behind, w.x.broken.blindRecord, about) {
	case stored:
	case conflict, invalid:
		m.copy, m.behind = w.etcd, 0
		w.recordAlone(i)
		return
	}
	m.copy, m.behind = next, 0
	for k := range m.ships {
		if m.ships[k].phase == answered {
			m.ships[k] = ship{target: m.ships[k].target, attempt: m.ships[k].attempt, phase: recorded}
		}
	}
	if len(chained) > 0 {
		w.attempts += len(chained)
		m.claimed = next
		m.ships = append(m.ships, chained...)
	}
	if !slices.ContainsFunc(m.ships, func(s ship) bool { return s.phase != recorded }) {
		w.end(i, never) // the process's own write requeues the post
	}
}

// recordAlone lets the current calls be recorded without a claim.
func (w *world) recordAlone(i int) {
	for k := range w.manager[i].ships {
		w.manager[i].ships[k].alone = true
	}
}

// entered returns the post with the results so far and, if the same write includes it, the claim of the tree's next
// card.
func (w *world) entered(i int) (next *version, about []int, chained []ship) {
	m := &w.manager[i]
	now := w.local(i)
	next = w.changed(m.copy, func(p *v1alpha1.Post) {
		var results []delivery.Result
		var cards []int
		for _, s := range m.ships {
			if s.phase != answered {
				continue
			}
			about = append(about, s.target)
			if r, enter := w.misreported(p, s, now); enter {
				results = append(results, r)
			}
			if s.answer == yes && s.card+1 < posting.Of(p).Cards() && !s.alone {
				cards = append(cards, s.target)
			}
		}
		// Results that come too late have no effect.
		_ = delivery.RecordResults(p, results, w.deadlines(), now)
		if w.x.broken.believeRefusal {
			w.believe(p, now)
		}
		if w.x.chained && len(cards) > 0 && w.mayGoOn() {
			chained = w.open(p, cards, now, preparation{}, 0)
		}
	})
	return next, about, chained
}

// believe closes refused attempts as after a lookup that found nothing.
func (w *world) believe(p *v1alpha1.Post, now time.Time) {
	for k := range p.Status.Targets {
		if attempt.IsRefused(p.Status.Targets[k].Attempt) {
			asked := now.Add(time.Minute)
			must(delivery.RecordLookup(p, &delivery.LookupAnswer{Target: k, AskedAt: asked}, w.timing(), w.deadlines(), now))
		}
	}
	describe(p)
}

// result returns the result of a call as it is recorded.
func (s ship) result() delivery.Result {
	return delivery.Result{Target: s.target, Attempt: s.attempt, Result: s.answer.result(s.post)}
}

// misreported returns a result as a manager that breaks rules would record it. If enter is false, it is not recorded.
func (w *world) misreported(p *v1alpha1.Post, s ship, now time.Time) (r delivery.Result, enter bool) {
	t := posting.Of(p).Target(s.target)
	switch {
	case w.x.broken.nextCardEarly && s.answer == yes && s.card+1 < posting.Of(p).Cards():
		t.Attempt = &v1alpha1.Attempt{Number: t.Attempt.Number + 1, ID: "early", Card: int32(s.card + 1), StartedAt: v1alpha1.NewTime(now), SendBefore: v1alpha1.NewTime(now)}
		return r, false
	case w.x.broken.forgetPost && s.answer == yes:
		return r, false
	case w.x.broken.forgetName && s.answer == took:
		s.answer = lost
	}
	if w.x.broken.recordAnyway && t.Attempt != nil {
		s.attempt = t.Attempt.ID
	}
	if w.x.broken.otherTarget {
		w.intrude(p, s, now)
	}
	return s.result(), true
}

// intrude also records a result in the entries of the other targets.
func (w *world) intrude(p *v1alpha1.Post, s ship, now time.Time) {
	for k := range p.Status.Targets {
		if t := &p.Status.Targets[k]; k != s.target && t.Attempt != nil {
			_ = attempt.Record(t, t.Attempt.ID, s.answer.result(s.post), posting.Of(p).Cards(), now)
		}
	}
}

// recordLost is a record that is stored but gets no response; the write is retried.
func (w *world) recordLost(i int, before *manager) {
	m := &w.manager[i]
	next, about, chained := w.entered(i)
	if w.put(i, next, m.behind, false, about) != stored {
		return
	}
	w.attempts += len(chained)
	for _, s := range chained {
		m.unsent = append(m.unsent, s.attempt)
	}
	w.recordAlone(i)
	m.behind, m.wrote, m.seen = 1, min(before.wrote+1, forgotten), min(before.seen+1, forgotten)
}

// retainResults ends a reconciliation whose results could not be written for a long time. They stay in memory.
func (w *world) retainResults(i int) {
	m := &w.manager[i]
	for _, s := range m.ships {
		if s.phase == answered && !w.x.broken.forgetResult {
			s.alone = true // the next reconciliation makes no claim at the same time
			m.kept = append(m.kept, s)
		}
	}
	w.again(i)
}
