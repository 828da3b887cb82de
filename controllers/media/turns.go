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
	// waitsFor is for how long a namespace that waits is remembered after it has asked. It asks every fetchSoonest.
	waitsFor = 6 * fetchSoonest
)

// errYielded is why a second fetch of a namespace ends: another namespace waits and has none.
var errYielded = errors.New("another team has its turn")

// turns are the places in which files are fetched. Namespaces have their turn one after another: one that holds no place comes
// before those that do, the one that has waited the longest first. If all places are taken, a second place of a namespace is given
// up for it; its only one never is, so that every fetch ends.
type turns struct {
	most  int
	clock clock.PassiveClock

	mu      sync.Mutex
	held    []*turn
	waiting []waiting
}

// turn is a place that a namespace holds.
type turn struct {
	namespace string
	yield     context.CancelCauseFunc
	// yields says that it is being given up.
	yields bool
}

// waiting is a namespace that holds no place.
type waiting struct {
	namespace string
	asked     time.Time
}

func newTurns(most int, c clock.PassiveClock) *turns { return &turns{most: most, clock: c} }

// take reports whether another fetch may begin for a namespace. If so, its context ends with errYielded as its cause when it has
// to make room, and the caller calls give afterwards.
func (t *turns) take(ctx context.Context, namespace string) (_ context.Context, give func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	t.waiting = slices.DeleteFunc(t.waiting, func(w waiting) bool { return now.Sub(w.asked) > waitsFor })
	free, own := t.most-len(t.held), t.count(namespace)
	switch {
	case own >= maxFetchesPerNamespace, own > 0 && free <= len(t.waiting):
		return ctx, nil, false
	case own == 0:
		if place := t.wait(namespace, now); place >= free {
			t.ask(place + 1 - free)
			return ctx, nil, false
		}
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(w waiting) bool { return w.namespace == namespace })
	ctx, yield := context.WithCancelCause(ctx)
	taken := &turn{namespace: namespace, yield: yield}
	t.held = append(t.held, taken)
	return ctx, func() { t.give(taken) }, true
}

// wait notes that a namespace waits, and returns how many do before it.
func (t *turns) wait(namespace string, now time.Time) int {
	place := slices.IndexFunc(t.waiting, func(w waiting) bool { return w.namespace == namespace })
	if place < 0 {
		place = len(t.waiting)
		t.waiting = append(t.waiting, waiting{namespace: namespace})
	}
	t.waiting[place].asked = now
	return place
}

// ask ends second fetches until enough places become free. It ends the youngest first.
func (t *turns) ask(places int) {
	for _, one := range t.held {
		if one.yields {
			places--
		}
	}
	for _, one := range slices.Backward(t.held) {
		if places > 0 && !one.yields && t.count(one.namespace) > 1 {
			one.yields = true
			one.yield(errYielded)
			places--
		}
	}
}

// count returns how many places a namespace holds and keeps.
func (t *turns) count(namespace string) (held int) {
	for _, one := range t.held {
		if one.namespace == namespace && !one.yields {
			held++
		}
	}
	return held
}

func (t *turns) give(taken *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken.yield(nil)
	t.held = slices.DeleteFunc(t.held, func(one *turn) bool { return one == taken })
}
