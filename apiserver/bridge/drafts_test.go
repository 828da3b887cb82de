// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// unfinished returns a save of a form that contains a caption.
func unfinished(caption, version string) bridge.Autosave {
	in := hello("a-x")
	in.Spec.Targets[0].Caption = caption
	return bridge.Autosave{Key: "form", Version: version, Spec: in.Spec}
}

// TestAutosave verifies that a form has one draft, regardless of how its requests arrive, and that no save replaces a
// version that its user has not seen.
func TestAutosave(t *testing.T) {
	t.Parallel()
	write := func(change func(*v1alpha1.Post)) func(*posts) {
		return func(p *posts) {
			for _, stored := range p.stored {
				post := stored.DeepCopy()
				change(post)
				p.put(post)
			}
		}
	}
	const seen = "seen"
	for name, tc := range map[string]struct {
		reason  string
		between func(*posts)
		// caption and version belong to the second save; seen is the version of the first one.
		caption, version string
		wantCode         string
		outdated         bool
		want             string
	}{
		"Next":         {"a user continues writing", nil, "Hello, world", seen, "", false, "Hello, world"},
		"Unchanged":    {"the stored draft is equal", nil, "Hello", seen, "", false, "Hello"},
		"Again":        {"the request was repeated", nil, "Hello", "", "", false, "Hello"},
		"AnswerLost":   {"the first response was lost, and the user continued writing", nil, "Hello, world", "", "", false, "Hello, world"},
		"OtherTab":     {"another tab has changed the draft", write(func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "Theirs" }), "Mine", seen, "CONFLICT", true, "Theirs"},
		"LostAndOther": {"the first response was lost, and another tab changed the draft", write(func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "Theirs" }), "Mine", "", "CONFLICT", true, "Theirs"},
		"Published":    {"a late save does not change the published content", write(func(p *v1alpha1.Post) { p.Spec.Draft = false }), "Late", seen, "CONFLICT", false, "Hello"},
		"Deleted":      {"a deleted draft is not recreated", func(p *posts) { clear(p.stored) }, "Late", seen, "NOT_FOUND", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &posts{stored: map[string]*v1alpha1.Post{}}
			s := service(p, inMemory("a-x"))
			first, err := s.Autosave(t.Context(), person, unfinished("Hello", ""))
			if err != nil || !first.Spec.Draft {
				t.Fatalf("the first save: %v, %+v", err, first)
			}
			if tc.between != nil {
				tc.between(p)
			}
			if tc.version == seen {
				tc.version = bridge.Version(first)
			}
			second, err := s.Autosave(t.Context(), person, unfinished(tc.caption, tc.version))
			known, _ := errors.AsType[*bridge.Error](err)
			if got := code(err); got != tc.wantCode || known != nil && known.Stale != tc.outdated {
				t.Fatalf("%s: got %q %v, want %q", tc.reason, got, err, tc.wantCode)
			}
			if err == nil && second.Name != first.Name {
				t.Errorf("%s: the form has the drafts %s and %s", tc.reason, first.Name, second.Name)
			}
			var stored []string
			for _, post := range p.stored {
				stored = append(stored, post.Spec.Targets[0].Caption)
			}
			if len(stored) > 1 || strings.Join(stored, "") != tc.want {
				t.Errorf("%s: stored %q, want %q", tc.reason, stored, tc.want)
			}
		})
	}
}

// TestAutosaveAfterLostResponses verifies that a create whose response is lost does not leave a second draft.
func TestAutosaveAfterLostResponses(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{{lands: true, err: apierrors.NewTimeoutError("late", 1)}}}
	s := service(p, inMemory("a-x"))
	if _, err := s.Autosave(t.Context(), person, unfinished("Hello", "")); err != nil || len(p.stored) != 1 {
		t.Errorf("%v, %d drafts", err, len(p.stored))
	}
}

// TestAutosaveOfSentForm verifies that a save that arrives after its form was published does not create a post.
func TestAutosaveOfSentForm(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := service(p, inMemory("a-x"))
	in := hello("a-x")
	in.IdempotencyKey = "form"
	if _, err := s.CreatePost(t.Context(), person, in); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Autosave(t.Context(), person, unfinished("Late", "")); code(err) != "CONFLICT" || len(p.stored) != 1 {
		t.Errorf("%v, and %d posts", err, len(p.stored))
	}
	if post, err := s.ComposedPost(t.Context(), person, "form"); post != nil || err != nil {
		t.Errorf("a published form counts as a draft: %v, %v", post, err)
	}
}

// TestComposedPost verifies that only a form's own draft is found under its key.
func TestComposedPost(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := service(p, inMemory("a-x"))
	made, err := s.Autosave(t.Context(), person, unfinished("Hello", ""))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"form": true, "other": false, "": false} {
		post, err := s.ComposedPost(t.Context(), person, key)
		if err != nil || (post != nil) != want || post != nil && post.Name != made.Name {
			t.Errorf("key %q: %v, %v", key, post, err)
		}
	}
}

