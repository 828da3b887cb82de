// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/sandbox"
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

func TestEveryPlatformHasItsOwnLook(t *testing.T) {
	b := start(t, "")
	index := b.call(http.MethodGet, "/", "", "", "").body
	style := b.call(http.MethodGet, "/_assets/style.css", "", "", "").body
	for _, account := range sandbox.DemoAccounts() {
		platform := account.Platform
		_, group, found := strings.Cut(index, `class="group on-`+platform+`"`)
		_, group, _ = strings.Cut(group, `<span class="chip"></span>`)
		title, _, _ := strings.Cut(group, "</h2>")
		if !found || !strings.EqualFold(title, platform) || !strings.Contains(index, `href="/accounts/`+platform+"/"+account.ID+`"`) {
			t.Errorf("%s is not on the first page, under its name %q", platform, title)
		}
		if !strings.Contains(style, ".on-"+platform+" {") {
			t.Errorf("%s has no colour of its own", platform)
		}
		page := b.call(http.MethodGet, "/accounts/"+platform+"/"+account.ID, "", "", "")
		if page.status != http.StatusOK || !strings.Contains(page.body, `class="profile on-`+platform+`"`) || !strings.Contains(page.body, "<strong>"+title+"</strong>") {
			t.Errorf("the page of %s does not say where it is: %d %s", platform, page.status, page.body)
		}
		if picture := b.call(http.MethodGet, "/_assets/avatar/"+platform+"/"+account.ID+".svg", "", "", ""); picture.status != http.StatusOK {
			t.Errorf("%s: the picture is %d", platform, picture.status)
		}
	}
}

func TestAddressesOfEveryPlatform(t *testing.T) {
	b := start(t, "")
	post := b.thread("hello", nil)
	code := b.read("threads", "/threads/v1.0/"+post+"?fields=shortcode").text("shortcode")
	fb := b.onPage("hello")
	tests := []struct {
		path, to string
		status   int
	}{
		{"/threads/@herald_demo", "/accounts/threads/" + threadsID, 302},
		{"/threads/HERALD_demo", "/accounts/threads/" + threadsID, 302},
		{"/threads/@somebody/post/" + code, "/threads/@herald_demo/post/" + code, 302},
		{"/threads/@herald_demo/post/" + post, "", 404}, // the ID is not a shortcode
		{"/threads/@herald_demo/post/Cabc", "", 404},
		{"/instagram/herald_demo", "/accounts/instagram/17841400000000001", 302},
		{"/instagram/p/Cabc/", "", 404},
		{"/facebook/herald.demo", "/accounts/facebook/" + pageID, 302},
		{"/facebook/" + pageID, "/accounts/facebook/" + pageID, 302},
		{"/facebook/" + fb, "", 200},
		{"/facebook/" + fb + "?ref=share", "/facebook/" + fb, 302},
		{"/facebook/" + pageID + "_1", "", 404},
		{"/tiktok/@herald_demo", "/accounts/tiktok/-000HeraldDemoAccount00000000001", 302},
		{"/tiktok/@herald_demo/video/1", "", 404},
		{"/youtube/@herald_demo", "/accounts/youtube/UCHeraldDemo000000000001", 302},
		{"/youtube/channel/UCHeraldDemo000000000001", "/accounts/youtube/UCHeraldDemo000000000001", 302},
		{"/youtube/watch?v=abc", "", 404},
		{"/youtube/watch", "", 404},
	}
	for _, tt := range tests {
		r := b.call(http.MethodGet, tt.path, "", "", "")
		if r.status != tt.status || r.header.Get("Location") != tt.to {
			t.Errorf("%s: %d to %q, want %d to %q", tt.path, r.status, r.header.Get("Location"), tt.status, tt.to)
		}
	}
}

// TestManyAccountsOfOnePlatform checks that a platform's accounts do not displace other platforms from the first page.
func TestManyAccountsOfOnePlatform(t *testing.T) {
	b := start(t, "")
	for i := range 60 {
		b.control(http.MethodPut, fmt.Sprintf("/accounts/facebook/%d", 1000+i), "", http.StatusCreated)
	}
	index := b.call(http.MethodGet, "/", "", "", "").body
	if !strings.Contains(index, "11 more accounts are not listed") || !strings.Contains(index, `href="/accounts/youtube/`) {
		t.Errorf("the first page is\n%s", index)
	}
}
