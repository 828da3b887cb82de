// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestContentBy compares the content of two posts.
func TestContentBy(t *testing.T) {
	t.Parallel()
	base := v1alpha1.PostSpec{
		Category: v1alpha1.CategoryTree,
		Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello", YouTube: &v1alpha1.YouTubeOptions{Title: "title"}}},
		Image:    &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "image"}}},
		Video:    &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "video"}},
		Tree:     &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "card", MediaRefs: []v1alpha1.MediaReference{{Name: "shown"}}}}},
	}
	const namespace, author = "team-acme", "ada"
	want := contentBy(namespace, author, &base)
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.PostSpec)
		same   bool
	}{
		"nothing":   {"an identical post", func(*v1alpha1.PostSpec) {}, true},
		"time":      {"the time does not matter", func(s *v1alpha1.PostSpec) { s.ScheduledAt = &v1alpha1.Time{} }, true},
		"category":  {"another kind of post", func(s *v1alpha1.PostSpec) { s.Category = v1alpha1.CategoryText }, false},
		"account":   {"another account", func(s *v1alpha1.PostSpec) { s.Targets[0].ConnectionRef.Name = "y" }, false},
		"more":      {"an additional account", func(s *v1alpha1.PostSpec) { s.Targets = append(s.Targets, s.Targets[0]) }, false},
		"caption":   {"another text", func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "hallo" }, false},
		"title":     {"another video's title", func(s *v1alpha1.PostSpec) { s.Targets[0].YouTube.Title = "other" }, false},
		"image":     {"the same picture, uploaded again", func(s *v1alpha1.PostSpec) { s.Image.MediaRefs[0].Name = "other" }, true},
		"video":     {"the same video, uploaded again", func(s *v1alpha1.PostSpec) { s.Video.MediaRef.Name = "other" }, true},
		"card":      {"another card", func(s *v1alpha1.PostSpec) { s.Tree.Cards[0].Caption = "other" }, false},
		"cards":     {"an additional card", func(s *v1alpha1.PostSpec) { s.Tree.Cards = append(s.Tree.Cards, s.Tree.Cards...) }, false},
		"card file": {"the same picture on a card, uploaded again", func(s *v1alpha1.PostSpec) { s.Tree.Cards[0].MediaRefs[0].Name = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := (&v1alpha1.Post{Spec: base}).DeepCopy().Spec
			tc.edit(&changed)
			if same := contentBy(namespace, author, &changed) == want; same != tc.same {
				t.Errorf("%s: the same: %t", tc.reason, same)
			}
		})
	}
	silent := v1alpha1.PostSpec{
		Category: v1alpha1.CategoryImage, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}}},
		Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "image"}}},
	}
	other := (&v1alpha1.Post{Spec: silent}).DeepCopy().Spec
	other.Image.MediaRefs[0].Name = "other"
	if contentBy(namespace, author, &silent) == contentBy(namespace, author, &other) {
		t.Error("two pictures without a text count as duplicates")
	}
	if contentBy("team-other", author, &base) == want || contentBy(namespace, "bob", &base) == want {
		t.Error("another team's or another user's post counts as a duplicate")
	}
}

// TestObserved checks which posts count as recently published by a user.
func TestObserved(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	old := func(p *v1alpha1.Post) { p.CreationTimestamp.Time = now.Add(-time.Hour) }
	for reason, tc := range map[string]struct {
		change func(*v1alpha1.Post)
		want   int
	}{
		"ten minutes ago":      {func(*v1alpha1.Post) {}, 1},
		"longer ago":           {old, 0},
		"an API client's post": {func(p *v1alpha1.Post) { p.Labels = nil }, 0},
		"a draft":              {func(p *v1alpha1.Post) { p.Spec.Draft = true }, 0},
		"a cancelled post":     {func(p *v1alpha1.Post) { p.Spec.Cancelled = true }, 0},
		"an old draft that is being sent": {func(p *v1alpha1.Post) {
			old(p)
			p.Status.Targets[0].Attempt = &v1alpha1.Attempt{StartedAt: v1alpha1.NewTime(now)}
		}, 1},
		"an old draft that was just published": {func(p *v1alpha1.Post) { old(p); p.Status.Targets[0].PostedAt = v1alpha1.NewTimePtr(now) }, 1},
	} {
		post := &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{
				Name: "p1", CreationTimestamp: metav1.NewTime(now.Add(-repeatedFor)),
				Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb}, Annotations: map[string]string{v1alpha1.AuthorAnnotation: "ada"},
			},
			Status: v1alpha1.PostStatus{Targets: make([]v1alpha1.TargetStatus, 1)},
		}
		tc.change(post)
		r := newRecent()
		r.observe(post, now)
		if len(r.posts) != tc.want {
			t.Errorf("%s: %d are remembered, want %d", reason, len(r.posts), tc.want)
		}
	}
}

