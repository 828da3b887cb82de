// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import "github.com/herald-social/herald/api/v1alpha1"

// Counts returns the numbers of a namespace's posts.
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
