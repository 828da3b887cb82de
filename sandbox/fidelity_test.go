// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTikTokListsTheBeginningOfCaptions(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/tiktok/-000HeraldDemoAccount00000000001", `{"processing_ms":0,"listing_lag_ms":0}`, http.StatusOK)
	tests := []struct{ name, reason, caption, want string }{
		{"as it is", "150 characters fit", strings.Repeat("a", 150), strings.Repeat("a", 150)},
		{"cut", "the Video Object has no more", strings.Repeat("a", 151), strings.Repeat("a", 150)},
		{"whole characters", "half an emoji is none", strings.Repeat("a", 149) + "🎉", strings.Repeat("a", 149)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			film := movie("isom", 640, 360, time.Second, 1000)
			info := fmt.Sprintf(`{"post_info":{"title":%q,"privacy_level":"PUBLIC_TO_EVERYONE","brand_content_toggle":false,"brand_organic_toggle":false},`, tt.caption)
			b.uploadOnTikTok(b.onTikTok("video/init/", info+fromFile(len(film), len(film), 1)+"}"), film)
			b.clock.Step(time.Second)
			r := b.listOnTikTok(`{"max_count":1}`)
			got := []string{r.text("data", "videos", "0", "title"), r.text("data", "videos", "0", "video_description")}
			if diff := cmp.Diff([]string{tt.want, tt.want}, got); diff != "" {
				t.Errorf("%s: %d (-want +got):\n%s", tt.reason, r.status, diff)
			}
		})
	}
}

// TestFacebookListsRankedPosts publishes more posts in a year than Facebook lists.
func TestFacebookListsRankedPosts(t *testing.T) {
	const extra = 20
	b := start(t, "")
	list := func() map[string]bool {
		ids := map[string]bool{}
		next := pagePath + "/published_posts?limit=100&fields=id"
		for next != "" {
			r := b.read("facebook", next)
			for _, id := range r.ids() {
				ids[id] = true
			}
			next = strings.TrimPrefix(r.text("paging", "next"), b.http.URL)
		}
		return ids
	}
	b.clock.Step(60 * 24 * time.Hour) // into the next calendar year
	var made []string
	for i := range 600 + extra {
		b.clock.Step(time.Minute)
		made = append(made, b.onPage(fmt.Sprint("post ", i)))
		if i == 599 && len(list()) != 600 {
			t.Fatalf("%d posts, want all of 600", len(list()))
		}
	}
	seen, missing := list(), 0
	for _, id := range made {
		if !seen[id] {
			missing++
		}
	}
	if len(seen) != 600 || missing != extra {
		t.Errorf("%d posts are listed, %d are missing", len(seen), missing)
	}
	if r := b.read("facebook", "/facebook/v25.0/"+made[len(made)-1]); r.status != http.StatusOK {
		t.Errorf("each is there by its id: %d %s", r.status, r.body)
	}
}

func TestYouTubeUploadsOfADayAreUsedUp(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"youtube","operation":"create","kind":"status","status":429}`)
	r := b.startOnYouTube(plainVideo, 1000)
	if !isYouTubeError(r, http.StatusTooManyRequests, "rateLimitExceeded") || !strings.Contains(r.text("error", "message"), "'Video Uploads per day'") {
		t.Errorf("as Google tells it: %d %s", r.status, r.body)
	}
	b.fault(`{"platform":"youtube","operation":"list","kind":"status","status":429}`)
	r = b.read("youtube", "/youtube/youtube/v3/playlistItems?part=id&playlistId=UUHeraldDemo000000000001")
	if !isYouTubeError(r, http.StatusTooManyRequests, "rateLimitExceeded") || strings.Contains(r.body, "per day") {
		t.Errorf("other calls have no such limit: %d %s", r.status, r.body)
	}
}
