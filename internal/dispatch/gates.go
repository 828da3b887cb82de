// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dispatch decides which post may prepare or publish next.
//
// Its guarantees hold within one process only. Two managers that overlap are kept
// apart by the write-ahead record of each delivery.
package dispatch

import (
	"container/heap"
	"sync"
	"time"
)

// Waiter asks for its turn on behalf of one post.
type Waiter struct {
	// ID identifies the waiter; one that waits twice counts once.
	ID string
	// Team is the team whose part of a Scheduler's places it takes.
	Team string
	// Due orders those that wait: the earliest comes first.
	Due time.Time
	// Wake is called, with no lock held, when the waiter's turn has come.
	Wake func()
}

// Gates is a set of locks, one per key, created when first asked for.
type Gates struct {
	mu    sync.Mutex
	gates map[string]*gate
	// woken holds, by waiter, the gates that it was woken for and has not tried
	// since, so that an unused wake can be passed on.
	woken map[string]map[string]struct{}
}

type gate struct {
	held    bool
	waiting queue
	byID    map[string]*entry
}

// NewGates returns an empty set.
func NewGates() *Gates {
	return &Gates{gates: map[string]*gate{}, woken: map[string]map[string]struct{}{}}
}

// TryAcquire takes the gate if it is free, and reports whether it did; it never
// waits. Otherwise it wakes the waiter when the gate is free.
func (g *Gates) TryAcquire(key string, w Waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	gt := g.gates[key]
	if gt == nil {
		gt = &gate{byID: map[string]*entry{}}
		g.gates[key] = gt
	}
	g.forgetWake(w.ID, key)
	if gt.held {
		if gt.byID[w.ID] == nil {
			e := &entry{Waiter: w}
			gt.byID[w.ID] = e
			heap.Push(&gt.waiting, e)
		}
		return false
	}
	gt.held = true
	if e := gt.byID[w.ID]; e != nil {
		heap.Remove(&gt.waiting, e.at)
		delete(gt.byID, w.ID)
	}
	return true
}

// Release frees the gate and wakes the waiter that is due first.
func (g *Gates) Release(key string) {
	g.mu.Lock()
	gt := g.gates[key]
	if gt == nil || !gt.held {
		g.mu.Unlock()
		return
	}
	gt.held = false
	wake := g.wakeNext(key, gt)
	g.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Pass is called when a waiter has had its turn: a wake that it did not use goes
// to the next waiter.
func (g *Gates) Pass(id string) {
	g.mu.Lock()
	var wakes []func()
	for key := range g.woken[id] {
		if gt := g.gates[key]; gt != nil && !gt.held {
			if wake := g.wakeNext(key, gt); wake != nil {
				wakes = append(wakes, wake)
			}
		}
	}
	delete(g.woken, id)
	g.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// wakeNext removes the first waiter from the queue and returns its Wake. A gate
// without holder and waiters is dropped.
func (g *Gates) wakeNext(key string, gt *gate) func() {
	if gt.waiting.Len() == 0 {
		delete(g.gates, key)
		return nil
	}
	e := gt.waiting[0]
	heap.Remove(&gt.waiting, 0)
	delete(gt.byID, e.ID)
	if g.woken[e.ID] == nil {
		g.woken[e.ID] = map[string]struct{}{}
	}
	g.woken[e.ID][key] = struct{}{}
	return e.Wake
}

func (g *Gates) forgetWake(id, key string) {
	if keys := g.woken[id]; keys != nil {
		delete(keys, key)
		if len(keys) == 0 {
			delete(g.woken, id)
		}
	}
}

type entry struct {
	Waiter
	at int
}

// queue is a heap of waiters, the earliest due first.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].Due.Before(q[j].Due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *queue) Push(x any) {
	if e, ok := x.(*entry); ok {
		e.at = len(*q)
		*q = append(*q, e)
	}
}

func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}
