// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

func TestStandings(t *testing.T) {
	t.Parallel()
	posted := postindex.PlatformStatus{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhasePosted}
	failed := postindex.PlatformStatus{Platform: v1alpha1.PlatformThreads, Status: v1alpha1.PhaseFailed}
	unknown := postindex.PlatformStatus{Platform: v1alpha1.PlatformFacebook, Status: v1alpha1.PhaseFailed, Mark: v1alpha1.MarkUndecided}
	pending := postindex.PlatformStatus{Platform: v1alpha1.PlatformTikTok, Status: v1alpha1.PhaseProcessing}
	waiting := postindex.PlatformStatus{Platform: v1alpha1.PlatformTikTok, Status: v1alpha1.PhaseProcessing, Mark: v1alpha1.MarkWaiting}
	for name, tc := range map[string]struct {
		reason   string
		status   v1alpha1.PostPhase
		targets  []postindex.PlatformStatus
		archived bool
		want     string
		chips    string
	}{
		"Draft":    {"its targets have no outcome", v1alpha1.PhaseDraft, []postindex.PlatformStatus{{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhaseDraft}}, false, "Draft", "X"},
		"Posted":   {"the post is published everywhere", v1alpha1.PhasePosted, []postindex.PlatformStatus{posted}, false, "Posted", "X: Posted"},
		"Partly":   {"some targets are published", v1alpha1.PhaseFailed, []postindex.PlatformStatus{posted, failed, posted}, false, "Partly posted (2 of 3)", "2 accounts on X: Posted, Threads: Failed"},
		"Failed":   {"no target is published", v1alpha1.PhaseFailed, []postindex.PlatformStatus{failed, failed}, false, "Failed", "2 accounts on Threads: Failed"},
		"Question": {"an undecided target is not a failure", v1alpha1.PhaseFailed, []postindex.PlatformStatus{posted, failed, unknown}, false, "Needs your answer", "X: Posted, Threads: Failed, Facebook: Needs your answer"},
		"Question during delivery": {
			"a user can answer before the other targets are settled", v1alpha1.PhaseProcessing,
			[]postindex.PlatformStatus{pending, unknown},
			false,
			"Needs your answer", "TikTok, Facebook: Needs your answer",
		},
		"Question in the archive": {"archived posts cannot be answered", v1alpha1.PhaseFailed, []postindex.PlatformStatus{unknown}, true, "Not known", "Facebook: Not known"},
		"Being published":         {"the post continues by itself", v1alpha1.PhaseProcessing, []postindex.PlatformStatus{posted, pending}, false, "Being published", "X: Posted, TikTok"},
		"Waiting": {
			"a user has to reconnect the account", v1alpha1.PhaseProcessing,
			[]postindex.PlatformStatus{posted, waiting},
			false,
			"Waiting for an account", "X: Posted, TikTok: Waiting for the account",
		},
	} {
		p := &postindex.Summary{Status: tc.status, Platforms: tc.targets, Archived: tc.archived}
		if got := displayStatusOf(p).word; got != tc.want {
			t.Errorf("%s: %q, want %q: %s", name, got, tc.want, tc.reason)
		}
		var html strings.Builder
		if err := chips(p).Render(&html); err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, chip := range elements(parsed(t, html.String()), "span") {
			label, _ := attribute(chip, "aria-label")
			labels = append(labels, label)
		}
		if got := strings.Join(labels, ", "); got != tc.chips {
			t.Errorf("%s: the chips are %q, want %q", name, got, tc.chips)
		}
	}
}

// became sets the states of a post's first targets.
func became(states ...v1alpha1.TargetState) func(*v1alpha1.Post) {
	return func(post *v1alpha1.Post) {
		caption := post.Spec.Targets[0].Caption
		post.Spec.Targets = nil
		for i, state := range states {
			platform := v1alpha1.Platforms()[i]
			post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "our-" + string(platform)}, Caption: caption})
			target := v1alpha1.TargetStatus{Index: int32(i), Platform: platform, State: state, Attempt: &v1alpha1.Attempt{ID: "a", Outcome: v1alpha1.OutcomeRefused}}
			switch state {
			case v1alpha1.TargetPosted:
				target.ExternalID, target.Attempt.Outcome = "1", v1alpha1.OutcomePosted
			case v1alpha1.TargetUndecided:
				target.Attempt.Outcome = v1alpha1.OutcomeUnknown
				target.Message = "not known"
			case v1alpha1.TargetPending, v1alpha1.TargetFailed, v1alpha1.TargetWithdrawn:
			}
			post.Status.Targets = append(post.Status.Targets, target)
		}
	}
}

// TestQuestions verifies that every page shows an undecided post as such, and none shows it as failed.
func TestQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "The post in doubt", became(v1alpha1.TargetPosted, v1alpha1.TargetUndecided)))
	w.put(textPost("p-2", "The post that failed", became(v1alpha1.TargetFailed)))
	for _, tc := range []struct {
		reason, path  string
		shows, misses []string
	}{
		{"the notice comes first, and the list of failed posts omits the post", "", []string{"Needs your answer: it is not known whether “The post in doubt” was published on Threads", "Answer"}, nil},
		{"the list shows the post", "posts", []string{"The post in doubt", "Needs your answer", "The post that failed"}, []string{"Partly posted"}},
		{"the questions have a tab", "posts?status=undecided", []string{"The post in doubt"}, []string{"The post that failed"}},
		{"no other tab contains the post", "posts?status=failed", []string{"The post that failed"}, []string{"The post in doubt"}},
		{"the calendar shows the post", "calendar", []string{"The post in doubt", "Needs your answer"}, nil},
		{"the calendar has the tab too", "calendar?status=undecided", []string{"The post in doubt"}, []string{"The post that failed"}},
		{"the post's page shows the question, for the account too", "posts/p-1", []string{"Needs your answer"}, []string{"Failed"}},
	} {
		page := w.get(t, editor, "/teams/"+acme+"/"+tc.path)
		text := textOf(elements(page, "main")[0])
		says(t, tc.path+": "+tc.reason, text, tc.shows, tc.misses)
	}
	overview := textOf(elements(w.get(t, editor, "/teams/"+acme+"/"), "main")[0])
	if n := strings.Count(overview, "The post in doubt"); n != 2 { // in the notice, and in the hidden part of its link
		t.Errorf("the overview names the post %d times:\n%s", n, overview)
	}
	if title := textOf(elements(w.get(t, editor, "/teams/"+acme+"/posts/p-1"), "title")[0]); !strings.HasPrefix(title, "Needs your answer: ") {
		t.Errorf("the browser tab has the title %q", title)
	}
	if strings.Contains(textOf(elements(w.get(t, viewer, "/teams/"+acme+"/"), "main")[0]), "Answer") {
		t.Error("a viewer gets the form for an outcome")
	}
}
