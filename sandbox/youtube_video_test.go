// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const youtubeItems = "/youtube/youtube/v3/playlistItems?part=snippet,contentDetails,status&playlistId=UUHeraldDemo000000000001"

func TestYouTubeVideo(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	id := b.uploadOnYouTube(`{"snippet":{"title":"Ünïcode","description":"See https://example.com"},`+
		`"status":{"privacyStatus":"unlisted"}}`, film)
	want := map[string]any{
		"uploadStatus": "uploaded", "privacyStatus": "unlisted", "license": "youtube", "embeddable": true, "publicStatsViewable": true,
		"madeForKids": false,
	}
	r := b.videoOnYouTube(id)
	if diff := cmp.Diff(any(want), r.at("items", "0", "status")); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	if got := r.text("items", "0", "processingDetails", "processingStatus"); got != "processing" {
		t.Errorf("at first: %s", got)
	}
	snippet := map[string]any{
		"publishedAt": "2026-12-01T09:00:00Z", "channelId": demo(t, "youtube").ID, "channelTitle": "Herald Demo", "title": "Ünïcode",
		"description": "See https://example.com", "categoryId": "22", "liveBroadcastContent": "none",
		"localized": map[string]any{"title": "Ünïcode", "description": "See https://example.com"}, "thumbnails": map[string]any{},
	}
	if diff := cmp.Diff(any(snippet), r.at("items", "0", "snippet")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.clock.Step(time.Second)
	r = b.videoOnYouTube(id)
	if r.text("items", "0", "status", "uploadStatus") != "processed" || r.text("items", "0", "processingDetails", "processingStatus") != "succeeded" {
		t.Errorf("then: %s", r.body)
	}
	other := b.control(http.MethodPut, "/accounts/youtube/UC2", "", http.StatusCreated).text("data", "access_token")
	hidden := b.uploadOnYouTube(strings.Replace(plainVideo, "public", "private", 1), film)
	if r := b.call(http.MethodGet, youtubeVideos+id+","+hidden, other, "", ""); len(r.list("items")) != 1 || strings.Contains(r.body, "processingDetails") {
		t.Errorf("to another channel: %s", r.body)
	}
	if r := b.read("youtube", "/youtube/youtube/v3/videos?part=status"); !isYouTubeError(r, 400, "missingRequiredParameter") {
		t.Errorf("no id: %s", r.body)
	}
	if r := b.read("youtube", "/youtube/youtube/v3/videos?part=state&id="+id); !isYouTubeError(r, 400, "unknownPart") {
		t.Errorf("an unknown part: %s", r.body)
	}
	if r := b.videoOnYouTube("nothing"); r.status != http.StatusOK || len(r.list("items")) != 0 {
		t.Errorf("an unknown id: %d %s", r.status, r.body)
	}
}

func TestYouTubePrivateChannel(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	b.control(http.MethodPut, "/accounts/youtube/"+demo(t, "youtube").ID, `{"private":true}`, http.StatusOK)
	id := b.uploadOnYouTube(plainVideo, film)
	if r := b.videoOnYouTube(id); r.text("items", "0", "status", "privacyStatus") != "private" {
		t.Errorf("the settings of the channel count: %s", r.body)
	}
}

func TestYouTubeFilesThatFail(t *testing.T) {
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	tests := []struct {
		name, setting          string
		file                   []byte
		upload, at, processing string
	}{
		{"invalidFile", "", []byte("no video"), "failed", "failureReason", "failed"},
		{"codec", "codec", film, "failed", "failureReason", "failed"},
		{"copyright", "copyright", film, "rejected", "rejectionReason", "terminated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			b.control(http.MethodPut, "/accounts/youtube/"+demo(t, "youtube").ID, `{"processing_ms":5000,"processing_error":"`+tt.setting+`"}`, http.StatusOK)
			id := b.uploadOnYouTube(plainVideo, tt.file)
			b.clock.Step(5*time.Second - time.Millisecond)
			if got := b.videoOnYouTube(id).text("items", "0", "status", "uploadStatus"); got != "uploaded" {
				t.Errorf("while it works: %s", got)
			}
			b.clock.Step(time.Millisecond)
			r := b.videoOnYouTube(id)
			status, _ := r.at("items", "0", "status").(map[string]any)
			if status["uploadStatus"] != tt.upload || status[tt.at] != tt.name || r.text("items", "0", "processingDetails", "processingStatus") != tt.processing {
				t.Errorf("then: %s", r.body)
			}
		})
	}
}

