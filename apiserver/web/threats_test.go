// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// hostile is a world where every external string contains markup, and every external address a script.
func hostile() *world {
	w := newWorld(clocktesting.NewFakeClock(now))
	w.teams[0].Spec.DisplayName = evil
	for _, c := range w.connections[acme] {
		c.Status.AccountName, c.Status.Username, c.Status.IconURL = evil, evil, "javascript:alert(1)"
		c.Status.RateLimits = []v1alpha1.RateLimit{{Name: evil, Remaining: 1}}
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRevoked, Message: evil}}
	}
	w.media[acme+"/m-1"] = &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: "m-1"},
		Spec:       v1alpha1.MediaSpec{FileName: evil, MimeType: "image/png"}, Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded},
	}
	w.keys[acme+"/k-1"] = &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: "k-1", Annotations: map[string]string{v1alpha1.AuthorAnnotation: evil}},
		Spec:       v1alpha1.APIKeySpec{Description: evil},
	}
	w.grants[acme+"/agent-1"] = &v1alpha1.OAuthGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: "agent-1"},
		Spec: v1alpha1.OAuthGrantSpec{
			Client: v1alpha1.OAuthGrantClient{ID: "dcr:1", Name: evil, URI: "javascript:alert(1)", RedirectHost: evil},
			Person: v1alpha1.OAuthGrantPerson{Name: evil, DisplayName: evil}, Scopes: []v1alpha1.OAuthScope{"read"},
		},
		Status: v1alpha1.OAuthGrantStatus{RedeemedAt: v1alpha1.NewTimePtr(now), RevokedReason: evil},
	}
	w.notifiers[acme+"/evil"] = notifierOf("evil", func(n *v1alpha1.Notifier) {
		n.Spec.URL = "javascript:alert(1)" + evil
		n.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoTeam, Message: evil}
		n.Status.Deliveries = []v1alpha1.NotifierDelivery{
			{ID: evil, Event: v1alpha1.NotifierEvent(evil), Kind: "Post", Name: evil, State: v1alpha1.DeliveryPending, Message: evil},
			{ID: evil, Event: v1alpha1.EventConnectionBroken, Kind: "Connection", Name: "our-x", State: v1alpha1.DeliveryState(evil)},
			{ID: evil, Event: v1alpha1.EventMediaRejected, Kind: "Media", Name: evil},
		}
	})
	w.put(textPost("draft", evil, asDraft))
	w.put(textPost("image", evil, asDraft, func(post *v1alpha1.Post) {
		post.Spec.Category, post.Spec.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "m-1", AltText: evil}}}
	}))
	w.put(textPost("failed", evil, func(post *v1alpha1.Post) {
		post.Annotations = map[string]string{v1alpha1.AuthorAnnotation: evil}
		post.Status.Targets = []v1alpha1.TargetStatus{{
			Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseFailed, Message: evil, ExternalID: evil, ExternalURL: "javascript:alert(1)",
		}}
		post.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Message: evil}}
	}))
	return w
}

// evil is a string that tries to end an element, an attribute, a comment and a script.
const evil = `"'></title></textarea></script><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}-->`

// checkMarkup checks that a page has only its own scripts, nothing else that runs, and only links and sources on the
// web.
func checkMarkup(t *testing.T, what string, page *html.Node) {
	t.Helper()
	for n := range page.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		source, _ := attribute(n, "src")
		switch {
		case n.Data == "script" && !strings.HasPrefix(source, "/assets/"), n.Data == "style", n.Data == "iframe", n.Data == "object", n.Data == "base":
			t.Errorf("%s: has <%s src=%q>", what, n.Data, source)
		case n.Data == "img" && source == "x":
			t.Errorf("%s: a text became an element", what)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" || strings.HasPrefix(a.Key, "hx-on") {
				t.Errorf("%s: <%s> has %s=%q", what, n.Data, a.Key, a.Val)
			}
			if a.Key != "href" && a.Key != "src" && a.Key != "action" && a.Key != "formaction" {
				continue
			}
			u, err := url.Parse(a.Val)
			ours := err == nil && u.Scheme == "" && u.Host == "" && (strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "#"))
			web := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
			if !ours && !web {
				t.Errorf("%s: <%s> has %s=%q", what, n.Data, a.Key, a.Val)
			}
		}
	}
}

