// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	tiktokID      = "-000HeraldDemoAccount00000000001"
	tiktokPublish = "/tiktok/v2/post/publish/"
	directPost    = `"post_info":{"title":"Launch #demo","privacy_level":"PUBLIC_TO_EVERYONE","brand_content_toggle":false,"brand_organic_toggle":false}`
)

var shortFilm = movie("isom", 720, 1280, 5*time.Second, 2000)

// onTikTok calls the Content Posting API as the demo account.
func (b *box) onTikTok(path, body string) reply {
	b.t.Helper()
	return b.as("tiktok", http.MethodPost, tiktokPublish+path, jsonUTF8, body)
}

// fromFile returns an upload's source_info.
func fromFile(size, chunk, count int) string {
	return fmt.Sprintf(`"source_info":{"source":"FILE_UPLOAD","video_size":%d,"chunk_size":%d,"total_chunk_count":%d}`, size, chunk, count)
}

// startedOnTikTok initializes the upload of a file in one chunk.
func (b *box) startedOnTikTok(file []byte) reply {
	b.t.Helper()
	return b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(len(file), len(file), 1)+`}`).want(b.t, "the init", tiktokError(200, "ok")...)
}

// contentRange returns the Content-Range header for part of a file.
func contentRange(first, end, total int) string {
	return fmt.Sprintf("Content-Range: bytes %d-%d/%d", first, end-1, total)
}

// chunk sends part of a file to an upload URL.
func (b *box) chunk(address string, file []byte, first, end int) reply {
	b.t.Helper()
	part := bytes.NewReader(file[first:end])
	return b.transfer(http.MethodPut, address, part, "Content-Type: video/mp4", contentRange(first, end, len(file)))
}

// uploadOnTikTok sends a whole file in one chunk to the upload URL of an init response.
func (b *box) uploadOnTikTok(begun reply, file []byte) reply {
	b.t.Helper()
	begun.want(b.t, "the upload URL", "data.upload_url=*")
	return b.chunk(begun.text("data", "upload_url"), file, 0, len(file))
}

// statusOnTikTok requests the status of an init response's publish ID.
func (b *box) statusOnTikTok(begun reply) reply {
	b.t.Helper()
	return b.onTikTok("status/fetch/", `{"publish_id":"`+begun.text("data", "publish_id")+`"}`)
}

