// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	channelID     = "UCHeraldDemo000000000001"
	youtubeInsert = "/youtube/upload/youtube/v3/videos?uploadType=multipart&part=snippet,status"
	youtubeUpload = "/youtube/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status"
	youtubeVideos = "/youtube/youtube/v3/videos?part=snippet,status,processingDetails&id="
	plainVideo    = `{"snippet":{"title":"Release 1.4","description":"What changed"},"status":{"privacyStatus":"public"}}`
)

// atGoogle sends a request with the demo channel's token.
func (b *box) atGoogle(method, address string, body []byte, headers ...string) reply {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.http.URL + address
	}
	return b.transfer(method, address, bytes.NewReader(body), append(headers, "Authorization: Bearer youtube-access-demo")...)
}

// startOnYouTube starts a session.
func (b *box) startOnYouTube(body string, size int) reply {
	b.t.Helper()
	return b.atGoogle(http.MethodPost, youtubeUpload, []byte(body), "Content-Type: "+jsonUTF8,
		"X-Upload-Content-Type: video/mp4", "X-Upload-Content-Length: "+strconv.Itoa(size))
}

// session starts an upload and returns its address.
func (b *box) session(body string, size int) string {
	b.t.Helper()
	return b.startOnYouTube(body, size).want(b.t, "the session", 200, "Location: *").header.Get("Location")
}

// queryProgress queries the progress of a session.
func (b *box) queryProgress(session string, size int) reply {
	b.t.Helper()
	return b.transfer(http.MethodPut, session, http.NoBody, fmt.Sprintf("Content-Range: bytes */%d", size))
}

// uploadOnYouTube uploads a video in one piece and returns its ID.
func (b *box) uploadOnYouTube(body string, file []byte) string {
	b.t.Helper()
	r := b.transfer(http.MethodPut, b.session(body, len(file)), bytes.NewReader(file), "Content-Type: video/mp4").want(b.t, "the upload", 200)
	same(b.t, "the length of an ID", 11, len(r.text("id")))
	return r.text("id")
}

// videoOnYouTube requests a video.
func (b *box) videoOnYouTube(id string) reply {
	b.t.Helper()
	return b.read("youtube", youtubeVideos+id)
}

func TestYouTubeStart(t *testing.T) {
	b := start(t, "")
	about := func(snippet, status string) string { return `{"snippet":{` + snippet + `},"status":{` + status + `}}` }
	titled := func(title string) string { return about(`"title":"`+title+`"`, `"privacyStatus":"private"`) }
	described := func(text string) string {
		return about(`"title":"a","description":"`+text+`"`, `"privacyStatus":"private"`)
	}
	begun, title := is{200, "Location~" + b.http.URL + "/youtube/upload/", "="}, youtubeError(400, "invalidTitle")
	b.each(t, func(body string) reply { return b.startOnYouTube(body, 1000) }, []row{
		{"a plain video", plainVideo, begun},
		{"a title of 100 characters fits", titled(strings.Repeat("é", 100)), begun},
		{"a title of 101 characters is too long", titled(strings.Repeat("é", 101)), title},
		{"a title is required", about(`"description":"a"`, ``), title},
		{"white space is not a title", titled(" "), title},
		{"a title has no less-than sign", titled("a < b"), title},
		{"a description of 5000 bytes fits", described(strings.Repeat("é", 2500)), begun},
		{"bytes count, not characters", described(strings.Repeat("é", 2500) + "a"), youtubeError(400, "invalidDescription")},
		{"a description has no greater-than sign", described("a > b"), youtubeError(400, "invalidDescription")},
		{"privacy is an enumeration", about(`"title":"a"`, `"privacyStatus":"friends"`), youtubeError(400, "invalidVideoMetadata")},
		{"unknown fields are rejected", about(`"title":"a"`, `"privacy":"private"`), youtubeError(400, "badRequest")},
		{"a body is JSON", `title=a`, youtubeError(400, "badRequest")},
		{"a body is one value", plainVideo + `{}`, youtubeError(400, "badRequest")},
	})
	const typed, sized = "X-Upload-Content-Type: video/mp4", "X-Upload-Content-Length: 1000"
	const token, kind = "Authorization: Bearer youtube-access-demo", "Content-Type: " + jsonUTF8
	good := []string{token, kind, typed, sized}
	for _, tt := range []struct {
		why, path string
		headers   []string
		want      is
	}{
		{"a token is required", youtubeUpload, good[1:], youtubeError(401, "authError")},
		{"the file's type is required", youtubeUpload, []string{token, kind, sized}, youtubeError(400, "badContent")},
		{"the file is a video", youtubeUpload, []string{token, kind, sized, "X-Upload-Content-Type: image/png"}, youtubeError(400, "badContent")},
		{"the file is not empty", youtubeUpload, []string{token, kind, typed, "X-Upload-Content-Length: 0"}, youtubeError(400, "mediaBodyRequired")},
		{
			"the file has at most 256 GB", youtubeUpload,
			[]string{token, kind, typed, "X-Upload-Content-Length: 274877906945"},
			youtubeError(400, "mediaBodyRequired"),
		},
		{"the body is not a form", youtubeUpload, []string{token, "Content-Type: " + formType, typed, sized}, youtubeError(400, "parseError")},
		{"a part is required", strings.Split(youtubeUpload, "&")[0], good, youtubeError(400, "missingRequiredParameter")},
		{"an unknown part", youtubeUpload + ",statistics", good, youtubeError(400, "unknownPart")},
		{"an unknown parameter", youtubeUpload + "&notify=true", good, youtubeError(400, "unexpectedParameter")},
		{"another kind of upload", strings.Replace(youtubeUpload, "resumable", "media", 1), good, youtubeError(400, "invalidParameter")},
	} {
		b.transfer(http.MethodPost, b.http.URL+tt.path, strings.NewReader(plainVideo), tt.headers...).want(t, tt.why, tt.want...)
	}
	same(t, "a session is not a video", 0, len(b.posted("youtube")))
}

