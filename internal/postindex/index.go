// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postindex keeps what a list of posts shows, in memory and in order,
// for every namespace. It is fed from two sides, by a watch and by what this
// process itself wrote, and merges both by resourceVersion, so that what a
// client has written it can read at once and an older event never takes it
// back.
package postindex

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/herald-social/herald/api/v1alpha1"
)

// PlatformStatus is one target of a post, as a list shows it.
type PlatformStatus struct {
	Platform v1alpha1.Platform
	Status   v1alpha1.PostPhase
}

// Summary is what a list shows of a post.
type Summary struct {
	ID        string
	Title     string
	Status    v1alpha1.PostPhase
	Category  v1alpha1.Category
	Platforms []PlatformStatus
	DisplayAt time.Time
}

// Item is a summary with its place and age, for Replace.
type Item struct {
	Namespace string
	Summary   Summary
	// Version is the resourceVersion of the post as a number.
	Version uint64
}

// Query selects a page of a namespace's posts.
type Query struct {
	// Status and Platform narrow the list; empty means any.
	Status   v1alpha1.PostPhase
	Platform v1alpha1.Platform
	// Page counts from 1; Limit is the number of posts on a page. Both must be
	// positive.
	Page, Limit int
}

// Index is the list of posts of every namespace. Its methods may be called
// from many goroutines at once.
type Index struct {
	mu         sync.RWMutex
	namespaces map[string]*posts
	// seen is the resourceVersion up to which the watch has told everything.
	seen uint64
	// hidden holds cancelled posts whose cancellation the watch has not told
	// yet, with its version: an older event must not list them again.
	hidden map[key]uint64
	count  int
}

type key struct{ namespace, id string }

// posts are those of one namespace.
type posts struct {
	byID map[string]*entry
	// ordered holds the oldest first, because new posts mostly come last.
	ordered []*entry
}

type entry struct {
	Summary
	version uint64
}

// New returns an empty index.
func New() *Index {
	return &Index{namespaces: map[string]*posts{}, hidden: map[key]uint64{}}
}

// Upsert takes in a post as it was at a resourceVersion, told by the watch or
// by the answer to an own write. What is older than what the index knows is
// passed over. A cancelled post leaves the list.
func (x *Index) Upsert(namespace string, s Summary, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.upsert(namespace, s, version)
}

func (x *Index) upsert(namespace string, s Summary, version uint64) {
	k := key{namespace, s.ID}
	if x.hidden[k] >= version {
		return
	}
	old := x.find(namespace, s.ID)
	switch {
	case old == nil && version <= x.seen:
		return // the watch has told what came after: the post is gone or cancelled
	case old != nil && old.version >= version:
		return
	}
	if s.Status == v1alpha1.PhaseCancelled {
		x.remove(namespace, old)
		x.hidden[k] = version
		return
	}
	x.put(namespace, old, &entry{Summary: compact(s), version: version})
}

// Delete takes out a post that the watch told to be gone at a resourceVersion.
func (x *Index) Delete(namespace, id string, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if old := x.find(namespace, id); old != nil && old.version <= version {
		x.remove(namespace, old)
	}
}

// Progress notes that the watch has told everything up to a resourceVersion.
func (x *Index) Progress(version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen = max(x.seen, version)
	x.prune()
}

// prune forgets the cancellations that the watch has told.
func (x *Index) prune() {
	for k, version := range x.hidden {
		if version <= x.seen {
			delete(x.hidden, k)
		}
	}
}

// Replace takes over a complete list as it was at a resourceVersion. Of what
// the index held, only own writes that are newer than the list stay.
func (x *Index) Replace(items []Item, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ahead := x.ahead(max(x.seen, version))
	x.namespaces = map[string]*posts{}
	x.count = 0
	x.seen = version
	x.prune()
	for _, item := range items {
		if item.Summary.Status == v1alpha1.PhaseCancelled || x.hidden[key{item.Namespace, item.Summary.ID}] >= item.Version {
			continue
		}
		x.namespace(item.Namespace).byID[item.Summary.ID] = &entry{Summary: compact(item.Summary), version: item.Version}
	}
	for _, p := range x.namespaces {
		p.ordered = make([]*entry, 0, len(p.byID))
		for _, e := range p.byID {
			p.ordered = append(p.ordered, e)
		}
		slices.SortFunc(p.ordered, compare)
		x.count += len(p.ordered)
	}
	for _, item := range ahead {
		x.upsert(item.Namespace, item.Summary, item.Version)
	}
}

