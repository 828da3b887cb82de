// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	xMedia = "/x/2/media/upload"
)

// xPicture returns an image that is unique per shade.
func xPicture(t *testing.T, format string, width, height int, shade uint8) []byte {
	t.Helper()
	picture := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Gray{Y: shade}})
	var out bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&out, picture)
	case "jpeg":
		err = jpeg.Encode(&out, picture, nil)
	case "gif":
		err = gif.Encode(&out, picture, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// xForm returns a multipart body of name and value pairs.
func xForm(pairs ...string) (contentType, body string) {
	var out bytes.Buffer
	form := multipart.NewWriter(&out)
	for i := 0; i < len(pairs); i += 2 {
		// Writing to a buffer never fails.
		_ = form.WriteField(pairs[i], pairs[i+1])
	}
	_ = form.Close()
	return form.FormDataContentType(), out.String()
}

func (b *box) xForm(path string, pairs ...string) reply {
	b.t.Helper()
	contentType, body := xForm(pairs...)
	return b.call(http.MethodPost, path, demoAccess, contentType, body)
}

func (b *box) xInitialize(mediaType, category string, total int) reply {
	b.t.Helper()
	return b.call(http.MethodPost, xMedia+"/initialize", demoAccess, jsonType,
		fmt.Sprintf(`{"media_type":%q,"media_category":%q,"total_bytes":%d}`, mediaType, category, total))
}

func (b *box) xAppend(id string, segment int, content []byte) reply {
	b.t.Helper()
	return b.xForm(xMedia+"/"+id+"/append", "segment_index", strconv.Itoa(segment), "media", string(content))
}

func (b *box) xFinalize(id string) reply {
	b.t.Helper()
	return b.call(http.MethodPost, xMedia+"/"+id+"/finalize", demoAccess, "", "")
}

func (b *box) xStatus(id string) reply {
	b.t.Helper()
	return b.get(xMedia + "?command=STATUS&media_id=" + id)
}

// xImage uploads a picture and returns its id.
func (b *box) xImage(content []byte) string {
	b.t.Helper()
	r := b.xForm(xMedia, "media", string(content), "media_category", "tweet_image")
	if r.status != http.StatusOK {
		b.t.Fatalf("upload an image: %d %s", r.status, r.body)
	}
	return r.text("data", "id")
}

// xSent uploads a file in two chunks, including finalize, and returns its id.
func (b *box) xSent(mediaType, category string, content []byte) string {
	b.t.Helper()
	id := b.xInitialize(mediaType, category, len(content)).text("data", "id")
	half := len(content) / 2
	for i, part := range [][]byte{content[:half], content[half:]} {
		if r := b.xAppend(id, i, part); r.status != http.StatusOK {
			b.t.Fatalf("chunk %d: %d %s", i, r.status, r.body)
		}
	}
	if r := b.xFinalize(id); r.status != http.StatusOK {
		b.t.Fatalf("finalize: %d %s", r.status, r.body)
	}
	return id
}

// xDone is xSent, and waits for the end of X's processing.
func (b *box) xDone(mediaType, category string, content []byte) string {
	b.t.Helper()
	id := b.xSent(mediaType, category, content)
	b.clock.Step(2 * time.Second)
	if r := b.xStatus(id); r.at("data", "processing_info", "state") != "succeeded" {
		b.t.Fatalf("after two seconds: %d %s", r.status, r.body)
	}
	return id
}

func isXProblem(r reply, status int, in string) bool {
	return r.status == status && r.at("status") == float64(status) && strings.Contains(r.body, in)
}

func TestXImageInOneRequest(t *testing.T) {
	b := start(t, "")
	content := xPicture(t, "png", 40, 30, 1)
	want := func(id string) any {
		return map[string]any{
			"id": id, "media_key": "3_" + id, "size": float64(len(content)), "expires_after_secs": 86400.0,
			"image": map[string]any{"w": 40.0, "h": 30.0, "image_type": "image/png"},
		}
	}
	for name, r := range map[string]reply{
		"multipart": b.xForm(xMedia, "media", string(content), "media_category", "tweet_image"),
	} {
		if diff := cmp.Diff(want(r.text("data", "id")), r.at("data")); r.status != http.StatusOK || diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", name, r.status, diff)
		}
		if got := r.header.Get("X-Rate-Limit-Limit"); got != "500" {
			t.Errorf("%s: a rate of %q, want that of the endpoint", name, got)
		}
		if r := b.xStatus(r.text("data", "id")); !isXProblem(r, 404, "Sorry, that page does not exist") {
			t.Errorf("%s: an image has no state: %d %s", name, r.status, r.body)
		}
	}
}

