// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement assigns teams to shards. It does not perform I/O.
package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Team is a team, with what its placement depends on.
type Team struct {
	// Name identifies the team.
	Name string
	// Shard is the shard that the team is assigned to, or "" if it is new.
	Shard string
	// Moving is set while the team is moved to Shard.
	Moving bool
	// Posts is the number of the team's unfinished posts.
	Posts int64
	// Accounts are the accounts that the team may publish on. Teams with a common account belong to one shard, because
	// lookups tell their posts apart in memory.
	Accounts []string
}

// Step assigns a team to a shard. From is its previous shard, or "" if the team is new.
type Step struct{ Team, From, Shard string }

// Name returns the name of a shard. Shards are numbered from 0.
func Name(shard int) string { return fmt.Sprintf("%02d", shard) }

// Names returns the names of a number of shards.
func Names(shards int) []string {
	names := make([]string, shards)
	for i := range names {
		names[i] = Name(i)
	}
	return names
}

// Decide returns the steps that give each team a shard, in the order of the teams' names. A new team gets the shard of
// the teams that it shares an account with or, without such a team, the shard with the smallest load. Teams that share an
// account, but not a shard, are moved to the shard of most of their posts. A team is also moved if its shard no longer
// exists, but never to divide the posts more evenly, and not while another move lasts.
func Decide(teams []Team, shards int) []Step {
	teams = slices.Clone(teams)
	slices.SortFunc(teams, func(a, b Team) int { return cmp.Compare(a.Name, b.Name) })
	loads := newLoads(teams, shards)
	var steps []Step
	for _, group := range byAccount(teams) {
		home := loads.home(group)
		for _, t := range group {
			if t.Shard == home || t.Moving {
				continue
			}
			steps = append(steps, Step{Team: t.Name, From: t.Shard, Shard: home})
			loads.add(home, t.Posts)
		}
	}
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.Team, b.Team) })
	return steps
}

// loads are the loads of the shards. A shard's load is the sum of its teams' unfinished posts, where a team counts for at
// least the average of all teams: a team that was just created has no posts yet, but will have about as many as the others.
// If only the posts counted, all teams that are created together would belong to one shard.
type loads struct {
	of      map[string]int64
	average int64
}

func newLoads(teams []Team, shards int) *loads {
	l := &loads{of: map[string]int64{}, average: 1}
	for _, name := range Names(shards) {
		l.of[name] = 0
	}
	var posts int64
	for i := range teams {
		posts += teams[i].Posts
	}
	if len(teams) > 0 {
		l.average = max(posts/int64(len(teams)), 1)
	}
	for i := range teams {
		l.add(teams[i].Shard, teams[i].Posts)
	}
	return l
}

// add adds a team with a number of posts to a shard, if it exists.
func (l *loads) add(shard string, posts int64) {
	if _, exists := l.of[shard]; exists {
		l.of[shard] += max(posts, l.average)
	}
}

// home returns the shard of a group: the one with most of the group's posts and, among those, most of its teams. If no
// team of the group has a shard, it returns the one with the smallest load.
func (l *loads) home(group []Team) string {
	posts, teams := map[string]int64{}, map[string]int{}
	for _, t := range group {
		if _, exists := l.of[t.Shard]; exists {
			posts[t.Shard] += t.Posts
			teams[t.Shard]++
		}
	}
	if len(posts) > 0 {
		return first(posts, func(a, b string) int { return cmp.Or(cmp.Compare(posts[b], posts[a]), cmp.Compare(teams[b], teams[a])) })
	}
	return first(l.of, func(a, b string) int { return cmp.Compare(l.of[a], l.of[b]) })
}

// first returns the first shard in an order. The lowest name comes first among equal ones.
func first(of map[string]int64, order func(a, b string) int) string {
	return slices.MinFunc(slices.Collect(maps.Keys(of)), func(a, b string) int { return cmp.Or(order(a, b), cmp.Compare(a, b)) })
}

// byAccount divides teams into groups that share accounts, directly or through other teams. The groups have the order of
// their first teams.
func byAccount(teams []Team) (groups [][]Team) {
	leader := make([]int, len(teams)) // by team, an earlier team of its group, or the team itself
	find := func(i int) int {
		for leader[i] != i {
			i = leader[i]
		}
		return i
	}
	owners := map[string]int{}
	for i := range teams {
		leader[i] = i
		for _, account := range teams[i].Accounts {
			if other, shared := owners[account]; shared {
				a, b := find(other), find(i)
				leader[max(a, b)] = min(a, b)
			}
			owners[account] = i
		}
	}
	number := map[int]int{}
	for i := range teams {
		first := find(i)
		n, known := number[first]
		if !known {
			n = len(groups)
			number[first], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], teams[i])
	}
	return groups
}
