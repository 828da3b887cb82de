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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

func TestPages(t *testing.T) {
	t.Parallel()
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	for range 4 {
		if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		reason            string
		page, limit       int
		posts, onPage, of int
		next              bool
	}{
		{"more follow", 1, 2, 2, 1, 2, true},
		{"the last page is full", 2, 2, 2, 2, 2, false},
		{"a page that is not full", 1, 3, 3, 1, 3, true},
		{"the last page is not full", 2, 3, 1, 2, 3, false},
		{"all fit", 1, 4, 4, 1, 4, false},
		{"beyond the last page", 3, 2, 0, 3, 2, false},
		{"out of bounds", 0, 1000, 4, 1, 100, false},
		{"the largest page", 1<<53 - 1, 100, 0, 1<<53 - 1, 100, false},
		{"beyond the integers of JSON readers", 1 << 53, 100, 0, 1<<53 - 1, 100, false},
	} {
		got := pageOf(t, s, caller, postindex.Query{Page: tc.page, Limit: tc.limit})
		if len(got.Posts) != tc.posts || got.Total != 4 || got.Page != tc.onPage || got.Limit != tc.of || got.HasNext != tc.next {
			t.Errorf("%s: got %d posts, %+v", tc.reason, len(got.Posts), got)
		}
	}
	if title := pageOf(t, s, caller, postindex.Query{Limit: 1}).Posts[0].Title; title != "Hello" {
		t.Errorf("the list's title is %q", title)
	}
}

// TestDetailFields verifies a post's fields for clients, other than its targets' states.
func TestDetailFields(t *testing.T) {
	t.Parallel()
	card := v1alpha1.TreeCard{Caption: "card"}
	p := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "p1"}, Spec: v1alpha1.PostSpec{
		Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{card}}, ScheduledAt: at(time.Hour),
	}}
	c := inMemory("acme")
	c.memory["acme"].Status.AccountName = "Acme"
	c.memory["tube"] = account("tube", v1alpha1.PlatformYouTube, 0, nil)
	titled, untitled, both := target("tube"), target("tube"), target("acme")
	titled.YouTube, both.YouTube = &v1alpha1.YouTubeOptions{Title: "Launch"}, &v1alpha1.YouTubeOptions{Title: "Launch"}
	p.Spec.Targets = []v1alpha1.PostTarget{titled, untitled, both}
	p.Status.Targets = []v1alpha1.TargetStatus{{Index: 2, ExternalURL: "https://x/7", PostedAt: v1alpha1.NewTimePtr(now)}}
	got, err := service(&posts{stored: map[string]*v1alpha1.Post{"p1": p}}, c).GetPost(t.Context(), caller, "p1")
	if err != nil {
		t.Fatal(err)
	}
	if got.ScheduledAt == nil || !got.ScheduledAt.Equal(now.Add(time.Hour)) || len(got.Cards) != 1 || got.Media != nil {
		t.Errorf("its time is %v, its cards %v, its media %v", got.ScheduledAt, got.Cards, got.Media)
	}
	if len(got.PostedAt) != 3 || !got.PostedAt[1].IsZero() || !got.PostedAt[2].Equal(now) {
		t.Errorf("it was posted at %v, want only the last target, at %s", got.PostedAt, now)
	}
	var told []string
	for _, d := range got.Platforms {
		told = append(told, fmt.Sprintf("%s %q %q %q", d.Platform, d.AccountName, d.YouTubeTitle, d.ExternalURL))
	}
	if diff := cmp.Diff([]string{`youtube "" "Launch" ""`, `youtube "" "" ""`, `x "Acme" "" "https://x/7"`}, told); diff != "" {
		t.Errorf("account, YouTube title, and URL:\n%s", diff)
	}
	failed := p.DeepCopy()
	failed.Status.Targets = []v1alpha1.TargetStatus{{Index: 0, State: v1alpha1.TargetFailed}, {Index: 1, State: v1alpha1.TargetFailed, Reason: "Refused"}, {Index: 2, State: v1alpha1.TargetFailed}}
	got, err = service(&posts{stored: map[string]*v1alpha1.Post{"p1": failed}}, c).GetPost(t.Context(), caller, "p1")
	if err != nil || got.Platforms[0].ErrorMessage != "delivery failed for a reason that was not recorded" || got.Platforms[1].ErrorMessage != "Refused" {
		t.Errorf("%v, %+v", err, got.Platforms)
	}
}