// TestThreatMarkup tests cross-site scripting through captions, names of teams, accounts, files and keys, and
// platforms' messages.
func TestThreatMarkup(t *testing.T) {
	t.Parallel()
	w := hostile()
	for _, path := range []string{
		"", "posts", "calendar", "posts/new", "posts/new?from=image", "posts/draft", "posts/draft/edit", "posts/image", "posts/image/edit", "posts/failed",
		"notifications", "notifications/evil", "notifications/evil/edit", "notifications/evil/delete",
		"connections", "keys", "agents", "team", "bulk?act=publish&post=draft&post=failed&post=" + url.QueryEscape(evil), "posts?q=" + url.QueryEscape(evil) + "&by=agent:" + url.QueryEscape(evil) + "&account=" + url.QueryEscape(evil),
		"calendar?view=week", "calendar?view=agenda", "?said=" + url.QueryEscape(evil), "posts?status=" + url.QueryEscape(evil), "calendar?month=" + url.QueryEscape(evil),
	} {
		page := w.get(t, administrator, "/teams/"+acme+"/"+path)
		checkMarkup(t, path, page)
		if !strings.Contains(textOf(page), "<script>alert(1)</script>") {
			t.Errorf("%s: the page changes the team's name", path)
		}
	}
	form := url.Values{"category": {"image"}, "caption": {evil}, "image": {"m-1", evil}, "target": {"our-x", evil}, "own-our-x": {evil}, "key": {evil}, "version": {evil}, "zone": {evil}}
	for _, path := range []string{"compose/check", "compose/save", "posts/draft/save", "posts/new", "posts/draft/edit", "keys", "notifications/new", "posts/failed/settle", "connections/connect", "keys/k-1/drop"} {
		answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/"+path, form))
		checkMarkup(t, "POST "+path, parsed(t, answer.Body.String()))
	}
	checkMarkup(t, "not found", parsed(t, w.serve(newRequest(&administrator, "/teams/"+url.PathEscape(evil)+"/posts", nil)).Body.String()))
}

// TestThreatPictures verifies that pictures are loaded only from the web: an account's picture URL comes from a
// platform and is untrusted.
func TestThreatPictures(t *testing.T) {
	t.Parallel()
	for address, shown := range map[string]bool{
		"https://pbs.example/a.png": true, "http://127.0.0.1:9000/a.png": true, "http://pbs.example/a.png": false, "javascript:alert(1)": false, "JaVaScRiPt:alert(1)": false,
		"data:image/svg+xml,<svg onload=alert(1)>": false, "//pbs.example/a.png": false, "/signout": false, "blob:https://a/b": false, "https:": false, "": false, " https://a": false,
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		w.connections[acme][0].Status.IconURL = address
		loaded := false
		for _, img := range elements(w.get(t, viewer, "/teams/"+acme+"/connections"), "img") {
			source, _ := attribute(img, "src")
			loaded = loaded || source == address && address != ""
		}
		if loaded != shown {
			t.Errorf("the picture %q is shown: %v, want %v", address, loaded, shown)
		}
	}
}

// TestThreatOpenRedirect verifies that no parameter or header redirects to another site.
func TestThreatOpenRedirect(t *testing.T) {
	t.Parallel()
	const page = "/teams/team-acme/calendar"
	for address, want := range map[string]string{
		page: page, page + "?month=2026-12&status=draft": page + "?month=2026-12&status=draft", page + "#there": page,
		"": "", "/": "", "/signout": "", "https://evil.example" + page: "", "//evil.example" + page: "", `\\evil.example` + page: "", "/\\evil.example" + page: "",
		"javascript:alert(1)": "", "/teams/team-acme/calendar/../../../signout": "", "//user@" + page: "", "\t//evil.example": "", page + "\r\nSet-Cookie: a=b": "",
	} {
		if got := localPath(address, page); got != want {
			t.Errorf("localPath(%q) = %q, want %q", address, got, want)
		}
	}
	for referer, want := range map[string]string{
		"https://herald.example/teams/team-acme/posts?page=2": "/teams/team-acme/posts?page=2", "https://evil.example/teams/": "", "": "", "about:blank": "",
		"https://herald.example//evil.example/x": "", "https://herald.example/\\evil.example": "/%5Cevil.example", "https://herald.example@evil.example/": "", "javascript:alert(1)": "",
	} {
		r := newRequest(&viewer, "/teams/team-acme/keys", nil)
		r.Header.Set("Referer", referer)
		var out strings.Builder
		if node := backLink(r); node != nil {
			if err := node.Render(&out); err != nil {
				t.Fatal(err)
			}
		}
		href := ""
		for _, a := range elements(parsed(t, out.String()), "a") {
			href, _ = attribute(a, "href")
		}
		if href != want {
			t.Errorf("Referer %q leads back to %q, want %q", referer, href, want)
		}
	}
	// The redirect to the sign-in page carries the current page in a parameter that package signin validates again.
	w := newWorld(clocktesting.NewFakeClock(now))
	answer := w.serve(newRequest(nil, "/teams/team-acme/posts?status=draft&x=//evil.example", nil))
	to, err := url.Parse(answer.Header().Get("Location"))
	if err != nil || to.Host != "" || to.Path != "/signin" || to.Query().Get("return_to") != "/teams/team-acme/posts?status=draft&x=//evil.example" {
		t.Errorf("a signed-out user is redirected to %q", answer.Header().Get("Location"))
	}
}

