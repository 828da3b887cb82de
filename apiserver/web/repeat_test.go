// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
)

// TestRepeated verifies that publishing a recent post again requires confirmation.
func TestRepeated(t *testing.T) {
	t.Parallel()
	text := func(caption string, more url.Values) url.Values {
		fields := url.Values{"caption": {caption}, "target": {"our-x"}}
		maps.Copy(fields, more)
		return fields
	}
	became := func(edit func(*v1alpha1.Post)) func(*world) {
		return func(w *world) {
			for key, post := range w.posts {
				edit(post)
				w.posts[key] = post
			}
		}
	}
	states := func(states ...v1alpha1.TargetState) func(*world) {
		return became(func(p *v1alpha1.Post) {
			p.Status.Targets = nil
			for i, state := range states {
				p.Status.Targets = append(p.Status.Targets, v1alpha1.TargetStatus{Index: int32(i), State: state, Phase: v1alpha1.PhaseFailed})
			}
			p.Status.Phase = v1alpha1.PhaseFailed
		})
	}
	for name, tc := range map[string]struct {
		reason      string
		first, then url.Values
		who         access.Person
		between     func(*world)
		after       time.Duration
		asks        bool
	}{
		"Same":       {"the user pressed Back, or has opened the form twice", text("hello", nil), text("hello", nil), editor, nil, time.Minute, true},
		"OtherText":  {"another text makes another post", text("hello", nil), text("hello you", nil), editor, nil, time.Minute, false},
		"OtherPlace": {"the copy has more accounts", text("hello", nil), text("hello", url.Values{"target": {"our-x", "our-threads"}}), editor, nil, time.Minute, false},
		"OtherTime":  {"a published post is a repeat at any time", text("hello", nil), text("hello", url.Values{"when": {"later"}, "scheduled_at": {now.Add(time.Hour).Format(time.RFC3339)}}), editor, nil, time.Minute, true},
		"OtherOne":   {"another user's post is not a repeat", text("hello", nil), text("hello", nil), administrator, nil, time.Minute, false},
		"Later":      {"after ten minutes the repeat is intended", text("hello", nil), text("hello", nil), editor, nil, 10*time.Minute + time.Second, false},
		"Draft":      {"a draft is not published", text("hello", nil), text("hello", url.Values{"when": {"draft"}}), editor, nil, time.Minute, false},
		"OfDraft":    {"the earlier draft was not published", text("hello", url.Values{"when": {"draft"}}), text("hello", nil), editor, nil, time.Minute, false},
		"Cancelled":  {"a cancelled post was not published", text("hello", nil), text("hello", nil), editor, became(func(p *v1alpha1.Post) { p.Spec.Cancelled = true }), time.Minute, false},
		"Removed":    {"a deleted post is not a repeat", text("hello", nil), text("hello", nil), editor, func(w *world) { clear(w.posts) }, time.Minute, false},
		"Failed":     {"a failed post was not published", text("hello", nil), text("hello", nil), editor, states(v1alpha1.TargetFailed), time.Minute, false},
		"Undecided":  {"an undecided post may be published", text("hello", nil), text("hello", nil), editor, states(v1alpha1.TargetUndecided), time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clocktesting.NewFakeClock(now)
			w := newWorld(clk)
			to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", w.compose(t, "posts/new", tc.first))))
			if tc.between != nil {
				tc.between(w)
			}
			clk.Step(tc.after)
			form := w.compose(t, "posts/new", tc.then)
			before := len(w.posts)
			answer := w.serve(newRequest(&tc.who, "/teams/"+acme+"/posts/new", form))
			if asks := answer.Code == http.StatusConflict; asks != tc.asks || (len(w.posts) == before) != tc.asks {
				t.Fatalf("%s: got %d, and %d posts after %d", tc.reason, answer.Code, len(w.posts), before)
			}
			if !tc.asks {
				return
			}
			page := parsed(t, answer.Body.String())
			if said := textOf(page); !strings.Contains(said, "You published this a moment ago") || !strings.Contains(said, "Open that post") || !strings.Contains(said, "Publish it again") {
				t.Errorf("%s: the page contains %s", tc.reason, said)
			}
			again := sent(withID(t, page, "repeated"))
			first := to(t, w.serve(newRequest(&tc.who, "/teams/"+acme+"/posts/new", again)))
			if second := to(t, w.serve(newRequest(&tc.who, "/teams/"+acme+"/posts/new", again))); second != first || len(w.posts) != before+1 {
				t.Errorf("two clicks redirect to %s and %s, and there are %d posts", first, second, len(w.posts))
			}
		})
	}
}

