// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"testing"
	"time"

	"github.com/go-faster/jx"
	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest/oas"
)

func TestCreatePost(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		reason, body string
		want         bridge.CreatePost
	}{
		"Least": {
			"everything that may be left out is",
			`{"category":"text","targets":[{"connection_id":"a"}]}`,
			bridge.CreatePost{Category: v1alpha1.CategoryText, Targets: []bridge.CreateTarget{{ConnectionID: "a"}}},
		},
		"Nulls": {
			"null stands for no time",
			`{"category":"text","targets":[{"connection_id":"a"}],"scheduled_at":null,"draft":false}`,
			bridge.CreatePost{Category: v1alpha1.CategoryText, Targets: []bridge.CreateTarget{{ConnectionID: "a"}}},
		},
		"ZeroTime": {
			"the zero time is a time, long past, and not the same as none",
			`{"category":"text","targets":[{"connection_id":"a"}],"scheduled_at":"0001-01-01T00:00:00Z"}`,
			bridge.CreatePost{Category: v1alpha1.CategoryText, ScheduledAt: &time.Time{}, Targets: []bridge.CreateTarget{{ConnectionID: "a"}}},
		},
		"Everything": {
			"each field arrives; options that are false are not the same as options left out",
			`{"category":"text","scheduled_at":"2026-12-01T10:00:00+01:00","draft":true,"targets":[{"connection_id":"a","caption":"b"},{"connection_id":"c",
				"tiktok_auto_add_music":false,"tiktok_draft":true,"tiktok_privacy_level":"SELF_ONLY","tiktok_allow_duet":false,"tiktok_allow_stitch":true}]}`,
			bridge.CreatePost{Category: v1alpha1.CategoryText, ScheduledAt: &at, Draft: true, Targets: []bridge.CreateTarget{
				{ConnectionID: "a", Caption: "b"},
				{ConnectionID: "c", TikTok: bridge.TikTokOptions{
					AutoAddMusic: new(false), Draft: new(true), PrivacyLevel: new("SELF_ONLY"), AllowDuet: new(false), AllowStitch: new(true),
				}},
			}},
		},
		"Video": {
			"a video has one file, and may say which picture stands for it",
			`{"category":"video","media_id":"m","thumbnail_time":1.5,"targets":[{"connection_id":"a","caption":"b","youtube_title":"t","is_ai_generated":true,"tiktok_allow_comment":false}]}`,
			bridge.CreatePost{Category: v1alpha1.CategoryVideo, MediaIDs: []string{"m"}, ThumbnailTime: new(1.5), Targets: []bridge.CreateTarget{
				{ConnectionID: "a", Caption: "b", YouTubeTitle: "t", TikTok: bridge.TikTokOptions{IsAIGenerated: new(true), AllowComment: new(false)}},
			}},
		},
		"Image": {
			"the files keep their order, and the same one may stand twice",
			`{"category":"image","media_ids":["m","l","m"],"targets":[{"connection_id":"a","caption":"b"}]}`,
			bridge.CreatePost{Category: v1alpha1.CategoryImage, MediaIDs: []string{"m", "l", "m"}, Targets: []bridge.CreateTarget{{ConnectionID: "a", Caption: "b"}}},
		},
		"Tree": {
			"no caption, null and an empty one mean the same; a field that the contract does not name is ignored",
			`{"category":"tree","tree_cards":[{"caption":"a","media_ids":["m"]},{"caption":null},{"caption":""},{}],"targets":[{"connection_id":"a","tiktok_privacy_level":7}]}`,
			bridge.CreatePost{
				Category: v1alpha1.CategoryTree, Targets: []bridge.CreateTarget{{ConnectionID: "a"}},
				Cards: []bridge.Card{{Caption: "a", MediaIDs: []string{"m"}}, {}, {}, {}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var req oas.CreatePostRequest
			if err := req.Decode(jx.DecodeStr(tc.body)); err != nil {
				t.Fatal(err)
			}
			got, err := createPost(&req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTreeTarget shows that the five fields which the contract names are
// refused on the target of a tree, whatever their value.
func TestTreeTarget(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"caption", "youtube_title", "is_ai_generated", "tiktok_draft", "tiktok_auto_add_music"} {
		for _, value := range []string{"null", "false", `""`, `"x"`, "{}"} {
			body := `{"category":"tree","tree_cards":[{"caption":"a"},{"caption":"b"}],"targets":[{"connection_id":"a"},{"connection_id":"b","` + name + `":` + value + `}]}`
			var req oas.CreatePostRequest
			if err := req.Decode(jx.DecodeStr(body)); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			_, err := createPost(&req)
			known, ok := errors.AsType[*bridge.Error](err)
			want := "targets[1]." + name + ": the target of a tree cannot have it; leave it out"
			if !ok || known.Code != bridge.CodeValidation || known.Message != want {
				t.Errorf("%s: got %v, want %s", body, err, want)
			}
		}
	}
}

func TestWireDetail(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 10, 0, 0, 5e6, time.FixedZone("", 3600))
	tests := map[string]struct {
		reason string
		post   bridge.PostDetail
		want   string
	}{
		"Full": {
			"times are in UTC with milliseconds, whatever they came with",
			bridge.PostDetail{
				ID: "p1", Status: v1alpha1.PhaseFailed, Category: v1alpha1.CategoryText, ScheduledAt: &at, CanCancel: true, DisplayAt: at,
				Platforms: []bridge.PlatformDetail{{
					Platform: v1alpha1.PlatformX, ConnectionID: "a", AccountName: "Acme <&> \u2028", Status: v1alpha1.PhaseFailed, Caption: "\"Hi\"\n",
					ExternalURL: "https://x.example/1?a=1&b=2", ErrorMessage: "no",
				}},
			},
			`{"id":"p1","status":"failed","category":"text","media_ids":[],"tree_cards":[],"scheduled_at":"2026-12-01T09:00:00.005Z","can_cancel":true,` +
				`"platforms":[{"platform":"x","connection_id":"a","account_name":"Acme <&> ` + "\u2028" + `","status":"failed","caption":"\"Hi\"\n",` +
				`"youtube_title":null,"external_url":"https://x.example/1?a=1&b=2","error_message":"no"}],"display_at":"2026-12-01T09:00:00.005Z"}`,
		},
		"Tree": {
			"a card without text has a null caption, one without media an empty list",
			bridge.PostDetail{
				ID: "p1", Status: v1alpha1.PhaseDraft, Category: v1alpha1.CategoryTree, DisplayAt: at,
				Cards: []bridge.Card{{Caption: "a"}, {MediaIDs: []string{"m"}}},
			},
			`{"id":"p1","status":"draft","category":"tree","media_ids":[],"tree_cards":[{"caption":"a","media_ids":[]},{"caption":null,"media_ids":["m"]}],` +
				`"scheduled_at":null,"can_cancel":false,"platforms":[],"display_at":"2026-12-01T09:00:00.005Z"}`,
		},
		"Media": {
			"the files and the YouTube title are told",
			bridge.PostDetail{
				ID: "p1", Status: v1alpha1.PhaseDraft, Category: v1alpha1.CategoryVideo, DisplayAt: at, MediaIDs: []string{"m"},
				Platforms: []bridge.PlatformDetail{{Platform: v1alpha1.PlatformYouTube, Status: v1alpha1.PhaseDraft, YouTubeTitle: "t"}},
			},
			`{"id":"p1","status":"draft","category":"video","media_ids":["m"],"tree_cards":[],"scheduled_at":null,"can_cancel":false,` +
				`"platforms":[{"platform":"youtube","connection_id":"","account_name":"","status":"draft","caption":"",` +
				`"youtube_title":"t","external_url":null,"error_message":null}],"display_at":"2026-12-01T09:00:00.005Z"}`,
		},
		"Least": {
			"what there is not is null, an empty list or an empty string, as the contract says for each",
			bridge.PostDetail{ID: "p1", Status: v1alpha1.PhaseProcessing, Category: v1alpha1.CategoryText, DisplayAt: at, Platforms: []bridge.PlatformDetail{{
				Platform: v1alpha1.PlatformX, Status: v1alpha1.PhaseProcessing,
			}}},
			`{"id":"p1","status":"processing","category":"text","media_ids":[],"tree_cards":[],"scheduled_at":null,"can_cancel":false,` +
				`"platforms":[{"platform":"x","connection_id":"","account_name":"","status":"processing","caption":"",` +
				`"youtube_title":null,"external_url":null,"error_message":null}],"display_at":"2026-12-01T09:00:00.005Z"}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := wireDetail(&tc.post)
			e := &jx.Encoder{}
			wire.Encode(e)
			if diff := cmp.Diff(tc.want, e.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
