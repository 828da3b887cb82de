// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dispatch decides whose turn it is to prepare or to publish.
//
// What it guarantees, it guarantees within one process only. Two managers that
// overlap are kept apart by the write-ahead record of each delivery.
package dispatch

import (
	"container/heap"
	"sync"
	"time"
)

// Waiter asks for its turn on behalf of one post.
type Waiter struct {
	// ID identifies the waiter; one that waits twice is counted once.
	ID string
	// Team is whose share of the places of a Scheduler it takes.
	Team string
	// Due decides who comes first when several wait: the earliest.
	Due time.Time
	// Wake is called, without any lock held, when its turn has come.
	Wake func()
}

// Gates is a set of gates, one per key, made as they are asked for.
type Gates struct {
	mu    sync.Mutex
	gates map[string]*gate
	// woken remembers, by waiter, which gates it was woken for and has not
	// tried since, so that a wake that is not used can be passed on.
	woken map[string]map[string]struct{}
}

type gate struct {
	held    bool
	waiting queue
	byID    map[string]*entry
}

// New makes an empty set.
func NewGates() *Gates {
	return &Gates{gates: map[string]*gate{}, woken: map[string]map[string]struct{}{}}
}

// TryAcquire takes the gate if it is free and returns true; it never waits.
// Otherwise the waiter is remembered and woken when the gate comes free.
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

// Release gives the gate back and wakes the waiter that is due first.
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

// Pass is called when a waiter has had its turn: wakes that it did not use go
// to the next one in line.
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

// wakeNext takes the first waiter off the queue and returns what wakes it; a
// gate that nobody holds or waits for is dropped.
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
