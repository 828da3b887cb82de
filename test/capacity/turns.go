// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// pool contains the free slots for calls, and the turns that wait for one.
type pool struct {
	free    int
	waiting []*turn
}

// turn is a request for the gates of a post's accounts, and a slot. Herald requests them for each target; in the
// simulation, a post gets all of them or none.
type turn struct {
	accounts []*account
	pool     *pool
	run      func()
}

// enqueue runs a turn as soon as its accounts are idle and a slot is free.
func (t *turn) enqueue() {
	for _, a := range t.accounts {
		if a.busy {
			a.waiting = append(a.waiting, t)
			return
		}
	}
	if t.pool.free == 0 {
		t.pool.waiting = append(t.pool.waiting, t)
		return
	}
	t.pool.free--
	for _, a := range t.accounts {
		a.busy = true
	}
	t.run()
}

// release ends a turn and runs the turns that can run next.
func (t *turn) release() {
	t.pool.free++
	for _, a := range t.accounts {
		a.busy = false
	}
	for _, a := range t.accounts {
		for !a.busy && len(a.waiting) > 0 {
			next := a.waiting[0]
			a.waiting = a.waiting[1:]
			next.enqueue()
		}
	}
	for t.pool.free > 0 && len(t.pool.waiting) > 0 {
		next := t.pool.waiting[0]
		t.pool.waiting = t.pool.waiting[1:]
		next.enqueue()
	}
}
