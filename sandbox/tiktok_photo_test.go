// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// listOnTikTok requests the account's public posts.
func (b *box) listOnTikTok(body string) reply {
	b.t.Helper()
	return b.as("tiktok", http.MethodPost, "/tiktok/v2/video/list/?fields=id,create_time,title,video_description,share_url,cover_image_url", jsonUTF8, body)
}

// pulledByTikTok is onTikTok for files fetched by TikTok. It waits until TikTok has fetched them or given up.
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
	one, two := still(t, "jpeg", 1080, 1920), still(t, "jpeg", 640, 640)
	site := fileServer(t, map[string][]byte{"/1": one, "/2": two})
	begun := b.pulledByTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, `,"is_aigc":true`, site, "/1", "/2"))
	if begun.status != http.StatusOK || !strings.HasPrefix(begun.text("data", "publish_id"), "p_pub_url~v2") {
		t.Fatalf("%d %s", begun.status, begun.body)
	}
	if got := b.statusOnTikTok(begun).text("data", "status"); got != "PROCESSING_DOWNLOAD" {
		t.Errorf("at first: %s", got)
	}
	if got := b.listOnTikTok(`{"max_count":20}`).list("data", "videos"); len(got) != 0 {
		t.Errorf("listed before TikTok is done: %v", got)
	}
	posts := b.posted("tiktok")
	id, _ := field(posts, 0, "id").(string)
	b.clock.Step(time.Second)
	status := b.statusOnTikTok(begun)
	if status.text("data", "status") != "PUBLISH_COMPLETE" || strings.Contains(status.body, "available_post_id") || len(b.listOnTikTok(`{}`).list("data", "videos")) != 0 {
		t.Errorf("while it is moderated: %s", status.body)
	}
	b.clock.Step(3 * time.Second)
	status = b.statusOnTikTok(begun)
	if status.text("data", "status") != "PUBLISH_COMPLETE" || status.at("data", "downloaded_bytes") != float64(len(one)+len(two)) || !strings.Contains(status.body, "["+id+"]") {
		t.Errorf("then: %s", status.body)
	}
	got := []any{
		field(posts, 0, "title"), field(posts, 0, "text"), field(posts, 0, "media"), field(posts, 0, "detail", "is_aigc"),
		field(posts, 0, "detail", "auto_add_music"), field(posts, 0, "detail", "photo_cover_index"), field(posts, 0, "detail", "media_type"),
	}
	want := []any{"Spring", "Two shots #demo", mediaOf("image/jpeg", one, two), true, true, 0.0, "PHOTO"}
	if diff := cmp.Diff(want, got); diff != "" || len(posts) != 1 {
		t.Errorf("%d posts (-want +got):\n%s", len(posts), diff)
	}
	listed := map[string]any{
		"id": id, "create_time": 1796115600.0, "title": "Spring", "video_description": "Two shots #demo",
		"share_url": b.http.URL + "/tiktok/@herald_demo/photo/" + id, "cover_image_url": b.http.URL + "/_media/" + sumOf(one),
	}
	if diff := cmp.Diff([]any{listed}, b.listOnTikTok(`{"max_count":20}`).list("data", "videos")); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if r := b.call(http.MethodGet, "/tiktok/@herald_demo/video/"+id, "", "", ""); r.status != http.StatusFound {
		t.Errorf("the address of a video: %d, want to be sent to that of photos", r.status)
	}
	if n := b.callsOn("tiktok", "publish"); n != 1 {
		t.Errorf("%d calls of publish, want the init", n)
	}
}

