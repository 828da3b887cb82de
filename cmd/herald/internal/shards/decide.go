// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"cmp"
	"maps"
	"slices"
)

// view is a replica's view of the shards. Shards are numbered from 0.
type view struct {
	// self is this replica's identity.
	self string
	// stated is the number of shards that the leader states, or 0 if it states none.
	stated int
	// members are the live replicas that are configured with the same number of shards as this one and the leader, in order.
	// This replica is one of them once it knows that the leader states the same number.
	members []string
	// shards are the states of the shards, as many as are configured.
	shards []shardView
}

// shardView is a replica's view of one shard.
type shardView struct {
	// holder is the live replica that the Lease names, or "" if there is none.
	holder string
	// version is the version in the Lease.
	version string
	// held is the version under which this replica holds the shard, and given is one that it no longer uses and has not
	// released yet; both are "" if there is none.
	held, given string
	// failed is set while this replica leaves the shard to others, after its delivery has failed here.
	failed bool
}

// isHeld reports whether this replica holds the shard, which requires that the Lease still has its version.
func (s *shardView) isHeld() bool { return s.held != "" && s.held == s.version }

// isFree reports whether no live replica holds the shard. A Lease that names this replica with a version that it does
// not hold was written by an earlier process of the same name, or by a write that was never confirmed.
func (s *shardView) isFree(self string) bool {
	return s.holder == "" || s.holder == self && s.held != s.version && s.given != s.version
}

// decision lists the shards that a replica has lost, must release, must vacate without having held them, and may
// acquire.
type decision struct{ lost, release, vacate, acquire []int }

// decide returns what a replica does about its shards. Its share is the number of shards divided by the number of
// members, rounded up. It takes free shards up to its share while no other member has fewer, and releases one shard if
// none is free and another member has at least two fewer. Only the member with the most shards releases one, so that
// they change hands one at a time. It vacates the Leases of an earlier process of its name that it does not take over,
// because no other replica can.
func decide(v *view) decision {
	var d decision
	var held, free []int
	counts := map[string]int{}
	for i := range v.shards {
		s := &v.shards[i]
		switch {
		case s.held != "" && !s.isHeld():
			d.lost = append(d.lost, i)
		case s.isHeld():
			held = append(held, i)
		case s.given != "" && s.given == s.version && s.holder == v.self:
			d.release = append(d.release, i)
		}
		if s.isFree(v.self) {
			free = append(free, i)
		} else {
			counts[s.holder]++
		}
	}
	switch {
	case v.stated != len(v.shards):
		d.release = append(d.release, held...)
	case !slices.Contains(v.members, v.self):
	case len(free) > 0:
		if v.hasFewest(counts) {
			d.acquire = v.pick(v.withoutFailed(free), v.share()-len(held))
		}
	case len(d.release) == 0 && v.isFullest(counts):
		d.release = held[len(held)-1:]
	}
	slices.Sort(d.release)
	for _, i := range free {
		if v.shards[i].holder == v.self && !slices.Contains(d.acquire, i) {
			d.vacate = append(d.vacate, i)
		}
	}
	slices.Sort(d.vacate)
	return d
}

// share returns the largest number of shards that a member may hold.
func (v *view) share() int { return (len(v.shards) + len(v.members) - 1) / len(v.members) }

// hasFewest reports whether no other member holds fewer shards.
func (v *view) hasFewest(counts map[string]int) bool {
	return !slices.ContainsFunc(v.members, func(m string) bool { return counts[m] < counts[v.self] })
}

// isFullest reports whether this replica holds the most shards, and another member at least two fewer. The first of
// several members with the most counts.
func (v *view) isFullest(counts map[string]int) bool {
	order := func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) }
	most := slices.MinFunc(v.members, order)
	least := slices.MaxFunc(v.members, order)
	return most == v.self && counts[most]-counts[least] > 1
}

// withoutFailed returns the shards whose delivery has not just failed on this replica.
func (v *view) withoutFailed(free []int) []int {
	return slices.DeleteFunc(slices.Clone(free), func(i int) bool { return v.shards[i].failed })
}

// pick returns up to most free shards: first those whose Lease names this replica, since no other replica takes them,
// and then those from this replica's position among the members on, so that replicas that start together rarely conflict.
func (v *view) pick(free []int, most int) []int {
	if most <= 0 || len(free) == 0 {
		return nil
	}
	from := slices.Index(v.members, v.self) * len(v.shards) / len(v.members)
	rank := func(shard int) int {
		if v.shards[shard].holder == v.self {
			return -1
		}
		return (shard - from + len(v.shards)) % len(v.shards)
	}
	slices.SortStableFunc(free, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	return free[:min(most, len(free))]
}

// sorted returns a set's elements in order.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
