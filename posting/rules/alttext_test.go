// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// accountEnv has accounts whose servers accept less than others: "small" accepts only MP4, alt texts of 5 characters,
// and images of 100 pixels, and "silent" accepts no videos.
func accountEnv() Env {
	return Env{
		Media: func(name string) *v1alpha1.Media {
			mime := map[string]v1alpha1.MimeType{"film": v1alpha1.MimeMP4, "clip": v1alpha1.MimeQuickTime}[name]
			if mime == "" {
				mime = v1alpha1.MimeWebP
			}
			m := &v1alpha1.Media{Spec: v1alpha1.MediaSpec{MimeType: mime, FileName: name}, Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, Width: 20, Height: 20}}
			switch name {
			case "described":
				m.Spec.AltText = "a gray area"
			case "animation":
				m.Status.Unconvertible = "is an animation"
			}
			return m
		},
		Connection: func(name string) *v1alpha1.Connection {
			c := &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformMastodon}}
			switch name {
			case "small":
				c.Status.Mastodon = &v1alpha1.MastodonServer{MaxAltText: 5, MediaTypes: []v1alpha1.MimeType{v1alpha1.MimeMP4}}
			case "silent":
				c.Status.Mastodon = &v1alpha1.MastodonServer{MediaTypes: []v1alpha1.MimeType{}}
			}
			return c
		},
		Capabilities: func(v1alpha1.Platform) (platforms.Capabilities, bool) {
			all := []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}
			rules := platforms.Capabilities{Categories: all, MaxImages: 4, Card: platforms.CardLimits{MaxItems: 4, MaxVideos: 1}}
			rules.ForAccount = func(account *v1alpha1.ConnectionStatus) platforms.Capabilities {
				own := rules
				if account.Mastodon != nil {
					own.MaxAltText = int(account.Mastodon.MaxAltText)
					own.Videos.Types, own.Images.MaxPixels = account.Mastodon.MediaTypes, 100
					if len(own.Videos.Types) == 0 {
						own.Categories, own.Card.MaxVideos = []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryTree}, 0
					}
				}
				return own
			}
			return rules, true
		},
	}
}

// TestFilesOfAnAccount tests limits of files that depend on the account's server.
func TestFilesOfAnAccount(t *testing.T) {
	env := accountEnv()
	for name, tc := range map[string]struct {
		reason, account, file, altText string
		category                       v1alpha1.Category
		accepted                       bool
		want                           string
	}{
		"short":              {"the limit itself is allowed, in characters of any width", "small", "picture", "ééééé", v1alpha1.CategoryImage, false, ""},
		"long":               {"the server would refuse the file", "small", "picture", "123456", v1alpha1.CategoryImage, false, "spec.image.mediaRefs[0].altText"},
		"long, elsewhere":    {"the other account's server permits it", "large", "picture", "123456", v1alpha1.CategoryImage, false, ""},
		"long, of the Media": {"the Media's alt text is sent", "small", "described", "", v1alpha1.CategoryImage, false, "spec.image.mediaRefs[0].altText"},
		"own, short":         {"the post's alt text replaces the Media's", "small", "described", "gray", v1alpha1.CategoryImage, false, ""},
		"long, accepted":     {"an earlier version accepted it, and the platform decides", "small", "picture", "123456", v1alpha1.CategoryImage, true, ""},
		"of a video":         {"a video has one, too", "small", "film", "123456", v1alpha1.CategoryVideo, false, "spec.video.mediaRef.altText"},
		"on a card":          {"a card has the same limit", "small", "picture", "123456", v1alpha1.CategoryTree, false, "spec.tree.cards[0].mediaRefs[0].altText"},
		"QuickTime":          {"the server accepts MP4 only", "small", "clip", "", v1alpha1.CategoryVideo, false, "spec.video.mediaRef.name"},
		"QuickTime, other":   {"the other account's server accepts it", "large", "clip", "", v1alpha1.CategoryVideo, false, ""},
		"pixels":             {"the image is converted", "small", "picture", "", v1alpha1.CategoryImage, false, ""},
		"an animation":       {"it cannot be converted", "small", "animation", "", v1alpha1.CategoryImage, false, "spec.image.mediaRefs[0].name"},
		"both accounts":      {"the strictest limit counts", "large small", "clip", "123456", v1alpha1.CategoryVideo, false, "spec.video.mediaRef.name spec.video.mediaRef.altText"},
		"no videos":          {"the server would refuse it", "silent", "film", "", v1alpha1.CategoryVideo, false, "spec.targets[0].connectionRef.name"},
		"no videos, tree":    {"the first card would be published without the second", "silent", "film", "", v1alpha1.CategoryTree, false, "spec.tree.cards[0].mediaRefs"},
		"one without videos": {"no account gets a part of the tree only", "large silent", "film", "", v1alpha1.CategoryTree, false, "spec.tree.cards[0].mediaRefs"},
		"in another order":   {"the order does not matter", "silent large", "film", "", v1alpha1.CategoryTree, false, "spec.tree.cards[0].mediaRefs"},
		"no common type":     {"one server accepts MP4 and the other no video", "small silent", "film", "", v1alpha1.CategoryTree, false, "spec.tree.cards[0].mediaRefs"},
		"server changed":     {"the post was accepted while the server took videos, and the server decides", "silent", "film", "", v1alpha1.CategoryVideo, true, ""},
		"tree, changed":      {"so it does for cards", "silent", "film", "", v1alpha1.CategoryTree, true, ""},
	} {
		ref := v1alpha1.MediaReference{Name: tc.file, AltText: tc.altText}
		spec, caption := v1alpha1.PostSpec{Category: tc.category}, "hello"
		switch tc.category {
		case v1alpha1.CategoryImage:
			spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{ref}}
		case v1alpha1.CategoryVideo:
			spec.Video = &v1alpha1.VideoContent{MediaRef: ref}
		case v1alpha1.CategoryTree:
			spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{MediaRefs: []v1alpha1.MediaReference{ref}}, {Caption: "two"}}}
			caption = ""
		case v1alpha1.CategoryText:
		}
		for account := range strings.FieldsSeq(tc.account) {
			spec.Targets = append(spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: account}, Caption: caption})
		}
		env.Accepted = tc.accepted
		var got []string
		for _, err := range Validate(&v1alpha1.Post{Spec: spec}, env) {
			got = append(got, err.Field)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %s: the errors are at %v, want %s", name, tc.reason, got, tc.want)
		}
	}
}