func TestYouTubeChunks(t *testing.T) {
	b := start(t, "")
	const unit, size = 256 << 10, 1_000_000
	film := movie("isom", 1920, 1080, 42*time.Second, size)
	session := b.session(plainVideo, size)
	b.queryProgress(session, size).want(t, "an empty session", 308, "Range: ", "Location: ")
	for _, s := range []struct {
		why                string
		first, end, status int
		stored             string
	}{
		{"the second chunk before the first", unit, 2 * unit, 400, ""},
		{"a size that is not a multiple of 256 KiB", 0, unit + unit/2, 400, ""},
		{"the first chunk", 0, unit, 308, "bytes=0-262143"},
		{"a repeated first chunk", 0, unit, 400, "bytes=0-262143"},
		{"a chunk of two units", unit, 3 * unit, 308, "bytes=0-786431"},
		{"the last chunk may have any size", 3 * unit, size, 200, ""},
	} {
		r := b.chunk(session, film, s.first, s.end).want(t, s.why, s.status)
		if s.status == 308 {
			r.want(t, s.why, "Range: "+s.stored)
		}
		if s.status != 200 {
			b.queryProgress(session, size).want(t, s.why+": the progress", 308, "Range: "+s.stored)
		}
	}
	done := b.queryProgress(session, size)
	id := done.text("id")
	done.want(t, "a completed session", 200, "kind=youtube#video", "status.uploadStatus=uploaded", "snippet.title=Release 1.4")
	ignoreDetail := cmp.FilterPath(func(p cmp.Path) bool {
		key, ok := p.Last().(cmp.MapIndex)
		return ok && key.Key().String() == "detail"
	}, cmp.Ignore())
	same(t, "the post in the control API", []any{map[string]any{
		"id": id, "platform": "youtube", "account_id": channelID, "text": "What changed", "title": "Release 1.4",
		"media": mediaOf("video/mp4", film), "in_reply_to": "", "url": b.http.URL + "/youtube/watch?v=" + id, "privacy": "public",
		"draft": false, "created_at": "2026-12-01T09:00:00.123Z",
	}}, b.posted("youtube"), ignoreDetail)
	b.page("/youtube/watch?v="+id).want(t, "the video's page", 200, "~/_media/"+sumOf(film))
	same(t, "calls of create and publish", []int{1, 1}, []int{b.callsOn("youtube", "create"), b.callsOn("youtube", "publish")})
}

func TestYouTubeSessionRefusals(t *testing.T) {
	b := start(t, "")
	session := b.session(plainVideo, len(shortFilm))
	invalid := youtubeError(400, "badRequest")
	for _, tt := range []struct {
		why, address, kind, contentRange string
		bytes                            int
		want                             is
	}{
		{"an unknown session", session + "X", "video/mp4", "", 2000, youtubeError(404, "notFound")},
		{"another size than announced", session, "video/mp4", "", 1999, invalid},
		{"another total", session, "video/mp4", "bytes 0-1999/2001", 2000, invalid},
		{"fewer bytes than the range", session, "video/mp4", "bytes 0-1999/2000", 1000, invalid},
		{"an invalid range", session, "video/mp4", "0-1999/2000", 2000, invalid},
		{"a status query has no bytes", session, "video/mp4", "bytes */2000", 2000, invalid},
		{"another type than announced", session, "text/plain", "", 2000, youtubeError(400, "badContent")},
	} {
		headers := []string{"Content-Type: " + tt.kind}
		if tt.contentRange != "" {
			headers = append(headers, "Content-Range: "+tt.contentRange)
		}
		b.transfer(http.MethodPut, tt.address, bytes.NewReader(shortFilm[:tt.bytes]), headers...).want(t, tt.why, tt.want...)
	}
	b.clock.Step(7 * 24 * time.Hour)
	b.queryProgress(session, len(shortFilm)).want(t, "a session expires after a week", 410)
	same(t, "posts", 0, len(b.posted("youtube")))
}

