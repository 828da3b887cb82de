// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Rule is an invariant. docs/adr/0001 defines the first seven.
type Rule string

// The rules.
const (
	// I1: no byte of a call leaves a process before its attempt is stored and the process knows that. The call sends
	// the content of the stored post, and the post was not cancelled.
	I1 Rule = "I1"
	// I2: an attempt has at most one call, and attempt numbers increase.
	I2 Rule = "I2"
	// I3: before a new attempt, the previous one was closed correctly: its call was not published and can no longer be. A
	// new attempt may follow one with an unknown outcome only if the post allows a resend. So nothing is published twice.
	I3 Rule = "I3"
	// I4: an external ID that a process has received is stored, or is kept in memory until it is. It identifies the
	// published post and never changes. The same goes for an operation ID, until the attempt is settled.
	I4 Rule = "I4"
	// I5: no call starts after its window, and nothing is looked up during the call.
	I5 Rule = "I5"
	// I6: an outcome that cannot be determined fails with the reason OutcomeUnknown and says how to answer, and only an
	// answer changes it. If the post allows a resend, this applies to the final failure.
	I6 Rule = "I6"
	// I7: a write about one target does not change the facts about others.
	I7 Rule = "I7"
	// Schema: the API server accepts every written status.
	Schema Rule = "schema"
	// Lost: in a final state, every target is posted, failed or cancelled, and the platform agrees. Every schedule
	// reaches a final state.
	Lost Rule = "lost"
)

// violation is a violated rule with its details.
type violation struct {
	rule Rule
	why  string
}

func (w *world) failf(rule Rule, format string, args ...any) {
	if w.violation == nil {
		w.violation = &violation{rule, fmt.Sprintf(format, args...)}
	}
}

// checkSent is called when the bytes of a call leave a process.
func (w *world) checkSent(who int, s *ship) {
	m := &w.manager[who]
	if s.late {
		w.failf(I5, "the call of attempt %s was begun after its window", s.attempt)
	}
	if slices.Contains(w.sent, s.attempt) {
		w.failf(I2, "attempt %s was sent before", s.attempt)
	}
	if n, err := strconv.Atoi(s.attempt[1:]); err != nil || n > w.attempts {
		w.failf(I1, "attempt %s is not stored", s.attempt)
	}
	if slices.Contains(m.unsent, s.attempt) {
		w.failf(I1, "the process does not know that attempt %s is stored", s.attempt)
	}
	w.checkGroup(who, s)
	if posting.Of(w.etcd.post).Cancelled() {
		w.failf(I1, "the post is cancelled, and attempt %s is sent", s.attempt)
	}
	if s.container > 0 && w.containers[s.container-1].partial {
		w.failf(Upload, "attempt %s publishes upload %d, which is not complete", s.attempt, s.container)
	}
	post := m.claimed.post
	if posting.Of(post).Cancelled() {
		w.failf(I1, "the post was cancelled before attempt %s was stored", s.attempt)
	}
	if want := contentOf(post, s.target); s.text != want {
		w.failf(I1, "attempt %s sends %q, but %q was claimed", s.attempt, s.text, want)
	}
	for _, o := range m.ships {
		if o.target == s.target && o.phase == answered && o.answer == yes {
			w.failf(I4, "attempt %s is sent before %s is written", s.attempt, externalID(o.post))
		}
	}
}

// checkLanded is called when a post becomes visible.
func (w *world) checkLanded(c call) {
	twice, same := 0, 0
	for _, p := range w.posts {
		if p.target == c.target && p.card == c.card {
			twice++
		}
		if p.attempt == c.attempt {
			same++
		}
	}
	if same > 1 {
		w.failf(I2, "attempt %s was published %d times", c.attempt, same)
	}
	allowed := 1
	if w.x.policy == v1alpha1.OnUnknownRetry {
		allowed += w.unknowns[c.target]
	}
	if twice > allowed {
		w.failf(I3, "target %d, card %d was published %d times", c.target, c.card, twice)
	}
}

// checkAsked is called when a target's call is looked up.
func (w *world) checkAsked(post *v1alpha1.Post, target int) {
	a := posting.Of(post).Target(target).Attempt
	for i := range w.manager {
		for _, s := range w.manager[i].ships {
			if s.attempt == a.ID && (s.phase == underway || s.phase == waiting) && s.by > w.now && w.manager[i].pc == sending {
				w.failf(I5, "attempt %s is looked for while manager %d is in the middle of its call", a.ID, i)
			}
		}
	}
}

