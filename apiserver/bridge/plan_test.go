// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
)

type starter struct{}

func (starter) Owner(string) *v1alpha1.Team {
	return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive, Plan: v1alpha1.PlanStarter}}}
}

// starterService returns a service of a starter team that may post to acme and beta on X and to the inbox of box on TikTok.
func starterService(p *posts, c *counts) *bridge.Service {
	box := onX("box")
	box.Spec.Platform = v1alpha1.PlatformTikTok
	s := service(p, &connections{memory: map[string]*v1alpha1.Connection{"acme": onX("acme"), "beta": onX("beta"), "box": box}})
	s.Owner, s.Quota = starter{}.Owner, c
	s.Capabilities = func(v1alpha1.Platform) (platforms.Capabilities, bool) {
		return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryTree}}, true
	}
	return s
}

var (
	ofX   = plan.XPosts(now)
	ofBox = plan.TikTokDrafts(onX("box"))
)

// TestUncertainPostsAreCounted verifies that a post's usage stays reserved if and only if the post exists or may exist.
func TestUncertainPostsAreCounted(t *testing.T) {
	t.Parallel()
	lost := errors.New("read: connection reset by peer")
	forbidden := fault{false, apierrors.NewForbidden(resource, "p", lost)}
	onBoth, inBox := map[int]int{0: 1, 1: 1}, map[int]int{2: 1}
	tests := map[string]struct {
		reason string
		full   string
		down   error
		faults []fault
		want   string
		x, box map[int]int
		// writes is the number of writes of both Usages.
		writes int
	}{
		"Created":    {"the post has its reservations, and none is released", "", nil, nil, "", onBoth, inBox, 2},
		"Refused":    {"Kubernetes rejected the post", "", nil, []fault{forbidden}, "internal", nil, nil, 4},
		"LostAnswer": {"the retry finds the post and keeps its reservations", "", nil, []fault{{true, lost}, {true, lost}, {true, lost}}, "", onBoth, inBox, 4},
		"Uncertain":  {"the outcome is unknown, so the reservation remains until the manager looks it up", "", nil, []fault{{false, lost}, {false, lost}, {false, lost}}, "uncertain", onBoth, inBox, 2},
		"NoMoreX":    {"another request reached the plan's limit", v1alpha1.ResourceXPosts, nil, nil, "SUBSCRIPTION_REQUIRED", nil, nil, 1},
		"NoMoreBox":  {"the inbox is full, so the other reservations are released", v1alpha1.ResourceTikTokDrafts, nil, nil, "VALIDATION_ERROR", nil, nil, 3},
		"Down":       {"without a count the post is not created", "", lost, nil, "internal", nil, nil, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCounts()
			c.full, c.down = tc.full, tc.down
			s := starterService(&posts{stored: map[string]*v1alpha1.Post{}, faults: tc.faults}, c)
			inbox := target("box")
			inbox.TikTok = &v1alpha1.TikTokOptions{Draft: true}
			_, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{IdempotencyKey: "k", Spec: v1alpha1.PostSpec{
				Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{target("acme"), target("beta"), inbox},
			}})
			if code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if diff := cmp.Diff(tc.x, c.usageByTarget(t, ofX)); diff != "" {
				t.Errorf("%s: usage of posts to X:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.box, c.usageByTarget(t, ofBox)); diff != "" {
				t.Errorf("%s: usage of the inbox:\n%s", tc.reason, diff)
			}
			if c.amends != tc.writes {
				t.Errorf("%s: %d writes, want %d", tc.reason, c.amends, tc.writes)
			}
		})
	}
}

// one is a text post to X, and five is a tree of five cards, both with the same key.
func one() bridge.CreatePost {
	in := hello("acme")
	in.IdempotencyKey = "k"
	return in
}

func five() bridge.CreatePost {
	tree := &v1alpha1.TreeContent{}
	for range 5 {
		tree.Cards = append(tree.Cards, v1alpha1.TreeCard{Caption: "card"})
	}
	return bridge.CreatePost{IdempotencyKey: "k", Spec: v1alpha1.PostSpec{
		Category: v1alpha1.CategoryTree, Tree: tree, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}}},
	}}
}