// TestTwoTabs verifies that submitting concurrently in many tabs creates only one post.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	var forms []url.Values
	for range 8 {
		forms = append(forms, w.compose(t, "posts/new", url.Values{"caption": {"hello"}, "target": {"our-x"}}))
	}
	codes := make([]int, len(forms))
	var clicks sync.WaitGroup
	for i, form := range forms {
		clicks.Go(func() { codes[i] = w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form)).Code })
	}
	clicks.Wait()
	made := 0
	for _, code := range codes {
		if code == http.StatusSeeOther {
			made++
		} else if code != http.StatusConflict {
			t.Errorf("a click returned %d", code)
		}
	}
	if made != 1 || len(w.posts) != 1 {
		t.Errorf("%d clicks redirect, and there are %d posts: %v", made, len(w.posts), codes)
	}
}

// TestRepeatedDraft verifies that publishing a draft that repeats a recent post also requires confirmation, and that a
// published draft counts as recent from its publication, regardless of its age.
func TestRepeatedDraft(t *testing.T) {
	t.Parallel()
	hello := url.Values{"caption": {"hello"}, "target": {"our-x"}}
	for name, tc := range map[string]struct {
		reason string
		// byProgram creates the drafts as a program would.
		byProgram bool
		// draft makes the second post a draft; otherwise it is a new post.
		draft bool
		after time.Duration
		asks  bool
	}{
		"TwoDrafts":       {"two drafts of one text", false, true, time.Minute, true},
		"DraftThenNew":    {"the draft is published", false, false, time.Minute, true},
		"DraftsOfProgram": {"an API client created two equal drafts", true, true, time.Minute, true},
		"Later":           {"after ten minutes the repeat is intended", false, true, 10*time.Minute + time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clocktesting.NewFakeClock(now)
			w := newWorld(clk)
			draft := maps.Clone(hello)
			draft.Set("when", whenDraft)
			var pages []string
			for range 2 {
				page := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", w.compose(t, "posts/new", draft))))
				page, _, _ = strings.Cut(page, "?")
				_, id, _ := strings.Cut(page, "/posts/")
				pages = append(pages, "posts/"+id+"/edit")
			}
			if tc.byProgram {
				for key, post := range w.posts {
					post.Labels[v1alpha1.OriginLabel] = v1alpha1.OriginAPI
					w.posts[key] = post
				}
			}
			clk.Step(11 * time.Minute)
			publish := func(page string) *httptest.ResponseRecorder {
				form := w.compose(t, page, hello)
				form.Set("when", whenNow)
				return w.serve(newRequest(&editor, "/teams/"+acme+"/"+page, form))
			}
			to(t, publish(pages[0]))
			clk.Step(tc.after)
			second := "posts/new"
			if tc.draft {
				second = pages[1]
			}
			answer := publish(second)
			if asks := answer.Code == http.StatusConflict; asks != tc.asks {
				t.Fatalf("%s: got %d", tc.reason, answer.Code)
			}
			if !tc.asks {
				return
			}
			if tc.draft && isOut(w, pages[1]) {
				t.Errorf("%s: it was published before the user's confirmation", tc.reason)
			}
			to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/"+second, sent(withID(t, parsed(t, answer.Body.String()), "repeated")))))
			if tc.draft && !isOut(w, pages[1]) {
				t.Errorf("%s: it was not published after the user's confirmation", tc.reason)
			}
		})
	}
}

// isOut reports whether an edit page's post has been published.
func isOut(w *world, page string) bool {
	for _, post := range w.posts {
		if page == "posts/"+post.Name+"/edit" {
			return !post.Spec.Draft
		}
	}
	return false
}

// TestRepeatedTwice verifies that a canceled repetition does not hide the earlier post.
func TestRepeatedTwice(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(now)
	w := newWorld(clk)
	form := func() url.Values {
		return w.compose(t, "posts/new", url.Values{"caption": {"hello"}, "target": {"our-x"}})
	}
	first := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form())))
	clk.Step(time.Minute)
	question := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form()))
	second := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", sent(withID(t, parsed(t, question.Body.String()), "repeated")))))
	for key, post := range w.posts {
		if strings.Contains(second, post.Name) {
			post.Spec.Cancelled = true
			w.posts[key] = post
		}
	}
	clk.Step(time.Minute)
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form()))
	first, _, _ = strings.Cut(first, "?")
	if answer.Code != http.StatusConflict || !strings.Contains(answer.Body.String(), first) {
		t.Errorf("a third post returned %d without the first one's name, %s", answer.Code, first)
	}
}

