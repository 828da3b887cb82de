// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestApply(t *testing.T) {
	earlier := noon.Add(-time.Hour)
	before := func() []metav1.Condition {
		var conditions []metav1.Condition
		Apply(&conditions, Summary{Reason: "Waiting", Message: "a", Progress: Underway}, 1, earlier)
		return conditions
	}
	tests := map[string]struct {
		reason  string
		summary Summary
		want    map[string]string
		since   time.Time
	}{
		"becomes ready": {
			"ready is neither reconciling nor stalled",
			Summary{Ready: true, Reason: "Done", Progress: Settled},
			map[string]string{"Ready": "True Done"},
			noon,
		},
		"gets stuck": {
			"stalled takes the place of reconciling; Ready stays false since when it was",
			Summary{Reason: "Broken", Progress: Stuck},
			map[string]string{"Ready": "False Broken", "Stalled": "True Broken"},
			earlier,
		},
		"goes on": {
			"another reason is no transition",
			Summary{Reason: "StillWaiting", Progress: Underway},
			map[string]string{"Ready": "False StillWaiting", "Reconciling": "True StillWaiting"},
			earlier,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			conditions := before()
			Apply(&conditions, tc.summary, 2, noon)
			got := map[string]string{}
			for _, c := range conditions {
				got[c.Type] = string(c.Status) + " " + c.Reason
				if c.ObservedGeneration != 2 {
					t.Errorf("%s speaks of generation %d", c.Type, c.ObservedGeneration)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !Since(conditions).Equal(tc.since) || Reason(conditions) != tc.summary.Reason || IsReady(conditions) != tc.summary.Ready {
				t.Errorf("%s: read back as %v, %s, since %v", tc.reason, IsReady(conditions), Reason(conditions), Since(conditions))
			}
		})
	}
}

func TestApplyCutsMessages(t *testing.T) {
	var conditions []metav1.Condition
	Apply(&conditions, Summary{Reason: "Long", Message: strings.Repeat("x", longestMessage+1), Progress: Settled}, 1, noon)
	if n := len(conditions[0].Message); n != longestMessage {
		t.Errorf("the message has %d characters; the API server would refuse the write", n)
	}
}

func TestUnchanged(t *testing.T) {
	status := func(probed time.Time, version string) *v1alpha1.ConnectionStatus {
		return &v1alpha1.ConnectionStatus{LastProbedAt: &v1alpha1.Time{Time: probed}, CredentialsVersion: version}
	}
	tests := map[string]struct {
		reason string
		after  *v1alpha1.ConnectionStatus
		want   bool
	}{
		"same":       {"nothing is to be written", status(noon, "1"), true},
		"other zone": {"the same instant is the same time", status(noon.In(time.FixedZone("", 3600)), "1"), true},
		"empty list": {"no conditions are no conditions", func() *v1alpha1.ConnectionStatus {
			s := status(noon, "1")
			s.Conditions = []metav1.Condition{}
			return s
		}(), true},
		"later":         {"a millisecond counts", status(noon.Add(time.Millisecond), "1"), false},
		"other version": {"so does any word", status(noon, "2"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Unchanged(status(noon, "1"), tc.after); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestBeforeTheFirst(t *testing.T) {
	if Reason(nil) != "" || IsReady(nil) || !Since(nil).IsZero() {
		t.Error("without conditions nothing is known")
	}
}
