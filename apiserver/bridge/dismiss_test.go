// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// failedPost returns a post with two targets in the given states.
func failedPost(first, second v1alpha1.TargetState, edits ...func(*v1alpha1.Post)) *v1alpha1.Post {
	return olderDraft(append([]func(*v1alpha1.Post){func(p *v1alpha1.Post) {
		p.Spec.Draft = false
		p.Spec.Targets = append(p.Spec.Targets, target("beta"))
		for i, state := range []v1alpha1.TargetState{first, second} {
			t := v1alpha1.TargetStatus{Index: int32(i), State: state}
			if state == v1alpha1.TargetUndecided {
				t.Attempt = &v1alpha1.Attempt{Number: 1, ID: "a", Outcome: v1alpha1.OutcomeUnknown}
			}
			p.Status.Targets = append(p.Status.Targets, t)
		}
	}}, edits...)...)
}

// TestDismiss verifies which posts can be dismissed, and which no longer need a user's attention.
func TestDismiss(t *testing.T) {
	t.Parallel()
	dismissed := func(p *v1alpha1.Post) { p.Annotations = map[string]string{v1alpha1.DismissedAnnotation: "before"} }
	retried := func(targets ...int) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			for _, i := range targets {
				p.Status.Targets[i].RetriedBy = "p2"
			}
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		post    *v1alpha1.Post
		handled bool
		want    string
		value   string
		events  int
	}{
		"Failed":      {"no target is published", failedPost(v1alpha1.TargetFailed, v1alpha1.TargetFailed), false, "", "2026-12-01T09:00:00Z", 1},
		"Partly":      {"an account lacks it", failedPost(v1alpha1.TargetPosted, v1alpha1.TargetFailed), false, "", "2026-12-01T09:00:00Z", 1},
		"Again":       {"the button was pressed twice", failedPost(v1alpha1.TargetFailed, v1alpha1.TargetFailed, dismissed), true, "", "before", 0},
		"Retried":     {"the retry reports its own failure", failedPost(v1alpha1.TargetPosted, v1alpha1.TargetFailed, retried(1)), true, "", "", 0},
		"HalfRetried": {"one failed target is left", failedPost(v1alpha1.TargetFailed, v1alpha1.TargetFailed, retried(1)), false, "", "2026-12-01T09:00:00Z", 1},
		"Undecided":   {"a target may be published: the user must settle it first", failedPost(v1alpha1.TargetFailed, v1alpha1.TargetUndecided), false, "CONFLICT", "", 0},
		"Posted":      {"no target has failed", failedPost(v1alpha1.TargetPosted, v1alpha1.TargetPosted), false, "CONFLICT", "", 0},
		"Pending":     {"a target may still be published", failedPost(v1alpha1.TargetFailed, v1alpha1.TargetPending), false, "CONFLICT", "", 0},
		"Draft":       {"the draft was never sent", olderDraft(), false, "CONFLICT", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := staged(tc.post)
			if got := s.Summarise(tc.post).Handled; got != tc.handled {
				t.Errorf("%s: handled is %v, want %v", tc.reason, got, tc.handled)
			}
			if err := s.Dismiss(t.Context(), person, "p1"); code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if got := s.post().Annotations[v1alpha1.DismissedAnnotation]; got != tc.value {
				t.Errorf("%s: the annotation is %q, want %q", tc.reason, got, tc.value)
			}
			signed := s.post().Annotations[v1alpha1.LastAuthorAnnotation] == person.Author
			if len(s.events.written) != tc.events || signed != (tc.events > 0) {
				t.Errorf("%s: its trail is %v, %v", tc.reason, s.events.written, s.post().Annotations)
			}
			if after := s.Summarise(s.post()); tc.events > 0 && !after.Handled {
				t.Errorf("%s: it still needs a user", tc.reason)
			}
		})
	}
}
