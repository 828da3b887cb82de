// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestApply(t *testing.T) {
	earlier := noon.Add(-time.Hour)
	before := func() []metav1.Condition {
		var conditions []metav1.Condition
		Apply(&conditions, Summary{Reason: "Waiting", Message: "a", Progress: Underway}, 1, earlier)
		return conditions
	}
	for name, tc := range map[string]struct {
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
			"stalled replaces reconciling; the transition time of Ready remains",
			Summary{Reason: "Broken", Progress: Stuck},
			map[string]string{"Ready": "False Broken", "Stalled": "True Broken"},
			earlier,
		},
		"continues": {
			"another reason is not a transition",
			Summary{Reason: "StillWaiting", Progress: Underway},
			map[string]string{"Ready": "False StillWaiting", "Reconciling": "True StillWaiting"},
			earlier,
		},
	} {
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

// The schema counts characters, not bytes, and accepts only valid UTF-8.
func TestApplyCutsMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		want    int
	}{
		"the maximum length": {strings.Repeat("é", longestMessage), longestMessage},
		"too long":           {"x" + strings.Repeat("é", longestMessage), longestMessage},
	} {
		var conditions []metav1.Condition
		Apply(&conditions, Summary{Reason: "Long", Message: tc.message, Progress: Settled}, 1, noon)
		got := conditions[0].Message
		if n := utf8.RuneCountInString(got); n != tc.want || !utf8.ValidString(got) || !strings.HasPrefix(tc.message, strings.TrimSuffix(got, "…")) {
			t.Errorf("%s: the message has %d characters, valid: %v; the API server would refuse the write, or text is lost", name, n, utf8.ValidString(got))
		}
	}
}

func TestBeforeTheFirst(t *testing.T) {
	if Reason(nil) != "" || IsReady(nil) || !Since(nil).IsZero() {
		t.Error("missing conditions must be unknown")
	}
}
