// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

// Tally is a namespace's usage.
type Tally struct {
	// Posts counts the stored posts, including finished and cancelled ones.
	Posts int64
	// Bytes is their total size.
	Bytes int64
	// Unfinished counts the drafts, scheduled posts and posts in delivery.
	Unfinished int64
}

// Tally returns a namespace's usage, and which of the given ids are included. It does not iterate over posts.
func (x *Index) Tally(namespace string, ids []string) (of Tally, known []bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	known = make([]bool, len(ids))
	p := x.namespaces[namespace]
	if p == nil {
		return Tally{}, known
	}
	for i, id := range ids {
		known[i] = p.find(id) != 0
	}
	return p.tally, known
}

// Changed returns the namespaces whose Tally has changed since the last call.
func (x *Index) Changed() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.changed) == 0 {
		return nil
	}
	out := make([]string, 0, len(x.changed))
	for namespace := range x.changed {
		out = append(out, namespace)
	}
	x.changed = map[string]struct{}{}
	return out
}