func TestXImageRefusals(t *testing.T) {
	picture := string(xPicture(t, "png", 40, 30, 1))
	form := func(pairs ...string) [2]string {
		contentType, body := xForm(pairs...)
		return [2]string{contentType, body}
	}
	tests := []struct {
		name, reason string
		body         [2]string
		status       int
		wantIn       string
	}{
		{"no category", "it must be said", form("media", picture), 400, "media_category"},
		{"a video's category", "videos come in chunks", form("media", picture, "media_category", "tweet_video"), 400, "enumeration"},
		{"no media", "there must be some", form("media_category", "tweet_image"), 400, "media: is missing"},
		{"unknown part", "the schema allows no others", form("media", picture, "media_category", "tweet_image", "alt", "a"), 400, "alt: is not defined"},
		{"the older style", "commands have paths of their own", form("command", "INIT", "media_category", "tweet_image"), 400, "command: is not defined"},
		{"twice", "one file is one media", form("media", picture, "media", picture, "media_category", "tweet_image"), 400, "more than once"},
		{
			"a GIF", "it goes by chunks, as tweet_gif",
			form("media", string(xPicture(t, "gif", 4, 4, 1)), "media_category", "tweet_image"), 400, "image/gif",
		},
		{"no image", "the content counts, not the name", form("media", "hello", "media_category", "tweet_image"), 400, "text/plain"},
		{"cut short", "a damaged image is none", form("media", picture[:20], "media_category", "tweet_image"), 400, "damaged"},
		{
			"too large", "5 MB are the most",
			form("media", picture+strings.Repeat(" ", 5<<20), "media_category", "tweet_image"), 400, "larger",
		},
		{
			"far too large", "of 8 MB, nothing more is read",
			form("media", strings.Repeat(" ", 8<<20), "media_category", "tweet_image"), 413, "Too Large",
		},
		{"a form", "no other kind of body", [2]string{formType, "media_category=tweet_image"}, 400, "content-type"},
		{"unknown field", "as in multipart", form("media", picture, "media_category", "tweet_image", "x", "1"), 400, "x: is not defined"},
		{"not whole", "a body without its end is torn", [2]string{"multipart/form-data; boundary=b", "--b\r\n" + `Content-Disposition: form-data; name="media"` + "\r\n\r\nabc"}, 400, "multipart"},
	}
	b := start(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(http.MethodPost, xMedia, demoAccess, tt.body[0], tt.body[1])
			if !isXProblem(r, tt.status, tt.wantIn) {
				t.Errorf("%s: %d %s, want %d with %q", tt.reason, r.status, r.body, tt.status, tt.wantIn)
			}
		})
	}
}

func TestXVideoInChunks(t *testing.T) {
	b := start(t, "")
	content := movie("isom", 640, 360, 3*time.Second, 12_000)
	r := b.xInitialize("video/mp4", "tweet_video", len(content))
	id := r.text("data", "id")
	first := map[string]any{"id": id, "media_key": "13_" + id, "expires_after_secs": 86400.0}
	if diff := cmp.Diff(any(first), r.at("data")); r.status != http.StatusOK || diff != "" {
		t.Errorf("initialize: %d (-want +got):\n%s", r.status, diff)
	}
	expires := float64(b.clock.Now().Add(24 * time.Hour).Unix())
	for i, part := range [][]byte{content[:5000], content[5000:10_000], content[10_000:]} {
		if r := b.xAppend(id, i, part); r.status != http.StatusOK || r.at("data", "expires_at") != expires {
			t.Errorf("chunk %d: %d %s", i, r.status, r.body)
		}
	}
	if r := b.xStatus(id); !isXProblem(r, 400, "not been finalized") {
		t.Errorf("status before the end: %d %s", r.status, r.body)
	}
	b.clock.Step(time.Hour)
	last := map[string]any{
		"id": id, "media_key": "13_" + id, "size": 12_000.0, "expires_after_secs": 86400.0,
		"processing_info": map[string]any{"state": "pending", "check_after_secs": 2.0},
	}
	for _, reason := range []string{"finalize", "once more, as after a lost answer"} {
		if r := b.xFinalize(id); r.status != http.StatusOK || !cmp.Equal(any(last), r.at("data")) {
			t.Errorf("%s: %d %s", reason, r.status, cmp.Diff(any(last), r.at("data")))
		}
	}
	for _, step := range []struct {
		after time.Duration
		want  map[string]any
	}{
		{499 * time.Millisecond, map[string]any{"state": "pending", "check_after_secs": 2.0}},
		{time.Millisecond, map[string]any{"state": "in_progress", "check_after_secs": 2.0, "progress_percent": 25.0}},
		{time.Second, map[string]any{"state": "in_progress", "check_after_secs": 1.0, "progress_percent": 75.0}},
		{500 * time.Millisecond, map[string]any{"state": "succeeded", "progress_percent": 100.0}},
	} {
		b.clock.Step(step.after)
		if r := b.xStatus(id); !cmp.Equal(any(step.want), r.at("data", "processing_info")) {
			t.Errorf("status: %d %s", r.status, cmp.Diff(any(step.want), r.at("data", "processing_info")))
		}
	}
	post := b.tweet(`{"text":"film","media":{"media_ids":["` + id + `"]}}`)
	want := []any{map[string]any{"sha256": sumOf(content), "bytes": 12_000.0, "mime_type": "video/mp4"}}
	if diff := cmp.Diff(any(want), b.control(http.MethodGet, "/posts", "", http.StatusOK).at("data", "0", "media")); post.status != 201 || diff != "" {
		t.Errorf("%d %s: what arrived is what was sent (-want +got):\n%s", post.status, post.body, diff)
	}
}