func TestTikTokVideoInit(t *testing.T) {
	b := start(t, "")
	info := func(more string) string {
		return `{"post_info":{"privacy_level":"SELF_ONLY","brand_content_toggle":false,"brand_organic_toggle":false` + more + `},` +
			fromFile(100, 100, 1) + `}`
	}
	swap := func(old, replacement string) string { return strings.Replace(info(""), old, replacement, 1) }
	source := func(from string) string { return `{` + directPost + `,` + from + `}` }
	pull := func(more string) string {
		return source(`"source_info":{"source":"PULL_FROM_URL","video_url":` + more + `}`)
	}
	const mb = 1_000_000
	ok := append(tiktokError(200, "ok"), "data.publish_id~v_pub_file~v2", "data.upload_url~"+b.http.URL+"/")
	invalid, mismatch := tiktokError(400, "invalid_params"), tiktokError(403, "privacy_level_option_mismatch")
	send := func(body string) reply {
		r := b.onTikTok("video/init/", body)
		if id, address := r.text("data", "publish_id"), r.text("data", "upload_url"); len(id) > 64 || len(address) > 256 {
			t.Errorf("the publish ID %q or the address %q is longer than documented", id, address)
		}
		return r
	}
	b.each(t, send, []row{
		{"the documented minimum", info(""), ok},
		{
			"all documented options", info(`,"title":"a","disable_comment":true,"disable_duet":true,"disable_stitch":true,` +
				`"video_cover_timestamp_ms":1000,"is_aigc":true`), ok,
		},
		{"a title of 2200 units of UTF-16 fits", info(`,"title":"` + strings.Repeat("🎉", 1100) + `"`), ok},
		{"a title of 2201 units is too long", info(`,"title":"` + strings.Repeat("🎉", 1100) + `a"`), invalid},
		{"unknown fields are rejected", info(`,"disable_comments":true`), invalid},
		{"only photos get music", info(`,"auto_add_music":true`), invalid},
		{"branded content must be visible", swap(`"brand_content_toggle":false`, `"brand_content_toggle":true`), invalid},
		{"the brand toggles are required", swap(`,"brand_organic_toggle":false`, ``), invalid},
		{"the privacy level is required", swap(`"privacy_level":"SELF_ONLY",`, ``), invalid},
		{"a public account has no followers level", swap("SELF_ONLY", "FOLLOWER_OF_CREATOR"), mismatch},
		{"privacy levels are an enumeration", swap("SELF_ONLY", "PUBLIC"), invalid},
		{"a source is required", `{` + directPost + `}`, invalid},
		{"post_info is required", `{` + fromFile(100, 100, 1) + `}`, invalid},
		{"sources are an enumeration", source(`"source_info":{"source":"FILE"}`), invalid},
		{"an upload has no address", source(strings.Replace(fromFile(1, 1, 1), `}`, `,"video_url":"https://a.b/c"}`, 1)), invalid},
		{"a fetched video has no size", pull(`"https://a.b/c","video_size":1`), invalid},
		{"addresses use HTTPS, except on this machine", pull(`"http://media.example/c"`), invalid},
		{"an address has a host", pull(`"c.mp4"`), invalid},
		{"the documented example: the last chunk takes the remainder", source(fromFile(50000123, 10*mb, 5)), ok},
		{"rounding up is the common mistake", source(fromFile(70*mb, 30*mb, 3)), invalid},
		{"rounding down makes the last chunk larger", source(fromFile(70*mb, 30*mb, 2)), ok},
		{"64 MB may be one chunk", source(fromFile(64*mb, 64*mb, 1)), ok},
		{"more must be split", source(fromFile(70*mb, 70*mb, 1)), invalid},
		{"a chunk has at least 5 MB", source(fromFile(20*mb, 4*mb, 5)), invalid},
		{"less than 5 MB are not split", source(fromFile(4*mb, 2*mb, 2)), invalid},
		{"a chunk is not larger than its file", source(fromFile(6*mb, 10*mb, 1)), invalid},
		{"a video is not empty", source(fromFile(0, 0, 0)), invalid},
		{"a video has at most 4 GB", source(fromFile(4001*mb, 60*mb, 66)), invalid},
		{"a body is JSON", `{`, invalid},
		{"a body is one value", info("") + `{}`, invalid},
	})
	body := `{` + directPost + `,` + fromFile(100, 100, 1) + `}`
	for why, r := range map[string]reply{
		"a form":                b.as("tiktok", http.MethodPost, tiktokPublish+"video/init/", formType, body),
		"another character set": b.as("tiktok", http.MethodPost, tiktokPublish+"video/init/", "application/json; charset=latin1", body),
		"a parameter":           b.onTikTok("video/init/?lang=en", body), "a draft with post_info": b.onTikTok("inbox/video/init/", body),
		"an unknown field of the status": b.onTikTok("status/fetch/", `{"id":"v"}`),
	} {
		r.want(t, why, invalid...)
	}
	b.onTikTok("video/init", body).want(t, "a path without the slash at the end", tiktokError(404, "invalid_params")...)
	b.call(http.MethodPost, tiktokPublish+"video/init/", "x", jsonUTF8, body).
		want(t, "an unknown token", tiktokError(401, "access_token_invalid")...)
	same(t, "posts", 0, len(b.posted("tiktok")))
}

// TestTikTokOverridesDisabledSettings posts to a private account with comments disabled.
func TestTikTokOverridesDisabledSettings(t *testing.T) {
	b := start(t, "")
	b.set("tiktok", `{"private":true,"comment_disabled":true}`)
	public := `{` + directPost + `,` + fromFile(2000, 2000, 1) + `}`
	r := b.onTikTok("video/init/", strings.Replace(public, "PUBLIC_TO_EVERYONE", "FOLLOWER_OF_CREATOR", 1))
	b.uploadOnTikTok(r, shortFilm).want(t, "the upload", 201)
	for _, name := range []string{"disable_comment", "disable_duet", "disable_stitch"} {
		same(t, name+" is forced", any(true), field(b.posted("tiktok"), 0, "detail", name))
	}
	b.onTikTok("video/init/", public).
		want(t, "a private account does not post to everyone", tiktokError(403, "privacy_level_option_mismatch")...)
}

func TestTikTokDailyQuota(t *testing.T) {
	b := start(t, "")
	b.set("tiktok", `{"quota":1}`)
	first, second := b.startedOnTikTok(shortFilm), b.startedOnTikTok(shortFilm)
	b.uploadOnTikTok(first, shortFilm).want(t, "the first upload", 201)
	b.uploadOnTikTok(second, shortFilm).want(t, "the second upload: the status reports the failure", 201)
	b.clock.Step(time.Second)
	b.statusOnTikTok(second).want(t, "the second post", "data.status=FAILED", "data.fail_reason=spam_risk_too_many_posts")
	b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(9, 9, 1)+`}`).
		want(t, "a third post", tiktokError(403, "spam_risk_too_many_posts")...)
	same(t, "posts", 1, len(b.posted("tiktok")))
}

