// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const (
	instagramID   = "17841400000000001"
	instagramPath = "/instagram/v25.0/" + instagramID
	// videoWork is the video processing time in these tests.
	videoWork = 2 * time.Second
)

// igMedia sends a form to create a container.
func (b *box) igMedia(form string) reply {
	b.t.Helper()
	return b.as("instagram", http.MethodPost, instagramPath+"/media", formType, form)
}

// igContainer creates a container of the demo account and returns its id.
func (b *box) igContainer(values url.Values) string {
	b.t.Helper()
	return b.igMedia(values.Encode()).want(b.t, "the container", made...).text("id")
}

// igNode reads a container or post.
func (b *box) igNode(id, fields string) reply {
	b.t.Helper()
	return b.read("instagram", "/instagram/v25.0/"+id+"?fields="+fields)
}

func (b *box) igStatus(id string) string {
	b.t.Helper()
	return b.igNode(id, "status_code").text("status_code")
}

// igSettled waits for the end of a container's processing and returns its state.
func (b *box) igSettled(id string) string {
	b.t.Helper()
	b.clock.Step(videoWork)
	return b.settle(func() string { return b.igStatus(id) })
}

// igReady creates a publishable container.
func (b *box) igReady(values url.Values) string {
	b.t.Helper()
	id := b.igContainer(values)
	same(b.t, "container "+values.Encode(), "FINISHED", b.igSettled(id))
	return id
}

func (b *box) igPublish(id string) reply {
	b.t.Helper()
	return b.form("instagram", instagramPath+"/media_publish", url.Values{"creation_id": {id}})
}

// igPost creates and publishes a container, and returns the post's id.
func (b *box) igPost(values url.Values) string {
	b.t.Helper()
	id := b.igReady(values)
	post := b.igPublish(id).want(b.t, "the publication", made...).text("id")
	if post == id {
		b.t.Errorf("the post has its container's ID %s", id)
	}
	return post
}

func TestInstagramParameters(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40), "a.mp4": mp4Of("isom", 64, 48, 5*time.Second)})
	image, video := "image_url="+s.url+"/a.jpg", "video_url="+s.url+"/a.mp4"
	item, reel := image+"&is_carousel_item=true", "media_type=REELS&"+video
	one, two := b.igContainer(query(item)), b.igContainer(query(item))
	const carousel = "media_type=CAROUSEL&children="
	kind, count := graphSubcode(100, 2207023), graphSubcode(100, 2207028)
	b.each(t, b.igMedia, []row{
		{"a plain image", image, made},
		{"an image is not a carousel item by default", image + "&caption=a&is_carousel_item=false", made},
		{"VIDEO is the type of carousel items", "media_type=VIDEO&is_carousel_item=true&" + video + "&thumb_offset=10", made},
		{"Instagram has no text posts", "caption=hello", graphError(100, "image_url is required")},
		{"a reel needs a video", "media_type=REELS&caption=a", graphError(100, "video_url is required")},
		{"a reel has no image", "media_type=REELS&" + image, graphError(100, "image_url is not allowed")},
		{"a container has one file", image + "&" + video, graphError(100, "video_url is not allowed")},
		{"a video needs a type", video, kind},
		{"a single video is a reel", "media_type=VIDEO&" + video, kind},
		{"a carousel item is not a reel", reel + "&is_carousel_item=true", kind},
		{"an image has no type", "media_type=IMAGE&" + image, kind},
		{"types are an enumeration", "media_type=TEXT&" + image, kind},
		{"unknown parameters are rejected", image + "&text=a", graphError(100, "Param text is not known")},
		{
			"uploads need Facebook Login", "media_type=REELS&upload_type=resumable",
			graphError(100, "upload_type is not known"),
		},
		{"the caption belongs to the carousel", item + "&caption=a", graphError(100, "caption is not allowed")},
		{"only carousels have children", image + "&children=1,2", graphError(100, "children is not allowed")},
		{"an offset is a number", reel + "&thumb_offset=soon", graphError(100, "thumb_offset must be an integer")},
		{"an offset is not negative", reel + "&thumb_offset=-1", graphError(100, "thumb_offset must be an integer")},
		{"a carousel needs children", "media_type=CAROUSEL&caption=a", graphError(100, "children is required")},
		{"one child is not enough", carousel + one, count},
		{"eleven children are too many", carousel + strings.Repeat(one+",", 10) + two, count},
		{"a child may not be repeated", carousel + one + "," + one, count},
		{"children must exist", carousel + one + ",1", graphSubcode(24, 2207006)},
		{"carousels do not nest", carousel + one + "," + two + "&is_carousel_item=true", graphError(100, "is not allowed")},
	})
	long := graphSubcode(36004, 2207010)
	b.each(t, func(caption string) reply { return b.igMedia(image + "&caption=" + url.QueryEscape(caption)) }, []row{
		{"2200 characters fit, not bytes", strings.Repeat("見", 2200), made},
		{"2201 characters are too many", strings.Repeat("a", 2201), long},
		{"30 tags are allowed", strings.Repeat("#tag ", 30), made},
		{"31 tags are too many", strings.Repeat("#tag ", 31), long},
		{"tags in other scripts count too", strings.Repeat("#日本\n", 31), long},
		{"a # alone or inside a word is not a tag", strings.Repeat("# a#b ", 31), made},
		{"20 mentions are allowed", strings.Repeat("@a.b ", 20), made},
		{"21 mentions are too many", strings.Repeat("@a.b ", 21), long},
		{"a mail address is not a mention", strings.Repeat("a@b.c ", 21), made},
	})
	same(t, "containers are not posts", 0, len(b.texts()))
}

