// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// readPost decodes the body of createPost.
func readPost(body []byte) (bridge.CreatePost, error) {
	value, err := strictjson.Parse(body)
	if err != nil {
		return bridge.CreatePost{}, err
	}
	return CreatePost(value)
}

func TestCreatePost(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	plain := []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "a"}}}
	withCaption := []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "a"}, Caption: "b"}}
	refs := func(names ...string) (out []v1alpha1.MediaReference) {
		for _, name := range names {
			out = append(out, v1alpha1.MediaReference{Name: name})
		}
		return out
	}
	tests := map[string]struct {
		reason, body string
		want         v1alpha1.PostSpec
	}{
		"Least": {
			"all optional fields are omitted",
			`{"category":"text","targets":[{"connection_id":"a"}]}`,
			v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: plain},
		},
		"Nulls": {
			"null means no time",
			`{"category":"text","targets":[{"connection_id":"a"}],"scheduled_at":null,"draft":false}`,
			v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: plain},
		},
		"ZeroTime": {
			"the zero time is in the past, and differs from no time",
			`{"category":"text","targets":[{"connection_id":"a"}],"scheduled_at":"0001-01-01T00:00:00Z"}`,
			v1alpha1.PostSpec{Category: v1alpha1.CategoryText, ScheduledAt: &v1alpha1.Time{}, Targets: plain},
		},
		"CategoryLast": {
			"the order of fields does not matter",
			`{"tree_cards":7,"targets":[{"caption":"b","connection_id":"a"}],"category":"text"}`,
			v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: withCaption},
		},
		"Everything": {
			"each field is decoded; options that are false differ from omitted options",
			`{"category":"video","media_id":"m","scheduled_at":"2026-12-01T10:00:00+01:00","draft":true,"targets":[{"connection_id":"a","caption":"b"},{"connection_id":"c",
				"tiktok_draft":true,"tiktok_allow_duet":false,"tiktok_allow_stitch":true},{"connection_id":"d","tiktok_privacy_level":"SELF_ONLY"}]}`,
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryVideo, ScheduledAt: v1alpha1.NewTimePtr(at), Draft: true, Video: &v1alpha1.VideoContent{MediaRef: refs("m")[0]},
				Targets: []v1alpha1.PostTarget{
					{ConnectionRef: v1alpha1.LocalReference{Name: "a"}, Caption: "b"},
					{ConnectionRef: v1alpha1.LocalReference{Name: "c"}, TikTok: &v1alpha1.TikTokOptions{Draft: true, AllowDuet: new(false), AllowStitch: new(true)}},
					{ConnectionRef: v1alpha1.LocalReference{Name: "d"}, TikTok: &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}},
				},
			},
		},
		"Video": {
			"a video has one file and an optional thumbnail time, rounded to milliseconds",
			`{"category":"video","media_id":"m","thumbnail_time":1.2346,"targets":[{"connection_id":"a","caption":"b","youtube_title":"t","is_ai_generated":true,"tiktok_allow_comment":false}]}`,
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: refs("m")[0], ThumbnailOffsetMillis: new(int32(1235))},
				Targets: []v1alpha1.PostTarget{{
					ConnectionRef: v1alpha1.LocalReference{Name: "a"}, Caption: "b", YouTube: &v1alpha1.YouTubeOptions{Title: "t"},
					TikTok: &v1alpha1.TikTokOptions{IsAIGenerated: true, AllowComment: new(false)},
				}},
			},
		},
		"LatestThumbnail": {
			"the last valid second is accepted",
			`{"category":"video","media_id":"m","thumbnail_time":2147483,"targets":[{"connection_id":"a"}]}`,
			v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: refs("m")[0], ThumbnailOffsetMillis: new(int32(2147483000))}, Targets: plain},
		},
		"Image": {
			"the order of files is kept, and a file may be repeated",
			`{"category":"image","media_ids":["m","l","m"],"targets":[{"connection_id":"a","caption":"b"}]}`,
			v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: refs("m", "l", "m")}, Targets: withCaption},
		},
		"Tree": {
			"an omitted, null or empty caption are the same; unknown fields are ignored",
			`{"category":"tree","tree_cards":[{"caption":"a","media_ids":["m"]},{"caption":null},{"caption":"","media_ids":[]},{}],"targets":[{"connection_id":"a","tiktok_privacy_level":7}]}`,
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryTree, Targets: plain,
				Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "a", MediaRefs: refs("m")}, {}, {}, {}}},
			},
		},
		"EmptyOptions": {
			"an option with its default value is kept, without effect",
			`{"category":"image","media_ids":["m"],"targets":[{"connection_id":"a","is_ai_generated":false}]}`,
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: refs("m")},
				Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "a"}, TikTok: &v1alpha1.TikTokOptions{}}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readPost([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(bridge.CreatePost{Spec: tc.want}, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCombinations verifies the combinations of options that the contract rejects.
func TestCombinations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		category, options string
		want              []string
	}{
		"music with text":              {`"text"`, `"tiktok_auto_add_music":false`, []string{"targets[0].tiktok_auto_add_music: only a post of category image may have it; leave it out"}},
		"music with a video":           {`"video","media_id":"m"`, `"tiktok_auto_add_music":true`, []string{"targets[0].tiktok_auto_add_music: only a post of category image may have it; leave it out"}},
		"music with images":            {`"image","media_ids":["m"]`, `"tiktok_auto_add_music":true`, nil},
		"duet with images":             {`"image","media_ids":["m"]`, `"tiktok_allow_duet":true`, []string{"targets[0].tiktok_allow_duet: only a post of category video may have it; leave it out"}},
		"stitch with text":             {`"text"`, `"tiktok_allow_stitch":false`, []string{"targets[0].tiktok_allow_stitch: only a post of category video may have it; leave it out"}},
		"duet and stitch with a video": {`"video","media_id":"m"`, `"tiktok_allow_duet":true,"tiktok_allow_stitch":false`, nil},
		"draft and music":              {`"image","media_ids":["m"]`, `"tiktok_draft":true,"tiktok_auto_add_music":true`, []string{"targets[0].tiktok_auto_add_music: cannot be combined with tiktok_draft; omit one of the two"}},
		"draft, music off":             {`"image","media_ids":["m"]`, `"tiktok_draft":true,"tiktok_auto_add_music":false`, nil},
		"draft and privacy":            {`"video","media_id":"m"`, `"tiktok_draft":true,"tiktok_privacy_level":"SELF_ONLY"`, []string{"targets[0].tiktok_privacy_level: cannot be combined with tiktok_draft; omit one of the two"}},
		"no draft and privacy":         {`"video","media_id":"m"`, `"tiktok_draft":false,"tiktok_privacy_level":"SELF_ONLY"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readPost([]byte(`{"category":` + tc.category + `,"targets":[{"connection_id":"a",` + tc.options + `}]}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Problems); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTreeTarget verifies that the five fields in the contract are rejected on the target of a tree, with any value.
func TestTreeTarget(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"caption", "youtube_title", "is_ai_generated", "tiktok_draft", "tiktok_auto_add_music"} {
		for _, value := range []string{"null", "false", `""`, `"x"`, "{}"} {
			body := `{"category":"tree","tree_cards":[{"caption":"a"},{"caption":"b"}],"targets":[{"connection_id":"a"},{"connection_id":"b","` + name + `":` + value + `}]}`
			_, err := readPost([]byte(body))
			known, ok := errors.AsType[*bridge.Error](err)
			want := "targets[1]." + name + ": the target of a tree cannot have it; leave it out"
			if !ok || known.Code != bridge.CodeValidation || known.Message != want {
				t.Errorf("%s: got %v, want %s", body, err, want)
			}
		}
	}
}