// cancelling is a fake Kubernetes API that supports cancelling posts.
type cancelling struct {
	*posts

	conflicts int
	version   string
}

func (c *cancelling) Update(_ context.Context, before, after *v1alpha1.Post) (*v1alpha1.Post, error) {
	if c.conflicts > 0 {
		c.conflicts--
		return nil, apierrors.NewConflict(resource, before.Name, errors.New("written"))
	}
	post := before.DeepCopy()
	post.Spec.Cancelled = true
	post.ResourceVersion = c.version
	c.stored[before.Name] = post
	if !v1alpha1.SemanticEqual(post.Spec, after.Spec) {
		return nil, errors.New("a cancel changes another field")
	}
	return post, nil
}

func TestCancelReleasesUsage(t *testing.T) {
	t.Parallel()
	inbox := target("box")
	inbox.TikTok = &v1alpha1.TikTokOptions{Draft: true}
	onXPosts, onInbox := v1alpha1.ResourceXPosts+": 0 of 2 stay", v1alpha1.ResourceTikTokDrafts+": 0 of 2 stay"
	for name, tc := range map[string]struct {
		reason    string
		draft     bool
		owner     func(string) *v1alpha1.Team
		targets   []v1alpha1.PostTarget
		conflicts int
		version   string
		err       error
		want      []string
		logged    string
	}{
		"Both":       {"all its reservations are released", false, starter{}.Owner, []v1alpha1.PostTarget{target("acme"), inbox}, 0, "7", nil, []string{onXPosts, onInbox}, ""},
		"NoLimit":    {"a plan without a limit does not count posts to X", false, owner{}.Owner, []v1alpha1.PostTarget{target("acme"), inbox}, 0, "7", nil, []string{onInbox}, ""},
		"Nothing":    {"the post had no reservations", false, owner{}.Owner, []v1alpha1.PostTarget{target("acme")}, 0, "7", nil, nil, ""},
		"Draft":      {"a draft does not reserve", true, starter{}.Owner, []v1alpha1.PostTarget{target("acme"), inbox}, 0, "7", nil, nil, ""},
		"Gone":       {"the connection was deleted, and its inbox count with it", false, owner{}.Owner, []v1alpha1.PostTarget{target("none")}, 0, "7", nil, nil, ""},
		"Anew":       {"the post was updated concurrently", false, owner{}.Owner, []v1alpha1.PostTarget{inbox}, 3, "7", nil, []string{onInbox}, ""},
		"Down":       {"the post is cancelled anyway; the manager releases the rest", false, owner{}.Owner, []v1alpha1.PostTarget{inbox}, 0, "7", errors.New("boom"), []string{onInbox}, "Cannot release a post's unused usage"},
		"Unreadable": {"the watch updates the list", false, owner{}.Owner, []v1alpha1.PostTarget{target("acme")}, 0, "new", nil, nil, "Cannot list a post"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &posts{stored: map[string]*v1alpha1.Post{"p1": {
				ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "p1", ResourceVersion: "6", CreationTimestamp: metav1.NewTime(now)},
				Spec:       v1alpha1.PostSpec{Draft: tc.draft, ScheduledAt: at(time.Hour), Targets: tc.targets},
			}}}
			s := starterService(p, newCounts())
			var log bytes.Buffer
			r := &returning{counts: newCounts(), err: tc.err}
			s.Posts, s.Quota, s.Owner = &cancelling{posts: p, conflicts: tc.conflicts, version: tc.version}, r, tc.owner
			s.Log = slog.New(slog.NewTextHandler(&log, nil))
			before, err := postindex.ParseVersion("6")
			if err != nil {
				t.Fatal(err)
			}
			s.Index.Upsert(caller.Namespace, s.Summarise(p.stored["p1"]), before)
			if err := s.CancelPost(t.Context(), caller, "p1"); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, r.returned); diff != "" {
				t.Errorf("%s: released:\n%s", tc.reason, diff)
			}
			if (log.Len() > 0) != (tc.logged != "") || !strings.Contains(log.String(), tc.logged) {
				t.Errorf("%s: logged %q, want %q", tc.reason, log.String(), tc.logged)
			}
			if listed := pageOf(t, s, caller, postindex.Query{Limit: 1}); (listed.Total == 0) != (tc.version == "7") {
				t.Errorf("%s: the list contains a cancelled post: %+v", tc.reason, listed)
			}
		})
	}
}