func TestTikTokChunks(t *testing.T) {
	b := start(t, "")
	const chunk, size = 6_000_000, 15_000_000
	film := movie("isom", 1080, 1920, 42*time.Second, size)
	r := b.onTikTok("video/init/", `{"post_info":{"title":"Launch #demo","privacy_level":"PUBLIC_TO_EVERYONE","disable_duet":true,`+
		`"video_cover_timestamp_ms":1500,"brand_content_toggle":false,"brand_organic_toggle":true,"is_aigc":true},`+fromFile(size, chunk, 2)+`}`)
	for _, s := range []struct {
		why                        string
		first, end, status, stored int
	}{
		{"the second chunk before the first", chunk, size, 416, 0},
		{"a chunk of another size", 0, chunk - 1, 416, 0},
		{"all bytes in one chunk", 0, size, 416, 0},
		{"the first chunk", 0, chunk, 206, chunk},
		{"a repeated first chunk", 0, chunk, 416, chunk},
		{"a last chunk without the remainder", chunk, 2 * chunk, 416, chunk},
		{"the last chunk with the remainder", chunk, size, 201, size},
		{"a repeated last chunk", chunk, size, 416, size},
	} {
		b.chunk(r.text("data", "upload_url"), film, s.first, s.end).
			want(t, s.why, s.status, fmt.Sprintf("Content-Range: bytes 0-%d/%d", s.stored, size))
		b.statusOnTikTok(r).want(t, s.why, fmt.Sprintf(`data={"status":"PROCESSING_UPLOAD","uploaded_bytes":%d}`, s.stored))
	}
	posts := b.posted("tiktok")
	id, _ := field(posts, 0, "id").(string)
	b.clock.Step(4 * time.Second)
	// The ID exceeds the precision of a float64.
	b.statusOnTikTok(r).want(t, "after moderation", "data.status=PUBLISH_COMPLETE", `~"publicaly_available_post_id":[`+id+`]`)
	same(t, "the length of an ID", 19, len(id))
	same(t, "the post in the control API", []any{map[string]any{
		"id": id, "platform": "tiktok", "account_id": tiktokID, "text": "Launch #demo", "title": "",
		"media": mediaOf("video/mp4", film), "in_reply_to": "", "url": b.http.URL + "/tiktok/@herald_demo/video/" + id,
		"privacy": "PUBLIC_TO_EVERYONE", "draft": false, "created_at": "2026-12-01T09:00:00.123Z",
		"detail": map[string]any{
			"publish_id": r.text("data", "publish_id"), "media_type": "VIDEO", "disable_comment": false, "disable_duet": true,
			"disable_stitch": false, "video_cover_timestamp_ms": 1500.0, "auto_add_music": false, "brand_content_toggle": false,
			"brand_organic_toggle": true, "is_aigc": true, "ready_at": "2026-12-01T09:00:00.423Z",
		},
	}}, posts)
	b.page("/tiktok/@herald_demo/video/"+id).want(t, "the post's page", 200, "~/_media/"+sumOf(film))
}

func TestTikTokUploadRefusals(t *testing.T) {
	b := start(t, "")
	r := b.startedOnTikTok(shortFilm)
	address := r.text("data", "upload_url")
	const whole, kind = "Content-Range: bytes 0-1999/2000", "Content-Type: video/mp4"
	for _, tt := range []struct {
		why, address string
		bytes        int
		headers      []string
		status       int
	}{
		{"a range is required, also for one chunk", address, 2000, []string{kind}, 400},
		{"a type is required", address, 2000, []string{whole}, 400},
		{"the type is a video's", address, 2000, []string{whole, "Content-Type: application/octet-stream"}, 400},
		{"the total must equal the announced size", address, 2000, []string{kind, "Content-Range: bytes 0-1999/2001"}, 400},
		{"the length and the range must agree", address, 1999, []string{kind, whole}, 400},
		{"an invalid range", address, 2000, []string{kind, "Content-Range: 0-1999/2000"}, 400},
		{"the address needs no token", address, 2000, []string{kind, whole, "Authorization: Bearer tiktok-access-demo"}, 400},
		{"an unknown upload", strings.Replace(address, "upload_id=v", "upload_id=w", 1), 2000, []string{kind, whole}, 404},
		{"the query is part of the address", strings.Split(address, "&")[0], 2000, []string{kind, whole}, 404},
	} {
		b.transfer(http.MethodPut, tt.address, bytes.NewReader(shortFilm[:tt.bytes]), tt.headers...).want(t, tt.why, tt.status)
	}
	b.clock.Step(time.Hour)
	b.uploadOnTikTok(r, shortFilm).want(t, "the address expires after an hour", 403)
	same(t, "posts", 0, len(b.posted("tiktok")))
}