// related returns a request body with a description and a file, and its content type.
func related(t *testing.T, description, fileType string, file []byte) (contentType string, body []byte) {
	t.Helper()
	var out bytes.Buffer
	parts := multipart.NewWriter(&out)
	part := func(kind string, content []byte) {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {kind}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(content) // writing to a buffer never fails
	}
	part(jsonType, []byte(description))
	part(fileType, file)
	_ = parts.Close()
	return "multipart/related; boundary=" + parts.Boundary(), out.Bytes()
}

// TestYouTubeUnknownTotal uploads like google.golang.org/api: without a length, in POST chunks, without the response 308.
func TestYouTubeUnknownTotal(t *testing.T) {
	const unit = 256 << 10
	for _, tt := range []struct {
		why  string
		end  int
		last string // the final request's Content-Range
	}{
		{"the last chunk announces the total", 2*unit + 100, fmt.Sprintf("bytes %d-%d/%d", 2*unit, 2*unit+99, 2*unit+100)},
		{"an empty chunk announces the total", 2 * unit, fmt.Sprintf("bytes */%d", 2*unit)},
	} {
		b := start(t, "")
		file := movie("isom", 640, 360, time.Second, tt.end)
		session := b.atGoogle(http.MethodPost, youtubeUpload, []byte(plainVideo), "Content-Type: "+jsonUTF8, "X-Upload-Content-Type: video/mp4").
			want(t, "a session without a length", 200, "Location: *").header.Get("Location")
		const quiet, video = "X-GUploader-No-308: yes", "Content-Type: video/mp4"
		for first := 0; first < 2*unit; first += unit {
			part := fmt.Sprintf("Content-Range: bytes %d-%d/*", first, first+unit-1)
			b.atGoogle(http.MethodPost, session, file[first:first+unit], video, quiet, part).
				want(t, "a chunk", 200, "X-Http-Status-Code-Override: 308", fmt.Sprintf("Range: bytes=0-%d", first+unit-1))
		}
		b.atGoogle(http.MethodPut, session, nil, "Content-Range: bytes */*").want(t, "the progress", 308)
		r := b.atGoogle(http.MethodPost, session, file[2*unit:], video, quiet, "Content-Range: "+tt.last)
		r.want(t, tt.why, 200, "X-Http-Status-Code-Override: ", "id=*")
		same(t, "videos", 1, len(b.posted("youtube")))
	}
}

// TestYouTubeInOneRequest sends Google clients' requests for small files.
func TestYouTubeInOneRequest(t *testing.T) {
	file := movie("isom", 640, 360, time.Second, 5000)
	insert := func(b *box, path, description, fileType string, file []byte) reply {
		contentType, body := related(t, description, fileType, file)
		return b.atGoogle(http.MethodPost, path, body, "Content-Type: "+contentType)
	}
	for _, tt := range []struct {
		why, description, fileType string
		file                       []byte
		status                     int
	}{
		{"the default of both of Google's clients", plainVideo, "video/mp4", file, 200},
		{"a generic type, because clients do not always know the file's", plainVideo, "application/octet-stream", file, 200},
		{"a misspelt field", `{"snippet":{"titel":"a"}}`, "video/mp4", file, 400},
		{"a title is required", `{"snippet":{}}`, "video/mp4", file, 400},
		{"an image is not a video", plainVideo, "image/png", file, 400},
		{"a video is not empty", plainVideo, "video/mp4", nil, 400},
	} {
		b := start(t, "")
		r := insert(b, youtubeInsert, tt.description, tt.fileType, tt.file).want(t, tt.why, tt.status)
		posts := 0
		if tt.status == 200 {
			posts = 1
			r.want(t, tt.why, "id=*")
		}
		same(t, tt.why+": videos", posts, len(b.posted("youtube")))
	}
	insert(startLenient(t), youtubeInsert+",recordingDetails&notifySubscribers=false&alt=json", `{"snippet":{"title":"a","categoryId":"22",`+
		`"tags":["b"]},"status":{"privacyStatus":"private","selfDeclaredMadeForKids":false}}`, "video/mp4", file).want(t, "documented fields", 200)
	b := start(t, "")
	b.atGoogle(http.MethodPost, youtubeInsert, []byte("not parts"), "Content-Type: multipart/related").want(t, "a body without parts", 400)
	b.set("youtube", `{"quota":0}`)
	insert(b, youtubeInsert, plainVideo, "video/mp4", file).want(t, "a used quota", youtubeError(400, "uploadLimitExceeded")...)
}
