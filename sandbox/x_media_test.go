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
)

const (
	xMedia    = "/x/2/media/upload"
	mib       = 1 << 20
	isAnImage = "Sorry, that page does not exist" // an image has no processing state
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
		_ = form.WriteField(pairs[i], pairs[i+1]) // writing to a buffer never fails
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
	return b.as("x", http.MethodPost, xMedia+"/initialize", jsonType,
		fmt.Sprintf(`{"media_type":%q,"media_category":%q,"total_bytes":%d}`, mediaType, category, total))
}

// xStarted returns the ID of a new upload.
func (b *box) xStarted(mediaType, category string, total int) string {
	b.t.Helper()
	return b.xInitialize(mediaType, category, total).want(b.t, "initialize", 200).text("data", "id")
}

func (b *box) xAppend(id string, segment int, content []byte) reply {
	b.t.Helper()
	return b.xForm(xMedia+"/"+id+"/append", "segment_index", strconv.Itoa(segment), "media", string(content))
}

func (b *box) xFinalize(id string) reply {
	b.t.Helper()
	return b.as("x", http.MethodPost, xMedia+"/"+id+"/finalize", "", "")
}

func (b *box) xStatus(id string) reply {
	b.t.Helper()
	return b.get(xMedia + "?command=STATUS&media_id=" + id)
}

// xImage uploads a picture and returns its id.
func (b *box) xImage(content []byte) string {
	b.t.Helper()
	r := b.xForm(xMedia, "media", string(content), "media_category", "tweet_image")
	return r.want(b.t, "upload an image", 200).text("data", "id")
}

// xSent uploads a file in two chunks, including finalize, and returns its id.
func (b *box) xSent(mediaType, category string, content []byte) string {
	b.t.Helper()
	id, half := b.xStarted(mediaType, category, len(content)), len(content)/2
	b.xAppend(id, 0, content[:half]).want(b.t, "the first chunk", 200)
	b.xAppend(id, 1, content[half:]).want(b.t, "the second chunk", 200)
	b.xFinalize(id).want(b.t, "finalize", 200)
	return id
}

// xDone is like xSent, but waits for the end of X's processing.
func (b *box) xDone(mediaType, category string, content []byte) string {
	b.t.Helper()
	id := b.xSent(mediaType, category, content)
	b.clock.Step(2 * time.Second)
	b.xStatus(id).want(b.t, "after two seconds", "data.processing_info.state=succeeded")
	return id
}

func TestXImageInOneRequest(t *testing.T) {
	b := start(t, "")
	content := xPicture(t, "png", 40, 30, 1)
	r := b.xForm(xMedia, "media", string(content), "media_category", "tweet_image")
	id := r.want(t, "each endpoint has its own rate limit", 200, "X-Rate-Limit-Limit: 500").text("data", "id")
	same(t, "the response", map[string]any{
		"id": id, "media_key": "3_" + id, "size": float64(len(content)), "expires_after_secs": 86400.0,
		"image": map[string]any{"w": 40.0, "h": 30.0, "image_type": "image/png"},
	}, r.at("data"))
	b.xStatus(id).want(t, "the status of an image", xProblem(404, isAnImage)...)
}

func TestXImageRefusals(t *testing.T) {
	b := start(t, "")
	picture, animated := string(xPicture(t, "png", 40, 30, 1)), string(xPicture(t, "gif", 4, 4, 1))
	const kind, image = "media_category", "tweet_image"
	for _, tt := range []struct {
		why   string
		parts []string
		want  is
	}{
		{"a category is required", []string{"media", picture}, xProblem(400, "media_category")},
		{"videos are uploaded in chunks", []string{"media", picture, kind, "tweet_video"}, xProblem(400, "enumeration")},
		{"a file is required", []string{kind, image}, xProblem(400, "media: is missing")},
		{"unknown parts are rejected", []string{"media", picture, kind, image, "alt", "a"}, xProblem(400, "alt: is not defined")},
		{"the old API's command parameter is rejected", []string{"command", "INIT", kind, image}, xProblem(400, "command: is not defined")},
		{"one request has one file", []string{"media", picture, "media", picture, kind, image}, xProblem(400, "more than once")},
		{"a GIF is uploaded in chunks, as tweet_gif", []string{"media", animated, kind, image}, xProblem(400, "image/gif")},
		{"the content decides, not the name", []string{"media", "hello", kind, image}, xProblem(400, "text/plain")},
		{"an incomplete image is damaged", []string{"media", picture[:20], kind, image}, xProblem(400, "damaged")},
		{"5 MB is the maximum", []string{"media", picture + strings.Repeat(" ", 5*mib), kind, image}, xProblem(400, "larger")},
		{"only the first 5 MB of 8 MB are read", []string{"media", strings.Repeat(" ", 8*mib), kind, image}, xProblem(413, "Too Large")},
	} {
		b.xForm(xMedia, tt.parts...).want(t, tt.why, tt.want...)
	}
	b.as("x", http.MethodPost, xMedia, formType, kind+"="+image).want(t, "only multipart forms", xProblem(400, "content-type")...)
	torn := "--b\r\nContent-Disposition: form-data; name=\"media\"\r\n\r\nabc"
	b.as("x", http.MethodPost, xMedia, "multipart/form-data; boundary=b", torn).want(t, "a body without its end", xProblem(400, "multipart")...)
}