func TestTikTokFilesThatFail(t *testing.T) {
	film := func(width int, length time.Duration) []byte { return movie("isom", width, 640, length, 0) }
	for _, tt := range []struct {
		why     string
		file    []byte
		setting string
		failure string // fail_reason; empty for success
	}{
		{"a text called a video: the content decides", []byte(strings.Repeat("text ", 100)), "", "file_format_check_failed"},
		{"more than the creator's ten minutes", film(720, 10*time.Minute+time.Second), "", "duration_check_failed"},
		{"ten minutes", film(720, 10*time.Minute), "", ""},
		{"fewer than 360 pixels", film(358, time.Minute), "", "picture_size_check_failed"},
		{"more than 4096 pixels", film(4098, time.Minute), "", "picture_size_check_failed"},
		{"a failure that the test requests", film(720, time.Minute), "frame_rate_check_failed", "frame_rate_check_failed"},
	} {
		b := start(t, "")
		b.set("tiktok", `{"processing_ms":5000,"processing_error":"`+tt.setting+`"}`)
		r := b.startedOnTikTok(tt.file)
		b.uploadOnTikTok(r, tt.file).want(t, tt.why, 201)
		b.clock.Step(5*time.Second - time.Millisecond)
		b.statusOnTikTok(r).want(t, tt.why+": during processing", "data.status=PROCESSING_UPLOAD")
		b.clock.Step(time.Millisecond)
		status, posts := "PUBLISH_COMPLETE", 1
		if tt.failure != "" {
			status, posts = "FAILED", 0
		}
		b.statusOnTikTok(r).want(t, tt.why, "data.status="+status, "data.fail_reason="+tt.failure)
		same(t, tt.why+": posts", posts, len(b.posted("tiktok")))
	}
}

func TestTikTokDrafts(t *testing.T) {
	b := start(t, "")
	r := b.onTikTok("inbox/video/init/", `{`+fromFile(2000, 2000, 1)+`}`).want(t, "the init", "data.publish_id~v_inbox_file~v2")
	b.uploadOnTikTok(r, shortFilm).want(t, "the upload", 201)
	b.clock.Step(time.Second)
	b.statusOnTikTok(r).want(t, "the status", `data={"status":"SEND_TO_USER_INBOX","uploaded_bytes":2000}`)
	posts := b.posted("tiktok")
	same(t, "the draft in the control API", []any{1, true, ""}, []any{len(posts), field(posts, 0, "draft"), field(posts, 0, "privacy")})
	id, _ := field(posts, 0, "id").(string)
	b.page("/tiktok/@herald_demo/video/"+id).want(t, "the draft's page", 403)
	b.listOnTikTok(`{}`).want(t, "drafts are not listed", "data.videos#0")
}

// TestTikTokDelayedChunkArrives disconnects the client while the last chunk waits for a fault's delay. The chunk has arrived, so the
// video is posted.
func TestTikTokDelayedChunkArrives(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 6_000_000)
	r := b.startedOnTikTok(film)
	b.fault(`{"platform":"tiktok","operation":"publish","kind":"delay","delay_ms":5000}`)
	b.disconnect(http.MethodPut, r.text("data", "upload_url"), film, "Content-Type: video/mp4", contentRange(0, len(film), len(film)))
	same(t, "posts during the delay", 0, len(b.posted("tiktok")))
	b.clock.Step(5 * time.Second)
	b.http.Close() // waits for the handler
	b.listenAgain()
	if got := field(b.posted("tiktok"), 0, "media"); !cmp.Equal(got, any(mediaOf("video/mp4", film))) {
		t.Errorf("arrived as %v", got)
	}
}

// fileServer starts a shelf that serves files by path, and returns its address.
func fileServer(t *testing.T, files map[string][]byte) string {
	t.Helper()
	shelved := map[string][]byte{}
	for path, file := range files {
		shelved[path[1:]] = file
	}
	return newShelf(t, shelved).url
}
