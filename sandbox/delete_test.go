// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/url"
	"testing"
)

// TestPostsAreReadAndDeleted reads a post on each platform with a deletion API, deletes it, and deletes it again.
func TestPostsAreReadAndDeleted(t *testing.T) {
	tests := []struct {
		platform, reason string
		publish          func(*box) string
		// read and remove return the paths for reading and deleting the post.
		read, remove func(id string) string
		again        int
		gone         func(reply) bool
	}{
		{
			"x", "docs.x.com, Manage Posts", func(b *box) string { return b.post("gone soon") },
			func(id string) string { return "/x/2/tweets/" + id }, func(id string) string { return "/x/2/tweets/" + id }, 404,
			func(r reply) bool { return r.text("errors", "0", "title") == "Not Found Error" },
		},
		{
			"threads", "Meta's Delete Posts", func(b *box) string { return b.thread("gone soon", nil) },
			func(id string) string { return "/threads/v1.0/" + id }, func(id string) string { return "/threads/v1.0/" + id }, 400,
			func(r reply) bool { return r.at("error", "error_subcode") == 33.0 },
		},
		{
			"facebook", "Graph's Page Post, Deleting", func(b *box) string { return b.onPage("gone soon") },
			func(id string) string { return "/facebook/v25.0/" + id }, func(id string) string { return "/facebook/v25.0/" + id }, 400,
			func(r reply) bool { return r.at("error", "error_subcode") == 33.0 },
		},
	}
	for _, tt := range tests {
		t.Run(tt.platform, func(t *testing.T) {
			b := start(t, "")
			id := tt.publish(b)
			if r := b.read(tt.platform, tt.read(id)); r.status != http.StatusOK || tt.gone(r) {
				t.Fatalf("read: %d %s", r.status, r.body)
			}
			b.control(http.MethodPut, "/accounts/"+tt.platform+"/7", "{}", http.StatusCreated)
			other := b.control(http.MethodGet, "/accounts/"+tt.platform+"/7", "", http.StatusOK).text("data", "access_token")
			if r := b.call(http.MethodDelete, tt.remove(id), other, "", ""); r.status < 400 {
				t.Errorf("by another account: %d %s", r.status, r.body)
			}
			if r := b.as(tt.platform, http.MethodDelete, tt.remove(id), "", ""); r.status != http.StatusOK {
				t.Fatalf("%s: %d %s", tt.reason, r.status, r.body)
			}
			if r := b.as(tt.platform, http.MethodDelete, tt.remove(id), "", ""); r.status != tt.again {
				t.Errorf("again: %d %s, want %d", r.status, r.body, tt.again)
			}
			if r := b.read(tt.platform, tt.read(id)); !tt.gone(r) {
				t.Errorf("read when it is gone: %d %s", r.status, r.body)
			}
			if texts := b.texts(); len(texts) != 0 {
				t.Errorf("still there: %q", texts)
			}
			if tt.publish(b) == id {
				t.Error("the same may be said again, as another post")
			}
		})
	}
}

// TestFacebookDeletesByPOST deletes by POST, as huandu/facebook does.
func TestFacebookDeletesByPOST(t *testing.T) {
	b := start(t, "")
	path := "/facebook/v25.0/" + b.onPage("a")
	if r := b.form("facebook", path, url.Values{"message": {"b"}}); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("a change: %d %s", r.status, r.body)
	}
	if r := b.form("facebook", path, url.Values{"method": {"delete"}}); r.at("success") != true {
		t.Errorf("%d %s", r.status, r.body)
	}
	if texts := b.texts(); len(texts) != 0 {
		t.Errorf("still there: %q", texts)
	}
}

func TestInstagramDeletesNothing(t *testing.T) {
	b := start(t, "")
	shelf := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 400, 400)})
	id := b.igPost(url.Values{"image_url": {shelf.url + "/a.jpg"}})
	if r := b.as("instagram", http.MethodDelete, "/instagram/v25.0/"+id, "", ""); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("the reference of IG Media has no deletion: %d %s", r.status, r.body)
	}
	if r := b.read("instagram", "/instagram/v25.0/"+id+"?fields=media_type"); r.text("media_type") != "IMAGE" {
		t.Errorf("it can be read: %d %s", r.status, r.body)
	}
}
