// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
)

// saved is the response to an autosave.
type saved struct {
	ID       string `json:"id"`
	Key      string `json:"key"`
	Version  string `json:"version"`
	SavedAt  string `json:"saved_at"`
	Versions string `json:"versions"`
	Reason   string `json:"reason"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
}

// save sends an autosave as drafts.js does.
func (w *world) save(t *testing.T, who *access.Person, path string, form url.Values) (status int, out saved) {
	t.Helper()
	r := newRequest(who, "/teams/"+acme+"/"+path, form)
	r.Header.Set("Accept", "application/json")
	answer := w.serve(r)
	if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %d, %v:\n%s", path, answer.Code, err, answer.Body)
	}
	return answer.Code, out
}

// with returns a form with some values replaced.
func with(form url.Values, pairs ...string) url.Values {
	changed := maps.Clone(form)
	for i := 0; i < len(pairs); i += 2 {
		changed.Set(pairs[i], pairs[i+1])
	}
	return changed
}

// TestAutosave verifies that a new post has one draft from its first words to its publication.
func TestAutosave(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, when, said string
		holds              func(*v1alpha1.PostSpec) bool
	}{
		"Now":   {"the draft is published", whenNow, "created", func(s *v1alpha1.PostSpec) bool { return !s.Draft && s.ScheduledAt == nil }},
		"Later": {"the draft is scheduled", whenLater, "scheduled", func(s *v1alpha1.PostSpec) bool { return !s.Draft && s.ScheduledAt != nil }},
		"Draft": {"the draft remains", whenDraft, "saved", func(s *v1alpha1.PostSpec) bool { return s.Draft }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			form := w.compose(t, "posts/new", url.Values{"caption": {"Hel"}, "target": {"our-x"}, "when": {tc.when}, "at": {"2026-12-24T18:00"}})
			status, first := w.save(t, &editor, "compose/save", form)
			if status != http.StatusOK || first.ID == "" || first.Version == "" || first.SavedAt != "2026-12-01T09:00:00Z" {
				t.Fatalf("the first save: %d, %+v", status, first)
			}
			if post := w.posts[acme+"/"+first.ID]; !post.Spec.Draft || post.Annotations[v1alpha1.AuthorAnnotation] != editor.Name || post.Labels[v1alpha1.OriginLabel] != v1alpha1.OriginWeb {
				t.Errorf("the draft is %+v", post)
			}
			status, second := w.save(t, &editor, "compose/save", with(form, "version", first.Version, "caption", "Hello"))
			if status != http.StatusOK || second.ID != first.ID || second.Version == first.Version {
				t.Fatalf("the second save: %d, %+v after %+v", status, second, first)
			}
			page := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", with(form, "version", second.Version, "caption", "Hello, world"))))
			if page != "/teams/"+acme+"/posts/"+first.ID+"?said="+tc.said {
				t.Errorf("%s: the user is redirected to %s", tc.reason, page)
			}
			post := w.posts[acme+"/"+first.ID]
			if len(w.posts) != 1 || post.Spec.Targets[0].Caption != "Hello, world" || !tc.holds(&post.Spec) {
				t.Errorf("%s: got %d posts, this one is %+v", tc.reason, len(w.posts), post.Spec)
			}
		})
	}
}

// TestAutosaveUnderWay verifies that a form that is sent while it is being saved, or is sent twice, creates only one
// post.
func TestAutosaveUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	form := w.compose(t, "posts/new", url.Values{"caption": {"Hello"}, "target": {"our-x"}})
	var requests sync.WaitGroup
	for range 4 {
		requests.Go(func() {
			r := newRequest(&editor, "/teams/"+acme+"/compose/save", form)
			w.serve(r)
		})
		requests.Go(func() { w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form)) })
	}
	requests.Wait()
	if len(w.posts) != 1 {
		t.Fatalf("got %d posts", len(w.posts))
	}
	to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form)))
	status, late := w.save(t, &editor, "compose/save", with(form, "caption", "Late"))
	if status != http.StatusConflict || late.Versions != "" || len(w.posts) != 1 {
		t.Errorf("a save after that: %d, %+v, and %d posts", status, late, len(w.posts))
	}
	for _, post := range w.posts {
		if post.Spec.Draft || post.Spec.Targets[0].Caption != "Hello" {
			t.Errorf("the post is %+v", post.Spec)
		}
	}
}

// TestAutosaveRefused verifies that the page's script always gets JSON, with the reason in plain words, and that the form
// is not stored.
func TestAutosaveRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		who    *access.Person
		path   string
		fields url.Values
		status int
		says   string
	}{
		"Empty":     {"an empty form is not a draft", &editor, "compose/save", url.Values{"caption": {" \n"}, "target": {"our-x"}}, 200, "nothing to save"},
		"NoAccount": {"the text belongs to an account", &editor, "compose/save", url.Values{"caption": {"Hello"}}, 200, "account"},
		"TooLong":   {"limits apply to drafts too", &editor, "compose/save", url.Values{"caption": {strings.Repeat("a", 300)}, "target": {"our-x"}}, 200, "X:"},
		"NoPicture": {"an image post needs an image, even as a draft", &editor, "compose/save", url.Values{"category": {"image"}, "caption": {"Hello"}, "target": {"our-x"}}, 200, "image"},
		"Moment":    {"the cover's time is not a number", &editor, "compose/save", url.Values{"category": {"video"}, "video": {"m-1"}, "thumbnail": {"x"}, "target": {"our-x"}}, 200, "seconds"},
		"Viewer":    {"a viewer cannot write", &viewer, "compose/save", url.Values{"caption": {"Hello"}, "target": {"our-x"}}, 403, "You are not allowed to"},
		"SignedOut": {"the session has ended", nil, "compose/save", url.Values{"caption": {"Hello"}, "target": {"our-x"}}, 401, "sign in"},
		"Scheduled": {"a scheduled post changes only on request", &editor, "posts/p-1/save", url.Values{"caption": {"Hello"}, "target": {"our-x"}}, 409, "only possible for a draft"},
		"Gone":      {"the post does not exist", &editor, "posts/p-2/save", url.Values{"caption": {"Hello"}, "target": {"our-x"}}, 404, "post"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", at(now.Add(time.Hour))))
			form := url.Values{"key": {"k"}, "category": {"text"}, "when": {whenNow}}
			maps.Copy(form, tc.fields)
			status, got := w.save(t, tc.who, tc.path, form)
			if status != tc.status || !strings.Contains(got.Reason+got.Error.Message, tc.says) {
				t.Errorf("%s: %d %q, want %d with %q", tc.reason, status, got.Reason+got.Error.Message, tc.status, tc.says)
			}
			if w.written() != 0 {
				t.Errorf("%s: the request stored a draft", tc.reason)
			}
		})
	}
}

// TestAutosaveLimit verifies that a user's saves are limited separately from their other requests.
func TestAutosaveLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", asDraft))
	form := w.compose(t, "posts/p-1/edit", nil)
	for range savesPerMinute {
		if status, got := w.save(t, &editor, "posts/p-1/save", form); status != http.StatusOK {
			t.Fatalf("%d, %+v", status, got)
		}
	}
	if status, _ := w.save(t, &editor, "posts/p-1/save", form); status != http.StatusTooManyRequests {
		t.Errorf("save %d returned %d", savesPerMinute+1, status)
	}
	w.get(t, editor, "/teams/"+acme+"/posts/p-1/edit")
}

// TestAnotherKind verifies that a draft stays the same post when its kind changes, while it is being written and later.
func TestAnotherKind(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	form := w.compose(t, "posts/new", url.Values{"caption": {"Hello"}, "target": {"our-x"}})
	_, saved := w.save(t, &editor, "compose/save", form)
	thread := with(form, "version", saved.Version, "category", "tree", "card-0", "Hello", "card-1", "again", "when", whenDraft)
	status, second := w.save(t, &editor, "compose/save", thread)
	if post := w.posts[acme+"/"+saved.ID]; status != http.StatusOK || second.ID != saved.ID || post.Spec.Category != v1alpha1.CategoryTree || post.Spec.Cancelled {
		t.Fatalf("%d, %+v", status, second)
	}
	edit := w.compose(t, "posts/"+saved.ID+"/edit", url.Values{"category": {"text"}, "caption": {"Hello"}})
	if status, third := w.save(t, &editor, "posts/"+saved.ID+"/save", edit); status != http.StatusOK || w.posts[acme+"/"+saved.ID].Spec.Category != v1alpha1.CategoryText {
		t.Fatalf("%d, %+v", status, third)
	}
	edit = w.compose(t, "posts/"+saved.ID+"/edit", url.Values{"category": {"tree"}, "card-0": {"Hello"}, "card-1": {"again"}, "when": {whenNow}})
	lead := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/"+saved.ID+"/edit", edit)))
	if post := w.posts[acme+"/"+saved.ID]; !strings.Contains(lead, saved.ID) || post.Spec.Draft || post.Spec.Category != v1alpha1.CategoryTree || len(w.posts) != 1 {
		t.Errorf("the user is redirected to %s, and the post is %+v", lead, post.Spec)
	}
}

// TestKindOfScheduledPost verifies that a scheduled post's form offers no choice of kind, and that a forged kind has no
// effect.
func TestKindOfScheduledPost(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "first", asScheduled))
	page := w.get(t, editor, "/teams/"+acme+"/posts/p-1/edit")
	says(t, "a scheduled post", textOf(page), nil, []string{"Kind of post"})
	form := with(formOf(t, page), "category", "tree", "card-0", "Hello", "card-1", "again")
	w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form))
	if got := w.posts[acme+"/p-1"].Spec.Category; got != v1alpha1.CategoryText {
		t.Errorf("the kind of the post is %s", got)
	}
}

// TestConflict verifies that a user who edited an outdated version sees both versions and can choose one, with and
// without the page's script.
func TestConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "first", asDraft))
	mine := w.compose(t, "posts/p-1/edit", url.Values{"caption": {"mine"}})
	theirs := w.compose(t, "posts/p-1/edit", url.Values{"caption": {"theirs"}})
	if status, got := w.save(t, &administrator, "posts/p-1/save", theirs); status != http.StatusOK {
		t.Fatalf("%d, %+v", status, got)
	}
	check := func(versions string) {
		t.Helper()
		section := parsed(t, versions)
		says(t, "both versions", textOf(section), []string{"There are two versions of this post", "by " + linkUser, "mine", "theirs", "Keep mine", "Use the stored one"}, nil)
		for _, link := range elements(section, "a") {
			if path, _ := attribute(link, "href"); strings.Contains(textOf(link), "stored") && path != "/teams/"+acme+"/posts/p-1/edit" {
				t.Errorf("the stored version is at %s", path)
			}
		}
	}
	status, got := w.save(t, &editor, "posts/p-1/save", mine)
	if status != http.StatusConflict || w.posts[acme+"/p-1"].Spec.Targets[0].Caption != "theirs" {
		t.Fatalf("%d, stored %+v", status, w.posts[acme+"/p-1"].Spec)
	}
	check(got.Versions)

	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", with(mine, "when", whenDraft)))
	if answer.Code != http.StatusConflict {
		t.Fatal(answer.Code)
	}
	check(answer.Body.String())
	again := sent(withID(t, parsed(t, answer.Body.String()), "compose"))
	if again.Get("caption") != "mine" {
		t.Errorf("the text is lost: %v", again)
	}
	for _, button := range elements(withID(t, parsed(t, answer.Body.String()), "versions"), "button") {
		name, _ := attribute(button, "name")
		value, _ := attribute(button, "value")
		again.Set(name, value)
	}
	to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", again)))
	if stored := w.posts[acme+"/p-1"].Spec.Targets[0].Caption; stored != "mine" {
		t.Errorf("stored %q", stored)
	}
	if version := bridge.Version(w.posts[acme+"/p-1"]); version == mine.Get("version") {
		t.Errorf("the version is still %s", version)
	}
}

// TestSignInLeadsBack verifies that a user whose session has ended can return to the form that they sent.
func TestSignInLeadsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for path, back := range map[string]string{"posts/new": "posts/new", "posts/p-1/edit": "posts/p-1/edit", "posts/p-1/cancel": ""} {
		page := parsed(t, w.serve(newRequest(nil, "/teams/"+acme+"/"+path, url.Values{"caption": {"Hello"}})).Body.String())
		want := "/signin"
		if back != "" {
			want += "?return_to=" + url.QueryEscape("/teams/"+acme+"/"+back)
		}
		for _, link := range elements(page, "a") {
			if address, _ := attribute(link, "href"); textOf(link) == "Sign in" && address != want {
				t.Errorf("%s: the link leads to %s, want %s", path, address, want)
			}
		}
	}
}

// TestComposerStateIsPreserved verifies which pages autosave, and for which users.
func TestComposerStateIsPreserved(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("draft", "text", asDraft))
	w.put(textPost("later", "text", at(now.Add(time.Hour))))
	creates := newWorld(clocktesting.NewFakeClock(now), without("update posts"))
	for name, tc := range map[string]struct {
		reason     string
		w          *world
		path, want string
	}{
		"New":       {"a new post becomes a draft", w, "posts/new", "compose/save"},
		"Duplicate": {"a copy becomes a draft", w, "posts/new?from=draft", "compose/save"},
		"Draft":     {"a draft is saved", w, "posts/draft/edit", "posts/draft/save"},
		"Scheduled": {"a scheduled post is not saved, because the stored content is published", w, "posts/later/edit", ""},
		"NoUpdate":  {"a user without the permission to change posts could save only once", creates, "posts/new", ""},
	} {
		form := withID(t, tc.w.get(t, editor, "/teams/"+acme+"/"+tc.path), "compose")
		address, _ := attribute(form, "data-save")
		if want := tc.want; want != "" && address != "/teams/"+acme+"/"+want || want == "" && address != "" {
			t.Errorf("%s: %s saves to %q: %s", name, tc.path, address, tc.reason)
		}
		if of, _ := attribute(form, "data-keep"); of != acme+" "+editor.Name {
			t.Errorf("%s: the browser stores it for %q", name, of)
		}
		if off, _ := attribute(form, "autocomplete"); off != "off" {
			t.Errorf("%s: the browser may fill in the form by itself", name)
		}
	}
}
