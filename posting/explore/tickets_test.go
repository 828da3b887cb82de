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

// workTime is the time that the platform needs to process a call that it has accepted, in milliseconds. Several lookups
// fall within that time.
const workTime = 2000

// ticket is an accepted call that the platform processes under an operation ID. It is not visible until it is
// published, and no listing contains it.
type ticket struct {
	call call
	// limit is the time when the platform finishes processing, or never.
	limit int64
	// post is the number of the published post, and gave is the platform's response about an abandoned one.
	post int
	gave answer
}

func (t ticket) working() bool { return t.post == 0 && t.gave == none }

// ticketName returns the operation ID of the ticket with this number, counted from 1.
func ticketName(n int) string { return "h" + strconv.Itoa(n) }

// number parses the number in one of the model's names.
func number(name string) int {
	n, err := strconv.Atoi(name)
	must(err)
	return n
}

// accept accepts a call and returns its ticket number.
func (w *world) accept(c call) int {
	w.tickets = append(w.tickets, ticket{call: c, limit: w.now + workTime})
	return len(w.tickets)
}

// answerProcessing is the response that the platform is processing a call, or that this response is lost.
func (w *world) answerProcessing(i, k int, a answer) {
	n := w.accept(w.manager[i].ships[k].call)
	if a != took {
		n = 0
	}
	w.answer(i, k, a, n)
}

// ticketSteps adds what may become of tickets.
func (w *world) ticketSteps(add adder) {
	for i, t := range w.tickets {
		if !t.working() {
			continue
		}
		name := "the platform publishes " + ticketName(i+1)
		add(nobody, name, "", t.limit == never, func(n *world) { n.tickets[i].post = n.land(t.call, true) })
		name = "the platform gives up " + ticketName(i+1)
		add(nobody, name+" permanently", givesUp, false, func(n *world) { n.tickets[i].gave = no })
		add(nobody, name+" for the moment", givesUp, false, func(n *world) { n.tickets[i].gave = later })
		if t.limit != never {
			add(nobody, "the platform works for ever on "+ticketName(i+1), endless, false, func(n *world) { n.tickets[i].limit = never })
		}
	}
}

// ticketTime calls consider with the time when the platform finishes each open ticket. It returns false as soon as it
// finds one that is already due.
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

// atWork reports whether the platform is processing any ticket.
func (w *world) atWork() bool { return slices.ContainsFunc(w.tickets, ticket.working) }

// answerTicket sets the platform's response about a ticket.
func (w *world) answerTicket(name string, l *lookup) {
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

// answerUnnamed sets the platform's response to a lookup of an attempt's call without the operation ID.
func (w *world) answerUnnamed(attemptID string, l *lookup) {
	i := slices.IndexFunc(w.tickets, func(t ticket) bool { return t.call.attempt == attemptID })
	switch {
	case i < 0, w.tickets[i].working() && w.x.broken.workIsAbsence:
		l.Proof = true
	case w.tickets[i].working():
		l.OperationID = ticketName(i + 1)
	default:
		w.answerTicket(ticketName(i+1), l)
	}
}

// operationIDStored reports whether an operation ID that was received is stored, or is no longer needed because its
// attempt is settled or superseded.
func (w *world) operationIDStored(call ship) bool {
	a := posting.Of(w.etcd.post).Target(call.target).Attempt
	return a == nil || a.ID != call.attempt || a.OperationID == ticketName(call.post) ||
		!attempt.IsOpen(a) && a.Outcome != v1alpha1.OutcomeUnknown
}

// named reports whether a write reopens an attempt for lookups with the platform's operation ID.
func named(o, n *v1alpha1.Attempt) bool {
	return o != nil && o.ID == n.ID && o.Outcome == v1alpha1.OutcomeUnknown && attempt.IsOpen(n) && o.OperationID == "" && n.OperationID != ""
}
