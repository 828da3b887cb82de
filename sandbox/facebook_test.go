// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const (
	pageID   = "104000000000001"
	pagePath = "/facebook/v25.0/" + pageID
)

// feed posts a form to the demo Page's feed.
func (b *box) feed(form string) reply {
	b.t.Helper()
	return b.as("facebook", http.MethodPost, pagePath+"/feed", formType, form)
}

// onPage publishes a text post on the demo Page and returns the post's ID.
func (b *box) onPage(message string) string {
	b.t.Helper()
	return b.feed(url.Values{"message": {message}}.Encode()).want(b.t, "the post "+message, 200, "id~"+pageID+"_").text("id")
}

// fbNode reads a post, photo or Page.
func (b *box) fbNode(id string) reply {
	b.t.Helper()
	return b.read("facebook", "/facebook/v25.0/"+id)
}

func TestFacebookFeed(t *testing.T) {
	apart(t, (*box).feed, []row{
		{"a plain message", "message=hello", append(made, "X-App-Usage: *")},
		{"63206 characters fit, not bytes", "message=" + strings.Repeat("%E8%A6%8B", 63206), made},
		{"63207 characters are too many", "message=" + strings.Repeat("a", 63207), graphError(100, "at most 63206")},
		{"a post needs something", "", graphError(100, "Missing message or attachment")},
		{"white space is not a message", "message=+%0A", graphError(100, "Missing message or attachment")},
		{"unknown parameters are rejected", "message=a&text=b", graphError(100, "Param text is not known")},
		{"repeated parameters are rejected", "message=a&message=b", graphError(100, "more than once")},
		{"unknown fields are rejected before a post is created", "message=a&fields=id,url", graphError(100, "nonexisting field (url)")},
		{"a photo must have been uploaded", `message=a&attached_media[0]={"media_fbid":"1"}`, graphError(100, "attached_media")},
	})
}

func TestFacebookPaths(t *testing.T) {
	b := start(t, "")
	b.each(t, func(path string) reply { return b.form("facebook", "/facebook/"+path, url.Values{"message": {path}}) }, []row{
		{"me is the token's Page", "v25.0/me/feed", made},
		{"newer versions", "v26.0/" + pageID + "/feed", made},
		{"another Page", "v25.0/123/feed", is{400, "error.fbtrace_id=*"}},
		{"a version that does not exist yet", "v27.0/" + pageID + "/feed", is{400, "error.fbtrace_id=*"}},
		{"a version is required", pageID + "/feed", is{400, "error.fbtrace_id=*"}},
		{"videos are not simulated", "v25.0/" + pageID + "/videos", is{400, "error.fbtrace_id=*"}},
		{"reels are not simulated", "v25.0/" + pageID + "/video_reels", is{400, "error.fbtrace_id=*"}},
	})
	b.as("facebook", http.MethodPost, pagePath+"/feed?message=query", "", "").want(t, "parameters in the address", made...)
	for _, token := range []string{"threads-access-demo", ""} {
		b.call(http.MethodPost, pagePath+"/feed", token, formType, "message=a").want(t, "the token "+token, 400)
	}
	same(t, "posts", 3, len(b.texts()))
}

func TestFacebookReadAfterWrite(t *testing.T) {
	b := start(t, "")
	r := b.form("facebook", pagePath+"/feed?fields=id,permalink_url", url.Values{"message": {"hello"}})
	id := r.want(t, "the post", 200, "id~"+pageID+"_").text("id")
	want := map[string]any{"id": id, "permalink_url": b.http.URL + "/facebook/" + id}
	same(t, "the requested fields", want, r.at())
	same(t, "the requested fields, read again", want, b.fbNode(id+"?fields=permalink_url").at())
	same(t, "the default fields", map[string]any{"id": id, "created_time": "2026-12-01T09:00:00+0000", "message": "hello"}, b.fbNode(id).at())
	b.page("/facebook/"+id).want(t, "the permalink", 200, "~hello")
	other := b.account("facebook", "2", "")
	b.call(http.MethodGet, "/facebook/v25.0/"+id, other, "", "").want(t, "another Page's post", missing...)
	b.fbNode(pageID+"_1").want(t, "an unknown post", missing...)
}

