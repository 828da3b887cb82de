// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	youtubeUpload = "/youtube/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status"
	youtubeVideos = "/youtube/youtube/v3/videos?part=snippet,status,processingDetails&id="
	plainVideo    = `{"snippet":{"title":"Release 1.4","description":"What changed"},"status":{"privacyStatus":"public"}}`
)

// startOnYouTube starts a session.
func (b *box) startOnYouTube(body string, size int, headers ...string) reply {
	b.t.Helper()
	all := append([]string{
		"Authorization: Bearer " + demo(b.t, "youtube").AccessToken, "Content-Type: " + jsonUTF8,
		"X-Upload-Content-Type: video/mp4", "X-Upload-Content-Length: " + strconv.Itoa(size),
	}, headers...)
	r, err := b.tryTransfer(http.MethodPost, b.http.URL+youtubeUpload, strings.NewReader(body), all...)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// session starts an upload and returns its address.
func (b *box) session(body string, size int) string {
	b.t.Helper()
	r := b.startOnYouTube(body, size)
	if r.status != http.StatusOK || r.header.Get("Location") == "" {
		b.t.Fatalf("session: %d %s", r.status, r.body)
	}
	return r.header.Get("Location")
}

// chunkOnYouTube sends a part of a file to a session.
func (b *box) chunkOnYouTube(session string, file []byte, first, end int) (reply, error) {
	b.t.Helper()
	return b.tryTransfer(http.MethodPut, session, bytes.NewReader(file[first:end]), "Content-Type: video/mp4",
		fmt.Sprintf("Content-Range: bytes %d-%d/%d", first, end-1, len(file)))
}

// askSession queries the progress of a session.
func (b *box) askSession(session string, size int) reply {
	b.t.Helper()
	r, err := b.tryTransfer(http.MethodPut, session, http.NoBody, fmt.Sprintf("Content-Range: bytes */%d", size))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// uploadOnYouTube uploads a video in one piece and returns its ID.
func (b *box) uploadOnYouTube(body string, file []byte) string {
	b.t.Helper()
	r, err := b.tryTransfer(http.MethodPut, b.session(body, len(file)), bytes.NewReader(file), "Content-Type: video/mp4")
	if err != nil || r.status != http.StatusOK || len(r.text("id")) != 11 {
		b.t.Fatalf("upload: %v %d %s", err, r.status, r.body)
	}
	return r.text("id")
}

// videoOnYouTube requests a video.
func (b *box) videoOnYouTube(id string) reply {
	b.t.Helper()
	return b.read("youtube", youtubeVideos+id)
}

// isYouTubeError reports whether a response is an error with the reason.
func isYouTubeError(r reply, status int, reason string) bool {
	return r.status == status && r.at("error", "code") == float64(status) && r.text("error", "errors", "0", "reason") == reason
}

func TestYouTubeStart(t *testing.T) {
	b := start(t, "")
	about := func(snippet, status string) string { return `{"snippet":{` + snippet + `},"status":{` + status + `}}` }
	titled := func(title string) string { return about(`"title":"`+title+`"`, `"privacyStatus":"private"`) }
	told := func(description string) string {
		return about(`"title":"a","description":"`+description+`"`, `"privacyStatus":"private"`)
	}
	tests := []struct {
		name, reason, body string
		want               string // the error's reason
	}{
		{"plain", "the plain case", plainVideo, ""},
		{"longest title", "100 characters fit", titled(strings.Repeat("é", 100)), ""},
		{"title too long", "and not one more", titled(strings.Repeat("é", 101)), "invalidTitle"},
		{"no title", "it is required", about(`"description":"a"`, ``), "invalidTitle"},
		{"blank title", "white space is none", titled(" "), "invalidTitle"},
		{"less-than sign in the title", "forbidden", titled("a < b"), "invalidTitle"},
		{"longest description", "5000 bytes fit", told(strings.Repeat("é", 2500)), ""},
		{"description too long", "bytes count, not characters", told(strings.Repeat("é", 2500) + "a"), "invalidDescription"},
		{"greater-than sign in the description", "forbidden", told("a > b"), "invalidDescription"},
		{"unknown privacy", "an enumeration", about(`"title":"a"`, `"privacyStatus":"friends"`), "invalidVideoMetadata"},
		{"misspelt field", "what is not known is refused", about(`"title":"a"`, `"privacy":"private"`), "badRequest"},
		{"no JSON", "a body", `title=a`, "badRequest"},
		{"two values", "one body", plainVideo + `{}`, "badRequest"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.startOnYouTube(tt.body, 1000)
			if tt.want == "" && (r.status != http.StatusOK || !strings.HasPrefix(r.header.Get("Location"), b.http.URL+"/youtube/upload/") || r.body != "") {
				t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
			}
			if tt.want != "" && !isYouTubeError(r, 400, tt.want) {
				t.Errorf("%s: %d %s, want %s", tt.reason, r.status, r.body, tt.want)
			}
		})
	}
	if got := b.posted("youtube"); len(got) != 0 {
		t.Errorf("a session is no video: %v", got)
	}
}

func TestYouTubeStartRefusals(t *testing.T) {
	b := start(t, "")
	token, kind := "Authorization: Bearer "+demo(t, "youtube").AccessToken, "Content-Type: "+jsonUTF8
	const typed, sized = "X-Upload-Content-Type: video/mp4", "X-Upload-Content-Length: 1000"
	tests := []struct {
		name, path string
		headers    []string
		status     int
		want       string
	}{
		{"no token", youtubeUpload, []string{kind, typed, sized}, 401, "authError"},
		{"no type of the file", youtubeUpload, []string{token, kind, sized}, 400, "badContent"},
		{"a picture", youtubeUpload, []string{token, kind, sized, "X-Upload-Content-Type: image/png"}, 400, "badContent"},
		{"no bytes", youtubeUpload, []string{token, kind, typed, "X-Upload-Content-Length: 0"}, 400, "mediaBodyRequired"},
		{"beyond 256 GB", youtubeUpload, []string{token, kind, typed, "X-Upload-Content-Length: 274877906945"}, 400, "mediaBodyRequired"},
		{"a form", youtubeUpload, []string{token, "Content-Type: " + formType, typed, sized}, 400, "parseError"},
		{"no part", strings.Split(youtubeUpload, "&")[0], []string{token, kind, typed, sized}, 400, "missingRequiredParameter"},
		{"unknown part", youtubeUpload + ",statistics", []string{token, kind, typed, sized}, 400, "unknownPart"},
		{"unknown parameter", youtubeUpload + "&notify=true", []string{token, kind, typed, sized}, 400, "unexpectedParameter"},
		{"another kind of upload", strings.Replace(youtubeUpload, "resumable", "media", 1), []string{token, kind, typed, sized}, 400, "invalidParameter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := b.tryTransfer(http.MethodPost, b.http.URL+tt.path, strings.NewReader(plainVideo), tt.headers...)
			if err != nil || !isYouTubeError(r, tt.status, tt.want) {
				t.Errorf("%v %d %s, want %d %s", err, r.status, r.body, tt.status, tt.want)
			}
		})
	}
}

