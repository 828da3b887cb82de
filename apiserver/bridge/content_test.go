// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestWirePathOfContent(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"spec.tree.cards":                      "tree_cards",
		"spec.tree.cards[1].caption":           "tree_cards[1].caption",
		"spec.tree.cards[1].mediaRefs[0]":      "tree_cards[1].media_ids[0]",
		"spec.tree.cards[1].mediaRefs[0].name": "tree_cards[1].media_ids[0]",
		"spec.image.mediaRefs":                 "media_ids",
		"spec.image.mediaRefs[34].name":        "media_ids[34]",
		"spec.video.mediaRef":                  "media_id",
		"spec.video.mediaRef.name":             "media_id",
		"spec.video.thumbnailOffsetMillis":     "thumbnail_time",
		"spec.targets[0].connectionRef.name":   "targets[0].connection_id",
		"spec.targets[0].youtube.title":        "targets[0].youtube_title",
		"spec.targets[0].tiktok.privacyLevel":  "targets[0].tiktok_privacy_level",
		"spec.targets[0].tiktok.isAIGenerated": "targets[0].is_ai_generated",
		"spec.targets[0].tiktok.autoAddMusic":  "targets[0].tiktok_auto_add_music",
		"spec.targets[0].tiktok.draft":         "targets[0].tiktok_draft",
	} {
		if got := WirePath(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestNewPost(t *testing.T) {
	t.Parallel()
	targets := []CreateTarget{{ConnectionID: "a", Caption: "b"}}
	plain := []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "a"}, Caption: "b"}}
	for name, tc := range map[string]struct {
		reason string
		in     CreatePost
		want   v1alpha1.PostSpec
	}{
		"Image": {
			"the files keep their order",
			CreatePost{Category: v1alpha1.CategoryImage, MediaIDs: []string{"m", "l"}, Targets: targets},
			v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.LocalReference{{Name: "m"}, {Name: "l"}}}, Targets: plain},
		},
		"Video": {
			"seconds become milliseconds, to the nearest",
			CreatePost{Category: v1alpha1.CategoryVideo, MediaIDs: []string{"m"}, ThumbnailTime: new(1.2346), Targets: targets},
			v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "m"}, ThumbnailOffsetMillis: new(int32(1235))}, Targets: plain},
		},
		"Tree": {
			"cards carry text, media or both",
			CreatePost{Category: v1alpha1.CategoryTree, Cards: []Card{{Caption: "c"}, {MediaIDs: []string{"m"}}}, Targets: []CreateTarget{{ConnectionID: "a"}}},
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryTree, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "a"}}},
				Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "c"}, {MediaRefs: []v1alpha1.LocalReference{{Name: "m"}}}}},
			},
		},
		"Options": {
			"what was left out stays open, and what was chosen is kept",
			CreatePost{Category: v1alpha1.CategoryVideo, MediaIDs: []string{"m"}, Targets: []CreateTarget{{ConnectionID: "a", YouTubeTitle: "t", TikTok: TikTokOptions{
				Draft: new(false), PrivacyLevel: new("SELF_ONLY"), AllowComment: new(false), AllowDuet: new(true), IsAIGenerated: new(true),
			}}}},
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "m"}},
				Targets: []v1alpha1.PostTarget{{
					ConnectionRef: v1alpha1.LocalReference{Name: "a"}, YouTube: &v1alpha1.YouTubeOptions{Title: "t"},
					TikTok: &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly, AllowComment: new(false), AllowDuet: new(true), IsAIGenerated: true},
				}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, newTestPost(t, &tc.in).Spec); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestContentOf shows what is read back: what a client sent, but not the media
