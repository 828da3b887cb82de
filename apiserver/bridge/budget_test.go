// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/posting"
)

// TestChangeWithinTheBudget verifies that a change, like a new post, must fit the budget, and that a change to a
// smaller post always fits.
func TestChangeWithinTheBudget(t *testing.T) {
	t.Parallel()
	long, later := strings.Repeat("a", 200), now.Add(time.Hour)
	// The post needs room only for its growth, not for its whole size again.
	grown := apiresource.NewQuantity(posting.Of(olderDraft()).Footprint()+300, apiresource.BinarySI)
	for name, tc := range map[string]struct {
		reason string
		budget v1alpha1.TeamBudget
		// others is the number of other unfinished posts.
		others int
		change func(*stage, string) error
		want   string
	}{
		"Grows": {"the budget has no room for the growth", v1alpha1.TeamBudget{PostBytes: new(apiresource.MustParse("0"))}, 0, func(s *stage, seen string) error {
			_, err := s.UpdateDraft(t.Context(), person, "p1", seen, saying(long, "acme"))
			return err
		}, "spec.budget.postBytes"},
		"GrowsABit": {"the budget has room for the growth", v1alpha1.TeamBudget{PostBytes: grown}, 0, func(s *stage, seen string) error {
			_, err := s.UpdateDraft(t.Context(), person, "p1", seen, saying(long, "acme"))
			return err
		}, ""},
		"SameSize": {"the post does not grow, although it exceeds the budget", v1alpha1.TeamBudget{PostBytes: new(apiresource.MustParse("0"))}, 0, func(s *stage, seen string) error {
			_, err := s.UpdateDraft(t.Context(), person, "p1", seen, saying("Hallo", "acme"))
			return err
		}, ""},
		"Shrinks": {"a smaller post is allowed, although it exceeds the budget", v1alpha1.TeamBudget{PostBytes: new(apiresource.MustParse("0")), Posts: new(int32(0)), UnfinishedPosts: new(int32(0))}, 0, func(s *stage, seen string) error {
			_, err := s.UpdateDraft(t.Context(), person, "p1", seen, saying("a", "acme"))
			return err
		}, ""},
		"Released": {"the limit includes it", v1alpha1.TeamBudget{UnfinishedPosts: new(int32(3))}, 2, func(s *stage, seen string) error {
			_, err := s.Publish(t.Context(), person, "p1", seen, saying("a", "acme"), &later)
			return err
		}, ""},
		"TooMany": {"the team has more posts than allowed", v1alpha1.TeamBudget{UnfinishedPosts: new(int32(2))}, 2, func(s *stage, seen string) error {
			_, err := s.Publish(t.Context(), person, "p1", seen, saying("a", "acme"), &later)
			return err
		}, "no draft can be published until there are fewer"},
		"Cancelled": {"a cancellation releases room", v1alpha1.TeamBudget{UnfinishedPosts: new(int32(0)), PostBytes: new(apiresource.MustParse("0"))}, 2, func(s *stage, _ string) error {
			return s.CancelPost(t.Context(), person, "p1")
		}, ""},
	} {
		post := olderDraft()
		post.Spec.Draft, post.Spec.ScheduledAt = true, nil
		s := staged(post)
		s.Owner = func(string) *v1alpha1.Team {
			return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TeamSpec{
				Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive}, Budget: tc.budget,
			}}
		}
		s.Index.Upsert(post.Namespace, s.Summarise(post), 1)
		for i := range tc.others {
			other := post.DeepCopy()
			other.Name = "other-" + string(rune('a'+i))
			s.Index.Upsert(post.Namespace, s.Summarise(other), uint64(i+2))
		}
		err := tc.change(s, bridge.Version(post))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || code(err) != "SUBSCRIPTION_REQUIRED") {
			t.Errorf("%s: %s: error %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}

// TestLastPlace creates a post whose first response is lost after it has used up the team's ResourceQuota, which then
// rejects the second attempt before the name is checked.
func TestLastPlace(t *testing.T) {
	t.Parallel()
	lost := errors.New("read: connection reset by peer")
	for name, tc := range map[string]struct {
		reason string
		before int
		fault  fault
		want   string
		posts  int
	}{
		"Landed":    {"the post exists and is published: a client that gets a rejection would create it again", 0, fault{true, lost}, "", 1},
		"NotLanded": {"another post used the room meanwhile, and the first request may still take effect", 0, fault{false, lost}, "uncertain", 1},
		"Full":      {"the post was not stored", 1, fault{}, "SUBSCRIPTION_REQUIRED", 1},
	} {
		p := &posts{stored: map[string]*v1alpha1.Post{}, room: 1, faults: []fault{tc.fault}}
		for range tc.before {
			p.stored["other"] = &v1alpha1.Post{}
		}
		if tc.want == "uncertain" {
			tries := 0
			p.creating = func() {
				tries++
				if tries == 2 {
					p.stored["other"] = &v1alpha1.Post{}
				}
			}
		}
		got, err := service(p, inMemory("acme")).CreatePost(t.Context(), caller, hello("acme"))
		if code(err) != tc.want || len(p.stored) != tc.posts || err == nil && p.stored[got.ID] == nil {
			t.Errorf("%s: %s: post %q, error %v, want %q; %d are stored", name, tc.reason, got.ID, err, tc.want, len(p.stored))
		}
	}
}

func TestKeysWithinTheBudget(t *testing.T) {
	t.Parallel()
	for used, want := range map[int32]string{1: "", 0: "the team's budget allows 0 API keys, including revoked and expired ones; 0 are used and this needs 1 more"} {
		s, _, _ := withKeys()
		s.Owner = func(string) *v1alpha1.Team {
			return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Budget: v1alpha1.TeamBudget{Keys: &used}}}
		}
		_, err := s.CreateKey(t.Context(), person, "", time.Time{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d keys: error %v, want %q", used, err, want)
		}
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	refusal := func(quota, kind string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "x",
			errors.New("exceeded quota: "+quota+", requested: count/"+kind+"=1, used: count/"+kind+"=5, limited: count/"+kind+"=5"))
	}
	for kind, want := range map[string]string{
		"posts.social.herald.dev":       `spec.budget.posts of Team "acme"`,
		"apikeys.social.herald.dev":     `spec.budget.keys of Team "acme"`,
		"media.social.herald.dev":       `spec.budget.posts of Team "acme"`,
		"connections.social.herald.dev": `may have 5 connections, including disabled ones; 5 are used`,
		"oauthgrants.social.herald.dev": `may store 5 oauthgrants; 5 are used`,
	} {
		if got := bridge.Bounded(team, refusal(v1alpha1.BudgetQuota, kind)); got == nil || got.Code != "SUBSCRIPTION_REQUIRED" || !strings.Contains(got.Message, want) {
			t.Errorf("%s: %v, want %q", kind, got, want)
		}
	}
	for name, got := range map[string]*bridge.Error{
		"another's quota": bridge.Bounded(team, refusal("theirs", "secrets")), "no team": bridge.Bounded(nil, refusal(v1alpha1.BudgetQuota, "posts.social.herald.dev")),
	} {
		if got == nil || !strings.HasPrefix(got.Message, "ResourceQuota ") {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := bridge.Bounded(team, errors.New("boom")); got != nil {
		t.Errorf("another error: %v", got)
	}
}