// TestJustSent verifies that a user who navigates back to a form sees the post that it created, and an empty form.
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
		"Now":       {"the post is being published", []func(*v1alpha1.Post){by(editor.Name)}, time.Minute, "p-1", "You published this a moment ago: “Hello”."},
		"Scheduled": {"the post is published later", []func(*v1alpha1.Post){by(editor.Name), at(now.Add(time.Hour))}, time.Minute, "p-1", "You scheduled this a moment ago: “Hello”."},
		"Draft":     {"a draft is not published", []func(*v1alpha1.Post){by(editor.Name), asDraft}, time.Minute, "p-1", "You saved this a moment ago: “Hello”."},
		"Long ago":  {"browsers keep pages for a long time", []func(*v1alpha1.Post){by(editor.Name)}, 2 * time.Hour, "p-1", "You published this 2 hours ago: “Hello”."},
		"Another's": {"a URL cannot change the author", []func(*v1alpha1.Post){by(viewer.Name)}, time.Minute, "p-1", ""},
		"Nothing":   {"the form is shown anyway", []func(*v1alpha1.Post){by(editor.Name)}, time.Minute, "p-2", ""},
	} {
		clock := clocktesting.NewFakeClock(now)
		w := newWorld(clock)
		w.put(textPost("p-1", "Hello", tc.edits...))
		clock.SetTime(now.Add(tc.later))
		page := w.get(t, editor, "/teams/"+acme+"/posts/new?sent="+tc.id)
		form := withID(t, page, "compose")
		text := textOf(form)
		if got := strings.Contains(text, "You "); got != (tc.want != "") || !strings.Contains(text, tc.want) {
			t.Errorf("%s: the form contains %q, want %q: %s", name, text, tc.want, tc.reason)
		}
		if typed := sent(form).Get("caption"); typed != "" {
			t.Errorf("%s: the form is not empty: %q", name, typed)
		}
		if off, _ := attribute(form, "autocomplete"); off != "off" {
			t.Errorf("%s: the browser may fill in the form by itself", name)
		}
	}
}

// TestPublishAgain verifies that a post that failed on one account can be sent again there, and nowhere else.
func TestPublishAgain(t *testing.T) {
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

	w.put(textPost("p-2", "text", became(v1alpha1.TargetFailed), func(p *v1alpha1.Post) { p.Status.Targets[0].RetriedBy = "p-1" }))
	if text := textOf(w.get(t, editor, "/teams/"+acme+"/posts/p-2")); strings.Contains(text, "Send again") || !strings.Contains(text, "Open the post that sends it again") {
		t.Errorf("a retried target can be selected again: %q", text)
	}

	page := w.get(t, editor, "/teams/"+acme+"/posts/new?from=p-1&target=0")
	form := withID(t, page, "compose")
	if fields := sent(form); !slices.Equal(fields["target"], []string{"our-x"}) || fields.Get("caption") != "text" || fields.Get("when") != whenNow || fields.Get("retry_of") != "p-1" {
		t.Errorf("the form has %v", fields)
	}
	if text := textOf(form); !strings.Contains(text, "This goes only where “text” was not published.") {
		t.Errorf("the form does not name the first post: %q", text)
	}

	for target, code := range map[string]int{"1": http.StatusConflict, "2": http.StatusConflict, "9": http.StatusBadRequest, "-1": http.StatusBadRequest, "x": http.StatusBadRequest} {
		if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new?from=p-1&target="+target, nil)); answer.Code != code {
			t.Errorf("target %s: %d, want %d:\n%s", target, answer.Code, code, answer.Body)
		}
	}
}

// TestDuplicateOfAPart verifies that a duplicate of a partly posted post preselects no account where it has been or may
// have been posted.
func TestDuplicateOfAPart(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", became(v1alpha1.TargetFailed, v1alpha1.TargetPosted, v1alpha1.TargetUndecided)))
	form := withID(t, w.get(t, editor, "/teams/"+acme+"/posts/new?from=p-1"), "compose")
	if fields := sent(form); !slices.Equal(fields["target"], []string{"our-x"}) {
		t.Errorf("the targets are %v", fields["target"])
	}
	for _, why := range []string{"Already posted there.", "It is not known whether it was posted there."} {
		if text := textOf(form); strings.Count(text, why) != 1 {
			t.Errorf("the form does not contain %q once: %q", why, text)
		}
	}
}

// TestOnItsWay verifies that the page of a settled post does not show the message that it is being published.
func TestOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for name, tc := range map[string]struct {
		reason string
		states []v1alpha1.TargetState
		want   bool
	}{
		"Pending":                 {"the target waits", []v1alpha1.TargetState{v1alpha1.TargetPending}, true},
		"pending for one account": {"the post is being published to one account", []v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetPending}, true},
		"Posted":                  {"the post is published", []v1alpha1.TargetState{v1alpha1.TargetPosted}, false},
		"Partly":                  {"no further target is published", []v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetFailed}, false},
		"Undecided":               {"a user has to decide", []v1alpha1.TargetState{v1alpha1.TargetUndecided}, false},
	} {
		w.put(textPost("p-1", "text", became(tc.states...)))
		page := w.get(t, editor, "/teams/"+acme+"/posts/p-1?said=created")
		if got := strings.Contains(textOf(elements(page, "main")[0]), "The post is on its way."); got != tc.want {
			t.Errorf("%s: shown: %v: %s", name, got, tc.reason)
		}
	}
}
