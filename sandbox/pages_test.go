// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestPages(t *testing.T) {
	b := start(t, "")
	root := b.post(`See example.com & <b>bold</b> #news for @you`)
	reply := b.tweet(`{"text":"second part","reply":{"in_reply_to_tweet_id":"`+root+`"}}`).text("data", "id")
	b.clock.Step(3 * time.Minute)
	tests := []struct {
		name, path string
		status     int
		wantIn     []string
	}{
		{"accounts", "/", 200, []string{"Herald Demo", "@herald_demo", "2 posts", `href="/accounts/x/` + demoID + `"`}},
		{"feed", "/accounts/x/" + demoID, 200, []string{
			`<a href="http://example.com" rel="noopener noreferrer nofollow">example.com</a>`, `&amp; &lt;b&gt;bold&lt;/b&gt;`,
			`<span class="tag">#news</span>`, `<span class="tag">@you</span>`, "second part", ">3m<",
			`href="/x/herald_demo/status/` + root + `"`,
		}},
		{"post", "/x/herald_demo/status/" + reply, 200, []string{"second part", "See ", "09:00:00 · Dec 1, 2026 · UTC"}},
		{"no such post", "/x/herald_demo/status/1", 404, []string{"does not exist"}},
		{"no such account", "/accounts/x/9", 404, []string{"No such account"}},
		{"no such platform", "/accounts/y/9", 404, []string{"No such account"}},
		{"no such name", "/x/nobody", 404, []string{"does not exist"}},
		{"no such page", "/nothing", 404, []string{"Nothing here"}},
		{"style", "/_assets/style.css", 200, []string{"prefers-color-scheme: dark"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(http.MethodGet, tt.path, "", "", "")
			if r.status != tt.status {
				t.Errorf("status %d, want %d", r.status, tt.status)
			}
			for _, want := range tt.wantIn {
				if !strings.Contains(r.body, want) {
					t.Errorf("%q is not in\n%s", want, r.body)
				}
			}
			policy := r.header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("policy %q", policy)
			}
		})
	}
}

func TestRedirectsToThePost(t *testing.T) {
	b := start(t, "")
	id := b.post("hello")
	for path, want := range map[string]string{
		"/x/i/status/" + id:            "/x/herald_demo/status/" + id,
		"/x/someone_else/status/" + id: "/x/herald_demo/status/" + id,
		"/x/HERALD_demo":               "/accounts/x/" + demoID,
	} {
		if r := b.call(http.MethodGet, path, "", "", ""); r.status != http.StatusFound || r.header.Get("Location") != want {
			t.Errorf("%s: %d to %q, want 302 to %q", path, r.status, r.header.Get("Location"), want)
		}
	}
}

func TestProtectedPost(t *testing.T) {
	b := start(t, "")
	id := b.post("for friends")
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"private":true}`, http.StatusOK)
	r := b.call(http.MethodGet, "/x/herald_demo/status/"+id, "", "", "")
	if r.status != http.StatusForbidden || strings.Contains(r.body, "for friends") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestFeedPages(t *testing.T) {
	b := start(t, "")
	for i := range 120 {
		b.post(fmt.Sprintf("<post %d>", i))
	}
	path, seen := "/accounts/x/"+demoID, 0
	for page := 0; path != ""; page++ {
		body := b.call(http.MethodGet, path, "", "", "").body
		seen += strings.Count(body, "<article")
		path = ""
		if _, rest, found := strings.Cut(body, `class="more" href="`); found {
			path, _, _ = strings.Cut(rest, `"`)
		}
		if page > 3 {
			t.Fatal("the feed has no end")
		}
	}
	if seen != 120 {
		t.Errorf("%d posts on all pages, want 120", seen)
	}
}
