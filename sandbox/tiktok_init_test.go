// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	tiktokPublish = "/tiktok/v2/post/publish/"
	directPost    = `"post_info":{"title":"Launch #demo","privacy_level":"PUBLIC_TO_EVERYONE","brand_content_toggle":false,"brand_organic_toggle":false}`
)

// onTikTok calls the Content Posting API as the demo account.
func (b *box) onTikTok(path, body string) reply {
	b.t.Helper()
	return b.as("tiktok", http.MethodPost, tiktokPublish+path, jsonUTF8, body)
}

// fromFile returns an upload's source_info.
func fromFile(size, chunk, count int) string {
	return fmt.Sprintf(`"source_info":{"source":"FILE_UPLOAD","video_size":%d,"chunk_size":%d,"total_chunk_count":%d}`, size, chunk, count)
}

// isTikTokError reports whether a response is the given error in TikTok's envelope.
func isTikTokError(r reply, status int, code string) bool {
	return r.status == status && r.text("error", "code") == code && r.text("error", "log_id") != ""
}

func TestTikTokVideoInit(t *testing.T) {
	b := start(t, "")
	info := func(more string) string {
		return `{"post_info":{"privacy_level":"SELF_ONLY","brand_content_toggle":false,"brand_organic_toggle":false` + more + `},` + fromFile(100, 100, 1) + `}`
	}
	source := func(from string) string { return `{` + directPost + `,` + from + `}` }
	const mb = 1_000_000
	tests := []struct {
		name, reason, body string
		status             int
		code               string
	}{
		{"plain", "the documented minimum", info(""), 200, "ok"},
		{"all options", "documented options are taken", info(`,"title":"a","disable_comment":true,"disable_duet":true,"disable_stitch":true,"video_cover_timestamp_ms":1000,"is_aigc":true`), 200, "ok"},
		{"longest title", "2200 units of UTF-16 fit", info(`,"title":"` + strings.Repeat("🎉", 1100) + `"`), 200, "ok"},
		{"title too long", "and not one more", info(`,"title":"` + strings.Repeat("🎉", 1100) + `a"`), 400, "invalid_params"},
		{"misspelt field", "what is not known is refused", info(`,"disable_comments":true`), 400, "invalid_params"},
		{"music on a video", "only photos get some", info(`,"auto_add_music":true`), 400, "invalid_params"},
		{"brand that only its author sees", "not allowed", strings.Replace(info(""), `"brand_content_toggle":false`, `"brand_content_toggle":true`, 1), 400, "invalid_params"},
		{"no brand toggle", "listed as required", strings.Replace(info(""), `,"brand_organic_toggle":false`, ``, 1), 400, "invalid_params"},
		{"no privacy level", "there is no default", strings.Replace(info(""), `"privacy_level":"SELF_ONLY",`, ``, 1), 400, "invalid_params"},
		{"another account's privacy level", "a public account has no followers only", strings.Replace(info(""), "SELF_ONLY", "FOLLOWER_OF_CREATOR", 1), 403, "privacy_level_option_mismatch"},
		{"unknown privacy level", "an enumeration", strings.Replace(info(""), "SELF_ONLY", "PUBLIC", 1), 400, "invalid_params"},
		{"no source", "required", `{` + directPost + `}`, 400, "invalid_params"},
		{"no post_info", "required", `{` + fromFile(100, 100, 1) + `}`, 400, "invalid_params"},
		{"unknown source", "an enumeration", source(`"source_info":{"source":"FILE"}`), 400, "invalid_params"},
		{"upload with an address", "one or the other", source(`"source_info":{"source":"FILE_UPLOAD","video_url":"https://a.b/c","video_size":1,"chunk_size":1,"total_chunk_count":1}`), 400, "invalid_params"},
		{"pull with a size", "one or the other", source(`"source_info":{"source":"PULL_FROM_URL","video_url":"https://a.b/c","video_size":1}`), 400, "invalid_params"},
		{"pull over plain HTTP", "HTTPS only, save on this machine", source(`"source_info":{"source":"PULL_FROM_URL","video_url":"http://media.example/c"}`), 400, "invalid_params"},
		{"pull from nowhere", "an address", source(`"source_info":{"source":"PULL_FROM_URL","video_url":"c.mp4"}`), 400, "invalid_params"},
		{"documented example", "rounded down: the last chunk takes what remains", source(fromFile(50000123, 10*mb, 5)), 200, "ok"},
		{"rounded up", "the common mistake", source(fromFile(70*mb, 30*mb, 3)), 400, "invalid_params"},
		{"rounded down", "a last chunk that is larger", source(fromFile(70*mb, 30*mb, 2)), 200, "ok"},
		{"whole at 64 MB", "one chunk is allowed", source(fromFile(64*mb, 64*mb, 1)), 200, "ok"},
		{"whole above 64 MB", "it must be split", source(fromFile(70*mb, 70*mb, 1)), 400, "invalid_params"},
		{"chunks too small", "5 MB at least", source(fromFile(20*mb, 4*mb, 5)), 400, "invalid_params"},
		{"small file in parts", "less than 5 MB comes whole", source(fromFile(4*mb, 2*mb, 2)), 400, "invalid_params"},
		{"chunk above the file", "no chunk is larger than its file", source(fromFile(6*mb, 10*mb, 1)), 400, "invalid_params"},
		{"nothing", "no bytes, no video", source(fromFile(0, 0, 0)), 400, "invalid_params"},
		{"beyond 4 GB", "the largest video", source(fromFile(4001*mb, 60*mb, 66)), 400, "invalid_params"},
		{"no JSON", "a body", `{`, 400, "invalid_params"},
		{"two values", "one body", info("") + `{}`, 400, "invalid_params"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.onTikTok("video/init/", tt.body)
			if !isTikTokError(r, tt.status, tt.code) {
				t.Errorf("%s: %d %s, want %d %s", tt.reason, r.status, r.body, tt.status, tt.code)
			}
			id, address := r.text("data", "publish_id"), r.text("data", "upload_url")
			if tt.status == 200 && (!strings.HasPrefix(id, "v_pub_file~v2") || len(id) > 64 || !strings.HasPrefix(address, b.http.URL+"/") || len(address) > 256) {
				t.Errorf("publish id %q, address %q", id, address)
			}
		})
	}
	if got := b.posted("tiktok"); len(got) != 0 {
		t.Errorf("beginning an upload posts nothing: %v", got)
	}
}