func TestYouTubeChunks(t *testing.T) {
	b := start(t, "")
	const unit, size = 256 << 10, 1_000_000
	film := movie("isom", 1920, 1080, 42*time.Second, size)
	session := b.session(plainVideo, size)
	if r := b.askSession(session, size); r.status != http.StatusPermanentRedirect || r.header.Get("Range") != "" || r.header.Get("Location") != "" {
		t.Errorf("an empty session: %d %v", r.status, r.header)
	}
	steps := []struct {
		reason     string
		first, end int
		status     int
		stored     string
	}{
		{"the second chunk before the first", unit, 2 * unit, 400, ""},
		{"a size that is no multiple", 0, unit + 1, 400, ""},
		{"the first chunk", 0, unit, 308, "bytes=0-262143"},
		{"the same once more", 0, unit, 400, "bytes=0-262143"},
		{"two at once", unit, 3 * unit, 308, "bytes=0-786431"},
		{"the last, of any size", 3 * unit, size, 200, ""},
	}
	for _, s := range steps {
		r, err := b.chunkOnYouTube(session, film, s.first, s.end)
		if err != nil || r.status != s.status || s.status == 308 && r.header.Get("Range") != s.stored {
			t.Errorf("%s: %v %d %v %s, want %d %s", s.reason, err, r.status, r.header, r.body, s.status, s.stored)
		}
		if ask := b.askSession(session, size); s.status != 200 && (ask.status != 308 || ask.header.Get("Range") != s.stored) {
			t.Errorf("%s, then asked: %d %s, want %s", s.reason, ask.status, ask.header.Get("Range"), s.stored)
		}
	}
	done := b.askSession(session, size)
	id := done.text("id")
	if done.status != http.StatusOK || done.text("kind") != "youtube#video" || done.text("status", "uploadStatus") != "uploaded" || done.text("snippet", "title") != "Release 1.4" {
		t.Errorf("a session that is done: %d %s", done.status, done.body)
	}
	want := map[string]any{
		"id": id, "platform": "youtube", "account_id": demo(t, "youtube").ID, "text": "What changed", "title": "Release 1.4",
		"media": mediaOf("video/mp4", film), "in_reply_to": "", "url": b.http.URL + "/youtube/watch?v=" + id, "privacy": "public",
		"draft": false, "created_at": "2026-12-01T09:00:00.123Z",
	}
	posts := b.posted("youtube")
	ignoreDetail := cmp.FilterPath(func(p cmp.Path) bool {
		key, ok := p.Last().(cmp.MapIndex)
		return ok && key.Key().String() == "detail"
	}, cmp.Ignore())
	if diff := cmp.Diff([]any{want}, posts, ignoreDetail); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if page := b.call(http.MethodGet, "/youtube/watch?v="+id, "", "", ""); page.status != 200 || !strings.Contains(page.body, "/_media/"+sumOf(film)) {
		t.Errorf("the video's page: %d %s", page.status, page.body)
	}
	if got := []int{b.callsOn("youtube", "create"), b.callsOn("youtube", "publish")}; !cmp.Equal(got, []int{1, 1}) {
		t.Errorf("create and publish were called %v times, want once each", got)
	}
}

