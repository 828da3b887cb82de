// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
)

// refusing is a usage store without room for a resource at the first check of a request.
type refusing struct {
	*counts

	resource string
	err      error
}

func (r *refusing) Read(ctx context.Context, namespace string, counter v1alpha1.UsageSpec) (*v1alpha1.Usage, error) {
	if r.err != nil {
		return nil, r.err
	}
	if counter.Resource == r.resource {
		return fullUsage(counter), nil
	}
	return r.counts.Read(ctx, namespace, counter)
}

// TestCreateChecksUsageFirst verifies that usage is checked before anything that requires a call.
func TestCreateChecksUsageFirst(t *testing.T) {
	t.Parallel()
	bad := target("acme")
	bad.Caption = ""
	inbox := target("box")
	inbox.TikTok = &v1alpha1.TikTokOptions{Draft: true}
	for name, tc := range map[string]struct {
		reason  string
		refused string
		err     error
		targets []v1alpha1.PostTarget
		want    string
		message string
	}{
		"PlanFirst":     {"the plan is reported before problems of the post", v1alpha1.ResourceXPosts, nil, []v1alpha1.PostTarget{bad}, "SUBSCRIPTION_REQUIRED", "30 of December 2026 are used and this post needs 1"},
		"PlatformAfter": {"problems of the post are reported before a platform's", v1alpha1.ResourceTikTokDrafts, nil, []v1alpha1.PostTarget{bad, inbox}, "VALIDATION_ERROR", "caption"},
		"Platform":      {"the platform does not accept the file", v1alpha1.ResourceTikTokDrafts, nil, []v1alpha1.PostTarget{inbox}, "VALIDATION_ERROR", "targets[0].tiktok_draft: "},
		"Both":          {"the plan's limit is reported first", v1alpha1.ResourceXPosts, nil, []v1alpha1.PostTarget{inbox, target("acme")}, "SUBSCRIPTION_REQUIRED", ""},
		"Down":          {"without a count the post is not created", "", errors.New("boom"), []v1alpha1.PostTarget{target("acme")}, "internal", ""},
		"Room":          {"the plan has room for all targets", "", nil, []v1alpha1.PostTarget{inbox, target("acme")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := starterService(&posts{stored: map[string]*v1alpha1.Post{}}, newCounts())
			s.Quota = &refusing{newCounts(), tc.refused, tc.err}
			var asked atomic.Bool // connections are checked concurrently
			s.Readiness = func(context.Context, *v1alpha1.Connection) readiness.Result {
				asked.Store(true)
				return readiness.Result{State: readiness.Ready}
			}
			_, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: tc.targets}})
			if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) || asked.Load() != (err == nil) {
				t.Errorf("%s: error %v, sent %t; want %q with %q", tc.reason, err, asked.Load(), tc.want, tc.message)
			}
		})
	}
}

// TestDraftsOfOneInbox verifies that each target to an inbox counts, even if several go to the same one.
func TestDraftsOfOneInbox(t *testing.T) {
	t.Parallel()
	c := newCounts()
	inbox := target("box")
	inbox.TikTok = &v1alpha1.TikTokOptions{Draft: true}
	s := starterService(&posts{stored: map[string]*v1alpha1.Post{}}, c)
	other := onX("other")
	other.Spec.Platform, other.Spec.AccountID = v1alpha1.PlatformTikTok, "other"
	s.Connections.(*connections).memory["other"] = other
	elsewhere := target("other")
	elsewhere.TikTok = inbox.TikTok
	if _, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{Spec: v1alpha1.PostSpec{
		Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{inbox, elsewhere, inbox},
	}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]int{0: 1, 2: 1}, c.usageByTarget(t, ofBox)); diff != "" {
		t.Errorf("usage of the inbox:\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int{1: 1}, c.usageByTarget(t, plan.TikTokDrafts(other))); diff != "" {
		t.Errorf("usage of the other inbox:\n%s", diff)
	}
}

// returning records how many of post p1's two entries remain after each release.
type returning struct {
	*counts

	returned []string
	err      error
}

