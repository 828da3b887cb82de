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

	"github.com/google/go-cmp/cmp"
)

const (
	instagramID   = "17841400000000001"
	instagramPath = "/instagram/v25.0/" + instagramID
	// videoWork is the video processing time in these tests.
	videoWork = 2 * time.Second
)

// igContainer creates a container of the demo account and returns its id.
func (b *box) igContainer(values url.Values) string {
	b.t.Helper()
	r := b.form("instagram", instagramPath+"/media", values)
	if r.status != http.StatusOK || r.text("id") == "" {
		b.t.Fatalf("container %v: %d %s", values, r.status, r.body)
	}
	return r.text("id")
}

func (b *box) igStatus(id string) string {
	b.t.Helper()
	return b.read("instagram", "/instagram/v25.0/"+id+"?fields=status_code").text("status_code")
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
	if got := b.igSettled(id); got != "FINISHED" {
		b.t.Fatalf("container %v is %s", values, b.read("instagram", "/instagram/v25.0/"+id+"?fields=status_code,status").body)
	}
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
	r := b.igPublish(id)
	if r.status != http.StatusOK || r.text("id") == "" || r.text("id") == id {
		b.t.Fatalf("publish: %d %s, want an id that is not the container's", r.status, r.body)
	}
	return r.text("id")
}

func TestInstagramParameters(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40), "a.mp4": mp4Of("isom", 64, 48, 5*time.Second), "a.png": pngOf(t, 40, 40)})
	image, reel := "image_url="+s.url+"/a.jpg", "media_type=REELS&video_url="+s.url+"/a.mp4"
	item, film := image+"&is_carousel_item=true", "media_type=VIDEO&is_carousel_item=true&video_url="+s.url+"/a.mp4"
	one, two := b.igContainer(query(item)), b.igContainer(query(item))
	carousel := "media_type=CAROUSEL&children=" + one + "," + two
	tests := []struct {
		name, reason, form string
		code, subcode      any    // of the error; nil for success or without a code
		want               string // part of the error's message
	}{
		{"picture", "the plain case", image, nil, nil, ""},
		{"picture that is said to be no item", "which is the default", image + "&caption=a&is_carousel_item=false", nil, nil, ""},
		{"film of a carousel", "VIDEO is for items", film + "&thumb_offset=10", nil, nil, ""},

		{"nothing", "there are no posts of text", "caption=hello", 100.0, nil, "image_url is required"},
		{"reel without a video", "nothing to fetch", "media_type=REELS&caption=a", 100.0, nil, "video_url is required"},
		{"reel with a picture", "the wrong parameter", "media_type=REELS&" + image, 100.0, nil, "image_url is not allowed"},
		{"both", "one file for one container", image + "&video_url=" + s.url + "/a.mp4", 100.0, nil, "video_url is not allowed"},
		{"video without a type", "which kind would it be", "video_url=" + s.url + "/a.mp4", 100.0, 2207023.0, ""},
		{"video of its own", "those are reels", "media_type=VIDEO&video_url=" + s.url + "/a.mp4", 100.0, 2207023.0, ""},
		{"reel as an item", "those are videos", reel + "&is_carousel_item=true", 100.0, 2207023.0, ""},
		{"picture with a type", "it has none", "media_type=IMAGE&" + image, 100.0, 2207023.0, ""},
		{"another type", "an enumeration", "media_type=TEXT&" + image, 100.0, 2207023.0, ""},
		{"misspelt parameter", "what is not known is refused", image + "&text=a", 100.0, nil, "Param text is not known"},
		{"Facebook's upload", "as well", "media_type=REELS&upload_type=resumable", 100.0, nil, "upload_type is not known"},
		{"caption of an item", "the caption is the parent's", item + "&caption=a", 100.0, nil, "caption is not allowed"},
		{"children of a picture", "carousels have some", image + "&children=1,2", 100.0, nil, "children is not allowed"},
		{"offset that is none", "a number", reel + "&thumb_offset=soon", 100.0, nil, "thumb_offset must be an integer"},
		{"offset before the video", "not below 0", reel + "&thumb_offset=-1", 100.0, nil, "thumb_offset must be an integer"},

		{"no children", "a carousel shows something", "media_type=CAROUSEL&caption=a", 100.0, nil, "children is required"},
		{"one child", "two at least", "media_type=CAROUSEL&children=" + one, 100.0, 2207028.0, ""},
		{"eleven children", "ten at most", "media_type=CAROUSEL&children=" + strings.Repeat(one+",", 10) + two, 100.0, 2207028.0, ""},
		{"the same child twice", "each once", "media_type=CAROUSEL&children=" + one + "," + one, 100.0, 2207028.0, ""},
		{"child that does not exist", "it must", "media_type=CAROUSEL&children=" + one + ",1", 24.0, 2207006.0, ""},
		{"carousel within a carousel", "carousels do not nest", carousel + "&is_carousel_item=true", 100.0, nil, "is not allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.as("instagram", http.MethodPost, instagramPath+"/media", formType, tt.form)
			if tt.code == nil {
				if r.status != http.StatusOK || r.text("id") == "" {
					t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
				}
				return
			}
			if r.status != http.StatusBadRequest || r.at("error", "code") != tt.code || !strings.Contains(r.text("error", "message"), tt.want) {
				t.Errorf("%s: %d %s, want code %v with %q", tt.reason, r.status, r.body, tt.code, tt.want)
			}
			if tt.subcode != nil && r.at("error", "error_subcode") != tt.subcode {
				t.Errorf("%s: %s, want subcode %v", tt.reason, r.body, tt.subcode)
			}
		})
	}
	if got := b.texts(); len(got) != 0 {
		t.Errorf("containers are not posts: %q", got)
	}
}

