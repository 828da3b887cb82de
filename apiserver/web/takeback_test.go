// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// undoing returns a world whose team waits ten seconds after Publish now.
func undoing(clk *clocktesting.FakeClock) *world {
	w := newWorld(clk)
	w.teams[0].Spec.Publishing.UndoSeconds = 10
	return w
}

// TestPublishWaits verifies that a team's Publish now waits, for a new post and for a draft, and that scheduling and
// saving do not change.
func TestPublishWaits(t *testing.T) {
	t.Parallel()
	soon := v1alpha1.NewTimePtr(now.Add(10 * time.Second))
	for name, tc := range map[string]struct {
		reason, page, when, said string
		saved                    bool
		holds                    func(*v1alpha1.PostSpec) bool
	}{
		"New":       {"a new post waits", "posts/new", whenNow, "soon", false, func(s *v1alpha1.PostSpec) bool { return s.ScheduledAt.Equal(soon) }},
		"Autosaved": {"a saved draft waits", "posts/new", whenNow, "soon", true, func(s *v1alpha1.PostSpec) bool { return s.ScheduledAt.Equal(soon) }},
		"Draft":     {"an existing draft waits", "posts/p-1/edit", whenNow, "soon", false, func(s *v1alpha1.PostSpec) bool { return s.ScheduledAt.Equal(soon) }},
		"Save":      {"a draft is not published", "posts/new", whenDraft, "saved", false, func(s *v1alpha1.PostSpec) bool { return s.Draft && s.ScheduledAt == nil }},
		"Later":     {"a chosen time is kept", "posts/new", whenLater, "scheduled", false, func(s *v1alpha1.PostSpec) bool { return s.ScheduledAt.After(now.Add(time.Hour)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := undoing(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", asDraft))
			form := w.compose(t, tc.page, url.Values{"caption": {"Hello"}, "target": {"our-x"}, "when": {tc.when}, "at": {"2026-12-24T18:00"}})
			if tc.saved {
				w.save(t, &editor, "compose/save", form)
			}
			page := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/"+tc.page, form)))
			path, said, _ := strings.Cut(page, "?said=")
			id := path[strings.LastIndex(path, "/")+1:]
			if post := w.posts[acme+"/"+id]; said != tc.said || !tc.holds(&post.Spec) {
				t.Errorf("%s: the user is redirected to %s, of %+v", tc.reason, page, post.Spec)
			}
		})
	}
}

// TestPublishWaitsOnce verifies that a form that is sent twice, at different times, creates one post, with the
// publication time of the first request.
func TestPublishWaitsOnce(t *testing.T) {
	t.Parallel()
	for page, saves := range map[string]bool{"posts/new": false, "posts/new?": true, "posts/p-1/edit": false} {
		clk := clocktesting.NewFakeClock(now)
		w := undoing(clk)
		if strings.HasPrefix(page, "posts/p-1") {
			w.put(textPost("p-1", "text", asDraft))
		}
		form := w.compose(t, page, url.Values{"caption": {"Hello"}, "target": {"our-x"}, "when": {whenNow}})
		if saves {
			w.save(t, &editor, "compose/save", form)
		}
		first := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/"+page, form)))
		clk.Step(2 * time.Second)
		second := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/"+page, form)))
		if first != second || len(w.posts) != 1 {
			t.Errorf("%s: redirected to %s and %s, and there are %d posts", page, first, second, len(w.posts))
		}
		for _, post := range w.posts {
			if !post.Spec.ScheduledAt.Equal(v1alpha1.NewTimePtr(now.Add(10 * time.Second))) {
				t.Errorf("%s: the post is published at %s", page, post.Spec.ScheduledAt)
			}
		}
	}
}

// TestUndo verifies that a waiting post can be taken back, which cancels it and opens one copy.
func TestUndo(t *testing.T) {
	t.Parallel()
	w := undoing(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "Hello", at(now.Add(8*time.Second))))
	page := w.get(t, editor, "/teams/"+acme+"/posts/p-1?said=soon")
	says(t, "a post that waits", textOf(elements(page, "main")[0]), []string{"This post goes out in 8 seconds.", "Take back"}, nil)
	var clicks sync.WaitGroup
	leads := make([]string, 4)
	for i := range leads {
		clicks.Go(func() {
			leads[i] = w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/takeback", url.Values{})).Header().Get("Location")
		})
	}
	clicks.Wait()
	for _, lead := range leads {
		if lead != leads[0] || !strings.HasSuffix(lead, "/edit?said=back") {
			t.Fatalf("the user is redirected to %q", leads)
		}
	}
	if !w.posts[acme+"/p-1"].Spec.Cancelled || len(w.posts) != 2 {
		t.Errorf("got %d posts; the first one is %+v", len(w.posts), w.posts[acme+"/p-1"].Spec)
	}
	copied := w.get(t, editor, leads[0])
	if form := sent(withID(t, copied, "compose")); form.Get("caption") != "Hello" || form.Get("when") != whenDraft {
		t.Errorf("the copy has %v", form)
	}
	says(t, "the post is withdrawn", textOf(copied), []string{"The post is taken back"}, nil)
}

// TestUndoTooLate verifies that a post whose delivery has started is neither canceled nor copied, and that a message
// explains this.
func TestUndoTooLate(t *testing.T) {
	t.Parallel()
	w := undoing(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "Hello", at(now.Add(-time.Second)), became(v1alpha1.TargetPosted)))
	lead := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/takeback", url.Values{})))
	if !strings.HasSuffix(lead, "/posts/p-1?said=late") || len(w.posts) != 1 {
		t.Errorf("redirected to %s, and there are %d posts", lead, len(w.posts))
	}
	says(t, "too late", textOf(w.get(t, editor, lead)), []string{"It is too late to take this post back"}, nil)
	w.put(textPost("p-2", "Hello", asDraft))
	if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-2/takeback", url.Values{})); answer.Code != http.StatusConflict || w.posts[acme+"/p-2"].Spec.Cancelled {
		t.Errorf("withdrawing a draft returned %d", answer.Code)
	}
	if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-9/takeback", url.Values{})); answer.Code != http.StatusNotFound {
		t.Errorf("withdrawing a missing post returned %d", answer.Code)
	}
}

