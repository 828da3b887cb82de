// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import "github.com/herald-social/herald/api/v1alpha1"

// RetainDeleted has finished posts stay on the lists when they leave the cluster, until the
// archive is known to have them: what was archived between two looks at it would be on no list
// in between. It is called before anything else.
func (x *Index) RetainDeleted() { x.retains = true }

// RetainedSeq is how many posts left the cluster so far. Who reads the archive asks before, and tells
// SetArchive.
func (x *Index) RetainedSeq() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.retainedSeq
}

// HasRetained reports whether the lists of a namespace show posts that have left the cluster.
func (x *Index) HasRetained(namespace string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	return p != nil && len(p.retained) > 0
}

// Forget takes the posts off the lists of every namespace that were among the first so many
// which left the cluster: whoever asks for a list by now reads the archive first.
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

// removeOrRetain removes an entry whose post is not in the cluster any more, or keeps it on the lists
// for a while.
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
	// It is not stored in the cluster any more.
	p.addToTally(e, -1)
	if p.retained == nil {
		p.retained = map[place]uint64{}
	}
	x.retainedSeq++
	p.retained[i] = x.retainedSeq
	x.markChanged(namespace, p, before)
}

// stays says that an entry is not leaving any more: its post is there again, or the entry goes.
func (p *posts) stays(i place) {
	if _, leaving := p.retained[i]; leaving {
		delete(p.retained, i)
		p.addToTally(p.at(i), 1)
	}
}

// forgetEmpty forgets a namespace of which nothing is to be known.
func (x *Index) forgetEmpty(namespace string, p *posts) {
	if p.tally.Posts == 0 && len(p.retained) == 0 && p.archived == nil {
		delete(x.namespaces, namespace)
	}
}
