// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import "github.com/herald-social/herald/api/v1alpha1"

// UndecidedFilter filters a list by undecided posts, which have an undecided target. An archived post cannot be
// settled, so all archived posts count as decided.
type UndecidedFilter uint8

// The values of an UndecidedFilter.
const (
	IncludeUndecided UndecidedFilter = iota
	OnlyUndecided
	ExcludeUndecided
)

// splits reports whether there is a list of a phase's decided posts. Undecided posts are processing or failed, apart
// from rare cases such as a restored backup, for which a second list of each post would not pay off.
func splits(status v1alpha1.PostPhase) bool {
	return status == v1alpha1.PhaseProcessing || status == v1alpha1.PhaseFailed
}

func filterOf(status v1alpha1.PostPhase, platform v1alpha1.Platform, asked UndecidedFilter) filter {
	if asked == ExcludeUndecided && !splits(status) {
		asked = IncludeUndecided
	}
	return filter{status, platform, asked}
}

// Counts are how many posts a namespace has. States without posts do not have an entry.
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