// TestTwoRequestsWithOneKey sends two requests with one key: the inner one runs completely just before the outer one
// creates its post.
func TestTwoRequestsWithOneKey(t *testing.T) {
	t.Parallel()
	forbidden := fault{false, apierrors.NewForbidden(resource, "p", errors.New("no"))}
	tests := map[string]struct {
		reason       string
		outer, inner bridge.CreatePost
		faults       []fault
		wantOuter    string
		wantInner    string
		held         map[int]int
	}{
		"LargerComesSecond": {"the larger request is rejected and keeps the smaller one's reservations", one(), five(), []fault{forbidden}, "", "internal", map[int]int{0: 1}},
		"SmallerWins":       {"the larger request finds the smaller one's post, and releases the rest", five(), one(), nil, "CONFLICT", "", map[int]int{0: 1}},
		"LargerWins":        {"the smaller request finds the larger one's post, and does not reserve", one(), five(), nil, "CONFLICT", "", map[int]int{0: 5}},
		"Same":              {"the same request, repeated", one(), one(), nil, "", "", map[int]int{0: 1}},
		"SameRefused":       {"Kubernetes rejects one of two equal requests", one(), one(), []fault{forbidden}, "", "internal", map[int]int{0: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCounts()
			p := &posts{stored: map[string]*v1alpha1.Post{}, faults: tc.faults}
			s := starterService(p, c)
			var inner error
			p.creating = func() {
				p.creating = nil
				_, inner = s.CreatePost(t.Context(), caller, tc.inner)
			}
			_, outer := s.CreatePost(t.Context(), caller, tc.outer)
			if code(outer) != tc.wantOuter || code(inner) != tc.wantInner {
				t.Errorf("%s: errors %v and %v, want %q and %q", tc.reason, outer, inner, tc.wantOuter, tc.wantInner)
			}
			if diff := cmp.Diff(tc.held, c.usageByTarget(t, ofX)); diff != "" {
				t.Errorf("%s: usage afterwards:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKeyOfADeliveredPost verifies that a delivered post still counts after its object is deleted, and that the next
// post with its key needs its own share.
func TestKeyOfADeliveredPost(t *testing.T) {
	t.Parallel()
	deliver := func(t *testing.T, c *counts, post *v1alpha1.Post, uid types.UID, others int) {
		t.Helper()
		post.UID = uid
		err := c.UsageStore.Amend(t.Context(), caller.Namespace, ofX, func(stored *v1alpha1.Usage) error {
			for _, p := range []usage.PostUses{
				{Name: post.Name, UID: uid, Uses: []usage.Use{{Count: 1, At: now}}},
				{Name: "others", UID: "o", Uses: []usage.Use{{Count: others, At: now}}},
			} {
				if refused := usage.Confirm(stored, p, 30, now); len(refused) > 0 {
					t.Fatalf("refused are %+v", refused)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	used := func(t *testing.T, c *counts) int {
		t.Helper()
		stored, err := c.UsageStore.Read(t.Context(), caller.Namespace, ofX)
		if err != nil {
			t.Fatal(err)
		}
		return int(stored.Status.Used)
	}
	for name, tc := range map[string]struct {
		reason string
		others int
		want   string
		used   int
	}{
		"Room": {"both posts count", 28, "", 30},
		"Full": {"the second one exceeds the plan", 29, "SUBSCRIPTION_REQUIRED", 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := newCounts(), &posts{stored: map[string]*v1alpha1.Post{}}
			s := starterService(p, c)
			detail, err := s.CreatePost(t.Context(), caller, one())
			if err != nil {
				t.Fatal(err)
			}
			deliver(t, c, p.stored[detail.ID], "1", tc.others)
			delete(p.stored, detail.ID)
			if _, err := s.CreatePost(t.Context(), caller, one()); code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if got := used(t, c); got != tc.used {
				t.Errorf("%s: %d are used, want %d", tc.reason, got, tc.used)
			}
		})
	}
	for name, others := range map[string]int{"DeliveredMeanwhile": 29, "DeliveredMeanwhileWithRoom": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := newCounts(), &posts{stored: map[string]*v1alpha1.Post{}}
			s := starterService(p, c)
			// The other request's post is created and delivered before this request reserves.
			c.taking = func() {
				c.taking = nil
				detail, err := s.CreatePost(t.Context(), caller, one())
				if err != nil {
					t.Error(err)
					return
				}
				deliver(t, c, p.stored[detail.ID], "1", others)
			}
			if _, err := s.CreatePost(t.Context(), caller, one()); err != nil {
				t.Errorf("error %v, want the existing post", err)
			}
			if got := used(t, c); got != others+1 {
				t.Errorf("%d are used, want %d: it is one post", got, others+1)
			}
		})
	}
}

func TestReleaseAfterDisconnect(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{{false, apierrors.NewForbidden(resource, "p", context.Canceled)}}, creating: leave}
	c := newCounts()
	if _, err := starterService(p, c).CreatePost(ctx, caller, hello("acme")); err == nil || strings.Contains(err.Error(), "perhaps") {
		t.Fatalf("error %v, want a clear one", err)
	}
	if held := c.usageByTarget(t, ofX); len(held) > 0 {
		t.Errorf("%v remains reserved, although the post was rejected", held)
	}
}