// TestThreatClickjacking verifies that no response can be framed, runs third-party code, or is cached.
func TestThreatClickjacking(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text"))
	for what, r := range map[string]*http.Request{
		"a page": newRequest(&viewer, "/teams/team-acme/posts/p-1", nil), "no header": newRequest(nil, "/nothing", nil), "signed out": newRequest(nil, "/teams/team-acme/keys", nil),
		"refused": newRequest(&viewer, "/teams/team-acme/keys", nil), "a part": newRequest(&viewer, "/teams/team-acme/compose/check", url.Values{}), "a file": newRequest(nil, w.site.assets.path("app.js"), nil),
	} {
		head := w.serve(r).Header()
		policy := head.Get("Content-Security-Policy")
		wanted := []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"}
		if what != "a file" { // files are not pages, and run no scripts
			wanted = append(wanted, "script-src 'self';", "style-src 'self';")
		}
		for _, want := range wanted {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %q", what, policy, want)
			}
		}
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Strict-Transport-Security": "max-age=31536000",
		} {
			if what == "a file" && slices.Contains(pagesOnly, name) {
				want = "" // files are not pages, and omit these headers to save bytes
			}
			if head.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", what, name, head.Get(name), want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy is not strict: %q", what, policy)
		}
		if cache := head.Get("Cache-Control"); what != "a file" && cache != "no-store" {
			t.Errorf("%s: Cache-Control is %q", what, cache)
		}
	}
}

// TestThreatPlainHTTP verifies that a site without HTTPS does not send HSTS, which would make it unreachable for a
// year.
func TestThreatPlainHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), func(c *Config) { c.SignIn.SiteURL = "http://127.0.0.1:8080" })
	if got := w.serve(newRequest(nil, "/", nil)).Header().Get("Strict-Transport-Security"); got != "" {
		t.Errorf("Strict-Transport-Security is %q", got)
	}
}

// pages are the paths of pages, changes the paths of forms.
var (
	pages   = []string{"", "posts", "calendar", "posts/new", "posts/p-1", "posts/p-1/edit", "connections", "keys", "agents", "team", "posts/new?from=p-1", "bulk?act=cancel&post=p-1"}
	changes = []string{
		"posts/new", "posts/p-1/edit", "posts/p-1/cancel", "posts/p-1/reschedule", "posts/p-1/settle", "posts/p-1/takeback", "connections/connect", "connections/our-x/disconnect",
		"keys", "keys/k-1/roll", "keys/k-1/drop", "keys/k-1/revoke", "agents/agent-1/revoke", "media", "compose/check", "posts/p-1/check", "compose/save", "posts/p-1/save", "bulk",
	}
)

// TestThreatCrossSite verifies that no GET changes anything: a link or a picture on another site can make a browser
// send one. Package apiserver's suite tests that POST requests from other sites are rejected.
func TestThreatCrossSite(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", asDraft))
	w.keys[acme+"/k-1"] = &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: "k-1"}}
	shown := map[string]bool{"bulk": true, "posts/new": true, "posts/p-1/edit": true, "keys": true}
	for _, path := range changes {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			r := newRequest(&administrator, "/teams/"+acme+"/"+path+"?category=text&caption=a&target=our-x&when=now&description=a", nil)
			r.Method = method
			if answer := w.serve(r); answer.Code != http.StatusNotFound && (!shown[path] || method != http.MethodGet && method != http.MethodHead) {
				t.Errorf("%s %s: %d, want 404", method, path, answer.Code)
			}
		}
	}
	for _, path := range pages {
		w.serve(newRequest(&administrator, "/teams/"+acme+"/"+path, nil))
	}
	if n := w.written(); n != 0 {
		t.Errorf("reading caused %d writes", n)
	}
}

