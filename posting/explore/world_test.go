// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explore visits every interleaving, within bounds, of what can happen to a post: two concurrent managers, a
// cancellation, an edit, stale reads, crashes between any two steps, lost responses to writes and calls, stalls and
// clock skew. Decisions and records are the real code in package delivery. Only the environment is modeled: etcd
// (object_test.go), a platform (platform_test.go and tickets_test.go), and a reconciler (manager_test.go, pass_test.go
// and sending_test.go) in place of controllers/post.
//
// After each step, the invariants of docs/adr/0001 are checked (invariants_test.go). Every final state must be settled
// and no schedule may contain a cycle, so nothing is lost. mutations_test.go breaks one rule at a time and checks that
// this is detected.
package explore

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
)

// t0 is the start of the model. Later times are in milliseconds, by a correct clock like the platform's.
var t0 = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

const (
	never    = int64(-1)
	managers = 2
	// depth is the number of versions by which a stale read may be behind.
	depth = 2
	// forgotten is a version that is too old to be read.
	forgotten = depth + 1
)

// fault is an injected fault. Each counts toward the scenario's limit.
type fault string

// The faults.
const (
	crash      fault = "the process is killed"
	stall      fault = "the process stalls"
	stale      fault = "the cache is behind"
	writeLost  fault = "the answer to a write is lost"
	answerLost fault = "the answer of the platform is lost"
	notReached fault = "the platform cannot be reached"
	busy       fault = "the platform refuses for the moment"
	refusal    fault = "the platform refuses permanently"
	duplicate  fault = "the platform reports the post as a duplicate"
	slow       fault = "the platform is slow"
	blind      fault = "the platform does not respond to lookups"
	// lies: the call takes effect, but the platform responds with an error.
	lies fault = "the platform publishes and refuses"
	// denied: the platform refuses to list the account's posts.
	denied      fault = "the platform refuses the question"
	givesUp     fault = "the platform gives up an accepted post"
	endless     fault = "the platform works for ever"
	clockJump   fault = "the clock jumps"
	uploadFails fault = "the upload fails"
	// removed and putBack happen to the group of a crowd: its object is deleted, or an old copy of it is applied.
	removed fault = "the group is removed"
	putBack fault = "an old copy of the group is applied"
)

// world is one model state. Every step copies it.
type world struct {
	x *explorer

	now  int64
	etcd *version
	// past holds the previous versions, latest first.
	past    []*version
	manager [managers]manager

	orphans    []call
	posts      []published
	containers []container
	tickets    []ticket

	// left is the number of faults that may still happen.
	left                     int
	mayCancel, mayEdit, asks bool
	// brake is the suspension of the post's team, or nil if it is never suspended. pulls is the number of times that it
	// may still be suspended. heldFrom is the time when held was last updated, and held is the total time for which the
	// post was suspended.
	brake          *brake
	pulls          int
	heldFrom, held int64
	// group is the object that a group of the crowd is stored in.
	group group
	// elections is the number of times that the second manager may still begin to lead.
	elections int
	// attempts counts the attempts that may have been stored.
	attempts int
	// sent lists the attempts whose requests were sent.
	sent []string
	// unknowns counts the attempts closed as unknown, by target. inDoubt means that one of them is not resolved.
	unknowns [2]int
	inDoubt  [2]bool

	violation *violation
}

// step is one transition.
type step struct {
	who  int // a manager, or none
	what string
	// fault is set if the step is a fault; choice is set if it is something that a user may do.
	fault  fault
	choice bool
	next   *world
}

const nobody = -1

// clone copies a world. Referenced values are immutable; slices are copied.
func (w *world) clone() *world {
	n := *w
	n.past = slices.Clone(w.past)
	n.orphans = slices.Clone(w.orphans)
	n.posts = slices.Clone(w.posts)
	n.containers = slices.Clone(w.containers)
	n.tickets = slices.Clone(w.tickets)
	n.sent = slices.Clone(w.sent)
	for i := range n.manager {
		m := &n.manager[i]
		m.ships = slices.Clone(m.ships)
		m.kept = slices.Clone(m.kept)
		m.unsent = slices.Clone(m.unsent)
		m.lookups = slices.Clone(m.lookups)
	}
	return &n
}

// local returns the time by a manager's clock.
func (w *world) local(i int) time.Time {
	return t0.Add(time.Duration(w.now+w.manager[i].offset) * time.Millisecond)
}

// truly returns the model's time when a manager's clock shows the given time.
func (w *world) truly(i int, at time.Time) int64 {
	return at.Sub(t0).Milliseconds() - w.manager[i].offset
}

func (w *world) timing() attempt.Timing { return w.x.timing }

