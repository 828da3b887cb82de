// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subscribers calls functions that were registered for an event.
package subscribers

import (
	"slices"
	"sync"
)

// List is a list of subscribers. Its zero value is empty, and it is safe for concurrent use.
type List struct {
	mu sync.Mutex
	// all is replaced as a whole, so that Notify can call a subscriber without the lock.
	all []*func()
}

// Subscribe registers f to be called by each Notify, until unsubscribe is called.
func (l *List) Subscribe(f func()) (unsubscribe func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.Clone(l.all), &f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(slices.Clone(l.all), func(other *func()) bool { return other == &f })
	}
}

// Notify calls all subscribers, in the order of their registration.
func (l *List) Notify() {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, f := range all {
		(*f)()
	}
}
