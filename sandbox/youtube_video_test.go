// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	youtubeItems = "/youtube/youtube/v3/playlistItems?part=snippet,contentDetails,status&playlistId=UUHeraldDemo000000000001"
	thumbnails   = "/youtube/upload/youtube/v3/thumbnails/set?uploadType=media"
)

func TestYouTubeVideo(t *testing.T) {
	b := start(t, "")
	id := b.uploadOnYouTube(`{"snippet":{"title":"Ünïcode","description":"See https://example.com"},`+
		`"status":{"privacyStatus":"unlisted"}}`, shortFilm)
	r := b.videoOnYouTube(id).want(t, "at first", "items.0.processingDetails.processingStatus=processing")
	same(t, "the status", any(map[string]any{
		"uploadStatus": "uploaded", "privacyStatus": "unlisted", "license": "youtube", "embeddable": true, "publicStatsViewable": true,
		"madeForKids": false,
	}), r.at("items", "0", "status"))
	same(t, "the snippet", any(map[string]any{
		"publishedAt": "2026-12-01T09:00:00Z", "channelId": channelID, "channelTitle": "Herald Demo", "title": "Ünïcode",
		"description": "See https://example.com", "categoryId": "22", "liveBroadcastContent": "none",
		"localized": map[string]any{"title": "Ünïcode", "description": "See https://example.com"}, "thumbnails": map[string]any{},
	}), r.at("items", "0", "snippet"))
	b.clock.Step(time.Second)
	b.videoOnYouTube(id).
		want(t, "after processing", "items.0.status.uploadStatus=processed", "items.0.processingDetails.processingStatus=succeeded")
	other := b.account("youtube", "UC2", "")
	hidden := b.uploadOnYouTube(strings.Replace(plainVideo, "public", "private", 1), shortFilm)
	b.call(http.MethodGet, youtubeVideos+id+","+hidden, other, "", "").want(t, "to another channel", "items#1", "!processingDetails")
	b.read("youtube", "/youtube/youtube/v3/videos?part=status").want(t, "an ID is required", youtubeError(400, "missingRequiredParameter")...)
	b.read("youtube", "/youtube/youtube/v3/videos?part=state&id="+id).want(t, "an unknown part", youtubeError(400, "unknownPart")...)
	b.videoOnYouTube("nothing").want(t, "an unknown ID", 200, "items#0")
	b.set("youtube", `{"private":true}`)
	b.videoOnYouTube(b.uploadOnYouTube(plainVideo, shortFilm)).
		want(t, "a private channel's videos are private", "items.0.status.privacyStatus=private")
}

func TestYouTubeInvalidFiles(t *testing.T) {
	for _, tt := range []struct {
		why, setting string
		file         []byte
		want         is
	}{
		{"a text is not a video", "", []byte("no video"), is{"items.0.status.uploadStatus=failed", "items.0.status.failureReason=invalidFile"}},
		{"a failure that the test requests", "codec", shortFilm, is{"items.0.status.uploadStatus=failed", "items.0.status.failureReason=codec"}},
		{
			"a rejection that the test requests", "copyright", shortFilm,
			is{
				"items.0.status.uploadStatus=rejected", "items.0.status.rejectionReason=copyright",
				"items.0.processingDetails.processingStatus=terminated",
			},
		},
	} {
		b := start(t, "")
		b.set("youtube", `{"processing_ms":5000,"processing_error":"`+tt.setting+`"}`)
		id := b.uploadOnYouTube(plainVideo, tt.file)
		b.clock.Step(5*time.Second - time.Millisecond)
		b.videoOnYouTube(id).want(t, tt.why+": during processing", "items.0.status.uploadStatus=uploaded")
		b.clock.Step(time.Millisecond)
		r := b.videoOnYouTube(id).want(t, tt.why, tt.want...)
		if tt.setting != "copyright" {
			r.want(t, tt.why, "items.0.processingDetails.processingStatus=failed")
		}
	}
}

func TestYouTubeUploads(t *testing.T) {
	b := start(t, "")
	var ids []string
	for _, privacy := range []string{"public", "private", "unlisted"} {
		ids = append([]string{b.uploadOnYouTube(strings.Replace(plainVideo, "public", privacy, 1), shortFilm)}, ids...)
		b.clock.Step(time.Second)
	}
	list := func(query string) []string {
		return b.read("youtube", youtubeItems+query).each("items", "contentDetails", "videoId")
	}
	page := b.read("youtube", youtubeItems+"&maxResults=2")
	same(t, "the newest videos, to the owner also private ones", ids[:2], list("&maxResults=2"))
	page.want(t, "an item", "items.1.snippet.publishedAt=2026-12-01T09:00:01Z", "items.1.snippet.title=Release 1.4")
	same(t, "the next page", ids[2:], list("&pageToken="+page.text("nextPageToken")))
	b.fault(`{"platform":"youtube","operation":"list","kind":"stale_list","delay_ms":1500}`)
	same(t, "a stale list", ids[1:], list(""))
	b.each(t, func(path string) reply { return b.read("youtube", path) }, []row{
		{"more than 50 results", youtubeItems + "&maxResults=51", youtubeError(400, "invalidParameter")},
		{"an invalid page token", youtubeItems + "&pageToken=no.token", youtubeError(400, "invalidPageToken")},
		{"a playlist is required", strings.Split(youtubeItems, "&")[0], youtubeError(400, "missingRequiredParameter")},
		{"an unknown parameter", youtubeItems + "&order=date", youtubeError(400, "unexpectedParameter")},
		{"an unknown playlist", youtubeItems + "0", youtubeError(404, "playlistNotFound")},
	})
}

