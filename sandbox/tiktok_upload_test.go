// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// chunkOnTikTok sends a part of a file to an upload address.
func (b *box) chunkOnTikTok(address string, file []byte, first, end int) (reply, error) {
	b.t.Helper()
	return b.tryTransfer(http.MethodPut, address, bytes.NewReader(file[first:end]), "Content-Type: video/mp4",
		fmt.Sprintf("Content-Range: bytes %d-%d/%d", first, end-1, len(file)))
}

// uploadOnTikTok sends a whole file in one chunk to the upload address of an init response.
func (b *box) uploadOnTikTok(begun reply, file []byte) reply {
	b.t.Helper()
	if begun.text("data", "upload_url") == "" {
		b.t.Fatalf("no upload: %d %s", begun.status, begun.body)
	}
	r, err := b.chunkOnTikTok(begun.text("data", "upload_url"), file, 0, len(file))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// statusOnTikTok requests the status of an init response's publish ID.
func (b *box) statusOnTikTok(begun reply) reply {
	b.t.Helper()
	return b.onTikTok("status/fetch/", `{"publish_id":"`+begun.text("data", "publish_id")+`"}`)
}

// tiktokStatus returns the expected status of an upload.
func tiktokStatus(status string, uploaded int, more ...any) map[string]any {
	out := map[string]any{"status": status, "uploaded_bytes": float64(uploaded)}
	for i := 0; i+1 < len(more); i += 2 {
		name, _ := more[i].(string)
		out[name] = more[i+1]
	}
	return out
}

func TestTikTokChunks(t *testing.T) {
	b := start(t, "")
	const chunk, size = 6_000_000, 15_000_000
	film := movie("isom", 1080, 1920, 42*time.Second, size)
	begun := b.onTikTok("video/init/", `{"post_info":{"title":"Launch #demo","privacy_level":"PUBLIC_TO_EVERYONE","disable_duet":true,`+
		`"video_cover_timestamp_ms":1500,"brand_content_toggle":false,"brand_organic_toggle":true,"is_aigc":true},`+fromFile(size, chunk, 2)+`}`)
	address := begun.text("data", "upload_url")
	steps := []struct {
		reason         string
		first, end     int
		status, stored int
	}{
		{"the second chunk before the first", chunk, size, 416, 0},
		{"a chunk of another size", 0, chunk - 1, 416, 0},
		{"everything at once", 0, size, 416, 0},
		{"the first chunk", 0, chunk, 206, chunk},
		{"the same once more", 0, chunk, 416, chunk},
		{"a last chunk that is not larger", chunk, 2 * chunk, 416, chunk},
		{"the last chunk with what remains", chunk, size, 201, size},
		{"the last one once more", chunk, size, 416, size},
	}
	for _, s := range steps {
		r, err := b.chunkOnTikTok(address, film, s.first, s.end)
		if want := fmt.Sprintf("bytes 0-%d/%d", s.stored, size); err != nil || r.status != s.status || r.header.Get("Content-Range") != want {
			t.Errorf("%s: %v %d %s, want %d %s", s.reason, err, r.status, r.header.Get("Content-Range"), s.status, want)
		}
		if s.status == 206 {
			if diff := cmp.Diff(any(tiktokStatus("PROCESSING_UPLOAD", chunk)), b.statusOnTikTok(begun).at("data")); diff != "" {
				t.Errorf("between the chunks (-want +got):\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff(any(tiktokStatus("PROCESSING_UPLOAD", size)), b.statusOnTikTok(begun).at("data")); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	posts := b.posted("tiktok")
	id, _ := field(posts, 0, "id").(string)
	b.clock.Step(4 * time.Second)
	status := b.statusOnTikTok(begun)
	// The ID exceeds the precision of a float64.
	if status.text("data", "status") != "PUBLISH_COMPLETE" || !strings.Contains(status.body, `"publicaly_available_post_id":[`+id+`]`) || len(id) != 19 {
		t.Errorf("then: %s, want the id %s", status.body, id)
	}
	want := map[string]any{
		"id": id, "platform": "tiktok", "account_id": demo(t, "tiktok").ID, "text": "Launch #demo", "title": "",
		"media": mediaOf("video/mp4", film), "in_reply_to": "", "url": b.http.URL + "/tiktok/@herald_demo/video/" + id,
		"privacy": "PUBLIC_TO_EVERYONE", "draft": false, "created_at": "2026-12-01T09:00:00.123Z",
		"detail": map[string]any{
			"publish_id": begun.text("data", "publish_id"), "media_type": "VIDEO", "disable_comment": false, "disable_duet": true,
			"disable_stitch": false, "video_cover_timestamp_ms": 1500.0, "auto_add_music": false, "brand_content_toggle": false,
			"brand_organic_toggle": true, "is_aigc": true, "ready_at": "2026-12-01T09:00:00.423Z",
		},
	}
	if diff := cmp.Diff([]any{want}, posts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if page := b.call(http.MethodGet, "/tiktok/@herald_demo/video/"+id, "", "", ""); page.status != 200 || !strings.Contains(page.body, "/_media/"+sumOf(film)) {
		t.Errorf("the post's page: %d %s", page.status, page.body)
	}
}

func TestTikTokUploadRefusals(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	begun := b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(2000, 2000, 1)+`}`)
	address := begun.text("data", "upload_url")
	const whole, kind = "Content-Range: bytes 0-1999/2000", "Content-Type: video/mp4"
	tests := []struct {
		name, reason, address string
		body                  []byte
		headers               []string
		want                  int
	}{
		{"no range", "required also for one chunk", address, film, []string{kind}, 400},
		{"no type", "required", address, film, []string{whole}, 400},
		{"another type", "videos only", address, film, []string{whole, "Content-Type: application/octet-stream"}, 400},
		{"another total", "it was said at the beginning", address, film, []string{kind, "Content-Range: bytes 0-1999/2001"}, 400},
		{"fewer bytes than the range says", "the length and the range agree", address, film[:1999], []string{kind, whole}, 400},
		{"a range that is none", "it cannot be read", address, film, []string{kind, "Content-Range: 0-1999/2000"}, 400},
		{"a token", "the address has all authority", address, film, []string{kind, whole, "Authorization: Bearer tiktok-access-demo"}, 400},
		{"another upload", "unknown", strings.Replace(address, "upload_id=v", "upload_id=w", 1), film, []string{kind, whole}, 404},
		{"a part of the address", "the query is part of it", strings.Split(address, "&")[0], film, []string{kind, whole}, 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := b.tryTransfer(http.MethodPut, tt.address, bytes.NewReader(tt.body), tt.headers...)
			if err != nil || r.status != tt.want {
				t.Errorf("%s: %v %d %s, want %d", tt.reason, err, r.status, r.body, tt.want)
			}
		})
	}
	b.clock.Step(time.Hour)
	if r := b.uploadOnTikTok(begun, film); r.status != http.StatusForbidden {
		t.Errorf("after an hour: %d", r.status)
	}
	if got := b.posted("tiktok"); len(got) != 0 {
		t.Errorf("posted %v", got)
	}
}

// TestTikTokGoesOnAfterACut interrupts a chunk and, after a sandbox restart, continues from the status offset.
func TestTikTokGoesOnAfterACut(t *testing.T) {
	b := start(t, t.TempDir())
	const chunk, size = 6_000_000, 13_000_000
	film := movie("qt  ", 720, 1280, 5*time.Second, size)
	begun := b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(size, chunk, 2)+`}`)
	address := begun.text("data", "upload_url")
	if _, err := b.chunkOnTikTok(address, film, 0, chunk); err != nil {
		t.Fatal(err)
	}
	cut := io.MultiReader(bytes.NewReader(film[chunk:chunk+1_000_000]), broken{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, cut)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size - chunk
	req.Header.Set("Content-Type", "video/quicktime")
	req.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", chunk, size-1, size))
	if resp, err := b.client.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Fatal("the request should have failed")
	}
	b.http.Close() // waits for the handler
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	c := &box{t: t, clock: b.clock}
	c.open(b.dir)
	stored, _ := c.statusOnTikTok(begun).at("data", "uploaded_bytes").(float64)
	if stored < chunk || stored > chunk+1_000_000 || len(c.posted("tiktok")) != 0 {
		t.Fatalf("%v bytes are stored", stored)
	}
	address = c.http.URL + strings.TrimPrefix(address, b.http.URL)
	if r, err := c.chunkOnTikTok(address, film, int(stored), size); err != nil || r.status != http.StatusCreated {
		t.Fatalf("the rest: %v %d", err, r.status)
	}
	if got := field(c.posted("tiktok"), 0, "media"); !cmp.Equal(got, any(mediaOf("video/quicktime", film))) {
		t.Errorf("arrived as %v", got)
	}
}

// broken is a body that ends with an error.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestTikTokFilesThatFail(t *testing.T) {
	tests := []struct {
		name, reason string
		file         []byte
		setting      string
		want         string
	}{
		{"no video", "what it is decides, not what it is called", []byte(strings.Repeat("text ", 100)), "", "file_format_check_failed"},
		{"too long", "the creator may post ten minutes", movie("isom", 720, 1280, 10*time.Minute+time.Second, 0), "", "duration_check_failed"},
		{"as long as may be", "ten minutes", movie("isom", 720, 1280, 10*time.Minute, 0), "", ""},
		{"too small", "360 pixels at least", movie("isom", 358, 640, time.Minute, 0), "", "picture_size_check_failed"},
		{"too large", "4096 pixels at most", movie("isom", 4098, 640, time.Minute, 0), "", "picture_size_check_failed"},
		{"as the test says", "any reason can be asked for", movie("isom", 720, 1280, time.Minute, 0), "frame_rate_check_failed", "frame_rate_check_failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			b.control(http.MethodPut, "/accounts/tiktok/"+demo(t, "tiktok").ID, `{"processing_ms":5000,"processing_error":"`+tt.setting+`"}`, http.StatusOK)
			begun := b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(len(tt.file), len(tt.file), 1)+`}`)
			if r := b.uploadOnTikTok(begun, tt.file); r.status != http.StatusCreated {
				t.Fatalf("%s: %d", tt.reason, r.status)
			}
			b.clock.Step(5*time.Second - time.Millisecond)
			if got := b.statusOnTikTok(begun).text("data", "status"); got != "PROCESSING_UPLOAD" {
				t.Errorf("while it works: %s", got)
			}
			b.clock.Step(time.Millisecond)
			r := b.statusOnTikTok(begun)
			failed := r.text("data", "status") == "FAILED" && r.text("data", "fail_reason") == tt.want && len(b.posted("tiktok")) == 0
			if tt.want != "" && !failed || tt.want == "" && r.text("data", "status") != "PUBLISH_COMPLETE" {
				t.Errorf("%s: %s, want %s", tt.reason, r.body, tt.want)
			}
		})
	}
}

