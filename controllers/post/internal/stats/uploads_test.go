// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/internal/media/store"
)

// TestLateUploadsOfManagers: the forecast counts the slots of all managers that share uploads, and the uploads that the
// others hold.
func TestLateUploadsOfManagers(t *testing.T) {
	held := func(ago, left time.Duration) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			p.Status.Targets[0].Prepared = &v1alpha1.Prepared{
				MadeAt: v1alpha1.NewTime(nine.Add(-ago)), By: &v1alpha1.PreparedBy{Holder: "standby", Until: v1alpha1.NewTime(nine.Add(left))},
			}
		}
	}
	// Each of these uploads takes ten minutes. A manager gives a single team only one of its two slots.
	three := []client.Object{
		film("acme"), unfinished("acme", "a", 11*time.Minute), unfinished("acme", "b", 11*time.Minute), unfinished("acme", "c", 11*time.Minute),
	}
	for _, tt := range []struct {
		reason   string
		managers int
		objects  []client.Object
		want     string
	}{
		{"the leader alone has one slot for three uploads", 0, three, "2"},
		{"two managers have two", 2, three, "1"},
		{"three managers have one for each", 3, three, "0"},
		{
			"an upload that a standby began five minutes ago is in time, unlike one that has not started",
			2,
			[]client.Object{film("acme"), unfinished("acme", "a", 6*time.Minute, held(5*time.Minute, 30*time.Second)), unfinished("acme", "b", 6*time.Minute)},
			"1",
		},
		{
			"the upload of a dead standby starts again",
			2,
			[]client.Object{film("acme"), unfinished("acme", "a", 6*time.Minute, held(5*time.Minute, -time.Second)), unfinished("acme", "b", 6*time.Minute)},
			"2",
		},
		{
			"a standby's upload uses a slot",
			2,
			[]client.Object{
				film("acme"), unfinished("acme", "a", 11*time.Minute, held(0, time.Minute)), unfinished("acme", "b", 11*time.Minute),
				unfinished("acme", "c", 11*time.Minute),
			},
			"1",
		},
	} {
		_, s, registry := measured(t, tt.objects...)
		s.Uploads = prepare.New(prepare.Options{Files: &store.Store{}, Platforms: s.Platforms, Clock: s.Clock.(clock.WithTicker), MaxUploads: 2, Managers: tt.managers})
		want := lines(`herald_late_uploads{namespace="acme",platform="youtube"} ` + tt.want)
		if diff := cmp.Diff(want, values(t, registry, "herald_late_uploads")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}
