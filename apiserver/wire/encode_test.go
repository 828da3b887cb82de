// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

func TestAppendPost(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 10, 0, 0, 5e6, time.FixedZone("", 3600))
	tests := map[string]struct {
		reason string
		post   bridge.PostDetail
		want   string
	}{
		"Full": {
			"times are in UTC with milliseconds, whatever their zone",
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
			"a card without text has a null caption; one without media has an empty list",
			bridge.PostDetail{
				ID: "p1", Status: v1alpha1.PhaseDraft, Category: v1alpha1.CategoryTree, DisplayAt: at,
				Cards: []v1alpha1.TreeCard{{Caption: "a"}, {MediaRefs: []v1alpha1.MediaReference{{Name: "m"}}}},
			},
			`{"id":"p1","status":"draft","category":"tree","media_ids":[],"tree_cards":[{"caption":"a","media_ids":[]},{"caption":null,"media_ids":["m"]}],` +
				`"scheduled_at":null,"can_cancel":false,"platforms":[],"display_at":"2026-12-01T09:00:00.005Z"}`,
		},
		"Media": {
			"files and the YouTube title are included",
			bridge.PostDetail{
				ID: "p1", Status: v1alpha1.PhaseDraft, Category: v1alpha1.CategoryVideo, DisplayAt: at, Media: []v1alpha1.MediaReference{{Name: "m"}},
				Platforms: []bridge.PlatformDetail{{Platform: v1alpha1.PlatformYouTube, Status: v1alpha1.PhaseDraft, YouTubeTitle: "t"}},
			},
			`{"id":"p1","status":"draft","category":"video","media_ids":["m"],"tree_cards":[],"scheduled_at":null,"can_cancel":false,` +
				`"platforms":[{"platform":"youtube","connection_id":"","account_name":"","status":"draft","caption":"",` +
				`"youtube_title":"t","external_url":null,"error_message":null}],"display_at":"2026-12-01T09:00:00.005Z"}`,
		},
		"Least": {
			"missing values are null, an empty list or an empty string, as the contract requires",
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
			if diff := cmp.Diff(`{"data":`+tc.want+`}`, string(AppendPost(nil, &tc.post))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzAppendString verifies that every string is preserved, with any content.
func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "a", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "ä😀\u2028", "\xff\xc3\x28"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(s) { // the number of U+FFFD for invalid bytes is unspecified
			got, want = strings.ReplaceAll(got, "\ufffd", ""), strings.ReplaceAll(want, "\ufffd", "")
		}
		if got != want {
			t.Errorf("%q arrives as %q", want, got)
		}
	})
}

func TestAppendTime(t *testing.T) {
	for _, tt := range []struct {
		reason string
		time   time.Time
		want   string
	}{
		{"the milliseconds keep their zeros", time.Date(2026, time.March, 4, 5, 6, 7, 40_000_000, time.UTC), `"2026-03-04T05:06:07.040Z"`},
		{"a whole second has milliseconds, too", time.Date(2026, time.December, 31, 23, 59, 59, 0, time.UTC), `"2026-12-31T23:59:59.000Z"`},
		{"smaller units are cut off, not rounded", time.Date(2026, time.March, 4, 5, 6, 7, 999_999_999, time.UTC), `"2026-03-04T05:06:07.999Z"`},
		{"all times are in UTC", time.Date(2026, time.January, 1, 1, 0, 0, 5_000_000, time.FixedZone("", 2*60*60)), `"2025-12-31T23:00:00.005Z"`},
		{"the zero time is valid", time.Time{}, `"0001-01-01T00:00:00.000Z"`},
	} {
		if got := string(appendTime(nil, tt.time)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.reason, got, tt.want)
		}
	}
}
