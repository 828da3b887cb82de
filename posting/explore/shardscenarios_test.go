// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"
	"testing"
	"time"
)

// shardScenario is an exploration with the reason for it.
type shardScenario struct {
	name, reason string
	within       shardBounds
	// large means that there are more than 60,000 states, which are explored only with -explore.long: shards are
	// experimental.
	large bool
}

var shardScenarios = []shardScenario{
	{
		"a shard that is handed over", "the old holder's calls end, and the new one's begin",
		shardBounds{handOvers: 2, faults: 1, kinds: []fault{slow, writeLost, answerLost, stale}},
		false,
	},
	{
		"a shard that is handed over, where the first post is not ready", "the holders claim different posts",
		shardBounds{handOvers: 1, prepares: true, faults: 1, kinds: []fault{slow, stale, crash}},
		true,
	},
	{
		"a shard that is handed over, and processes die", "a claim is stored before or after its process dies",
		shardBounds{handOvers: 1, faults: 2, kinds: []fault{crash, slow}},
		true,
	},
	{
		"a shard whose holder dies", "the new holder waits for calls that are never recorded",
		shardBounds{faults: 2, kinds: []fault{crash, slow, stale, answerLost}},
		false,
	},
	{
		"a shard whose holder stalls", "it goes on with a version that no longer counts",
		shardBounds{prepares: true, faults: 1, kinds: []fault{stall}},
		false,
	},
	{
		"a shard that is handed over or whose holder stalls", "a process may have given the shard up before it stalls",
		shardBounds{handOvers: 1, faults: 1, kinds: []fault{stall, cut}},
		true,
	},
	{
		"a shard whose holder is cut off", "its calls continue, and it cannot record them",
		shardBounds{prepares: true, faults: 1, kinds: []fault{cut}},
		false,
	},
	{
		"a shard whose holder is cut off and dies", "its calls are never recorded",
		shardBounds{faults: 2, kinds: []fault{cut, crash}},
		true,
	},
	{
		"a shard whose holder stalls, where the next one's clock is behind", "another clock decides when a call is over",
		shardBounds{handOvers: 1, faults: 1, kinds: []fault{stall, slow}, clocks: [managers]int64{0, -margin}},
		true,
	},
	{
		"a shard whose holder stalls, where the next one's clock is ahead", "another clock decides when a call is over",
		shardBounds{handOvers: 1, faults: 1, kinds: []fault{stall, slow}, clocks: [managers]int64{0, margin}},
		true,
	},
	{
		"a shard whose holder stalls, and reads the Lease before its calls", "it does not send the claims that it stores too late",
		shardBounds{prepares: true, faults: 1, kinds: []fault{stall}, readsBack: true, broken: shardBroken{countsForced: true}},
		false,
	},
	{
		"a team that is moved", "the label of each post decides who may claim it",
		shardBounds{moves: 1, faults: 1, kinds: []fault{slow, stale, stall, crash, cut}},
		true,
	},
	{
		"a team that is moved, where the first post is not ready", "the holders claim different posts",
		shardBounds{moves: 1, prepares: true, faults: 1, kinds: []fault{stale}},
		false,
	},
	{
		"a team that is moved and moved back", "the first holder still has its calls",
		shardBounds{moves: 2, faults: 1, kinds: []fault{slow}},
		false,
	},
	{
		"a team that is moved while its shards are handed over", "two holders of each shard may call the account",
		shardBounds{moves: 1, handOvers: 1},
		false,
	},
	{
		"a team that is moved while a post is created", "the post has the label of either shard, or none",
		shardBounds{moves: 1, arrives: true, faults: 1, kinds: []fault{slow, crash, stale}},
		true,
	},
	{
		"a snapshot that is restored", "the Lease names a holder from before",
		shardBounds{restores: 1, handOvers: 1},
		false,
	},
	{
		"a snapshot that is restored, of a shard that is handed over", "a process that stalls meanwhile holds a version that the snapshot lacks",
		shardBounds{restores: 1, early: true, handOvers: 1, faults: 1, kinds: []fault{stall}},
		true,
	},
	{
		"a snapshot that is restored, and a post that is created afterwards", "the snapshot lacks a call that is under way",
		shardBounds{restores: 1, arrives: true, faults: 1, kinds: []fault{slow}},
		true,
	},
	{
		"a snapshot that is restored, of a team that is moved", "the snapshot may be from the middle of the move",
		shardBounds{restores: 1, moves: 1},
		true,
	},
}

// TestShards checks the rules of shards in every schedule.
func TestShards(t *testing.T) {
	for _, s := range shardScenarios {
		t.Run(s.name, func(t *testing.T) {
			if s.large && !*long {
				t.Skip("it has many states; -explore.long explores them")
			}
			s.within.faults = max(s.within.faults-fewer, 0)
			began := time.Now()
			r := exploreShards(s.within)
			t.Logf("%d faults: %s, in %s", s.within.faults, r, time.Since(began).Round(10*time.Millisecond))
			if r.violation != nil {
				t.Fatalf("%s: %s (%s)\n%s", r.violation.rule, r.violation.why, s.reason, strings.Join(r.trace, "\n"))
			}
		})
	}
}
