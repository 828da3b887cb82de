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
	answer := b.tweet(replyBody("second part", root)).text("data", "id")
	thread := b.thread("hello", nil)
	code := b.read("threads", "/threads/v1.0/"+thread+"?fields=shortcode").text("shortcode")
	fb := b.onPage("hello")
	b.clock.Step(3*time.Minute - time.Second) // the thread took a second
	get := func(path string) reply {
		r := b.page(path)
		if r.status != http.StatusFound {
			r.want(t, "the policy of "+path, "Content-Security-Policy~default-src 'none'", "Content-Security-Policy!unsafe")
		}
		return r
	}
	redirect := func(to string) is { return is{302, "Location: " + to} }
	b.each(t, get, []row{
		{"the accounts", "/", is{200, "~Herald Demo", "~@herald_demo", "~2 posts", `~href="/accounts/x/` + demoID + `"`}},
		{"a feed escapes texts and links addresses and tags", "/accounts/x/" + demoID, is{
			200, `~<a href="http://example.com" rel="noopener noreferrer nofollow">example.com</a>`, `~&amp; &lt;b&gt;bold&lt;/b&gt;`,
			`~<span class="tag">#news</span>`, `~<span class="tag">@you</span>`, "~second part", "~>3m<",
			`~href="/x/herald_demo/status/` + root + `"`,
		}},
		{"a post with its conversation", "/x/herald_demo/status/" + answer, is{200, "~second part", "~See ", "~09:00:00 · Dec 1, 2026 · UTC"}},
		{"the style sheet", "/_assets/style.css", is{200, "~prefers-color-scheme: dark"}},
		{"an unknown post", "/x/herald_demo/status/1", is{404, "~does not exist"}},
		{"an unknown account", "/accounts/x/9", is{404, "~No such account"}},
		{"an unknown platform", "/accounts/y/9", is{404, "~No such account"}},
		{"an unknown username", "/x/nobody", is{404, "~does not exist"}},
		{"an unknown page", "/nothing", is{404, "~Nothing here"}},
		{"X's address without a username", "/x/i/status/" + root, redirect("/x/herald_demo/status/" + root)},
		{"X's address with another username", "/x/someone_else/status/" + root, redirect("/x/herald_demo/status/" + root)},
		{"X's profile, in any case", "/x/HERALD_demo", redirect("/accounts/x/" + demoID)},
		{"Threads' profile", "/threads/@herald_demo", redirect("/accounts/threads/" + threadsID)},
		{"Threads' profile without an at sign", "/threads/HERALD_demo", redirect("/accounts/threads/" + threadsID)},
		{"Threads' post with another username", "/threads/@somebody/post/" + code, redirect("/threads/@herald_demo/post/" + code)},
		{"Threads' ID is not a shortcode", "/threads/@herald_demo/post/" + thread, is{404}},
		{"an invalid shortcode", "/threads/@herald_demo/post/Cabc", is{404}},
		{"Instagram's profile", "/instagram/herald_demo", redirect("/accounts/instagram/" + instagramID)},
		{"an unknown post on Instagram", "/instagram/p/Cabc/", is{404}},
		{"Facebook's profile", "/facebook/herald.demo", redirect("/accounts/facebook/" + pageID)},
		{"Facebook's profile by ID", "/facebook/" + pageID, redirect("/accounts/facebook/" + pageID)},
		{"a Facebook post", "/facebook/" + fb, is{200}},
		{"a Facebook post with a parameter", "/facebook/" + fb + "?ref=share", redirect("/facebook/" + fb)},
		{"an unknown Facebook post", "/facebook/" + pageID + "_1", is{404}},
		{"TikTok's profile", "/tiktok/@herald_demo", redirect("/accounts/tiktok/" + tiktokID)},
		{"an unknown video on TikTok", "/tiktok/@herald_demo/video/1", is{404}},
		{"YouTube's handle", "/youtube/@herald_demo", redirect("/accounts/youtube/" + channelID)},
		{"YouTube's channel", "/youtube/channel/" + channelID, redirect("/accounts/youtube/" + channelID)},
		{"an unknown video on YouTube", "/youtube/watch?v=abc", is{404}},
		{"a video without an ID", "/youtube/watch", is{404}},
	})
	b.set("x", `{"private":true}`)
	b.page("/x/herald_demo/status/"+root).want(t, "a protected post", 403, "!news")
}

func TestFeedPages(t *testing.T) {
	b := start(t, "")
	for i := range 120 {
		b.post(fmt.Sprintf("<post %d>", i))
	}
	path, seen := "/accounts/x/"+demoID, 0
	for page := 0; path != "" && page < 4; page++ {
		body := b.page(path).body
		seen += strings.Count(body, "<article")
		_, rest, _ := strings.Cut(body, `class="more" href="`)
		path, _, _ = strings.Cut(rest, `"`)
	}
	same(t, "posts on all pages, and the page after the last", []any{120, ""}, []any{seen, path})
}

func TestPlatformsHaveDistinctStyles(t *testing.T) {
	b := start(t, "")
	index, style := b.page("/"), b.page("/_assets/style.css")
	for _, account := range sandbox.DemoAccounts() {
		platform, path := account.Platform, account.Platform+"/"+account.ID
		_, group, _ := strings.Cut(index.body, `class="group on-`+platform+`"`)
		_, group, _ = strings.Cut(group, `<span class="chip"></span>`)
		title, _, _ := strings.Cut(group, "</h2>")
		same(t, "the first page shows "+platform+", not "+title, true, strings.EqualFold(title, platform))
		index.want(t, "the first page links "+platform, `~href="/accounts/`+path+`"`)
		style.want(t, platform+" has its own colour", "~.on-"+platform+" {")
		b.page("/accounts/"+path).want(t, "a profile of "+platform, 200, `~class="profile on-`+platform+`"`, "~<strong>"+title+"</strong>")
		b.page("/_assets/avatar/"+path+".svg").want(t, "a picture of "+platform, 200)
	}
	for i := range 60 {
		b.account("facebook", fmt.Sprint(1000+i), "")
	}
	b.page("/").want(t, "one platform's accounts do not displace others", "~11 more accounts are not listed", `~href="/accounts/youtube/`)
}

// As in a cluster, users may reach the sandbox at a different address from Herald.
func TestAddressesForBrowsersAndPrograms(t *testing.T) {
	const public = "http://127.0.0.1:19100"
	b := &box{t: t, clock: newClock(), siteURL: public}
	b.open("")
	post := b.read("threads", "/threads/v1.0/"+b.thread("hello", nil)+"?fields=permalink").text("permalink")
	icon := b.read("threads", "/threads/v1.0/me?fields=threads_profile_picture_url").text("threads_profile_picture_url")
	for why, address := range map[string][2]string{
		"users open posts": {post, public}, "users see profile pictures": {icon, public}, "Herald sends files": {b.session(plainVideo, 10), b.http.URL},
	} {
		same(t, why+" at "+address[0], true, strings.HasPrefix(address[0], address[1]+"/"))
	}
}
