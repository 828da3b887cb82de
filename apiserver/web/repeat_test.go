// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
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
		"Same":       {"they pressed Back, or have the form open twice", text("hello", nil), text("hello", nil), editor, nil, time.Minute, true},
		"OtherText":  {"another text is another post", text("hello", nil), text("hello you", nil), editor, nil, time.Minute, false},
		"OtherPlace": {"it goes to others as well", text("hello", nil), text("hello", url.Values{"target": {"our-x", "our-threads"}}), editor, nil, time.Minute, false},
		"OtherTime":  {"a post that is out repeats at any time", text("hello", nil), text("hello", url.Values{"when": {"later"}, "scheduled_at": {now.Add(time.Hour).Format(time.RFC3339)}}), editor, nil, time.Minute, true},
		"OtherOne":   {"two people of a team are not asked about each other", text("hello", nil), text("hello", nil), administrator, nil, time.Minute, false},
		"Later":      {"after ten minutes it is meant", text("hello", nil), text("hello", nil), editor, nil, 10*time.Minute + time.Second, false},
		"Draft":      {"a draft publishes nothing", text("hello", nil), text("hello", url.Values{"when": {"draft"}}), editor, nil, time.Minute, false},
		"OfDraft":    {"nor did the draft before", text("hello", url.Values{"when": {"draft"}}), text("hello", nil), editor, nil, time.Minute, false},
		"Cancelled":  {"nor what was cancelled", text("hello", nil), text("hello", nil), editor, became(func(p *v1alpha1.Post) { p.Spec.Cancelled = true }), time.Minute, false},
		"Removed":    {"nor what is gone", text("hello", nil), text("hello", nil), editor, func(w *world) { clear(w.posts) }, time.Minute, false},
		"Failed":     {"nor what failed", text("hello", nil), text("hello", nil), editor, states(v1alpha1.TargetFailed), time.Minute, false},
		"Undecided":  {"what may be out is asked about", text("hello", nil), text("hello", nil), editor, states(v1alpha1.TargetUndecided), time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clocktesting.NewFakeClock(now)
			w := newWorld(clk)
			to(t, w.serve(ask(&editor, "/teams/"+acme+"/posts/new", w.compose(t, "posts/new", tc.first))))
			if tc.between != nil {
				tc.between(w)
			}
			clk.Step(tc.after)
			form := w.compose(t, "posts/new", tc.then)
			before := len(w.posts)
			answer := w.serve(ask(&tc.who, "/teams/"+acme+"/posts/new", form))
			if asks := answer.Code == http.StatusConflict; asks != tc.asks || (len(w.posts) == before) != tc.asks {
				t.Fatalf("%s: answered with %d, and there are %d posts after %d", tc.reason, answer.Code, len(w.posts), before)
			}
			if !tc.asks {
				return
			}
			page := parsed(t, answer.Body.String())
			if said := textOf(page); !strings.Contains(said, "You published this a moment ago") || !strings.Contains(said, "Open that post") || !strings.Contains(said, "Publish it again") {
				t.Errorf("%s: the page says %s", tc.reason, said)
			}
			again := sent(withID(t, page, "repeated"))
			first := to(t, w.serve(ask(&tc.who, "/teams/"+acme+"/posts/new", again)))
			if second := to(t, w.serve(ask(&tc.who, "/teams/"+acme+"/posts/new", again))); second != first || len(w.posts) != before+1 {
				t.Errorf("two clicks on the answer lead to %s and %s, and there are %d posts", first, second, len(w.posts))
			}
		})
	}
}

