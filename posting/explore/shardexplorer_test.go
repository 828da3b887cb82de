// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
)

// shardExplorer visits the states of a scenario in breadth-first order.
type shardExplorer struct {
	shardBounds

	base      scenario
	explorer  *explorer
	posts     [2]*version
	decisions map[shardMoment]shardDecision
}

// newShardExplorer prepares the account's two posts, which are due at the same time.
func newShardExplorer(within shardBounds) *shardExplorer {
	x := &shardExplorer{shardBounds: within, decisions: map[shardMoment]shardDecision{}}
	x.base = text("", func(s *scenario) { s.settings.StartingDeadline = 10 * time.Minute })
	x.explorer = &explorer{scenario: x.base, versions: map[string]*version{}, seen: map[[16]byte]int32{}}
	for p := range x.posts {
		created := t0.Add(-time.Hour)
		if p == 1 && within.arrives && within.restores > 0 {
			created = t0.Add(time.Hour) // it is created after the snapshot is restored
		}
		post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{UID: types.UID(postName(p)), Generation: 1, CreationTimestamp: metav1.NewTime(created)}}
		post.Spec = v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(atMillis(dueAt)),
			Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "account-0"}, Caption: postName(p)}},
		}
		f := x.base.facts(post, t0)
		delivery.Decide(f) // accepts the post
		describe(f.Post)
		x.posts[p] = x.explorer.intern(f.Post)
	}
	return x
}

// shards returns the number of shards. The second one matters only if the team may be moved.
func (x *shardExplorer) shards() int {
	if x.moves > 0 {
		return 2
	}
	return 1
}

// start returns the initial state: each replica holds a shard, if there are two, and the team belongs to the first.
func (x *shardExplorer) start() *shards {
	s := &shards{x: x, left: x.faults, handOvers: x.handOvers, moves: x.moves, restores: x.restores, arrives: x.arrives, restoredAt: never}
	s.posts[0] = labelledPost{version: x.posts[0], rv: 1}
	if !x.arrives {
		s.posts[1] = labelledPost{version: x.posts[1], rv: 1}
	}
	for i := range s.replica {
		s.startReplica(i)
		s.leases[i].holder = nobody
		if i < x.shards() {
			s.acquire(i, i)
		}
	}
	if x.early {
		s.snapshot = &shardSnapshot{s.posts, s.leases, s.team}
	}
	return s
}

// exploreShards visits every state within the bounds, and stops at a violation.
func exploreShards(within shardBounds) report {
	x := newShardExplorer(within)
	e := x.explorer
	type visit struct {
		n int32
		s *shards
	}
	first := x.start()
	add := func(s *shards, by origin) (int32, bool) {
		sum := sha256.Sum256(s.key())
		key := [16]byte(sum[:16])
		if n, ok := e.seen[key]; ok && s.violation == nil {
			return n, false
		}
		n := int32(len(e.cameBy))
		e.seen[key], e.cameBy = n, append(e.cameBy, by)
		return n, true
	}
	add(first, origin{from: -1})
	queue, steps := []visit{{0, first}}, 0
	result := func(v *violation, at int32) report {
		r := report{states: len(e.seen), steps: steps, ends: e.ends, violation: v}
		if v != nil {
			r.trace = x.trace(at)
		}
		return r
	}
	for len(queue) > 0 {
		at := queue[0]
		queue[0].s, queue = nil, queue[1:]
		goesOn := false
		for nth, step := range at.s.steps() {
			steps++
			n, fresh := add(step.next, origin{at.n, uint16(nth)})
			if step.next.violation != nil {
				return result(step.next.violation, n)
			}
			if step.fault == "" {
				e.goesOn = append(e.goesOn, [2]int32{at.n, n})
				goesOn = goesOn || !step.choice
			}
			if fresh {
				queue = append(queue, visit{n, step.next})
			}
		}
		if goesOn {
			continue
		}
		e.ends++
		at.s.checkShardEnd()
		if at.s.violation != nil {
			return result(at.s.violation, at.n)
		}
	}
	if n, round := e.circle(); round {
		return result(&violation{Lost, "the option repeats the same states"}, n)
	}
	return result(nil, -1)
}

// trace returns the steps to a state, one per line.
func (x *shardExplorer) trace(n int32) (lines []string) {
	var way []origin
	for n >= 0 {
		way = append(way, x.explorer.cameBy[n])
		n = x.explorer.cameBy[n].from
	}
	slices.Reverse(way)
	s := x.start()
	for _, o := range way[1:] {
		step := s.steps()[o.nth]
		if step.fault != "" && !strings.Contains(step.what, string(step.fault)) {
			step.what += " [" + string(step.fault) + "]"
		}
		line := fmt.Sprintf("%8.3fs %s", float64(s.now)/1000, step.what)
		for p := range step.next.posts {
			if now := step.next.posts[p]; now != s.posts[p] && now.version != nil {
				line += fmt.Sprintf(" => %s in shard %d: %s", postName(p), now.shard, ledger(now.post))
			}
		}
		lines, s = append(lines, line), step.next
	}
	return lines
}

// atMillis returns the time of the model.
func atMillis(at int64) time.Time { return t0.Add(time.Duration(at) * time.Millisecond) }
