// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/url"
	"strings"
	"testing"
)

// TestGraphAcceptsClientRequests sends third-party client requests that Meta accepts.
func TestGraphAcceptsClientRequests(t *testing.T) {
	multipartType, text := xForm("media_type", "TEXT", "text", "hello")
	pageType, message := xForm("message", "hello in parts")
	b := startLenient(t)
	for _, tt := range []struct{ why, method, path, contentType, body string }{
		{"huandu/facebook sends format=json with every call", "GET", "/facebook/v25.0/me?format=json", "", ""},
		{"facebook-nodejs-business-sdk sends the node's ID", "POST", pagePath + "/feed", formType, "message=hi&id=" + pageID},
		{"lists also accept format=json", "GET", pagePath + "/published_posts?format=json&summary=true", "", ""},
		{"Threads also accepts format=json", "POST", threadsPath + "/threads", formType, "media_type=TEXT&text=a&format=json"},
		{"Instagram also accepts format=json", "GET", "/instagram/v25.0/me?fields=user_id&suppress_http_code=1", "", ""},
		{"SDKs use the API version of their release", "GET", "/facebook/v24.0/me", "", ""},
		{"old versions are served for years", "POST", "/facebook/v19.0/" + pageID + "/feed", formType, "message=old"},
		{"Instagram also serves old versions", "GET", "/instagram/v21.0/me", "", ""},
		{"Threads needs no version", "GET", "/threads/me?fields=id", "", ""},
		{"posts need no version", "POST", "/threads/" + threadsID + "/threads", formType, "media_type=TEXT&text=a"},
		{"lists need no version", "GET", "/threads/me/threads", "", ""},
		{"Meta's samples for Threads use curl -F", "POST", threadsPath + "/threads", multipartType, text},
		{"Meta's samples for Pages also use curl -F", "POST", pagePath + "/feed", pageType, message},
		{"Meta's SDK for Node.js sends JSON", "POST", pagePath + "/feed", jsonType, `{"message":"hi","id":"` + pageID + `","published":true}`},
		{"the client sends an empty object with a GET", "GET", "/facebook/v25.0/me", jsonType, `{}`},
		{"SDKs repeat a parameter in the body", "POST", pagePath + "/feed?message=twice", formType, "message=twice"},
	} {
		platform, _, _ := strings.Cut(tt.path[1:], "/")
		b.as(platform, tt.method, tt.path, tt.contentType, tt.body).want(t, tt.why, 200)
	}
	b.feed("message=later&scheduled_publish_time=1900000000").want(t, "a parameter that delays the post", graphError(100, "")...)
	b.threadsForm("media_type=TEXT&text=a&auto_publish_text=true").want(t, "a parameter that publishes at once", graphError(100, "")...)
	b.read("facebook", "/facebook/v27.0/me").want(t, "a version that does not exist yet", 400)
	b.page("/threads/@herald_demo").want(t, "a profile is not a node", 302)
}

// TestGraphNextPageCarriesTheToken follows paging.next unchanged, like SDK paging helpers.
func TestGraphNextPageCarriesTheToken(t *testing.T) {
	b := start(t, "")
	for _, text := range []string{"one", "two", "three"} {
		b.onPage(text)
	}
	next, err := url.Parse(b.read("facebook", pagePath+"/published_posts?limit=2").text("paging", "next"))
	if err != nil || !strings.HasPrefix(next.Path, pagePath) {
		t.Fatalf("the next page is %s, %v", next, err)
	}
	b.page(next.RequestURI()).want(t, "the next page without a header", 200, "data#1")
}

// TestGraphAcceptsArrays creates multi-file posts with a JSON array, as SDKs do.
func TestGraphAcceptsArrays(t *testing.T) {
	b, file := start(t, ""), jpegOf(t, 400, 400)
	site := newShelf(t, map[string][]byte{"a.jpg": file})
	item := func() string {
		return b.igContainer(url.Values{"image_url": {site.url + "/a.jpg"}, "is_carousel_item": {"true"}})
	}
	children := url.Values{"media_type": {"CAROUSEL"}, "children": {`["` + item() + `",` + item() + `]`}}
	b.form("instagram", "/instagram/v25.0/me/media", children).want(t, "Instagram's children", made...)
	attached := func(value string) string { return url.Values{"message": {"a"}, "attached_media": {value}}.Encode() }
	b.feed(attached("[")).want(t, "an invalid array", graphError(100, "")...)
	b.feed(attached(`[{"media_fbid":"`+b.fbPhoto(file)+`"}]`)).want(t, "Facebook's photos", made...)
	same(t, "the photo is part of the post", any(mediaOf("image/jpeg", file)), field(b.posted("facebook"), 0, "media"))
}

// TestFacebookFetchesPhotos publishes photos by their addresses, as huandu/facebook and Meta's own SDK do.
func TestFacebookFetchesPhotos(t *testing.T) {
	b := start(t, "")
	site := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 30), "a.txt": []byte("no picture")})
	invalid := graphError(324, "")
	b.each(t, func(form string) reply { return b.form("facebook", pagePath+"/photos", query(form)) }, []row{
		{"a photo is a post", "url=" + site.url + "/a.jpg&caption=look", made},
		{"an unpublished photo waits for a post", "url=" + site.url + "/a.jpg&published=false", made},
		{"a text is not a photo", "url=" + site.url + "/a.txt", invalid},
		{"an unknown file", "url=" + site.url + "/b.jpg", invalid},
		{"a file is required", "caption=look", invalid},
	})
}