// webpOf returns a one-pixel image.
func webpOf(t *testing.T) []byte {
	t.Helper()
	out, err := base64.StdEncoding.DecodeString("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInstagramPictures(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{
		"square": jpegOf(t, 40, 40), "4:5": jpegOf(t, 40, 50), "taller": jpegOf(t, 40, 51), "1.91:1": jpegOf(t, 191, 100),
		"wider": jpegOf(t, 192, 100), "huge": jpegOf(t, 3000, 2000), "8MiB": longer(jpegOf(t, 40, 40), 8*mib),
		"heavier": longer(jpegOf(t, 40, 40), 8*mib+1), "png": pngOf(t, 40, 40), "webp": webpOf(t), "film": mp4Of("isom", 64, 48, 5*time.Second),
		"page": []byte("<!doctype html><title>a</title>"), "nothing": {}, "torn": jpegOf(t, 40, 40)[:10],
	})
	format, shape, unreachable := graphSubcode(36001, 2207005), graphSubcode(36003, 2207009), graphSubcode(9004, 2207052)
	send := func(address string) reply {
		if !strings.Contains(address, ":/") && address != "square.jpg" {
			address = s.url + "/" + address
		}
		r := b.igMedia(url.Values{"image_url": {address}}.Encode())
		if r.status == http.StatusOK {
			same(t, "an image is ready at once", "FINISHED", b.igStatus(r.text("id")))
		}
		return r
	}
	b.each(t, send, []row{
		{"a square image", "square?sig=1", made},
		{"4:5 is the tallest shape", "4:5", made},
		{"1.91:1 is the widest shape", "1.91:1", made},
		{"large images are scaled", "huge", made},
		{"8 MiB are allowed", "8MiB", made},
		{"one byte more is too large", "heavier", graphSubcode(36000, 2207004)},
		{"40 to 51 is too tall", "taller", shape},
		{"1.92:1 is too wide", "wider", shape},
		{"a PNG: only JPEG is allowed", "png", format},
		{"a WebP: only JPEG is allowed", "webp", format},
		{"a video is not an image", "film", format},
		{"a page is not an image", "page", format},
		{"an empty file is not an image", "nothing", format},
		{"an incomplete image", "torn", format},
		{"an unknown file", "none", unreachable},
		{"a server that cannot be reached", "http://127.0.0.1:1/a.jpg", unreachable},
		{"files are fetched over the web only", "file:///etc/hosts", unreachable},
		{"an address has a host", "square.jpg", unreachable},
		{"addresses are ASCII", "square?é", unreachable},
	})
}

func TestInstagramVideos(t *testing.T) {
	b := start(t, "")
	film := func(width, height int, length time.Duration) []byte { return mp4Of("isom", width, height, length) }
	s := newShelf(t, map[string][]byte{})
	const short, gone, cover = "2207026", "2207052", "2207057"
	for _, tt := range []struct {
		why     string
		file    []byte
		more    string
		failure string // the subcode in the status; empty for success
	}{
		{"an MP4", film(64, 48, 5*time.Second), "", ""},
		{"a QuickTime video", mp4Of("qt  ", 64, 48, 5*time.Second), "", ""},
		{"3 seconds are the minimum", film(64, 48, 3*time.Second), "", ""},
		{"a millisecond less is too short", film(64, 48, 2999*time.Millisecond), "", short},
		{"15 minutes are the maximum", film(64, 48, 15*time.Minute), "", ""},
		{"a millisecond more is too long", film(64, 48, 15*time.Minute+time.Millisecond), "", short},
		{"1920 columns are the maximum", film(1920, 1080, 5*time.Second), "", ""},
		{"1921 columns are too many", film(1921, 1080, 5*time.Second), "", short},
		{"wider than 10:1", film(1100, 100, 5*time.Second), "", short},
		{"26 Mbit/s: 25 are allowed", longer(film(64, 48, 3*time.Second), 10_000_000), "", short},
		{"a page is not a video", []byte("<!doctype html>"), "", short},
		{"an image is not a video", jpegOf(t, 40, 40), "", short},
		{"an unknown file", nil, "", gone},
		{"a cover just before the end", film(64, 48, 5*time.Second), "&thumb_offset=4999", ""},
		{"a cover at the end is outside", film(64, 48, 5*time.Second), "&thumb_offset=5000", cover},
	} {
		delete(s.files, "file")
		if tt.file != nil {
			s.files["file"] = tt.file
		}
		id := b.igContainer(query("media_type=REELS&video_url=" + s.url + "/file" + tt.more))
		b.igSettled(id)
		status, published := is{"status_code=FINISHED", "status=*"}, made
		if tt.failure != "" {
			status, published = is{"status_code=ERROR", "status~" + tt.failure}, graphError(9007, "")
		}
		b.igNode(id, "status_code,status").want(t, tt.why, status...)
		b.igPublish(id).want(t, tt.why+": publishing it", published...)
	}
}