func TestXVideoInChunks(t *testing.T) {
	b := start(t, "")
	content := movie("isom", 640, 360, 3*time.Second, 12_000)
	r := b.xInitialize("video/mp4", "tweet_video", len(content)).want(t, "initialize", 200)
	id := r.text("data", "id")
	same(t, "initialize", map[string]any{"id": id, "media_key": "13_" + id, "expires_after_secs": 86400.0}, r.at("data"))
	expires := fmt.Sprint("data.expires_at=", b.clock.Now().Add(24*time.Hour).Unix())
	for i, part := range [][]byte{content[:5000], content[5000:10_000], content[10_000:]} {
		b.xAppend(id, i, part).want(t, fmt.Sprint("chunk ", i), 200, expires)
	}
	b.xStatus(id).want(t, "the status before finalize", xProblem(400, "not been finalized")...)
	b.clock.Step(time.Hour)
	for _, why := range []string{"finalize", "finalize again, as after a lost response"} {
		same(t, why, map[string]any{
			"id": id, "media_key": "13_" + id, "size": 12_000.0, "expires_after_secs": 86400.0,
			"processing_info": map[string]any{"state": "pending", "check_after_secs": 2.0},
		}, b.xFinalize(id).at("data"))
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{499 * time.Millisecond, `{"check_after_secs":2,"state":"pending"}`},
		{time.Millisecond, `{"check_after_secs":2,"progress_percent":25,"state":"in_progress"}`},
		{time.Second, `{"check_after_secs":1,"progress_percent":75,"state":"in_progress"}`},
		{500 * time.Millisecond, `{"progress_percent":100,"state":"succeeded"}`},
	} {
		b.clock.Step(step.after)
		b.xStatus(id).want(t, fmt.Sprint("the status after another ", step.after), 200, "data.processing_info="+step.want)
	}
	b.tweet(xBody("film", "", id)).want(t, "the post", 201)
	same(t, "the bytes that arrived are those that were sent", any(mediaOf("video/mp4", content)), field(b.posted("x"), 0, "media"))
}

func TestXInitializeRefusals(t *testing.T) {
	b := start(t, "")
	initialize := func(body string) reply {
		r := b.as("x", http.MethodPost, xMedia+"/initialize", jsonType, "{"+body+"}")
		return r.want(t, "each endpoint has its own rate limit", "X-Rate-Limit-Limit: 1875")
	}
	const image, gif, video = `"media_category":"tweet_image",`, `"media_category":"tweet_gif",`, `"media_category":"tweet_video",`
	const mp4 = `"media_type":"video/mp4",`
	b.each(t, initialize, []row{
		{"three fields are enough", video + mp4 + `"total_bytes":9`, is{200, "data.id=*"}},
		{"a type is required", video + `"total_bytes":9`, xProblem(400, "$.media_type")},
		{"a size is required", video + `"media_type":"video/mp4"`, xProblem(400, "$.total_bytes")},
		{"a category is required", mp4 + `"total_bytes":9`, xProblem(400, "$.media_category")},
		{"the size is a number", video + mp4 + `"total_bytes":"9"`, xProblem(400, "total_bytes")},
		{"a file is not empty", video + mp4 + `"total_bytes":0`, xProblem(400, "between 1")},
		{"the categories are an enumeration", `"media_category":"video",` + mp4 + `"total_bytes":9`, xProblem(400, "enumeration")},
		{"category and type must agree", video + `"media_type":"image/png","total_bytes":9`, xProblem(400, "does not go with")},
		{"an image has at most 5 MB", image + `"media_type":"image/png","total_bytes":5242881`, xProblem(400, "5242880")},
		{"a GIF has at most 15 MB", gif + `"media_type":"image/gif","total_bytes":15728641`, xProblem(400, "15728640")},
		{"a video has at most 512 MB", video + mp4 + `"total_bytes":536870913`, xProblem(400, "536870912")},
		{"a video of 512 MB fits", video + mp4 + `"total_bytes":536870912`, is{200, "data.id=*"}},
		{"unknown fields are rejected", video + mp4 + `"total_bytes":9,"name":"a"`, xProblem(400, "unknown field")},
	})
	b.xForm(xMedia+"/initialize", "media_type", "video/mp4").want(t, "initialize takes JSON only", xProblem(400, "content-type")...)
}

