// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	threadsID   = "24000000000000001"
	threadsPath = "/threads/v1.0/" + threadsID
)

// container creates a container of the demo account and returns its id.
func (b *box) container(values url.Values) string {
	b.t.Helper()
	if !values.Has("media_type") {
		values.Set("media_type", "TEXT")
	}
	r := b.form("threads", threadsPath+"/threads", values)
	if r.status != http.StatusOK || r.text("id") == "" {
		b.t.Fatalf("container: %d %s", r.status, r.body)
	}
	return r.text("id")
}

func (b *box) publishContainer(id string) reply {
	b.t.Helper()
	return b.form("threads", threadsPath+"/threads_publish", url.Values{"creation_id": {id}})
}

// thread publishes a text on Threads and returns the post's id.
func (b *box) thread(text string, more url.Values) string {
	b.t.Helper()
	values := url.Values{"text": {text}}
	maps.Copy(values, more)
	id := b.container(values)
	b.clock.Step(time.Second)
	r := b.publishContainer(id)
	if r.status != http.StatusOK || r.text("id") == "" || r.text("id") == id {
		b.t.Fatalf("publish: %d %s, want an id that is not the container's", r.status, r.body)
	}
	return r.text("id")
}

func (b *box) containerStatus(id string) string {
	b.t.Helper()
	return b.read("threads", "/threads/v1.0/"+id+"?fields=status,error_message").text("status")
}

func TestThreadsContainers(t *testing.T) {
	b := start(t, "")
	post := b.thread("there", nil)
	long := strings.Repeat("a", 500)
	tests := []struct {
		name, reason, form string
		want               string // part of the error's message; empty for success
	}{
		{"text", "the plain case", "media_type=TEXT&text=hello", ""},
		{"longest", "500 fit", "media_type=TEXT&text=" + long, ""},
		{"too long", "501 do not", "media_type=TEXT&text=a" + long, "text must be at most 500 characters"},
		{"accents", "a letter with an accent is one, however it is written", "media_type=TEXT&text=" + strings.Repeat("e%CC%81", 500), ""},
		{"scripts", "other scripts count 1 as well", "media_type=TEXT&text=" + strings.Repeat("%E8%A6%8B", 500), ""},
		{"emoji that fit", "an emoji costs its bytes in UTF-8: 125 of four", "media_type=TEXT&text=" + strings.Repeat("%F0%9F%8E%89", 125), ""},
		{"emoji that do not", "126 of four do not", "media_type=TEXT&text=" + strings.Repeat("%F0%9F%8E%89", 126), "at most 500"},
		{"a family of emoji", "25 bytes are 25", "media_type=TEXT&text=" + long[:475] + url.QueryEscape("👨‍👩‍👧‍👦"), ""},
		{"a family too many", "and not one more", "media_type=TEXT&text=" + long[:476] + url.QueryEscape("👨‍👩‍👧‍👦"), "at most 500"},
		{"five links", "five are allowed", "media_type=TEXT&text=" + url.QueryEscape("http://a.b/1 http://a.b/2 http://a.b/3 http://a.b/4 http://a.b/5"), ""},
		{"six links", "six are not", "media_type=TEXT&text=" + url.QueryEscape("http://a.b/1 http://a.b/2 http://a.b/3 http://a.b/4 http://a.b/5 http://a.b/6"), "THREADS_API__LINK_LIMIT_EXCEEDED"},
		{"the same link six times", "different ones count", "media_type=TEXT&text=" + url.QueryEscape(strings.Repeat("http://a.b/1 ", 6)), ""},
		{"no type", "it is required", "text=hello", "media_type is required"},
		{"unknown type", "an enumeration", "media_type=text&text=hello", "media_type must be one of"},
		{"no text", "so is the text", "media_type=TEXT", "text is required"},
		{"blank text", "white space is no text", "media_type=TEXT&text=%0A+", "text is required"},
		{"misspelt parameter", "what is not known is refused", "media_type=TEXT&text=a&reply_to=" + post, "Param reply_to is not known"},
		{"given twice", "nor is it guessed which one counts", "media_type=TEXT&text=a&text=b", "text was given more than once"},
		{"image in a text", "a text has none", "media_type=TEXT&text=a&image_url=https://a.b/c.jpg", "image_url is not allowed"},
		{"reply", "to a post", "media_type=TEXT&text=a&reply_to_id=" + post, ""},
		{"reply to nothing", "which must exist", "media_type=TEXT&text=a&reply_to_id=1", "reply_to_id"},
		{"bytes that are no text", "UTF-8 only", "media_type=TEXT&text=%FF", "valid UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.as("threads", http.MethodPost, threadsPath+"/threads", formType, tt.form)
			if tt.want == "" {
				if r.status != http.StatusOK || r.text("id") == "" {
					t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
				}
				return
			}
			if r.status < 400 || r.status >= 500 || !strings.Contains(r.text("error", "message"), tt.want) || r.text("error", "fbtrace_id") == "" {
				t.Errorf("%s: %d %s, want an error with %q", tt.reason, r.status, r.body, tt.want)
			}
		})
	}
	if diff := cmp.Diff([]string{"there"}, b.texts()); diff != "" {
		t.Errorf("containers are not posts (-want +got):\n%s", diff)
	}
}

