// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestGraphTakesWhatClientsSend sends third-party client requests that Meta accepts.
func TestGraphTakesWhatClientsSend(t *testing.T) {
	multipartType, text := xForm("media_type", "TEXT", "text", "hello")
	pageType, message := xForm("message", "hello in parts")
	tests := []struct {
		name, reason, platform, method, path, contentType, body string
	}{
		{"format=json", "huandu/facebook sends it with every call", "facebook", "GET", "/facebook/v25.0/me?format=json", "", ""},
		{"sdk", "so does facebook-nodejs-business-sdk with a node's id", "facebook", "POST", pagePath + "/feed", formType, "message=hi&id=" + pageID},
		{"listing", "a list as well", "facebook", "GET", pagePath + "/published_posts?format=json&summary=true", "", ""},
		{"Threads", "the graphs are one program", "threads", "POST", threadsPath + "/threads", formType, "media_type=TEXT&text=a&format=json"},
		{"Instagram", "on every host", "instagram", "GET", "/instagram/v25.0/me?fields=user_id&suppress_http_code=1", "", ""},
		{"v24.0", "SDKs name the version that they were made for", "facebook", "GET", "/facebook/v24.0/me", "", ""},
		{"v19.0", "old ones are served for years", "facebook", "POST", "/facebook/v19.0/" + pageID + "/feed", formType, "message=old"},
		{"Instagram's v21.0", "there as well", "instagram", "GET", "/instagram/v21.0/me", "", ""},
		{"no version, me", "Threads needs none", "threads", "GET", "/threads/me?fields=id", "", ""},
		{"no version, post", "whatever the call", "threads", "POST", "/threads/" + threadsID + "/threads", formType, "media_type=TEXT&text=a"},
		{"no version, list", "or the edge", "threads", "GET", "/threads/me/threads", "", ""},
		{"parts on Threads", "Meta's samples are written for curl -F", "threads", "POST", threadsPath + "/threads", multipartType, text},
		{"parts on Facebook", "so are those of Pages", "facebook", "POST", pagePath + "/feed", pageType, message},
		{"JSON", "Meta's own SDK for Node.js", "facebook", "POST", pagePath + "/feed", jsonType, `{"message":"hi","id":"` + pageID + `","published":true}`},
		{"JSON with a GET", "the same SDK sends an empty object", "facebook", "GET", "/facebook/v25.0/me", jsonType, `{}`},
		{"parameter twice", "SDKs put the same one into the address and the body", "facebook", "POST", pagePath + "/feed?message=twice", formType, "message=twice"},
	}
	b := startLenient(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := b.as(tt.platform, tt.method, tt.path, tt.contentType, tt.body); r.status != http.StatusOK {
				t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
			}
		})
	}
	for platform, body := range map[string]string{
		"facebook": "message=later&scheduled_publish_time=1900000000", "threads": "media_type=TEXT&text=a&auto_publish_text=true",
	} {
		path := map[string]string{"facebook": pagePath + "/feed", "threads": threadsPath + "/threads"}[platform]
		if r := b.as(platform, http.MethodPost, path, formType, body); r.at("error", "code") != 100.0 {
			t.Errorf("what changes when a post is seen is not overlooked: %d %s", r.status, r.body)
		}
	}
	if r := b.read("facebook", "/facebook/v27.0/me"); r.status != http.StatusBadRequest {
		t.Errorf("a version that does not exist yet: %d %s", r.status, r.body)
	}
	if r := b.call(http.MethodGet, "/threads/@herald_demo", "", "", ""); r.status != http.StatusFound {
		t.Errorf("a profile is no node: %d", r.status)
	}
}

// TestGraphNextPageCarriesTheToken follows paging.next unchanged, like SDK paging helpers.
func TestGraphNextPageCarriesTheToken(t *testing.T) {
	b := start(t, "")
	for _, text := range []string{"one", "two", "three"} {
		b.onPage(text)
	}
	r := b.read("facebook", pagePath+"/published_posts?limit=2")
	next, err := url.Parse(r.text("paging", "next"))
	if err != nil || !strings.HasPrefix(next.Path, pagePath) {
		t.Fatalf("%v %s", err, r.body)
	}
	if r := b.call(http.MethodGet, next.RequestURI(), "", "", ""); r.status != http.StatusOK || len(r.ids()) != 1 {
		t.Errorf("followed without a header: %d %s", r.status, r.body)
	}
}

// TestGraphTakesArrays creates multi-file posts with a JSON array, as SDKs do.
func TestGraphTakesArrays(t *testing.T) {
	b, file := start(t, ""), jpegOf(t, 400, 400)
	site := newShelf(t, map[string][]byte{"a.jpg": file})
	items := make([]string, 2)
	for i := range items {
		items[i] = b.igContainer(url.Values{"image_url": {site.url + "/a.jpg"}, "is_carousel_item": {"true"}})
	}
	tests := []struct {
		name, platform, path string
		form                 url.Values
		code                 any
	}{
		{"Instagram", "instagram", "/instagram/v25.0/me/media", url.Values{"media_type": {"CAROUSEL"}, "children": {`["` + items[0] + `",` + items[1] + `]`}}, nil},
		{"Facebook", "facebook", pagePath + "/feed", url.Values{"message": {"a"}, "attached_media": {`[{"media_fbid":"` + b.fbPhoto(file) + `"}]`}}, nil},
		{"no array", "facebook", pagePath + "/feed", url.Values{"message": {"b"}, "attached_media": {`[`}}, 100.0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := b.form(tt.platform, tt.path, tt.form); r.at("error", "code") != tt.code || (r.text("id") == "") != (tt.code != nil) {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	if posts := b.posted("facebook"); field(posts, 0, "media") == nil || len(posts) != 1 {
		t.Errorf("the photo is part of the post: %v", posts)
	}
}

// TestFacebookFetchesPhotos publishes photos by their addresses, as huandu/facebook and Meta's own SDK do.
func TestFacebookFetchesPhotos(t *testing.T) {
	b, file := start(t, ""), jpegOf(t, 40, 30)
	site := newShelf(t, map[string][]byte{"a.jpg": file, "a.txt": []byte("no picture")})
	tests := []struct {
		name, reason string
		form         url.Values
		code         any
	}{
		{"published", "a photo is a post", url.Values{"url": {site.url + "/a.jpg"}, "caption": {"look"}}, nil},
		{"to be attached", "or waits for one", url.Values{"url": {site.url + "/a.jpg"}, "published": {"false"}}, nil},
		{"no picture", "the types are the same", url.Values{"url": {site.url + "/a.txt"}}, 324.0},
		{"nothing there", "nor can it be fetched", url.Values{"url": {site.url + "/b.jpg"}}, 324.0},
		{"neither", "there must be one", url.Values{"caption": {"look"}}, 324.0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.form("facebook", pagePath+"/photos", tt.form)
			if r.at("error", "code") != tt.code || (r.text("id") == "") != (tt.code != nil) {
				t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
			}
		})
	}
}