// TestTikTokPhotosLater names photos at a server that does not respond yet: the call returns, no post exists, and the download resumes
// after a restart.
func TestTikTokPhotosLater(t *testing.T) {
	file := still(t, "jpeg", 640, 640)
	release := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
			_, _ = w.Write(file) // the client may have disconnected
		case <-r.Context().Done():
		}
	}))
	defer site.Close()
	b := start(t, t.TempDir())
	begun := b.onTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", site.URL, "/a"))
	b.clock.Step(time.Minute)
	if r := b.statusOnTikTok(begun); r.text("data", "status") != "PROCESSING_DOWNLOAD" || r.at("data", "downloaded_bytes") != 0.0 || len(b.posted("tiktok")) != 0 {
		t.Errorf("while it is fetched: %s and %v", r.body, b.posted("tiktok"))
	}
	restarted := &box{t: t, clock: b.clock}
	restarted.open(crashCopy(t, b.dir))
	close(release)
	for name, box := range map[string]*box{"the one that was asked": b, "the one that was started after a kill": restarted} {
		box.server.AwaitFetched()
		box.clock.Step(time.Second)
		got := []any{box.statusOnTikTok(begun).text("data", "status"), len(box.posted("tiktok"))}
		if diff := cmp.Diff([]any{"PUBLISH_COMPLETE", 1}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTikTokCloses closes a sandbox during a download without waiting for a missing response.
func TestTikTokCloses(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer site.Close()
	b := start(t, "")
	if r := b.onTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", site.URL, "/a")); r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if err := b.server.Close(); err != nil {
		t.Error(err)
	}
}

func TestTikTokPhotoInit(t *testing.T) {
	b := start(t, "")
	site := fileServer(t, map[string][]byte{"/a": still(t, "jpeg", 640, 640)})
	direct := func(info string) string { return photosOn("DIRECT_POST", info, "", site, "/a") }
	many := strings.Split(strings.Repeat("/a ", 36), " ")
	tests := []struct {
		name, reason, body string
		code               string
	}{
		{"plain", "only the privacy level is required", direct(`"privacy_level":"SELF_ONLY"`), "ok"},
		{"no privacy level", "it is required to post", direct(`"title":"a"`), "invalid_params"},
		{"another account's", "a public account has no followers only", direct(`"privacy_level":"FOLLOWER_OF_CREATOR"`), "privacy_level_option_mismatch"},
		{"no duets", "photos have none", direct(`"privacy_level":"SELF_ONLY","disable_duet":true`), "invalid_params"},
		{"AI label within", "it stands at the top", direct(`"privacy_level":"SELF_ONLY","is_aigc":true`), "invalid_params"},
		{"title", "90 units fit", direct(`"privacy_level":"SELF_ONLY","title":"` + strings.Repeat("é", 90) + `"`), "ok"},
		{"title too long", "and not one more", direct(`"privacy_level":"SELF_ONLY","title":"` + strings.Repeat("é", 91) + `"`), "invalid_params"},
		{"description too long", "4000 units", direct(`"privacy_level":"SELF_ONLY","description":"` + strings.Repeat("a", 4001) + `"`), "invalid_params"},
		{"draft", "title and description go along", photosOn("MEDIA_UPLOAD", `"title":"a","description":"b"`, "", site, "/a"), "ok"},
		{"draft with a privacy level", "the owner chooses it in the app", photosOn("MEDIA_UPLOAD", `"privacy_level":"SELF_ONLY"`, "", site, "/a"), "invalid_params"},
		{"draft with music", "likewise", photosOn("MEDIA_UPLOAD", `"auto_add_music":false`, "", site, "/a"), "invalid_params"},
		{"unknown mode", "an enumeration", photosOn("INBOX", ``, "", site, "/a"), "invalid_params"},
		{"unknown type", "photos only", strings.Replace(direct(`"privacy_level":"SELF_ONLY"`), `"PHOTO"`, `"VIDEO"`, 1), "invalid_params"},
		{"bytes", "photos are always fetched", strings.Replace(direct(`"privacy_level":"SELF_ONLY"`), "PULL_FROM_URL", "FILE_UPLOAD", 1), "invalid_params"},
		{"no photo", "one at least", photosOn("DIRECT_POST", `"privacy_level":"SELF_ONLY"`, "", site), "invalid_params"},
		{"too many", "35 at most", photosOn("DIRECT_POST", `"privacy_level":"SELF_ONLY"`, "", site, many[:36]...), "invalid_params"},
		{"cover beyond the last", "counted from 0", strings.Replace(direct(`"privacy_level":"SELF_ONLY"`), `_index":0`, `_index":1`, 1), "invalid_params"},
		{"plain HTTP", "HTTPS only, save on this machine", photosOn("DIRECT_POST", `"privacy_level":"SELF_ONLY"`, "", "http://media.example", "/a"), "invalid_params"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(b.posted("tiktok"))
			r := b.pulledByTikTok("content/init/", tt.body)
			if acted := len(b.posted("tiktok")) > before; r.text("error", "code") != tt.code || acted != (tt.code == "ok") {
				t.Errorf("%s: %d %s, posted %v, want %s", tt.reason, r.status, r.body, acted, tt.code)
			}
		})
	}
}

