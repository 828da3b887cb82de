// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Board holds the pending faults and the counters. Its methods are safe for concurrent use.
type Board struct {
	waiting atomic.Int32 // len(faults), to skip the lock without faults

	mu     sync.Mutex
	faults []*Fault

	countMu  sync.Mutex
	counters map[counterKey]*counter
}

type counterKey struct {
	platform  string
	operation Operation
}

// Count is the number of requests for an operation, and the maximum number of them in flight at one time.
type Count struct {
	Platform  string    `json:"platform"`
	Operation Operation `json:"operation"`
	Count     int64     `json:"count"`
	Peak      int64     `json:"peak"`
}

// counter counts an operation's requests.
type counter struct{ received, inFlight, peak atomic.Int64 }

// begin counts a request, which is in flight until end is called.
func (c *counter) begin() (end func()) {
	c.received.Add(1)
	now := c.inFlight.Add(1)
	peak := c.peak.Load()
	for now > peak && !c.peak.CompareAndSwap(peak, now) {
		peak = c.peak.Load()
	}
	return func() { c.inFlight.Add(-1) }
}

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{counters: map[counterKey]*counter{}} }

// Add queues a normalized fault behind the pending ones.
func (b *Board) Add(f Fault) {
	f.drawn = f.draws()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, &f)
	b.waiting.Store(int32(len(b.faults))) //nolint:gosec // never two billion
}

// Waiting returns the pending faults, oldest first, with their remaining Times.
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

// ClearCounts sets all counters to zero. Requests in flight remain counted as such.
func (b *Board) ClearCounts() {
	b.countMu.Lock()
	defer b.countMu.Unlock()
	for _, n := range b.counters {
		n.received.Store(0)
		n.peak.Store(n.inFlight.Load())
	}
}

// Counts returns all counters, sorted by platform and operation. Uncalled operations have the count 0.
func (b *Board) Counts() []Count {
	b.countMu.Lock()
	out := make([]Count, 0, len(b.counters))
	for key, n := range b.counters {
		out = append(out, Count{Platform: key.platform, Operation: key.operation, Count: n.received.Load(), Peak: n.peak.Load()})
	}
	b.countMu.Unlock()
	slices.SortFunc(out, func(l, r Count) int {
		return cmp.Or(cmp.Compare(l.Platform, r.Platform), cmp.Compare(l.Operation, r.Operation))
	})
	return out
}

// counter returns an operation's counter, which starts at 0.
func (b *Board) counter(platform string, op Operation) *counter {
	b.countMu.Lock()
	defer b.countMu.Unlock()
	key := counterKey{platform, op}
	if b.counters[key] == nil {
		b.counters[key] = &counter{}
	}
	return b.counters[key]
}

// met holds a request's faults: at most one per group, nil for none.
type met [groups]*Fault

// consume uses up the faults that match a request: the oldest of each group. It calls account only for a fault limited to an account.
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