func TestInstagramCaptions(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
	tests := []struct {
		name, reason, caption string
		fits                  bool
	}{
		{"longest", "2200 characters, not bytes", strings.Repeat("見", 2200), true},
		{"too long", "and no more", strings.Repeat("a", 2201), false},
		{"30 tags", "as many as may be", strings.Repeat("#tag ", 30), true},
		{"31 tags", "one too many", strings.Repeat("#tag ", 31), false},
		{"tags in other scripts", "they are tags as well", strings.Repeat("#日本\n", 31), false},
		{"no tags", "a sign alone, or within a word, is none", strings.Repeat("# a#b ", 31), true},
		{"20 mentions", "as many as may be", strings.Repeat("@a.b ", 20), true},
		{"21 mentions", "one too many", strings.Repeat("@a.b ", 21), false},
		{"no mentions", "addresses of mail are none", strings.Repeat("a@b.c ", 21), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.form("instagram", instagramPath+"/media", url.Values{"image_url": {s.url + "/a.jpg"}, "caption": {tt.caption}})
			if tt.fits && r.status != http.StatusOK {
				t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
			}
			if !tt.fits && (r.at("error", "code") != 36004.0 || r.at("error", "error_subcode") != 2207010.0) {
				t.Errorf("%s: %d %s, want code 36004", tt.reason, r.status, r.body)
			}
		})
	}
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
		"square": jpegOf(t, 40, 40), "tall": jpegOf(t, 40, 50), "taller": jpegOf(t, 40, 51), "wide": jpegOf(t, 191, 100),
		"wider": jpegOf(t, 192, 100), "huge": jpegOf(t, 3000, 2000), "heavy": longer(jpegOf(t, 40, 40), 8<<20),
		"heavier": longer(jpegOf(t, 40, 40), 8<<20+1), "png": pngOf(t, 40, 40), "webp": webpOf(t), "film": mp4Of("isom", 64, 48, 5*time.Second),
		"page": []byte("<!doctype html><title>a</title>"), "nothing": {}, "torn": jpegOf(t, 40, 40)[:10],
	})
	tests := []struct {
		name, reason, address string
		code, subcode         any
	}{
		{"square", "the plain case", s.url + "/square?sig=1", nil, nil},
		{"4:5", "as tall as may be", s.url + "/tall", nil, nil},
		{"1.91:1", "as wide as may be", s.url + "/wide", nil, nil},
		{"many pixels", "they are scaled", s.url + "/huge", nil, nil},
		{"8 MiB", "as many bytes as may be", s.url + "/heavy", nil, nil},
		{"8 MiB and a byte", "one too many", s.url + "/heavier", 36000.0, 2207004.0},
		{"taller", "a column of 40 to 51", s.url + "/taller", 36003.0, 2207009.0},
		{"wider", "1.92:1", s.url + "/wider", 36003.0, 2207009.0},
		{"PNG", "JPEG only", s.url + "/png", 36001.0, 2207005.0},
		{"WebP", "JPEG only", s.url + "/webp", 36001.0, 2207005.0},
		{"film", "no picture", s.url + "/film", 36001.0, 2207005.0},
		{"page", "no picture", s.url + "/page", 36001.0, 2207005.0},
		{"no bytes", "no picture", s.url + "/nothing", 36001.0, 2207005.0},
		{"torn", "a beginning is no picture", s.url + "/torn", 36001.0, 2207005.0},
		{"not there", "404 is no picture", s.url + "/none", 9004.0, 2207052.0},
		{"unused address", "a refused connection is none either", "http://127.0.0.1:1/a.jpg", 9004.0, 2207052.0},
		{"file", "only the web is fetched", "file:///etc/hosts", 9004.0, 2207052.0},
		{"no address", "nothing to ask", "square.jpg", 9004.0, 2207052.0},
		{"other letters than ASCII", "addresses are written in ASCII", s.url + "/square?é", 9004.0, 2207052.0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.form("instagram", instagramPath+"/media", url.Values{"image_url": {tt.address}})
			if tt.code == nil {
				if got := b.igStatus(r.text("id")); got != "FINISHED" {
					t.Errorf("%s: %d %s, and it is %s", tt.reason, r.status, r.body, got)
				}
				return
			}
			if diff := cmp.Diff([]any{400, tt.code, tt.subcode}, []any{r.status, r.at("error", "code"), r.at("error", "error_subcode")}); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tt.reason, r.body, diff)
			}
		})
	}
}