func TestTikTokPhotosThatFail(t *testing.T) {
	files := map[string][]byte{
		"/a": still(t, "jpeg", 640, 640), "/png": still(t, "png", 640, 640), "/wide": still(t, "jpeg", 1922, 640),
		"/both": still(t, "jpeg", 1082, 1082), "/huge": make([]byte, 20_000_001),
	}
	tests := []struct{ path, reason, want string }{
		{"/png", "JPEG or WebP", "file_format_check_failed"},
		{"/wide", "up to 1080p", "picture_size_check_failed"},
		{"/both", "the short side counts as well", "picture_size_check_failed"},
		{"/huge", "20 MB", "photo_pull_failed"},
		{"/gone", "it must be there", "photo_pull_failed"},
		{"/moved", "no redirects", "photo_pull_failed"},
	}
	b := start(t, "")
	site := fileServer(t, files)
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			begun := b.pulledByTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", site, "/a", tt.path))
			b.clock.Step(time.Second)
			r := b.statusOnTikTok(begun)
			if r.text("data", "status") != "FAILED" || r.text("data", "fail_reason") != tt.want {
				t.Errorf("%s: %s after %s, want %s", tt.reason, r.body, begun.body, tt.want)
			}
		})
	}
	if got := b.posted("tiktok"); len(got) != 0 {
		t.Errorf("posted %v", got)
	}
}

func TestTikTokPulledVideo(t *testing.T) {
	b := start(t, "")
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	site := fileServer(t, map[string][]byte{"/a": film})
	source := func(path string) string {
		return `"source_info":{"source":"PULL_FROM_URL","video_url":"` + site + path + `"}`
	}
	b.fault(`{"platform":"tiktok","operation":"publish","kind":"drop_after"}`)
	if _, err := b.try(http.MethodPost, tiktokPublish+"video/init/", demo(t, "tiktok").AccessToken, jsonUTF8, `{`+directPost+`,`+source("/a")+`}`); err == nil {
		t.Fatal("want no answer")
	}
	b.server.AwaitFetched()
	b.clock.Step(4 * time.Second)
	videos := b.listOnTikTok(`{}`).list("data", "videos")
	if len(videos) != 1 || field(videos, 0, "title") != "Launch #demo" || field(b.posted("tiktok"), 0, "id") != field(videos, 0, "id") {
		t.Errorf("the answer is lost, the video is there: %v", videos)
	}
	draft := b.pulledByTikTok("inbox/video/init/", `{`+source("/a")+`}`)
	moved := b.pulledByTikTok("video/init/", `{`+directPost+`,`+source("/moved")+`}`)
	b.clock.Step(time.Second)
	if r := b.statusOnTikTok(draft); r.text("data", "status") != "SEND_TO_USER_INBOX" {
		t.Errorf("a draft: %s", r.body)
	}
	if r := b.statusOnTikTok(moved); r.text("data", "fail_reason") != "video_pull_failed" {
		t.Errorf("a redirect: %s", r.body)
	}
	if got := field(b.posted("tiktok"), 1, "draft"); got != true {
		t.Errorf("draft %v", got)
	}
}

