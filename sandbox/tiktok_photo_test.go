// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// listOnTikTok requests the account's public posts.
func (b *box) listOnTikTok(body string) reply {
	b.t.Helper()
	const fields = "id,create_time,title,video_description,share_url,cover_image_url"
	return b.as("tiktok", http.MethodPost, "/tiktok/v2/video/list/?fields="+fields, jsonUTF8, body)
}

// pulledByTikTok is like onTikTok, but for files fetched by TikTok. It waits until TikTok has fetched them or failed.
func (b *box) pulledByTikTok(path, body string) reply {
	b.t.Helper()
	r := b.onTikTok(path, body)
	b.server.AwaitFetched()
	return r
}

// photosOn returns the body of a photo post.
func photosOn(mode, info, more, site string, paths ...string) string {
	addresses := []string{}
	for _, path := range paths {
		addresses = append(addresses, `"`+site+path+`"`)
	}
	return `{"media_type":"PHOTO","post_mode":"` + mode + `","post_info":{` + info + `}` + more +
		`,"source_info":{"source":"PULL_FROM_URL","photo_images":[` + strings.Join(addresses, ",") + `],"photo_cover_index":0}}`
}

const publicPhotos = `"title":"Spring","description":"Two shots #demo","privacy_level":"PUBLIC_TO_EVERYONE","auto_add_music":true`

func TestTikTokPhotos(t *testing.T) {
	b := start(t, "")
	one, two := jpegOf(t, 1080, 1920), jpegOf(t, 640, 640)
	site := fileServer(t, map[string][]byte{"/1": one, "/2": two})
	r := b.pulledByTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, `,"is_aigc":true`, site, "/1", "/2"))
	r.want(t, "the init", 200, "data.publish_id~p_pub_url~v2")
	b.statusOnTikTok(r).want(t, "at first", "data.status=PROCESSING_DOWNLOAD")
	b.listOnTikTok(`{"max_count":20}`).want(t, "the list during processing", "data.videos#0")
	posts := b.posted("tiktok")
	id, _ := field(posts, 0, "id").(string)
	b.clock.Step(time.Second)
	b.statusOnTikTok(r).want(t, "during moderation", "data.status=PUBLISH_COMPLETE", "!available_post_id")
	b.listOnTikTok(`{}`).want(t, "the list during moderation", "data.videos#0")
	b.clock.Step(3 * time.Second)
	b.statusOnTikTok(r).want(t, "after moderation", "data.status=PUBLISH_COMPLETE", "~["+id+"]",
		fmt.Sprint("data.downloaded_bytes=", len(one)+len(two)))
	same(t, "the post in the control API", []any{"Spring", "Two shots #demo", mediaOf("image/jpeg", one, two), true, true, 0.0, "PHOTO"}, []any{
		field(posts, 0, "title"), field(posts, 0, "text"), field(posts, 0, "media"), field(posts, 0, "detail", "is_aigc"),
		field(posts, 0, "detail", "auto_add_music"), field(posts, 0, "detail", "photo_cover_index"), field(posts, 0, "detail", "media_type"),
	})
	same(t, "the list", []any{map[string]any{
		"id": id, "create_time": 1796115600.0, "title": "Spring", "video_description": "Two shots #demo",
		"share_url": b.http.URL + "/tiktok/@herald_demo/photo/" + id, "cover_image_url": b.http.URL + "/_media/" + sumOf(one),
	}}, b.listOnTikTok(`{"max_count":20}`).list("data", "videos"))
	b.page("/tiktok/@herald_demo/video/"+id).want(t, "a video's address redirects to that of the photos", 302)
	same(t, "calls of publish", 1, b.callsOn("tiktok", "publish"))
}

// TestTikTokPhotosLater names photos at a server that does not respond yet: the call returns, no post exists, and the download
// resumes after a restart.
func TestTikTokPhotosLater(t *testing.T) {
	s := newShelf(t, map[string][]byte{"a": jpegOf(t, 640, 640)})
	s.hold = make(chan struct{})
	b := start(t, t.TempDir())
	r := b.onTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", s.url, "/a"))
	b.clock.Step(time.Minute)
	b.statusOnTikTok(r).want(t, "during the download", "data.status=PROCESSING_DOWNLOAD", "data.downloaded_bytes=0")
	same(t, "posts during the download", 0, len(b.posted("tiktok")))
	restarted := &box{t: t, clock: b.clock}
	restarted.open(crashCopy(t, b.dir))
	close(s.hold)
	for why, box := range map[string]*box{"the sandbox of the request": b, "the sandbox after a kill": restarted} {
		box.server.AwaitFetched()
		box.clock.Step(time.Second)
		box.statusOnTikTok(r).want(t, why, "data.status=PUBLISH_COMPLETE")
		same(t, "posts of "+why, 1, len(box.posted("tiktok")))
	}
}