// TestAutosaveIsRecordedOnce verifies that successive saves by the same user are recorded as one action, and that saves
// by another user are recorded as well.
func TestAutosaveIsRecordedOnce(t *testing.T) {
	t.Parallel()
	p, e := &posts{stored: map[string]*v1alpha1.Post{}}, &events{}
	s := service(p, inMemory("a-x"))
	s.Events = e
	ada := bridge.Caller{Namespace: person.Namespace, Author: "oidc:ada"}
	version := ""
	for i, by := range []bridge.Caller{person, person, person, ada, ada, person} {
		post, err := s.Autosave(t.Context(), by, unfinished(strings.Repeat("Hello ", i+1), version))
		if err != nil {
			t.Fatal(err)
		}
		version = bridge.Version(post)
	}
	var acts []string
	for _, event := range e.written {
		act, _, _ := strings.Cut(event, " ")
		acts = append(acts, act)
	}
	if want := []string{"CreatedByPerson", "EditedByPerson", "EditedByPerson"}; !slices.Equal(acts, want) {
		t.Errorf("recorded %q, want %q", acts, want)
	}
}

// TestDelay verifies that a delayed post is published once, at the time of its first request.
func TestDelay(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := service(p, inMemory("a-x"))
	in := hello("a-x")
	in.IdempotencyKey, in.Delay = "form", 10*time.Second
	first, err := s.CreatePost(t.Context(), person, in)
	if err != nil {
		t.Fatal(err)
	}
	s.Clock = clocktesting.NewFakePassiveClock(now.Add(2 * time.Second))
	second, err := s.CreatePost(t.Context(), person, in)
	if at := now.Add(10 * time.Second); err != nil || second.ID != first.ID || !second.ScheduledAt.Equal(at) {
		t.Errorf("%v, %+v, want the first post, at %s", err, second, at)
	}
	for name, tc := range map[string]struct {
		reason string
		edit   func(*bridge.CreatePost)
		want   *time.Time
	}{
		"Draft":     {"a draft is not published", func(in *bridge.CreatePost) { in.Spec.Draft = true }, nil},
		"Scheduled": {"a chosen time is kept", func(in *bridge.CreatePost) { in.Spec.ScheduledAt = v1alpha1.NewTimePtr(now.Add(time.Hour)) }, new(now.Add(time.Hour))},
	} {
		in := hello("a-x")
		in.Delay = 10 * time.Second
		tc.edit(&in)
		got, err := s.CreatePost(t.Context(), person, in)
		if err != nil || (got.ScheduledAt == nil) != (tc.want == nil) || tc.want != nil && !got.ScheduledAt.Equal(*tc.want) {
			t.Errorf("%s: %v, at %v, want %v: %s", name, err, got.ScheduledAt, tc.want, tc.reason)
		}
	}
}

// TestPublicationTime verifies that a post counts as a request's result only if an identical request has scheduled it.
func TestPublicationTime(t *testing.T) {
	t.Parallel()
	soon := now.Add(10 * time.Second)
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.Post)
		want   bool
	}{
		"Same":      {"the form was sent twice", func(*v1alpha1.Post) {}, true},
		"Content":   {"another user scheduled other content", func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "Other" }, false},
		"Later":     {"the post is scheduled for another time", func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(soon.Add(time.Minute)) }, false},
		"Draft":     {"a draft is not published", func(p *v1alpha1.Post) { p.Spec.Draft = true }, false},
		"Unknown":   {"the form does not have this setting of a manifest", func(p *v1alpha1.Post) { p.Spec.OnUnknownOutcome = v1alpha1.OnUnknownRetry }, true},
		"Cancelled": {"the post was cancelled", func(p *v1alpha1.Post) { p.Spec.Cancelled = true }, false},
		"AtOnce":    {"the post was not delayed", func(p *v1alpha1.Post) { p.Spec.ScheduledAt = nil }, false},
	} {
		post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: person.Namespace, Name: "p1"}, Spec: hello("a-x").Spec}
		post.Spec.ScheduledAt = v1alpha1.NewTimePtr(soon)
		tc.edit(post)
		s := service(&posts{stored: map[string]*v1alpha1.Post{"p1": post}}, inMemory("a-x"))
		wanted := hello("a-x").Spec
		if got := s.GoesOut(t.Context(), person, "p1", &wanted, soon); got != tc.want {
			t.Errorf("%s: got %v: %s", name, got, tc.reason)
		}
		if s.GoesOut(t.Context(), person, "p2", &wanted, soon) {
			t.Errorf("%s: a deleted post is scheduled", name)
		}
	}
}
