// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestJustSent verifies that a person who navigates back to a form sees the post that it created, and an empty form.
func TestJustSent(t *testing.T) {
	t.Parallel()
	by := func(author string) func(*v1alpha1.Post) {
		return func(post *v1alpha1.Post) { post.Annotations = map[string]string{v1alpha1.AuthorAnnotation: author} }
	}
	for name, tc := range map[string]struct {
		reason string
		edits  []func(*v1alpha1.Post)
		later  time.Duration
		id     string
		want   string
	}{
		"Now":       {"it is on its way", []func(*v1alpha1.Post){by(editor.Name)}, time.Minute, "p-1", "You published this a moment ago: “Hello”."},
		"Scheduled": {"it goes out later", []func(*v1alpha1.Post){by(editor.Name), at(now.Add(time.Hour))}, time.Minute, "p-1", "You scheduled this a moment ago: “Hello”."},
		"Draft":     {"it goes nowhere", []func(*v1alpha1.Post){by(editor.Name), asDraft}, time.Minute, "p-1", "You saved this a moment ago: “Hello”."},
		"Long ago":  {"the browser keeps its pages for long", []func(*v1alpha1.Post){by(editor.Name)}, 2 * time.Hour, "p-1", "You published this 2 hours ago: “Hello”."},
		"Another's": {"an address cannot make a person the author", []func(*v1alpha1.Post){by(viewer.Name)}, time.Minute, "p-1", ""},
		"Nothing":   {"the form is there all the same", []func(*v1alpha1.Post){by(editor.Name)}, time.Minute, "p-2", ""},
	} {
		clock := clocktesting.NewFakeClock(now)
		w := newWorld(clock)
		w.put(textPost("p-1", "Hello", tc.edits...))
		clock.SetTime(now.Add(tc.later))
		page := w.get(t, editor, "/teams/"+acme+"/posts/new?sent="+tc.id)
		form := withID(t, page, "compose")
		text := textOf(form)
		if got := strings.Contains(text, "You "); got != (tc.want != "") || !strings.Contains(text, tc.want) {
			t.Errorf("%s: the form says %q, want %q: %s", name, text, tc.want, tc.reason)
		}
		if typed := sent(form).Get("caption"); typed != "" {
			t.Errorf("%s: the form is not empty: %q", name, typed)
		}
		if off, _ := attribute(form, "autocomplete"); off != "off" {
			t.Errorf("%s: the browser may fill in the form by itself", name)
		}
	}
}

// TestSendAgain verifies that a post that failed on one account can be sent again there, and nowhere else.
func TestSendAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", became(v1alpha1.TargetFailed, v1alpha1.TargetPosted, v1alpha1.TargetUndecided, v1alpha1.TargetFailed)))
	var offers []string
	for _, link := range elements(w.get(t, editor, "/teams/"+acme+"/posts/p-1"), "a") {
		if label := textOf(link); strings.HasPrefix(label, "Send again") {
			path, _ := attribute(link, "href")
			offers = append(offers, label+" "+path)
		}
	}
	if want := []string{
		"Send again to X /teams/team-acme/posts/new?from=p-1&target=0", "Send again to Facebook /teams/team-acme/posts/new?from=p-1&target=3",
	}; !slices.Equal(offers, want) {
		t.Errorf("the page offers %q, want %q", offers, want)
	}

	page := w.get(t, editor, "/teams/"+acme+"/posts/new?from=p-1&target=0")
	form := withID(t, page, "compose")
	if fields := sent(form); !slices.Equal(fields["target"], []string{"our-x"}) || fields.Get("caption") != "text" || fields.Get("when") != whenNow {
		t.Errorf("the form has %v", fields)
	}
	if text := textOf(form); !strings.Contains(text, "This goes only where “text” was not published.") {
		t.Errorf("the form does not name the first post: %q", text)
	}

	for target, code := range map[string]int{"1": http.StatusConflict, "2": http.StatusConflict, "9": http.StatusBadRequest, "-1": http.StatusBadRequest, "x": http.StatusBadRequest} {
		if answer := w.serve(ask(&editor, "/teams/"+acme+"/posts/new?from=p-1&target="+target, nil)); answer.Code != code {
			t.Errorf("target %s: %d, want %d:\n%s", target, answer.Code, code, answer.Body)
		}
	}
}

// TestDuplicateOfAPart verifies that a duplicate of a partly posted post preselects no account where it is or may be
// posted.
func TestDuplicateOfAPart(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", became(v1alpha1.TargetFailed, v1alpha1.TargetPosted, v1alpha1.TargetUndecided)))
	form := withID(t, w.get(t, editor, "/teams/"+acme+"/posts/new?from=p-1"), "compose")
	if fields := sent(form); !slices.Equal(fields["target"], []string{"our-x"}) {
		t.Errorf("it goes to %v", fields["target"])
	}
	for _, why := range []string{"Already posted there.", "It is not known whether it was posted there."} {
		if text := textOf(form); strings.Count(text, why) != 1 {
			t.Errorf("the form does not say %q once: %q", why, text)
		}
	}
}

// TestOnItsWay verifies that the page of a settled post does not show the message that it is on its way.
func TestOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for name, tc := range map[string]struct {
		reason string
		states []v1alpha1.TargetState
		want   bool
	}{
		"Pending":        {"it is", []v1alpha1.TargetState{v1alpha1.TargetPending}, true},
		"Pending in one": {"a part of it is", []v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetPending}, true},
		"Posted":         {"it has arrived", []v1alpha1.TargetState{v1alpha1.TargetPosted}, false},
		"Partly":         {"nothing more is sent", []v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetFailed}, false},
		"Undecided":      {"a person has to answer", []v1alpha1.TargetState{v1alpha1.TargetUndecided}, false},
	} {
		w.put(textPost("p-1", "text", became(tc.states...)))
		page := w.get(t, editor, "/teams/"+acme+"/posts/p-1?said=created")
		if got := strings.Contains(textOf(elements(page, "main")[0]), "The post is on its way."); got != tc.want {
			t.Errorf("%s: it says so: %v: %s", name, got, tc.reason)
		}
	}
}
