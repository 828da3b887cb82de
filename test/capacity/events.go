// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"time"
)

// event is a function to run at a simulated time. Events with the same time run in the order in which they were added.
type event struct {
	at     time.Time
	number int
	run    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].number < e[j].number
	}
	return e[i].at.Before(e[j].at)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// agenda contains the future events, and the current time.
type agenda struct {
	now    time.Time
	events events
	added  int
}

// at adds an event. A time in the past means now.
func (a *agenda) at(t time.Time, run func()) {
	if t.Before(a.now) {
		t = a.now
	}
	a.added++
	heap.Push(&a.events, event{t, a.added, run})
}

// runUntil runs all events before the given time.
func (a *agenda) runUntil(end time.Time) {
	for len(a.events) > 0 && a.events[0].at.Before(end) {
		next := heap.Pop(&a.events).(event)
		a.now = next.at
		next.run()
	}
	a.now = end
}
