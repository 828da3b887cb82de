// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
	"time"
)

// TestAdmitted admits changes to posts one after another, and checks the totals of earlier changes that each one is
// given.
func TestAdmitted(t *testing.T) {
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	type step struct {
		after     time.Duration
		post      string
		was, is   int64
		created   int64
		countedAt time.Duration
		undo      bool
		// posts and bytes are the expected totals of admitted posts that have not been counted.
		posts, bytes int64
	}
	const never = -24 * time.Hour
	for _, tt := range []struct {
		reason string
		steps  []step
	}{
		{"new posts add up", []step{
			{0, "a", 0, 100, 1, never, false, 0, 0},
			{1 * time.Second, "b", 0, 50, 1, never, false, 1, 100},
			{2 * time.Second, "c", 0, 50, 1, never, false, 2, 150},
		}},
		{"a counted post is not added to the count", []step{
			{0, "a", 0, 100, 1, never, false, 0, 0},
			{9 * time.Second, "b", 0, 50, 1, 8 * time.Second, false, 0, 0},
		}},
		{"a count may lack the latest posts", []step{
			{7 * time.Second, "a", 0, 100, 1, never, false, 0, 0},
			{9 * time.Second, "b", 0, 50, 1, 8 * time.Second, false, 1, 100},
		}},
		{"a retried post counts once", []step{
			{0, "a", 0, 100, 1, never, false, 0, 0},
			{1 * time.Second, "a", 0, 120, 1, never, false, 0, 0},
			{2 * time.Second, "b", 0, 50, 1, never, false, 1, 120},
		}},
		{"a post that grows in steps counts by its total growth", []step{
			{0, "a", 10, 100, 0, never, false, 0, 0},
			{1 * time.Second, "a", 100, 200, 0, never, false, 0, 90},
			{2 * time.Second, "b", 0, 50, 1, never, false, 0, 190},
		}},
		{"a post created a moment before counts as admitted", []step{
			{0, "a", 0, 100, 1, never, false, 0, 0},
			{1 * time.Second, "a", 100, 200, 0, never, false, 1, 100},
			{2 * time.Second, "b", 0, 50, 1, never, false, 1, 200},
		}},
		{"a post that shrinks again releases its growth", []step{
			{0, "a", 10, 100, 0, never, false, 0, 0},
			{1 * time.Second, "a", 100, 5, 0, never, false, 0, 90},
			{2 * time.Second, "b", 0, 50, 1, never, false, 0, 0},
		}},
		{"a smaller post is released by the next count", []step{
			{0, "a", 100, 10, 0, never, false, 0, 0},
			{1 * time.Second, "b", 0, 50, 1, never, false, 0, 0},
		}},
		{"a change that was rejected elsewhere is removed", []step{
			{0, "a", 0, 100, 1, never, true, 0, 0},
			{1 * time.Second, "b", 0, 50, 1, never, false, 0, 0},
			{2 * time.Second, "b", 50, 90, 0, never, true, 1, 50},
			{3 * time.Second, "c", 0, 50, 1, never, false, 1, 50},
		}},
		{"an entry that no count replaces expires", []step{
			{0, "a", 0, 100, 1, never, false, 0, 0},
			{recordTTL, "b", 0, 50, 1, never, false, 0, 0},
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var a admitted
			for i, s := range tt.steps {
				undo := a.reserve("team", s.post, growing{s.was, s.is, s.created, start.Add(s.after)}, start.Add(s.countedAt), func(posts, bytes int64) bool {
					if posts != s.posts || bytes != s.bytes {
						t.Errorf("step %d: counted %d posts of %d bytes, want %d of %d", i, posts, bytes, s.posts, s.bytes)
					}
					return true
				})
				if s.undo {
					undo()
				}
			}
		})
	}
}

// TestAdmittedIsBounded floods one namespace and visits many. The first one's counts stay exact, and the others use
// little memory.
func TestAdmittedIsBounded(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	var a admitted
	yes := func(int64, int64) bool { return true }
	const flood = 3 * maxAdmitted
	for i := range flood {
		a.reserve("team", fmt.Sprint("p-", i), growing{0, 10, 1, now}, time.Time{}, yes)
	}
	if got := len(a.namespaces["team"].posts); got != maxAdmitted {
		t.Errorf("%d records are stored, want %d", got, maxAdmitted)
	}
	refused := a.reserve("team", "last", growing{0, 10, 1, now}, time.Time{}, func(posts, bytes int64) bool {
		if posts != flood || bytes != 10*flood {
			t.Errorf("counted %d posts of %d bytes, want %d of %d", posts, bytes, flood, 10*flood)
		}
		return false
	})
	refused()
	a.reserve("other", "p", growing{0, 10, 1, now}, time.Time{}, func(posts, bytes int64) bool {
		if posts != 0 || bytes != 0 {
			t.Errorf("another namespace has %d posts of %d bytes", posts, bytes)
		}
		return true
	})
	a.reserve("later", "p", growing{0, 10, 1, now.Add(recordTTL)}, time.Time{}, yes)
	if len(a.namespaces) != 1 {
		t.Errorf("%d namespaces are stored, want only the latest", len(a.namespaces))
	}
}