func TestInstagramVideos(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{
		"mp4": mp4Of("isom", 64, 48, 5*time.Second), "mov": mp4Of("qt  ", 64, 48, 5*time.Second), "3s": mp4Of("isom", 64, 48, 3*time.Second),
		"short": mp4Of("isom", 64, 48, 2999*time.Millisecond), "15m": mp4Of("isom", 64, 48, 15*time.Minute), "long": mp4Of("isom", 64, 48, 15*time.Minute+time.Millisecond),
		"1920": mp4Of("isom", 1920, 1080, 5*time.Second), "1921": mp4Of("isom", 1921, 1080, 5*time.Second), "flat": mp4Of("isom", 1100, 100, 5*time.Second),
		"dense": longer(mp4Of("isom", 64, 48, 3*time.Second), 10_000_000), "page": []byte("<!doctype html>"), "a.jpg": jpegOf(t, 40, 40),
	})
	tests := []struct{ name, reason, video, more, failure string }{
		{"MP4", "the plain case", "mp4", "", ""},
		{"MOV", "allowed as well", "mov", "", ""},
		{"3 seconds", "as short as may be", "3s", "", ""},
		{"shorter", "by a millisecond", "short", "", "2207026"},
		{"15 minutes", "as long as may be", "15m", "", ""},
		{"longer", "by a millisecond", "long", "", "2207026"},
		{"1920 columns", "as many as may be", "1920", "", ""},
		{"1921 columns", "one too many", "1921", "", "2207026"},
		{"flat", "wider than 10:1", "flat", "", "2207026"},
		{"26 Mbit a second", "25 are allowed", "dense", "", "2207026"},
		{"page", "no video", "page", "", "2207026"},
		{"picture", "no video", "a.jpg", "", "2207026"},
		{"not there", "404 is no video", "none", "", "2207052"},
		{"cover from within", "just before the end", "mp4", "&thumb_offset=4999", ""},
		{"cover from behind", "the end is not within", "mp4", "&thumb_offset=5000", "2207057"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := b.igContainer(query("media_type=REELS&video_url=" + s.url + "/" + tt.video + tt.more))
			want := map[string]any{"id": id, "status_code": "FINISHED"}
			b.igSettled(id)
			r := b.read("instagram", "/instagram/v25.0/"+id+"?fields=status_code,status")
			text := r.text("status")
			if tt.failure != "" {
				want["status_code"] = "ERROR"
			}
			want["status"] = text
			if diff := cmp.Diff(any(want), r.at()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if tt.failure != "" && !strings.HasSuffix(text, tt.failure) {
				t.Errorf("%s: %q, want subcode %s", tt.reason, text, tt.failure)
			}
			if r := b.igPublish(id); tt.failure != "" && r.at("error", "code") != 9007.0 || tt.failure == "" && r.status != http.StatusOK {
				t.Errorf("%s: publishing it: %d %s", tt.reason, r.status, r.body)
			}
		})
	}
}
