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
		{"it is released at first", false, false, 0},
		{"it is set", true, true, 1},
		{"setting it again has no effect", true, false, 1},
		{"it is released", false, true, 2},
	} {
		if changed := b.Set(step.on); changed != step.changed || b.On() != step.on || len(notified) != step.told {
			t.Errorf("%s: changed %t, on %t, notified %v", step.reason, changed, b.On(), notified)
		}
	}
	if len(notified) != 2 || !notified[0] || notified[1] {
		t.Errorf("who follows it finds %v, want the brake as it is by then", notified)
	}
}

func TestNoSuspension(t *testing.T) {
	if (*Suspension)(nil).On() {
		t.Error("a nil Suspension must be off")
	}
}
