// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
)

// TestRoles verifies what each role in docs/people.md can access: pages and forms beyond it are rejected.
func TestRoles(t *testing.T) {
	t.Parallel()
	const none, see, write, manage = 0, 1, 2, 3
	roles := []struct {
		who   access.Person
		level int
	}{{viewer, see}, {editor, write}, {administrator, manage}, {stranger, none}}
	for path, least := range map[string]int{
		"GET ": see, "GET posts": see, "GET calendar": see, "GET posts/p-1": see, "GET connections": see, "GET team": see, "POST compose/check": write, "POST posts/p-1/check": write,
		"POST compose/save": write, "POST posts/p-1/save": write,
		"GET posts/new": write, "GET posts/p-1/edit": write, "POST posts/new": write, "POST posts/p-1/edit": write, "POST posts/p-1/cancel": write,
		"POST posts/p-1/reschedule": write, "GET bulk?act=cancel&post=p-1": write, "POST bulk": write, "POST posts/p-1/settle": write, "POST posts/p-1/takeback": write, "POST media": write, "POST media/m-1/parts": write, "POST media/m-1/finish": write, "POST media/m-1/abort": write, "GET files": write, "GET files/list": write, "GET keys": write,
		"POST connections/connect": manage, "POST connections/our-x/disconnect": manage, "POST keys": manage, "POST keys/k-1/revoke": manage,
	} {
		for _, role := range roles {
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", asDraft))
			method, page, _ := strings.Cut(path, " ")
			r := newRequest(&role.who, "/teams/"+acme+"/"+page, nil)
			if method == http.MethodPost {
				r = newRequest(&role.who, "/teams/"+acme+"/"+page, url.Values{"category": {"text"}})
			}
			code, before := w.serve(r).Code, 0
			switch {
			case role.level == none && code != http.StatusNotFound:
				t.Errorf("%s: a user without access got %d, want 404", path, code)
			case role.level != none && role.level < least && code != http.StatusForbidden:
				t.Errorf("%s: %s got %d, want 403", path, role.who.Name, code)
			case role.level >= least && (code == http.StatusForbidden || code >= http.StatusInternalServerError):
				t.Errorf("%s: %s got %d", path, role.who.Name, code)
			}
			if role.level < least && w.written() != before {
				t.Errorf("%s: %s wrote", path, role.who.Name)
			}
		}
	}
}

// TestSignedOut verifies that requests without a session change nothing. A page redirects to the sign-in page, which
// redirects back; a form gets a page, so that its content is not lost; htmx requests get a notice.
func TestSignedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", asDraft))
	for _, path := range pages {
		if answer := w.serve(newRequest(nil, "/teams/"+acme+"/"+path, nil)); answer.Code != http.StatusSeeOther || !strings.HasPrefix(answer.Header().Get("Location"), "/signin?return_to=") {
			t.Errorf("GET %s: %d to %q", path, answer.Code, answer.Header().Get("Location"))
		}
	}
	for _, path := range changes {
		r := newRequest(nil, "/teams/"+acme+"/"+path, url.Values{"category": {"text"}})
		if answer := w.serve(r); answer.Code != http.StatusUnauthorized || !strings.Contains(answer.Body.String(), "Nothing was done") {
			t.Errorf("POST %s: %d", path, answer.Code)
		}
		r = newRequest(nil, "/teams/"+acme+"/"+path, url.Values{"category": {"text"}})
		r.Header.Set("HX-Request", "true")
		if answer := w.serve(r); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "You are signed out") || answer.Header().Get("HX-Redirect") != "" {
			t.Errorf("POST %s by htmx: %d", path, answer.Code)
		}
	}
	if w.written() != 0 {
		t.Error("the request changed an object")
	}
}

