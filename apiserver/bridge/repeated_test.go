// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestContentBy compares the content of two posts.
func TestContentBy(t *testing.T) {
	t.Parallel()
	base := v1alpha1.PostSpec{
		Category: v1alpha1.CategoryTree,
		Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello", YouTube: &v1alpha1.YouTubeOptions{Title: "title"}}},
		Image:    &v1alpha1.ImageContent{MediaRefs: []v1alpha1.LocalReference{{Name: "image"}}},
		Video:    &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "video"}},
		Tree:     &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "card", MediaRefs: []v1alpha1.LocalReference{{Name: "shown"}}}}},
	}
	const namespace, author = "team-acme", "ada"
	want := contentBy(namespace, author, &base)
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.PostSpec)
		same   bool
	}{
		"nothing":   {"it is the same", func(*v1alpha1.PostSpec) {}, true},
		"time":      {"when it goes out does not count", func(s *v1alpha1.PostSpec) { s.ScheduledAt = &v1alpha1.Time{} }, true},
		"category":  {"another kind of post", func(s *v1alpha1.PostSpec) { s.Category = v1alpha1.CategoryText }, false},
		"account":   {"it goes elsewhere", func(s *v1alpha1.PostSpec) { s.Targets[0].ConnectionRef.Name = "y" }, false},
		"more":      {"it goes elsewhere as well", func(s *v1alpha1.PostSpec) { s.Targets = append(s.Targets, s.Targets[0]) }, false},
		"caption":   {"another text", func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "hallo" }, false},
		"title":     {"another video's title", func(s *v1alpha1.PostSpec) { s.Targets[0].YouTube.Title = "other" }, false},
		"image":     {"the same picture, uploaded again", func(s *v1alpha1.PostSpec) { s.Image.MediaRefs[0].Name = "other" }, true},
		"video":     {"the same video, uploaded again", func(s *v1alpha1.PostSpec) { s.Video.MediaRef.Name = "other" }, true},
		"card":      {"another card", func(s *v1alpha1.PostSpec) { s.Tree.Cards[0].Caption = "other" }, false},
		"cards":     {"another card as well", func(s *v1alpha1.PostSpec) { s.Tree.Cards = append(s.Tree.Cards, s.Tree.Cards...) }, false},
		"card file": {"the same picture on a card, uploaded again", func(s *v1alpha1.PostSpec) { s.Tree.Cards[0].MediaRefs[0].Name = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := (&v1alpha1.Post{Spec: base}).DeepCopy().Spec
			tc.edit(&changed)
			if same := contentBy(namespace, author, &changed) == want; same != tc.same {
				t.Errorf("%s: the same: %t", tc.reason, same)
			}
		})
	}
	silent := v1alpha1.PostSpec{
		Category: v1alpha1.CategoryImage, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}}},
		Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.LocalReference{{Name: "image"}}},
	}
	other := (&v1alpha1.Post{Spec: silent}).DeepCopy().Spec
	other.Image.MediaRefs[0].Name = "other"
	if contentBy(namespace, author, &silent) == contentBy(namespace, author, &other) {
		t.Error("two pictures without a text are the same")
	}
	if contentBy("team-other", author, &base) == want || contentBy(namespace, "bob", &base) == want {
		t.Error("another team's or another person's post is the same")
	}
}
