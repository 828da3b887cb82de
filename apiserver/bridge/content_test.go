// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestWirePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"spec.scheduledAt":                        "scheduled_at",
		"spec.targets[0].caption":                 "targets[0].caption",
		"spec.targets[3].connectionRef":           "targets[3].connection_id",
		"targets[1].tiktok_draft":                 "targets[1].tiktok_draft",
		"spec.tree.cards":                         "tree_cards",
		"spec.tree.cards[1].caption":              "tree_cards[1].caption",
		"spec.tree.cards[1].mediaRefs[0]":         "tree_cards[1].media_ids[0]",
		"spec.tree.cards[1].mediaRefs[0].name":    "tree_cards[1].media_ids[0]",
		"spec.image.mediaRefs":                    "media_ids",
		"spec.image.mediaRefs[34].name":           "media_ids[34]",
		"spec.video.mediaRef":                     "media_id",
		"spec.video.mediaRef.name":                "media_id",
		"spec.video.mediaRef.altText":             "alt_text",
		"spec.image.mediaRefs[1].altText":         "alt_texts[1]",
		"spec.template.targets[0].caption":        "targets[0].caption",
		"spec.template.image.mediaRefs[0].name":   "media_ids[0]",
		"spec.timeZone":                           "time_zone",
		"spec.tree.cards[1].mediaRefs[0].altText": "tree_cards[1].alt_texts[0]",
		"spec.video.thumbnailOffsetMillis":        "thumbnail_time",
		"spec.targets[0].connectionRef.name":      "targets[0].connection_id",
		"spec.targets[0].youtube.title":           "targets[0].youtube_title",
		"spec.targets[0].tiktok.privacyLevel":     "targets[0].tiktok_privacy_level",
		"spec.targets[0].tiktok.isAIGenerated":    "targets[0].is_ai_generated",
		"spec.targets[0].tiktok.autoAddMusic":     "targets[0].tiktok_auto_add_music",
		"spec.targets[0].tiktok.draft":            "targets[0].tiktok_draft",
		"spec.targets[0].mastodon.contentWarning": "targets[0].content_warning",
		"spec.targets[0].mastodon.visibility":     "targets[0].visibility",
	} {
		if got := WirePath(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestContentOf verifies that clients read back the content that they sent, but not the media of a post from another
// origin.
func TestContentOf(t *testing.T) {
	t.Parallel()
	m := v1alpha1.MediaReference{Name: "m"}
	images := []v1alpha1.MediaReference{m, {Name: "l"}}
	cards := []v1alpha1.TreeCard{{Caption: "c", MediaRefs: []v1alpha1.MediaReference{m}}}
	for name, tc := range map[string]struct {
		in     v1alpha1.PostSpec
		origin string
		media  []v1alpha1.MediaReference
		cards  []v1alpha1.TreeCard
	}{
		"Image":       {v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: images}}, v1alpha1.OriginAPI, images, nil},
		"Video":       {v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: m}}, v1alpha1.OriginAPI, []v1alpha1.MediaReference{m}, nil},
		"Text":        {v1alpha1.PostSpec{Category: v1alpha1.CategoryText}, v1alpha1.OriginAPI, nil, nil},
		"Tree":        {v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: cards}}, v1alpha1.OriginAPI, nil, cards},
		"FromTheWeb":  {v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: images}}, "web", nil, nil},
		"FromNowhere": {v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: m}}, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post, err := newPost(Caller{Namespace: "team"}, &CreatePost{Spec: tc.in}, "", time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			post.Labels[v1alpha1.OriginLabel] = tc.origin
			media, cards := contentOf(post)
			if diff := cmp.Diff([]any{tc.media, tc.cards}, []any{media, cards}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
