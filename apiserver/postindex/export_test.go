// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

// NewColliding returns an empty index whose hash has many collisions.
func NewColliding() *Index {
	x := New()
	x.hash = func(id string) uint64 { return uint64(len(id) % 2) }
	return x
}

// Kinds returns the number of kinds in the index.
func (x *Index) Kinds() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.kinds.numbers)
}
