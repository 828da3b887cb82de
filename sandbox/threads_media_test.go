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
)

// threadsReady exceeds any fetched file's processing time.
const threadsReady = 2 * time.Second

// settled waits for the end of a container's processing and returns its status.
func (b *box) settled(id string) string {
	b.t.Helper()
	b.clock.Step(threadsReady)
	return b.settle(func() string { return b.containerStatus(id) })
}

// ready creates a container and waits for the end of its processing.
func (b *box) ready(values url.Values) string {
	b.t.Helper()
	id := b.container(values)
	same(b.t, "container "+values.Encode(), "FINISHED", b.settled(id))
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

func carouselOf(children ...string) url.Values {
	return url.Values{"media_type": {"CAROUSEL"}, "children": {strings.Join(children, ",")}}
}

func TestThreadsImage(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 30)
	s := newShelf(t, map[string][]byte{"a.jpg": picture})
	values := imageOf(s.url + "/a.jpg?sig=1")
	values.Set("text", "see")
	id := b.container(values)
	same(t, "at first", "IN_PROGRESS", b.containerStatus(id))
	b.publishContainer(id).want(t, "publishing too early", graphError(24, "")...)
	b.clock.Step(200 * time.Millisecond)
	delete(s.files, "a.jpg") // a fetched file is not fetched again
	post, address := b.publishContainer(id).text("id"), "/_media/"+sumOf(picture)
	same(t, "the post", map[string]any{"id": post, "media_type": "IMAGE", "text": "see", "media_url": b.http.URL + address},
		b.threadsNode(post, "media_type,text,media_url,children").at())
	same(t, "the bytes at media_url", string(picture), b.page(address).body)
	same(t, "the file in the control API", any(mediaOf("image/jpeg", picture)), field(b.posted("threads"), 0, "media"))
	b.page("/accounts/threads/"+threadsID).want(t, "the feed shows the image", "~"+address)
}

func TestThreadsMediaParameters(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 30), "a.mp4": mp4Of("isom", 64, 48, time.Second)})
	jpg, mp4 := "image_url="+s.url+"/a.jpg", "video_url="+s.url+"/a.mp4"
	image, video := "media_type=IMAGE&"+jpg, "media_type=VIDEO&"+mp4
	unreachable := graphError(9004, "could not be fetched from this URI")
	b.each(t, b.threadsForm, []row{
		{"an image needs no text", image, made},
		{"its text has the same limit", image + "&text=" + strings.Repeat("a", 501), graphError(100, "at most 500")},
		{"an image needs an address", "media_type=IMAGE&text=a", graphError(100, "image_url is required")},
		{"an image does not have a video's address", "media_type=IMAGE&" + mp4, graphError(100, "image_url is required")},
		{"a container has one file", image + "&" + mp4, graphError(100, "video_url is not allowed")},
		{"only carousels have children", image + "&children=1,2", graphError(100, "children is not allowed")},
		{"an image must exist", "media_type=IMAGE&image_url=" + s.url + "/b.jpg", unreachable},
		{"its server must be reachable", "media_type=IMAGE&image_url=http://127.0.0.1:1/a.jpg", unreachable},
		{"files are fetched over the web only", "media_type=IMAGE&image_url=file:///etc/passwd", unreachable},
		{"types are an enumeration", "media_type=REELS&" + mp4, graphError(100, "media_type must be one of")},
		{"unknown parameters are rejected", image + "&caption=a", graphError(100, "Param caption is not known")},
		{"a plain video", video, made},
		{"a video needs an address", "media_type=VIDEO&text=a", graphError(100, "video_url is required")},
		{"an address has a host", "media_type=VIDEO&video_url=a.mp4", unreachable},
		{"the parent must exist", video + "&reply_to_id=1", is{400, "error.message~reply_to_id"}},
		{"a carousel needs children", "media_type=CAROUSEL&text=a", graphError(100, "children is required")},
		{
			"carousels do not nest", "media_type=CAROUSEL&children=1,2&is_carousel_item=true",
			graphError(100, "is_carousel_item is not allowed"),
		},
		{"a flag is true or false", image + "&is_carousel_item=yes", graphError(100, "is_carousel_item must be a boolean")},
	})
	same(t, "containers are not posts", 0, len(b.texts()))
}