func TestXInitializeRefusals(t *testing.T) {
	tests := []struct {
		name, reason, body, wantIn string
		status                     int
	}{
		{"all", "the three fields are enough", `{"media_type":"video/mp4","total_bytes":9,"media_category":"tweet_video"}`, `"id"`, 200},
		{"no type", "it is required", `{"total_bytes":9,"media_category":"tweet_video"}`, "$.media_type", 400},
		{"no size", "it is required", `{"media_type":"video/mp4","media_category":"tweet_video"}`, "$.total_bytes", 400},
		{"no category", "it is required", `{"media_type":"video/mp4","total_bytes":9}`, "$.media_category", 400},
		{"size as text", "it is a number", `{"media_type":"video/mp4","total_bytes":"9","media_category":"tweet_video"}`, "total_bytes", 400},
		{"nothing", "an empty file is none", `{"media_type":"video/mp4","total_bytes":0,"media_category":"tweet_video"}`, "between 1", 400},
		{"unknown category", "an enumeration", `{"media_type":"video/mp4","total_bytes":9,"media_category":"video"}`, "enumeration", 400},
		{"image as video", "category and type agree", `{"media_type":"image/png","total_bytes":9,"media_category":"tweet_video"}`, "does not go with", 400},
		{"large image", "5 MB", `{"media_type":"image/png","total_bytes":5242881,"media_category":"tweet_image"}`, "5242880", 400},
		{"large GIF", "15 MB", `{"media_type":"image/gif","total_bytes":15728641,"media_category":"tweet_gif"}`, "15728640", 400},
		{"large video", "512 MB", `{"media_type":"video/mp4","total_bytes":536870913,"media_category":"tweet_video"}`, "536870912", 400},
		{"largest video", "512 MB fit", `{"media_type":"video/mp4","total_bytes":536870912,"media_category":"tweet_video"}`, `"id"`, 200},
		{"unknown field", "the schema allows no others", `{"media_type":"video/mp4","total_bytes":9,"media_category":"tweet_video","name":"a"}`, "unknown field", 400},
	}
	b := start(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(http.MethodPost, xMedia+"/initialize", demoAccess, jsonType, tt.body)
			if r.status != tt.status || !strings.Contains(r.body, tt.wantIn) {
				t.Errorf("%s: %d %s, want %d with %q", tt.reason, r.status, r.body, tt.status, tt.wantIn)
			}
			if got := r.header.Get("X-Rate-Limit-Limit"); got != "1875" {
				t.Errorf("a rate of %q, want that of the endpoint", got)
			}
		})
	}
	if r := b.xForm(xMedia+"/initialize", "media_type", "video/mp4"); !isXProblem(r, 400, "content-type") {
		t.Errorf("multipart: %d %s", r.status, r.body)
	}
}

