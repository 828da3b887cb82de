// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestDuplicateOfAPart verifies which of a post's accounts its copy excludes by default, and which targets can be sent
// again.
func TestDuplicateOfAPart(t *testing.T) {
	t.Parallel()
	const posted, unknown, going, part = "already posted there", "it is not known whether it was posted there", "still being published there", "a part of it is already posted there"
	of := func(state v1alpha1.TargetState) v1alpha1.TargetStatus { return v1alpha1.TargetStatus{State: state} }
	interrupted := v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, ExternalID: "1", Cards: []v1alpha1.CardStatus{{ExternalID: "1"}}}
	for name, tc := range map[string]struct {
		reason  string
		targets []v1alpha1.TargetStatus
		want    map[string]string
	}{
		"Not published":      {"a duplicate is a new post", []v1alpha1.TargetStatus{of(v1alpha1.TargetFailed), of(v1alpha1.TargetFailed)}, nil},
		"All is out":         {"a duplicate is a new post", []v1alpha1.TargetStatus{of(v1alpha1.TargetPosted), of(v1alpha1.TargetPosted)}, nil},
		"Not sent yet":       {"a duplicate is a new post", []v1alpha1.TargetStatus{of(v1alpha1.TargetPending), of(v1alpha1.TargetPending)}, nil},
		"A part is out":      {"the failed targets are missing", []v1alpha1.TargetStatus{of(v1alpha1.TargetPosted), of(v1alpha1.TargetFailed)}, map[string]string{"a": posted}},
		"Partly in progress": {"a target in progress may be published within seconds", []v1alpha1.TargetStatus{of(v1alpha1.TargetPosted), of(v1alpha1.TargetPending)}, map[string]string{"a": posted, "b": going}},
		"In doubt":           {"an undecided target may be published", []v1alpha1.TargetStatus{of(v1alpha1.TargetFailed), of(v1alpha1.TargetUndecided)}, map[string]string{"b": unknown}},
		"Interrupted":        {"some cards are published", []v1alpha1.TargetStatus{of(v1alpha1.TargetFailed), interrupted}, map[string]string{"b": part}},
	} {
		post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: "p1"}, Spec: v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("a"), target("b")}}}
		for i, of := range tc.targets {
			of.Index = int32(i)
			post.Status.Targets = append(post.Status.Targets, of)
		}
		s := withFiles(&files{})
		s.Posts = &posts{stored: map[string]*v1alpha1.Post{"p1": post}}
		s.Connections = &connections{memory: map[string]*v1alpha1.Connection{"a": onX("a"), "b": onX("b")}}
		got, err := s.DuplicatePost(t.Context(), person, "p1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got.Already); diff != "" {
			t.Errorf("%s: -want +got: %s\n%s", name, tc.reason, diff)
		}
		for i := -1; i <= len(tc.targets); i++ {
			d, _, err := s.ResendPost(t.Context(), person, "p1", i)
			want := "VALIDATION_ERROR"
			if i >= 0 && i < len(tc.targets) {
				want = "CONFLICT"
				if of := tc.targets[i]; of.State == v1alpha1.TargetFailed && of.ExternalID == "" {
					want = ""
				}
			}
			if code(err) != want || err == nil && (len(d.Spec.Targets) != 1 || d.Spec.Targets[0].ConnectionRef != post.Spec.Targets[i].ConnectionRef || len(d.Omitted) > 0) {
				t.Errorf("%s: target %d is published again: %v, want %q; %+v", name, i, err, want, d)
			}
		}
	}
}
