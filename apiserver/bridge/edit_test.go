// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestEditPost verifies who may make which change, and that every change names its author.
func TestEditPost(t *testing.T) {
	t.Parallel()
	drafts := bridge.Caller{Namespace: "team-a", Key: "grant", Author: "oidc:ada", Agent: "scout", Scopes: []bridge.Scope{bridge.ScopeDraft}}
	reads := drafts
	reads.Scopes = []bridge.Scope{bridge.ScopeRead}
	publishes := func(s *v1alpha1.PostSpec) { s.Draft = false }
	words := func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "Better" }
	later := func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(nextMonth) }
	for name, tc := range map[string]struct {
		reason string
		caller bridge.Caller
		stored *v1alpha1.Post
		edit   func(*v1alpha1.PostSpec)
		code   string
		author string
	}{
		"KeyEdits":       {"a key is named as the author", caller, olderDraft(), words, "", "herald:key:k"},
		"KeyPublishes":   {"a key may do everything", caller, olderDraft(), publishes, "", "herald:key:k"},
		"AgentEdits":     {"the person whom it acts for is named", drafts, olderDraft(), words, "", "oidc:ada"},
		"AgentPublishes": {"its scope is for drafts", drafts, olderDraft(), publishes, "INSUFFICIENT_SCOPE", ""},
		"AgentMoves":     {"a scheduled post will be published", drafts, olderDraft(scheduledFor(tomorrow)), later, "INSUFFICIENT_SCOPE", ""},
		"AgentReads":     {"its scope is for reading", reads, olderDraft(), words, "INSUFFICIENT_SCOPE", ""},
		"Moves":          {"the time alone changes", caller, olderDraft(scheduledFor(tomorrow)), later, "", "herald:key:k"},
		"Started":        {"its content is frozen", caller, olderDraft(scheduledFor(tomorrow), claimed), words, "CONFLICT", ""},
		"Unchanged":      {"nothing is written, whatever the state", caller, olderDraft(scheduledFor(tomorrow), claimed), func(*v1alpha1.PostSpec) {}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := staged(tc.stored)
			in := bridge.EditPost{Version: bridge.Version(tc.stored), Spec: *tc.stored.Spec.DeepCopy()}
			tc.edit(&in.Spec)
			got, err := s.EditPost(t.Context(), tc.caller, tc.stored.DeepCopy(), &in)
			if code(err) != tc.code {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if author := s.post().Annotations[v1alpha1.LastAuthorAnnotation]; author != tc.author {
				t.Errorf("%s: changed by %q, want %q", tc.reason, author, tc.author)
			}
			if tc.code == "" && !v1alpha1.SemanticEqual(*got.Content, in.Spec) {
				t.Errorf("%s: %+v", tc.reason, got.Content)
			}
		})
	}
}