// ahead returns the entries that are newer than a resourceVersion.
func (x *Index) ahead(version uint64) []Item {
	var items []Item
	for namespace, p := range x.namespaces {
		for _, e := range p.ordered {
			if e.version > version {
				items = append(items, Item{Namespace: namespace, Summary: e.Summary, Version: e.version})
			}
		}
	}
	return items
}

// List returns a page of the posts that match, newest display time first and
// equal times by id, and how many match on all pages. The summaries are shared:
// the caller does not change them.
func (x *Index) List(namespace string, q Query) (page []Summary, total int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	if p == nil {
		return nil, 0
	}
	first := math.MaxInt // beyond every post, should the product overflow
	if q.Page-1 <= math.MaxInt/q.Limit {
		first = (q.Page - 1) * q.Limit
	}
	if q.Status == "" && q.Platform == "" {
		total = len(p.ordered)
		for i := first; i < total && len(page) < q.Limit; i++ {
			page = append(page, p.ordered[total-1-i].Summary)
		}
		return page, total
	}
	for _, e := range slices.Backward(p.ordered) {
		if !q.matches(&e.Summary) {
			continue
		}
		if total >= first && len(page) < q.Limit {
			page = append(page, e.Summary)
		}
		total++
	}
	return page, total
}

// Len is how many posts are listed in all namespaces.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.count
}

func (q Query) matches(s *Summary) bool {
	if q.Status != "" && s.Status != q.Status {
		return false
	}
	return q.Platform == "" || slices.ContainsFunc(s.Platforms, func(p PlatformStatus) bool {
		return p.Platform == q.Platform
	})
}

func (x *Index) find(namespace, id string) *entry {
	p := x.namespaces[namespace]
	if p == nil {
		return nil
	}
	return p.byID[id]
}

func (x *Index) namespace(name string) *posts {
	p := x.namespaces[name]
	if p == nil {
		p = &posts{byID: map[string]*entry{}}
		x.namespaces[strings.Clone(name)] = p
	}
	return p
}

// put stores next in place of old, which may be nil.
func (x *Index) put(namespace string, old, next *entry) {
	p := x.namespace(namespace)
	p.byID[next.ID] = next
	if old != nil {
		at, _ := slices.BinarySearchFunc(p.ordered, old, compare)
		if compare(old, next) == 0 {
			p.ordered[at] = next
			return
		}
		p.ordered = slices.Delete(p.ordered, at, at+1)
		x.count--
	}
	at, _ := slices.BinarySearchFunc(p.ordered, next, compare)
	p.ordered = slices.Insert(p.ordered, at, next)
	x.count++
}

// remove takes an entry out; old may be nil.
func (x *Index) remove(namespace string, old *entry) {
	if old == nil {
		return
	}
	p := x.namespaces[namespace]
	at, _ := slices.BinarySearchFunc(p.ordered, old, compare)
	p.ordered = slices.Delete(p.ordered, at, at+1)
	delete(p.byID, old.ID)
	x.count--
	if len(p.ordered) == 0 {
		delete(x.namespaces, namespace)
	}
}

// compare orders entries oldest first, and equal times by descending id, which
// is the order of a list read backwards.
func compare(a, b *entry) int {
	if c := a.DisplayAt.Compare(b.DisplayAt); c != 0 {
		return c
	}
	return cmp.Compare(b.ID, a.ID)
}

// compact returns a copy that keeps nothing else alive: a title is cut out of a
// caption, and words that are always the same are stored once.
func compact(s Summary) Summary {
	platforms := make([]PlatformStatus, len(s.Platforms))
	for i, p := range s.Platforms {
		platforms[i] = PlatformStatus{Platform: canonical(p.Platform), Status: canonical(p.Status)}
	}
	return Summary{
		ID:        strings.Clone(s.ID),
		Title:     strings.Clone(s.Title),
		Status:    canonical(s.Status),
		Category:  canonical(s.Category),
		Platforms: platforms,
		DisplayAt: s.DisplayAt,
	}
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

func canonical[S ~string](s S) S { return unique.Make(s).Value() }