// TestThreadsMediaFailures creates containers that fail because of their files and cannot be published.
func TestThreadsMediaFailures(t *testing.T) {
	b := start(t, "")
	film := func(width, height int, length time.Duration) []byte { return mp4Of("isom", width, height, length) }
	gif := []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")
	webp := []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")
	matroska := []byte("\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x1f\x42\x86\x81\x01\x42\x82\x88matroska")
	s := newShelf(t, map[string][]byte{})
	for _, tt := range []struct {
		why     string
		of      func(string) url.Values
		file    []byte
		failure string // error_message; empty for success
	}{
		{"a PNG", imageOf, pngOf(t, 40, 30), ""},
		{"an image of ten to one", imageOf, pngOf(t, 100, 10), ""},
		{"a wider image", imageOf, pngOf(t, 101, 10), "INVALID_ASPEC_RATIO"},
		{"a taller image", imageOf, pngOf(t, 10, 101), "INVALID_ASPEC_RATIO"},
		{"an image of 8 MB", imageOf, longer(jpegOf(t, 40, 30), 8*mib), ""},
		{"an image of more than 8 MB", imageOf, longer(jpegOf(t, 40, 30), 8*mib+1), "UNKNOWN"},
		{"WebP is not allowed", imageOf, webp, "UNKNOWN"},
		{"GIF is not allowed", imageOf, gif, "UNKNOWN"},
		{"a page is not an image", imageOf, []byte("<!DOCTYPE html><html></html>"), "UNKNOWN"},
		{"a video as an image: the content decides", imageOf, mp4Of("qt  ", 64, 48, time.Second), "UNKNOWN"},
		{"an MP4 of five minutes", videoOf, film(1080, 1920, 300*time.Second), ""},
		{"a QuickTime video", videoOf, mp4Of("qt  ", 64, 48, time.Second), ""},
		{"a longer video", videoOf, film(1080, 1920, 300*time.Second+time.Millisecond), "INVALID_DURATION"},
		{"more than 1920 columns: videos are not scaled", videoOf, film(1921, 1080, time.Second), "FAILED_PROCESSING_VIDEO"},
		{"a video wider than ten to one", videoOf, film(1001, 100, time.Second), "INVALID_ASPEC_RATIO"},
		{"a video taller than a hundred to one", videoOf, film(10, 1001, time.Second), "INVALID_ASPEC_RATIO"},
		{"an M4V, Apple's name of MP4", videoOf, mp4Of("M4V ", 64, 48, time.Second), ""},
		{"the header of a fragmented video has no length", videoOf, film(64, 48, 0), ""},
		{"an incomplete video", videoOf, film(64, 48, time.Second)[:24], "FAILED_PROCESSING_VIDEO"},
		{"Matroska is not allowed", videoOf, matroska, "FAILED_PROCESSING_VIDEO"},
		{"an image as a video: the content decides", videoOf, pngOf(t, 40, 30), "FAILED_PROCESSING_VIDEO"},
		{"an unknown video: the container is created", videoOf, nil, "FAILED_DOWNLOADING_VIDEO"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			delete(s.files, "file")
			if tt.file != nil {
				s.files["file"] = tt.file
			}
			before, posts := len(b.texts()), 0
			id := b.container(tt.of(s.url + "/file"))
			status, published := "ERROR", graphError(24, "")
			if tt.failure == "" {
				status, published, posts = "FINISHED", made, 1
			}
			same(t, tt.why, status, b.settled(id))
			b.threadsNode(id, "error_message").want(t, tt.why, "error_message="+tt.failure)
			b.publishContainer(id).want(t, tt.why, published...)
			same(t, "posts", posts, len(b.texts())-before)
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
	same(t, "before it is fetched", "IN_PROGRESS", b.containerStatus(id))
	b.publishContainer(id).want(t, "publishing too early", graphError(24, "")...)
	close(s.hold)
	same(t, "after it is fetched", "FINISHED", b.settled(id))
	post := b.publishContainer(id).text("id")
	same(t, "the post", map[string]any{"id": post, "media_type": "VIDEO", "media_url": b.http.URL + "/_media/" + sumOf(film)},
		b.threadsNode(post, "media_type,media_url,text").at())
	same(t, "the file in the control API", any(mediaOf("video/mp4", film)), field(b.posted("threads"), 0, "media"))
	quick := b.container(videoOf(s.url + "/a.mp4"))
	b.clock.Step(threadsReady - time.Millisecond)
	<-s.asked
	same(t, "processing takes its time even if the file is fetched at once", "IN_PROGRESS", b.containerStatus(quick))
}

// TestThreadsVideoRestarts restarts the sandbox during a video download, which then restarts.
func TestThreadsVideoRestarts(t *testing.T) {
	b, film := start(t, t.TempDir()), mp4Of("isom", 64, 48, time.Second)
	s := newShelf(t, map[string][]byte{"a.mp4": film})
	s.hold = make(chan struct{})
	id := b.container(videoOf(s.url + "/a.mp4"))
	<-s.asked
	c := b.restarted(func() { close(s.hold) })
	<-s.asked
	same(t, "after a restart", "FINISHED", c.settled(id))
	d := c.restart()
	same(t, "after another restart", "FINISHED", d.containerStatus(id))
	d.publishContainer(id).want(t, "publishing", 200)
	same(t, "further downloads", 0, len(s.asked))
	same(t, "the file in the control API", any(mediaOf("video/mp4", film)), field(d.posted("threads"), 0, "media"))
}

func TestThreadsCarousel(t *testing.T) {
	b, one, two, film := start(t, ""), jpegOf(t, 40, 30), pngOf(t, 30, 40), mp4Of("isom", 64, 48, time.Second)
	s := newShelf(t, map[string][]byte{"1.jpg": one, "2.png": two, "3.mp4": film})
	first, second := b.ready(itemOf(imageOf(s.url+"/1.jpg"))), b.ready(itemOf(imageOf(s.url+"/2.png")))
	third, root := b.ready(itemOf(videoOf(s.url+"/3.mp4"))), b.thread("above", nil)
	values := carouselOf(second, third, first)
	values.Set("text", "three")
	values.Set("reply_to_id", root)
	id := b.ready(values)
	post := b.publishContainer(id).text("id")
	const fields = "media_type,media_url,text,is_reply,replied_to,root_post,children{id,media_type,media_url}"
	r := b.read("threads", threadsPath+"/replies?fields="+fields)
	ids := map[string]bool{post: true, id: true, first: true, second: true, third: true}
	for _, child := range r.each("data.0.children.data", "id") {
		if child == "" || ids[child] {
			t.Errorf("a child has the ID %q, want a new one", child)
		}
		ids[child] = true
	}
	media := func(i int, data []byte, kind string) map[string]any {
		return map[string]any{
			"id":         r.text("data", "0", "children", "data", fmt.Sprint(i), "id"),
			"media_type": kind, "media_url": b.http.URL + "/_media/" + sumOf(data),
		}
	}
	same(t, "the post", map[string]any{
		"id": post, "media_type": "CAROUSEL_ALBUM", "text": "three", "is_reply": true, "replied_to": map[string]any{"id": root},
		"root_post": map[string]any{"id": root},
		"children":  map[string]any{"data": []any{media(0, two, "IMAGE"), media(1, film, "VIDEO"), media(2, one, "IMAGE")}},
	}, r.at("data", "0"))
	posts := b.posted("threads")
	same(t, "the parent in the control API", any(root), field(posts, 1, "in_reply_to"))
	files := []any{file(two, "image/png"), file(film, "video/mp4"), file(one, "image/jpeg")}
	same(t, "the files in the control API", any(files), field(posts, 1, "media"))
	b.read("threads", threadsPath+"/threads_publishing_limit?fields=quota_usage").want(t, "a carousel counts once", "data.0.quota_usage=1")
}

func TestThreadsChildren(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 30), "a.gif": []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")})
	item := func() url.Values { return itemOf(imageOf(s.url + "/a.jpg")) }
	var items []string
	for range 21 {
		items = append(items, b.container(item()))
	}
	broken, single := b.container(itemOf(imageOf(s.url+"/a.gif"))), b.container(imageOf(s.url+"/a.jpg"))
	foreign := b.call(http.MethodPost, "/threads/v1.0/2/threads", b.account("threads", "2", ""), formType, item().Encode()).text("id")
	b.clock.Step(threadsReady)
	refused, one := graphError(100, "children"), items[0]
	b.each(t, func(children string) reply { return b.threadsForm(carouselOf(children).Encode()) }, []row{
		{"a carousel has at least two children", one, refused},
		{"a carousel has at most twenty children", strings.Join(items, ","), refused},
		{"a child may not be repeated", one + "," + one, refused},
		{"children must be processed", one + "," + b.container(item()), refused},
		{"children must not have failed", one + "," + broken, refused},
		{"children must be carousel items", one + "," + single, refused},
		{"children must belong to the account", one + "," + foreign, refused},
		{"children must exist", one + ",7", refused},
		{"children are separated by commas only", one + ", " + items[1], refused},
		{"children are not JSON", `["` + one + `","` + items[1] + `"]`, refused},
	})
	b.publishContainer(one).want(t, "an item is not a post", graphError(100, "")...)
	b.publishContainer(b.ready(carouselOf(items[:20]...))).want(t, "twenty children fit", 200)
	b.clock.Step(24 * time.Hour)
	b.threadsForm(carouselOf(one, items[1]).Encode()).want(t, "items expire after a day", "error.error_subcode=4279004")
	same(t, "an item after a day", "EXPIRED", b.containerStatus(one))
}

// TestThreadsResetDropsDownloads resets the sandbox during a video download, which drops the file.
func TestThreadsResetDropsDownloads(t *testing.T) {
	b := start(t, t.TempDir())
	s := newShelf(t, map[string][]byte{"a.mp4": mp4Of("isom", 64, 48, time.Second)})
	s.hold = make(chan struct{})
	id := b.container(videoOf(s.url + "/a.mp4"))
	<-s.asked
	b.control(http.MethodPost, "/reset", "", http.StatusNoContent)
	close(s.hold)
	b.threadsNode(id, "id").want(t, "the container after a reset", missing...)
	if got := b.ready(videoOf(s.url + "/a.mp4")); got == id {
		t.Errorf("the next container has the same ID, %s", got)
	}
	b.restart().threadsNode(id, "id").want(t, "the container after a restart", missing...)
}
