// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// threadsReady exceeds any fetched file's processing time.
const threadsReady = 2 * time.Second

// ready creates a container and waits for the end of its processing.
func (b *box) ready(values url.Values) string {
	b.t.Helper()
	id := b.container(values)
	b.clock.Step(threadsReady)
	if got := b.settle(func() string { return b.containerStatus(id) }); got != "FINISHED" {
		b.t.Fatalf("container %v is %s: %s", values, got, b.read("threads", "/threads/v1.0/"+id+"?fields=status,error_message").body)
	}
	return id
}

func imageOf(address string) url.Values {
	return url.Values{"media_type": {"IMAGE"}, "image_url": {address}}
}

func videoOf(address string) url.Values {
	return url.Values{"media_type": {"VIDEO"}, "video_url": {address}}
}

func itemOf(values url.Values) url.Values {
	values.Set("is_carousel_item", "true")
	return values
}

func TestThreadsImage(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	s := newShelf(t, map[string][]byte{"a.jpg": picture})
	values := imageOf(s.url + "/a.jpg?sig=1")
	values.Set("text", "see")
	id := b.container(values)
	if got := b.containerStatus(id); got != "IN_PROGRESS" || len(b.texts()) != 0 {
		t.Errorf("at first it is %s, and %q is posted", got, b.texts())
	}
	if r := b.publishContainer(id); r.at("error", "code") != 24.0 {
		t.Errorf("publishing too early: %d %s", r.status, r.body)
	}
	b.clock.Step(200 * time.Millisecond)
	delete(s.files, "a.jpg") // a fetched file is not fetched again
	post := b.publishContainer(id).text("id")
	want := map[string]any{
		"id": post, "media_type": "IMAGE", "text": "see",
		"media_url": b.http.URL + "/_media/" + sumOf(picture),
	}
	r := b.read("threads", "/threads/v1.0/"+post+"?fields=media_type,text,media_url,children")
	if diff := cmp.Diff(any(want), r.at()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := b.call(http.MethodGet, "/_media/"+sumOf(picture), "", "", ""); got.body != string(picture) {
		t.Errorf("media_url answers %d and %d bytes", got.status, len(got.body))
	}
	shown := b.control(http.MethodGet, "/posts?platform=threads", "", http.StatusOK)
	if diff := cmp.Diff([]any{file(picture, "image/jpeg")}, shown.list("data", "0", "media")); diff != "" {
		t.Errorf("the control API (-want +got):\n%s", diff)
	}
	if page := b.call(http.MethodGet, "/accounts/threads/"+threadsID, "", "", ""); !strings.Contains(page.body, "/_media/"+sumOf(picture)) {
		t.Errorf("the feed does not show it:\n%s", page.body)
	}
}

func TestThreadsMediaParameters(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 30), "a.mp4": mp4Of("isom", 64, 48, time.Second)})
	image, video := "media_type=IMAGE&image_url="+s.url+"/a.jpg", "media_type=VIDEO&video_url="+s.url+"/a.mp4"
	tests := []struct {
		name, reason, form string
		want               string // part of the error's message; empty for success
	}{
		{"image without a text", "the text is optional here", image, ""},
		{"text of an image too long", "the same limit", image + "&text=" + strings.Repeat("a", 501), "at most 500"},
		{"image without an address", "nothing to fetch", "media_type=IMAGE&text=a", "image_url is required"},
		{"image with a video's address", "the wrong parameter", "media_type=IMAGE&video_url=" + s.url + "/a.mp4", "image_url is required"},
		{"image with both", "one file for one container", image + "&video_url=" + s.url + "/a.mp4", "video_url is not allowed"},
		{"image with children", "only carousels have some", image + "&children=1,2", "children is not allowed"},
		{"image that is not there", "404 is no image", "media_type=IMAGE&image_url=" + s.url + "/b.jpg", "could not be fetched from this URI"},
		{"image at an unused address", "a refused connection is none either", "media_type=IMAGE&image_url=http://127.0.0.1:1/a.jpg", "could not be fetched from this URI"},
		{"image in a file", "only the web is fetched", "media_type=IMAGE&image_url=file:///etc/passwd", "could not be fetched from this URI"},
		{"Instagram's kind", "an enumeration", "media_type=REELS&video_url=" + s.url + "/a.mp4", "media_type must be one of"},
		{"Instagram's parameter", "what is not known is refused", image + "&caption=a", "Param caption is not known"},
		{"video", "the plain case", video, ""},
		{"video without an address", "nothing to fetch", "media_type=VIDEO&text=a", "video_url is required"},
		{"video without a host", "no address", "media_type=VIDEO&video_url=a.mp4", "could not be fetched from this URI"},
		{"video that answers nothing", "the parent must exist", video + "&reply_to_id=1", "reply_to_id"},
		{"carousel without children", "nothing to show", "media_type=CAROUSEL&text=a", "children is required"},
		{"carousel as an item", "carousels do not nest", "media_type=CAROUSEL&children=1,2&is_carousel_item=true", "is_carousel_item is not allowed"},
		{"flag that is none", "true or false", image + "&is_carousel_item=yes", "is_carousel_item must be a boolean"},
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
			if r.status != http.StatusBadRequest || !strings.Contains(r.text("error", "message"), tt.want) || r.text("error", "fbtrace_id") == "" {
				t.Errorf("%s: %d %s, want an error with %q", tt.reason, r.status, r.body, tt.want)
			}
		})
	}
	if got := b.texts(); len(got) != 0 {
		t.Errorf("containers are no posts: %q", got)
	}
}

