// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dispatch decides which post may prepare or publish next.
//
// Its guarantees hold only within one process. The write-ahead record of each delivery protects against two managers
// that run at the same time.
package dispatch

import (
	"slices"
	"sort"
	"sync"
	"time"
)

// Waiter is a post that waits for its turn.
type Waiter struct {
	// ID identifies the waiter; a waiter that waits twice counts once.
	ID string
	// Team is the team whose share of a Scheduler's places the waiter uses.
	Team string
	// Platform is the platform of an armed call, which shares places with calls to other platforms.
	Platform string
	// Due orders the waiters: the earliest comes first.
	Due time.Time
	// Wake is called, without a lock held, when it is the waiter's turn.
	Wake func()
	// armed is set for an armed call, which needs a place for calls instead of one of its team's places.
	armed bool
}

// lock is a mutex that collects the waiters to wake after it is unlocked.
type lock struct {
	mu    sync.Mutex
	wakes []func()
}

func (l *lock) unlock() {
	wakes := l.wakes
	l.wakes = nil
	l.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

func (l *lock) wake(waiter func()) { l.wakes = append(l.wakes, waiter) }

// Gates is a set of semaphores, one per key, created on first use.
type Gates struct {
	lock

	width int
	gates map[string]*gate
	// woken holds, by waiter, the gates that it was woken for and has not tried yet. An unused wake passes to the next
	// waiter.
	woken map[string]map[string]struct{}
}

// gate is one semaphore. waiting is ordered by due time; queued has the IDs of its waiters.
type gate struct {
	acquired int
	waiting  []Waiter
	queued   map[string]struct{}
}

// NewGates returns an empty set. Each gate admits width waiters at a time.
func NewGates(width int) *Gates {
	return &Gates{width: width, gates: map[string]*gate{}, woken: map[string]map[string]struct{}{}}
}

// TryAcquire enters the gate if it has room, and reports whether it did; it never blocks. Otherwise it queues the
// waiter, which is woken when the gate has room.
func (g *Gates) TryAcquire(key string, w Waiter) bool {
	g.mu.Lock()
	defer g.unlock()
	gt := g.gates[key]
	if gt == nil {
		gt = &gate{queued: map[string]struct{}{}}
		g.gates[key] = gt
	}
	g.forgetWake(w.ID, key)
	_, queued := gt.queued[w.ID]
	if gt.acquired == g.width {
		if !queued {
			at := sort.Search(len(gt.waiting), func(i int) bool { return gt.waiting[i].Due.After(w.Due) })
			gt.waiting = slices.Insert(gt.waiting, at, w)
			gt.queued[w.ID] = struct{}{}
		}
		return false
	}
	gt.acquired++
	if queued {
		gt.waiting = slices.DeleteFunc(gt.waiting, func(o Waiter) bool { return o.ID == w.ID })
		delete(gt.queued, w.ID)
	}
	return true
}

// Release leaves the gate and wakes the waiter with the earliest due time.
func (g *Gates) Release(key string) {
	g.mu.Lock()
	defer g.unlock()
	if gt := g.gates[key]; gt != nil && gt.acquired > 0 {
		gt.acquired--
		g.wakeNext(key, gt)
	}
}

// ReturnWake passes a waiter's unused wakes to the next waiters. Call it after the waiter's turn.
func (g *Gates) ReturnWake(id string) {
	g.mu.Lock()
	defer g.unlock()
	for key := range g.woken[id] {
		if gt := g.gates[key]; gt != nil && gt.acquired < g.width {
			g.wakeNext(key, gt)
		}
	}
	delete(g.woken, id)
}

// wakeNext removes the first waiter from the queue and wakes it. It drops a gate without holders and waiters.
func (g *Gates) wakeNext(key string, gt *gate) {
	if len(gt.waiting) == 0 {
		if gt.acquired == 0 {
			delete(g.gates, key)
		}
		return
	}
	next := gt.waiting[0]
	gt.waiting = slices.Delete(gt.waiting, 0, 1)
	delete(gt.queued, next.ID)
	if g.woken[next.ID] == nil {
		g.woken[next.ID] = map[string]struct{}{}
	}
	g.woken[next.ID][key] = struct{}{}
	g.wake(next.Wake)
}

func (g *Gates) forgetWake(id, key string) {
	if keys := g.woken[id]; keys != nil {
		delete(keys, key)
		if len(keys) == 0 {
			delete(g.woken, id)
		}
	}
}
