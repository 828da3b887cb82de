// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	maxFetchesPerNamespace = 2
	// waiterTTL is how long a waiting namespace is remembered after its last request, which it repeats every fetchSoonest.
	waiterTTL = 6 * fetchSoonest
)

// errPreempted is the cancellation cause of a fetch whose slot goes to another namespace.
var errPreempted = errors.New("another team has its turn")

// fetchSlots limits concurrent fetches and shares the slots fairly among namespaces. A namespace without a slot takes
// precedence, longest waiter first. If all slots are in use, a namespace with two slots loses one. The only slot of a
// namespace is never preempted, so that every fetch completes.
type fetchSlots struct {
	most  int
	clock clock.PassiveClock

	mu      sync.Mutex
	active  []*fetchSlot
	waiting []slotWaiter
}

type fetchSlot struct {
	namespace string
	cancel    context.CancelCauseFunc
	// preempted is true while the fetch is being cancelled.
	preempted bool
}

type slotWaiter struct {
	namespace   string
	requestedAt time.Time
}

func newFetchSlots(most int, c clock.PassiveClock) *fetchSlots {
	return &fetchSlots{most: most, clock: c}
}

// acquire reports whether a fetch may start for a namespace. If so, the returned context is cancelled with the cause
// errPreempted when the slot is preempted, and the caller must call give to release the slot.
func (t *fetchSlots) acquire(ctx context.Context, namespace string) (_ context.Context, give func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	t.waiting = slices.DeleteFunc(t.waiting, func(w slotWaiter) bool { return now.Sub(w.requestedAt) > waiterTTL })
	free, own := t.most-len(t.active), t.count(namespace)
	switch {
	case own >= maxFetchesPerNamespace, own > 0 && free <= len(t.waiting):
		return ctx, nil, false
	case own == 0:
		if place := t.enqueue(namespace, now); place >= free {
			t.preempt(place + 1 - free)
			return ctx, nil, false
		}
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(w slotWaiter) bool { return w.namespace == namespace })
	ctx, yield := context.WithCancelCause(ctx)
	taken := &fetchSlot{namespace: namespace, cancel: yield}
	t.active = append(t.active, taken)
	return ctx, func() { t.release(taken) }, true
}

func (t *fetchSlots) enqueue(namespace string, now time.Time) int {
	place := slices.IndexFunc(t.waiting, func(w slotWaiter) bool { return w.namespace == namespace })
	if place < 0 {
		place = len(t.waiting)
		t.waiting = append(t.waiting, slotWaiter{namespace: namespace})
	}
	t.waiting[place].requestedAt = now
	return place
}

// preempt cancels second fetches, the most recent first, until enough slots are being freed.
func (t *fetchSlots) preempt(places int) {
	for _, one := range t.active {
		if one.preempted {
			places--
		}
	}
	for _, one := range slices.Backward(t.active) {
		if places > 0 && !one.preempted && t.count(one.namespace) > 1 {
			one.preempted = true
			one.cancel(errPreempted)
			places--
		}
	}
}

// count returns the slots of a namespace that are not preempted.
func (t *fetchSlots) count(namespace string) (slots int) {
	for _, one := range t.active {
		if one.namespace == namespace && !one.preempted {
			slots++
		}
	}
	return slots
}

func (t *fetchSlots) release(taken *fetchSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken.cancel(nil)
	t.active = slices.DeleteFunc(t.active, func(one *fetchSlot) bool { return one == taken })
}
