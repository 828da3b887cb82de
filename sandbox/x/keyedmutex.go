// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import "sync"

// keyedMutex is one mutex for each key.
type keyedMutex struct {
	mu    sync.Mutex
	byKey map[string]*waited
}

type waited struct {
	sync.Mutex
	users int
}

// lock waits until nobody else holds the key, and returns how to give it back.
func (k *keyedMutex) lock(key string) (unlock func()) {
	k.mu.Lock()
	if k.byKey == nil {
		k.byKey = map[string]*waited{}
	}
	one := k.byKey[key]
	if one == nil {
		one = &waited{}
		k.byKey[key] = one
	}
	one.users++
	k.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		one.users--
		if one.users == 0 {
			delete(k.byKey, key)
		}
	}
}