func TestYouTubeSessionRefusals(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	session := b.session(plainVideo, len(film))
	const kind = "Content-Type: video/mp4"
	tests := []struct {
		name, address string
		body          []byte
		headers       []string
		status        int
		want          string
	}{
		{"another session", session + "X", film, []string{kind}, 404, "notFound"},
		{"another size", session, film[:1999], []string{kind}, 400, "badRequest"},
		{"another total", session, film, []string{kind, "Content-Range: bytes 0-1999/2001"}, 400, "badRequest"},
		{"fewer bytes than the range says", session, film[:1000], []string{kind, "Content-Range: bytes 0-1999/2000"}, 400, "badRequest"},
		{"a range that is none", session, film, []string{kind, "Content-Range: 0-1999/2000"}, 400, "badRequest"},
		{"a query with bytes", session, film, []string{kind, "Content-Range: bytes */2000"}, 400, "badRequest"},
		{"another type", session, film, []string{"Content-Type: text/plain"}, 400, "badContent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := b.tryTransfer(http.MethodPut, tt.address, bytes.NewReader(tt.body), tt.headers...)
			if err != nil || !isYouTubeError(r, tt.status, tt.want) {
				t.Errorf("%v %d %s, want %d %s", err, r.status, r.body, tt.status, tt.want)
			}
		})
	}
	b.clock.Step(7 * 24 * time.Hour)
	if r := b.askSession(session, len(film)); r.status != http.StatusGone {
		t.Errorf("after a week: %d %s", r.status, r.body)
	}
	if got := b.posted("youtube"); len(got) != 0 {
		t.Errorf("posted %v", got)
	}
}
