// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import "github.com/herald-social/herald/api/v1alpha1"

// RetainDeleted keeps finished posts on the lists after they leave the cluster, until the archive is known to have
// them. Otherwise a post would not be listed between being archived and the next time the archive is read. Call it
// before any other method.
func (x *Index) RetainDeleted() { x.retains = true }

// RetainedSeq returns the number of posts that have left the cluster. Call it before reading the archive and pass it to
// SetArchive.
func (x *Index) RetainedSeq() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.retainedSeq
}

// HasRetained reports whether a namespace's lists contain posts that have left the cluster.
func (x *Index) HasRetained(namespace string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	return p != nil && len(p.retained) > 0
}

// Forget removes the retained posts up to a sequence number from every namespace's lists: by now, every list request
// reads the archive first.
func (x *Index) Forget(left uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for namespace, p := range x.namespaces {
		x.forget(namespace, p, left)
	}
}

func (x *Index) forget(namespace string, p *posts, left uint64) {
	for i, turn := range p.retained {
		if turn <= left {
			x.remove(namespace, i)
		}
	}
}

// removeOrRetain removes an entry whose post has left the cluster, or retains it on the lists.
func (x *Index) removeOrRetain(namespace string, i place) {
	p := x.namespaces[namespace]
	e := p.at(i)
	if _, already := p.retained[i]; already {
		return
	}
	status := p.kind(e).status
	if !x.retains || status != v1alpha1.PhasePosted && status != v1alpha1.PhaseFailed {
		x.remove(namespace, i)
		return
	}
	before := p.tally
	// The cluster no longer stores it.
	p.addToTally(e, -1)
	if p.retained == nil {
		p.retained = map[place]uint64{}
	}
	x.retainedSeq++
	p.retained[i] = x.retainedSeq
	x.markChanged(namespace, p, before)
}

// stays removes the retained mark from an entry: the post exists again, or the entry is removed.
func (p *posts) stays(i place) {
	if _, leaving := p.retained[i]; leaving {
		delete(p.retained, i)
		p.addToTally(p.at(i), 1)
	}
}

func (x *Index) forgetEmpty(namespace string, p *posts) {
	if p.tally.Posts == 0 && len(p.retained) == 0 && p.archived == nil {
		delete(x.namespaces, namespace)
	}
}
