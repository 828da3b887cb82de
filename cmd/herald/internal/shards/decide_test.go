// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parse returns the view of replica b. shards lists the state of each shard: "-" is free, "a" is held by another live
// replica, "b" is held by b, "b?" names b with a version that it does not hold, "b!" was given up by b, "a<b" was
// taken from b, and the delivery of "~" and "b~" has just failed on b.
func parse(stated int, members, shards string) *view {
	v := &view{self: "b", stated: stated, members: strings.Fields(members)}
	for i, text := range strings.Split(shards, ",") {
		version := fmt.Sprintf("v%d", i)
		switch text {
		case "-":
			v.shards = append(v.shards, shardView{version: version})
		case "b":
			v.shards = append(v.shards, shardView{holder: "b", version: version, held: version})
		case "b?":
			v.shards = append(v.shards, shardView{holder: "b", version: version})
		case "b!":
			v.shards = append(v.shards, shardView{holder: "b", version: version, given: version})
		case "~":
			v.shards = append(v.shards, shardView{version: version, failed: true})
		case "b~":
			v.shards = append(v.shards, shardView{holder: "b", version: version, failed: true})
		case "a<b":
			v.shards = append(v.shards, shardView{holder: "a", version: version, held: "old"})
		case "-<b":
			v.shards = append(v.shards, shardView{version: version, held: "old", given: "older"})
		default:
			v.shards = append(v.shards, shardView{holder: text, version: version})
		}
	}
	return v
}

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name, reason    string
		stated          int
		members, shards string
		want            decision
	}{
		{"alone", "one replica delivers everything", 4, "b", "-,-,-,-", decision{acquire: []int{0, 1, 2, 3}}},
		{"together", "each takes its share, from its own position on", 4, "a b", "-,-,-,-", decision{acquire: []int{2, 3}}},
		{"a share that does not divide", "shares are rounded up, or shards would remain free", 4, "a b c", "-,-,-,-", decision{acquire: []int{1, 2}}},
		{"more members than shards", "the rest take over if one dies", 2, "a b c", "a,c", decision{}},
		{"balanced", "nothing changes hands without a reason", 4, "a b", "a,a,b,b", decision{}},
		{"off by one", "the last shard has to be somewhere", 3, "a b", "a,b,b", decision{}},
		{"not a member yet", "others could not see that the holder is alive", 4, "a c", "-,-,a,c", decision{}},
		{"a member with fewer", "the free shard belongs to the member that lacks it", 4, "a b c", "-,b,a,a", decision{}},
		{"the share is reached", "the other member takes the rest", 4, "a b", "-,-,b,b", decision{}},
		{"a dead holder's shards", "its Lease is no longer renewed, so they count as free", 4, "b c", "-,-,b,c", decision{acquire: []int{0}}},
		{"a new member", "it lacks some, and no shard is free", 4, "a b", "b,b,b,b", decision{release: []int{3}}},
		{"a new member, when a shard is free", "shards change hands one at a time", 4, "a b", "b,b,b,-", decision{}},
		{"a new member, and another with as many shards", "only the first of both releases one", 4, "b c d", "c,c,b,b", decision{release: []int{3}}},
		{"a new member, and an earlier one with as many shards", "the first of both releases one", 4, "a b d", "a,a,b,b", decision{}},
		{"taken over", "another replica counted this one as dead", 4, "a b", "a<b,a,b,b", decision{lost: []int{0}}},
		{"taken over and free", "the version is not its own, so it must take the shard over again", 4, "a b", "-<b,a,a,b", decision{lost: []int{0}, acquire: []int{0}}},
		{"an earlier process of the same name", "its calls may still be running under the old version", 4, "a b", "b?,a,a,b", decision{acquire: []int{0}}},
		{"an unconfirmed take-over before a free shard", "nobody else takes the former", 4, "a b", "-,a,a,b?", decision{acquire: []int{3, 0}}},
		{"an earlier process with more than the share", "no other replica takes what names a live one", 4, "a b c", "b?,b?,b?,b?", decision{vacate: []int{2, 3}, acquire: []int{0, 1}}},
		{"an earlier process, after another replica took its shards", "a member that has fewer takes the shard", 4, "a b c", "b?,b,a,a", decision{vacate: []int{0}}},
		{"given up", "the Lease is vacated once the delivery has ended", 4, "a b", "b!,a,a,b", decision{release: []int{0}}},
		{"given up and taken over", "nothing is left to release", 4, "a b", "a,a,b,b", decision{}},
		{"failed", "another replica may be able to deliver it", 4, "b", "~,b,b,-", decision{acquire: []int{3}}},
		{"failed, while the Lease names this replica", "no other replica takes what names a live one", 4, "b", "b~,b,b,b", decision{vacate: []int{0}}},
		{"the leader has another number", "labels of both numbers would be mixed", 8, "b", "b,-,b!,-", decision{release: []int{0, 2}}},
		{"the leader has one shard", "it delivers all posts itself", 0, "b", "b,-,-,-", decision{release: []int{0}}},
		{"replicas with another number", "they hold no shards and are not members", 2, "b", "-,-", decision{acquire: []int{0, 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := decide(parse(tt.stated, tt.members, tt.shards))
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestDecideConverges lets replicas decide in turn, starting with every division of up to four shards among up to four
// replicas and earlier processes of their names. All shards must be held in the end, with shares that differ by at most
// one, and without a cycle.
func TestDecideConverges(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for members := 1; members <= len(names); members++ {
		for shards := 2; shards <= 4; shards++ {
			start := make([]int, shards)
			for next := true; next; next = increment(start, 2*members) {
				settle(t, names[:members], start)
			}
		}
	}
}

// increment sets digits to the next number, where the largest digit is limit. It reports whether there is one.
func increment(digits []int, limit int) bool {
	for i := range digits {
		digits[i]++
		if digits[i] <= limit {
			return true
		}
		digits[i] = 0
	}
	return false
}

// settle starts with the replica of each shard, none for the number of replicas, or an earlier process for more.
func settle(t *testing.T, members []string, start []int) {
	t.Helper()
	holders, earlier := make([]string, len(start)), make([]bool, len(start))
	for i, m := range start {
		if earlier[i] = m > len(members); m != len(members) {
			holders[i] = members[m%(len(members)+1)]
		}
	}
	for round := 0; ; round++ {
		changed := false
		for _, self := range members {
			v := &view{self: self, stated: len(holders), members: members, shards: make([]shardView, len(holders))}
			for i, holder := range holders {
				v.shards[i] = shardView{holder: holder, version: holder}
				if holder == self && !earlier[i] {
					v.shards[i].held = self
				}
			}
			d := decide(v)
			for _, i := range d.acquire {
				holders[i], earlier[i], changed = self, false, true
			}
			for _, i := range append(d.release, d.vacate...) {
				holders[i], earlier[i], changed = "", false, true
			}
		}
		switch {
		case !changed:
			checkShares(t, members, holders, start)
			return
		case round > 4*len(holders):
			t.Fatalf("%v with %v never settles: %v", start, members, holders)
		}
	}
}

func checkShares(t *testing.T, members, holders []string, start []int) {
	t.Helper()
	counts := map[string]int{}
	for _, holder := range holders {
		counts[holder]++
	}
	least, most := len(holders), 0
	for _, m := range members {
		least, most = min(least, counts[m]), max(most, counts[m])
	}
	if counts[""] > 0 || most-least > 1 {
		t.Errorf("%v with %v ends as %v", start, members, holders)
	}
}