func TestXChunks(t *testing.T) {
	content := movie("isom", 640, 360, 3*time.Second, 1000)
	for _, tt := range []struct {
		why    string
		chunks [][2]int // segment index and offset; each chunk has 400 bytes or the remainder
		want   []int
	}{
		{"segments in order", [][2]int{{0, 0}, {1, 400}, {2, 800}}, []int{200, 200, 200}},
		{"segments are consecutive", [][2]int{{0, 0}, {2, 800}, {1, 400}}, []int{200, 400, 200}},
		{"segments start at 0", [][2]int{{1, 0}, {0, 0}}, []int{400, 200}},
		{"a segment may be repeated, as after a lost response", [][2]int{{0, 0}, {0, 0}, {1, 400}, {0, 0}}, []int{200, 200, 200, 200}},
		{"a segment may not change", [][2]int{{0, 0}, {0, 400}}, []int{200, 400}},
		{"no more than total_bytes", [][2]int{{0, 0}, {1, 400}, {2, 400}}, []int{200, 200, 400}},
		{"an index below 1000", [][2]int{{1000, 0}}, []int{400}},
		{"an index of at least 0", [][2]int{{-1, 0}}, []int{400}},
	} {
		b := start(t, "")
		id := b.xStarted("video/mp4", "tweet_video", len(content))
		for i, c := range tt.chunks {
			r := b.xAppend(id, c[0], content[c[1]:min(c[1]+400, len(content))])
			r.want(t, fmt.Sprint(tt.why, ", request ", i), tt.want[i])
			if r.status != 200 {
				r.want(t, tt.why, "type~invalid-request")
			}
		}
	}
}

func TestXChunkRefusals(t *testing.T) {
	b := start(t, "")
	id := b.xStarted("video/mp4", "tweet_video", 20*mib)
	path, unknown := xMedia+"/"+id+"/append", xProblem(400, "media IDs")
	b.xForm(path, "media", "abc").want(t, "an index is required", xProblem(400, "segment_index")...)
	b.xForm(path, "segment_index", "0").want(t, "bytes are required", xProblem(400, "media: is missing")...)
	b.xForm(path, "segment_index", "0", "media", "a", "media_id", id).want(t, "no other parts are allowed", xProblem(400, "media_id")...)
	b.xAppend(id, 0, make([]byte, 5*mib+1)).want(t, "a chunk has at most 5 MB", xProblem(400, "5242880")...)
	b.xAppend(id, 0, make([]byte, 8*mib)).want(t, "of 8 MB, the rest is not read", xProblem(413, "Too Large")...)
	b.as("x", "POST", path, jsonType, `{"segment_index":0}`).want(t, "bytes are required in JSON too", xProblem(400, "media: is missing")...)
	b.xAppend("123", 0, []byte("a")).want(t, "a chunk of an unknown upload", unknown...)
	b.xAppend("abc", 0, []byte("a")).want(t, "IDs are digits", unknown...)
	b.xFinalize(id).want(t, "finalize without all bytes", xProblem(400, "do not add up")...)
	b.xFinalize("123").want(t, "finalize of an unknown upload", unknown...)
	b.xStatus("123").want(t, "the status of an unknown upload", unknown...)
	b.get(xMedia+"?command=INIT&media_id="+id).want(t, "other commands have paths", xProblem(400, "command")...)
	b.get(xMedia+"?command=STATUS").want(t, "the status needs an ID", unknown...)
	b.get(xMedia+"?command=STATUS&id=1&media_id="+id).want(t, "the status takes no other parameters", xProblem(400, "[id]")...)
	b.xAppend(id, 0, make([]byte, 5*mib)).want(t, "a chunk of 5 MB fits", 200)
}