// TestNoConnection reads an applied post whose connection never existed, and which failed at its deadline.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		target v1alpha1.PostTarget
		want   v1alpha1.Platform
	}{
		"options":        {"they determine the platform", v1alpha1.PostTarget{TikTok: &v1alpha1.TikTokOptions{}}, v1alpha1.PlatformTikTok},
		"a name":         {"it often contains the platform", v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "acme-threads.main"}}, v1alpha1.PlatformThreads},
		"any other name": {"X accepts every category", v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}}, v1alpha1.PlatformX},
		"a later one":    {"version 1 of the API does not have the platform", v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "bluesky-x"}}, v1alpha1.PlatformBluesky},
	} {
		const why = `connection "acme" does not exist`
		post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{tc.target}}}
		post.Name, post.Namespace = "p", caller.Namespace
		post.Status = v1alpha1.PostStatus{Phase: v1alpha1.PhaseFailed, Targets: []v1alpha1.TargetStatus{{
			Phase: v1alpha1.PhaseFailed, State: v1alpha1.TargetFailed, Reason: v1alpha1.ReasonMissedSchedule, Message: why,
		}}}
		s := service(&posts{stored: map[string]*v1alpha1.Post{"p": post}}, inMemory("other"))
		got, err := s.GetPost(t.Context(), caller, "p")
		if err != nil || len(got.Platforms) != 1 {
			t.Errorf("%s: %s: %d targets, error %v", name, tc.reason, len(got.Platforms), err)
			continue
		}
		if target := got.Platforms[0]; target.Platform != tc.want || target.ConnectionID != "" || target.ErrorMessage != why || target.Status != v1alpha1.PhaseFailed {
			t.Errorf("%s: %s: got %+v", name, tc.reason, target)
		}
		post.Status = v1alpha1.PostStatus{}
		if got, err := s.GetPost(t.Context(), caller, "p"); err != nil || len(got.Platforms) != 1 || got.Platforms[0].ErrorMessage != "" || got.Platforms[0].Status != v1alpha1.PhaseProcessing {
			t.Errorf("%s: while it waits, it reads %+v, error %v", name, got.Platforms, err)
		}
		listed := s.Summarise(post)
		if later := !tc.want.InVersion1(); len(listed.Platforms) != 0 != later || later && listed.Platforms[0].Platform != tc.want {
			t.Errorf("%s: the list shows the platforms %v", name, listed.Platforms)
		}
		s.Index.Upsert(caller.Namespace, listed, 1)
		version1 := caller
		version1.Version1 = true
		of, err := s.GetPost(t.Context(), version1, "p")
		page, listing := s.ListPosts(t.Context(), version1, postindex.Query{Limit: 10})
		if exists := tc.want.InVersion1(); (err == nil) != exists || exists && len(of.Platforms) != 1 || listing != nil || (page.Total == 1) != exists || (len(page.Posts) == 1) != exists {
			t.Errorf("%s: version 1 has %+v, error %v, and lists %+v, error %v", name, of.Platforms, err, page, listing)
		}
	}
}

// TestSummaryIsBounded summarizes the largest posts: a summary's size depends only on the number of targets.
func TestSummaryIsBounded(t *testing.T) {
	t.Parallel()
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo}}
	post.Name, post.Namespace = "p", caller.Namespace
	post.Annotations = map[string]string{v1alpha1.AgentAnnotation: strings.Repeat("🙂", 50_000)}
	for i := range 100 {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("c-%d", i)}, Caption: strings.Repeat("🙂", 65_000),
			YouTube: &v1alpha1.YouTubeOptions{Title: strings.Repeat("🙂", 4_096)},
		})
	}
	got := s.Summarise(post)
	if kept := len(got.ID) + len(got.Title) + len(got.Agent); kept > 2<<10 || len(got.Platforms) > 100 {
		t.Errorf("the index stores %d bytes of text and %d targets", kept, len(got.Platforms))
	}
	if got.Title == "" || got.Agent == "" {
		t.Error("the summary lacks its title or its agent")
	}
}