// TestDocuments verifies every page's structure: unique ids, labels with a target, one heading and one main element,
// and forms that only lead to this site.
func TestDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", asDraft))
	for _, path := range pages {
		answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/"+path, nil))
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf("%s: %d, %s", path, answer.Code, answer.Header().Get("Content-Type"))
		}
		page := parsed(t, answer.Body.String())
		ids := map[string]bool{}
		for n := range page.Descendants() {
			if id, ok := attribute(n, "id"); ok {
				if ids[id] {
					t.Errorf("%s: the id %q occurs twice", path, id)
				}
				ids[id] = true
			}
		}
		for _, label := range elements(page, "label") {
			if of, ok := attribute(label, "for"); ok && !ids[of] {
				t.Errorf("%s: a label is for the missing field #%s", path, of)
			}
		}
		for name, want := range map[string]int{"h1": 1, "main": 1, "title": 1, "html": 1} {
			if got := len(elements(page, name)); got != want {
				t.Errorf("%s: has %d <%s>, want %d", path, got, name, want)
			}
		}
		for _, form := range elements(page, "form") {
			if method, _ := attribute(form, "method"); method == "dialog" {
				continue // it closes its dialog
			}
			action, _ := attribute(form, "action")
			if !strings.HasPrefix(action, "/") {
				t.Errorf("%s: a form posts to %q", path, action)
			}
		}
	}
}

// compose returns the filled-in form for a new post, as a browser sends it.
func (w *world) compose(t *testing.T, path string, fields url.Values) url.Values {
	t.Helper()
	form := sent(withID(t, w.get(t, editor, "/teams/"+acme+"/"+path), "compose"))
	maps.Copy(form, fields)
	return form
}

// to returns where a redirect leads, without the host.
func to(t *testing.T, answer *httptest.ResponseRecorder) string {
	t.Helper()
	if answer.Code != http.StatusSeeOther {
		t.Fatalf("got %d, want 303:\n%s", answer.Code, answer.Body)
	}
	return answer.Header().Get("Location")
}

func TestCompose(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		fields url.Values
		says   string
		holds  func(*v1alpha1.PostSpec) bool
	}{
		"Now":   {"the post is published immediately", url.Values{"when": {whenNow}}, "created", func(s *v1alpha1.PostSpec) bool { return !s.Draft && s.ScheduledAt == nil }},
		"Draft": {"the draft stays", url.Values{"when": {whenDraft}}, "saved", func(s *v1alpha1.PostSpec) bool { return s.Draft }},
		"Scheduled": {"the post waits", url.Values{"when": {whenLater}, "at": {"2026-12-24T18:00"}}, "scheduled", func(s *v1alpha1.PostSpec) bool {
			return s.ScheduledAt.Equal(v1alpha1.NewTimePtr(time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			tc.fields["target"], tc.fields["caption"] = []string{"our-threads"}, []string{"Hello"}
			form := w.compose(t, "posts/new", tc.fields)
			first := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form)))
			if !strings.HasSuffix(first, "?said="+tc.says) {
				t.Errorf("%s: the user is redirected to %s", tc.reason, first)
			}
			if again := to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form))); again != first || len(w.posts) != 1 {
				t.Errorf("a form that is sent twice creates %d posts: %s, %s", len(w.posts), first, again)
			}
			for _, post := range w.posts {
				if !tc.holds(&post.Spec) || post.Spec.Targets[0].Caption != "Hello" || post.Annotations[v1alpha1.AuthorAnnotation] != editor.Name {
					t.Errorf("%s: %+v by %q", tc.reason, post.Spec, post.Annotations[v1alpha1.AuthorAnnotation])
				}
			}
			// A new form creates a new post, even with the same text, if the user confirms it.
			other := w.compose(t, "posts/new", tc.fields)
			other.Set(fieldRepeat, "yes")
			to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", other)))
			if len(w.posts) != 2 {
				t.Errorf("two forms create %d posts", len(w.posts))
			}
		})
	}
}

