// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import "math"

// Relist takes over a list of all posts of a watch as they were at one resourceVersion,
// post by post, while the index goes on to answer and to take in own writes.
// The index never holds both lists: what the new one repeats stays where it is,
// and what it lacks goes at the end.
type Relist struct {
	watch   *Watch
	round   uint32
	version uint64
	// horizon is the version up to which an entry can only be true if the list
	// says so. Above it lie own writes that are newer than the list.
	horizon uint64
}

// Relist begins to take over a list as it was at a resourceVersion. One relist
// runs at a time: a new one takes the place of one that was not finished.
//
// A list that is older than what the watch has reported comes from a Kubernetes
// store that was restored from a backup. It counts from an older version again:
// nothing that the index knew before is true any more.
func (w *Watch) Relist(version uint64) *Relist {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	w.round++
	r := &Relist{watch: w, round: w.round, version: version, horizon: version}
	if version < w.seen {
		w.restored = true
	}
	if w.restored {
		r.horizon = math.MaxUint64
	}
	return r
}

// Add takes in one post of the list, as it was at its resourceVersion.
func (r *Relist) Add(namespace string, s Summary, version uint64) {
	x := r.watch.index
	x.mu.Lock()
	defer x.mu.Unlock()
	p, old := x.find(namespace, s.ID)
	if old != 0 && p.at(old).version > r.horizon {
		return
	}
	x.store(namespace, old, &s, version).round = r.round
}

// Done ends the relist: of what the list did not hold, only own writes that are
// newer than the list stay. The watch goes on from the list's version.
func (r *Relist) Done() {
	w := r.watch
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for namespace, p := range x.namespaces {
		if !w.covers(namespace) {
			continue
		}
		for i := range p.entries {
			if e := &p.entries[i]; e.text != "" && e.round != r.round && e.version <= r.horizon {
				if w.restored {
					x.remove(namespace, place(i+1))
				} else {
					x.removeOrRetain(namespace, place(i+1))
				}
			}
		}
	}
	w.seen, w.restored = r.version, false
}
