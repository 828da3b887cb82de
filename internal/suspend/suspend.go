// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspend has the switch that suspends a whole installation. The manager's configuration sets it at run time,
// in addition to the suspension of each Team.
package suspend

import "sync"

// Switch is the suspension of an installation. The zero value is off.
type Switch struct {
	mu          sync.Mutex
	on          bool
	subscribers []func()
}

// Set suspends or resumes the installation, and reports whether that is a change. It calls the subscribers after a
// change before it returns.
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

// On reports whether the installation is suspended. A nil Switch is off.
func (b *Switch) On() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on
}

// Subscribe registers f to be called after each change.
func (b *Switch) Subscribe(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribers = append(b.subscribers, f)
}
