// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"sort"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Range selects a namespace's posts for a calendar.
type Range struct {
	// From, inclusive, and To, exclusive, bound the display time, in whole milliseconds.
	From, To time.Time
	// Status, Platform and Undecided filter the list; the zero value matches all.
	Status    v1alpha1.PostPhase
	Platform  v1alpha1.Platform
	Undecided UndecidedFilter
	// Max limits the returned posts. It must be positive.
	Max int
}

// Between returns the posts displayed in a range, newest first. more is true if the range has older ones.
func (x *Index) Between(namespace string, r *Range) (found []Summary, more bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	if p == nil {
		return nil, false
	}
	f := filterOf(r.Status, r.Platform, r.Undecided)
	l := p.lists[f]
	if l == nil {
		return nil, false
	}
	// Lists are in descending order of time.
	behind := func(before time.Time) int {
		return sort.Search(l.Len(), func(i int) bool {
			at, _ := l.GetAt(i)
			return p.at(at).displayAt < before.UnixMilli()
		})
	}
	first, end := behind(r.To), behind(r.From)
	if first >= end {
		return nil, false
	}
	found, _ = p.page(f, first, min(r.Max, end-first), nil)
	return found, end-first > r.Max
}

// Counts returns how many posts a namespace has.
func (x *Index) Counts(namespace string) Counts {
	x.mu.RLock()
	defer x.mu.RUnlock()
	counts := Counts{Status: map[v1alpha1.PostPhase]int{}, Undecided: map[v1alpha1.PostPhase]int{}}
	if p := x.namespaces[namespace]; p != nil {
		for f, l := range p.lists {
			switch {
			case f.status == "" || f.platform != "":
			case f.undecided == IncludeUndecided:
				counts.Status[f.status] = l.Len()
			case f.undecided == OnlyUndecided:
				counts.Undecided[f.status] = l.Len()
			}
		}
	}
	return counts
}