// TestComposeRefused verifies that a rejected form keeps everything that was entered.
func TestComposeRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	long := strings.Repeat("long ", 200)
	for name, fields := range map[string]url.Values{
		"TooLong": {"target": {"our-threads"}, "caption": {long}}, "NoTime": {"target": {"our-threads"}, "caption": {long}, "when": {whenLater}},
		"Nowhere": {"caption": {long}}, "Stranger": {"target": {"not-ours"}, "caption": {long}},
	} {
		answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", w.compose(t, "posts/new", fields)))
		page := parsed(t, answer.Body.String())
		if answer.Code/100 != 4 {
			t.Errorf("%s: got %d", name, answer.Code)
		}
		if got := sent(withID(t, page, "compose")).Get("caption"); got != long {
			t.Errorf("%s: the text is lost: %q", name, got)
		}
		if why := textOf(withID(t, page, "problems")); len(why) < 30 {
			t.Errorf("%s: the error has no reason: %q", name, why)
		}
	}
	if len(w.posts) != 0 {
		t.Error("a post was created")
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	form := w.compose(t, "posts/new", url.Values{"category": {"tree"}, "card-0": {"one"}, "card-1": {"two"}, "do": {"add"}})
	for want := 3; want <= 4; want++ {
		answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form))
		form = sent(withID(t, parsed(t, answer.Body.String()), "compose"))
		if _, ok := form["card-"+string(rune('0'+want-1))]; !ok || form.Get("card-1") != "two" {
			t.Fatalf("another part: %v", form)
		}
		form.Set("do", "add")
	}
	form.Set("do", "drop")
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form))
	if form = sent(withID(t, parsed(t, answer.Body.String()), "compose")); form.Get("cards") != "3" {
		t.Errorf("a removed part: %v", form.Get("cards"))
	}
	if len(w.posts) != 0 {
		t.Error("a button for parts created a post")
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	toThreads := func(post *v1alpha1.Post) { post.Spec.Targets[0].ConnectionRef.Name = "our-threads" }
	w.put(textPost("p-1", "first", asDraft, toThreads))
	stale := w.compose(t, "posts/p-1/edit", url.Values{"caption": {"lost"}})
	form := w.compose(t, "posts/p-1/edit", url.Values{"caption": {"second"}})
	to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form)))
	if got := w.posts[acme+"/p-1"].Spec; got.Targets[0].Caption != "second" || !got.Draft {
		t.Fatalf("the draft is %+v", got)
	}
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", stale))
	if answer.Code != http.StatusConflict || w.posts[acme+"/p-1"].Spec.Targets[0].Caption != "second" {
		t.Errorf("an outdated form: %d, and the text is %q", answer.Code, w.posts[acme+"/p-1"].Spec.Targets[0].Caption)
	}
	if got := sent(withID(t, parsed(t, answer.Body.String()), "compose")).Get("caption"); got != "lost" {
		t.Errorf("the form lost the entered text: %q", got)
	}
	form = w.compose(t, "posts/p-1/edit", url.Values{"when": {whenLater}, "at": {"2026-12-24T18:00"}})
	to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form)))
	if got := w.posts[acme+"/p-1"].Spec; got.Draft || got.ScheduledAt == nil || got.Targets[0].Caption != "second" {
		t.Errorf("a draft that is scheduled is %+v", got)
	}
	form = w.compose(t, "posts/p-1/edit", url.Values{"when": {whenNow}, "caption": {"third"}})
	to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form)))
	if got := w.posts[acme+"/p-1"].Spec; got.Draft || got.ScheduledAt != nil && got.ScheduledAt.After(now) || got.Targets[0].Caption != "third" {
		t.Errorf("an immediately published post is %+v", got)
	}
}

// TestEditKeepsFieldsOutsideTheForm verifies that an edit keeps the fields that the form does not have.
func TestEditKeepsFieldsOutsideTheForm(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "first", asDraft, func(post *v1alpha1.Post) { post.Spec.OnUnknownOutcome = v1alpha1.OnUnknownRetry }))
	to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", w.compose(t, "posts/p-1/edit", url.Values{"caption": {"b"}}))))
	if got := w.posts[acme+"/p-1"].Spec; got.OnUnknownOutcome != v1alpha1.OnUnknownRetry || got.Targets[0].Caption != "b" {
		t.Errorf("got %+v", got)
	}
}