// TestTikTokCloses closes a sandbox during a download without waiting for a missing response.
func TestTikTokCloses(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer site.Close()
	b := start(t, "")
	b.onTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", site.URL, "/a")).want(t, "the init", 200)
	if err := b.server.Close(); err != nil {
		t.Error(err)
	}
}

func TestTikTokPhotoInit(t *testing.T) {
	b := start(t, "")
	site := fileServer(t, map[string][]byte{"/a": jpegOf(t, 640, 640)})
	direct := func(info string) string { return photosOn("DIRECT_POST", info, "", site, "/a") }
	own := func(info string) string { return direct(`"privacy_level":"SELF_ONLY"` + info) }
	swap := func(old, replacement string) string { return strings.Replace(own(""), old, replacement, 1) }
	mode := func(mode, info string) string { return photosOn(mode, info, "", site, "/a") }
	few := func(n int) string {
		return photosOn("DIRECT_POST", `"privacy_level":"SELF_ONLY"`, "", site, strings.Fields(strings.Repeat("/a ", n))...)
	}
	ok, invalid, mismatch := tiktokError(200, "ok"), tiktokError(400, "invalid_params"), tiktokError(403, "privacy_level_option_mismatch")
	send := func(body string) reply {
		before := len(b.posted("tiktok"))
		r := b.pulledByTikTok("content/init/", body)
		same(t, "a request without an error publishes", r.status == 200, len(b.posted("tiktok")) > before)
		return r
	}
	b.each(t, send, []row{
		{"only the privacy level is required", own(""), ok},
		{"the privacy level is required", direct(`"title":"a"`), invalid},
		{"a public account has no followers level", direct(`"privacy_level":"FOLLOWER_OF_CREATOR"`), mismatch},
		{"photos have no duets", own(`,"disable_duet":true`), invalid},
		{"the AI label is a top-level field", own(`,"is_aigc":true`), invalid},
		{"a title of 90 units fits", own(`,"title":"` + strings.Repeat("é", 90) + `"`), ok},
		{"a title of 91 units is too long", own(`,"title":"` + strings.Repeat("é", 91) + `"`), invalid},
		{"a description has at most 4000 units", own(`,"description":"` + strings.Repeat("a", 4001) + `"`), invalid},
		{"a draft has a title and a description", mode("MEDIA_UPLOAD", `"title":"a","description":"b"`), ok},
		{"the user chooses a draft's privacy level", mode("MEDIA_UPLOAD", `"privacy_level":"SELF_ONLY"`), invalid},
		{"the user chooses a draft's music", mode("MEDIA_UPLOAD", `"auto_add_music":false`), invalid},
		{"modes are an enumeration", mode("INBOX", ``), invalid},
		{"photos are the only type", swap(`"PHOTO"`, `"VIDEO"`), invalid},
		{"photos are always fetched", swap("PULL_FROM_URL", "FILE_UPLOAD"), invalid},
		{"a photo is required", few(0), invalid},
		{"36 photos are too many", few(36), invalid},
		{"the cover is one of the photos", swap(`_index":0`, `_index":1`), invalid},
		{"addresses use HTTPS, except on this machine", swap(site, "http://media.example"), invalid},
	})
}

