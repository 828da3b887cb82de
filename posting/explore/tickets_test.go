// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strconv"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// workTime is for how long a platform works on what it has taken, in
// milliseconds: a few looks find it at work.
const workTime = 2000

// ticket is what a platform has taken, and works on under a name. Nobody sees
// it before it is published, and no listing ever shows it.
type ticket struct {
	call call
	// limit is by when the platform has done with it; never if it works for ever.
	limit int64
	// post is the number of what was published, and gave what the platform says
	// of a post that it gave up.
	post int
	gave answer
}

func (t ticket) working() bool { return t.post == 0 && t.gave == none }

// ticketName is what the platform calls the ticket with a number, counted from 1.
func ticketName(n int) string { return "h" + strconv.Itoa(n) }

// number is what a name of the model counts.
func number(name string) int {
	n, err := strconv.Atoi(name)
	must(err)
	return n
}

// take lets the platform take a call, and returns the number of its ticket.
func (w *world) take(c call) int {
	w.tickets = append(w.tickets, ticket{call: c, limit: w.now + workTime})
	return len(w.tickets)
}

// taken is the answer that the platform works on a call, or its loss.
func (w *world) taken(i, k int, a answer) {
	n := w.take(w.manager[i].ships[k].call)
	if a != took {
		n = 0
	}
	w.answer(i, k, a, n)
}

// ticketSteps are what becomes of what the platform works on.
func (w *world) ticketSteps(add adder) {
	for i, t := range w.tickets {
		if !t.working() {
			continue
		}
		name := "the platform publishes " + ticketName(i+1)
		add(nobody, name, "", t.limit == never, func(n *world) { n.tickets[i].post = n.land(t.call, true) })
		name = "the platform gives up " + ticketName(i+1)
		add(nobody, name+" for good", givesUp, false, func(n *world) { n.tickets[i].gave = no })
		add(nobody, name+" for the moment", givesUp, false, func(n *world) { n.tickets[i].gave = later })
		if t.limit != never {
			add(nobody, "the platform works for ever on "+ticketName(i+1), endless, false, func(n *world) { n.tickets[i].limit = never })
		}
	}
}

// ticketTime names the instants at which the platform has done with something.
// It reports false if it has to be done with something now.
func (w *world) ticketTime(consider func(int64)) bool {
	for _, t := range w.tickets {
		if !t.working() || t.limit == never {
			continue
		}
		if t.limit <= w.now {
			return false
		}
		consider(t.limit)
	}
	return true
}

// atWork reports whether the platform works on anything.
func (w *world) atWork() bool { return slices.ContainsFunc(w.tickets, ticket.working) }

// told is what the platform says of a ticket that it is asked about.
func (w *world) told(name string, l *lookup) {
	switch t := w.tickets[number(name[1:])-1]; {
	case t.post > 0:
		l.Matches, l.ExternalID = 1, externalID(t.post)
	case t.gave != none:
		l.gave = t.gave
	case w.x.broken.workIsAbsence:
		l.Proof = true
	default:
		l.Err = noAnswer
	}
}

// toldUnnamed is what the platform says of the call of an attempt to whoever does not know
// the name that it gave that.
func (w *world) toldUnnamed(attemptID string, l *lookup) {
	i := slices.IndexFunc(w.tickets, func(t ticket) bool { return t.call.attempt == attemptID })
	switch {
	case i < 0, w.tickets[i].working() && w.x.broken.workIsAbsence:
		l.Proof = true
	case w.tickets[i].working():
		l.OperationID = ticketName(i + 1)
	default:
		w.told(ticketName(i+1), l)
	}
}

// nameWritten reports whether the name that a process has learnt is stored, or
// is of no use any more: its attempt was settled, or another has taken its place.
func (w *world) nameWritten(s ship) bool {
	a := posting.Target(w.etcd.post, s.target).Attempt
	return a == nil || a.ID != s.attempt || a.OperationID == ticketName(s.post) ||
		!attempt.IsOpen(a) && a.Outcome != v1alpha1.OutcomeUnknown
}

// named reports whether a write opens an attempt again to be asked about by the
// name that the platform gave it.
func named(o, n *v1alpha1.Attempt) bool {
	return o != nil && o.ID == n.ID && o.Outcome == v1alpha1.OutcomeUnknown && attempt.IsOpen(n) && o.OperationID == "" && n.OperationID != ""
}
