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
	// maxFetchesPerNamespace is how many files are fetched at once for one namespace.
	maxFetchesPerNamespace = 2
	// waiterTTL is for how long a namespace that waits is remembered after it has asked. It asks every fetchSoonest.
	waiterTTL = 6 * fetchSoonest
)

// errPreempted is why a second fetch of a namespace ends: another namespace waits and has none.
var errPreempted = errors.New("another team has its turn")

// fetchSlots are the places in which files are fetched. Namespaces have their turn one after another: one that holds no place comes
// before those that do, the one that has waited the longest first. If all places are taken, a second place of a namespace is given
// up for it; its only one never is, so that every fetch ends.
type fetchSlots struct {
	most  int
	clock clock.PassiveClock

	mu      sync.Mutex
	active  []*fetchSlot
	waiting []slotWaiter
}

// fetchSlot is a place that a namespace holds.
type fetchSlot struct {
	namespace string
	cancel    context.CancelCauseFunc
	// preempted says that it is being given up.
	preempted bool
}

// slotWaiter is a namespace that holds no place.
type slotWaiter struct {
	namespace   string
	requestedAt time.Time
}

func newFetchSlots(most int, c clock.PassiveClock) *fetchSlots {
	return &fetchSlots{most: most, clock: c}
}

// acquire reports whether another fetch may begin for a namespace. If so, its context ends with errPreempted as its cause when it has
// to make room, and the caller calls give afterwards.
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

// enqueue notes that a namespace waits, and returns how many do before it.
func (t *fetchSlots) enqueue(namespace string, now time.Time) int {
	place := slices.IndexFunc(t.waiting, func(w slotWaiter) bool { return w.namespace == namespace })
	if place < 0 {
		place = len(t.waiting)
		t.waiting = append(t.waiting, slotWaiter{namespace: namespace})
	}
	t.waiting[place].requestedAt = now
	return place
}

// preempt ends second fetches until enough places become free. It ends the youngest first.
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

// count returns how many places a namespace holds and keeps.
func (t *fetchSlots) count(namespace string) (held int) {
	for _, one := range t.active {
		if one.namespace == namespace && !one.preempted {
			held++
		}
	}
	return held
}

func (t *fetchSlots) release(taken *fetchSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken.cancel(nil)
	t.active = slices.DeleteFunc(t.active, func(one *fetchSlot) bool { return one == taken })
}
