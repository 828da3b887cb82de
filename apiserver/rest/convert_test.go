// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
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
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var req oas.CreatePostRequest
			if err := req.Decode(jx.DecodeStr(tc.body)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, createPost(&req)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
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
