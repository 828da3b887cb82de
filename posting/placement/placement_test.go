// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		teams        []Team
		want         []Step
	}{
		{"a new team", "the first shard is as empty as the others", []Team{{Name: "a"}}, []Step{{"a", "", "00"}}},
		{"several new teams", "without posts, the numbers of teams are equal", []Team{{Name: "a"}, {Name: "b"}, {Name: "c"}}, []Step{{"a", "", "00"}, {"b", "", "01"}, {"c", "", "00"}}},
		{"a new team beside others", "it gets the shard with the smallest load", []Team{{Name: "a", Shard: "00", Posts: 7}, {Name: "b", Shard: "01", Posts: 3}, {Name: "c", Shard: "01", Posts: 3}, {Name: "d"}}, []Step{{"d", "", "01"}}},
		{"new teams beside one with more posts", "a shard with fewer posts does not get all of them", []Team{{Name: "a", Shard: "00", Posts: 12}, {Name: "b", Shard: "01", Posts: 9}, {Name: "c"}, {Name: "d"}, {Name: "e"}}, []Step{{"c", "", "01"}, {"d", "", "00"}, {"e", "", "01"}}},
		{"a new team beside teams without posts", "they are expected to have as many posts as others, not none", []Team{{Name: "a", Shard: "00", Posts: 8}, {Name: "b", Shard: "01"}, {Name: "c", Shard: "01"}, {Name: "d", Shard: "01"}, {Name: "e", Shard: "01"}, {Name: "f", Shard: "01"}, {Name: "g", Shard: "01"}, {Name: "h", Shard: "01"}, {Name: "i", Shard: "01"}, {Name: "j"}}, []Step{{"j", "", "00"}}},
		{"uneven posts", "a move suspends the team, so it needs a better reason", []Team{{Name: "a", Shard: "00", Posts: 900}, {Name: "b", Shard: "00", Posts: 900}, {Name: "c", Shard: "01"}}, nil},
		{"a new team with a known account", "the account's teams have one shard", []Team{{Name: "a", Shard: "01", Posts: 9, Accounts: []string{"x/1"}}, {Name: "b", Accounts: []string{"x/2", "x/1"}}}, []Step{{"b", "", "01"}}},
		{"two new teams with one account", "they are assigned together", []Team{{Name: "a", Accounts: []string{"x/1"}}, {Name: "b"}, {Name: "c", Accounts: []string{"x/1"}}}, []Step{{"a", "", "00"}, {"b", "", "01"}, {"c", "", "00"}}},
		{"an account that links two shards", "the team with fewer posts is moved", []Team{{Name: "a", Shard: "00", Posts: 2, Accounts: []string{"x/1"}}, {Name: "b", Shard: "01", Posts: 5, Accounts: []string{"x/1"}}}, []Step{{"a", "00", "01"}}},
		{"accounts that link three teams", "a team may link two others that share nothing", []Team{{Name: "a", Shard: "00", Accounts: []string{"x/1"}}, {Name: "b", Shard: "01", Posts: 5, Accounts: []string{"x/2"}}, {Name: "c", Shard: "00", Accounts: []string{"x/2", "x/1"}}}, []Step{{"a", "00", "01"}, {"c", "00", "01"}}},
		{"a shard that no longer exists", "the number of shards was lowered", []Team{{Name: "a", Shard: "05", Posts: 4}, {Name: "b", Shard: "00", Posts: 1}}, []Step{{"a", "05", "01"}}},
		{"a move that lasts", "the team already belongs to its new shard", []Team{{Name: "a", Shard: "00", Moving: true, Accounts: []string{"x/1"}}, {Name: "b", Shard: "01", Posts: 5, Accounts: []string{"x/1"}}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Decide(tt.teams, 2)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestDecideSpreads assigns 300 numbered teams to 16 shards, which hashing by ranges would put into two of them.
func TestDecideSpreads(t *testing.T) {
	var teams []Team
	for i := range 300 {
		teams = append(teams, Team{Name: fmt.Sprintf("team-%03d", i)})
	}
	counts := map[string]int{}
	for _, step := range Decide(teams, 16) {
		counts[step.Shard]++
	}
	for shard, n := range counts {
		if n < 18 || n > 19 {
			t.Errorf("shard %s has %d teams", shard, n)
		}
	}
	if len(counts) != 16 {
		t.Errorf("%d shards have teams", len(counts))
	}
}
