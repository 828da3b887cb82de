// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

// NewColliding returns an empty index for which many ids look alike at first.
func NewColliding() *Index {
	x := New()
	x.hash = func(id string) uint64 { return uint64(len(id) % 2) }
	return x
}

// Kinds is how many kinds of posts the index holds.
func (x *Index) Kinds() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.kinds.numbers)
}
