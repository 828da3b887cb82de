// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/postindex"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/platforms"
)

// counts is a count that never runs out, but for the kind of book in full; down
// is what taking fails with.
type counts struct {
	full string
	down error
	// held is what each kind of book holds, by the indexes of the targets.
	held map[string][]int
	// before were there already: an earlier request took them.
	before map[int]bool
}

func (c *counts) Check(context.Context, quota.Book, *quota.Wish, quota.Limit) (quota.Answer, error) {
	return quota.Answer{}, nil // somebody else takes the last one between the two
}

func (c *counts) Take(_ context.Context, b quota.Book, w *quota.Wish, _ quota.Limit) (quota.Answer, error) {
	if c.down != nil {
		return quota.Answer{}, c.down
	}
	var answer quota.Answer
	for _, share := range w.Shares {
		switch {
		case b.Kind == c.full:
			answer.Refused = append(answer.Refused, share.Target)
		case c.before[share.Target]:
		default:
			answer.Added = append(answer.Added, share.Target)
		}
	}
	if len(answer.Refused) == 0 {
		for _, share := range w.Shares {
			c.held[b.Kind] = append(c.held[b.Kind], share.Target)
		}
	}
	return answer, nil
}

func (c *counts) Return(ctx context.Context, b quota.Book, _ string, _ types.UID, keep func(int) int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var kept []int
	for _, target := range c.held[b.Kind] {
		if keep(target) > 0 {
			kept = append(kept, target)
		}
	}
	c.held[b.Kind] = kept
	return nil
}

type starter struct{}

func (starter) Owner(string) *v1alpha1.Team {
	return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive, Plan: v1alpha1.PlanStarter}}}
}

// What is counted for a post stays counted exactly if the post is there, or may
// be.
func TestCountsWhatMayBeThere(t *testing.T) {
	t.Parallel()
	lost := errors.New("read: connection reset by peer")
	forbidden := fault{false, apierrors.NewForbidden(resource, "p", lost)}
	both := map[string][]int{quota.KindXPosts: {0, 1}, quota.KindTikTokDrafts: {2}}
	tests := map[string]struct {
		reason string
		counts counts
		faults []fault
		other  bool // another request has used the key
		want   string
		held   map[string][]int
	}{
		"Created":    {"the usual case", counts{}, nil, false, "", both},
		"Refused":    {"Kubernetes took nothing", counts{}, []fault{forbidden}, false, "internal", nil},
		"LostAnswer": {"it may be there, and the manager will know", counts{}, []fault{{true, lost}, {true, lost}, {true, lost}}, false, "", both},
		"Uncertain":  {"nobody can tell, so it counts until the manager can", counts{}, []fault{{false, lost}, {false, lost}, {false, lost}}, false, "uncertain", both},
		"NoMoreX":    {"the plan has run out meanwhile", counts{full: quota.KindXPosts}, nil, false, "SUBSCRIPTION_REQUIRED", nil},
		"NoMoreBox":  {"the inbox has run full meanwhile: what was counted before is given back", counts{full: quota.KindTikTokDrafts}, nil, false, "VALIDATION_ERROR", nil},
		"Down":       {"what cannot be counted is not created", counts{down: lost}, nil, false, "internal", nil},
		"OtherBody": {
			"an earlier request under the key has taken the first target's share, which stays its own",
			counts{before: map[int]bool{0: true}},
			nil, true, "CONFLICT",
			map[string][]int{quota.KindXPosts: {0}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := onX("box")
			box.Spec.Platform = v1alpha1.PlatformTikTok
			p := &posts{stored: map[string]*v1alpha1.Post{}, faults: tc.faults}
			tc.counts.held = map[string][]int{}
			s := bridge.New(bridge.Config{
				Used: func(*v1alpha1.APIKey) {}, Teams: starter{}, Posts: p, Quota: &tc.counts, Readiness: ready{}, Index: postindex.New(),
				Connections: &connections{memory: map[string]*v1alpha1.Connection{"acme": onX("acme"), "beta": onX("beta"), "box": box}},
				Limits: func(v1alpha1.Platform) (platforms.Limits, bool) {
					return platforms.Limits{Categories: []v1alpha1.Category{v1alpha1.CategoryText}}, true
				},
				Clock: clocktesting.NewFakePassiveClock(now), Log: slog.New(slog.DiscardHandler),
			})
			in := bridge.CreatePost{Category: v1alpha1.CategoryText, IdempotencyKey: "k", Targets: []bridge.CreateTarget{
				{ConnectionID: "acme", Caption: "Hello"},
				{ConnectionID: "beta", Caption: "Hello"},
				{ConnectionID: "box", Caption: "Hello", TikTok: bridge.TikTokOptions{Draft: new(true)}},
			}}
			if tc.other {
				p.appears = func(name string) *v1alpha1.Post {
					return &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.RequestAnnotation: "another"}}}
				}
			}
			_, err := s.CreatePost(t.Context(), caller, in)
			if code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			for kind, targets := range tc.counts.held {
				if len(targets) == 0 {
					delete(tc.counts.held, kind)
				}
			}
			want := tc.held
			if want == nil {
				want = map[string][]int{}
			}
			if diff := cmp.Diff(want, tc.counts.held); diff != "" {
				t.Errorf("%s: what is counted afterwards:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGivesBackWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{{false, apierrors.NewForbidden(resource, "p", context.Canceled)}}, creating: leave}
	c := &counts{held: map[string][]int{}}
	s := service(p, inMemory("acme"))
	s.Teams, s.Quota = starter{}, c
	if _, err := s.CreatePost(ctx, caller, hello("acme")); err == nil || strings.Contains(err.Error(), "perhaps") {
		t.Fatalf("error %v, want a clear one", err)
	}
	if len(c.held[quota.KindXPosts]) > 0 {
		t.Error("the share is still counted, although the post was refused")
	}
}