func TestTikTokPhotosThatFail(t *testing.T) {
	b := start(t, "")
	site := fileServer(t, map[string][]byte{
		"/a": jpegOf(t, 640, 640), "/png": pngOf(t, 640, 640), "/wide": jpegOf(t, 1922, 640),
		"/both": jpegOf(t, 1082, 1082), "/huge": make([]byte, 20_000_001),
	})
	send := func(path string) reply {
		r := b.pulledByTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", site, "/a", path))
		b.clock.Step(time.Second)
		return b.statusOnTikTok(r).want(t, path, "data.status=FAILED")
	}
	b.each(t, send, []row{
		{"a PNG: JPEG and WebP are allowed", "/png", is{"data.fail_reason=file_format_check_failed"}},
		{"more than 1920 pixels", "/wide", is{"data.fail_reason=picture_size_check_failed"}},
		{"more than 1080 pixels on the short side", "/both", is{"data.fail_reason=picture_size_check_failed"}},
		{"more than 20 MB", "/huge", is{"data.fail_reason=photo_pull_failed"}},
		{"an unknown photo", "/gone", is{"data.fail_reason=photo_pull_failed"}},
		{"redirects are not followed", "/moved", is{"data.fail_reason=photo_pull_failed"}},
	})
	same(t, "posts", 0, len(b.posted("tiktok")))
}

func TestTikTokPulledVideo(t *testing.T) {
	b := start(t, "")
	site := fileServer(t, map[string][]byte{"/a": shortFilm})
	source := func(path string) string {
		return `"source_info":{"source":"PULL_FROM_URL","video_url":"` + site + path + `"}`
	}
	b.fault(`{"platform":"tiktok","operation":"publish","kind":"drop_after"}`)
	body := `{` + directPost + `,` + source("/a") + `}`
	if _, err := b.try(http.MethodPost, tiktokPublish+"video/init/", "tiktok-access-demo", jsonUTF8, body); err == nil {
		t.Fatal("the connection should have been closed")
	}
	b.server.AwaitFetched()
	b.clock.Step(4 * time.Second)
	id, _ := field(b.posted("tiktok"), 0, "id").(string)
	b.listOnTikTok(`{}`).want(t, "the video is posted, though the response is lost",
		"data.videos#1", "data.videos.0.title=Launch #demo", "data.videos.0.id="+id)
	draft := b.pulledByTikTok("inbox/video/init/", `{`+source("/a")+`}`)
	moved := b.pulledByTikTok("video/init/", `{`+directPost+`,`+source("/moved")+`}`)
	b.clock.Step(time.Second)
	b.statusOnTikTok(draft).want(t, "a draft", "data.status=SEND_TO_USER_INBOX")
	b.statusOnTikTok(moved).want(t, "redirects are not followed", "data.fail_reason=video_pull_failed")
	same(t, "the draft in the control API", any(true), field(b.posted("tiktok"), 1, "draft"))
}

func TestTikTokStatusRefusals(t *testing.T) {
	b := start(t, "")
	r := b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(2000, 2000, 1)+`}`)
	b.onTikTok("status/fetch/", `{"publish_id":"v"}`).want(t, "an unknown ID", tiktokError(400, "invalid_publish_id")...)
	b.onTikTok("status/fetch/", `{}`).want(t, "an ID is required", tiktokError(400, "invalid_params")...)
	body, other := `{"publish_id":"`+r.text("data", "publish_id")+`"}`, b.account("tiktok", "2", "")
	b.call(http.MethodPost, tiktokPublish+"status/fetch/", other, jsonUTF8, body).
		want(t, "another account's ID", tiktokError(400, "token_not_authorized_for_specified_publish_id")...)
}

func TestTikTokVideoList(t *testing.T) {
	b := start(t, "")
	b.set("tiktok", `{"listing_lag_ms":0}`)
	site := fileServer(t, map[string][]byte{"/a": jpegOf(t, 640, 640)})
	for _, privacy := range []string{"PUBLIC_TO_EVERYONE", "SELF_ONLY", "PUBLIC_TO_EVERYONE", "PUBLIC_TO_EVERYONE"} {
		b.pulledByTikTok("content/init/", photosOn("DIRECT_POST", `"privacy_level":"`+privacy+`"`, "", site, "/a"))
		b.clock.Step(time.Second)
	}
	b.listOnTikTok(`{"max_count":2}`).want(t, "the newest two public posts", "data.videos#2", "data.has_more=true")
	b.fault(`{"platform":"tiktok","operation":"list","kind":"stale_list","delay_ms":1500}`)
	b.listOnTikTok(`{}`).want(t, "a stale list", "data.videos#2")
	b.set("tiktok", `{"listing_lag_ms":3500}`)
	b.listOnTikTok(`{}`).want(t, "an account whose list lags", "data.videos#1")
	for _, body := range []string{`{"max_count":21}`, `{"max_count":0}`, `{"count":2}`, ``} {
		b.listOnTikTok(body).want(t, "an invalid body "+body, tiktokError(400, "invalid_params")...)
	}
	b.as("tiktok", http.MethodPost, "/tiktok/v2/video/list/?fields=id,likes", jsonUTF8, `{}`).
		want(t, "an unknown field", tiktokError(400, "invalid_params")...)
}