func TestTikTokStatusRefusals(t *testing.T) {
	b := start(t, "")
	begun := b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(2000, 2000, 1)+`}`)
	body := `{"publish_id":"` + begun.text("data", "publish_id") + `"}`
	other := b.control(http.MethodPut, "/accounts/tiktok/2", "", http.StatusCreated).text("data", "access_token")
	for code, r := range map[string]reply{
		"invalid_publish_id": b.onTikTok("status/fetch/", `{"publish_id":"v"}`), "invalid_params": b.onTikTok("status/fetch/", `{}`),
		"token_not_authorized_for_specified_publish_id": b.call(http.MethodPost, tiktokPublish+"status/fetch/", other, jsonUTF8, body),
	} {
		if !isTikTokError(r, 400, code) {
			t.Errorf("%d %s, want %s", r.status, r.body, code)
		}
	}
}

func TestTikTokVideoList(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/tiktok/"+demo(t, "tiktok").ID, `{"listing_lag_ms":0}`, http.StatusOK)
	site := fileServer(t, map[string][]byte{"/a": still(t, "jpeg", 640, 640)})
	for _, privacy := range []string{"PUBLIC_TO_EVERYONE", "SELF_ONLY", "PUBLIC_TO_EVERYONE", "PUBLIC_TO_EVERYONE"} {
		b.pulledByTikTok("content/init/", photosOn("DIRECT_POST", `"privacy_level":"`+privacy+`"`, "", site, "/a"))
		b.clock.Step(time.Second)
	}
	page := b.listOnTikTok(`{"max_count":2}`)
	if len(page.list("data", "videos")) != 2 || page.at("data", "has_more") != true {
		t.Errorf("the newest two that are public: %s", page.body)
	}
	b.fault(`{"platform":"tiktok","operation":"list","kind":"stale_list","delay_ms":1500}`)
	if got := b.listOnTikTok(`{}`).list("data", "videos"); len(got) != 2 {
		t.Errorf("a list that lags: %v", got)
	}
	b.control(http.MethodPut, "/accounts/tiktok/"+demo(t, "tiktok").ID, `{"listing_lag_ms":3500}`, http.StatusOK)
	if got := b.listOnTikTok(`{}`).list("data", "videos"); len(got) != 1 {
		t.Errorf("an account whose list lags: %v", got)
	}
	for _, body := range []string{`{"max_count":21}`, `{"max_count":0}`, `{"count":2}`, ``} {
		if r := b.listOnTikTok(body); !isTikTokError(r, 400, "invalid_params") {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := b.as("tiktok", http.MethodPost, "/tiktok/v2/video/list/?fields=id,likes", jsonUTF8, `{}`); !isTikTokError(r, 400, "invalid_params") {
		t.Errorf("an unknown field: %d %s", r.status, r.body)
	}
}

func TestTikTokFetchesByPlainHTTPWhereItIsAllowed(t *testing.T) {
	b := &box{t: t, clock: newClock(), plain: []string{"store.trial.svc"}}
	b.open("")
	for host, want := range map[string]string{
		"store.trial.svc:9000":       "ok",
		"other.trial.svc:9000":       "invalid_params",
		"store.trial.svc.evil.test":  "invalid_params",
		"x.store.trial.svc":          "invalid_params",
		"u:p@store.trial.svc:9000":   "invalid_params",
		"store.trial.svc:9000@evil/": "invalid_params",
	} {
		got := b.onTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", "http://"+host, "/1"))
		if code := got.text("error", "code"); code != want {
			t.Errorf("from %s: %s, want %s", host, code, want)
		}
	}
}
