// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
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
		"KeyEdits":       {"a key is recorded as the author", caller, olderDraft(), words, "", "herald:key:k"},
		"KeyPublishes":   {"a key has all permissions", caller, olderDraft(), publishes, "", "herald:key:k"},
		"AgentEdits":     {"the agent's user is recorded", drafts, olderDraft(), words, "", "oidc:ada"},
		"AgentPublishes": {"its scope covers drafts only", drafts, olderDraft(), publishes, "INSUFFICIENT_SCOPE", ""},
		"AgentMoves":     {"a scheduled post will be published", drafts, olderDraft(scheduledFor(tomorrow)), later, "INSUFFICIENT_SCOPE", ""},
		"AgentReads":     {"its scope is read-only", reads, olderDraft(), words, "INSUFFICIENT_SCOPE", ""},
		"Moves":          {"only the time changes", caller, olderDraft(scheduledFor(tomorrow)), later, "", "herald:key:k"},
		"Started":        {"its content is frozen", caller, olderDraft(scheduledFor(tomorrow), claimed), words, "CONFLICT", ""},
		"Unchanged":      {"an unchanged post is accepted in every state", caller, olderDraft(scheduledFor(tomorrow), claimed), func(*v1alpha1.PostSpec) {}, "", ""},
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

// TestEditPostWithProblems verifies that a request with any part that cannot be read or used changes nothing, and that the number of
// its targets counts towards the cost of the request.
func TestEditPostWithProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason           string
		unread, problems []string
		code             string
	}{
		"neither":  {"the request is complete", nil, nil, ""},
		"problems": {"the platform does not have this option", nil, []string{"targets[0].tiktok_draft: no"}, "VALIDATION_ERROR"},
		"unread":   {"its value is not known", []string{"targets[0].caption"}, nil, "VALIDATION_ERROR"},
	} {
		s := staged(olderDraft())
		in := bridge.EditPost{Version: bridge.Version(s.post()), Spec: *s.post().Spec.DeepCopy(), Problems: tc.problems, Unread: tc.unread}
		in.Spec.Targets[0].Caption = "Better"
		ctx, meter := limits.WithMeter(t.Context())
		meter.Parts(9) // ten cost a request
		_, err := s.EditPost(ctx, caller, s.post().DeepCopy(), &in)
		if changed := s.post().Spec.Targets[0].Caption == "Better"; code(err) != tc.code || changed != (tc.code == "") {
			t.Errorf("%s: %v, changed %t: %s", name, err, changed, tc.reason)
		}
		if tc.code == "" && meter.Requests() != 1 {
			t.Errorf("%s: the request costs %d more", name, meter.Requests())
		}
	}
}

// TestValidatePost verifies that a validation continues after each kind of refusal, and neither writes nor reserves.
func TestValidatePost(t *testing.T) {
	t.Parallel()
	s := staged(olderDraft())
	account := s.Connections.Get("team-a", "acme")
	account.Spec.Disabled = true
	cards := make([]v1alpha1.TreeCard, 31)
	for i := range cards[1:] {
		cards[i+1].Caption = "a"
	}
	in := bridge.CreatePost{
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: cards}, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}}},
		},
		Problems: []string{"targets[0].tiktok_draft: no"},
	}
	got, err := s.ValidatePost(t.Context(), caller, in, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range got.Findings {
		found = append(found, string(f.Code)+" "+f.Path)
	}
	want := []string{"SUBSCRIPTION_REQUIRED ", "VALIDATION_ERROR targets[0].tiktok_draft", "VALIDATION_ERROR tree_cards[0]", "POSTING_READINESS_RECONNECT_REQUIRED "}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("%s\n%+v", diff, got.Findings)
	}
	if s.posts.creates != 0 || s.posts.updates != 0 || s.counts.amends != 0 {
		t.Errorf("%d creates, %d updates, %d reservations", s.posts.creates, s.posts.updates, s.counts.amends)
	}
	if _, err := s.ValidatePost(t.Context(), bridge.Caller{Namespace: "team-a", Scopes: []bridge.Scope{bridge.ScopeRead}}, in, nil, 0); code(err) != "INSUFFICIENT_SCOPE" {
		t.Errorf("a caller with read access got %v", err)
	}
	many, err := s.ValidatePost(t.Context(), caller, in, []string{"category: must be a string"}, 7)
	if err != nil || many.More != 7 || len(many.Findings) != 2 || !strings.HasPrefix(many.Findings[0].Message, "must be a string") {
		t.Errorf("a body with many mistakes: %+v, %v", many, err)
	}
}

// TestAudience verifies that no request stores a post for followers that its platform would show to everyone.
func TestAudience(t *testing.T) {
	t.Parallel()
	const want = `targets[0].visibility: x does not have the audience "private"`
	private := func(spec v1alpha1.PostSpec) v1alpha1.PostSpec {
		spec.Targets[0].Mastodon = &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonPrivate}
		return spec
	}
	stored := olderDraft()
	for name, request := range map[string]func(*bridge.Service) error{
		"create": func(s *bridge.Service) error {
			_, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{Spec: private(*stored.Spec.DeepCopy())})
			return err
		},
		"edit": func(s *bridge.Service) error {
			_, err := s.EditPost(t.Context(), caller, stored.DeepCopy(), &bridge.EditPost{Version: bridge.Version(stored), Spec: private(*stored.Spec.DeepCopy())})
			return err
		},
		"validate": func(s *bridge.Service) error {
			found, err := s.ValidatePost(t.Context(), caller, bridge.CreatePost{Spec: private(*stored.Spec.DeepCopy())}, nil, 0)
			if err != nil || len(found.Findings) != 1 {
				t.Fatalf("%+v, %v", found, err)
			}
			f := found.Findings[0]
			return &bridge.Error{Code: f.Code, Message: f.Path + ": " + f.Message}
		},
	} {
		s := staged(stored.DeepCopy())
		if err := request(s.Service); code(err) != "VALIDATION_ERROR" || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if s.posts.creates+s.posts.updates > 0 {
			t.Errorf("%s: the post is stored", name)
		}
	}
}
