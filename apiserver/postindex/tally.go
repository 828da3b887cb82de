// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

// Tally is what a namespace stores.
type Tally struct {
	// Posts are all that are stored: finished and cancelled ones as well.
	Posts int64
	// Bytes are theirs together.
	Bytes int64
	// Unfinished are the drafts, and those that are scheduled or being delivered.
	Unfinished int64
}

// Tally returns what a namespace stores, and of which of some posts, by id, it knows: they
// are counted in it. It looks through no posts.
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

// Changed returns the namespaces whose Tally changed since the last call.
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