func TestThreadsProcessing(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/threads/"+threadsID, `{"processing_ms":5000,"processing_error":"UNKNOWN"}`, http.StatusOK)
	id := b.container(url.Values{"text": {"hello"}})
	b.clock.Step(5*time.Second - time.Millisecond)
	if got := b.containerStatus(id); got != "IN_PROGRESS" {
		t.Errorf("before its time it is %s", got)
	}
	b.clock.Step(time.Millisecond)
	r := b.read("threads", "/threads/v1.0/"+id+"?fields=status,error_message")
	want := map[string]any{"id": id, "status": "ERROR", "error_message": "UNKNOWN"}
	if diff := cmp.Diff(any(want), r.at()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := b.publishContainer(id); r.at("error", "code") != 24.0 || len(b.texts()) != 0 {
		t.Errorf("publishing what has failed: %d %s", r.status, r.body)
	}
	b.control(http.MethodPut, "/accounts/threads/"+threadsID, `{"processing_ms":0,"processing_error":null}`, http.StatusOK)
	id = b.container(url.Values{"text": {"hello"}})
	if got := b.containerStatus(id); got != "FINISHED" {
		t.Errorf("without processing it is %s", got)
	}
}

func TestThreadsContainersAreTheAccounts(t *testing.T) {
	b := start(t, "")
	other := b.control(http.MethodPut, "/accounts/threads/2", "", http.StatusCreated).text("data", "access_token")
	id := b.container(url.Values{"text": {"mine"}})
	b.clock.Step(time.Second)
	publish := b.call(http.MethodPost, "/threads/v1.0/2/threads_publish", other, formType, "creation_id="+id)
	read := b.call(http.MethodGet, "/threads/v1.0/"+id+"?fields=status", other, "", "")
	if publish.at("error", "code") != 24.0 || read.at("error", "error_subcode") != 33.0 || len(b.texts()) != 0 {
		t.Errorf("another's container: publish %s, read %s", publish.body, read.body)
	}
	post := b.publishContainer(id).text("id")
	if r := b.call(http.MethodGet, "/threads/v1.0/"+post, other, "", ""); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("another's post: %s", r.body)
	}
	if r := b.publishContainer(post); r.at("error", "code") != 24.0 {
		t.Errorf("a post is no container: %s", r.body)
	}
	if r := b.form("threads", threadsPath+"/threads_publish", url.Values{"container_id": {id}}); r.at("error", "code") != 100.0 {
		t.Errorf("a misspelt creation_id: %s", r.body)
	}
	if r := b.read("threads", "/threads/v1.0/"+id+"?fields=permalink"); r.at("error", "code") != 100.0 {
		t.Errorf("a container has no permalink: %s", r.body)
	}
}

func TestThreadsPost(t *testing.T) {
	b := start(t, "")
	id := b.thread("See https://example.com #News today", nil)
	r := b.read("threads", "/threads/v1.0/"+id+"?fields=id,permalink,shortcode,timestamp,username,text,media_type,is_reply,owner")
	code := r.text("shortcode")
	want := map[string]any{
		"id": id, "shortcode": code, "timestamp": "2026-12-01T09:00:01+0000", "username": "herald_demo",
		"permalink": b.http.URL + "/threads/@herald_demo/post/" + code, "text": "See https://example.com #News today",
		"media_type": "TEXT_POST", "is_reply": false, "owner": map[string]any{"id": threadsID},
	}
	if diff := cmp.Diff(any(want), r.at()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page := b.call(http.MethodGet, "/threads/@herald_demo/post/"+code, "", "", "")
	if page.status != http.StatusOK || !strings.Contains(page.body, "#News") || !strings.Contains(page.body, `<a href="https://example.com"`) {
		t.Errorf("the permalink shows %d %s", page.status, page.body)
	}
	if len(id) != 17 || strings.Contains(r.text("permalink"), id) {
		t.Errorf("id %s, permalink %s: the one is not part of the other", id, r.text("permalink"))
	}
}

func TestThreadsReplies(t *testing.T) {
	b := start(t, "")
	root := b.thread("one", nil)
	second := b.thread("two", url.Values{"reply_to_id": {root}})
	third := b.thread("three", url.Values{"reply_to_id": {second}})
	want := []any{
		map[string]any{"id": third, "is_reply": true, "replied_to": map[string]any{"id": second}, "root_post": map[string]any{"id": root}},
		map[string]any{"id": second, "is_reply": true, "replied_to": map[string]any{"id": root}, "root_post": map[string]any{"id": root}},
	}
	r := b.read("threads", threadsPath+"/replies?fields=id,is_reply,replied_to,root_post")
	if diff := cmp.Diff(want, r.list("data")); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{root}, b.read("threads", threadsPath+"/threads").ids()); diff != "" {
		t.Errorf("posts without replies (-want +got):\n%s", diff)
	}
	other := b.control(http.MethodPut, "/accounts/threads/2", "", http.StatusCreated).text("data", "access_token")
	answer := func(to string) reply {
		return b.call(http.MethodPost, "/threads/v1.0/2/threads", other, formType, "media_type=TEXT&text=hi&reply_to_id="+to)
	}
	if r := answer(root); r.status != http.StatusOK {
		t.Errorf("a reply of another account: %d %s", r.status, r.body)
	}
}