func TestTikTokDrafts(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	begun := b.onTikTok("inbox/video/init/", `{`+fromFile(2000, 2000, 1)+`}`)
	if r := b.uploadOnTikTok(begun, film); r.status != http.StatusCreated || !strings.HasPrefix(begun.text("data", "publish_id"), "v_inbox_file~v2") {
		t.Fatalf("%d %s", r.status, begun.body)
	}
	b.clock.Step(time.Second)
	if diff := cmp.Diff(any(tiktokStatus("SEND_TO_USER_INBOX", 2000)), b.statusOnTikTok(begun).at("data")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	posts := b.posted("tiktok")
	if len(posts) != 1 || field(posts, 0, "draft") != true || field(posts, 0, "privacy") != "" {
		t.Errorf("posted %v", posts)
	}
	id, _ := field(posts, 0, "id").(string)
	if page := b.call(http.MethodGet, "/tiktok/@herald_demo/video/"+id, "", "", ""); page.status != http.StatusForbidden {
		t.Errorf("a draft's page: %d", page.status)
	}
	if got := b.listOnTikTok(`{}`).list("data", "videos"); len(got) != 0 {
		t.Errorf("a draft is listed: %v", got)
	}
}

// TestTikTokDelayedChunkIsKept disconnects the client while the last chunk waits for a fault's delay. The chunk has arrived, so the video
// is posted.
func TestTikTokDelayedChunkIsKept(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 6_000_000)
	begun := b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(len(film), len(film), 1)+`}`)
	b.fault(`{"platform":"tiktok","operation":"publish","kind":"delay","delay_ms":5000}`)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, begun.text("data", "upload_url"), bytes.NewReader(film))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "video/mp4")
	req.Header.Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(film)-1, len(film)))
	gone := make(chan error, 1)
	go func() {
		resp, err := b.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		gone <- err
	}()
	<-b.clock.timers
	leave()
	if err := <-gone; err == nil {
		t.Fatal("the client got an answer before the delay was over")
	}
	if got := b.posted("tiktok"); len(got) != 0 {
		t.Fatalf("posted before the delay was over: %v", got)
	}
	b.clock.Step(5 * time.Second)
	b.http.Close() // waits for the handler
	b.listenAgain()
	if got := field(b.posted("tiktok"), 0, "media"); !cmp.Equal(got, any(mediaOf("video/mp4", film))) {
		t.Errorf("arrived as %v", got)
	}
}

// fileServer starts a web server with files for the platforms.
func fileServer(t *testing.T, files map[string][]byte) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/a", http.StatusFound)
			return
		}
		file, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(file) // the client may have disconnected
	}))
	t.Cleanup(web.Close)
	return web.URL
}
