// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspend holds the brake of a whole installation, which the manager's configuration sets
// while the process runs, beside that of each Team.
package suspend

import "sync"

// Switch is whether nothing is published. The zero value is released.
type Switch struct {
	mu          sync.Mutex
	on          bool
	subscribers []func()
}

// Set sets or releases the brake, and reports whether that is a change. Those who follow it are
// told of one before Set returns.
func (b *Switch) Set(on bool) (changed bool) {
	b.mu.Lock()
	changed, b.on = b.on != on, on
	tell := b.subscribers
	b.mu.Unlock()
	if changed {
		for _, f := range tell {
			f()
		}
	}
	return changed
}

// On reports whether nothing is published. A nil brake is released.
func (b *Switch) On() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on
}

// Subscribe has f called after each change.
func (b *Switch) Subscribe(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribers = append(b.subscribers, f)
}