// TestThreatHeaders verifies that no input becomes a response header.
func TestThreatHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	const injected = "x\r\nSet-Cookie: stolen=1\r\n\r\n<script>"
	for _, r := range []*http.Request{
		newRequest(nil, "/teams/"+acme+"/posts?x="+url.QueryEscape(injected), nil),
		newRequest(&administrator, "/teams/"+url.PathEscape(injected)+"/posts", nil),
		newRequest(&administrator, "/teams/"+acme+"/posts/"+url.PathEscape(injected), nil),
		newRequest(&administrator, "/teams/"+acme+"/posts/"+url.PathEscape(injected)+"/cancel", url.Values{}),
		newRequest(&administrator, "/teams/"+acme+"/connections/connect", url.Values{"platform": {injected}, "connection": {injected}}),
		newRequest(&administrator, "/connect/"+url.PathEscape(injected)+"/choose", url.Values{"pending": {injected}}),
		newRequest(&administrator, "/connect/"+url.PathEscape(injected)+"/callback?state="+url.QueryEscape(injected), nil),
	} {
		answer := w.serve(r)
		if answer.Header().Get("Set-Cookie") != "" || answer.Code >= http.StatusInternalServerError {
			t.Errorf("%s: %d, %v", r.URL, answer.Code, answer.Header())
		}
		for name, values := range answer.Header() {
			for _, value := range values {
				if strings.ContainsAny(name+value, "\r\n") {
					t.Errorf("%s: the header %s is %q", r.URL, name, value)
				}
			}
		}
	}
}

// TestThreatLongForms verifies that forms are limited, regardless of their content.
func TestThreatLongForms(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", asDraft))
	many := url.Values{"category": {"text"}, "when": {"draft"}}
	for range 9000 {
		many.Add("target", "our-x")
	}
	for what, form := range map[string]url.Values{
		"long":      {"category": {"text"}, "caption": {strings.Repeat("a", maxForm)}, "when": {"draft"}, "description": {strings.Repeat("a", maxForm)}},
		"accounts":  many,
		"long id":   {"category": {"text"}, "when": {"draft"}, "target": {strings.Repeat("a", 1<<20)}, "image": {strings.Repeat("b", 1<<19)}, "key": {strings.Repeat("k", 1<<18)}},
		"long kind": {"category": {strings.Repeat("a", 1<<20)}, "cards": {strings.Repeat("9", 1<<19)}},
	} {
		for _, path := range changes {
			answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/"+path, form))
			if path == "posts/p-1/cancel" || path == "posts/p-1/takeback" { // they do not read the form
				continue
			}
			if answer.Code >= http.StatusInternalServerError {
				t.Errorf("%s to %s: %d", what, path, answer.Code)
			}
			if what == "long" && answer.Code == http.StatusSeeOther {
				t.Errorf("%s to %s: the form was accepted", what, path)
			}
			if size := answer.Body.Len(); size > 3*maxForm {
				t.Errorf("%s to %s: the response has %d bytes", what, path, size)
			}
		}
	}
}

// TestThreatOtherTeams verifies that a user learns nothing about another team: neither its existence nor its content.
func TestThreatOtherTeams(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "the secret plan", asDraft))
	none := w.serve(newRequest(&stranger, "/teams/team-none/posts", nil)).Body.String()
	for _, path := range pages {
		answer := w.serve(newRequest(&stranger, "/teams/"+acme+"/"+path, nil))
		if answer.Code != http.StatusNotFound || answer.Body.String() != none {
			t.Errorf("GET %s: %d, or a text that differs from an unknown address", path, answer.Code)
		}
	}
	for _, path := range changes {
		answer := w.serve(newRequest(&stranger, "/teams/"+acme+"/"+path, url.Values{"category": {"text"}, "target": {"our-x"}, "caption": {"a"}, "description": {"a"}}))
		if answer.Code != http.StatusNotFound || answer.Body.String() != none {
			t.Errorf("POST %s: %d, or a text that differs from an unknown address", path, answer.Code)
		}
	}
	// Another team's ids do not exist in the user's team.
	for _, path := range []string{"posts/p-1", "posts/p-1/edit", "posts/new?from=p-1"} {
		if answer := w.serve(newRequest(&stranger, "/teams/"+beta+"/"+path, nil)); answer.Code != http.StatusNotFound || strings.Contains(answer.Body.String(), "secret plan") {
			t.Errorf("%s of another team: %d", path, answer.Code)
		}
	}
	for _, path := range changes {
		w.serve(newRequest(&stranger, "/teams/"+beta+"/"+path, url.Values{"category": {"text"}, "target": {"our-x"}, "caption": {"a"}, "verdict": {"not-sent"}, "target_": {"0"}}))
	}
	if post := w.posts[acme+"/p-1"]; post.Spec.Cancelled || len(w.posts) != 1 {
		t.Errorf("a stranger changed an object: %d posts", len(w.posts))
	}
}

// TestThreatPlatformErrors verifies that an error's text from a platform or the Kubernetes API is shown as text.
func TestThreatPlatformErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for name, err := range map[string]error{"known": &bridge.Error{Code: bridge.CodeConflict, Message: evil}, "unknown": http.ErrBodyNotAllowed} {
		out := w.serveFailure(err)
		checkMarkup(t, name, parsed(t, out))
		if name == "unknown" && strings.Contains(out, err.Error()) {
			t.Error("the page reveals an internal error")
		}
	}
}
