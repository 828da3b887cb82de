// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import "github.com/herald-social/herald/api/v1alpha1"

// UndecidedFilter filters a list by whether posts are undecided, that is, have an undecided target. An archived post
// cannot be settled, so all archived posts count as decided.
type UndecidedFilter uint8

// The values of an UndecidedFilter.
const (
	IncludeUndecided UndecidedFilter = iota
	OnlyUndecided
	ExcludeUndecided
)

// splits reports whether there is a list of a phase's decided posts. Undecided posts are processing or failed, except
// in rare cases such as a restored backup, which do not justify more lists.
func splits(status v1alpha1.PostPhase) bool {
	return status == v1alpha1.PhaseProcessing || status == v1alpha1.PhaseFailed
}

func filterOf(status v1alpha1.PostPhase, platform v1alpha1.Platform, asked UndecidedFilter) filter {
	if asked == ExcludeUndecided && !splits(status) {
		asked = IncludeUndecided
	}
	return filter{status, platform, asked}
}

// Counts are the numbers of a namespace's posts. States without posts have no entry.
type Counts struct {
	// Status counts the posts in each listed phase.
	Status map[v1alpha1.PostPhase]int
	// Undecided counts the undecided posts among them.
	Undecided map[v1alpha1.PostPhase]int
}

// All returns the number of posts.
func (c *Counts) All() int { return sum(c.Status) }

// AllUndecided returns the number of undecided posts.
func (c *Counts) AllUndecided() int { return sum(c.Undecided) }

// Decided returns the length of a phase's list with ExcludeUndecided.
func (c *Counts) Decided(status v1alpha1.PostPhase) int {
	if !splits(status) {
		return c.Status[status]
	}
	return c.Status[status] - c.Undecided[status]
}

func sum(of map[v1alpha1.PostPhase]int) (all int) {
	for _, n := range of {
		all += n
	}
	return all
}
