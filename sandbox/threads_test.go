// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	threadsID   = "24000000000000001"
	threadsPath = "/threads/v1.0/" + threadsID
)

// query parses a test's constant query string.
func query(text string) url.Values {
	values, err := url.ParseQuery(text)
	if err != nil {
		panic(err)
	}
	return values
}

// threadsForm sends a form to create a container.
func (b *box) threadsForm(form string) reply {
	b.t.Helper()
	return b.as("threads", http.MethodPost, threadsPath+"/threads", formType, form)
}

// container creates a container of the demo account and returns its id.
func (b *box) container(values url.Values) string {
	b.t.Helper()
	if !values.Has("media_type") {
		values.Set("media_type", "TEXT")
	}
	return b.threadsForm(values.Encode()).want(b.t, "the container", made...).text("id")
}

func (b *box) publishContainer(id string) reply {
	b.t.Helper()
	return b.form("threads", threadsPath+"/threads_publish", url.Values{"creation_id": {id}})
}

// thread publishes a text post on Threads and returns the post's id.
func (b *box) thread(text string, more url.Values) string {
	b.t.Helper()
	values := url.Values{"text": {text}}
	maps.Copy(values, more)
	id := b.container(values)
	b.clock.Step(time.Second)
	post := b.publishContainer(id).want(b.t, "the publication", made...).text("id")
	if post == id {
		b.t.Errorf("the post has its container's ID %s", id)
	}
	return post
}

// threadsNode reads a container or post.
func (b *box) threadsNode(id, fields string) reply {
	b.t.Helper()
	return b.read("threads", "/threads/v1.0/"+id+"?fields="+fields)
}

func (b *box) containerStatus(id string) string {
	b.t.Helper()
	return b.threadsNode(id, "status,error_message").text("status")
}

func TestThreadsContainers(t *testing.T) {
	b := start(t, "")
	post, long := b.thread("there", nil), strings.Repeat("a", 500)
	links := "http://a.b/1 http://a.b/2 http://a.b/3 http://a.b/4 http://a.b/5"
	family := url.QueryEscape("👨‍👩‍👧‍👦")
	text := func(form string) reply { return b.threadsForm("media_type=TEXT&" + form) }
	b.each(t, text, []row{
		{"a plain text", "text=hello", made},
		{"500 characters fit", "text=" + long, made},
		{"501 characters are too many", "text=a" + long, graphError(100, "text must be at most 500 characters")},
		{"a letter with a separate accent counts as one", "text=" + strings.Repeat("e%CC%81", 500), made},
		{"a character in another script counts as one", "text=" + strings.Repeat("%E8%A6%8B", 500), made},
		{"an emoji counts as its bytes in UTF-8: 125 of four fit", "text=" + strings.Repeat("%F0%9F%8E%89", 125), made},
		{"126 emoji of four bytes are too many", "text=" + strings.Repeat("%F0%9F%8E%89", 126), graphError(100, "at most 500")},
		{"a family of 25 bytes fits after 475 characters", "text=" + long[:475] + family, made},
		{"a family of 25 bytes does not fit after 476 characters", "text=" + long[:476] + family, graphError(100, "at most 500")},
		{"five links are allowed", "text=" + url.QueryEscape(links), made},
		{"six links are too many", "text=" + url.QueryEscape(links+" http://a.b/6"), is{400, "error.message~THREADS_API__LINK_LIMIT_EXCEEDED"}},
		{"only different links count", "text=" + url.QueryEscape(strings.Repeat("http://a.b/1 ", 6)), made},
		{"a text is required", "", graphError(100, "text is required")},
		{"white space is not a text", "text=%0A+", graphError(100, "text is required")},
		{"unknown parameters are rejected", "text=a&reply_to=" + post, graphError(100, "Param reply_to is not known")},
		{"repeated parameters are rejected", "text=a&text=b", graphError(100, "text was given more than once")},
		{"a text has no image", "text=a&image_url=https://a.b/c.jpg", graphError(100, "image_url is not allowed")},
		{"a reply to a post", "text=a&reply_to_id=" + post, made},
		{"the parent must exist", "text=a&reply_to_id=1", is{400, "error.message~reply_to_id"}},
		{"texts are UTF-8", "text=%FF", graphError(100, "valid UTF-8")},
	})
	b.threadsForm("text=hello").want(t, "a type is required", graphError(100, "media_type is required")...)
	b.threadsForm("media_type=text&text=hello").want(t, "types are an enumeration", graphError(100, "media_type must be one of")...)
	same(t, "containers are not posts", []string{"there"}, b.texts())
}

func TestThreadsProcessing(t *testing.T) {
	b := start(t, "")
	b.set("threads", `{"processing_ms":5000,"processing_error":"UNKNOWN"}`)
	id := b.container(query("text=hello"))
	b.clock.Step(5*time.Second - time.Millisecond)
	same(t, "before its time", "IN_PROGRESS", b.containerStatus(id))
	b.clock.Step(time.Millisecond)
	b.threadsNode(id, "status,error_message").want(t, "the end", `={"error_message":"UNKNOWN","id":"`+id+`","status":"ERROR"}`)
	b.publishContainer(id).want(t, "a failed container cannot be published", graphError(24, "")...)
	b.set("threads", `{"processing_ms":0,"processing_error":null}`)
	same(t, "without processing", "FINISHED", b.containerStatus(b.container(query("text=hello"))))
	same(t, "posts", 0, len(b.texts()))
}