func TestTikTokInitRefusals(t *testing.T) {
	b := start(t, "")
	body := `{` + directPost + `,` + fromFile(100, 100, 1) + `}`
	for name, r := range map[string]reply{
		"a form":                  b.as("tiktok", http.MethodPost, tiktokPublish+"video/init/", formType, body),
		"another charset":         b.as("tiktok", http.MethodPost, tiktokPublish+"video/init/", "application/json; charset=latin1", body),
		"a parameter":             b.onTikTok("video/init/?lang=en", body),
		"no slash at the end":     b.onTikTok("video/init", body),
		"post_info for the inbox": b.onTikTok("inbox/video/init/", body),
		"fetching for the status": b.onTikTok("status/fetch/", `{"id":"v"}`),
	} {
		if r.text("error", "code") != "invalid_params" || r.status < 400 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := b.call(http.MethodPost, tiktokPublish+"video/init/", "x", jsonUTF8, body); !isTikTokError(r, 401, "access_token_invalid") {
		t.Errorf("an unknown token: %d %s", r.status, r.body)
	}
}

// TestTikTokForcesWhatIsDisabled posts to a private account with comments disabled.
func TestTikTokForcesWhatIsDisabled(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/tiktok/"+demo(t, "tiktok").ID, `{"private":true,"comment_disabled":true}`, http.StatusOK)
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	body := `{` + strings.Replace(directPost, "PUBLIC_TO_EVERYONE", "FOLLOWER_OF_CREATOR", 1) + `,` + fromFile(len(film), len(film), 1) + `}`
	if r := b.uploadOnTikTok(b.onTikTok("video/init/", body), film); r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.body)
	}
	posts := b.posted("tiktok")
	for _, name := range []string{"disable_comment", "disable_duet", "disable_stitch"} {
		if field(posts, 0, "detail", name) != true {
			t.Errorf("%s is %v, want it forced", name, field(posts, 0, "detail", name))
		}
	}
	if r := b.onTikTok("video/init/", `{`+directPost+`,`+fromFile(100, 100, 1)+`}`); !isTikTokError(r, 403, "privacy_level_option_mismatch") {
		t.Errorf("a private account posts to everyone: %d %s", r.status, r.body)
	}
}

func TestTikTokDailyQuota(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/tiktok/"+demo(t, "tiktok").ID, `{"quota":1}`, http.StatusOK)
	film := movie("isom", 720, 1280, 5*time.Second, 2000)
	body := `{` + directPost + `,` + fromFile(len(film), len(film), 1) + `}`
	first, second := b.onTikTok("video/init/", body), b.onTikTok("video/init/", body)
	if r := b.uploadOnTikTok(first, film); r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := b.uploadOnTikTok(second, film); r.status != http.StatusCreated {
		t.Errorf("what is wrong is told by the status: %d %s", r.status, r.body)
	}
	b.clock.Step(time.Second)
	if r := b.statusOnTikTok(second); r.text("data", "status") != "FAILED" || r.text("data", "fail_reason") != "spam_risk_too_many_posts" {
		t.Errorf("a second post: %s", r.body)
	}
	if r := b.onTikTok("video/init/", body); !isTikTokError(r, 403, "spam_risk_too_many_posts") {
		t.Errorf("a third one: %d %s", r.status, r.body)
	}
	if got := b.posted("tiktok"); len(got) != 1 {
		t.Errorf("%d posts, want 1", len(got))
	}
}
