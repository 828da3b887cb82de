// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fbForm returns a multipart form with a file in the part source.
func fbForm(t *testing.T, file []byte, fields ...string) (contentType, body string) {
	t.Helper()
	var out bytes.Buffer
	form := multipart.NewWriter(&out)
	part, err := form.CreateFormFile("source", "photo.jpg")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(file) // writing to a buffer never fails
	// Fields after the file count too.
	for i := 0; i < len(fields); i += 2 {
		if err := form.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), out.String()
}

// fbPhoto uploads an unpublished photo and returns its id.
func (b *box) fbPhoto(file []byte) string {
	b.t.Helper()
	contentType, body := fbForm(b.t, file, "published", "false")
	r := b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, body)
	if r.status != http.StatusOK || r.text("id") == "" || r.at("post_id") != nil {
		b.t.Fatalf("photo: %d %s", r.status, r.body)
	}
	return r.text("id")
}

func fbAttached(message string, ids ...string) url.Values {
	out := url.Values{"message": {message}}
	for i, id := range ids {
		out.Set(fmt.Sprintf("attached_media[%d]", i), `{"media_fbid":"`+id+`"}`)
	}
	return out
}

const attachmentQuery = "?fields=message,status_type,attachments{media_type,type,description,target{id},media{image{src,width,height}},subattachments{media_type,target{id},media{image{src}}}}"

func TestFacebookPhoto(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	contentType, body := fbForm(t, picture, "caption", "see", "published", "true")
	r := b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, body)
	photo, post := r.text("id"), r.text("post_id")
	if r.status != http.StatusOK || photo == "" || !strings.HasPrefix(post, pageID+"_") || strings.Contains(post, photo) {
		t.Fatalf("%d %s", r.status, r.body)
	}
	address := b.http.URL + "/_media/" + sumOf(picture)
	want := map[string]any{
		"id": post, "message": "see", "status_type": "added_photos",
		"attachments": map[string]any{"data": []any{map[string]any{
			"media_type": "photo", "type": "photo", "description": "see", "target": map[string]any{"id": photo},
			"media": map[string]any{"image": map[string]any{"src": address, "width": 40.0, "height": 30.0}},
		}}},
	}
	if diff := cmp.Diff(any(want), b.read("facebook", "/facebook/v25.0/"+post+attachmentQuery).at()); diff != "" {
		t.Errorf("the post (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(want), b.read("facebook", pagePath+"/published_posts"+attachmentQuery).at("data", "0")); diff != "" {
		t.Errorf("in the listing (-want +got):\n%s", diff)
	}
	wantPhoto := map[string]any{"id": photo, "name": "see", "page_story_id": post}
	if diff := cmp.Diff(any(wantPhoto), b.read("facebook", "/facebook/v25.0/"+photo+"?fields=name,page_story_id").at()); diff != "" {
		t.Errorf("the photo (-want +got):\n%s", diff)
	}
	shown := b.control(http.MethodGet, "/posts?platform=facebook", "", http.StatusOK)
	if diff := cmp.Diff([]any{file(picture, "image/jpeg")}, shown.list("data", "0", "media")); diff != "" || shown.text("data", "0", "text") != "see" {
		t.Errorf("the control API: %s (-want +got):\n%s", shown.body, diff)
	}
	for _, page := range []string{"/accounts/facebook/" + pageID, "/facebook/" + post} {
		if r := b.call(http.MethodGet, page, "", "", ""); !strings.Contains(r.body, "/_media/"+sumOf(picture)) {
			t.Errorf("%s does not show it:\n%s", page, r.body)
		}
	}
	if n := b.callsOn("facebook", "publish"); n != 1 || b.callsOn("facebook", "upload") != 0 {
		t.Errorf("%d publications counted, want 1 and no upload", n)
	}
}

