// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestSuspended verifies that every page of a suspended team shows that nothing is published, which explains why a post
// is not sent.
func TestSuspended(t *testing.T) {
	t.Parallel()
	const says = "Publishing is suspended"
	began := v1alpha1.NewTime(now.Add(-time.Hour))
	for name, tc := range map[string]struct {
		reason string
		spec   bool
		times  []v1alpha1.Suspension
		want   string
	}{
		"Never":     {reason: "there is nothing to say"},
		"JustAsked": {"the manager has not noted yet since when", true, nil, says + "</strong>."},
		"Since":     {"people see how long it has been", true, []v1alpha1.Suspension{{From: began}}, says + `</strong> since <time datetime="2026-12-01T08:00:00Z"`},
		"ByTheBrake": {
			"the brake of all teams is only in the status", false,
			[]v1alpha1.Suspension{{From: began}},
			says + `</strong> since <time datetime="2026-12-01T08:00:00Z"`,
		},
		"Over": {reason: "posts go out again", times: []v1alpha1.Suspension{{From: began, Until: &began}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.teams[0].Spec.Suspend, w.teams[0].Status.Suspensions = tc.spec, tc.times
			w.put(textPost("p-1", "text"))
			for _, path := range []string{"", "posts", "posts/p-1", "calendar", "connections", "team"} {
				page := w.serve(ask(&viewer, "/teams/"+acme+"/"+path, nil)).Body.String()
				if !strings.Contains(page, tc.want) || tc.want == "" && strings.Contains(page, says) {
					t.Errorf("%s: /%s: %s", tc.reason, path, page)
				}
			}
		})
	}
}