func TestThreadsListing(t *testing.T) {
	b := start(t, "")
	var ids []string
	for range 7 {
		ids = append(ids, b.thread("post "+string(rune('a'+len(ids))), nil))
	}
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	tests := []struct {
		name, query string
		want        []string
	}{
		{"all", "", newest},
		{"some", "?limit=3", newest[:3]},
		{"since a second, with it", "?since=" + "1796115605", newest[:3]}, // 09:00:05
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.read("threads", threadsPath+"/threads"+tt.query)
			if diff := cmp.Diff(tt.want, r.ids()); r.status != http.StatusOK || diff != "" {
				t.Errorf("%d (-want +got):\n%s", r.status, diff)
			}
		})
	}

	r := b.read("threads", threadsPath+"/threads?limit=3&fields=id")
	got := r.ids()
	for len(r.ids()) == 3 { // a partial page is the last one
		if r.at("paging", "next") != nil {
			t.Fatalf("Meta's sample has cursors only: %s", r.body)
		}
		r = b.read("threads", threadsPath+"/threads?limit=3&fields=id&after="+r.text("paging", "cursors", "after"))
		got = append(got, r.ids()...)
	}
	if diff := cmp.Diff(newest, got); diff != "" {
		t.Errorf("the pages together are the listing (-want +got):\n%s", diff)
	}
	for _, query := range []string{"?limit=0", "?limit=101", "?since=soon", "?after=x", "?max=5", "?fields=likes"} {
		if r := b.read("threads", threadsPath+"/threads"+query); r.status != http.StatusBadRequest || r.at("error", "code") != 100.0 {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

func TestThreadsOperations(t *testing.T) {
	b := start(t, "")
	id := b.container(url.Values{"text": {"hello"}})
	b.clock.Step(time.Second)
	b.containerStatus(id)
	post := b.publishContainer(id).text("id")
	b.read("threads", "/threads/v1.0/"+post)
	b.read("threads", threadsPath+"/threads")
	b.read("threads", threadsPath+"/replies")
	b.read("threads", threadsPath+"/threads_publishing_limit")
	b.read("threads", "/threads/v1.0/me")
	b.read("threads", threadsPath)
	got := map[string]any{}
	for _, entry := range b.control(http.MethodGet, "/calls", "", http.StatusOK).list("data") {
		if object, _ := entry.(map[string]any); object["platform"] == "threads" {
			name, _ := object["operation"].(string)
			got[name] = object["count"]
		}
	}
	want := map[string]any{
		"create": 1.0, "status": 1.0, "publish": 1.0, "read": 1.0, "list": 2.0, "publishing_limit": 1.0, "identity": 2.0, "refresh_token": 0.0, "delete": 0.0, "exchange": 0.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOnePublicationOfAContainer publishes the same container concurrently. Exactly one call may create a post.
func TestOnePublicationOfAContainer(t *testing.T) {
	b := start(t, t.TempDir())
	id := b.container(url.Values{"text": {"once"}})
	b.clock.Step(time.Second)
	var (
		mu   sync.Mutex
		wins int
		wg   sync.WaitGroup
	)
	for range 16 {
		wg.Go(func() {
			r, err := b.try(http.MethodPost, threadsPath+"/threads_publish", "threads-access-demo", formType, "creation_id="+id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && r.status == http.StatusOK:
				wins++
			case err != nil || r.at("error", "code") != 24.0:
				t.Errorf("%v %d %s", err, r.status, r.body)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{"once"}, b.texts()); wins != 1 || diff != "" {
		t.Errorf("%d of 16 published (-want +got):\n%s", wins, diff)
	}
}

// Users may reach the sandbox at a different address than Herald, as in a cluster.
func TestAddressesForPeopleAndForPrograms(t *testing.T) {
	const public = "http://127.0.0.1:19100"
	b := &box{t: t, clock: newClock(), siteURL: public}
	b.open("")
	post := b.read("threads", "/threads/v1.0/"+b.thread("hello", nil)+"?fields=permalink")
	icon := b.read("threads", "/threads/v1.0/me?fields=threads_profile_picture_url")
	for _, tt := range []struct{ reason, got, want string }{
		{"people open a post", post.text("permalink"), public},
		{"and see the account's picture", icon.text("threads_profile_picture_url"), public},
		{"Herald sends a file", b.session(plainVideo, 10), b.http.URL},
	} {
		if !strings.HasPrefix(tt.got, tt.want+"/") {
			t.Errorf("%s: %q does not begin with %s", tt.reason, tt.got, tt.want)
		}
	}
}
