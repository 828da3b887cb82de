// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
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
	pageID   = "104000000000001"
	pagePath = "/facebook/v25.0/" + pageID
)

// onPage posts a text on the demo Page and returns the post's id.
func (b *box) onPage(message string) string {
	b.t.Helper()
	r := b.form("facebook", pagePath+"/feed", url.Values{"message": {message}})
	if r.status != http.StatusOK || !strings.HasPrefix(r.text("id"), pageID+"_") {
		b.t.Fatalf("post %q: %d %s", message, r.status, r.body)
	}
	return r.text("id")
}

func TestFacebookFeed(t *testing.T) {
	tests := []struct {
		name, reason, form string
		code               any    // of the error; nil when the post is made
		want               string // part of the error's message
	}{
		{"message", "the plain case", "message=hello", nil, ""},
		{"message and link", "both go together", "message=hello&link=https://example.com/a", nil, ""},
		{"link alone", "a link is enough", "link=https://example.com/a", nil, ""},
		{"said to be published", "as it is by default", "message=hello&published=true", nil, ""},
		{"longest", "63206 characters, not bytes", "message=" + strings.Repeat("%E8%A6%8B", 63206), nil, ""},
		{"too long", "and no more", "message=" + strings.Repeat("a", 63207), 100.0, "at most 63206"},
		{"nothing", "something must be there", "", 100.0, "Missing message or attachment"},
		{"blank message", "white space is nothing", "message=+%0A", 100.0, "Missing message or attachment"},
		{"misspelt parameter", "what is not known is refused", "message=a&text=b", 100.0, "Param text is not known"},
		{"X's parameter", "also what others call it", "text=a", 100.0, "Param text"},
		{"given twice", "nor is it guessed which one counts", "message=a&message=b", 100.0, "more than once"},
		{"link without a scheme", "no address", "message=a&link=example.com", 1500.0, "url you supplied is invalid"},
		{"link to a script", "nothing that is not the web's", "message=a&link=javascript:alert(1)", 1500.0, "url you supplied is invalid"},
		{"flag that is none", "true or false", "message=a&published=maybe", 100.0, "published must be a boolean"},
		{"unknown field of the answer", "refused before anything is made", "message=a&fields=id,url", 100.0, "nonexisting field (url)"},
		{"photo that nobody uploaded", "it is not there", "message=a&attached_media[0]=%7B%22media_fbid%22%3A%221%22%7D", 100.0, "attached_media"},
		{"scheduled", "what is not simulated says so", "message=a&published=false&scheduled_publish_time=1796200000", 100.0, "scheduled_publish_time"},
		{"scheduled by type", "as well", "message=a&published=false&unpublished_content_type=SCHEDULED", 100.0, "unpublished_content_type"},
		{"draft that is published", "a contradiction", "message=a&unpublished_content_type=DRAFT", 100.0, "published=false"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			r := b.as("facebook", http.MethodPost, pagePath+"/feed", formType, tt.form)
			if r.at("error", "code") != tt.code || !strings.Contains(r.text("error", "message"), tt.want) {
				t.Errorf("%s: %d %s, want code %v with %q", tt.reason, r.status, r.body, tt.code, tt.want)
			}
			if posted := len(b.texts()) == 1; posted != (tt.code == nil) {
				t.Errorf("%s: posted %v", tt.reason, posted)
			}
			if r.header.Get("X-App-Usage") == "" {
				t.Errorf("%s: no X-App-Usage", tt.reason)
			}
		})
	}
}

