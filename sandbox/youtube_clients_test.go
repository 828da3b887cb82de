// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// related returns a request body with a description and a file, and its content type.
func related(t *testing.T, description, fileType string, file []byte) (contentType string, body []byte) {
	t.Helper()
	var out bytes.Buffer
	parts := multipart.NewWriter(&out)
	for _, part := range []struct {
		contentType string
		content     []byte
	}{{"application/json", []byte(description)}, {fileType, file}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {part.contentType}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(part.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := parts.Close(); err != nil {
		t.Fatal(err)
	}
	return "multipart/related; boundary=" + parts.Boundary(), out.Bytes()
}

// atGoogle sends a request with the demo channel's token.
func (b *box) atGoogle(method, address string, body []byte, headers ...string) reply {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.http.URL + address
	}
	r, err := b.tryTransfer(method, address, bytes.NewReader(body), append(headers, "Authorization: Bearer "+demo(b.t, "youtube").AccessToken)...)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// TestYouTubeChunksOfGooglesClient uploads like google.golang.org/api: without a length, in POST chunks, without the response 308.
func TestYouTubeChunksOfGooglesClient(t *testing.T) {
	const unit = 256 << 10
	tests := []struct {
		name, reason string
		// last is the final request's Content-Range; then means that this request has no bytes.
		end  int
		last string
		then bool
	}{
		{"the last chunk says the total", "it is known when the stream ends", 2*unit + 100, "bytes %d-%d/%d", false},
		{"an empty chunk says it", "the stream ended with a chunk", 2 * unit, "bytes */%d", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			file := movie("isom", 640, 360, time.Second, tt.end)
			begun := b.atGoogle(http.MethodPost, youtubeUpload, []byte(plainVideo), "Content-Type: "+jsonUTF8, "X-Upload-Content-Type: video/mp4")
			session := begun.header.Get("Location")
			if begun.status != http.StatusOK || session == "" {
				t.Fatalf("a session without a length: %d %s", begun.status, begun.body)
			}
			const quiet, video = "X-GUploader-No-308: yes", "Content-Type: video/mp4"
			for first := 0; first < 2*unit; first += unit {
				r := b.atGoogle(http.MethodPost, session, file[first:first+unit], video, quiet, fmt.Sprintf("Content-Range: bytes %d-%d/*", first, first+unit-1))
				if r.status != http.StatusOK || r.header.Get("X-Http-Status-Code-Override") != "308" ||
					r.header.Get("Range") != fmt.Sprintf("bytes=0-%d", first+unit-1) {
					t.Fatalf("chunk at %d: %d %v %s", first, r.status, r.header, r.body)
				}
			}
			if r := b.atGoogle(http.MethodPut, session, nil, "Content-Range: bytes */*"); r.status != http.StatusPermanentRedirect {
				t.Errorf("asked: %d %s", r.status, r.body)
			}
			contentRange := fmt.Sprintf(tt.last, tt.end)
			if !tt.then {
				contentRange = fmt.Sprintf(tt.last, 2*unit, tt.end-1, tt.end)
			}
			r := b.atGoogle(http.MethodPost, session, file[2*unit:], video, quiet, "Content-Range: "+contentRange)
			if r.status != http.StatusOK || r.header.Get("X-Http-Status-Code-Override") != "" || len(r.text("id")) != 11 {
				t.Errorf("%s: %d %v %s", tt.reason, r.status, r.header, r.body)
			}
			if posts := b.posted("youtube"); len(posts) != 1 {
				t.Errorf("%d videos", len(posts))
			}
		})
	}
}

// TestYouTubeInOneRequest sends Google clients' requests for small files.
func TestYouTubeInOneRequest(t *testing.T) {
	const insert = "/youtube/upload/youtube/v3/videos?uploadType=multipart&part=snippet,status"
	file := movie("isom", 640, 360, time.Second, 5000)
	tests := []struct {
		name, reason, path, description, fileType string
		file                                      []byte
		lenient                                   bool
		want                                      int
	}{
		{"a video", "the default of both of Google's clients", insert, plainVideo, "video/mp4", file, false, 200},
		{"any bytes", "they do not always know the type", insert, plainVideo, "application/octet-stream", file, false, 200},
		{
			"documented fields", "which have no effect here", insert + ",recordingDetails&notifySubscribers=false&alt=json",
			`{"snippet":{"title":"a","categoryId":"22","tags":["b"]},"status":{"privacyStatus":"private","selfDeclaredMadeForKids":false}}`, "video/mp4", file, true, 200,
		},
		{"misspelt field", "a test sees it", insert, `{"snippet":{"titel":"a"}}`, "video/mp4", file, false, 400},
		{"no title", "the same rules", insert, `{"snippet":{}}`, "video/mp4", file, false, 400},
		{"a picture", "no video", insert, plainVideo, "image/png", file, false, 400},
		{"nothing", "a video has bytes", insert, plainVideo, "video/mp4", nil, false, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			if tt.lenient {
				b = startLenient(t)
			}
			contentType, body := related(t, tt.description, tt.fileType, tt.file)
			r := b.atGoogle(http.MethodPost, tt.path, body, "Content-Type: "+contentType)
			if r.status != tt.want || (r.status == http.StatusOK) != (len(r.text("id")) == 11) {
				t.Errorf("%s: %d %s, want %d", tt.reason, r.status, r.body, tt.want)
			}
			if n := len(b.posted("youtube")); (n == 1) != (tt.want == 200) {
				t.Errorf("%d videos", n)
			}
		})
	}
	b := start(t, "")
	if r := b.atGoogle(http.MethodPost, insert, []byte("not parts"), "Content-Type: multipart/related"); r.status != http.StatusBadRequest {
		t.Errorf("no parts: %d %s", r.status, r.body)
	}
	b.control(http.MethodPut, "/accounts/youtube/UCHeraldDemo000000000001", `{"quota":0}`, http.StatusOK)
	contentType, body := related(t, plainVideo, "video/mp4", file)
	if r := b.atGoogle(http.MethodPost, insert, body, "Content-Type: "+contentType); r.text("error", "errors", "0", "reason") != "uploadLimitExceeded" {
		t.Errorf("the quota holds as well: %d %s", r.status, r.body)
	}
}