// TestCountdown verifies when, and to which users, a post's page offers to take it back.
func TestCountdown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		seconds int32
		post    *v1alpha1.Post
		viewer  bool
		counts  bool
		offers  bool
	}{
		"Soon":    {"the post can be withdrawn", 10, textPost("p-1", "Hello", at(now.Add(5*time.Second))), false, true, true},
		"Viewer":  {"a viewer sees that it waits", 10, textPost("p-1", "Hello", at(now.Add(5*time.Second))), true, true, false},
		"Later":   {"the post is scheduled for another day", 10, textPost("p-1", "Hello", at(now.Add(time.Hour))), false, false, false},
		"Off":     {"the team publishes immediately", 0, textPost("p-1", "Hello", at(now.Add(5*time.Second))), false, false, false},
		"Draft":   {"a draft is not published", 10, textPost("p-1", "Hello", asDraft), false, false, false},
		"Due":     {"the post is being published", 10, textPost("p-1", "Hello", at(now)), false, false, false},
		"Finally": {"the post is published", 10, textPost("p-1", "Hello", at(now.Add(time.Second)), became(v1alpha1.TargetPosted)), false, false, false},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		w.teams[0].Spec.Publishing.UndoSeconds = tc.seconds
		w.put(tc.post)
		who := editor
		if tc.viewer {
			who = viewer
		}
		text := textOf(w.get(t, who, "/teams/"+acme+"/posts/p-1"))
		if got := strings.Contains(text, "This post goes out in"); got != tc.counts {
			t.Errorf("%s: the page counts down: %v, want %v: %s", name, got, tc.counts, tc.reason)
		}
		if got := strings.Contains(text, "Take back"); got != tc.offers {
			t.Errorf("%s: the page offers an undo: %v, want %v: %s", name, got, tc.offers, tc.reason)
		}
	}
}
