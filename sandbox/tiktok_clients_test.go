// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTikTokOverlooksWhatItDoesNotKnow sends requests that TikTok accepts and a strict sandbox rejects.
func TestTikTokOverlooksWhatItDoesNotKnow(t *testing.T) {
	init := func(more string) string { return "{" + directPost + "," + fromFile(100, 100, 1) + more + "}" }
	tests := []struct{ name, reason, method, path, body string }{
		{"post_mode", "OpenPost sends it with videos as well", "POST", tiktokPublish + "video/init/", init(`,"post_mode":"DIRECT_POST"`)},
		{"inbox", "as with drafts", "POST", tiktokPublish + "inbox/video/init/", "{" + fromFile(100, 100, 1) + `,"post_info":{"title":"a"}}`},
		{"creator info", "an empty body may have fields", "POST", tiktokPublish + "creator_info/query/", `{"a":1}`},
		{"user info", "so may the address have parameters", "GET", "/tiktok/v2/user/info/?fields=open_id&lang=en", ""},
	}
	lenient, strict := startLenient(t), start(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := lenient.as("tiktok", tt.method, tt.path, jsonUTF8, tt.body); r.status != http.StatusOK || r.text("error", "code") != "ok" {
				t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
			}
			if r := strict.as("tiktok", tt.method, tt.path, jsonUTF8, tt.body); !isTikTokError(r, http.StatusBadRequest, "invalid_params") {
				t.Errorf("a test would not see a misspelt name: %d %s", r.status, r.body)
			}
		})
	}
}

// TestTikTokShowsSinglePosts queries posts by ID. Only the account's public posts are returned.
func TestTikTokShowsSinglePosts(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/tiktok/-000HeraldDemoAccount00000000001", `{"processing_ms":0,"listing_lag_ms":0}`, http.StatusOK)
	film := movie("isom", 640, 360, time.Second, 1000)
	b.uploadOnTikTok(b.onTikTok("video/init/", "{"+directPost+","+fromFile(len(film), len(film), 1)+"}"), film)
	b.clock.Step(time.Second)
	id := b.listOnTikTok("{}").text("data", "videos", "0", "id")
	const path = "/tiktok/v2/video/query/?fields=id,title"
	tests := []struct {
		name, reason, path, body string
		want                     []string
	}{
		{"one", "of two, there is one", path, `{"filters":{"video_ids":["` + id + `","7"]}}`, []string{id}},
		{"none", "an unknown id is no error", path, `{"filters":{"video_ids":["7"]}}`, []string{}},
		{"no ids", "they are required", path, `{}`, nil},
		{"no fields", "so are these", strings.Split(path, "?")[0], `{"filters":{"video_ids":["7"]}}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.as("tiktok", http.MethodPost, tt.path, jsonUTF8, tt.body)
			if tt.want == nil {
				if !isTikTokError(r, http.StatusBadRequest, "invalid_params") {
					t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
				}
				return
			}
			got := []string{}
			for i := range r.list("data", "videos") {
				got = append(got, r.text("data", "videos", strconv.Itoa(i), "id"))
			}
			if diff := cmp.Diff(tt.want, got); r.status != http.StatusOK || diff != "" {
				t.Errorf("%s: %d (-want +got):\n%s", tt.reason, r.status, diff)
			}
		})
	}
}