func (r *returning) Amend(_ context.Context, _ string, counter v1alpha1.UsageSpec, change func(*v1alpha1.Usage) error) error {
	stored := &v1alpha1.Usage{Spec: counter}
	usage.Reserve(stored, usage.Reservation{Post: "p1", Uses: []usage.Use{{Count: 1, At: now}, {Target: 1, Count: 1, At: now}}}, 2, now)
	if err := change(stored); err != nil {
		return err
	}
	r.returned = append(r.returned, fmt.Sprintf("%s: %d of 2 stay", counter.Resource, len(stored.Status.Entries)))
	return r.err
}

// TestFailedRelease verifies that a failed release is logged and does not change the response.
func TestFailedRelease(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{{false, apierrors.NewForbidden(resource, "p", errors.New("no"))}}}
	s := starterService(p, newCounts())
	var log bytes.Buffer
	c := newCounts()
	c.down, c.afterwards = errors.New("boom"), true
	s.Quota, s.Log = c, slog.New(slog.NewTextHandler(&log, nil))
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "internal" || !strings.HasPrefix(err.Error(), "create a post: ") {
		t.Errorf("error %v, want that of the create", err)
	}
	if !strings.Contains(log.String(), "Cannot release a post's unused usage") {
		t.Errorf("logged %q", log.String())
	}
}

// TestReleaseKeepsOtherReservations verifies that the usage of another request's post with the same key is kept.
func TestReleaseKeepsOtherReservations(t *testing.T) {
	t.Parallel()
	both := hello("acme")
	both.Spec.Targets = append(both.Spec.Targets, target("beta"))
	for name, tc := range map[string]struct {
		reason       string
		outer, inner bridge.CreatePost
		want         map[int]int
	}{
		"OnX":       {"the existing post includes X and one other account", both, hello("acme"), map[int]int{0: 1}},
		"Elsewhere": {"the existing post does not include X", hello("acme"), hello("box"), nil},
		"OnXAndMore": {"the existing post includes X and another platform", both, bridge.CreatePost{Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{target("acme"), target("box")},
		}}, map[int]int{0: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.outer.IdempotencyKey, tc.inner.IdempotencyKey = "k", "k"
			p := &posts{stored: map[string]*v1alpha1.Post{}}
			c := newCounts()
			s := starterService(p, c)
			p.creating = func() {
				p.creating = nil
				if _, err := s.CreatePost(t.Context(), caller, tc.inner); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.CreatePost(t.Context(), caller, tc.outer); code(err) != "CONFLICT" {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, c.usageByTarget(t, ofX)); diff != "" {
				t.Errorf("%s: remaining usage:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReleaseOfOwnReservations verifies that a request releases only its own reservations.
func TestReleaseOfOwnReservations(t *testing.T) {
	t.Parallel()
	c := newCounts()
	c.full = v1alpha1.ResourceXPosts
	s := starterService(&posts{stored: map[string]*v1alpha1.Post{}}, c)
	var log bytes.Buffer
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "SUBSCRIPTION_REQUIRED" || log.Len() > 0 || c.amends != 1 {
		t.Errorf("error %v, logged %q after %d writes", err, log.String(), c.amends)
	}
}

// TestRejectionAfterConcurrentRequest verifies that a rejected request looks for its key's post again: the same request may have been
// served in the meantime, and have used up the limit.
func TestRejectionAfterConcurrentRequest(t *testing.T) {
	t.Parallel()
	other := one()
	other.Spec.Targets[0].Caption = "Another"
	for name, tc := range map[string]struct {
		reason string
		inner  *bridge.CreatePost
		want   string
	}{
		"Served":  {"the same request exists", new(one()), ""},
		"Another": {"the limit is reported before the conflict with another request", &other, "SUBSCRIPTION_REQUIRED"},
		"Nothing": {"no other request exists", nil, "SUBSCRIPTION_REQUIRED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := newCounts(), &posts{stored: map[string]*v1alpha1.Post{}}
			s := starterService(p, c)
			c.taking = func() {
				c.taking = nil
				if tc.inner != nil {
					if _, err := s.CreatePost(t.Context(), caller, *tc.inner); err != nil {
						t.Error(err)
					}
				}
				c.full = v1alpha1.ResourceXPosts
			}
			if _, err := s.CreatePost(t.Context(), caller, one()); code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if tc.inner != nil && p.creates != 1 {
				t.Errorf("%s: %d creates", tc.reason, p.creates)
			}
		})
	}
}
