// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/retention"
)

const day = 24 * time.Hour

var policy = retention.Policy{InCluster: 7 * day, Archived: 90 * day, LeastInCluster: time.Hour}

func span(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.TeamSpec
		policy retention.Policy
		want   retention.Times
	}{
		"no settings": {"the installation's defaults apply", v1alpha1.TeamSpec{}, policy, retention.Times{InCluster: 7 * day, Archived: 90 * day}},
		"both times": {
			"a team decides for itself",
			v1alpha1.TeamSpec{Retention: v1alpha1.TeamRetention{InCluster: span(2 * time.Hour), Archived: span(30 * day), Applied: true}},
			policy,
			retention.Times{InCluster: 2 * time.Hour, Archived: 30 * day, Applied: true},
		},
		"below the floor": {
			"a minimum prevents use of the Kubernetes API as a queue",
			v1alpha1.TeamSpec{Retention: v1alpha1.TeamRetention{InCluster: span(0)}},
			policy,
			retention.Times{InCluster: time.Hour, Archived: 90 * day},
		},
		"no floor": {
			"the local run shows the effect of 0s",
			v1alpha1.TeamSpec{Retention: v1alpha1.TeamRetention{InCluster: span(0), Archived: span(0)}},
			retention.Policy{InCluster: 7 * day, Archived: 90 * day},
			retention.Times{},
		},
		"archived for less": {
			"the record is needed while the post exists",
			v1alpha1.TeamSpec{Retention: v1alpha1.TeamRetention{Archived: span(0)}},
			policy,
			retention.Times{InCluster: 7 * day, Archived: 7 * day},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.policy.Of(&v1alpha1.Team{Spec: tc.spec}); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
	if got, want := policy.Of(nil), (retention.Times{InCluster: 7 * day, Archived: 90 * day}); got != want {
		t.Errorf("a namespace without a team has the times of the installation: got %+v, want %+v", got, want)
	}
}

func TestEvicts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		label   string
		applied bool
		want    bool
	}{
		"by REST":             {"no tool has a copy of the post", v1alpha1.OriginLabel, false, true},
		"of a schedule":       {"its PostSchedule never recreates it", v1alpha1.ScheduleLabel, false, true},
		"applied":             {"a tool would recreate the post", "", false, false},
		"applied, on request": {"the team allows it", "", true, true},
		"by REST, on request": {"the setting is for applied posts", v1alpha1.OriginLabel, true, true},
	} {
		labels := map[string]string{}
		if tc.label != "" {
			labels[tc.label] = "any"
		}
		if got := (retention.Times{Applied: tc.applied}).Evicts(labels); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func TestArchivedUntil(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		archived time.Duration
		finished time.Duration
		request  string
		origin   string
		want     time.Duration
	}{
		"without a key":        {"only the team's time counts", time.Hour, time.Minute, "", v1alpha1.OriginAPI, time.Minute + time.Hour},
		"with a key":           {"a key is valid for a day", time.Hour, time.Minute, "2:abc", v1alpha1.OriginAPI, day},
		"with a key, for long": {"the team's time is longer", 90 * day, time.Minute, "2:abc", v1alpha1.OriginAPI, 90*day + time.Minute},
		"scheduled, with a key": {
			"a day ends when it is archived", 0, 3 * day, "2:abc", v1alpha1.OriginAPI, 3 * day,
		},
		"applied": {"a tool that was stopped for the night may apply it again", 0, time.Minute, "", "", leaves + day},
	} {
		post := &v1alpha1.Post{}
		post.CreationTimestamp = metav1.NewTime(noon)
		post.Status.FinishedAt = v1alpha1.NewTimePtr(noon.Add(tc.finished))
		post.Annotations, post.Labels = map[string]string{v1alpha1.RequestAnnotation: tc.request}, map[string]string{v1alpha1.OriginLabel: tc.origin}
		got := retention.Times{Archived: tc.archived}.ArchivedUntil(post, noon.Add(leaves))
		if want := noon.Add(tc.want); !got.Equal(want) {
			t.Errorf("%s: %s: got %v, want %v", name, tc.reason, got, want)
		}
	}
}

// leaves is the time after noon when the posts of TestArchivedUntil leave the cluster.
const leaves = 4 * day

func TestFinishedAt(t *testing.T) {
	post := &v1alpha1.Post{}
	post.CreationTimestamp = metav1.NewTime(noon)
	expect := func(want time.Duration, reason string) {
		t.Helper()
		if got := retention.FinishedAt(post); !got.Equal(noon.Add(want)) {
			t.Errorf("%s: got %v", reason, got)
		}
	}
	expect(0, "without an annotation, the creation counts")
	post.Status.Targets = []v1alpha1.TargetStatus{{PostedAt: v1alpha1.NewTimePtr(noon.Add(2 * time.Hour))}, {PostedAt: v1alpha1.NewTimePtr(noon.Add(time.Hour))}}
	expect(2*time.Hour, "the last target was posted then")
	post.Status.Conditions = []metav1.Condition{{LastTransitionTime: metav1.NewTime(noon.Add(3 * time.Hour))}}
	expect(3*time.Hour, "another target failed later")
	post.Status.FinishedAt = v1alpha1.NewTimePtr(noon.Add(time.Minute))
	expect(time.Minute, "the annotation takes precedence")
}