func TestTikTokFetchesOverPlainHTTPFromAllowedHosts(t *testing.T) {
	b := &box{t: t, clock: newClock(), plain: []string{"store.trial.svc"}}
	b.open("")
	for host, want := range map[string]string{
		"store.trial.svc:9000": "ok", "other.trial.svc:9000": "invalid_params", "store.trial.svc.evil.test": "invalid_params",
		"x.store.trial.svc": "invalid_params", "u:p@store.trial.svc:9000": "invalid_params", "store.trial.svc:9000@evil/": "invalid_params",
	} {
		b.onTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", "http://"+host, "/1")).want(t, "from "+host, "error.code="+want)
	}
}

// TestTikTokIgnoresUnknownFields sends requests that TikTok accepts. A strict sandbox rejects them, so that tests
// notice misspelled names.
func TestTikTokIgnoresUnknownFields(t *testing.T) {
	lenient, strict := startLenient(t), start(t, "")
	for _, tt := range []struct{ why, method, path, body string }{
		{
			"OpenPost sends post_mode with videos too", "POST", tiktokPublish + "video/init/",
			"{" + directPost + "," + fromFile(100, 100, 1) + `,"post_mode":"DIRECT_POST"}`,
		},
		{"OpenPost sends post_info with drafts", "POST", tiktokPublish + "inbox/video/init/", "{" + fromFile(100, 100, 1) + `,"post_info":{"title":"a"}}`},
		{"ignored fields in an otherwise empty body", "POST", tiktokPublish + "creator_info/query/", `{"a":1}`},
		{"an address may have parameters", "GET", "/tiktok/v2/user/info/?fields=open_id&lang=en", ""},
	} {
		lenient.as("tiktok", tt.method, tt.path, jsonUTF8, tt.body).want(t, tt.why, tiktokError(200, "ok")...)
		strict.as("tiktok", tt.method, tt.path, jsonUTF8, tt.body).want(t, tt.why, tiktokError(400, "invalid_params")...)
	}
}

// TestTikTokQueriesPostsByID queries posts by ID. Only the account's public posts are returned, with truncated
// captions.
func TestTikTokQueriesPostsByID(t *testing.T) {
	b := start(t, "")
	b.set("tiktok", `{"processing_ms":0,"listing_lag_ms":0}`)
	long := strings.Repeat("a", 149)
	for _, tt := range []struct{ why, caption, want string }{
		{"150 characters are returned", long + "a", long + "a"},
		{"longer captions are truncated", long + "aa", long + "a"},
		{"half an emoji is omitted", long + "🎉", long},
	} {
		info := strings.Replace("{"+directPost+",", "Launch #demo", tt.caption, 1)
		b.uploadOnTikTok(b.onTikTok("video/init/", info+fromFile(len(shortFilm), len(shortFilm), 1)+"}"), shortFilm)
		b.clock.Step(time.Second)
		b.listOnTikTok(`{"max_count":1}`).want(t, tt.why, "data.videos.0.title="+tt.want, "data.videos.0.video_description="+tt.want)
	}
	id := b.listOnTikTok("{}").text("data", "videos", "0", "id")
	const path = "/tiktok/v2/video/query/?fields=id,title"
	ask := func(path, body string) reply { return b.as("tiktok", http.MethodPost, path, jsonUTF8, body) }
	ask(path, `{"filters":{"video_ids":["`+id+`","7"]}}`).want(t, "one of two", 200, "data.videos#1", "data.videos.0.id="+id)
	ask(path, `{"filters":{"video_ids":["7"]}}`).want(t, "an unknown ID is not an error", 200, "data.videos#0")
	ask(path, `{}`).want(t, "IDs are required", tiktokError(400, "invalid_params")...)
	ask(strings.Split(path, "?")[0], `{"filters":{"video_ids":["7"]}}`).want(t, "fields are required", tiktokError(400, "invalid_params")...)
}
