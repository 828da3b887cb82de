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

// TestXPutsTheConversationInFront checks that replies start with the mentioned names, as on X.
func TestXPutsTheConversationInFront(t *testing.T) {
	tests := []struct {
		name, reason, parent, text, exclude, want string
		// from and to are the bounds of the sent text.
		from, to float64
	}{
		{"nobody", "an account does not mention itself", "hello", "text", "", "text", 0, 4},
		{"one", "@bob is part of the conversation", "hello @bob", "text", "", "@bob text", 5, 9},
		{"two, once each", "in the order in which they came", "@ann and @bob and @Ann", "text", "", "@ann @bob text", 10, 14},
		{"named already", "then X adds nothing", "hello @bob", "@Bob text", "", "@Bob text", 0, 9},
		{"the author", "nor its own name", "I am @herald_demo", "text", "", "text", 0, 4},
		{"excluded", "exclude_reply_user_ids", "hello @bob", "text", `,"exclude_reply_user_ids":["42"]`, "text", 0, 4},
		{"addresses", "an address of mail is no mention", "me@example.com", "text", "", "text", 0, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			b.control(http.MethodPut, "/accounts/x/42", `{"username":"bob"}`, http.StatusCreated)
			answer := func(to, text string) reply {
				r := b.tweet(fmt.Sprintf(`{"text":%q,"reply":{"in_reply_to_tweet_id":%q%s}}`, text, to, tt.exclude))
				if r.status != http.StatusCreated {
					t.Fatalf("%d %s", r.status, r.body)
				}
				return b.get("/x/2/tweets/" + r.text("data", "id") + "?tweet.fields=display_text_range")
			}
			first := answer(b.post(tt.parent), tt.text)
			want := []any{tt.want, []any{tt.from, tt.to}}
			if diff := cmp.Diff(want, []any{first.at("data", "text"), first.at("data", "display_text_range")}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if got := b.texts()[1]; got != tt.text {
				t.Errorf("what was sent is %q", got)
			}
			if tt.name != "one" {
				return
			}
			if got := answer(first.text("data", "id"), "and on").text("data", "text"); got != "@bob and on" {
				t.Errorf("the next one is %q: the conversation goes on", got)
			}
		})
	}
}

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
