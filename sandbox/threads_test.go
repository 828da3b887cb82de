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

// container makes a container of the demo account and returns its id.
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

// thread posts a text on Threads and returns the post's id.
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

// ids are those of the nodes of a listing.
func (r reply) ids() []string {
	out := []string{}
	for _, item := range r.list("data") {
		node, _ := item.(map[string]any)
		id, _ := node["id"].(string)
		out = append(out, id)
	}
	return out
}

func TestThreadsContainers(t *testing.T) {
	b := start(t, "")
	post := b.thread("there", nil)
	long := strings.Repeat("a", 500)
	tests := []struct {
		name, reason, form string
		want               string // part of the error's message; empty when the container is made
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
		{"five links", "five are allowed", "media_type=TEXT&text=" + url.QueryEscape("http://a.b/1 http://a.b/2 http://a.b/3 http://a.b/4") + "&link_attachment=https://a.b/5", ""},
		{"six links", "six are not, the attached one counts", "media_type=TEXT&text=" + url.QueryEscape("http://a.b/1 http://a.b/2 http://a.b/3 http://a.b/4 http://a.b/5") + "&link_attachment=https://a.b/6", "THREADS_API__LINK_LIMIT_EXCEEDED"},
		{"the same link six times", "different ones count", "media_type=TEXT&text=" + url.QueryEscape(strings.Repeat("http://a.b/1 ", 6)), ""},
		{"all that goes with a text", "documented options are taken", "media_type=TEXT&text=a&reply_control=mentioned_only&topic_tag=news&link_attachment=https://a.b&enable_reply_approvals=true&quote_post_id=" + post, ""},
		{"extras", "JSON where JSON is wanted", "media_type=TEXT&text=a&poll_attachment=%7B%22option_a%22%3A%22x%22%7D&text_entities=%5B%5D", ""},
		{"no type", "it is required", "text=hello", "media_type is required"},
		{"unknown type", "an enumeration", "media_type=text&text=hello", "media_type must be one of"},
		{"no text", "so is the text", "media_type=TEXT", "text is required"},
		{"blank text", "white space is no text", "media_type=TEXT&text=%0A+", "text is required"},
		{"misspelt parameter", "what is not known is refused", "media_type=TEXT&text=a&reply_to=" + post, "Param reply_to is not known"},
		{"given twice", "nor is it guessed which one counts", "media_type=TEXT&text=a&text=b", "text was given more than once"},
		{"image in a text", "a text has none", "media_type=TEXT&text=a&image_url=https://a.b/c.jpg", "image_url is not allowed"},
		{"reply", "to a post", "media_type=TEXT&text=a&reply_to_id=" + post, ""},
		{"reply to nothing", "which must exist", "media_type=TEXT&text=a&reply_to_id=1", "reply_to_id"},
		{"quote of nothing", "so must what is quoted", "media_type=TEXT&text=a&quote_post_id=1", "quote_post_id"},
		{"unknown reply control", "an enumeration", "media_type=TEXT&text=a&reply_control=nobody", "reply_control must be one of"},
		{"topic with a full stop", "not allowed in topics", "media_type=TEXT&text=a&topic_tag=a.b", "topic_tag"},
		{"topic of nothing", "too short", "media_type=TEXT&text=a&topic_tag=", "topic_tag"},
		{"link without a host", "no address", "media_type=TEXT&text=a&link_attachment=example", "link_attachment"},
		{"flag that is none", "true or false", "media_type=TEXT&text=a&is_ghost_post=maybe", "is_ghost_post must be a boolean"},
		{"poll that is no JSON", "nothing to read", "media_type=TEXT&text=a&poll_attachment=x", "poll_attachment must be JSON"},
		{"countries", "a feature that the profile does not have", "media_type=TEXT&text=a&allowlisted_country_codes=DE", "THREADS_API__FEATURE_NOT_AVAILABLE"},
		{"place", "a scope that the token does not have", "media_type=TEXT&text=a&location_id=1", "threads_location_tagging"},
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

func TestThreadsTakesParametersFromAnywhere(t *testing.T) {
	b := start(t, "")
	for name, r := range map[string]reply{
		"JSON":  b.as("threads", http.MethodPost, threadsPath+"/threads", "application/json", `{"media_type":"TEXT","text":"a","enable_reply_approvals":true}`),
		"query": b.as("threads", http.MethodPost, threadsPath+"/threads?media_type=TEXT&text=a", "", ""),
		"me":    b.form("threads", "/threads/v1.0/me/threads", url.Values{"media_type": {"TEXT"}, "text": {"a"}}),
		"token in the form": b.call(http.MethodPost, threadsPath+"/threads", "", formType,
			"media_type=TEXT&text=a&access_token=threads-access-demo"),
	} {
		if r.status != http.StatusOK || r.text("id") == "" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	for name, r := range map[string]reply{
		"a list as JSON":      b.as("threads", http.MethodPost, threadsPath+"/threads", "application/json", `["TEXT"]`),
		"two values":          b.as("threads", http.MethodPost, threadsPath+"/threads", "application/json", `{"media_type":"TEXT"} {}`),
		"a form that is none": b.as("threads", http.MethodPost, threadsPath+"/threads", "text/plain", `media_type=TEXT&text=a`),
		"form and query":      b.as("threads", http.MethodPost, threadsPath+"/threads?text=b", formType, `media_type=TEXT&text=a`),
		"another's id":        b.form("threads", "/threads/v1.0/123/threads", url.Values{"media_type": {"TEXT"}, "text": {"a"}}),
	} {
		if r.status != http.StatusBadRequest || r.at("error", "code") != 100.0 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

func TestThreadsContainerLife(t *testing.T) {
	b := start(t, "")
	id := b.container(url.Values{"text": {"hello"}})
	refused := func(reason string) {
		t.Helper()
		r := b.publishContainer(id)
		if r.status != http.StatusBadRequest || r.at("error", "code") != 24.0 || r.at("error", "is_transient") != false {
			t.Errorf("%s: %d %s, want code 24", reason, r.status, r.body)
		}
	}
	if got := b.containerStatus(id); got != "IN_PROGRESS" {
		t.Errorf("at first it is %s", got)
	}
	refused("publishing too early")
	b.clock.Step(199 * time.Millisecond)
	refused("publishing a moment too early")
	b.clock.Step(time.Millisecond)
	if got := b.containerStatus(id); got != "FINISHED" || len(b.texts()) != 0 {
		t.Errorf("then it is %s, and %q is posted", got, b.texts())
	}
	r := b.publishContainer(id)
	if r.status != http.StatusOK || b.containerStatus(id) != "PUBLISHED" {
		t.Errorf("published: %d %s, and it is %s", r.status, r.body, b.containerStatus(id))
	}
	refused("publishing once more")
	b.clock.Step(25 * time.Hour)
	if got := b.containerStatus(id); got != "PUBLISHED" {
		t.Errorf("a day later it is %s", got)
	}
	refused("publishing once more a day later")
	if diff := cmp.Diff([]string{"hello"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	id = b.container(url.Values{"text": {"late"}})
	b.clock.Step(24*time.Hour - time.Millisecond)
	if got := b.containerStatus(id); got != "FINISHED" {
		t.Errorf("just before a day it is %s", got)
	}
	b.clock.Step(time.Millisecond)
	if got := b.containerStatus(id); got != "EXPIRED" {
		t.Errorf("after a day it is %s", got)
	}
	refused("publishing what has expired")
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
	id := b.thread("See https://example.com #News today", url.Values{"link_attachment": {"https://example.com/card"}})
	r := b.read("threads", "/threads/v1.0/"+id+"?fields=id,permalink,shortcode,timestamp,username,text,media_type,topic_tag,link_attachment_url,is_reply,reply_audience,owner")
	code := r.text("shortcode")
	want := map[string]any{
		"id": id, "shortcode": code, "timestamp": "2026-12-01T09:00:01+0000", "username": "herald_demo",
		"permalink": b.http.URL + "/threads/@herald_demo/post/" + code, "text": "See https://example.com #News today",
		"media_type": "TEXT_POST", "topic_tag": "News", "link_attachment_url": "https://example.com/card", "is_reply": false,
		"reply_audience": "everyone", "owner": map[string]any{"id": threadsID},
	}
	if diff := cmp.Diff(any(want), r.at()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page := b.call(http.MethodGet, "/threads/@herald_demo/post/"+code, "", "", "")
	if page.status != http.StatusOK || !strings.Contains(page.body, "#News") || !strings.Contains(page.body, "https://example.com/card") {
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
		map[string]any{"id": third, "is_reply": true, "has_replies": false, "replied_to": map[string]any{"id": second}, "root_post": map[string]any{"id": root}},
		map[string]any{"id": second, "is_reply": true, "has_replies": true, "replied_to": map[string]any{"id": root}, "root_post": map[string]any{"id": root}},
	}
	r := b.read("threads", threadsPath+"/replies?fields=id,is_reply,has_replies,replied_to,root_post")
	if diff := cmp.Diff(want, r.list("data")); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{root}, b.read("threads", threadsPath+"/threads").ids()); diff != "" {
		t.Errorf("posts without replies (-want +got):\n%s", diff)
	}
	closed := b.thread("closed", url.Values{"reply_control": {"followers_only"}})
	other := b.control(http.MethodPut, "/accounts/threads/2", "", http.StatusCreated).text("data", "access_token")
	answer := func(to string) reply {
		return b.call(http.MethodPost, "/threads/v1.0/2/threads", other, formType, "media_type=TEXT&text=hi&reply_to_id="+to)
	}
	if r := answer(closed); r.status != http.StatusForbidden || r.at("error", "code") != 10.0 {
		t.Errorf("a reply where none is welcome: %d %s", r.status, r.body)
	}
	if r := answer(root); r.status != http.StatusOK {
		t.Errorf("a reply where all are: %d %s", r.status, r.body)
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
		{"until a second, with it", "?until=" + "1796115602", newest[5:]},
		{"between dates", "?since=2026-12-01T09:00:03Z&until=2026-12-01T09:00:04%2B0000", newest[3:5]},
		{"the day before", "?until=2026-11-30", []string{}},
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
	for r.text("paging", "next") != "" {
		next, err := url.Parse(r.text("paging", "next"))
		if err != nil || next.Query().Get("after") != r.text("paging", "cursors", "after") || next.Query().Has("access_token") {
			t.Fatalf("next is %q", r.text("paging", "next"))
		}
		r = b.read("threads", next.RequestURI())
		got = append(got, r.ids()...)
	}
	if diff := cmp.Diff(newest, got); diff != "" {
		t.Errorf("the pages together are the listing (-want +got):\n%s", diff)
	}
	back := b.read("threads", threadsPath+"/threads?limit=3&before="+r.text("paging", "cursors", "before"))
	if diff := cmp.Diff(newest[3:6], back.ids()); diff != "" {
		t.Errorf("the page before the last (-want +got):\n%s", diff)
	}
	for _, query := range []string{"?limit=0", "?limit=101", "?since=soon", "?after=x", "?max=5", "?since=2&until=1", "?fields=likes"} {
		if r := b.read("threads", threadsPath+"/threads"+query); r.status != http.StatusBadRequest || r.at("error", "code") != 100.0 {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

func TestThreadsListingLag(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/threads/"+threadsID, `{"listing_lag_ms":30000}`, http.StatusOK)
	id := b.thread("slow to appear", nil)
	b.clock.Step(30*time.Second - time.Millisecond)
	if got := b.read("threads", threadsPath+"/threads").ids(); len(got) != 0 {
		t.Errorf("listed before its time: %v", got)
	}
	if r := b.read("threads", "/threads/v1.0/"+id); r.status != http.StatusOK {
		t.Errorf("the post itself is there at once: %d %s", r.status, r.body)
	}
	b.clock.Step(time.Millisecond)
	b.fault(`{"platform":"threads","operation":"list","kind":"stale_list","delay_ms":60000}`)
	if got := b.read("threads", threadsPath+"/threads").ids(); len(got) != 0 {
		t.Errorf("a stale listing shows %v", got)
	}
	if diff := cmp.Diff([]string{id}, b.read("threads", threadsPath+"/threads").ids()); diff != "" {
		t.Errorf("the next one (-want +got):\n%s", diff)
	}
}

func TestThreadsQuota(t *testing.T) {
	b := start(t, "")
	limit := func() any {
		return b.read("threads", threadsPath+"/threads_publishing_limit?fields=quota_usage,config,reply_quota_usage,reply_config").at("data", "0")
	}
	b.control(http.MethodPut, "/accounts/threads/"+threadsID, `{"quota":2}`, http.StatusOK)
	root := b.thread("one", nil)
	b.thread("two", nil)
	b.thread("a reply", url.Values{"reply_to_id": {root}}) // replies have a quota of their own
	b.clock.Step(time.Hour)
	full := b.container(url.Values{"text": {"three"}})
	b.clock.Step(time.Second)
	if r := b.publishContainer(full); r.status != http.StatusBadRequest || r.at("error", "code") != 9.0 || r.at("error", "error_subcode") != 2207042.0 {
		t.Errorf("beyond the quota: %d %s", r.status, r.body)
	}
	if got := b.containerStatus(full); got != "FINISHED" {
		t.Errorf("the container is %s, want it to wait", got)
	}
	day := map[string]any{
		"quota_usage": 2.0, "config": map[string]any{"quota_total": 2.0, "quota_duration": 86400.0},
		"reply_quota_usage": 1.0, "reply_config": map[string]any{"quota_total": 1000.0, "quota_duration": 86400.0},
	}
	if diff := cmp.Diff(any(day), limit()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.clock.Step(23 * time.Hour)
	if r := b.publishContainer(full); r.status != http.StatusOK {
		t.Errorf("a day after the first there is room: %d %s", r.status, r.body)
	}
	b.control(http.MethodPut, "/accounts/threads/"+threadsID, `{"quota":null}`, http.StatusOK)
	day["config"] = map[string]any{"quota_total": 250.0, "quota_duration": 86400.0}
	day["quota_usage"], day["reply_quota_usage"] = 1.0, 0.0
	if diff := cmp.Diff(any(day), limit()); diff != "" {
		t.Errorf("the documented quota is told, not enforced (-want +got):\n%s", diff)
	}
}

func TestThreadsAutoPublish(t *testing.T) {
	b := start(t, "")
	r := b.form("threads", threadsPath+"/threads", url.Values{"media_type": {"TEXT"}, "text": {"at once"}, "auto_publish_text": {"true"}})
	if diff := cmp.Diff([]string{"at once"}, b.texts()); diff != "" || r.status != http.StatusOK {
		t.Errorf("%d %s: a container that publishes itself is public (-want +got):\n%s", r.status, r.body, diff)
	}
}

// TestFaultOnThreadsPublish lets the publication go wrong in every way, and then finds out as a publisher would.
func TestFaultOnThreadsPublish(t *testing.T) {
	tests := []struct {
		name, reason, fault string
		wantStatus          int // 0: the connection is closed without an answer
		want                map[string]any
		wantActed           bool
	}{
		{"status", "an outage before acting publishes nothing", `"kind":"status","status":503`, 503, map[string]any{"code": 2.0, "is_transient": true}, false},
		{"plain failure", "an unknown error says nothing", `"kind":"status"`, 500, map[string]any{"code": 1.0, "is_transient": false}, false},
		{"drop before", "the connection ends and nothing was done", `"kind":"drop_before"`, 0, nil, false},
		{"drop after", "the connection ends though the post is out", `"kind":"drop_after"`, 0, nil, true},
		{"error after", "a failure is answered though the post is out", `"kind":"error_after","status":500`, 500, map[string]any{"code": 1.0}, true},
		{"rate limit", "nothing was done", `"kind":"rate_limit"`, 403, map[string]any{"code": 4.0, "is_transient": true}, false},
		{"token expired", "nothing was done", `"kind":"token_expired"`, 400, map[string]any{"code": 190.0, "error_subcode": 463.0}, false},
		{"token revoked", "nothing was done", `"kind":"token_revoked"`, 400, map[string]any{"code": 190.0, "error_subcode": 460.0}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			id := b.container(url.Values{"text": {"hello"}})
			b.clock.Step(time.Second)
			b.fault(`{"platform":"threads","operation":"publish",` + tt.fault + `}`)
			r, err := b.try(http.MethodPost, threadsPath+"/threads_publish", "threads-access-demo", formType, "creation_id="+id)
			if (err != nil) != (tt.wantStatus == 0) || r.status != tt.wantStatus {
				t.Errorf("%s: status %d, error %v, want status %d", tt.reason, r.status, err, tt.wantStatus)
			}
			for name, want := range tt.want {
				if got := r.at("error", name); got != want {
					t.Errorf("%s: %s is %v, want %v in %s", tt.reason, name, got, want, r.body)
				}
			}
			want := map[bool]string{true: "PUBLISHED", false: "FINISHED"}[tt.wantActed]
			if got := b.containerStatus(id); got != want {
				t.Errorf("%s: the container is %s, want %s", tt.reason, got, want)
			}
			again := b.publishContainer(id)
			if (again.at("error", "code") == 24.0) != tt.wantActed {
				t.Errorf("%s: publishing again: %d %s", tt.reason, again.status, again.body)
			}
			if diff := cmp.Diff([]string{"hello"}, b.texts()); diff != "" {
				t.Errorf("%s: there is one post in the end (-want +got):\n%s", tt.reason, diff)
			}
			if n := b.callsOn("threads", "publish"); n != 2 {
				t.Errorf("%d publications counted, want 2", n)
			}
		})
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
		"create": 1.0, "status": 1.0, "publish": 1.0, "read": 1.0, "list": 2.0, "publishing_limit": 1.0, "identity": 2.0, "refresh_token": 0.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOnePublicationOfAContainer publishes the same container many times at once: exactly one post may come of it.
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
