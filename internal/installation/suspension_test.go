// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package installation

import "testing"

func TestSuspension(t *testing.T) {
	var b Suspension
	var notified []bool
	b.Subscribe(func() { notified = append(notified, b.On()) })
	for _, step := range []struct {
		reason  string
		on      bool
		changed bool
		told    int
	}{
		{"deliveries are not suspended at first", false, false, 0},
		{"deliveries are suspended", true, true, 1},
		{"setting it again has no effect", true, false, 1},
		{"deliveries continue", false, true, 2},
	} {
		if changed := b.Set(step.on); changed != step.changed || b.On() != step.on || len(notified) != step.told {
			t.Errorf("%s: changed %t, on %t, notified %v", step.reason, changed, b.On(), notified)
		}
	}
	if len(notified) != 2 || !notified[0] || notified[1] {
		t.Errorf("subscribers find %v, want the state at the time of the call", notified)
	}
}

func TestNoSuspension(t *testing.T) {
	if (*Suspension)(nil).On() {
		t.Error("a nil Suspension must be off")
	}
}