func TestYouTubeThumbnailsOfOtherClients(t *testing.T) {
	b := start(t, "")
	id := b.uploadOnYouTube(plainVideo, movie("isom", 640, 360, time.Second, 5000))
	path, thumbnail := "/youtube/upload/youtube/v3/thumbnails/set?videoId="+id, jpegOf(t, 40, 30)
	contentType, body := related(t, "", "image/jpeg", thumbnail)
	if r := b.atGoogle(http.MethodPost, path+"&uploadType=multipart", body, "Content-Type: "+contentType); r.status != http.StatusOK {
		t.Errorf("google.golang.org/api: %d %s", r.status, r.body)
	}
	if r := b.atGoogle(http.MethodPost, path, thumbnail, "Content-Type: image/jpeg"); r.status != http.StatusOK {
		t.Errorf("OpenPost names no uploadType: %d %s", r.status, r.body)
	}
}

// TestYouTubeVideosAreDeleted checks that deletion needs more than the upload scope.
func TestYouTubeVideosAreDeleted(t *testing.T) {
	b := start(t, "")
	id := b.uploadOnYouTube(plainVideo, movie("isom", 640, 360, time.Second, 5000))
	remove := func(token, id string) reply {
		return b.call(http.MethodDelete, "/youtube/youtube/v3/videos?id="+id, token, "", "")
	}
	c := connectors()[4]
	token := b.redeem(c, b.consent(c), nil).text("access_token")
	tests := []struct {
		name, token, id string
		want            int
	}{
		{"with the permission to upload", demo(t, "youtube").AccessToken, id, 403},
		{"another one", token, "AAAAAAAAAAA", 404},
		{"with the permission to manage", token, id, 204},
		{"again", token, id, 404},
	}
	for _, tt := range tests {
		if r := remove(tt.token, tt.id); r.status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, r.status, r.body, tt.want)
		}
	}
	if r := b.videoOnYouTube(id); len(r.list("items")) != 0 {
		t.Errorf("it is shown: %s", r.body)
	}
}
