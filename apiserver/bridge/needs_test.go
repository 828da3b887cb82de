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
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/internal/quota"
)

// refusing is a count of which nothing is left for books of a kind when a request looks first.
type refusing struct {
	*counts

	kind string
	err  error
}

func (r *refusing) Check(_ context.Context, b quota.Counter, w *quota.Reservation, _ quota.Limit) (quota.Answer, error) {
	if r.err != nil {
		return quota.Answer{}, r.err
	}
	if b.Kind == r.kind {
		return quota.Answer{Refused: []int{w.Items[0].Target}, Used: 30}, nil
	}
	return quota.Answer{}, nil
}

// TestCreateLooksFirst refuses what cannot be counted before anything is checked that would cost a call.
func TestCreateLooksFirst(t *testing.T) {
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
		"PlanFirst":     {"what the plan does not allow is told before what is wrong", quota.KindXPosts, nil, []v1alpha1.PostTarget{bad}, "SUBSCRIPTION_REQUIRED", "30 of December 2026 are used and this post needs 1"},
		"PlatformAfter": {"what is wrong is told before what a platform does not take", quota.KindTikTokDrafts, nil, []v1alpha1.PostTarget{bad, inbox}, "VALIDATION_ERROR", "caption"},
		"Platform":      {"a platform does not take it", quota.KindTikTokDrafts, nil, []v1alpha1.PostTarget{inbox}, "VALIDATION_ERROR", "targets[0].tiktok_draft: "},
		"Both":          {"the plan comes first", quota.KindXPosts, nil, []v1alpha1.PostTarget{inbox, target("acme")}, "SUBSCRIPTION_REQUIRED", ""},
		"Down":          {"what cannot be counted is not created", "", errors.New("boom"), []v1alpha1.PostTarget{target("acme")}, "internal", ""},
		"Room":          {"there is enough of all", "", nil, []v1alpha1.PostTarget{inbox, target("acme")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := counting(&posts{stored: map[string]*v1alpha1.Post{}}, newCounts())
			s.Quota = &refusing{newCounts(), tc.refused, tc.err}
			var asked atomic.Bool // connections are checked side by side
			s.Readiness = func(context.Context, *v1alpha1.Connection) readiness.Result {
				asked.Store(true)
				return readiness.Result{State: readiness.Ready}
			}
			_, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: tc.targets}})
			if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) || asked.Load() != (err == nil) {
				t.Errorf("%s: error %v, asked %t; want %q with %q", tc.reason, err, asked.Load(), tc.want, tc.message)
			}
		})
	}
}

// TestDraftsOfOneInbox counts each target that goes to an inbox, also if several go to the same.
func TestDraftsOfOneInbox(t *testing.T) {
	t.Parallel()
	c := newCounts()
	inbox := target("box")
	inbox.TikTok = &v1alpha1.TikTokOptions{Draft: true}
	s := counting(&posts{stored: map[string]*v1alpha1.Post{}}, c)
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
	if diff := cmp.Diff(map[int]int{0: 1, 2: 1}, c.held(t, boxBook)); diff != "" {
		t.Errorf("what is counted of the inbox:\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int{1: 1}, c.held(t, quota.TikTokDrafts(other))); diff != "" {
		t.Errorf("what is counted of the other inbox:\n%s", diff)
	}
}

// returning notes what is given back.
type returning struct {
	*counts

	returned []string
	err      error
}

func (r *returning) Return(_ context.Context, b quota.Counter, post string, _ types.UID, keep func(int) int) error {
	r.returned = append(r.returned, fmt.Sprintf("%s of %s, %d and %d kept", b.Kind, post, keep(0), keep(1)))
	return r.err
}

// TestGiveBackFails notes what could not be given back, and answers all the same.
func TestGiveBackFails(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{{false, apierrors.NewForbidden(resource, "p", errors.New("no"))}}}
	s := counting(p, newCounts())
	var log bytes.Buffer
	s.Quota, s.Log = &stuck{newCounts()}, slog.New(slog.NewTextHandler(&log, nil))
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "internal" || !strings.HasPrefix(err.Error(), "create a post: ") {
		t.Errorf("error %v, want that of the create", err)
	}
	if !strings.Contains(log.String(), "Cannot give back yet") {
		t.Errorf("logged is %q", log.String())
	}
}

// TestKeepsWhatTheOtherPostTakes finds the post of another request under the same key: what that takes stays counted.
func TestKeepsWhatTheOtherPostTakes(t *testing.T) {
	t.Parallel()
	both := hello("acme")
	both.Spec.Targets = append(both.Spec.Targets, target("beta"))
	for name, tc := range map[string]struct {
		reason       string
		outer, inner bridge.CreatePost
		want         string
	}{
		"OnX":       {"it goes to X as well, and to one account only", both, hello("acme"), "1 and 0 kept"},
		"Elsewhere": {"it goes elsewhere", hello("acme"), hello("box"), "0 and 0 kept"},
		"OnXAndMore": {"it goes to X and elsewhere", both, bridge.CreatePost{Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{target("acme"), target("box")},
		}}, "1 and 0 kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.outer.IdempotencyKey, tc.inner.IdempotencyKey = "k", "k"
			p := &posts{stored: map[string]*v1alpha1.Post{}}
			s, r := counting(p, newCounts()), &returning{counts: newCounts()}
			s.Quota = r
			p.creating = func() {
				p.creating = nil
				if _, err := s.CreatePost(t.Context(), caller, tc.inner); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.CreatePost(t.Context(), caller, tc.outer); code(err) != "CONFLICT" {
				t.Fatalf("error %v", err)
			}
			if len(r.returned) != 1 || !strings.HasSuffix(r.returned[0], tc.want) {
				t.Errorf("%s: given back is %q, want %q", tc.reason, r.returned, tc.want)
			}
		})
	}
}

// TestGivesBackWhatItTook gives nothing back of what it did not get.
func TestGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	c := newCounts()
	c.full = quota.KindXPosts
	s := counting(&posts{stored: map[string]*v1alpha1.Post{}}, c)
	var log bytes.Buffer
	s.Quota, s.Log = &stuck{c}, slog.New(slog.NewTextHandler(&log, nil))
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "SUBSCRIPTION_REQUIRED" || log.Len() > 0 {
		t.Errorf("error %v, logged is %q", err, log.String())
	}
}

// delivered is a count that knows a delivered post of the same name until it is told that it is gone.
type delivered struct{ *counts }

func (d *delivered) Check(_ context.Context, _ quota.Counter, w *quota.Reservation, _ quota.Limit) (quota.Answer, error) {
	if w.Gone == "1" {
		return quota.Answer{}, nil
	}
	return quota.Answer{Delivered: "1"}, nil
}

// TestDeliveredBefore reads the post of the same name that was delivered: whether it is there decides what is counted.
func TestDeliveredBefore(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := counting(p, newCounts())
	s.Quota = &delivered{newCounts()}
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil || p.creates != 1 {
		t.Errorf("it is gone, so that another may be created: %v", err)
	}
	s.Posts = &unreadable{p}
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "internal" || !strings.Contains(err.Error(), "read what was created") || p.creates != 1 {
		t.Errorf("it cannot be read, so that nothing is created: %v", err)
	}
}

// stuck are counts from which nothing can be taken back.
type stuck struct{ *counts }

func (*stuck) Undo(context.Context, quota.Counter, *quota.Reservation, quota.Answer, quota.Limit) error {
	return errors.New("boom")
}