// TestThreadsMediaFailures creates containers that fail because of their files and cannot be published.
func TestThreadsMediaFailures(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{
		"good.png": pngOf(t, 40, 30), "wide.png": pngOf(t, 100, 10), "too-wide.png": pngOf(t, 101, 10), "too-tall.png": pngOf(t, 10, 101),
		"large.jpg":      append(jpegOf(t, 40, 30), make([]byte, 8<<20)...),
		"largest.jpg":    append(jpegOf(t, 40, 30), make([]byte, 8<<20-len(jpegOf(t, 40, 30)))...),
		"picture.webp":   []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"),
		"picture.gif":    []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"),
		"page.html":      []byte("<!DOCTYPE html><html></html>"),
		"good.mp4":       mp4Of("isom", 1080, 1920, 300*time.Second),
		"good.mov":       mp4Of("qt  ", 64, 48, time.Second),
		"long.mp4":       mp4Of("isom", 1080, 1920, 300*time.Second+time.Millisecond),
		"broad.mp4":      mp4Of("isom", 1921, 1080, time.Second),
		"flat.mp4":       mp4Of("isom", 1001, 100, time.Second),
		"thin.mp4":       mp4Of("isom", 10, 1001, time.Second),
		"parts.mp4":      mp4Of("isom", 64, 48, 0),
		"apple.m4v":      mp4Of("M4V ", 64, 48, time.Second),
		"beginning.mp4":  mp4Of("isom", 64, 48, time.Second)[:24],
		"matroska.video": []byte("\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x1f\x42\x86\x81\x01\x42\x82\x88matroska"),
	})
	tests := []struct {
		name, reason, file, want string // want is empty when nothing is wrong
	}{
		{"PNG", "taken beside JPEG", "good.png", ""},
		{"ten to one", "the limit of the shape", "wide.png", ""},
		{"wider", "beyond it", "too-wide.png", "INVALID_ASPEC_RATIO"},
		{"taller", "beyond it as well", "too-tall.png", "INVALID_ASPEC_RATIO"},
		{"8 MB", "the limit of the size", "largest.jpg", ""},
		{"more than 8 MB", "beyond it", "large.jpg", "UNKNOWN"},
		{"WebP", "not one of the two types", "picture.webp", "UNKNOWN"},
		{"GIF", "nor is this", "picture.gif", "UNKNOWN"},
		{"page", "a page is no image", "page.html", "UNKNOWN"},
		{"video as an image", "by its content, not its parameter", "good.mov?as=image", "UNKNOWN"},
		{"MP4 of five minutes", "the limit of the length", "good.mp4", ""},
		{"MOV", "taken beside MP4", "good.mov", ""},
		{"longer", "beyond it", "long.mp4", "INVALID_DURATION"},
		{"more than 1920 columns", "videos are not scaled", "broad.mp4", "FAILED_PROCESSING_VIDEO"},
		{"flatter than ten to one", "the limit of the shape", "flat.mp4", "INVALID_ASPEC_RATIO"},
		{"thinner than one to a hundred", "and the other one", "thin.mp4", "INVALID_ASPEC_RATIO"},
		{"M4V", "Apple's name of MP4", "apple.m4v", ""},
		{"no length in its head", "a film in parts does not say it there", "parts.mp4", ""},
		{"cut off", "what cannot be read", "beginning.mp4", "FAILED_PROCESSING_VIDEO"},
		{"Matroska", "not one of the two types", "matroska.video", "FAILED_PROCESSING_VIDEO"},
		{"image as a video", "by its content, not its parameter", "good.png?as=video", "FAILED_PROCESSING_VIDEO"},
		{"no such video", "404 is no video, but the container is made", "none.mp4", "FAILED_DOWNLOADING_VIDEO"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values := imageOf(s.url + "/" + tt.file)
			if strings.Contains(tt.file, ".m") && !strings.HasSuffix(tt.file, "as=image") || strings.HasSuffix(tt.file, "video") {
				values = videoOf(s.url + "/" + tt.file)
			}
			id := b.container(values)
			b.clock.Step(threadsReady)
			want := "FINISHED"
			if tt.want != "" {
				want = "ERROR"
			}
			if got := b.settle(func() string { return b.containerStatus(id) }); got != want {
				t.Errorf("%s: %s, want %s", tt.reason, got, want)
			}
			if got := b.read("threads", "/threads/v1.0/"+id+"?fields=error_message").text("error_message"); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
			}
			posted := len(b.texts())
			if r := b.publishContainer(id); (r.status == http.StatusOK) != (tt.want == "") || (len(b.texts()) > posted) != (tt.want == "") {
				t.Errorf("%s: publishing it: %d %s", tt.reason, r.status, r.body)
			}
		})
	}
}