// TestRecent checks which posts are remembered, and for how long.
func TestRecent(t *testing.T) {
	t.Parallel()
	r, begin := newRecent(), time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	one, other := sameContent{1}, sameContent{2}
	add := func(content sameContent, name string, minute, now int) {
		r.add(content, recentPost{name, begin.Add(time.Duration(minute) * time.Minute)}, begin.Add(time.Duration(now)*time.Minute))
	}
	add(other, "o", 0, 0)
	add(one, "a", 1, 1)
	add(one, "a", 3, 3) // published again
	add(one, "a", 2, 4) // a late report
	add(one, "b", 5, 5)
	names := func(posts []recentPost) (names []string) {
		for _, p := range posts {
			names = append(names, p.name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"b", "a"}, names(r.find(one, begin.Add(5*time.Minute)))); diff != "" || !r.posts[one][0].at.Equal(begin.Add(3*time.Minute)) {
		t.Errorf("the latest duplicate comes first: %s, %+v", diff, r.posts[one])
	}
	add(other, "p", 10, 10)
	if !r.pruned.Equal(begin) {
		t.Errorf("pruned at %s: expired posts are removed every ten minutes at most", r.pruned)
	}
	add(sameContent{3}, "c", 14, 14)
	if diff := cmp.Diff(map[sameContent][]string{one: {"b"}, other: {"p"}, {3}: {"c"}}, map[sameContent][]string{
		one: names(r.posts[one]), other: names(r.posts[other]), {3}: names(r.posts[sameContent{3}]),
	}); diff != "" {
		t.Errorf("expired posts are removed: %s", diff)
	}
	add(one, "d", 25, 25)
	if len(r.posts) != 1 {
		t.Errorf("content without posts is removed: %v", r.posts)
	}
}

// TestAcquire checks that requests with the same content wait for each other.
func TestAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, acquired := newRecent(), false
		end, err := r.acquire(t.Context(), sameContent{1})
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.acquire(gone, sameContent{1}); err == nil {
			t.Error("a disconnected client still waits")
		}
		go func() {
			next, err := r.acquire(t.Context(), sameContent{1})
			if acquired = err == nil; acquired {
				next()
			}
		}()
		synctest.Wait()
		if acquired {
			t.Error("two requests created the same post concurrently")
		}
		end()
		synctest.Wait()
		if !acquired || len(r.underway) > 0 {
			t.Errorf("the next request follows: %t, under way are %v", acquired, r.underway)
		}
	})
}

func TestIsNowhere(t *testing.T) {
	t.Parallel()
	of := func(states ...v1alpha1.TargetState) *v1alpha1.Post {
		p := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Targets: make([]v1alpha1.PostTarget, len(states))}}
		for i, state := range states {
			p.Status.Targets = append(p.Status.Targets, v1alpha1.TargetStatus{Index: int32(i), State: state})
		}
		return p
	}
	draft, cancelled, inPart := of(v1alpha1.TargetPending), of(v1alpha1.TargetPending), of(v1alpha1.TargetFailed)
	draft.Spec.Draft, cancelled.Spec.Cancelled, inPart.Status.Targets[0].ExternalID = true, true, "1"
	for reason, tc := range map[string]struct {
		post *v1alpha1.Post
		want bool
	}{
		"a draft is not published":                        {draft, true},
		"a cancelled post is not published":               {cancelled, true},
		"a pending target may be published at any moment": {of(v1alpha1.TargetPending), false},
		"each target has failed":                          {of(v1alpha1.TargetFailed, v1alpha1.TargetFailed), true},
		"one target is published":                         {of(v1alpha1.TargetFailed, v1alpha1.TargetPosted), false},
		"the first card of a tree is online":              {inPart, false},
	} {
		if got := isUnpublished(tc.post); got != tc.want {
			t.Errorf("%s: nowhere %t, want %t", reason, got, tc.want)
		}
	}
}
