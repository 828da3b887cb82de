// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Board holds the faults that wait, and the counters. Its methods may be called at the same time.
type Board struct {
	waiting atomic.Int32 // len(faults), to pass by without the lock when there are none

	mu     sync.Mutex
	faults []*Fault

	countMu  sync.Mutex
	counters map[counterKey]*atomic.Int64
}

type counterKey struct {
	platform  string
	operation Operation
}

// Count is how many requests arrived.
type Count struct {
	Platform  string    `json:"platform"`
	Operation Operation `json:"operation"`
	Count     int64     `json:"count"`
}

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{counters: map[counterKey]*atomic.Int64{}} }

// Add lets a normalized fault wait for its requests, behind those that wait already.
func (b *Board) Add(f Fault) {
	f.drawn = f.draws()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, &f)
	b.waiting.Store(int32(len(b.faults))) //nolint:gosec // never two billion
}

// Waiting returns the faults that wait, the longest first, with the Times that are left of each.
func (b *Board) Waiting() []Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Fault, 0, len(b.faults))
	for _, f := range b.faults {
		out = append(out, *f)
	}
	return out
}

// ClearFaults removes all faults.
func (b *Board) ClearFaults() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil
	b.waiting.Store(0)
}

// ClearCounts sets all counters to zero.
func (b *Board) ClearCounts() {
	b.countMu.Lock()
	defer b.countMu.Unlock()
	for _, n := range b.counters {
		n.Store(0)
	}
}

// Counts returns all counters, by platform and operation. Operations that were not called yet stand there with 0.
func (b *Board) Counts() []Count {
	b.countMu.Lock()
	out := make([]Count, 0, len(b.counters))
	for key, n := range b.counters {
		out = append(out, Count{Platform: key.platform, Operation: key.operation, Count: n.Load()})
	}
	b.countMu.Unlock()
	slices.SortFunc(out, func(l, r Count) int {
		return cmp.Or(cmp.Compare(l.Platform, r.Platform), cmp.Compare(l.Operation, r.Operation))
	})
	return out
}

// counter returns the counter of an operation, which starts at 0.
func (b *Board) counter(platform string, op Operation) *atomic.Int64 {
	b.countMu.Lock()
	defer b.countMu.Unlock()
	key := counterKey{platform, op}
	if b.counters[key] == nil {
		b.counters[key] = &atomic.Int64{}
	}
	return b.counters[key]
}

// met are the faults that one request meets: at most one of each group, nil where there is none.
type met [groups]*Fault

// consume uses up the faults that match a request: of each group the one that has waited longest. account is asked only
// when a fault is narrowed to one.
func (b *Board) consume(platform string, op Operation, account func() string) met {
	var out met
	if b.waiting.Load() == 0 {
		return out
	}
	account = sync.OnceValue(account)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		g, _ := f.Kind.group()
		if out[g] != nil || !f.matches(platform, op, account) || !f.drawn() {
			continue
		}
		f.Times--
		copied := *f
		out[g] = &copied
	}
	b.faults = slices.DeleteFunc(b.faults, func(f *Fault) bool { return f.Times <= 0 })
	b.waiting.Store(int32(len(b.faults))) //nolint:gosec // as in Add
	return out
}
