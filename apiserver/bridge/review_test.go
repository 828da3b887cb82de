// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestAgentsDrafts verifies that an agent's post becomes a draft if the team reviews agents' posts, and that its
// problems are still reported to the agent.
func TestAgentsDrafts(t *testing.T) {
	t.Parallel()
	agent := bridge.Caller{Namespace: caller.Namespace, Key: "k", Agent: "scout"}
	for name, tc := range map[string]struct {
		reason, caption, want string
	}{
		"Complete":  {"a user publishes it", "Hello", ""},
		"NoCaption": {"a draft may lack a caption, but the agent's post may not", "", "VALIDATION_ERROR"},
	} {
		p := &posts{stored: map[string]*v1alpha1.Post{}}
		s := service(p, inMemory("acme"))
		s.Owner = func(string) *v1alpha1.Team {
			team := owner{}.Owner("")
			team.Spec.Agents.Publishing = v1alpha1.AgentsDraft
			return team
		}
		in := hello("acme")
		in.Spec.Targets[0].Caption = tc.caption
		made, err := s.CreatePost(t.Context(), agent, in)
		if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), "targets[0].caption: ") {
			t.Errorf("%s: %s: error %v, want %q", name, tc.reason, err, tc.want)
		}
		if post := p.stored[made.ID]; err == nil && (!post.Spec.Draft || post.Annotations[v1alpha1.WantedAtAnnotation] != v1alpha1.WantedNow || !made.Waits) {
			t.Errorf("%s: %s: stored %+v, %v", name, tc.reason, post.Spec, post.Annotations)
		}
	}
}

// TestScopeToCancel cancels posts with a scope that allows only drafts.
func TestScopeToCancel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		post   *v1alpha1.Post
		scope  bridge.Scope
		want   string
	}{
		"Draft":     {"the scope covers drafts", olderDraft(), bridge.ScopeDraft, ""},
		"Scheduled": {"the post would be published", olderDraft(scheduledFor(tomorrow)), bridge.ScopeDraft, "INSUFFICIENT_SCOPE"},
		"Publish":   {"the scope covers scheduled posts", olderDraft(scheduledFor(tomorrow)), bridge.ScopePublish, ""},
	} {
		s := staged(tc.post)
		who := bridge.Caller{Namespace: caller.Namespace, Key: "k", Scopes: []bridge.Scope{tc.scope}}
		if err := s.CancelPost(t.Context(), who, "p1"); code(err) != tc.want || s.post().Spec.Cancelled != (tc.want == "") {
			t.Errorf("%s: %s: error %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}

// TestWaitsForReview verifies which posts wait for a user: drafts with the time that the agent requested.
func TestWaitsForReview(t *testing.T) {
	t.Parallel()
	wanted := func(p *v1alpha1.Post) {
		p.Annotations = map[string]string{v1alpha1.WantedAtAnnotation: v1alpha1.WantedNow}
	}
	for reason, tc := range map[string]struct {
		post *v1alpha1.Post
		want bool
	}{
		"an agent's draft":                       {olderDraft(wanted), true},
		"a user's draft":                         {olderDraft(), false},
		"an agent's draft that a user scheduled": {olderDraft(wanted, scheduledFor(tomorrow)), false},
	} {
		got, err := staged(tc.post).GetPost(t.Context(), person, "p1")
		if err != nil || got.Waits != tc.want {
			t.Errorf("%s: waits %t, %v", reason, got.Waits, err)
		}
	}
}