// TestSameFormTwice verifies that submitting a form twice leads to its one post, without a question.
func TestSameFormTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	form := w.compose(t, "posts/new", url.Values{"caption": {"hello"}, "target": {"our-x"}})
	first := to(t, w.serve(ask(&editor, "/teams/"+acme+"/posts/new", form)))
	if second := to(t, w.serve(ask(&editor, "/teams/"+acme+"/posts/new", form))); first != second || len(w.posts) != 1 {
		t.Errorf("the form leads to %s and then to %s; %d posts", first, second, len(w.posts))
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
		clicks.Go(func() { codes[i] = w.serve(ask(&editor, "/teams/"+acme+"/posts/new", form)).Code })
	}
	clicks.Wait()
	made := 0
	for _, code := range codes {
		if code == http.StatusSeeOther {
			made++
		} else if code != http.StatusConflict {
			t.Errorf("a click is answered with %d", code)
		}
	}
	if made != 1 || len(w.posts) != 1 {
		t.Errorf("%d clicks lead on, and there are %d posts: %v", made, len(w.posts), codes)
	}
}

// TestRepeatedDraft verifies that publishing a draft that repeats a recent post also requires confirmation, and that a
// published draft counts as recent from its publication, whatever its age.
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
		"DraftThenNew":    {"the draft is out", false, false, time.Minute, true},
		"DraftsOfProgram": {"a program left one draft twice", true, true, time.Minute, true},
		"Later":           {"after ten minutes it is meant", false, true, 10*time.Minute + time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clocktesting.NewFakeClock(now)
			w := newWorld(clk)
			draft := maps.Clone(hello)
			draft.Set("when", whenDraft)
			var pages []string
			for range 2 {
				page := to(t, w.serve(ask(&editor, "/teams/"+acme+"/posts/new", w.compose(t, "posts/new", draft))))
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
				return w.serve(ask(&editor, "/teams/"+acme+"/"+page, form))
			}
			to(t, publish(pages[0]))
			clk.Step(tc.after)
			second := "posts/new"
			if tc.draft {
				second = pages[1]
			}
			answer := publish(second)
			if asks := answer.Code == http.StatusConflict; asks != tc.asks {
				t.Fatalf("%s: answered with %d", tc.reason, answer.Code)
			}
			if !tc.asks {
				return
			}
			if tc.draft && isOut(w, pages[1]) {
				t.Errorf("%s: it was published before the answer", tc.reason)
			}
			to(t, w.serve(ask(&editor, "/teams/"+acme+"/"+second, sent(withID(t, parsed(t, answer.Body.String()), "repeated")))))
			if tc.draft && !isOut(w, pages[1]) {
				t.Errorf("%s: it was not published after the answer", tc.reason)
			}
		})
	}
}

// isOut reports whether the post of an edit page is published.
func isOut(w *world, page string) bool {
	for _, post := range w.posts {
		if page == "posts/"+post.Name+"/edit" {
			return !post.Spec.Draft
		}
	}
	return false
}

// TestRepeatedTwice verifies that a cancelled repetition does not hide the post before it.
func TestRepeatedTwice(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(now)
	w := newWorld(clk)
	form := func() url.Values {
		return w.compose(t, "posts/new", url.Values{"caption": {"hello"}, "target": {"our-x"}})
	}
	first := to(t, w.serve(ask(&editor, "/teams/"+acme+"/posts/new", form())))
	clk.Step(time.Minute)
	question := w.serve(ask(&editor, "/teams/"+acme+"/posts/new", form()))
	second := to(t, w.serve(ask(&editor, "/teams/"+acme+"/posts/new", sent(withID(t, parsed(t, question.Body.String()), "repeated")))))
	for key, post := range w.posts {
		if strings.Contains(second, post.Name) {
			post.Spec.Cancelled = true
			w.posts[key] = post
		}
	}
	clk.Step(time.Minute)
	answer := w.serve(ask(&editor, "/teams/"+acme+"/posts/new", form()))
	first, _, _ = strings.Cut(first, "?")
	if answer.Code != http.StatusConflict || !strings.Contains(answer.Body.String(), first) {
		t.Errorf("a third post is answered with %d, and does not name the first, %s", answer.Code, first)
	}
}