func TestFacebookDuplicates(t *testing.T) {
	b := start(t, "")
	b.onPage("same")
	duplicate := append(graphError(506, ""), "error.is_transient=false")
	b.feed("message=same").want(t, "the same message", duplicate...)
	b.feed("message=+same%0A").want(t, "the same message with white space", duplicate...)
	b.clock.Step(30 * 24 * time.Hour)
	b.feed("message=same").want(t, "the same message a month later", duplicate...)
	b.onPage("another")
	b.onPage("same") // the latest post was different
	other := b.account("facebook", "2", "")
	b.call(http.MethodPost, "/facebook/v25.0/2/feed", other, formType, "message=same").want(t, "another Page may post the same", 200)
}

func TestFacebookQuota(t *testing.T) {
	b := start(t, "")
	b.set("facebook", `{"quota":1}`)
	b.onPage("one")
	b.feed("message=two").want(t, "a post beyond the quota", graphSubcode(368, 1390008)...)
	b.clock.Step(24 * time.Hour)
	b.onPage("two")
}

// TestFacebookListsRankedPosts publishes more posts in a year than Facebook lists.
func TestFacebookListsRankedPosts(t *testing.T) {
	const extra = 20
	b := start(t, "")
	list := func() map[string]bool {
		ids := map[string]bool{}
		for next := pagePath + "/published_posts?limit=100&fields=id"; next != ""; {
			r := b.read("facebook", next)
			for _, id := range r.ids() {
				ids[id] = true
			}
			next = strings.TrimPrefix(r.text("paging", "next"), b.http.URL)
		}
		return ids
	}
	b.clock.Step(60 * 24 * time.Hour) // into the next calendar year
	var all []string
	for i := range 600 + extra {
		b.clock.Step(time.Minute)
		all = append(all, b.onPage(fmt.Sprint("post ", i)))
		if i == 599 {
			same(t, "up to 600 posts are listed", 600, len(list()))
		}
	}
	seen, absent := list(), 0
	for _, id := range all {
		if !seen[id] {
			absent++
		}
	}
	same(t, "listed and omitted posts", []int{600, extra}, []int{len(seen), absent})
	b.fbNode(all[len(all)-1]).want(t, "each post can be read by its ID", 200)
}

// fbDraft creates a draft and returns its ID.
func (b *box) fbDraft(values url.Values) string {
	b.t.Helper()
	values.Set("published", "false")
	values.Set("unpublished_content_type", "DRAFT")
	return b.feed(values.Encode()).want(b.t, "the draft", made...).text("id")
}

func TestFacebookDrafts(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	id := b.fbDraft(fbAttached("later", b.fbPhoto(picture)))
	published := func() []string { return b.read("facebook", pagePath+"/published_posts").ids() }
	b.fbNode(id+"?fields=is_published").want(t, "a draft", "is_published=false")
	same(t, "published posts", []string{}, published())
	same(t, "visible posts", []string{}, b.texts())
	same(t, "drafts and publications", []int{1, 0}, []int{b.callsOn("facebook", "create"), b.callsOn("facebook", "publish")})
	b.read("facebook", pagePath+"/feed").want(t, "the feed", "data#0")
	for range 2 {
		b.form("facebook", "/facebook/v25.0/"+id, query("is_published=true")).want(t, "publishing, also twice", 200, "success=true")
		b.fbNode(id+"?fields=is_published").want(t, "a published draft", "is_published=true")
		same(t, "published posts", []string{id}, published())
	}
	same(t, "visible posts", []string{"later"}, b.texts())
	b.as("facebook", http.MethodDelete, "/facebook/v25.0/"+id, "", "").want(t, "deleting it", 200)
}

