// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestDoubt(t *testing.T) {
	t.Parallel()
	lost := v1alpha1.NewTimePtr(now.Add(-time.Hour))
	for name, tc := range map[string]struct {
		reason string
		target v1alpha1.TargetStatus
		want   []string
	}{
		"call": {"the call has a time, after which the post would stand", v1alpha1.TargetStatus{
			Attempt: &v1alpha1.Attempt{Number: 1, ID: "a", StartedAt: *lost, Outcome: v1alpha1.OutcomeUnknown},
		}, []string{"It is not known whether the post was published: the listing does not show it.", "made after " + lost.UTC().Format(momentForm)}},
		"thread": {"a part is looked for, not the whole", v1alpha1.TargetStatus{
			Attempt: &v1alpha1.Attempt{Number: 2, ID: "b", StartedAt: *lost, Outcome: v1alpha1.OutcomeUnknown, Card: 1},
			Cards:   []v1alpha1.CardStatus{{ExternalID: "1"}},
		}, []string{"whether part 2 was published", "The parts before it are online."}},
		"restored": {"no call is known", v1alpha1.TargetStatus{}, []string{"The listing does not show it."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", func(post *v1alpha1.Post) {
				target := tc.target
				target.Platform, target.Phase, target.State = v1alpha1.PlatformX, v1alpha1.PhaseFailed, v1alpha1.TargetUndecided
				target.Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonOutcomeUnknown, Problem: "the listing does not show it"}
				target.Message = "look, then say so with the annotation " + v1alpha1.SettleAnnotation
				post.Status.Targets = []v1alpha1.TargetStatus{target}
			}))
			page := textOf(parsed(t, w.serve(ask(&editor, "/teams/"+acme+"/posts/p-1", nil)).Body.String()))
			for _, want := range append(tc.want, "Needs your answer", "It was published") {
				if !strings.Contains(page, want) {
					t.Errorf("%s: the page does not say %q: %s", tc.reason, want, page)
				}
			}
			if strings.Contains(page, "annotation") {
				t.Errorf("%s: a person at a form is told of annotations: %s", tc.reason, page)
			}
		})
	}
}

// TestForbidden verifies that an error names a right in everyday words.
func TestForbidden(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, path, want string }{
		"keys":    {"resources have other names in Kubernetes", "/keys", "You may not look at the API keys of the team"},
		"compose": {"so have verbs", "/posts/new", "You may not write posts of the team"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			answer := w.serve(ask(&viewer, "/teams/"+acme+tc.path, nil))
			page := answer.Body.String()
			if answer.Code != http.StatusForbidden || !strings.Contains(page, tc.want) {
				t.Errorf("%s: %d, want %q: %s", tc.reason, answer.Code, tc.want, page)
			}
			if strings.Contains(page, `aria-current="page"`) {
				t.Errorf("the navigation says that an error stands in it: %s", page)
			}
		})
	}
}
