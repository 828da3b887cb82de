// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGateOrder(t *testing.T) {
	g := NewGates(1)
	var woken []string
	waiter := func(id string, due int) Waiter {
		return Waiter{ID: id, Due: time.Unix(int64(due), 0), Wake: func() { woken = append(woken, id) }}
	}
	if !g.TryAcquire("acct", waiter("first", 0)) {
		t.Fatal("a free gate was refused")
	}
	for _, w := range []Waiter{waiter("late", 30), waiter("early", 10), waiter("middle", 20), waiter("early", 10)} {
		if g.TryAcquire("acct", w) {
			t.Fatalf("%s acquired a gate in use", w.ID)
		}
	}
	if !g.TryAcquire("other", waiter("late", 30)) {
		t.Fatal("a gate blocks another account")
	}
	g.Release("acct")
	if diff := cmp.Diff([]string{"early"}, woken); diff != "" {
		t.Fatalf("only the earliest waiter is woken: %s", diff)
	}
	g.ReturnWake("early")
	if diff := cmp.Diff([]string{"early", "middle"}, woken); diff != "" {
		t.Fatalf("a returned wake goes to the next waiter: %s", diff)
	}
	if !g.TryAcquire("acct", waiter("middle", 20)) {
		t.Fatal("the woken waiter did not get the gate")
	}
	g.ReturnWake("middle")
	g.Release("acct")
	if diff := cmp.Diff([]string{"early", "middle", "late"}, woken); diff != "" {
		t.Fatal(diff)
	}
	g.ReturnWake("late")
	g.Release("other")
	if len(g.gates) != 0 || len(g.woken) != 0 {
		t.Errorf("unused gates remain: %d gates, %d wakes", len(g.gates), len(g.woken))
	}
}

// TestGateWidth fills a gate of width two.
func TestGateWidth(t *testing.T) {
	g := NewGates(2)
	var woken []string
	waiter := func(id string) Waiter {
		return Waiter{ID: id, Wake: func() { woken = append(woken, id) }}
	}
	if !g.TryAcquire("acct", waiter("a")) || !g.TryAcquire("acct", waiter("b")) {
		t.Fatal("a gate for two refused the second")
	}
	for _, id := range []string{"c", "d", "e"} {
		if g.TryAcquire("acct", waiter(id)) {
			t.Fatalf("%s got into a gate that is full", id)
		}
	}
	g.Release("acct")
	g.Release("acct")
	if diff := cmp.Diff([]string{"c", "d"}, woken); diff != "" {
		t.Fatalf("each free slot wakes one waiter, in order: %s", diff)
	}
	if !g.TryAcquire("acct", waiter("c")) {
		t.Fatal("the woken waiter did not get in")
	}
	g.ReturnWake("c")
	if len(woken) != 2 {
		t.Fatalf("a wake that was used was passed on: %v", woken)
	}
	g.ReturnWake("d")
	if diff := cmp.Diff([]string{"c", "d", "e"}, woken); diff != "" {
		t.Fatalf("a returned wake goes to the next waiter while the gate is in use: %s", diff)
	}
	g.ReturnWake("e")
	g.Release("acct")
	if len(g.gates) != 0 || len(g.woken) != 0 {
		t.Errorf("unused gates remain: %d gates, %d wakes", len(g.gates), len(g.woken))
	}
}

// TestGateExcludes has many goroutines compete for one gate.
func TestGateExcludes(t *testing.T) {
	g := NewGates(1)
	var inside, turns atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			wake := make(chan struct{}, 100)
			id := strconv.Itoa(i)
			w := Waiter{ID: id, Wake: func() { wake <- struct{}{} }}
			for !g.TryAcquire("acct", w) {
				g.ReturnWake(id)
				<-wake
			}
			if inside.Add(1) != 1 {
				t.Error("two waiters acquired the gate")
			}
			turns.Add(1)
			inside.Add(-1)
			g.Release("acct")
			g.ReturnWake(id)
		})
	}
	wg.Wait()
	if turns.Load() != 50 {
		t.Errorf("%d turns, want 50", turns.Load())
	}
}
