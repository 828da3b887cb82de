// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strings"
	"testing"
)

// shardMutations break rules of shards. want is as in a mutation.
var shardMutations = []struct {
	name, reason string
	within       shardBounds
	want         []Rule
}{
	{
		"a claim that names no version, which counts as one's own", "the new holder does not wait for its call",
		shardBounds{handOvers: 1, broken: shardBroken{omits: true, unnamedIsOwn: true}},
		[]Rule{Flight, Order},
	},
	{
		"a claim that names no version", "it counts as another holder's, and its account waits until the call is recorded or over",
		shardBounds{handOvers: 1, faults: 1, kinds: []fault{crash, slow}, broken: shardBroken{omits: true}},
		nil,
	},
	{
		"a new holder that does not wait for the open claims of other versions", "the old holder finishes its calls",
		shardBounds{handOvers: 1, broken: shardBroken{ignoresOpen: true}},
		[]Rule{Flight, Order},
	},
	{
		"a new holder that does not wait for the claims of a dead one", "the platform may still process its call",
		shardBounds{faults: 1, kinds: []fault{crash}, broken: shardBroken{ignoresOpen: true}},
		[]Rule{Flight, Order},
	},
	{
		"a claim that is sent although it was stored after the shard was given up", "the next holder has listed the posts before",
		shardBounds{handOvers: 1, prepares: true, broken: shardBroken{sendsReleased: true}},
		[]Rule{Flight, Order},
	},
	{
		"a holder that claims after it has released the shard", "it would have to notice the next holder first",
		shardBounds{handOvers: 1, prepares: true, broken: shardBroken{keepsClaiming: true}},
		[]Rule{Flight, Order},
	},
	{
		"a new holder that does not list the posts", "its cache lacks the last claims of the old one",
		shardBounds{handOvers: 1, prepares: true, faults: 1, kinds: []fault{stale}, broken: shardBroken{unlisted: true}},
		[]Rule{Flight, Order},
	},
	{
		"a team that is moved without a suspension", "the new holder does not see the post that the old one is sending",
		shardBounds{moves: 1, broken: shardBroken{unsuspended: true}},
		[]Rule{Flight, Order},
	},
	{
		"a team that is resumed before its posts are labelled", "the new holder does not see the post that the old one is sending",
		shardBounds{moves: 1, broken: shardBroken{resumesEarly: true}},
		[]Rule{Flight, Order},
	},
	{
		"a new holder that does not list the posts of a team that arrives", "its cache lacks the last claim of the old one",
		shardBounds{moves: 1, faults: 1, kinds: []fault{stale}, broken: shardBroken{unlistedTeam: true}},
		[]Rule{Flight, Order},
	},
	{
		"a holder that goes by the label alone", "a post is created with an outdated label",
		shardBounds{moves: 1, arrives: true, broken: shardBroken{anyTeam: true}},
		[]Rule{Flight, Order},
	},
	{
		"a restored version counts, and the next one is used again", "a replica that stalled meanwhile holds the same version as the next holder",
		shardBounds{restores: 1, early: true, handOvers: 1, faults: 1, kinds: []fault{stall}, broken: shardBroken{reuses: true}},
		[]Rule{Flight, Order},
	},
	{
		"a restored version counts for a process under its holder's name", "the pause after the snapshot is long enough for every call from before",
		shardBounds{restores: 1, faults: 1, kinds: []fault{slow}, broken: shardBroken{adopts: true}},
		nil,
	},
	{
		"a version counts that a process finds under its name", "its predecessor's call is under way",
		shardBounds{faults: 1, kinds: []fault{crash}, broken: shardBroken{adopts: true}},
		[]Rule{Flight, Order},
	},
	{
		"no pause after a restored snapshot", "the snapshot lacks the claim of a call that is under way",
		shardBounds{restores: 1, arrives: true, broken: shardBroken{noPause: true}},
		[]Rule{Flight, Order},
	},
	{
		"a post that is never labelled", "no replica sees it",
		shardBounds{arrives: true, broken: shardBroken{unlabelled: true}},
		[]Rule{Lost},
	},
	{
		"a claim without its resourceVersion", "the version of the shard does not protect against a stale holder",
		shardBounds{faults: 2, kinds: []fault{stall, slow}, broken: shardBroken{blindClaim: true}},
		[]Rule{I3},
	},
	{
		"a claim of a stale holder", "the protocol does not prevent it: nothing joins the write of a post to the Lease",
		shardBounds{prepares: true, faults: 1, kinds: []fault{stall}, broken: shardBroken{countsForced: true}},
		[]Rule{Flight, Order},
	},
}

// TestShardMutations checks that the invariants detect each mutation. With -v it prints how.
func TestShardMutations(t *testing.T) {
	for _, m := range shardMutations {
		t.Run(m.name, func(t *testing.T) {
			r := exploreShards(m.within)
			switch {
			case r.violation == nil && m.want != nil:
				t.Errorf("no invariant detected it (%s); want one of %v: %s", m.reason, m.want, r)
			case r.violation != nil && !slices.Contains(m.want, r.violation.rule):
				t.Errorf("%s: %s; want one of %v (%s)\n%s", r.violation.rule, r.violation.why, m.want, m.reason, strings.Join(r.trace, "\n"))
			case r.violation != nil:
				t.Logf("%s: %s, seen after %s\n%s", r.violation.rule, r.violation.why, r, strings.Join(r.trace, "\n"))
			default:
				t.Logf("no violation (%s): %s", m.reason, r)
			}
		})
	}
}
