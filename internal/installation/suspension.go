// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"sync"

	"github.com/herald-social/herald/internal/subscribers"
)

// Suspension is the switch that suspends a whole installation. The manager's configuration sets it at run time; in
// addition, each Team can be suspended. The zero value is off.
type Suspension struct {
	subscribers subscribers.List

	mu sync.Mutex
	on bool
}

// Set suspends or resumes the installation, calls the subscribers after a change, and reports whether there was one.
func (s *Suspension) Set(on bool) (changed bool) {
	s.mu.Lock()
	changed, s.on = s.on != on, on
	s.mu.Unlock()
	if changed {
		s.subscribers.Notify()
	}
	return changed
}

// On reports whether the installation is suspended. A nil Suspension is off.
func (s *Suspension) On() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}

// Subscribe registers f to be called after each change, until unsubscribe is called.
func (s *Suspension) Subscribe(f func()) (unsubscribe func()) {
	return s.subscribers.Subscribe(f)
}
