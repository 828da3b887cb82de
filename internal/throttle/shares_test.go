// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// take takes as many places as a team gets.
func take(s *Shares, team string, want int, woken *[]string) int {
	got := 0
	for i := range want {
		id := fmt.Sprintf("%s/%d", team, i)
		if !s.TryTake(team, Waiter{ID: id, Wake: func() { *woken = append(*woken, id) }}) {
			break
		}
		got++
	}
	return got
}

func TestShares(t *testing.T) {
	var woken []string
	s := NewShares(12)
	for _, tt := range []struct {
		team   string
		want   int
		reason string
	}{
		{"greedy", 6, "a team alone gets half"},
		{"small", 4, "with two teams each gets a third, and there is room for it"},
		{"third", 3, "with three a quarter each; the first holds more and keeps it"},
		{"greedy", 0, "it holds more than its share now"},
	} {
		if got := take(s, tt.team, 100, &woken); got != tt.want {
			t.Errorf("%s got %d places, want %d (%s)", tt.team, got, tt.want, tt.reason)
		}
	}
}

func TestSharesWake(t *testing.T) {
	var woken []string
	s := NewShares(4)
	if got := take(s, "a", 100, &woken); got != 2 {
		t.Fatalf("a got %d places", got)
	}
	if got := take(s, "b", 100, &woken); got != 1 {
		t.Fatalf("b got %d places", got)
	}
	s.Give("a")
	if diff := cmp.Diff([]string(nil), woken); diff != "" {
		t.Fatalf("a still holds its share of one: %s", diff)
	}
	s.Give("a")
	if diff := cmp.Diff([]string{"a/2"}, woken); diff != "" {
		t.Fatalf("the team that holds least is woken: %s", diff)
	}
	s.Pass("a/2")
	if diff := cmp.Diff([]string{"a/2", "b/1"}, woken); diff != "" {
		t.Fatalf("a wake that is not used goes to the next, who may hold half now: %s", diff)
	}
	if !s.TryTake("b", Waiter{ID: "b/1"}) {
		t.Fatal("b's share is two places now that it is alone")
	}
	s.Give("b")
	s.Give("b")
	if len(s.teams) != 0 || len(s.woken) != 0 {
		t.Errorf("teams that hold and wait for nothing are kept: %v %v", s.teams, s.woken)
	}
}

// TestSharesGrowBack lets a team that had to give way take its half again.
func TestSharesGrowBack(t *testing.T) {
	const places = 64
	s := NewShares(places)
	var ready []string
	hold := func(id string) bool {
		return s.TryTake("greedy", Waiter{ID: id, Wake: func() { ready = append(ready, id) }})
	}
	held := 0
	for i := range 1000 {
		if hold(fmt.Sprintf("g%d", i)) {
			held++
		}
	}
	guests := 10
	for i := range guests {
		if !s.TryTake(fmt.Sprintf("guest%d", i), Waiter{ID: fmt.Sprintf("guest%d", i)}) {
			t.Fatalf("guest %d found no place", i)
		}
	}
	// The greedy team's calls end; woken posts of its own may go in.
	step := func() {
		s.Give("greedy")
		held--
		for len(ready) > 0 {
			id := ready[0]
			ready = ready[1:]
			if hold(id) {
				held++
			}
			s.Pass(id)
		}
	}
	for range 60 {
		step()
	}
	if want := places / (guests + 2); held > want {
		t.Fatalf("with %d guests the team holds %d, want no more than %d", guests, held, want)
	}
	for i := range guests {
		s.Give(fmt.Sprintf("guest%d", i))
	}
	step()
	if held != places/2 {
		t.Errorf("alone again, the team holds %d places, want %d", held, places/2)
	}
}