// TestYouTubeEarlyThumbnail sets a video's thumbnail during processing. The only kind of video that it is not applied
// to is a Short.
func TestYouTubeEarlyThumbnail(t *testing.T) {
	for why, tt := range map[string]struct {
		width, height int
		plays         time.Duration
		applied       bool
	}{
		"an upright video of three minutes": {720, 1280, 3 * time.Minute, false},
		"a square video":                    {720, 720, 5 * time.Second, false},
		"a wide video":                      {1280, 720, 5 * time.Second, true},
		"a longer upright video":            {720, 1280, 3*time.Minute + time.Second, true},
	} {
		b := start(t, "")
		id := b.uploadOnYouTube(plainVideo, movie("isom", tt.width, tt.height, tt.plays, 2000))
		b.atGoogle(http.MethodPost, thumbnails+"&videoId="+id, jpegOf(t, 1280, 720), "Content-Type: image/jpeg").want(t, why, 200)
		same(t, why+" is applied", tt.applied, field(b.posted("youtube"), 0, "detail", "thumbnail") != nil)
	}
}

func TestYouTubeThumbnail(t *testing.T) {
	b := start(t, t.TempDir())
	id := b.uploadOnYouTube(plainVideo, shortFilm)
	set := func(query, token, kind string, picture []byte) reply {
		headers := []string{"Authorization: Bearer " + token, "Content-Type: " + kind}
		return b.transfer(http.MethodPost, b.http.URL+thumbnails+query, bytes.NewReader(picture), headers...)
	}
	const mine = "youtube-access-demo"
	other, jpeg, png := b.account("youtube", "UC2", ""), jpegOf(t, 1280, 720), pngOf(t, 1280, 720)
	for _, tt := range []struct {
		why, query, token, kind string
		picture                 []byte
		want                    is
	}{
		{"another channel's video", "&videoId=" + id, other, "image/jpeg", jpeg, youtubeError(403, "forbidden")},
		{"a video is required", "", mine, "image/jpeg", jpeg, youtubeError(400, "missingRequiredParameter")},
		{"an unknown video", "&videoId=x", mine, "image/jpeg", jpeg, youtubeError(404, "videoNotFound")},
		{"an unsupported format", "&videoId=" + id, mine, "image/gif", jpeg, youtubeError(400, "imageFormatUnsupported")},
		{"another format than announced", "&videoId=" + id, mine, "image/jpeg", png, youtubeError(400, "imageFormatUnsupported")},
		{"more than 2 MB", "&videoId=" + id, mine, "image/jpeg", longer(jpeg, 2*mib+1), youtubeError(400, "failedPrecondition")},
		{"an image is required", "&videoId=" + id, mine, "image/jpeg", nil, youtubeError(400, "mediaBodyRequired")},
		{"an unknown parameter", "&videoId=" + id + "&size=1", mine, "image/jpeg", jpeg, youtubeError(400, "unexpectedParameter")},
	} {
		set(tt.query, tt.token, tt.kind, tt.picture).want(t, tt.why, tt.want...)
	}
	set("&videoId="+id, mine, "image/jpeg", jpeg).want(t, "a Short's thumbnail during processing", 200)
	same(t, "is not applied", nil, field(b.posted("youtube"), 0, "detail", "thumbnail"))
	b.clock.Step(time.Second)
	for _, picture := range [][]byte{png, jpeg} { // it can be replaced
		set("&videoId="+id, mine, http.DetectContentType(picture), picture).
			want(t, "a thumbnail", 200, "items.0.default.url="+b.http.URL+"/_media/"+sumOf(picture))
	}
	want := mediaOf("image/jpeg", jpeg)[0]
	same(t, "the thumbnail in the control API", want, field(b.posted("youtube"), 0, "detail", "thumbnail"))
	c := b.restart()
	same(t, "the thumbnail after a restart", want, field(c.posted("youtube"), 0, "detail", "thumbnail"))
	same(t, "its bytes", string(jpeg), c.page("/_media/"+sumOf(jpeg)).body)
}

func TestYouTubeThumbnailsOfOtherClients(t *testing.T) {
	b := start(t, "")
	path, thumbnail := "/youtube/upload/youtube/v3/thumbnails/set?videoId="+b.uploadOnYouTube(plainVideo, shortFilm), jpegOf(t, 40, 30)
	contentType, body := related(t, "", "image/jpeg", thumbnail)
	b.atGoogle(http.MethodPost, path+"&uploadType=multipart", body, "Content-Type: "+contentType).want(t, "google.golang.org/api sends parts", 200)
	b.atGoogle(http.MethodPost, path, thumbnail, "Content-Type: image/jpeg").want(t, "OpenPost sends no uploadType", 200)
}

// TestYouTubeVideosAreDeleted checks that deletion needs more than the upload scope.
func TestYouTubeVideosAreDeleted(t *testing.T) {
	b := start(t, "")
	id, manager := b.uploadOnYouTube(plainVideo, shortFilm), b.connected(connectors()[4])
	for _, tt := range []struct {
		why, token, id string
		status         int
	}{
		{"with the scope to upload", "youtube-access-demo", id, 403},
		{"an unknown video", manager, "AAAAAAAAAAA", 404},
		{"with the scope to manage", manager, id, 204},
		{"a repeated deletion", manager, id, 404},
	} {
		b.call(http.MethodDelete, "/youtube/youtube/v3/videos?id="+tt.id, tt.token, "", "").want(t, tt.why, tt.status)
	}
	b.videoOnYouTube(id).want(t, "the deleted video", "items#0")
}
