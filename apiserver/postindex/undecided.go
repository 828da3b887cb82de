// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import "github.com/herald-social/herald/api/v1alpha1"

// UndecidedFilter narrows a list by whether a person is asked about a post: whether it has a target
// whose outcome only a person can tell. Nobody is asked about a post that has left the
// cluster, so the archive counts as not asked.
type UndecidedFilter uint8

// The values.
const (
	IncludeUndecided UndecidedFilter = iota
	OnlyUndecided
	ExcludeUndecided
)

// splits reports whether there is a list of the posts of a phase about which no person is
// asked. A call is made for posts that are being published, and its outcome makes a failed
// post of one in doubt. Elsewhere a question is as rare as a backup that was restored, and a
// second list of each post would not pay.
func splits(status v1alpha1.PostPhase) bool {
	return status == v1alpha1.PhaseProcessing || status == v1alpha1.PhaseFailed
}

func filterOf(status v1alpha1.PostPhase, platform v1alpha1.Platform, asked UndecidedFilter) filter {
	if asked == ExcludeUndecided && !splits(status) {
		asked = IncludeUndecided
	}
	return filter{status, platform, asked}
}

// Counts are how many posts of a namespace there are. What has none is not in them.
type Counts struct {
	// Status counts the posts in each phase that lists show.
	Status map[v1alpha1.PostPhase]int
	// Undecided counts those of them about which a person is asked.
	Undecided map[v1alpha1.PostPhase]int
}

// All is how many posts there are.
func (c *Counts) All() int { return sum(c.Status) }

// AllUndecided is how many posts there are about which a person is asked.
func (c *Counts) AllUndecided() int { return sum(c.Undecided) }

// Decided is how many posts a list has that is narrowed to a phase and to NotAsked.
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