func TestThreadsContainersBelongToTheAccount(t *testing.T) {
	b := start(t, "")
	other, id := b.account("threads", "2", ""), b.container(query("text=mine"))
	b.clock.Step(time.Second)
	as := func(method, path, form string) reply {
		return b.call(method, "/threads/v1.0/"+path, other, formType, form)
	}
	as("POST", "2/threads_publish", "creation_id="+id).want(t, "publishing another account's container", graphError(24, "")...)
	as("GET", id+"?fields=status", "").want(t, "reading another account's container", missing...)
	same(t, "posts", 0, len(b.texts()))
	post := b.publishContainer(id).text("id")
	as("GET", post, "").want(t, "reading another account's post", missing...)
	as("POST", "2/threads", "media_type=TEXT&text=hi&reply_to_id="+post).want(t, "replying to another account's post", 200)
	b.publishContainer(post).want(t, "publishing a post", graphError(24, "")...)
	b.form("threads", threadsPath+"/threads_publish", url.Values{"container_id": {id}}).want(t, "a misspelt creation_id", graphError(100, "")...)
	b.threadsNode(id, "permalink").want(t, "a container has no permalink", graphError(100, "")...)
}

func TestThreadsPost(t *testing.T) {
	b := start(t, "")
	id := b.thread("See https://example.com #News today", nil)
	r := b.threadsNode(id, "id,permalink,shortcode,timestamp,username,text,media_type,is_reply,owner")
	code := r.text("shortcode")
	same(t, "the post", map[string]any{
		"id": id, "shortcode": code, "timestamp": "2026-12-01T09:00:01+0000", "username": "herald_demo",
		"permalink": b.http.URL + "/threads/@herald_demo/post/" + code, "text": "See https://example.com #News today",
		"media_type": "TEXT_POST", "is_reply": false, "owner": map[string]any{"id": threadsID},
	}, r.at())
	b.page("/threads/@herald_demo/post/"+code).want(t, "the permalink", 200, "~#News", `~<a href="https://example.com"`)
	r.want(t, "the permalink does not contain the ID", "permalink!"+id)
	same(t, "the length of an ID", 17, len(id))
}

func TestThreadsReplies(t *testing.T) {
	b := start(t, "")
	root := b.thread("one", nil)
	second := b.thread("two", url.Values{"reply_to_id": {root}})
	third := b.thread("three", url.Values{"reply_to_id": {second}})
	answer := func(id, parent string) any {
		return map[string]any{"id": id, "is_reply": true, "replied_to": map[string]any{"id": parent}, "root_post": map[string]any{"id": root}}
	}
	r := b.read("threads", threadsPath+"/replies?fields=id,is_reply,replied_to,root_post")
	same(t, "the replies", []any{answer(third, second), answer(second, root)}, r.list("data"))
	same(t, "posts exclude replies", []string{root}, b.read("threads", threadsPath+"/threads").ids())
}

func TestThreadsListing(t *testing.T) {
	b := start(t, "")
	var newest []string
	for i := range 7 {
		newest = slices.Insert(newest, 0, b.thread(fmt.Sprint("post ", i), nil))
	}
	list := func(query string) reply { return b.read("threads", threadsPath+"/threads?"+query) }
	same(t, "all posts", newest, list("").ids())
	same(t, "as many as requested", newest[:3], list("limit=3").ids())
	same(t, "since a second, which is included", newest[:3], list("since=1796115605").ids()) // 09:00:05
	var pages []string
	for after := ""; len(pages)%3 == 0; { // a partial page is the last one
		r := list("limit=3&fields=id"+after).want(t, "Meta's sample has cursors only", "paging.next=")
		pages, after = append(pages, r.ids()...), "&after="+r.text("paging", "cursors", "after")
	}
	same(t, "the pages together are the listing", newest, pages)
	for _, query := range []string{"limit=0", "limit=101", "since=soon", "after=x", "max=5", "fields=likes"} {
		list(query).want(t, "an invalid "+query, graphError(100, "")...)
	}
}

func TestMetaOperations(t *testing.T) {
	b := start(t, "")
	id := b.container(query("text=hello"))
	b.clock.Step(time.Second)
	b.containerStatus(id)
	b.threadsNode(b.publishContainer(id).text("id"), "id")
	for _, path := range []string{"/threads", "/replies", "/threads_publishing_limit", ""} {
		b.read("threads", threadsPath+path)
	}
	b.read("threads", "/threads/v1.0/me")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
	id = b.igContainer(query("image_url=" + s.url + "/a.jpg"))
	b.igStatus(id)
	b.read("instagram", "/instagram/v25.0/"+b.igPublish(id).text("id"))
	for _, path := range []string{"/media", "/content_publishing_limit", ""} {
		b.read("instagram", instagramPath+path)
	}
	b.read("instagram", "/instagram/v25.0/me")
	for platform, lists := range map[string]int{"threads": 2, "instagram": 1} {
		for operation, want := range map[string]int{
			"create": 1, "status": 1, "publish": 1, "read": 1, "list": lists, "publishing_limit": 1, "identity": 2, "refresh_token": 0,
			"exchange": 0,
		} {
			same(t, platform+" "+operation, want, b.callsOn(platform, operation))
		}
	}
}