// TestFacebookPhotoForms sends the variants of forms with a file that clients use.
func TestFacebookPhotoForms(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	large := append(bytes.Clone(picture), make([]byte, 10<<20)...)
	tests := []struct {
		name, reason string
		file         []byte
		fields       []string
		code         any
		want         string
	}{
		{"more than 1 MB", "a file may be larger than other requests", large[:10<<20], []string{"published", "false"}, nil, ""},
		{"GIF", "one of the types", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), []string{"published", "false"}, nil, ""},
		{"video", "none of the types", mp4Of("isom", 64, 48, time.Second), []string{"published", "false"}, 324.0, "invalid image file"},
		{"caption too long", "as of a post", picture, []string{"caption", strings.Repeat("a", 63207)}, 100.0, "at most 63206"},
		{"flag that is none", "true or false", picture, []string{"published", "no"}, 100.0, "published must be a boolean"},
		{"more than 10 MB", "but not too large", large, []string{"published", "false"}, 324.0, "invalid image file"},
		{"unknown field", "refused as in any form", picture, []string{"published", "false", "text", "a"}, 100.0, "Param text"},
		{"field twice", "refused as in any form", picture, []string{"published", "false", "published", "true"}, 100.0, "more than once"},
		{"endless text", "only the file may be large", picture, []string{"published", "false", "caption", strings.Repeat("a", 2<<20)}, 100.0, "form cannot be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			contentType, body := fbForm(t, tt.file, tt.fields...)
			r := b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, body)
			if r.at("error", "code") != tt.code || !strings.Contains(r.text("error", "message"), tt.want) || (r.text("id") != "") != (tt.code == nil) {
				t.Errorf("%s: %d %s, want code %v with %q", tt.reason, r.status, r.body, tt.code, tt.want)
			}
		})
	}
	contentType, body := fbForm(t, picture)
	if r := b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, strings.ReplaceAll(body, `"source"`, `"file"`)); r.at("error", "code") != 100.0 {
		t.Errorf("a file of another name: %d %s", r.status, r.body)
	}
	if r := b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, body[:len(body)-20]); r.at("error", "code") != 100.0 {
		t.Errorf("a form that is cut off: %d %s", r.status, r.body)
	}
	if r := b.call(http.MethodPost, pagePath+"/photos", "", contentType, body); r.at("error", "code") != 104.0 {
		t.Errorf("no token: %d %s", r.status, r.body)
	}
	contentType, body = fbForm(t, picture, "access_token", "facebook-access-demo", "published", "false")
	if r := b.call(http.MethodPost, pagePath+"/photos", "", contentType, body); r.status != http.StatusOK {
		t.Errorf("the token in the form: %d %s", r.status, r.body)
	}
	if got := b.texts(); len(got) != 0 {
		t.Errorf("%q is posted", got)
	}
}

func TestFacebookAlbum(t *testing.T) {
	b, one, two := start(t, ""), jpegOf(t, 40, 30), pngOf(t, 30, 40)
	first, second := b.fbPhoto(one), b.fbPhoto(two)
	if got := b.read("facebook", pagePath+"/published_posts").ids(); len(got) != 0 || len(b.texts()) != 0 {
		t.Errorf("photos that wait are listed: %v", got)
	}
	values := fbAttached("two", second, first)
	values.Set("fields", strings.TrimPrefix(attachmentQuery, "?fields="))
	r := b.form("facebook", pagePath+"/feed", values)
	post := r.text("id")
	_, album, _ := strings.Cut(post, "_")
	src := func(data []byte) string { return b.http.URL + "/_media/" + sumOf(data) }
	part := func(id string, data []byte) any {
		return map[string]any{
			"media_type": "photo", "target": map[string]any{"id": id}, "media": map[string]any{"image": map[string]any{"src": src(data)}},
		}
	}
	want := map[string]any{
		"id": post, "message": "two", "status_type": "added_photos",
		"attachments": map[string]any{"data": []any{map[string]any{
			"media_type": "album", "type": "album", "target": map[string]any{"id": album},
			"media":          map[string]any{"image": map[string]any{"src": src(two), "width": 30.0, "height": 40.0}},
			"subattachments": map[string]any{"data": []any{part(second, two), part(first, one)}},
		}}},
	}
	if diff := cmp.Diff(any(want), r.at()); diff != "" {
		t.Errorf("%d (-want +got):\n%s", r.status, diff)
	}
	if diff := cmp.Diff(any(want), b.read("facebook", pagePath+"/feed"+attachmentQuery).at("data", "0")); diff != "" {
		t.Errorf("in the listing (-want +got):\n%s", diff)
	}
	shown := b.control(http.MethodGet, "/posts?platform=facebook", "", http.StatusOK)
	if diff := cmp.Diff([]any{file(two, "image/png"), file(one, "image/jpeg")}, shown.list("data", "0", "media")); diff != "" {
		t.Errorf("the control API (-want +got):\n%s", diff)
	}
	if n := b.callsOn("facebook", "upload"); n != 2 || b.callsOn("facebook", "publish") != 1 {
		t.Errorf("%d uploads counted, want 2 and one publication", n)
	}
}

