// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists_test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// TestHas looks up names in the head and in the segments of a team's lists, and of a team without lists.
func TestHas(t *testing.T) {
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	w := lists.NewWriter(files, clocktesting.NewFakePassiveClock(time.Now()))
	w.Shrink(2, 2, 4)
	withdrawn := []lists.Entry{posted(20), posted(21)}
	for i := range withdrawn {
		withdrawn[i].Status = v1alpha1.PhaseCancelled
	}
	for _, entries := range [][]lists.Entry{many(9), withdrawn[:1], many(11)[9:], withdrawn[1:]} {
		must.Succeed(t, w.Add(t.Context(), acme, entries))
	}
	view, err := w.View(t.Context(), acme)
	must.Succeed(t, err)
	for _, e := range append(many(11), withdrawn...) {
		if !view.Has(e.Name) {
			t.Errorf("%s (%s) is archived, and is not found", e.Name, e.Status)
		}
	}
	if view.Has("p0011") {
		t.Error("p0011 was never archived, and is found")
	}
	none, err := w.View(t.Context(), lists.Team{Namespace: "team-new", Name: "new"})
	if err != nil || none.Has("p0001") {
		t.Errorf("a team that has no lists has p0001; %v", err)
	}
}