// of a post that came through another door.
func newTestPost(t *testing.T, in *CreatePost) *v1alpha1.Post {
	t.Helper()
	post, err := newPost("team", in, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return post
}

func TestContentOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in     CreatePost
		origin string
		media  []string
		cards  []Card
	}{
		"Image":       {CreatePost{Category: v1alpha1.CategoryImage, MediaIDs: []string{"m", "l"}}, v1alpha1.OriginAPI, []string{"m", "l"}, nil},
		"Video":       {CreatePost{Category: v1alpha1.CategoryVideo, MediaIDs: []string{"m"}}, v1alpha1.OriginAPI, []string{"m"}, nil},
		"Text":        {CreatePost{Category: v1alpha1.CategoryText}, v1alpha1.OriginAPI, nil, nil},
		"Tree":        {CreatePost{Category: v1alpha1.CategoryTree, Cards: []Card{{Caption: "c", MediaIDs: []string{"m"}}}}, v1alpha1.OriginAPI, nil, []Card{{Caption: "c", MediaIDs: []string{"m"}}}},
		"FromTheWeb":  {CreatePost{Category: v1alpha1.CategoryImage, MediaIDs: []string{"m"}}, "web", nil, nil},
		"FromNowhere": {CreatePost{Category: v1alpha1.CategoryVideo, MediaIDs: []string{"m"}}, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := newTestPost(t, &tc.in)
			post.Labels[v1alpha1.OriginLabel] = tc.origin
			media, cards := contentOf(post)
			if diff := cmp.Diff([]any{tc.media, tc.cards}, []any{media, cards}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestCheckOptions names the combinations that the contract refuses.
func TestCheckOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		category v1alpha1.Category
		options  TikTokOptions
		want     []string
	}{
		"music with text":      {v1alpha1.CategoryText, TikTokOptions{AutoAddMusic: new(false)}, []string{"targets[0].tiktok_auto_add_music"}},
		"music with a video":   {v1alpha1.CategoryVideo, TikTokOptions{AutoAddMusic: new(true)}, []string{"targets[0].tiktok_auto_add_music"}},
		"music with images":    {v1alpha1.CategoryImage, TikTokOptions{AutoAddMusic: new(true)}, nil},
		"duet with images":     {v1alpha1.CategoryImage, TikTokOptions{AllowDuet: new(true)}, []string{"targets[0].tiktok_allow_duet"}},
		"stitch with text":     {v1alpha1.CategoryText, TikTokOptions{AllowStitch: new(false)}, []string{"targets[0].tiktok_allow_stitch"}},
		"both with a video":    {v1alpha1.CategoryVideo, TikTokOptions{AllowDuet: new(true), AllowStitch: new(false)}, nil},
		"draft and music":      {v1alpha1.CategoryImage, TikTokOptions{Draft: new(true), AutoAddMusic: new(true)}, []string{"targets[0].tiktok_auto_add_music"}},
		"draft, music refused": {v1alpha1.CategoryImage, TikTokOptions{Draft: new(true), AutoAddMusic: new(false)}, nil},
		"draft and privacy":    {v1alpha1.CategoryVideo, TikTokOptions{Draft: new(true), PrivacyLevel: new("SELF_ONLY")}, []string{"targets[0].tiktok_privacy_level"}},
		"no draft and privacy": {v1alpha1.CategoryVideo, TikTokOptions{Draft: new(false), PrivacyLevel: new("SELF_ONLY")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, err := range checkRequest(&CreatePost{Category: tc.category, Targets: []CreateTarget{{TikTok: tc.options}}}) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A post that names more files than any platform shows is refused before one of
// them is looked at.
func TestTooManyFilesAreNotLookedAt(t *testing.T) {
	post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Tree: &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, 100)}}}
	for i := range post.Spec.Tree.Cards {
		for n := range 21 {
			post.Spec.Tree.Cards[i].MediaRefs = append(post.Spec.Tree.Cards[i].MediaRefs, v1alpha1.LocalReference{Name: fmt.Sprintf("m%d-%d", i, n)})
		}
	}
	_, err := (&Service{}).mediaOf(t.Context(), post)
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != CodeValidation || !strings.HasPrefix(refused.Message, "tree_cards: the post names 2100 different media files") {
		t.Errorf("got %v", err)
	}
}
