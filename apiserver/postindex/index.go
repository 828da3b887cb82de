// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postindex keeps what a list of posts shows, in memory and in order,
// for every namespace. It is fed from two sides, by a watch and by what this
// process itself wrote, and merges both by resourceVersion, so that what a
// client has written it can read at once and an older event never takes it
// back.
//
// Each namespace has a tree for every filter that a list may have, so that any
// page of any list is found, and its total known, in logarithmic time.
package postindex

import (
	"fmt"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
)

// PlatformStatus is one target of a post, as a list shows it.
type PlatformStatus = lists.Target

// Summary is what a list shows of a post.
type Summary struct {
	ID       string
	Title    string
	Status   v1alpha1.PostPhase
	Category v1alpha1.Category
	// Platforms are the targets, in their order. Those of a page belong to the
	// index: they are only read.
	Platforms []PlatformStatus
	// Agent is the name of the agent that made the post; empty for any other.
	Agent string
	// Archived is true if the summary comes from the archive: the post has left the cluster.
	Archived bool
	// DisplayAt is kept to the millisecond, as the resources keep it.
	DisplayAt time.Time
	// Bytes is how much the post takes of its team's budget: posting.Footprint. Pages do not tell it.
	Bytes int
}

// Query selects a page of a namespace's posts.
type Query struct {
	// Status, Platform and Asked narrow the list; empty means any.
	Status    v1alpha1.PostPhase
	Platform  v1alpha1.Platform
	Undecided UndecidedFilter
	// Page counts from 1; Limit is the number of posts on a page. Both must be
	// positive.
	Page, Limit int
	// Into is where the page is written, over what is there: who asks often need
	// not make a page each time. It may be nil.
	Into []Summary
}

// Index is the list of posts of every namespace. Its methods may be called
// from many goroutines at once.
type Index struct {
	mu         sync.RWMutex
	namespaces map[string]*posts
	kinds      *kinds
	// hash is this index's own, so that no client can choose ids with the same.
	hash func(id string) uint64
	// watches feed the index, by namespace: the one of all namespaces, or one for each that is served.
	watches map[string]*Watch
	count   int
	// changed holds the namespaces whose Tally may have changed since it was asked for.
	changed map[string]struct{}
	// retains says that finished posts stay on the lists when they leave the cluster, and left
	// counts those that did; see RetainDeleted.
	retains     bool
	retainedSeq uint64
}

// New returns an empty index.
func New() *Index {
	seed := maphash.MakeSeed()
	return &Index{
		namespaces: map[string]*posts{}, watches: map[string]*Watch{}, changed: map[string]struct{}{}, kinds: &kinds{numbers: map[facts]uint32{}},
		hash: func(id string) uint64 { return maphash.String(seed, id) },
	}
}

// Upsert adds or updates a post as it was at a resourceVersion, read from the
// watch or from the answer to an own write. What is older than what the index
// knows is ignored. A cancelled post leaves the lists, and is counted as long as it is
// stored.
func (x *Index) Upsert(namespace string, s Summary, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, old := x.find(namespace, s.ID)
	switch {
	case old == 0 && version <= x.seen(namespace):
		return // the watch has reported what came after: the post is gone
	case old != 0 && p.at(old).version >= version:
		return
	}
	x.store(namespace, old, &s, version)
}

// Delete removes a post that the watch reported as deleted at a
// resourceVersion.
func (x *Index) Delete(namespace, id string, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p, old := x.find(namespace, id); old != 0 && p.at(old).version <= version {
		p.at(old).version = version
		x.removeOrRetain(namespace, old)
	}
}

// List returns a page of the posts that match, newest display time first and
// equal times by id, and how many match on all pages.
func (x *Index) List(namespace string, q Query) (page []Summary, total int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	if p == nil {
		return nil, 0
	}
	return p.page(filterOf(q.Status, q.Platform, q.Undecided), q.first(), q.Limit, q.Into)
}

// first is how many posts stand on the pages before.
func (q *Query) first() int {
	if q.Page-1 <= math.MaxInt/q.Limit {
		return (q.Page - 1) * q.Limit
	}
	return math.MaxInt // beyond every post, should the product overflow
}

// Len is how many posts are listed in all namespaces.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.count
}

// find returns where a post is: the posts of its namespace, nil if there are
// none, and its place there, zero if it has none.
func (x *Index) find(namespace, id string) (*posts, place) {
	p := x.namespaces[namespace]
	if p == nil {
		return nil, 0
	}
	i := p.find(id)
	return p, i
}

// store stores a summary, in the place of an older one unless that is zero.
func (x *Index) store(namespace string, old place, s *Summary, version uint64) *entry {
	p := x.namespaces[namespace]
	if p == nil {
		p = newPosts(x.kinds, x.hash)
		x.namespaces[strings.Clone(namespace)] = p
	}
	before := p.tally
	listed := p.listed()
	var e *entry
	if old != 0 {
		e = p.change(old, s, version)
	} else {
		e = p.add(s, version)
	}
	x.count += p.listed() - listed
	x.markChanged(namespace, p, before)
	return e
}

// markChanged notes that a namespace's tally changed, if it did.
func (x *Index) markChanged(namespace string, p *posts, before Tally) {
	if p.tally == before {
		return
	}
	if _, noted := x.changed[namespace]; !noted {
		x.changed[strings.Clone(namespace)] = struct{}{}
	}
}

// remove removes an entry; its place may be zero.
func (x *Index) remove(namespace string, i place) {
	if i == 0 {
		return
	}
	p := x.namespaces[namespace]
	before, listed := p.tally, p.listed()
	p.drop(i)
	x.count += p.listed() - listed
	x.markChanged(namespace, p, before)
	x.forgetEmpty(namespace, p)
}

// ParseVersion reads a resourceVersion as the number that it is for resources
// of the Kubernetes API.
func ParseVersion(resourceVersion string) (uint64, error) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number: %w", resourceVersion, err)
	}
	return version, nil
}
