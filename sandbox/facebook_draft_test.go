// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fbDraft creates a draft and returns its ID.
func (b *box) fbDraft(values url.Values) string {
	b.t.Helper()
	values.Set("published", "false")
	values.Set("unpublished_content_type", "DRAFT")
	r := b.form("facebook", pagePath+"/feed", values)
	if r.status != http.StatusOK || r.text("id") == "" {
		b.t.Fatalf("%d %s", r.status, r.body)
	}
	return r.text("id")
}

func TestFacebookDrafts(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	id := b.fbDraft(fbAttached("later", b.fbPhoto(picture)))
	path := "/facebook/v25.0/" + id
	state := func() any { return b.read("facebook", path+"?fields=is_published").at("is_published") }
	listed := func() []string { return b.read("facebook", pagePath+"/published_posts").ids() }
	if got := state(); got != false || len(listed()) != 0 || len(b.texts()) != 0 {
		t.Errorf("a draft is published %v, listed as %v, and visible as %v", got, listed(), b.texts())
	}
	if n := b.callsOn("facebook", "create"); n != 1 || b.callsOn("facebook", "publish") != 0 {
		t.Errorf("%d drafts counted, and %d publications", n, b.callsOn("facebook", "publish"))
	}
	if r := b.read("facebook", pagePath+"/feed"); len(r.ids()) != 0 {
		t.Errorf("the feed shows %s", r.body)
	}
	for range 2 {
		if r := b.form("facebook", path, url.Values{"is_published": {"true"}}); r.status != http.StatusOK || r.at("success") != true {
			t.Fatalf("published: %d %s", r.status, r.body)
		}
		if got := state(); got != true {
			t.Errorf("published: %v", got)
		}
		if diff := cmp.Diff([]string{id}, listed()); diff != "" {
			t.Errorf("listed once, under the draft's id (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"later"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := b.as("facebook", http.MethodDelete, path, "", ""); r.status != http.StatusOK {
		t.Errorf("deleted: %d %s", r.status, r.body)
	}
}

func TestFacebookDraftsRefused(t *testing.T) {
	b := start(t, "")
	b.onPage("same")
	same, old := b.fbDraft(url.Values{"message": {"same"}}), b.fbDraft(url.Values{"message": {"old"}})
	publish := url.Values{"is_published": {"true"}}
	other := b.control(http.MethodPut, "/accounts/facebook/2", "", http.StatusCreated).text("data", "access_token")
	if r := b.form("facebook", "/facebook/v25.0/"+same, publish); r.at("error", "code") != 506.0 {
		t.Errorf("the repetition of the newest post: %d %s", r.status, r.body)
	}
	if r := b.call(http.MethodPost, "/facebook/v25.0/"+old, other, formType, publish.Encode()); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("another Page's draft: %d %s", r.status, r.body)
	}
	if r := b.form("facebook", "/facebook/v25.0/"+old, url.Values{"is_published": {"false"}}); r.at("error", "code") != 100.0 {
		t.Errorf("a post cannot be taken back: %d %s", r.status, r.body)
	}
	b.clock.Step(31 * 24 * time.Hour)
	if r := b.form("facebook", "/facebook/v25.0/"+old, publish); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("a draft that waited too long: %d %s", r.status, r.body)
	}
	for name, values := range map[string]url.Values{
		"scheduled":         {"message": {"a"}, "published": {"false"}, "unpublished_content_type": {"SCHEDULED"}, "scheduled_publish_time": {"1800000000"}},
		"kind alone":        {"message": {"a"}, "unpublished_content_type": {"DRAFT"}},
		"an advertisement":  {"message": {"a"}, "published": {"false"}, "unpublished_content_type": {"ADS_POST"}},
		"no kind":           {"message": {"a"}, "published": {"false"}},
		"a kind of no post": {"message": {"a"}, "published": {"false"}, "unpublished_content_type": {"draft"}},
	} {
		if r := b.form("facebook", pagePath+"/feed", values); r.status != http.StatusBadRequest || r.at("error", "code") != 100.0 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if diff := cmp.Diff([]string{"same"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFacebookLinks(t *testing.T) {
	b := start(t, "")
	r := b.form("facebook", pagePath+"/feed?fields=id,attachments{media_type,url}", url.Values{"message": {"see"}, "link": {"https://a.example/b"}})
	want := map[string]any{"data": []any{map[string]any{"media_type": "link", "url": "https://a.example/b"}}}
	if diff := cmp.Diff(any(want), r.at("attachments")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", r.body, diff)
	}
	for _, link := range []string{"a.example", "ftp://a.example", "https://", "::"} {
		if r := b.form("facebook", pagePath+"/feed", url.Values{"message": {"see " + link}, "link": {link}}); r.at("error", "code") != 1500.0 {
			t.Errorf("%q: %d %s", link, r.status, r.body)
		}
	}
}