// checkWrite is called after a manager's status write.
func (w *world) checkWrite(who int, before, after *v1alpha1.Post, about []int) {
	for i := range after.Status.Targets {
		n := &after.Status.Targets[i]
		o := posting.Of(before).Target(int(n.Index))
		if o == nil {
			o = &v1alpha1.TargetStatus{Index: n.Index}
		}
		w.checkTarget(before, o, n)
		w.checkBraked(who, o, n, n.Attempt != nil && (o.Attempt == nil || o.Attempt.ID != n.Attempt.ID))
		if !slices.Contains(about, int(n.Index)) && facts(o) != facts(n) {
			w.failf(I7, "manager %d changed target %d while it wrote about %v", who, n.Index, about)
		}
	}
}

// facts formats those facts about a target that writes about other targets must not change.
func facts(t *v1alpha1.TargetStatus) string {
	if t.Attempt == nil {
		return t.ExternalID
	}
	return fmt.Sprint(t.ExternalID, len(t.Cards), t.Attempt.ID, t.Attempt.Outcome, t.Attempt.EndedAt, t.Attempt.Lookups, t.Attempt.OperationID)
}

func (w *world) checkTarget(before *v1alpha1.Post, o, n *v1alpha1.TargetStatus) {
	i := int(n.Index)
	if o.ExternalID != "" && n.ExternalID != o.ExternalID {
		w.failf(I4, "target %d: %s became %q", i, o.ExternalID, n.ExternalID)
	}
	if n.ExternalID != "" && n.ExternalID != o.ExternalID && !w.isOut(i, 0, n.ExternalID) {
		w.failf(I4, "target %d has no post %s", i, n.ExternalID)
	}
	for c := len(o.Cards); c < len(n.Cards); c++ {
		if !w.isOut(i, c, n.Cards[c].ExternalID) {
			w.failf(I4, "target %d has no card %d named %s", i, c, n.Cards[c].ExternalID)
		}
	}
	if n.Attempt == nil {
		return
	}
	if o.Attempt == nil || o.Attempt.ID != n.Attempt.ID {
		w.checkOpened(before, o, n)
	}
	opened := o.Attempt == nil || o.Attempt.ID != n.Attempt.ID || o.Attempt.Outcome != n.Attempt.Outcome
	_, answered := before.Annotations[v1alpha1.SettleAnnotation]
	if answered && attempt.Undecided(o) && !attempt.Undecided(n) {
		w.inDoubt[i] = false
	}
	if named(o.Attempt, n.Attempt) {
		w.unknowns[i]--
		w.inDoubt[i], answered = false, true
	}
	if w.x.keyed && (attempt.Undecided(n) || n.Attempt.Outcome == v1alpha1.OutcomeUnknown) {
		w.failf(I6, "target %d is left to a user, although its key settles the outcome", i)
	}
	if n.Attempt.Outcome == v1alpha1.OutcomeUnknown && opened {
		w.unknowns[i]++
		w.inDoubt[i] = true
	}
	if w.inDoubt[i] && (attempt.Settled(n) && !attempt.Posted(n) || n.Attempt.Outcome == v1alpha1.OutcomeUnknown && w.x.policy != v1alpha1.OnUnknownRetry) {
		w.checkHandedOver(n)
	}
	if attempt.Undecided(o) && !attempt.Undecided(n) && !attempt.Posted(n) && !answered && len(n.Cards) == len(o.Cards) {
		w.failf(I6, "target %d continues although its outcome was not declared", i)
	}
}

// checkHandedOver checks that the message of an undecided target says how to answer.
func (w *world) checkHandedOver(t *v1alpha1.TargetStatus) {
	if !attempt.Undecided(t) || t.Reason != v1alpha1.ReasonOutcomeUnknown || !strings.Contains(t.Message, v1alpha1.SettleAnnotation) {
		w.failf(I6, "target %d has an unknown outcome and is %s (%s): %q", t.Index, t.State, t.Reason, t.Message)
	}
}

// checkOpened checks that a new attempt follows a correctly closed one.
func (w *world) checkOpened(before *v1alpha1.Post, o, n *v1alpha1.TargetStatus) {
	id := n.Attempt.ID
	if posting.Of(before).Cancelled() {
		w.failf(I1, "attempt %s is stored in a cancelled post", id)
	}
	prev := o.Attempt
	if prev == nil {
		return
	}
	if n.Attempt.Number <= prev.Number {
		w.failf(I2, "attempt %s has number %d after %d", id, n.Attempt.Number, prev.Number)
	}
	switch prev.Outcome {
	case v1alpha1.OutcomePosted:
		if int(n.Attempt.Card) != len(o.Cards) || len(o.Cards) == 0 {
			w.failf(I3, "attempt %s follows one that is posted", id)
		}
	case v1alpha1.OutcomeUnknown:
		if w.x.policy != v1alpha1.OnUnknownRetry {
			w.failf(I3, "attempt %s follows one of unknown outcome", id)
		}
	case v1alpha1.OutcomeRefused, v1alpha1.OutcomeNotSent, v1alpha1.OutcomeAbsent:
		// Under the same key, both calls create the same post.
		if why := w.mayStillBe(prev.ID); why != "" && !w.isBelieved(prev.Outcome) && !w.x.keyed {
			w.failf(I3, "attempt %s follows %s, which was closed as %s: %s", id, prev.ID, prev.Outcome, why)
		}
	default:
		// The same write may have closed the attempt, as it does when a tree continues.
		if len(n.Cards) <= len(o.Cards) || int(n.Attempt.Card) != len(n.Cards) {
			w.failf(I3, "attempt %s follows %s, which is open", id, prev.ID)
		}
	}
}

