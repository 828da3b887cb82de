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
	// Writing to a buffer never fails. Fields after the file count too.
	_, _ = part.Write(file)
	for i := 0; i < len(fields); i += 2 {
		_ = form.WriteField(fields[i], fields[i+1])
	}
	_ = form.Close()
	return form.FormDataContentType(), out.String()
}

// sendPhoto uploads a photo with fields.
func (b *box) sendPhoto(file []byte, fields ...string) reply {
	b.t.Helper()
	contentType, body := fbForm(b.t, file, fields...)
	return b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, body)
}

// fbPhoto uploads an unpublished photo and returns its id.
func (b *box) fbPhoto(file []byte) string {
	b.t.Helper()
	return b.sendPhoto(file, "published", "false").want(b.t, "the photo", 200, "id=*", "post_id=").text("id")
}

func fbAttached(message string, ids ...string) url.Values {
	out := url.Values{"message": {message}}
	for i, id := range ids {
		out.Set(fmt.Sprintf("attached_media[%d]", i), `{"media_fbid":"`+id+`"}`)
	}
	return out
}

const attachmentFields = "message,status_type,attachments{media_type,type,description,target{id},media{image{src,width,height}}," +
	"subattachments{media_type,target{id},media{image{src}}}}"

func TestFacebookPhoto(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	r := b.sendPhoto(picture, "caption", "see", "published", "true").want(t, "the photo", 200, "id=*", "post_id~"+pageID+"_")
	photo, post, address := r.text("id"), r.text("post_id"), "/_media/"+sumOf(picture)
	want := map[string]any{
		"id": post, "message": "see", "status_type": "added_photos",
		"attachments": map[string]any{"data": []any{map[string]any{
			"media_type": "photo", "type": "photo", "description": "see", "target": map[string]any{"id": photo},
			"media": map[string]any{"image": map[string]any{"src": b.http.URL + address, "width": 40.0, "height": 30.0}},
		}}},
	}
	same(t, "the post", want, b.fbNode(post+"?fields="+attachmentFields).at())
	same(t, "the post in the listing", want, b.read("facebook", pagePath+"/published_posts?fields="+attachmentFields).at("data", "0"))
	same(t, "the photo", map[string]any{"id": photo, "name": "see", "page_story_id": post}, b.fbNode(photo+"?fields=name,page_story_id").at())
	same(t, "the file in the control API", any(mediaOf("image/jpeg", picture)), field(b.posted("facebook"), 0, "media"))
	same(t, "the text in the control API", []string{"see"}, b.texts())
	for _, page := range []string{"/accounts/facebook/" + pageID, "/facebook/" + post} {
		b.page(page).want(t, page+" shows the photo", "~"+address)
	}
	same(t, "publications and uploads", []int{1, 0}, []int{b.callsOn("facebook", "publish"), b.callsOn("facebook", "upload")})
}

// TestFacebookPhotoForms sends the variants of forms with a file that clients use.
func TestFacebookPhotoForms(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	for _, tt := range []struct {
		why   string
		file  []byte
		query string // the fields
		want  is
	}{
		{"a file may be larger than other requests", longer(picture, 10*mib), "published=false", made},
		{"a GIF is allowed", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), "published=false", made},
		{"a video is not a photo", mp4Of("isom", 64, 48, time.Second), "published=false", graphError(324, "invalid image file")},
		{"more than 10 MB are too large", longer(picture, 10*mib+1), "published=false", graphError(324, "invalid image file")},
		{"a caption has the limit of a message", picture, "caption=" + strings.Repeat("a", 63207), graphError(100, "at most 63206")},
		{"a flag is true or false", picture, "published=no", graphError(100, "published must be a boolean")},
		{"unknown fields are rejected", picture, "published=false&text=a", graphError(100, "Param text")},
		{"only files may be large", picture, "caption=" + strings.Repeat("a", 2*mib), graphError(100, "form cannot be read")},
	} {
		var fields []string
		for name, values := range query(tt.query) {
			fields = append(fields, name, values[0])
		}
		b.sendPhoto(tt.file, fields...).want(t, tt.why, tt.want...)
	}
	b.sendPhoto(picture, "published", "false", "published", "true").want(t, "a repeated field", graphError(100, "more than once")...)
	contentType, body := fbForm(t, picture)
	send := func(token, body string) reply {
		return b.call(http.MethodPost, pagePath+"/photos", token, contentType, body)
	}
	const token = "facebook-access-demo"
	send(token, strings.ReplaceAll(body, `"source"`, `"file"`)).want(t, "a file of another name", graphError(100, "")...)
	send(token, body[:len(body)-20]).want(t, "an incomplete form", graphError(100, "")...)
	send("", body).want(t, "no token", graphError(104, "")...)
	contentType, body = fbForm(t, picture, "access_token", token, "published", "false")
	send("", body).want(t, "the token in the form", 200)
	same(t, "posts", 0, len(b.texts()))
}