// steps returns every transition from a state.
func (w *world) steps() []step {
	var steps []step
	add := func(who int, what string, f fault, choice bool, do func(*world)) {
		if f != "" && (w.left == 0 || !w.x.mayHappen(f)) {
			return
		}
		n := w.clone()
		if f != "" {
			n.left--
		}
		do(n)
		for i := range n.manager {
			n.skipIdlePass(i)
		}
		n.checkHeld()
		steps = append(steps, step{who, what, f, choice, n})
	}
	for i := range w.manager {
		w.managerSteps(i, add)
	}
	w.platformSteps(add)
	w.ticketSteps(add)
	w.peopleSteps(add)
	w.groupSteps(add)
	w.electionSteps(add)
	if w.brake != nil {
		w.brakeSteps(add)
	}
	w.timeStep(add)
	return steps
}

type adder = func(who int, what string, f fault, choice bool, do func(*world))

// peopleSteps adds what users and their tools do: cancel once, apply a cancelled post again, edit once, and answer
// about an unknown outcome.
func (w *world) peopleSteps(add adder) {
	post := w.etcd.post
	frozen := post.Status.Finished || started(post)
	if w.mayCancel {
		add(nobody, "a user cancels the post", "", true, func(n *world) {
			n.mayCancel = false
			if n.cancellable(frozen) {
				n.putSpec(func(p *v1alpha1.Post) { p.Spec.Cancelled = true; p.Generation++ })
			}
		})
	}
	if post.Status.CancelledAt != nil && post.Spec.Cancelled {
		add(nobody, "a tool applies the cancelled post again", "", true, func(n *world) {
			n.putSpec(func(p *v1alpha1.Post) { p.Spec.Cancelled = false; p.Generation++ })
		})
	}
	if w.mayEdit {
		add(nobody, "a user edits the post", "", true, func(n *world) {
			n.mayEdit = false
			if !frozen {
				n.putSpec(func(p *v1alpha1.Post) { edit(p); p.Generation++ })
			}
		})
	}
	if value, ok := w.resolution(); ok && w.asks {
		add(nobody, "a person says "+value, "", true, func(n *world) {
			n.asks = false
			n.putSpec(func(p *v1alpha1.Post) {
				p.Annotations = map[string]string{v1alpha1.SettleAnnotation: value}
			})
		})
	}
}

// timeStep moves the clock to the next time when something may change. Time does not pass while a manager has work to
// do, unless it stalls first.
func (w *world) timeStep(add adder) {
	next := never
	consider := func(at int64) {
		if at > w.now && (next == never || at < next) {
			next = at
		}
	}
	for i := range w.manager {
		if w.busy(i) {
			return
		}
		w.instants(i, consider)
	}
	for _, c := range w.orphans {
		if c.limit <= w.now {
			return
		}
		consider(c.limit)
	}
	for _, p := range w.posts {
		if p.visibleAt != never {
			consider(p.visibleAt)
		}
	}
	if w.brake != nil {
		w.brakeTimes(consider)
	}
	if w.ticketTime(consider) && next != never {
		add(nobody, "time passes", "", false, func(n *world) { n.now = next })
	}
}

// key identifies a state. Managers that differ only in their number are equivalent, unless the post names one of them.
func (w *world) key() []byte {
	var k key
	k.put(w.now, w.etcd.number(), int64(len(w.past)), int64(w.left), int64(w.attempts), bit(w.mayCancel), bit(w.mayEdit), bit(w.asks), int64(w.unknowns[0]), int64(w.unknowns[1]), bit(w.inDoubt[0]), bit(w.inDoubt[1]))
	if w.brake != nil {
		k.put(w.brake.n, int64(w.pulls), w.heldFrom, w.held)
	}
	k.put(int64(w.elections), int64(w.group.version), int64(w.group.closed), int64(w.group.opened), bit(w.group.armed), bit(w.group.gone))
	for _, v := range w.past {
		k.put(v.number())
	}
	k.put(int64(len(w.orphans)), int64(len(w.posts)), int64(len(w.containers)), int64(len(w.tickets)), int64(len(w.sent)))
	for _, c := range w.orphans {
		k.text(c.attempt)
		k.text(c.text)
		k.put(int64(c.target), int64(c.card), int64(c.container), c.limit)
	}
	for _, p := range w.posts {
		k.text(p.attempt)
		k.text(p.text)
		k.put(int64(p.target), int64(p.card), p.at, p.visibleAt)
	}
	for _, c := range w.containers {
		k.text(c.text)
		k.put(int64(c.post), bit(c.partial))
	}
	for _, t := range w.tickets {
		k.text(t.call.attempt)
		k.text(string(t.gave))
		k.put(t.limit, int64(t.post))
	}
	for _, s := range w.sent {
		k.text(s)
	}
	a, b := w.manager[0].key(), w.manager[1].key()
	if string(a) > string(b) && !w.x.shares {
		a, b = b, a
	}
	k.text(string(a))
	k.text(string(b))
	return k
}

// key is built from parts.
type key []byte

func (k *key) put(values ...int64) {
	for _, v := range values {
		*k = binary.AppendVarint(*k, v)
	}
}

func (k *key) text(s string) {
	k.put(int64(len(s)))
	*k = append(*k, s...)
}

// millis returns a time of the model in milliseconds, or 0 if it is zero.
func millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Sub(t0).Milliseconds()
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
