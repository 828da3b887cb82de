// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	pageID   = "104000000000001"
	pagePath = "/facebook/v25.0/" + pageID
)

// onPage publishes a text on the demo Page and returns the post's ID.
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
		code               any    // of the error; nil for success
		want               string // part of the error's message
	}{
		{"message", "the plain case", "message=hello", nil, ""},
		{"longest", "63206 characters, not bytes", "message=" + strings.Repeat("%E8%A6%8B", 63206), nil, ""},
		{"too long", "and no more", "message=" + strings.Repeat("a", 63207), 100.0, "at most 63206"},
		{"nothing", "something must be there", "", 100.0, "Missing message or attachment"},
		{"blank message", "white space is nothing", "message=+%0A", 100.0, "Missing message or attachment"},
		{"misspelt parameter", "what is not known is refused", "message=a&text=b", 100.0, "Param text is not known"},
		{"X's parameter", "also what others call it", "text=a", 100.0, "Param text"},
		{"given twice", "nor is it guessed which one counts", "message=a&message=b", 100.0, "more than once"},
		{"unknown field of the answer", "refused before anything is made", "message=a&fields=id,url", 100.0, "nonexisting field (url)"},
		{"photo that was not uploaded", "it is not there", "message=a&attached_media[0]=%7B%22media_fbid%22%3A%221%22%7D", 100.0, "attached_media"},
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
		"query":       b.as("facebook", http.MethodPost, pagePath+"/feed?message=query", "", ""),
		"me":          b.form("facebook", "/facebook/v25.0/me/feed", url.Values{"message": {"me"}}),
		"new version": b.form("facebook", "/facebook/v26.0/"+pageID+"/feed", url.Values{"message": {"new"}}),
	} {
		if r.status != http.StatusOK || !strings.HasPrefix(r.text("id"), pageID+"_") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	for name, r := range map[string]reply{
		"another Page":  b.form("facebook", "/facebook/v25.0/123/feed", url.Values{"message": {"a"}}),
		"later version": b.form("facebook", "/facebook/v27.0/"+pageID+"/feed", url.Values{"message": {"a"}}),
		"no version":    b.form("facebook", "/facebook/"+pageID+"/feed", url.Values{"message": {"a"}}),
		"videos":        b.form("facebook", pagePath+"/videos", url.Values{"file_url": {"https://a.b/c.mp4"}}),
		"reels":         b.form("facebook", pagePath+"/video_reels", url.Values{"upload_phase": {"start"}}),
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
	b.onPage("another")
	b.onPage("same") // the latest post was different
	other := b.control(http.MethodPut, "/accounts/facebook/2", "", http.StatusCreated).text("data", "access_token")
	if r := b.call(http.MethodPost, "/facebook/v25.0/2/feed", other, formType, "message=same"); r.status != http.StatusOK {
		t.Errorf("another Page may post the same: %d %s", r.status, r.body)
	}
}

func TestFacebookQuota(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/facebook/"+pageID, `{"quota":1}`, http.StatusOK)
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
	// Neither a Threads token nor a missing token is accepted.
	for _, token := range []string{"threads-access-demo", ""} {
		if r := b.call(http.MethodPost, pagePath+"/feed", token, formType, "message=a"); r.status != http.StatusBadRequest || len(b.texts()) != 0 {
			t.Errorf("token %q: %d %s", token, r.status, r.body)
		}
	}
}
