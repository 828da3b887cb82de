// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postindex holds the list data of all namespaces' posts, in memory and in order. It is fed by a watch and by
// the process's own writes, and merges them by resourceVersion: a client reads its own writes immediately, and an older
// event never reverts them.
//
// Each namespace has a tree for every filter of a list, so that any page of any list, and its total, is found in
// logarithmic time.
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

// PlatformStatus is one target of a post in a list.
type PlatformStatus = lists.Target

// Summary is a post's list data.
type Summary struct {
	ID    string
	Title string
	// Rest continues Title in long headings. It ends with "…" if the text continues.
	Rest     string
	Status   v1alpha1.PostPhase
	Category v1alpha1.Category
	// Platforms are the targets, in order. On a page they belong to the index and must not be modified.
	Platforms []PlatformStatus
	// Agent is the name of the agent that created the post; empty for other posts.
	Agent string
	// Author is the user who created the post, in person or through an agent; empty for other posts.
	Author string
	// Picture is the name of the post's first file; empty for a post without files.
	Picture string
	// Words are the beginning of the post's texts for a search, as package text's Plain returns them, and Accounts are its
	// connections, in order. Pages include neither.
	Words    string
	Accounts []string
	// Handled is true for a failed post that no longer needs a user's attention: a user dismissed it, or another post
	// retries its failed targets.
	Handled bool
	// Archived is true if the post was read from the archive.
	Archived bool
	// DisplayAt is stored in milliseconds, as in the resources.
	DisplayAt time.Time
	// Bytes is the post's size in the team's budget: posting.View.Footprint. Pages do not include it.
	Bytes int
}

// Query selects a page of a namespace's posts.
type Query struct {
	// Status, Platform and Undecided filter the list; the zero value matches all.
	Status    v1alpha1.PostPhase
	Platform  v1alpha1.Platform
	Undecided UndecidedFilter
	// Version1 omits the posts that version 1 of the API does not show, because it has none of their platforms.
	Version1 bool
	// Page counts from 1; Limit is the number of posts per page. Both must be positive.
	Page, Limit int
	// Into is a slice to overwrite with the page, which saves an allocation. It may be nil.
	Into []Summary
}

// Index holds every namespace's lists of posts. It is safe for concurrent use.
type Index struct {
	mu         sync.RWMutex
	namespaces map[string]*posts
	kinds      *shared[facts, kind]
	// hash has a random seed per index, so clients cannot choose ids that collide.
	hash func(id string) uint64
	// watches feed the index, by namespace: one for all namespaces, or one for each served namespace.
	watches map[string]*Watch
	count   int
	// changed holds the namespaces whose Tally may have changed since the last call to Changed.
	changed map[string]struct{}
	// retains keeps finished posts on the lists after they leave the cluster; retainedSeq counts these posts. See
	// RetainDeleted.
	retains     bool
	retainedSeq uint64
}

// New returns an empty index.
func New() *Index {
	seed := maphash.MakeSeed()
	return &Index{
		namespaces: map[string]*posts{}, watches: map[string]*Watch{}, changed: map[string]struct{}{}, kinds: newShared[facts, kind](),
		hash: func(id string) uint64 { return maphash.String(seed, id) },
	}
}

// Upsert adds or updates a post at a resourceVersion, from the watch or from the response to one of our own writes. A
// version that is not newer than the stored one is ignored. A cancelled post leaves the lists, but still counts in the
// tally while it is stored.
func (x *Index) Upsert(namespace string, s Summary, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, old := x.find(namespace, s.ID)
	switch {
	case old == 0 && version <= x.seen(namespace):
		return // the watch has reported a later version: the post is deleted
	case old != 0 && p.at(old).version >= version:
		return
	}
	x.store(namespace, old, &s, version)
}

// Delete removes a post that the watch reported as deleted at a resourceVersion.
func (x *Index) Delete(namespace, id string, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p, old := x.find(namespace, id); old != 0 && p.at(old).version <= version {
		p.at(old).version = version
		x.removeOrRetain(namespace, old)
	}
}

// List returns a page of the matching posts, newest display time first and equal times by id, and the total number of
// matches.
func (x *Index) List(namespace string, q Query) (page []Summary, total int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	if p == nil {
		return nil, 0
	}
	return p.pageOf(&q)
}

// pageOf returns the page of a query in the cluster, and the number of all its matches.
func (p *posts) pageOf(q *Query) (page []Summary, total int) {
	if beyond := p.lists[q.beyond()]; q.Version1 && beyond != nil {
		v := version1{&merger{posts: p, live: p.lists[q.filter()]}, &merger{posts: p, live: beyond}}
		return v.page(q.first(), q.Limit, q.Into), v.total()
	}
	return p.page(q.filter(), q.first(), q.Limit, q.Into)
}

func (q *Query) filter() filter { return filterOf(q.Status, q.Platform, q.Undecided) }

// Title returns the title of a post in the index, or "".
func (x *Index) Title(namespace, id string) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, i := x.find(namespace, id)
	if i == 0 {
		return ""
	}
	title, _, _ := p.at(i).shown()
	return strings.Clone(title)
}

func (q *Query) first() int {
	if q.Page-1 <= math.MaxInt/q.Limit {
		return (q.Page - 1) * q.Limit
	}
	return math.MaxInt // the product overflows: past the last post
}

// Len returns the number of listed posts in all namespaces.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.count
}

// find returns the namespace's posts, or nil, and the post's place in them, or zero.
func (x *Index) find(namespace, id string) (*posts, place) {
	p := x.namespaces[namespace]
	if p == nil {
		return nil, 0
	}
	i := p.find(id)
	return p, i
}

// store stores a summary in place old, or in a new place if old is zero.
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

// ParseVersion parses a resourceVersion, which is a number for resources of the Kubernetes API.
func ParseVersion(resourceVersion string) (uint64, error) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number: %w", resourceVersion, err)
	}
	return version, nil
}