func TestXChunks(t *testing.T) {
	content := movie("isom", 640, 360, 3*time.Second, 1000)
	tests := []struct {
		name, reason string
		chunks       [][2]int // segment index and offset; each chunk has 400 bytes or the remainder
		want         []int
	}{
		{"in order", "the plain case", [][2]int{{0, 0}, {1, 400}, {2, 800}}, []int{200, 200, 200}},
		{"a gap", "segments are consecutive", [][2]int{{0, 0}, {2, 800}, {1, 400}}, []int{200, 400, 200}},
		{"from one", "they begin at zero", [][2]int{{1, 0}, {0, 0}}, []int{400, 200}},
		{"again", "an answer may be lost", [][2]int{{0, 0}, {0, 0}, {1, 400}, {0, 0}}, []int{200, 200, 200, 200}},
		{"again with other bytes", "a segment does not change", [][2]int{{0, 0}, {0, 400}}, []int{200, 400}},
		{"more than announced", "total_bytes is what there will be", [][2]int{{0, 0}, {1, 400}, {2, 400}}, []int{200, 200, 400}},
		{"a high index", "there are a thousand", [][2]int{{1000, 0}}, []int{400}},
		{"a negative index", "they begin at zero", [][2]int{{-1, 0}}, []int{400}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			id := b.xInitialize("video/mp4", "tweet_video", len(content)).text("data", "id")
			var got []int
			for _, c := range tt.chunks {
				r := b.xAppend(id, c[0], content[c[1]:min(c[1]+400, len(content))])
				got = append(got, r.status)
				if r.status != 200 && !strings.Contains(r.text("type"), "invalid-request") {
					t.Errorf("%v: %s", c, r.body)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestXChunkRefusals(t *testing.T) {
	b := start(t, "")
	id := b.xInitialize("video/mp4", "tweet_video", 20<<20).text("data", "id")
	path := xMedia + "/" + id + "/append"
	tests := []struct {
		name, reason string
		r            reply
		status       int
		wantIn       string
	}{
		{"no index", "it must be said", b.xForm(path, "media", "abc"), 400, "segment_index"},
		{"no media", "there must be some", b.xForm(path, "segment_index", "0"), 400, "media: is missing"},
		{"unknown part", "the schema allows no others", b.xForm(path, "segment_index", "0", "media", "a", "media_id", id), 400, "media_id"},
		{"5 MB and a byte", "5 MB is the documented maximum", b.xAppend(id, 0, make([]byte, 5<<20+1)), 400, "5242880"},
		{"8 MB", "more than the server reads", b.xAppend(id, 0, make([]byte, 8<<20)), 413, "Too Large"},
		{"JSON", "a chunk has bytes", b.call(http.MethodPost, path, demoAccess, jsonType, `{"segment_index":0}`), 400, "media: is missing"},
		{"unknown id", "no upload gave it", b.xAppend("123", 0, []byte("a")), 400, "media IDs"},
		{"no id", "ids are digits", b.xAppend("abc", 0, []byte("a")), 400, "media IDs"},
		{"too early", "bytes are missing", b.xFinalize(id), 400, "do not add up"},
		{"finalize nothing", "no upload gave that id", b.xFinalize("123"), 400, "media IDs"},
		{"status of nothing", "no upload gave that id", b.xStatus("123"), 400, "media IDs"},
		{"status of another command", "the others have paths", b.get(xMedia + "?command=INIT&media_id=" + id), 400, "command"},
		{"status without an id", "it is required", b.get(xMedia + "?command=STATUS"), 400, "media IDs"},
		{"status with more", "nothing else is known", b.get(xMedia + "?command=STATUS&id=1&media_id=" + id), 400, "[id]"},
	}
	for _, tt := range tests {
		if !isXProblem(tt.r, tt.status, tt.wantIn) {
			t.Errorf("%s: %s: %d %s, want %d with %q", tt.name, tt.reason, tt.r.status, tt.r.body, tt.status, tt.wantIn)
		}
	}
	if r := b.xAppend(id, 0, make([]byte, 5<<20)); r.status != http.StatusOK {
		t.Errorf("5 MB are taken: %d %s", r.status, r.body)
	}
}

func TestXFilesThatXCannotUse(t *testing.T) {
	film := func(width, height int, length time.Duration) []byte { return movie("isom", width, height, length, 0) }
	tests := []struct {
		name, reason, mediaType, category string
		content                           []byte
		want                              string // part of the error; empty for success
	}{
		{"MP4", "the plain case", "video/mp4", "tweet_video", film(640, 360, time.Second), ""},
		{"QuickTime", "it is documented, too", "video/quicktime", "tweet_video", movie("qt  ", 640, 360, time.Second, 0), ""},
		{"upright", "1080p works either way", "video/mp4", "tweet_video", film(1080, 1920, time.Second), ""},
		{"GIF", "it is worked on like a video", "image/gif", "tweet_gif", xPicture(t, "gif", 1280, 1080, 1), ""},
		{"a picture as a video", "the content counts", "video/mp4", "tweet_video", xPicture(t, "png", 40, 40, 1), "image/png"},
		{"QuickTime as MP4", "the two have one structure, and programs mix them up", "video/mp4", "tweet_video", movie("qt  ", 640, 360, time.Second, 0), ""},
		{"no head", "a film without its head cannot be read", "video/mp4", "tweet_video", film(640, 360, time.Second)[:20], "damaged"},
		{"small", "32 pixels at least", "video/mp4", "tweet_video", film(31, 40, time.Second), "each side"},
		{"large", "1920 at most", "video/mp4", "tweet_video", film(1921, 1080, time.Second), "each side"},
		{"wide", "no more than 3:1", "video/mp4", "tweet_video", film(301, 100, time.Second), "aspect ratio"},
		{"high", "no less than 1:3", "video/mp4", "tweet_video", film(100, 301, time.Second), "aspect ratio"},
		{"short", "half a second at least", "video/mp4", "tweet_video", film(640, 360, 499*time.Millisecond), "500ms"},
		{"a large GIF", "1280×1080 at most", "image/gif", "tweet_gif", xPicture(t, "gif", 1281, 10, 1), "1280×1080"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			id := b.xSent(tt.mediaType, tt.category, tt.content)
			b.clock.Step(2 * time.Second)
			info, _ := b.xStatus(id).at("data", "processing_info").(map[string]any)
			if tt.want == "" {
				if info["state"] != "succeeded" {
					t.Errorf("%s: %v", tt.reason, info)
				}
				return
			}
			failure, _ := info["error"].(map[string]any)
			if message, _ := failure["message"].(string); info["state"] != "failed" || failure["name"] != "InvalidMedia" || !strings.Contains(message, tt.want) {
				t.Errorf("%s: %v, want failed with %q", tt.reason, info, tt.want)
			}
			if r := b.tweet(`{"text":"a","media":{"media_ids":["` + id + `"]}}`); !isXProblem(r, 400, "failed") || len(b.texts()) != 0 {
				t.Errorf("and no post takes it: %d %s", r.status, r.body)
			}
		})
	}
}

func TestXImageInChunks(t *testing.T) {
	b := start(t, "")
	content := xPicture(t, "jpeg", 50, 20, 3)
	id := b.xSent("image/jpeg", "tweet_image", content)
	if r := b.xFinalize(id); r.status != http.StatusOK || r.at("data", "processing_info") != nil || r.text("data", "media_key") != "3_"+id {
		t.Errorf("an image is ready at once: %d %s", r.status, r.body)
	}
	if r := b.xStatus(id); !isXProblem(r, 404, "Sorry, that page does not exist") {
		t.Errorf("an image has no state: %d %s", r.status, r.body)
	}
	id = b.xInitialize("image/png", "tweet_image", len(content)).text("data", "id")
	b.xAppend(id, 0, content)
	for range 2 {
		if r := b.xFinalize(id); !isXProblem(r, 400, "image/jpeg") {
			t.Errorf("what was announced must come: %d %s", r.status, r.body)
		}
	}
	if r := b.tweet(`{"media":{"media_ids":["` + id + `"]}}`); !isXProblem(r, 400, "media IDs") {
		t.Errorf("and no post takes it: %d %s", r.status, r.body)
	}
}

func TestXProcessingAsSet(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 640, 360, time.Second, 0)
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"processing_ms":0}`, http.StatusOK)
	if r := b.xStatus(b.xSent("video/mp4", "tweet_video", film)); r.at("data", "processing_info", "state") != "succeeded" {
		t.Errorf("no time at all: %s", r.body)
	}
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"processing_ms":60000,"processing_error":"InternalError"}`, http.StatusOK)
	id := b.xSent("video/mp4", "tweet_video", film)
	b.clock.Step(59 * time.Second)
	r := b.xStatus(id)
	if diff := cmp.Diff(any(map[string]any{"state": "in_progress", "check_after_secs": 1.0, "progress_percent": 98.0}), r.at("data", "processing_info")); diff != "" {
		t.Errorf("nearly a minute (-want +got):\n%s", diff)
	}
	b.clock.Step(time.Second)
	if r := b.xStatus(id); r.at("data", "processing_info", "error", "name") != "InternalError" {
		t.Errorf("in the end: %s", r.body)
	}
	if id := b.xImage(xPicture(t, "png", 4, 4, 1)); b.tweet(`{"media":{"media_ids":["`+id+`"]}}`).status != http.StatusCreated {
		t.Error("X does no work on images")
	}
}
