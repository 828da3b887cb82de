// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// platformRules are a platform's limits as agents read them. They come from the capabilities that validate posts.
type platformRules struct {
	Platform   v1alpha1.Platform   `json:"platform"`
	Categories []v1alpha1.Category `json:"categories"`
	Caption    *limit              `json:"caption"`
	Title      *limit              `json:"title,omitempty"`
	// MaxImages applies to an image post, and MaxVideoBytes to a video post's file.
	MaxImages     int        `json:"max_images,omitempty"`
	MaxVideoBytes int64      `json:"max_video_bytes"`
	Card          *cardRules `json:"tree_card,omitempty"`
}

// limit is the maximum length of a caption; null means no limit.
type limit struct {
	Max  int    `json:"max"`
	Unit string `json:"unit"`
}

type cardRules struct {
	MaxMedia      int   `json:"max_media"`
	MaxVideos     int   `json:"max_videos"`
	Mixed         bool  `json:"images_and_videos_may_be_mixed"`
	MaxImageBytes int64 `json:"max_image_bytes"`
	MaxVideoBytes int64 `json:"max_video_bytes"`
}

// rules returns the rules of the edition's platforms that this installation can publish to.
func (e *edition) rules(capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)) []platformRules {
	var all []platformRules
	for _, name := range v1alpha1.Platforms() {
		c, ok := capabilities(name)
		if !ok || e.version1 && !name.InVersion1() {
			continue
		}
		r := platformRules{Platform: name, Categories: c.Categories, MaxImages: c.MaxImages, MaxVideoBytes: bounded(c.MaxVideoBytes, v1alpha1.MaxVideoBytes)}
		if c.MaxCaption > 0 {
			r.Caption = &limit{c.MaxCaption, c.CaptionUnit}
		}
		if c.MaxTitle > 0 {
			r.Title = &limit{c.MaxTitle, "characters"}
		}
		if slices.Contains(c.Categories, v1alpha1.CategoryTree) {
			r.Card = &cardRules{
				MaxMedia: c.Card.MaxItems, MaxVideos: c.Card.MaxVideos, Mixed: c.Card.Mixed,
				MaxImageBytes: bounded(c.Card.MaxImageBytes, v1alpha1.MaxImageBytes), MaxVideoBytes: bounded(c.Card.MaxVideoBytes, v1alpha1.MaxVideoBytes),
			}
		}
		all = append(all, r)
	}
	return all
}

// bounded returns the platform's limit, or the upload limit if the platform has none.
func bounded(of, everywhere int64) int64 {
	if of == 0 {
		return everywhere
	}
	return of
}

var categories = []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}

func categorySupport(all []platformRules) string {
	var parts []string
	for _, category := range categories {
		var names []string
		for i := range all {
			if slices.Contains(all[i].Categories, category) {
				names = append(names, string(all[i].Platform))
			}
		}
		if len(names) > 0 {
			parts = append(parts, "`"+string(category)+"` goes to "+strings.Join(names, ", "))
		}
	}
	return strings.Join(parts, "; ") + "."
}