// isBelieved reports whether a call may follow one that took effect: its refusal was confirmed because the listing took
// longer than its lag, and the platform rejects duplicates.
func (w *world) isBelieved(outcome v1alpha1.AttemptOutcome) bool {
	return outcome == v1alpha1.OutcomeRefused && w.x.dedupes && w.x.beyond.lag > 0
}

// mayStillBe returns how an attempt's call took effect or still may, or "" if it did not and cannot.
func (w *world) mayStillBe(id string) string {
	for n, p := range w.posts {
		if p.attempt == id {
			return "it is out there as " + externalID(n+1)
		}
	}
	for _, c := range w.orphans {
		if c.attempt == id {
			return "the platform still has its call"
		}
	}
	for n, t := range w.tickets {
		if t.call.attempt == id && t.working() {
			return "the platform works on it as " + ticketName(n+1)
		}
	}
	for i := range w.manager {
		for _, s := range w.manager[i].ships {
			if s.attempt == id && (s.phase == waiting || s.phase == underway && (w.now < s.by || w.x.beyond.sleeper)) {
				return fmt.Sprintf("manager %d is still sending it", i)
			}
		}
	}
	return ""
}

// isOut reports whether a platform ID identifies a target's published post.
func (w *world) isOut(target, card int, id string) bool {
	for n, p := range w.posts {
		if p.target == target && p.card == card && externalID(n+1) == id {
			return true
		}
	}
	return false
}

// checkHeld checks that an external ID or operation ID stays in the process's memory until it is stored.
func (w *world) checkHeld() {
	for i := range w.manager {
		m := &w.manager[i]
		m.known = slices.DeleteFunc(slices.Clone(m.known), w.isWritten)
		for _, k := range m.known {
			same := func(s ship) bool { return s.attempt == k.attempt && s.post == k.post }
			if m.pc != down && !slices.ContainsFunc(m.ships, same) && !slices.ContainsFunc(m.kept, same) && w.x.policy != v1alpha1.OnUnknownRetry {
				w.failf(I4, "manager %d knew the outcome of attempt %s (%s, %d) and forgot it unwritten", i, k.attempt, k.answer, k.post)
			}
		}
	}
}

func (w *world) isWritten(s ship) bool {
	if s.answer == took {
		return w.operationIDStored(s)
	}
	t := posting.Of(w.etcd.post).Target(s.target)
	if t == nil {
		return false
	}
	if w.etcd.post.Spec.Tree == nil {
		return t.ExternalID == externalID(s.post)
	}
	return slices.ContainsFunc(t.Cards, func(c v1alpha1.CardStatus) bool { return c.ExternalID == externalID(s.post) })
}

// checkEnd is called for a final state.
func (w *world) checkEnd() {
	post := w.etcd.post
	if !posting.Of(post).AllSettled() && posting.Of(post).Phase() != v1alpha1.PhaseCancelled {
		w.failf(Lost, "the post stays %s", post.Status.Phase)
		return
	}
	for i := range post.Spec.Targets {
		t := posting.Of(post).Target(i)
		if w.x.undisturbed && t != nil && t.State == v1alpha1.TargetFailed {
			w.failf(Lost, "target %d has failed, although nothing was in its way: %s", i, t.Message)
		}
		out := make([]int, max(posting.Of(post).Cards(), 1))
		for _, p := range w.posts {
			if p.target == i {
				out[p.card]++
			}
		}
		for n, k := range w.tickets {
			if k.call.target == i && k.working() && !attempt.Undecided(t) {
				w.failf(Lost, "target %d is settled, and the platform still works on it as %s", i, ticketName(n+1))
			}
		}
		// Each record has a published post; see I4.
		done := 0
		switch {
		case t == nil || t.State == v1alpha1.TargetWithdrawn:
		case attempt.Posted(t):
			done = len(out)
		default:
			done = len(t.Cards)
		}
		for c, n := range out {
			if c < done && n == 0 {
				w.failf(Lost, "target %d is %s, but card %d is not out there", i, t.State, c)
			}
			if c >= done && n > 0 && !attempt.Undecided(t) {
				w.failf(Lost, "target %d is not posted, but card %d is out there", i, c)
			}
		}
	}
}
