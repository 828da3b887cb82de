// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"testing"
	"time"
)

func TestClosedGate(t *testing.T) {
	var woken []string
	waiter := func(id string, due int64) Waiter {
		return Waiter{ID: id, Team: "a", Due: time.Unix(due, 0), Wake: func() { woken = append(woken, id) }}
	}
	s := NewScheduler(8)
	s.SetClosed("x", true)
	if got := s.TryAcquire(waiter("later", 2), []string{"x"}); len(got) > 0 {
		t.Fatalf("another process may be calling the account, but its gate was acquired: %v", got)
	}
	s.SetClosed("x", true)
	if got := s.TryAcquire(waiter("earlier", 1), []string{"x", "y"}); !slices.Equal(got, []string{"y"}) {
		t.Fatalf("an open account does not wait for a closed one; got %v", got)
	}
	s.Done("earlier")
	s.SetClosed("x", true)
	if got := s.TryAcquire(waiter("earlier", 1), []string{"x"}); len(got) > 0 {
		t.Fatalf("the gate is still closed, but was acquired: %v", got)
	}
	s.SetClosed("x", false)
	if !slices.Equal(woken, []string{"earlier"}) {
		t.Fatalf("an opened gate goes to the post that is due first, not to %v", woken)
	}
	s.SetClosed("x", true)
	if got := s.TryAcquire(waiter("earlier", 1), []string{"x"}); len(got) > 0 {
		t.Fatalf("the gate was closed again before its waiter came, but it was acquired: %v", got)
	}
	s.SetClosed("x", false)
	if got := s.TryAcquire(waiter("earlier", 1), []string{"x"}); !slices.Equal(got, []string{"x"}) {
		t.Fatalf("got %v after the gate was opened", got)
	}
	s.Done("earlier")
	if got := s.TryAcquire(waiter("later", 2), []string{"x"}); !slices.Equal(got, []string{"x"}) {
		t.Fatalf("the next waiter got %v", got)
	}
	s.Done("later")
	if len(s.gates) > 0 || len(s.tickets) > 0 {
		t.Errorf("%d gates and %d tickets remain", len(s.gates), len(s.tickets))
	}
}