func TestFacebookAlbum(t *testing.T) {
	b, one, two := start(t, ""), jpegOf(t, 40, 30), pngOf(t, 30, 40)
	first, second := b.fbPhoto(one), b.fbPhoto(two)
	b.read("facebook", pagePath+"/published_posts").want(t, "unpublished photos are not listed", "data#0")
	same(t, "nor visible", 0, len(b.texts()))
	values := fbAttached("two", second, first)
	values.Set("fields", attachmentFields)
	r := b.feed(values.Encode())
	_, album, _ := strings.Cut(r.text("id"), "_")
	src := func(data []byte) string { return b.http.URL + "/_media/" + sumOf(data) }
	part := func(id string, data []byte) any {
		return map[string]any{
			"media_type": "photo", "target": map[string]any{"id": id}, "media": map[string]any{"image": map[string]any{"src": src(data)}},
		}
	}
	want := map[string]any{
		"id": r.text("id"), "message": "two", "status_type": "added_photos",
		"attachments": map[string]any{"data": []any{map[string]any{
			"media_type": "album", "type": "album", "target": map[string]any{"id": album},
			"media":          map[string]any{"image": map[string]any{"src": src(two), "width": 30.0, "height": 40.0}},
			"subattachments": map[string]any{"data": []any{part(second, two), part(first, one)}},
		}}},
	}
	same(t, "the response", want, r.at())
	same(t, "the post in the listing", want, b.read("facebook", pagePath+"/feed?fields="+attachmentFields).at("data", "0"))
	same(t, "the files in the control API", any([]any{file(two, "image/png"), file(one, "image/jpeg")}), field(b.posted("facebook"), 0, "media"))
	same(t, "publications and uploads", []int{1, 2}, []int{b.callsOn("facebook", "publish"), b.callsOn("facebook", "upload")})
}

func TestFacebookAttachedMedia(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	var ids []string
	for range 13 {
		ids = append(ids, b.fbPhoto(picture))
	}
	used, shown := b.fbPhoto(picture), b.sendPhoto(picture, "caption", "shown").text("id")
	b.feed(fbAttached("used", used).Encode()).want(t, "one photo", 200)
	contentType, body := fbForm(t, picture, "published", "false")
	foreign := b.call(http.MethodPost, "/facebook/v25.0/2/photos", b.account("facebook", "2", ""), contentType, body).text("id")
	list := func(ids ...string) string { return fbAttached("a", ids...).Encode() }
	zero := func(value string) string { return url.Values{"attached_media[0]": {value}}.Encode() }
	gap := fbAttached("a", ids[0])
	gap.Set("attached_media[2]", `{"media_fbid":"`+ids[1]+`"}`)
	b.each(t, b.feed, []row{
		{"eleven photos are too many", list(ids[:11]...), graphError(100, "at most 10")},
		{"a photo is posted only once", list(ids[0], used), append(graphSubcode(100, 1366051), "~posted before")},
		{"a photo that was posted alone cannot be attached", list(shown), append(graphSubcode(100, 1366051), "~posted before")},
		{"a photo is attached to a post only once", list(ids[0], ids[0]), graphError(100, "attached_media")},
		{"another Page's photo", list(ids[0], foreign), graphError(100, foreign)},
		{"a post is not a photo", list(pageID + "_1"), graphError(100, "unpublished photos")},
		{"indexes have no gaps", gap.Encode(), graphError(100, "attached_media[2] is not known")},
		{"an element is an object", zero(`"` + ids[0] + `"`), graphError(100, "media_fbid")},
		{"IDs are strings", zero(`{"media_fbid":` + ids[0] + `}`), graphError(100, "media_fbid")},
		{"an element has no other fields", zero(`{"media_fbid":"` + ids[0] + `","caption":"a"}`), graphError(100, "media_fbid")},
		{"an element is JSON", zero(ids[0]), graphError(100, "media_fbid")},
		{"photos need no message", fbAttached("", ids[0], ids[1]).Encode(), made},
		{"ten photos fit", list(ids[2:12]...), made},
	})
}

func TestFacebookPhotosExpire(t *testing.T) {
	b, picture := start(t, t.TempDir()), jpegOf(t, 40, 30)
	kept, gone := b.fbPhoto(picture), b.fbPhoto(picture)
	b.clock.Step(24*time.Hour - time.Millisecond)
	c := b.restart()
	c.fbNode(gone).want(t, "reading a photo within a day", 200)
	c.feed(fbAttached("in time", kept).Encode()).want(t, "attaching a photo within a day", 200)
	c.clock.Step(time.Millisecond)
	c.fbNode(gone).want(t, "reading a photo after a day", missing...)
	c.feed(fbAttached("too late", gone).Encode()).want(t, "attaching a photo after a day", graphError(100, "")...)
	c.fbNode(kept+"?fields=page_story_id").want(t, "a photo of a post does not expire", "page_story_id~"+pageID)
	c.call(http.MethodGet, "/facebook/v25.0/"+kept, c.account("facebook", "2", ""), "", "").want(t, "another Page's photo", missing...)
	same(t, "visible posts", []string{"in time"}, c.texts())
}

func TestFacebookPhotoDuplicates(t *testing.T) {
	b, picture, another := start(t, ""), jpegOf(t, 40, 30), jpegOf(t, 41, 30)
	post := func(data []byte) reply { return b.sendPhoto(data, "caption", "same") }
	b.onPage("same")
	post(picture).want(t, "a photo makes it another post", 200)
	post(picture).want(t, "the same photo twice", graphError(506, "")...)
	b.feed(fbAttached("same", b.fbPhoto(picture)).Encode()).want(t, "the same photo as an attachment", graphError(506, "")...)
	post(another).want(t, "another photo", 200)
	b.set("facebook", `{"quota":3}`)
	post(picture).want(t, "photos count as posts", graphError(368, "")...)
	b.fbPhoto(picture) // uploads do not count
}