func TestMove(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	when := now.AddDate(0, 0, 7).Add(1234 * time.Millisecond)
	w.put(textPost("p-1", "text", at(when)))
	form := func(page, path string) url.Values {
		for _, form := range elements(w.get(t, editor, page), "form") {
			if action, _ := attribute(form, "action"); strings.HasSuffix(action, path) {
				return sent(form)
			}
		}
		t.Fatalf("%s has no form for %s", page, path)
		return nil
	}
	const here = "/teams/" + acme + "/posts/p-1"
	first := form(here, "posts/p-1/reschedule")
	first.Set("scheduled_at", "2026-12-20T10:00:00Z")
	first.Set("at", "2026-12-20T10:00")
	const moved = "?is=2026-12-20T10%3A00%3A00Z&moved=p-1&said=moved&was=2026-12-08T09%3A00%3A01.234Z"
	if got := to(t, w.serve(newRequest(&editor, here+"/reschedule", first))); got != here+moved {
		t.Errorf("after a move, the user is redirected to %s", got)
	}
	undo := form(here+moved, "posts/p-1/reschedule")
	undo.Set("back", "/teams/"+acme+"/calendar?said=moved&date=2026-12-01&status=scheduled")
	if got := to(t, w.serve(newRequest(&editor, here+"/reschedule", undo))); !strings.HasPrefix(got, "/teams/"+acme+"/calendar?date=2026-12-01&is=2026-12-08") ||
		!w.posts[acme+"/p-1"].Spec.ScheduledAt.Equal(v1alpha1.NewTimePtr(when)) {
		t.Errorf("after an undo, the post is at %v, and the user is redirected to %s", w.posts[acme+"/p-1"].Spec.ScheduledAt, got)
	}
	to(t, w.serve(newRequest(&editor, here+"/reschedule", first)))
	if got := w.posts[acme+"/p-1"].Spec.ScheduledAt; got.Day() != 20 {
		t.Fatalf("the post is at %s", got)
	}
	stale := maps.Clone(first)
	stale.Set("scheduled_at", "2026-12-22T10:00:00Z")
	stale.Set("at", "2026-12-22T10:00")
	if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/reschedule", stale)); answer.Code != http.StatusConflict || w.posts[acme+"/p-1"].Spec.ScheduledAt.Day() != 20 {
		t.Errorf("an outdated calendar moves the post: %d", answer.Code)
	}
	for name, value := range map[string]string{"from": "yesterday", "scheduled_at": ""} {
		bad := maps.Clone(first)
		bad[name], bad["at"] = []string{value}, nil
		if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/reschedule", bad)); answer.Code != http.StatusBadRequest {
			t.Errorf("without %s: %d", name, answer.Code)
		}
	}
}

func TestCancelAndDuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "again", at(now.Add(time.Hour))))
	like := sent(withID(t, w.get(t, editor, "/teams/"+acme+"/posts/new?from=p-1"), "compose"))
	if like.Get("caption") != "again" || like.Get("when") != whenNow || like.Get("version") != "" || !slices.Equal(like["target"], []string{"our-x"}) {
		t.Errorf("a duplicated post is %v", like)
	}
	to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/cancel", url.Values{})))
	if !w.posts[acme+"/p-1"].Spec.Cancelled {
		t.Error("the post is not cancelled")
	}
	if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-2/cancel", url.Values{})); answer.Code != http.StatusNotFound {
		t.Errorf("cancelling an unknown post returned %d", answer.Code)
	}
}

// TestEditOfFinished verifies that a form is not offered if its submission would be rejected.
func TestEditOfFinished(t *testing.T) {
	t.Parallel()
	target := func(phase v1alpha1.PostPhase, state v1alpha1.TargetState) func(*v1alpha1.Post) {
		return func(post *v1alpha1.Post) {
			post.Status.Targets = []v1alpha1.TargetStatus{{Platform: v1alpha1.PlatformX, Phase: phase, State: state, PostedAt: v1alpha1.NewTimePtr(now)}}
		}
	}
	for name, tc := range map[string]struct {
		edit     func(*v1alpha1.Post)
		editable bool
	}{
		"Draft": {asDraft, true}, "Scheduled": {at(now.Add(time.Hour)), true}, "OnItsWay": {func(*v1alpha1.Post) {}, false},
		"Cancelled": {func(post *v1alpha1.Post) { at(now.Add(time.Hour))(post); post.Spec.Cancelled = true }, false},
		"Posted":    {target(v1alpha1.PhasePosted, v1alpha1.TargetPosted), false}, "Failed": {target(v1alpha1.PhaseFailed, v1alpha1.TargetFailed), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", tc.edit))
			answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", nil))
			if tc.editable {
				if answer.Code != http.StatusOK {
					t.Errorf("the post can be edited, but its form returned %d", answer.Code)
				}
				return
			}
			back := to(t, answer)
			if page := w.get(t, editor, back); !strings.HasPrefix(back, "/teams/"+acme+"/posts/p-1?") || !strings.Contains(textOf(page), "can no longer be edited") {
				t.Errorf("the page redirects to %s, without a reason", back)
			}
		})
	}
}

