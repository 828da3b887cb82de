// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"
	"time"
)

func TestTurns(t *testing.T) {
	now := time.Unix(1000, 0)
	turns := NewSequencer(func() time.Time { return now })
	due := time.Unix(2000, 5e8)
	for _, tt := range []struct {
		team   string
		due    time.Time
		want   int
		reason string
	}{
		{"a", due, 0, "the first"},
		{"a", due.Add(time.Millisecond), 1, "the same second"},
		{"b", due, 0, "each team has its own count"},
		{"a", due.Add(time.Second), 0, "another second"},
		{"a", due, 2, "the third of its second"},
	} {
		if got := turns.Next(tt.team, tt.due); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.reason, got, tt.want)
		}
	}
	now = time.Unix(3000, 0)
	turns.Next("c", now.Add(time.Hour))
	if len(turns.counts) != 1 {
		t.Errorf("%d expired counts remain", len(turns.counts)-1)
	}
}