func TestFacebookTakesParametersFromAnywhere(t *testing.T) {
	b := start(t, "")
	for name, r := range map[string]reply{
		"JSON":        b.as("facebook", http.MethodPost, pagePath+"/feed", "application/json", `{"message":"json","published":true}`),
		"query":       b.as("facebook", http.MethodPost, pagePath+"/feed?message=query", "", ""),
		"me":          b.form("facebook", "/facebook/v25.0/me/feed", url.Values{"message": {"me"}}),
		"new version": b.form("facebook", "/facebook/v26.0/"+pageID+"/feed", url.Values{"message": {"new"}}),
	} {
		if r.status != http.StatusOK || !strings.HasPrefix(r.text("id"), pageID+"_") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	for name, r := range map[string]reply{
		"another Page": b.form("facebook", "/facebook/v25.0/123/feed", url.Values{"message": {"a"}}),
		"old version":  b.form("facebook", "/facebook/v2.0/"+pageID+"/feed", url.Values{"message": {"a"}}),
		"no version":   b.form("facebook", "/facebook/"+pageID+"/feed", url.Values{"message": {"a"}}),
		"videos":       b.form("facebook", pagePath+"/videos", url.Values{"file_url": {"https://a.b/c.mp4"}}),
		"reels":        b.form("facebook", pagePath+"/video_reels", url.Values{"upload_phase": {"start"}}),
	} {
		if r.status != http.StatusBadRequest || r.text("error", "fbtrace_id") == "" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

func TestFacebookReadAfterWrite(t *testing.T) {
	b := start(t, "")
	r := b.form("facebook", pagePath+"/feed?fields=id,permalink_url", url.Values{"message": {"hello"}})
	id := r.text("id")
	want := map[string]any{"id": id, "permalink_url": b.http.URL + "/facebook/" + id}
	if diff := cmp.Diff(any(want), r.at()); diff != "" || !strings.HasPrefix(id, pageID+"_") {
		t.Errorf("%d (-want +got):\n%s", r.status, diff)
	}
	if diff := cmp.Diff(any(want), b.read("facebook", "/facebook/v25.0/"+id+"?fields=permalink_url").at()); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	plain := map[string]any{"id": id, "created_time": "2026-12-01T09:00:00+0000", "message": "hello"}
	if diff := cmp.Diff(any(plain), b.read("facebook", "/facebook/v25.0/"+id).at()); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
	page := b.call(http.MethodGet, "/facebook/"+id, "", "", "")
	if page.status != http.StatusOK || !strings.Contains(page.body, "hello") {
		t.Errorf("the permalink shows %d %s", page.status, page.body)
	}
	other := b.control(http.MethodPut, "/accounts/facebook/2", "", http.StatusCreated).text("data", "access_token")
	if r := b.call(http.MethodGet, "/facebook/v25.0/"+id, other, "", ""); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("another Page's post: %s", r.body)
	}
	if r := b.read("facebook", "/facebook/v25.0/"+pageID+"_1"); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("no post: %s", r.body)
	}
}

func TestFacebookLink(t *testing.T) {
	b := start(t, "")
	r := b.form("facebook", pagePath+"/feed", url.Values{"message": {"see"}, "link": {"https://example.com/a"}, "fields": {"message,attachments{media_type,target{url}},from{name},status_type"}})
	want := map[string]any{
		"id": r.text("id"), "message": "see", "status_type": "shared_story", "from": map[string]any{"id": pageID, "name": "Herald Demo"},
		"attachments": map[string]any{"data": []any{
			map[string]any{"media_type": "link", "target": map[string]any{"url": "https://example.com/a"}},
		}},
	}
	if diff := cmp.Diff(any(want), r.at()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page := b.call(http.MethodGet, "/facebook/"+r.text("id"), "", "", "")
	if !strings.Contains(page.body, `<a href="https://example.com/a"`) {
		t.Errorf("the page has no card:\n%s", page.body)
	}
}

func TestFacebookDuplicates(t *testing.T) {
	b := start(t, "")
	b.onPage("same")
	post := func(values url.Values) reply { return b.form("facebook", pagePath+"/feed", values) }
	refused := func(reason string, r reply) {
		t.Helper()
		if r.status != http.StatusBadRequest || r.at("error", "code") != 506.0 || r.at("error", "is_transient") != false {
			t.Errorf("%s: %d %s, want code 506", reason, r.status, r.body)
		}
	}
	refused("the same twice in a row", post(url.Values{"message": {"same"}}))
	refused("but for white space around it", post(url.Values{"message": {" same\n"}}))
	b.clock.Step(30 * 24 * time.Hour)
	refused("however long ago", post(url.Values{"message": {"same"}}))
	if r := post(url.Values{"message": {"same"}, "link": {"https://example.com"}}); r.status != http.StatusOK {
		t.Errorf("with a link it is another post: %d %s", r.status, r.body)
	}
	refused("the same link as well", post(url.Values{"message": {"same"}, "link": {"https://example.com"}}))
	b.onPage("same") // the last one was another
	if r := post(url.Values{"message": {"same"}, "published": {"false"}}); r.status != http.StatusOK {
		t.Errorf("what is not published repeats nothing: %d %s", r.status, r.body)
	}
	if r := post(url.Values{"message": {"another"}, "published": {"false"}}); r.status != http.StatusOK {
		t.Errorf("another one that is not published: %d %s", r.status, r.body)
	}
	refused("and what is not published does not stand between", post(url.Values{"message": {"same"}}))
	other := b.control(http.MethodPut, "/accounts/facebook/2", "", http.StatusCreated).text("data", "access_token")
	if r := b.call(http.MethodPost, "/facebook/v25.0/2/feed", other, formType, "message=same"); r.status != http.StatusOK {
		t.Errorf("another Page may post the same: %d %s", r.status, r.body)
	}
}

func TestFacebookUnpublished(t *testing.T) {
	b := start(t, "")
	r := b.form("facebook", pagePath+"/feed?fields=id,is_published", url.Values{"message": {"draft"}, "published": {"false"}, "unpublished_content_type": {"DRAFT"}})
	if r.at("is_published") != false {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got := b.read("facebook", pagePath+"/published_posts").ids(); len(got) != 0 {
		t.Errorf("it is listed: %v", got)
	}
	if page := b.call(http.MethodGet, "/facebook/"+r.text("id"), "", "", ""); page.status != http.StatusForbidden || strings.Contains(page.body, "draft") {
		t.Errorf("it is visible: %d %s", page.status, page.body)
	}
	if post := b.control(http.MethodGet, "/posts?platform=facebook", "", http.StatusOK); post.at("data", "0", "draft") != true {
		t.Errorf("the control API: %s", post.body)
	}
	if page := b.call(http.MethodGet, "/accounts/facebook/"+pageID, "", "", ""); !strings.Contains(page.body, "Not public") {
		t.Errorf("the feed does not say so:\n%s", page.body)
	}
}

func TestFacebookListing(t *testing.T) {
	b := start(t, "")
	var ids []string
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		ids = append([]string{b.onPage(text)}, ids...)
		b.clock.Step(time.Second)
	}
	for query, want := range map[string][]string{
		"":                                   ids,
		"?limit=2":                           ids[:2],
		"?since=1796115603":                  ids[:2], // 09:00:03, with that second
		"?until=1796115601":                  ids[3:],
		"?since=1796115601&until=1796115602": ids[2:4],
		"?since=2026-12-01T09:00:04%2B0000":  ids[:1],
		"?fields=id,message,created_time&limit=1": ids[:1],
	} {
		for _, edge := range []string{"/published_posts", "/feed"} {
			if diff := cmp.Diff(want, b.read("facebook", pagePath+edge+query).ids()); diff != "" {
				t.Errorf("%s%s (-want +got):\n%s", edge, query, diff)
			}
		}
	}
	first := b.read("facebook", pagePath+"/published_posts?limit=2&fields=message,attachments{media_type,target{id}}")
	if diff := cmp.Diff(any(map[string]any{"id": ids[0], "message": "e"}), first.at("data", "0")); diff != "" {
		t.Errorf("a post without attachments (-want +got):\n%s", diff)
	}
	second := b.read("facebook", pagePath+"/published_posts?limit=2&after="+first.text("paging", "cursors", "after"))
	third := b.read("facebook", pagePath+"/published_posts?limit=2&after="+second.text("paging", "cursors", "after"))
	if diff := cmp.Diff(ids, slices.Concat(first.ids(), second.ids(), third.ids())); diff != "" || third.text("paging", "next") != "" {
		t.Errorf("the pages together are the listing, next %q (-want +got):\n%s", third.text("paging", "next"), diff)
	}
}

func TestFacebookListingLag(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/facebook/"+pageID, `{"listing_lag_ms":2000}`, http.StatusOK)
	id := b.onPage("slow to appear")
	if got := b.read("facebook", pagePath+"/published_posts").ids(); len(got) != 0 {
		t.Errorf("listed before its time: %v", got)
	}
	if r := b.read("facebook", "/facebook/v25.0/"+id); r.status != http.StatusOK {
		t.Errorf("the post itself is there at once: %d", r.status)
	}
	b.clock.Step(2 * time.Second)
	if diff := cmp.Diff([]string{id}, b.read("facebook", pagePath+"/published_posts").ids()); diff != "" {
		t.Errorf("not listed in time (-want +got):\n%s", diff)
	}
}

func TestFacebookQuota(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/facebook/"+pageID, `{"quota":1}`, http.StatusOK)
	if r := b.form("facebook", pagePath+"/feed", url.Values{"message": {"draft"}, "published": {"false"}}); r.status != http.StatusOK {
		t.Fatalf("what is not published does not count: %d %s", r.status, r.body)
	}
	b.onPage("one")
	r := b.form("facebook", pagePath+"/feed", url.Values{"message": {"two"}})
	if r.status != http.StatusBadRequest || r.at("error", "code") != 368.0 || r.at("error", "error_subcode") != 1390008.0 {
		t.Errorf("%d %s", r.status, r.body)
	}
	b.clock.Step(24 * time.Hour)
	b.onPage("two")
}

func TestFacebookScopes(t *testing.T) {
	b := start(t, "")
	// A Threads token is no Page token, and neither is none.
	for _, token := range []string{"threads-access-demo", ""} {
		if r := b.call(http.MethodPost, pagePath+"/feed", token, formType, "message=a"); r.status != http.StatusBadRequest || len(b.texts()) != 0 {
			t.Errorf("token %q: %d %s", token, r.status, r.body)
		}
	}
}

// TestFaultOnFacebookFeed lets the publication go wrong in every way, and then looks as a publisher would.
func TestFaultOnFacebookFeed(t *testing.T) {
	tests := []struct {
		name, reason, fault string
		wantStatus          int // 0: the connection is closed without an answer
		want                map[string]any
		wantActed           bool
	}{
		{"status", "an outage before acting publishes nothing", `"kind":"status","status":502`, 502, map[string]any{"code": 2.0, "is_transient": true}, false},
		{"drop before", "the connection ends and nothing was done", `"kind":"drop_before"`, 0, nil, false},
		{"drop after", "the connection ends though the post is out", `"kind":"drop_after"`, 0, nil, true},
		{"error after", "a failure is answered though the post is out", `"kind":"error_after"`, 500, map[string]any{"code": 1.0}, true},
		{"rate limit", "nothing was done", `"kind":"rate_limit"`, 400, map[string]any{"code": 32.0, "is_transient": false}, false},
		{"token expired", "nothing was done", `"kind":"token_expired"`, 400, map[string]any{"code": 190.0, "error_subcode": 463.0}, false},
		{"token revoked", "nothing was done", `"kind":"token_revoked"`, 400, map[string]any{"code": 190.0, "error_subcode": 460.0}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			b.fault(`{"platform":"facebook","operation":"publish","account":"` + pageID + `",` + tt.fault + `}`)
			r, err := b.try(http.MethodPost, pagePath+"/feed", "facebook-access-demo", formType, "message=hello")
			if (err != nil) != (tt.wantStatus == 0) || r.status != tt.wantStatus {
				t.Errorf("%s: status %d, error %v, want status %d", tt.reason, r.status, err, tt.wantStatus)
			}
			for name, want := range tt.want {
				if got := r.at("error", name); got != want {
					t.Errorf("%s: %s is %v, want %v in %s", tt.reason, name, got, want, r.body)
				}
			}
			if listed := len(b.read("facebook", pagePath+"/published_posts").ids()) == 1; listed != tt.wantActed {
				t.Errorf("%s: listed %v, want %v", tt.reason, listed, tt.wantActed)
			}
			again := b.form("facebook", pagePath+"/feed", url.Values{"message": {"hello"}})
			if (again.at("error", "code") == 506.0) != tt.wantActed {
				t.Errorf("%s: posting again: %d %s", tt.reason, again.status, again.body)
			}
			if diff := cmp.Diff([]string{"hello"}, b.texts()); diff != "" {
				t.Errorf("%s: there is one post in the end (-want +got):\n%s", tt.reason, diff)
			}
			if n := b.callsOn("facebook", "publish"); n != 2 {
				t.Errorf("%d publications counted, want 2", n)
			}
		})
	}
}

// TestOneDuplicateWinsOnFacebook sends the same message many times at once: exactly one may be posted.
func TestOneDuplicateWinsOnFacebook(t *testing.T) {
	b := start(t, "")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, _ = b.try(http.MethodPost, pagePath+"/feed", "facebook-access-demo", formType, "message=same")
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{"same"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
