// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// unreadablePosts cannot be read while err is set.
type unreadablePosts struct {
	*posts

	err error
}

func (u *unreadablePosts) Get(ctx context.Context, namespace, name string) (*v1alpha1.Post, error) {
	if u.err != nil {
		return nil, u.err
	}
	return u.posts.Get(ctx, namespace, name)
}

// TestUnlessRepeated creates a post with the content of one that the user published a minute ago, and then again. In a
// synctest bubble, a request that waits for an earlier one that has already ended is reported as a deadlock.
func TestUnlessRepeated(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		reason string
		since  func(u *unreadablePosts, before *v1alpha1.Post)
		want   string // "repeated", or the result of code
	}{
		"Published": {"the user may have pressed the button twice", func(*unreadablePosts, *v1alpha1.Post) {}, "repeated"},
		"Cancelled": {"a cancelled post is not published", func(_ *unreadablePosts, p *v1alpha1.Post) { p.Spec.Cancelled = true }, ""},
		"Edited":    {"its text has changed", func(_ *unreadablePosts, p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "Other" }, ""},
		"Deleted":   {"a deleted post is not published", func(u *unreadablePosts, _ *v1alpha1.Post) { clear(u.stored) }, ""},
		"Away":      {"whether it repeats a post is unknown", func(u *unreadablePosts, _ *v1alpha1.Post) { u.err = boom }, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				before := &v1alpha1.Post{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: person.Namespace, Name: "before", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)),
						Labels:      map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb},
						Annotations: map[string]string{v1alpha1.AuthorAnnotation: person.Author},
					},
					Spec: hello("acme").Spec,
				}
				u := &unreadablePosts{posts: &posts{stored: map[string]*v1alpha1.Post{"before": before}}}
				s := service(u.posts, inMemory("acme"))
				s.Posts = u
				s.Observe(before)
				tc.since(u, before)
				in := hello("acme")
				in.UnlessRepeated = true
				want, original := tc.want, "before"
				for range 2 {
					made, err := s.CreatePost(t.Context(), person, in)
					got := code(err)
					if repeated, ok := errors.AsType[*bridge.RepeatedError](err); ok && repeated.ID == original {
						got = "repeated"
					}
					if got != want || (err == nil) != (made.ID != "") {
						t.Errorf("%s: post %q, error %v, want %q", tc.reason, made.ID, err, want)
					}
					if want == "" {
						want, original = "repeated", made.ID // the next one repeats this one
					}
				}
			})
		})
	}
}

// TestPublishUnlessRepeated publishes a draft twice, and then another draft with the same content.
func TestPublishUnlessRepeated(t *testing.T) {
	t.Parallel()
	s := staged(olderDraft())
	other := olderDraft(func(p *v1alpha1.Post) { p.Name, p.UID = "p2", "u2" })
	s.posts.stored["p2"] = other
	publish := func(post *v1alpha1.Post) (*v1alpha1.Post, error) {
		return s.PublishUnlessRepeated(t.Context(), person, post.Name, bridge.Version(post), saying("New", "acme"), nil)
	}
	for range 2 { // a second press of the button
		if got, err := publish(olderDraft()); err != nil || got == nil || got.Name != "p1" || got.Spec.Draft {
			t.Errorf("%+v, %v", got, err)
		}
	}
	got, err := publish(other)
	if repeated, ok := errors.AsType[*bridge.RepeatedError](err); !ok || repeated.ID != "p1" || got != nil || !s.posts.stored["p2"].Spec.Draft {
		t.Errorf("another post with the same content: %+v, %v", got, err)
	}
}

// TestRepeatsAChange creates a post with the content of one that was changed a moment ago. Only a change that publishes
// counts.
func TestRepeatsAChange(t *testing.T) {
	t.Parallel()
	spec := saying("New", "acme")
	later := saying("New", "acme")
	later.ScheduledAt = v1alpha1.NewTimePtr(tomorrow)
	for name, tc := range map[string]struct {
		reason   string
		post     *v1alpha1.Post
		change   func(*stage) (*v1alpha1.Post, error)
		repeated bool
	}{
		"Published": {"the draft is being published", olderDraft(), func(s *stage) (*v1alpha1.Post, error) {
			return s.Publish(t.Context(), person, "p1", bridge.Version(s.post()), spec, nil)
		}, true},
		"Scheduled": {"the draft will be published", olderDraft(), func(s *stage) (*v1alpha1.Post, error) {
			return s.Publish(t.Context(), person, "p1", bridge.Version(s.post()), spec, &tomorrow)
		}, true},
		"Edited": {"the draft was scheduled long ago", olderDraft(scheduledFor(tomorrow)), func(s *stage) (*v1alpha1.Post, error) {
			return s.EditScheduled(t.Context(), person, "p1", bridge.Version(s.post()), later)
		}, false},
		"Moved": {"the draft was scheduled long ago", olderDraft(scheduledFor(tomorrow), func(p *v1alpha1.Post) { p.Spec.Targets = spec.Targets }), func(s *stage) (*v1alpha1.Post, error) {
			return s.Reschedule(t.Context(), person, "p1", bridge.Version(s.post()), nextMonth)
		}, false},
	} {
		s := staged(tc.post)
		if _, err := tc.change(s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err := s.CreatePost(t.Context(), person, bridge.CreatePost{Spec: spec, UnlessRepeated: true})
		if _, repeated := errors.AsType[*bridge.RepeatedError](err); repeated != tc.repeated || !repeated && err != nil {
			t.Errorf("%s: %s: error %v", name, tc.reason, err)
		}
	}
}