func TestXInvalidFiles(t *testing.T) {
	film := func(width, height int, length time.Duration) []byte { return movie("isom", width, height, length, 0) }
	const mp4, mov, animated = "video/mp4 tweet_video", "video/quicktime tweet_video", "image/gif tweet_gif"
	b := start(t, "")
	for _, tt := range []struct {
		why, kind string
		content   []byte
		failure   string // part of the error; empty for success
	}{
		{"an MP4", mp4, film(640, 360, time.Second), ""},
		{"QuickTime is documented too", mov, movie("qt  ", 640, 360, time.Second, 0), ""},
		{"1080p is also allowed upright", mp4, film(1080, 1920, time.Second), ""},
		{"the largest GIF is processed like a video", animated, xPicture(t, "gif", 1280, 1080, 1), ""},
		{"QuickTime called MP4: programs confuse the two", mp4, movie("qt  ", 640, 360, time.Second, 0), ""},
		{"an image called a video: the content decides", mp4, xPicture(t, "png", 40, 40, 1), "image/png"},
		{"a video without its header", mp4, film(640, 360, time.Second)[:20], "damaged"},
		{"fewer than 32 pixels", mp4, film(31, 40, time.Second), "each side"},
		{"more than 1920 pixels", mp4, film(1921, 1080, time.Second), "each side"},
		{"wider than 3:1", mp4, film(301, 100, time.Second), "aspect ratio"},
		{"taller than 1:3", mp4, film(100, 301, time.Second), "aspect ratio"},
		{"shorter than half a second", mp4, film(640, 360, 499*time.Millisecond), "500ms"},
		{"a GIF beyond 1280×1080", animated, xPicture(t, "gif", 1281, 10, 1), "1280×1080"},
	} {
		mediaType, category, _ := strings.Cut(tt.kind, " ")
		id := b.xSent(mediaType, category, tt.content)
		b.clock.Step(2 * time.Second)
		if tt.failure == "" {
			b.xStatus(id).want(t, tt.why, "data.processing_info.state=succeeded")
			continue
		}
		b.xStatus(id).want(t, tt.why, "data.processing_info.state=failed", "data.processing_info.error.name=InvalidMedia",
			"data.processing_info.error.message~"+tt.failure)
		b.tweet(xBody("a", "", id)).want(t, tt.why+": a post cannot use it", xProblem(400, "failed")...)
	}
	same(t, "posts", 0, len(b.texts()))
}

func TestXImageInChunks(t *testing.T) {
	b := start(t, "")
	content := xPicture(t, "jpeg", 50, 20, 3)
	id := b.xSent("image/jpeg", "tweet_image", content)
	b.xFinalize(id).want(t, "an image is ready at once", 200, "data.processing_info=", "data.media_key=3_"+id)
	b.xStatus(id).want(t, "the status of an image", xProblem(404, isAnImage)...)
	id = b.xStarted("image/png", "tweet_image", len(content))
	b.xAppend(id, 0, content)
	for range 2 {
		b.xFinalize(id).want(t, "the file must have the announced type", xProblem(400, "image/jpeg")...)
	}
	b.tweet(xBody("", "", id)).want(t, "a post cannot use it", xProblem(400, "media IDs")...)
}

func TestXProcessingSettings(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 640, 360, time.Second, 0)
	b.set("x", `{"processing_ms":0}`)
	b.xStatus(b.xSent("video/mp4", "tweet_video", film)).want(t, "processing without delay", "data.processing_info.state=succeeded")
	b.set("x", `{"processing_ms":60000,"processing_error":"InternalError"}`)
	id := b.xSent("video/mp4", "tweet_video", film)
	b.clock.Step(59 * time.Second)
	b.xStatus(id).want(t, "after 59 seconds", `data.processing_info={"check_after_secs":1,"progress_percent":98,"state":"in_progress"}`)
	b.clock.Step(time.Second)
	b.xStatus(id).want(t, "after a minute", "data.processing_info.error.name=InternalError")
	b.tweet(xBody("", "", b.xImage(xPicture(t, "png", 4, 4, 1)))).want(t, "images are not processed", 201)
}