func TestThreadsVideo(t *testing.T) {
	b, film := start(t, ""), mp4Of("isom", 1080, 1920, 42*time.Second)
	s := newShelf(t, map[string][]byte{"a.mp4": film})
	s.hold = make(chan struct{})
	id := b.container(videoOf(s.url + "/a.mp4")) // the response does not wait for the file
	<-s.asked
	b.clock.Step(time.Minute)
	if got := b.containerStatus(id); got != "IN_PROGRESS" {
		t.Errorf("before it is fetched it is %s", got)
	}
	if r := b.publishContainer(id); r.at("error", "code") != 24.0 {
		t.Errorf("publishing too early: %d %s", r.status, r.body)
	}
	close(s.hold)
	if got := b.settle(func() string { return b.containerStatus(id) }); got != "FINISHED" {
		t.Fatalf("then it is %s", got)
	}
	post := b.publishContainer(id).text("id")
	r := b.read("threads", "/threads/v1.0/"+post+"?fields=media_type,media_url,text")
	want := map[string]any{"id": post, "media_type": "VIDEO", "media_url": b.http.URL + "/_media/" + sumOf(film)}
	if diff := cmp.Diff(any(want), r.at()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	shown := b.control(http.MethodGet, "/posts?platform=threads", "", http.StatusOK)
	if diff := cmp.Diff([]any{file(film, "video/mp4")}, shown.list("data", "0", "media")); diff != "" {
		t.Errorf("the control API (-want +got):\n%s", diff)
	}

	quick := b.container(videoOf(s.url + "/a.mp4"))
	b.clock.Step(threadsReady - time.Millisecond)
	<-s.asked
	if got := b.containerStatus(quick); got != "IN_PROGRESS" {
		t.Errorf("however quickly it is fetched, before its time it is %s", got)
	}
}

// TestThreadsVideoGoesOn restarts the sandbox during a video download, which then restarts.
func TestThreadsVideoGoesOn(t *testing.T) {
	b, film := start(t, t.TempDir()), mp4Of("isom", 64, 48, time.Second)
	s := newShelf(t, map[string][]byte{"a.mp4": film})
	s.hold = make(chan struct{})
	id := b.container(videoOf(s.url + "/a.mp4"))
	<-s.asked
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	close(s.hold)
	c := &box{t: t, clock: b.clock}
	c.open(b.dir)
	<-s.asked
	c.clock.Step(threadsReady)
	if got := c.settle(func() string { return c.containerStatus(id) }); got != "FINISHED" {
		t.Fatalf("it is %s", got)
	}
	if err := c.server.Close(); err != nil {
		t.Fatal(err)
	}
	d := &box{t: t, clock: b.clock}
	d.open(b.dir)
	if got := d.containerStatus(id); got != "FINISHED" {
		t.Errorf("after another restart it is %s", got)
	}
	if r := d.publishContainer(id); r.status != http.StatusOK || len(s.asked) != 0 {
		t.Errorf("publishing: %d %s; fetched %d times more", r.status, r.body, len(s.asked))
	}
	shown := d.control(http.MethodGet, "/posts", "", http.StatusOK)
	if diff := cmp.Diff([]any{file(film, "video/mp4")}, shown.list("data", "0", "media")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThreadsCarousel(t *testing.T) {
	b, one, two, film := start(t, ""), jpegOf(t, 40, 30), pngOf(t, 30, 40), mp4Of("isom", 64, 48, time.Second)
	s := newShelf(t, map[string][]byte{"1.jpg": one, "2.png": two, "3.mp4": film})
	items := []string{b.ready(itemOf(imageOf(s.url + "/1.jpg"))), b.ready(itemOf(imageOf(s.url + "/2.png"))), b.ready(itemOf(videoOf(s.url + "/3.mp4")))}
	root := b.thread("above", nil)
	id := b.ready(url.Values{
		"media_type": {"CAROUSEL"}, "children": {items[1] + "," + items[2] + "," + items[0]}, "text": {"three"}, "reply_to_id": {root},
	})
	post := b.publishContainer(id).text("id")
	r := b.read("threads", threadsPath+"/replies?fields=media_type,media_url,text,is_reply,replied_to,root_post,children{id,media_type,media_url}")
	ids := map[string]bool{post: true, id: true, items[0]: true, items[1]: true, items[2]: true}
	for i := range 3 {
		child := r.text("data", "0", "children", "data", fmt.Sprint(i), "id")
		if child == "" || ids[child] {
			t.Errorf("child %d has the id %q, want one of its own", i, child)
		}
		ids[child] = true
	}
	media := func(i int, data []byte, kind string) map[string]any {
		return map[string]any{
			"id":         r.text("data", "0", "children", "data", fmt.Sprint(i), "id"),
			"media_type": kind, "media_url": b.http.URL + "/_media/" + sumOf(data),
		}
	}
	want := map[string]any{
		"id": post, "media_type": "CAROUSEL_ALBUM", "text": "three", "is_reply": true, "replied_to": map[string]any{"id": root},
		"root_post": map[string]any{"id": root},
		"children":  map[string]any{"data": []any{media(0, two, "IMAGE"), media(1, film, "VIDEO"), media(2, one, "IMAGE")}},
	}
	if diff := cmp.Diff(any(want), r.at("data", "0")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	shown := b.control(http.MethodGet, "/posts?platform=threads", "", http.StatusOK)
	files := []any{file(two, "image/png"), file(film, "video/mp4"), file(one, "image/jpeg")}
	if diff := cmp.Diff(files, shown.list("data", "1", "media")); diff != "" || shown.text("data", "1", "in_reply_to") != root {
		t.Errorf("the control API, in reply to %v (-want +got):\n%s", shown.at("data", "1", "in_reply_to"), diff)
	}
	limit := b.read("threads", threadsPath+"/threads_publishing_limit?fields=quota_usage")
	if limit.at("data", "0", "quota_usage") != 1.0 {
		t.Errorf("a carousel counts once: %s", limit.body)
	}
}

func TestThreadsChildren(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 30), "a.gif": []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")})
	var items []string
	for range 21 {
		items = append(items, b.container(itemOf(imageOf(s.url+"/a.jpg"))))
	}
	broken, single := b.container(itemOf(imageOf(s.url+"/a.gif"))), b.container(imageOf(s.url+"/a.jpg"))
	other := b.control(http.MethodPut, "/accounts/threads/2", "", http.StatusCreated).text("data", "access_token")
	r := b.call(http.MethodPost, "/threads/v1.0/2/threads", other, formType, itemOf(imageOf(s.url+"/a.jpg")).Encode())
	foreign := r.text("id")
	b.clock.Step(threadsReady)
	fresh := b.container(itemOf(imageOf(s.url + "/a.jpg")))
	tests := []struct{ name, reason, children string }{
		{"one", "two at least", items[0]},
		{"twenty-one", "twenty at most", strings.Join(items, ",")},
		{"the same twice", "an item has one place", items[0] + "," + items[0]},
		{"in progress", "they must be ready", items[0] + "," + fresh},
		{"failed", "and good", items[0] + "," + broken},
		{"no item", "and made for it", items[0] + "," + single},
		{"another account's", "and one's own", items[0] + "," + foreign},
		{"unknown", "and there", items[0] + ",7"},
		{"with spaces", "commas separate", items[0] + ", " + items[1]},
		{"as JSON", "commas only", `["` + items[0] + `","` + items[1] + `"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.form("threads", threadsPath+"/threads", url.Values{"media_type": {"CAROUSEL"}, "children": {tt.children}})
			if r.status != http.StatusBadRequest || r.at("error", "code") != 100.0 || !strings.Contains(r.text("error", "message"), "children") {
				t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
			}
		})
	}
	if r := b.publishContainer(items[0]); r.at("error", "code") != 100.0 || len(b.texts()) != 0 {
		t.Errorf("an item alone is no post: %d %s", r.status, r.body)
	}
	all := b.ready(url.Values{"media_type": {"CAROUSEL"}, "children": {strings.Join(items[:20], ",")}})
	if r := b.publishContainer(all); r.status != http.StatusOK {
		t.Errorf("twenty fit: %d %s", r.status, r.body)
	}
	b.clock.Step(24 * time.Hour)
	late := url.Values{"media_type": {"CAROUSEL"}, "children": {items[0] + "," + items[1]}}
	if r := b.form("threads", threadsPath+"/threads", late); r.at("error", "error_subcode") != 4279004.0 || b.containerStatus(items[0]) != "EXPIRED" {
		t.Errorf("items live a day: %d %s", r.status, r.body)
	}
}

// TestThreadsForgetsWhatItFetches resets the sandbox during a video download, which drops the file.
func TestThreadsForgetsWhatItFetches(t *testing.T) {
	b := start(t, t.TempDir())
	s := newShelf(t, map[string][]byte{"a.mp4": mp4Of("isom", 64, 48, time.Second)})
	s.hold = make(chan struct{})
	id := b.container(videoOf(s.url + "/a.mp4"))
	<-s.asked
	b.control(http.MethodPost, "/reset", "", http.StatusNoContent)
	close(s.hold)
	if r := b.read("threads", "/threads/v1.0/"+id); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("the container is still there: %d %s", r.status, r.body)
	}
	if got := b.ready(videoOf(s.url + "/a.mp4")); got == id {
		t.Errorf("the next container has the same id, %s", got)
	}
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	c := &box{t: t, clock: b.clock}
	c.open(b.dir)
	if r := c.read("threads", "/threads/v1.0/"+id); r.at("error", "error_subcode") != 33.0 {
		t.Errorf("the container is back: %d %s", r.status, r.body)
	}
}
