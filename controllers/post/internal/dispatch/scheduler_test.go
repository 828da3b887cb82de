// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAdmissionUnderLoad has many posts compete for accounts and places, as when all are due at the same time.
func TestAdmissionUnderLoad(t *testing.T) {
	const accounts, posts, places = 20, 2000, 16
	a := NewScheduler(places)
	var inside [accounts]atomic.Int32
	var busy, split atomic.Int32
	var wg sync.WaitGroup
	workers := make(chan struct{}, 64)
	for i := range posts {
		wg.Go(func() {
			draw := rand.New(rand.NewPCG(uint64(i), 1))
			wake := make(chan struct{}, 100)
			id := fmt.Sprint(i)
			wanted := draw.Perm(accounts)[:1+draw.IntN(4)]
			w := Waiter{ID: id, Team: fmt.Sprint("team", i%3), Due: time.Unix(int64(i%5), 0), Wake: func() { wake <- struct{}{} }}
			for turns := 0; len(wanted) > 0; turns++ {
				if turns > 0 {
					split.Add(1)
				}
				workers <- struct{}{}
				var keys []string
				for _, n := range wanted {
					keys = append(keys, fmt.Sprint(n))
				}
				taken := a.TryAcquire(w, keys)
				for len(taken) == 0 {
					a.ReturnWake(id)
					<-workers
					<-wake
					workers <- struct{}{}
					taken = a.TryAcquire(w, keys)
				}
				if busy.Add(1) > places {
					t.Error("more slots are in use than exist")
				}
				for _, n := range wanted {
					if slices.Contains(taken, fmt.Sprint(n)) && inside[n].Add(1) != 1 {
						t.Error("two waiters acquired a gate")
					}
				}
				if draw.IntN(20) == 0 {
					a.Slow(id, taken[0])
				}
				for _, n := range wanted {
					if slices.Contains(taken, fmt.Sprint(n)) {
						inside[n].Add(-1)
						a.Release(id, fmt.Sprint(n))
					}
				}
				wanted = slices.DeleteFunc(wanted, func(n int) bool { return slices.Contains(taken, fmt.Sprint(n)) })
				busy.Add(-1)
				a.Done(id)
				a.ReturnWake(id)
				<-workers
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff([3]int{}, [3]int{len(a.tickets), len(a.gates), len(a.teams)}); diff != "" {
		t.Errorf("entries without an owner remain: %s", diff)
	}
	t.Logf("%d of %d were split", split.Load(), posts)
}

// TestAdmissionShares divides twelve places between teams that take turns, each post with its own account.
func TestAdmissionShares(t *testing.T) {
	a := NewScheduler(12)
	for _, tt := range []struct {
		team   string
		want   int
		reason string
	}{
		{"greedy", 6, "a single team gets half of the slots"},
		{"small", 4, "each of two teams gets a third"},
		{"third", 3, "each of three teams gets a quarter; the first team keeps its surplus"},
	} {
		got := 0
		for i := range 20 {
			id := fmt.Sprint(tt.team, i)
			if len(a.TryAcquire(Waiter{ID: id, Team: tt.team, Wake: func() {}}, []string{id})) == 1 {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%s got %d places, want %d (%s)", tt.team, got, tt.want, tt.reason)
		}
	}
}

// TestAdmissionIsBounded has a hundred teams request a place each: eight at a time get one, and in the end all get
// theirs.
func TestAdmissionIsBounded(t *testing.T) {
	a := NewScheduler(4)
	var inside, woken []string
	enter := func(id string) {
		if len(a.TryAcquire(Waiter{ID: id, Team: id, Wake: func() { woken = append(woken, id) }}, []string{id})) == 1 {
			inside = append(inside, id)
		}
	}
	for i := range 100 {
		enter(fmt.Sprint("team", i))
	}
	if len(inside) != 8 {
		t.Fatalf("%d are inside, want twice the places", len(inside))
	}
	for done := range 100 {
		if len(inside) == 0 {
			t.Fatalf("no waiter is running after %d", done)
		}
		id := inside[0]
		inside = inside[1:]
		a.Done(id)
		for len(woken) > 0 {
			next := woken[0]
			woken = woken[1:]
			enter(next)
		}
		if len(inside) > 8 {
			t.Fatalf("%d are inside", len(inside))
		}
	}
}

func TestAdmissionOrder(t *testing.T) {
	const first, second = "first", "second"
	for _, tt := range []struct {
		name string
		// held lists the gates that another post holds when a post requests both accounts.
		held []string
		// act is the next event.
		act    func(a *Scheduler)
		woken  []string
		taken  []string
		reason string
	}{
		{"free", nil, func(*Scheduler) {}, nil, []string{first, second}, "both gates are acquired together"},
		{"one busy", []string{second}, func(*Scheduler) {}, nil, nil, "no gate is acquired while one is in use"},
		{"one is released", []string{second}, func(a *Scheduler) { a.Release("holder", second) }, []string{"post"}, []string{first, second}, "the post is woken when the last gate is free"},
		{"one of two is released", []string{first, second}, func(a *Scheduler) { a.Release("holder", first) }, nil, nil, "the post needs both gates"},
		{"one is slow", []string{second}, func(a *Scheduler) { a.Slow("holder", second) }, []string{"post"}, []string{first}, "a slow account is skipped"},
		{"slow, reported by another", []string{second}, func(a *Scheduler) { a.Slow("another", second) }, nil, nil, "only the holder of a gate can report it as slow"},
		{"the holder is done", []string{first, second}, func(a *Scheduler) { a.Done("holder") }, []string{"post"}, []string{first, second}, "Done releases all its gates"},
		{"an unused wake", []string{second}, func(a *Scheduler) { a.Done("holder"); a.ReturnWake("post") }, []string{"post"}, []string{first, second}, "the wake is returned, and can be requested again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := NewScheduler(8)
			if len(tt.held) > 0 {
				if got := a.TryAcquire(Waiter{ID: "holder", Team: "team", Wake: func() {}}, tt.held); len(got) != len(tt.held) {
					t.Fatalf("the holder got %v", got)
				}
			}
			var woken []string
			w := Waiter{ID: "post", Team: "team", Wake: func() { woken = append(woken, "post") }}
			taken := a.TryAcquire(w, []string{first, second})
			tt.act(a)
			if diff := cmp.Diff(tt.woken, woken); diff != "" {
				t.Errorf("woken (%s): %s", tt.reason, diff)
			}
			if taken == nil && tt.taken != nil {
				taken = a.TryAcquire(w, []string{first, second})
			}
			if diff := cmp.Diff(tt.taken, taken); diff != "" {
				t.Errorf("acquired (%s): %s", tt.reason, diff)
			}
		})
	}
}
