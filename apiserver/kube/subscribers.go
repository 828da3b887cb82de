// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"sync/atomic"
)

// maxSubscribers limits the subscriptions in this process. Each belongs to a page that a user has open, and costs
// about a hundred bytes here.
const maxSubscribers = 2000

type postKey struct{ namespace, name string }

// subscribers are signaled when a post may have changed. If there are none, a change costs one atomic read.
type subscribers struct {
	count atomic.Int64

	mu sync.Mutex
	// of holds the channels by post. A channel buffers one signal, so that sending never blocks and several changes
	// before a receive are merged.
	of map[postKey]map[chan struct{}]struct{}
}

func newSubscribers() *subscribers { return &subscribers{of: map[postKey]map[chan struct{}]struct{}{}} }

func (f *subscribers) subscribe(post postKey) (changes <-chan struct{}, stop func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count.Load() >= maxSubscribers {
		return nil, nil, false
	}
	f.count.Add(1)
	signal := make(chan struct{}, 1)
	if f.of[post] == nil {
		f.of[post] = map[chan struct{}]struct{}{}
	}
	f.of[post][signal] = struct{}{}
	return signal, sync.OnceFunc(func() { f.unsubscribe(post, signal) }), true
}

func (f *subscribers) unsubscribe(post postKey, signal chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count.Add(-1)
	delete(f.of[post], signal)
	if len(f.of[post]) == 0 {
		delete(f.of, post)
	}
}

func (f *subscribers) changed(post postKey) {
	if f.count.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	signalAll(f.of[post])
}

func (f *subscribers) allChanged() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, signals := range f.of {
		signalAll(signals)
	}
}

func signalAll(signals map[chan struct{}]struct{}) {
	for signal := range signals {
		select {
		case signal <- struct{}{}:
		default: // the previous signal is still pending
		}
	}
}