// TestAddressOfTeam verifies that a team's address without the trailing slash redirects to its page, and does not
// reveal whether the team exists.
func TestAddressOfTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for path, want := range map[string]string{
		"/teams/" + acme: "/teams/" + acme + "/", "/teams/nobody": "/teams/nobody/", "/teams/%2F%2Fevil.example": "/teams/%2F%2Fevil.example/",
	} {
		for _, who := range []*access.Person{nil, &stranger, &viewer} {
			if got := to(t, w.serve(newRequest(who, path, nil))); got != want {
				t.Errorf("%s leads to %s, want %s", path, got, want)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/keys", url.Values{"description": {"newsletter"}, "ends": {"30"}}))
	token := textOf(withID(t, parsed(t, answer.Body.String()), "token"))
	if answer.Code != http.StatusCreated || len(token) < 20 || len(w.keys) != 1 {
		t.Fatalf("%d, token %q", answer.Code, token)
	}
	if again := w.serve(newRequest(&administrator, "/teams/"+acme+"/keys", nil)).Body.String(); strings.Contains(again, token) || !strings.Contains(again, "newsletter") {
		t.Error("the token is shown again, or the key is not listed")
	}
	var id string
	for _, key := range w.keys {
		id = key.Name
		if key.Spec.ExpiresAt == nil || !key.Spec.ExpiresAt.Time.Equal(now.AddDate(0, 0, 30)) || strings.Contains(key.Spec.Tokens[0].SHA256, token) {
			t.Errorf("the key is %+v", key.Spec)
		}
	}
	for _, act := range []string{"roll", "revoke"} {
		if answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/keys/"+id+"/"+act, url.Values{})); answer.Code >= http.StatusBadRequest {
			t.Errorf("%s: %d", act, answer.Code)
		}
	}
	for path, status := range map[string]int{id + "/destroy": 404, "no-such-key/revoke": 404} {
		if answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/keys/"+path, url.Values{})); answer.Code != status {
			t.Errorf("%s: %d, want %d", path, answer.Code, status)
		}
	}
	if answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/keys", url.Values{"description": {strings.Repeat("a", 5000)}})); answer.Code != http.StatusBadRequest || len(w.keys) != 1 {
		t.Errorf("a description of 5,000 characters: %d", answer.Code)
	}
}

// TestUpload verifies that the page's script always gets JSON, even for errors, because it shows the message next to
// the file.
func TestUpload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, body string
		who          access.Person
		status       int
	}{
		"Good":      {"an upload URL", `{"name":"a.png","mime_type":"image/png","size_bytes":1000}`, editor, 201},
		"Path":      {"some browsers send a path", `{"name":"C:\\pictures\\a.png","mime_type":"image/png","size_bytes":1000}`, editor, 201},
		"Type":      {"the accepted types are the platforms'", `{"name":"a.exe","mime_type":"application/x-dosexec","size_bytes":1000}`, editor, 400},
		"Size":      {"the accepted sizes are the platforms'", `{"name":"a.png","mime_type":"image/png","size_bytes":99999999999999}`, editor, 400},
		"Negative":  {"the size is required", `{"name":"a.png","mime_type":"image/png","size_bytes":-1}`, editor, 400},
		"NotJSON":   {"an unreadable request is reported", `name=a.png`, editor, 400},
		"Long":      {"a large request is not read completely", `{"name":"` + strings.Repeat("a", maxUploadRequest) + `"}`, editor, 400},
		"NotForHer": {"a viewer cannot upload", `{"name":"a.png","mime_type":"image/png","size_bytes":1000}`, viewer, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			r := httptest.NewRequest(http.MethodPost, "/teams/"+acme+"/media", strings.NewReader(tc.body))
			r.Header.Set("Accept", "application/json")
			r = r.WithContext(newRequest(&tc.who, "/", nil).Context())
			answer := w.serve(r)
			var got struct {
				ID     string `json:"id"`
				Upload string `json:"upload_url"`
				Error  struct {
					Message string `json:"message"`
				} `json:"error"`
			}
			err := json.Unmarshal(answer.Body.Bytes(), &got)
			if answer.Code != tc.status || err != nil || (got.Upload == "") != (tc.status != 201) || (got.Error.Message == "") != (tc.status == 201) {
				t.Errorf("%s: %d, %v, %+v", tc.reason, answer.Code, err, got)
			}
			for _, media := range w.media {
				if media.Spec.FileName != "a.png" {
					t.Errorf("%s: the file is called %q", tc.reason, media.Spec.FileName)
				}
			}
		})
	}
}