func TestYouTubeUploads(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	var ids []any
	for _, privacy := range []string{"public", "private", "unlisted"} {
		ids = append([]any{b.uploadOnYouTube(strings.Replace(plainVideo, "public", privacy, 1), film)}, ids...)
		b.clock.Step(time.Second)
	}
	listed := func(r reply) []any {
		out := []any{}
		for _, item := range r.list("items") {
			out = append(out, field([]any{item}, 0, "contentDetails", "videoId"))
		}
		return out
	}
	page := b.read("youtube", youtubeItems+"&maxResults=2")
	if diff := cmp.Diff(ids[:2], listed(page)); diff != "" {
		t.Errorf("the newest first, to the owner also what is private (-want +got):\n%s", diff)
	}
	if got := page.text("items", "1", "snippet", "publishedAt"); got != "2026-12-01T09:00:01Z" || page.text("items", "1", "snippet", "title") != "Release 1.4" {
		t.Errorf("published at %s: %s", got, page.body)
	}
	if diff := cmp.Diff(ids[2:], listed(b.read("youtube", youtubeItems+"&pageToken="+page.text("nextPageToken")))); diff != "" {
		t.Errorf("the next page (-want +got):\n%s", diff)
	}
	b.fault(`{"platform":"youtube","operation":"list","kind":"stale_list","delay_ms":1500}`)
	if diff := cmp.Diff(ids[1:], listed(b.read("youtube", youtubeItems))); diff != "" {
		t.Errorf("a list that lags (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{
		youtubeItems + "&maxResults=51": "invalidParameter", youtubeItems + "&pageToken=no.token": "invalidPageToken",
		strings.Split(youtubeItems, "&")[0]: "missingRequiredParameter", youtubeItems + "&order=date": "unexpectedParameter",
	} {
		if r := b.read("youtube", path); !isYouTubeError(r, 400, want) {
			t.Errorf("%s: %d %s, want %s", path, r.status, r.body, want)
		}
	}
	if r := b.read("youtube", youtubeItems+"0"); !isYouTubeError(r, 404, "playlistNotFound") {
		t.Errorf("an unknown playlist: %d %s", r.status, r.body)
	}
}

// TestYouTubeEarlyThumbnail sets a video's thumbnail during processing. It is not applied to a Short only.
func TestYouTubeEarlyThumbnail(t *testing.T) {
	for name, tt := range map[string]struct {
		width, height int
		plays         time.Duration
		applied       bool
	}{
		"upright":       {720, 1280, 3 * time.Minute, false},
		"square":        {720, 720, 5 * time.Second, false},
		"wide":          {1280, 720, 5 * time.Second, true},
		"upright, long": {720, 1280, 3*time.Minute + time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, "")
			id := b.uploadOnYouTube(plainVideo, movie("isom", tt.width, tt.height, tt.plays, 2000))
			r, err := b.tryTransfer(http.MethodPost, b.http.URL+"/youtube/upload/youtube/v3/thumbnails/set?uploadType=media&videoId="+id,
				bytes.NewReader(still(t, "jpeg", 1280, 720)), "Authorization: Bearer "+demo(t, "youtube").AccessToken, "Content-Type: image/jpeg")
			if err != nil || r.status != http.StatusOK {
				t.Fatalf("got %d %s, %v", r.status, r.body, err)
			}
			if got := field(b.posted("youtube"), 0, "detail", "thumbnail") != nil; got != tt.applied {
				t.Errorf("applied: %t, want %t", got, tt.applied)
			}
		})
	}
}

func TestYouTubeThumbnail(t *testing.T) {
	b := start(t, t.TempDir())
	id := b.uploadOnYouTube(plainVideo, movie("isom", 720, 1280, 5*time.Second, 2000))
	set := func(query, token, kind string, picture []byte) reply {
		r, err := b.tryTransfer(http.MethodPost, b.http.URL+"/youtube/upload/youtube/v3/thumbnails/set?uploadType=media"+query,
			bytes.NewReader(picture), "Authorization: Bearer "+token, "Content-Type: "+kind)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	mine := demo(t, "youtube").AccessToken
	other := b.control(http.MethodPut, "/accounts/youtube/UC2", "", http.StatusCreated).text("data", "access_token")
	jpeg, png := still(t, "jpeg", 1280, 720), still(t, "png", 1280, 720)
	large := append(bytes.Clone(jpeg), make([]byte, 2<<20)...)
	refusals := []struct {
		name, query, token, kind string
		picture                  []byte
		status                   int
		want                     string
	}{
		{"another channel's video", "&videoId=" + id, other, "image/jpeg", jpeg, 403, "forbidden"},
		{"no video", "", mine, "image/jpeg", jpeg, 400, "missingRequiredParameter"},
		{"unknown video", "&videoId=x", mine, "image/jpeg", jpeg, 404, "videoNotFound"},
		{"another format", "&videoId=" + id, mine, "image/gif", jpeg, 400, "imageFormatUnsupported"},
		{"another format than it says", "&videoId=" + id, mine, "image/jpeg", png, 400, "imageFormatUnsupported"},
		{"too large", "&videoId=" + id, mine, "image/jpeg", large, 400, "failedPrecondition"},
		{"nothing", "&videoId=" + id, mine, "image/jpeg", nil, 400, "mediaBodyRequired"},
		{"unknown parameter", "&videoId=" + id + "&size=1", mine, "image/jpeg", jpeg, 400, "unexpectedParameter"},
	}
	for _, tt := range refusals {
		if r := set(tt.query, tt.token, tt.kind, tt.picture); !isYouTubeError(r, tt.status, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, r.status, r.body, tt.status, tt.want)
		}
	}
	if r := set("&videoId="+id, mine, "image/jpeg", jpeg); r.status != http.StatusOK || field(b.posted("youtube"), 0, "detail", "thumbnail") != nil {
		t.Errorf("that of a Short is not applied before the processing has succeeded: %d %s", r.status, r.body)
	}
	b.clock.Step(time.Second)
	for _, picture := range [][]byte{png, jpeg} { // it can be replaced
		kind := http.DetectContentType(picture)
		r := set("&videoId="+id, mine, kind, picture)
		if r.status != http.StatusOK || r.text("items", "0", "default", "url") != b.http.URL+"/_media/"+sumOf(picture) {
			t.Errorf("%s: %d %s", kind, r.status, r.body)
		}
	}
	want := mediaOf("image/jpeg", jpeg)[0]
	if diff := cmp.Diff(want, field(b.posted("youtube"), 0, "detail", "thumbnail")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	c := &box{t: t, clock: b.clock}
	c.open(b.dir)
	if diff := cmp.Diff(want, field(c.posted("youtube"), 0, "detail", "thumbnail")); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if r := c.call(http.MethodGet, "/_media/"+sumOf(jpeg), "", "", ""); r.body != string(jpeg) {
		t.Errorf("the picture itself: %d, %d bytes", r.status, len(r.body))
	}
}
