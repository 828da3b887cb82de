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

func TestTimeline(t *testing.T) {
	t.Parallel()
	minute := func(n int) v1alpha1.Time { return v1alpha1.NewTime(now.Add(time.Duration(n) * time.Minute)) }
	target := func(edit func(*v1alpha1.TargetStatus)) func(*v1alpha1.Post) {
		return func(post *v1alpha1.Post) {
			status := v1alpha1.TargetStatus{Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseProcessing}
			edit(&status)
			post.Status.Targets = []v1alpha1.TargetStatus{status}
		}
	}
	attempt := func(number int32, end *v1alpha1.Time, operation string) *v1alpha1.Attempt {
		return &v1alpha1.Attempt{Number: number, ID: "a", StartedAt: minute(1), SendBefore: minute(2), EndedAt: end, OperationID: operation}
	}
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.Post)
		want   []string
	}{
		"New":       {"the post was created", func(*v1alpha1.Post) {}, []string{"Created"}},
		"Scheduled": {"future entries come last", at(now.Add(time.Hour)), []string{"Created", "To be published"}},
		"Sent":      {"the first attempt has no number", target(func(s *v1alpha1.TargetStatus) { s.Attempt = attempt(1, nil, "") }), []string{"Created", "sent"}},
		"Again":     {"later attempts have a number", target(func(s *v1alpha1.TargetStatus) { s.Attempt = attempt(3, nil, "") }), []string{"Created", "sent, attempt 3"}},
		"Lost":      {"the platform did not respond", target(func(s *v1alpha1.TargetStatus) { s.Attempt = attempt(1, new(minute(2)), "") }), []string{"Created", "sent", "the response was lost"}},
		"Works":     {"the platform is processing it", target(func(s *v1alpha1.TargetStatus) { s.Attempt = attempt(1, new(minute(2)), "op") }), []string{"Created", "sent", "being processed"}},
		"Prepared": {"a file was uploaded before", target(func(s *v1alpha1.TargetStatus) {
			s.Prepared = &v1alpha1.Prepared{MadeAt: minute(0), Complete: true}
		}), []string{"Created", "uploaded in advance"}},
		"Thread": {"a card is sent before it is posted, and is not a second attempt", func(post *v1alpha1.Post) {
			post.Spec.Category, post.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "a"}, {Caption: "b"}}}
			target(func(s *v1alpha1.TargetStatus) {
				s.Attempt = attempt(2, nil, "")
				s.Attempt.Card = 1
				s.Cards = []v1alpha1.CardStatus{{Index: 0, ExternalID: "1", PostedAt: new(minute(1))}, {Index: 1, ExternalID: "2", PostedAt: new(minute(2))}}
			})(post)
		}, []string{"Created", "part 1 posted", "part 2 sent", "part 2 posted"}},
		"ClockBehind": {"the platform's clock is behind: a post is not published before it is sent", target(func(s *v1alpha1.TargetStatus) {
			s.Phase, s.Attempt, s.PostedAt = v1alpha1.PhasePosted, attempt(1, nil, ""), v1alpha1.NewTimePtr(now.Add(time.Second))
		}), []string{"Created", "sent", "posted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", tc.edit))
			page := w.get(t, viewer, "/teams/"+acme+"/posts/p-1")
			var steps []string
			for _, list := range elements(page, "ol") {
				if class, _ := attribute(list, "class"); class == "timeline" {
					for _, item := range elements(list, "li") {
						steps = append(steps, textOf(item))
					}
				}
			}
			if len(steps) != len(tc.want) {
				t.Fatalf("%s: got %q, want %q", tc.reason, steps, tc.want)
			}
			for i := range steps {
				if !strings.Contains(steps[i], tc.want[i]) {
					t.Errorf("%s: step %d is %q, want %q", tc.reason, i, steps[i], tc.want[i])
				}
			}
		})
	}
}