func TestFacebookDraftsRefused(t *testing.T) {
	b := start(t, "")
	b.onPage("same")
	repeated, old := b.fbDraft(query("message=same")), b.fbDraft(query("message=old"))
	change := func(id, form string) reply { return b.form("facebook", "/facebook/v25.0/"+id, query(form)) }
	change(repeated, "is_published=true").want(t, "a repetition of the newest post", graphError(506, "")...)
	b.call(http.MethodPost, "/facebook/v25.0/"+old, b.account("facebook", "2", ""), formType, "is_published=true").
		want(t, "another Page's draft", missing...)
	change(old, "is_published=false").want(t, "a post cannot be withdrawn", graphError(100, "")...)
	b.clock.Step(31 * 24 * time.Hour)
	change(old, "is_published=true").want(t, "a draft expires after 30 days", missing...)
	const draft = "message=a&published=false&unpublished_content_type="
	b.each(t, b.feed, []row{
		{"scheduled posts are not simulated", draft + "SCHEDULED&scheduled_publish_time=1800000000", graphError(100, "")},
		{"a draft is not published", "message=a&unpublished_content_type=DRAFT", graphError(100, "")},
		{"advertisements are not simulated", draft + "ADS_POST", graphError(100, "")},
		{"an unpublished post needs a kind", "message=a&published=false", graphError(100, "")},
		{"kinds are in capitals", draft + "draft", graphError(100, "")},
	})
	same(t, "visible posts", []string{"same"}, b.texts())
}

func TestFacebookLinks(t *testing.T) {
	b := start(t, "")
	r := b.form("facebook", pagePath+"/feed?fields=id,attachments{media_type,url}", query("message=see&link=https://a.example/b"))
	r.want(t, "a link", 200, `attachments={"data":[{"media_type":"link","url":"https://a.example/b"}]}`)
	for _, link := range []string{"a.example", "ftp://a.example", "https://", "::"} {
		b.form("facebook", pagePath+"/feed", url.Values{"message": {"see " + link}, "link": {link}}).want(t, link, graphError(1500, "")...)
	}
}

// TestPostsAreReadAndDeleted reads a post on each platform with a deletion API, deletes it, and deletes it again.
func TestPostsAreReadAndDeleted(t *testing.T) {
	for platform, tt := range map[string]struct {
		publish func(*box) string
		path    string
		gone    is // when the post is read again
		again   int
	}{
		// docs.x.com, Manage Posts; Meta's Delete Posts; Graph's Page Post, Deleting.
		"x":        {func(b *box) string { return b.post("gone soon") }, "/x/2/tweets/", is{"errors.0.title=Not Found Error"}, 404},
		"threads":  {func(b *box) string { return b.thread("gone soon", nil) }, "/threads/v1.0/", missing, 400},
		"facebook": {func(b *box) string { return b.onPage("gone soon") }, "/facebook/v25.0/", missing, 400},
	} {
		t.Run(platform, func(t *testing.T) {
			b := start(t, "")
			id := tt.publish(b)
			path := tt.path + id
			b.read(platform, path).want(t, "reading the post", 200, "errors=")
			if r := b.call(http.MethodDelete, path, b.account(platform, "7", "{}"), "", ""); r.status < 400 {
				t.Errorf("another account deletes it: %d %s", r.status, r.body)
			}
			b.as(platform, http.MethodDelete, path, "", "").want(t, "deleting it", 200)
			b.as(platform, http.MethodDelete, path, "", "").want(t, "deleting it again", tt.again)
			b.read(platform, path).want(t, "reading it again", tt.gone...)
			same(t, "visible posts", 0, len(b.texts()))
			if tt.publish(b) == id {
				t.Error("a text may be repeated after its post was deleted")
			}
		})
	}
	b := start(t, "")
	id := b.onPage("a")
	b.form("facebook", "/facebook/v25.0/"+id, query("message=b")).want(t, "Facebook posts cannot be edited", missing...)
	b.form("facebook", "/facebook/v25.0/"+id, query("method=delete")).want(t, "huandu/facebook deletes by POST", "success=true")
	same(t, "visible posts", 0, len(b.texts()))
	shelf := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 400, 400)})
	path := "/instagram/v25.0/" + b.igPost(query("image_url="+shelf.url+"/a.jpg"))
	b.as("instagram", http.MethodDelete, path, "", "").want(t, "the reference of IG Media has no deletion", missing...)
	b.read("instagram", path+"?fields=media_type").want(t, "the post is still there", "media_type=IMAGE")
}