func TestFacebookAttachedMedia(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	var ids []string
	for range 14 {
		ids = append(ids, b.fbPhoto(picture))
	}
	used := ids[13]
	if r := b.form("facebook", pagePath+"/feed", fbAttached("used", used)); r.status != http.StatusOK {
		t.Fatalf("one photo: %d %s", r.status, r.body)
	}
	contentType, body := fbForm(t, picture, "caption", "shown")
	shown := b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, body).text("id")
	other := b.control(http.MethodPut, "/accounts/facebook/2", "", http.StatusCreated).text("data", "access_token")
	contentType, body = fbForm(t, picture, "published", "false")
	foreign := b.call(http.MethodPost, "/facebook/v25.0/2/photos", other, contentType, body).text("id")
	list := func(ids ...string) url.Values { return fbAttached("a", ids...) }
	with := func(values url.Values, name, value string) url.Values {
		values.Set(name, value)
		return values
	}
	tests := []struct {
		name, reason string
		values       url.Values
		subcode      any
		want         string
	}{
		{"eleven", "ten at most", list(ids[:11]...), nil, "at most 10"},
		{"posted with another", "a photo is posted once", fbAttached("a", ids[0], used), 1366051.0, "posted before"},
		{"posted by itself", "also then", fbAttached("a", shown), 1366051.0, "posted before"},
		{"the same twice", "and once in a post", list(ids[0], ids[0]), nil, "attached_media"},
		{"another Page's", "one's own only", list(ids[0], foreign), nil, foreign},
		{"a post", "which is no photo", list(pageID + "_1"), nil, "unpublished photos"},
		{"a gap", "they are counted from 0 on", with(fbAttached("a", ids[0]), "attached_media[2]", `{"media_fbid":"`+ids[1]+`"}`), nil, "attached_media[2] is not known"},
		{"ids alone", "objects are wanted", url.Values{"attached_media[0]": {`"` + ids[0] + `"`}}, nil, "media_fbid"},
		{"numbers", "ids are texts", url.Values{"attached_media[0]": {`{"media_fbid":` + ids[0] + `}`}}, nil, "media_fbid"},
		{"more than an id", "nothing else is known", url.Values{"attached_media[0]": {`{"media_fbid":"` + ids[0] + `","caption":"a"}`}}, nil, "media_fbid"},
		{"no JSON", "nothing to read", url.Values{"attached_media[0]": {ids[0]}}, nil, "media_fbid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.form("facebook", pagePath+"/feed", tt.values)
			if r.status != http.StatusBadRequest || r.at("error", "code") != 100.0 || r.at("error", "error_subcode") != tt.subcode || !strings.Contains(r.text("error", "message"), tt.want) {
				t.Errorf("%s: %d %s, want code 100, subcode %v with %q", tt.reason, r.status, r.body, tt.subcode, tt.want)
			}
		})
	}
	if diff := cmp.Diff([]string{"used", "shown"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := b.form("facebook", pagePath+"/feed", fbAttached("", ids[0], ids[1])); r.status != http.StatusOK {
		t.Errorf("photos without a message: %d %s", r.status, r.body)
	}
	if r := b.form("facebook", pagePath+"/feed", list(ids[2:12]...)); r.status != http.StatusOK {
		t.Errorf("ten photos: %d %s", r.status, r.body)
	}
}

func TestFacebookPhotosVanish(t *testing.T) {
	b, picture := start(t, t.TempDir()), jpegOf(t, 40, 30)
	kept, gone := b.fbPhoto(picture), b.fbPhoto(picture)
	b.clock.Step(24*time.Hour - time.Millisecond)
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	c := &box{t: t, clock: b.clock}
	c.open(b.dir)
	if r := c.read("facebook", "/facebook/v25.0/"+gone); r.status != http.StatusOK {
		t.Errorf("just before a day: %d %s", r.status, r.body)
	}
	if r := c.form("facebook", pagePath+"/feed", fbAttached("in time", kept)); r.status != http.StatusOK {
		t.Errorf("just before a day: %d %s", r.status, r.body)
	}
	c.clock.Step(time.Millisecond)
	if r := c.read("facebook", "/facebook/v25.0/"+gone); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("after a day: %d %s", r.status, r.body)
	}
	if r := c.form("facebook", pagePath+"/feed", fbAttached("too late", gone)); r.at("error", "code") != 100.0 {
		t.Errorf("after a day: %d %s", r.status, r.body)
	}
	if r := c.read("facebook", "/facebook/v25.0/"+kept+"?fields=page_story_id"); !strings.HasPrefix(r.text("page_story_id"), pageID) {
		t.Errorf("what was posted stays: %d %s", r.status, r.body)
	}
	other := c.control(http.MethodPut, "/accounts/facebook/2", "", http.StatusCreated).text("data", "access_token")
	if r := c.call(http.MethodGet, "/facebook/v25.0/"+kept, other, "", ""); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("another Page's photo: %s", r.body)
	}
	if diff := cmp.Diff([]string{"in time"}, c.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFacebookPhotoDuplicates(t *testing.T) {
	b, picture, another := start(t, ""), jpegOf(t, 40, 30), jpegOf(t, 41, 30)
	post := func(data []byte) reply {
		contentType, body := fbForm(t, data, "caption", "same")
		return b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, body)
	}
	b.onPage("same")
	if r := post(picture); r.status != http.StatusOK {
		t.Errorf("with a photo it is another post: %d %s", r.status, r.body)
	}
	if r := post(picture); r.at("error", "code") != 506.0 {
		t.Errorf("the same photo twice in a row: %d %s", r.status, r.body)
	}
	if r := b.form("facebook", pagePath+"/feed", fbAttached("same", b.fbPhoto(picture))); r.at("error", "code") != 506.0 {
		t.Errorf("the same photo by another way: %d %s", r.status, r.body)
	}
	if r := post(another); r.status != http.StatusOK {
		t.Errorf("another photo: %d %s", r.status, r.body)
	}
	b.control(http.MethodPut, "/accounts/facebook/"+pageID, `{"quota":3}`, http.StatusOK)
	if r := post(picture); r.at("error", "code") != 368.0 {
		t.Errorf("photos count as posts: %d %s", r.status, r.body)
	}
	b.fbPhoto(picture) // uploads do not count
}
