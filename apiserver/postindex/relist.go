// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import "math"

// Relist replaces a watch's posts with a list at one resourceVersion, post by post, while the index continues to serve
// reads and our own writes. The index never holds both lists: posts on both keep their place, and posts that the new
// list lacks are removed at the end.
type Relist struct {
	watch   *Watch
	round   uint32
	version uint64
	// horizon is the highest version of entries that are removed if they are not on the list. Entries above it are our
	// own writes, newer than the list.
	horizon uint64
}

// Relist starts to apply a list at a resourceVersion. Only one relist runs at a time: a new one replaces an unfinished
// one.
//
// A list that is older than the watch's last report means that the Kubernetes store was restored from a backup. Its
// versions start over from an older one, and everything in the index is invalid.
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

// Add adds one post of the list, at its resourceVersion.
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

// Done completes the relist: of the posts that are not on the list, only our own writes that are newer than the list
// remain. The watch continues from the list's version.
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
