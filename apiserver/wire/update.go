// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// UpdatePost decodes the body of updatePost: the fields to replace in a stored post's content, with the names and types
// of createPost. Fields that the body lacks keep their value. Parts that cannot be decoded are reported by
// body.Problems.
func UpdatePost(body strictjson.Value, stored *v1alpha1.PostSpec) bridge.EditPost {
	out := bridge.EditPost{Spec: *stored.DeepCopy()}
	spec := &out.Spec
	if category := body.Optional("category"); category.IsSet() {
		if read := strictjson.OneOf(category, categories...); read != "" && read != stored.Category {
			category.Refuse("cannot be changed; create a new post instead")
		}
	}
	if draft := body.Optional("draft"); draft.IsSet() {
		spec.Draft = draft.Bool()
		if spec.Draft && !stored.Draft {
			draft.Refuse("a post that is not a draft cannot become one; cancel it and create a new draft instead")
		}
	}
	if at := body.Optional("scheduled_at"); at.IsSet() {
		spec.ScheduledAt = nil
		if at = at.OrNull(); at.IsSet() {
			spec.ScheduledAt = v1alpha1.NewTimePtr(at.Time())
		}
	}
	if targets := body.Optional("targets"); targets.IsSet() {
		spec.Targets = strictjson.List(targets, 1, maxItems, targetUpdater(stored.Targets, stored.Category, &out.Problems))
	}
	updateFiles(body, spec)
	return out
}

var categories = []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryText, v1alpha1.CategoryTree, v1alpha1.CategoryVideo}

// updateFiles decodes the fields that only one category has. The remaining files keep their alt texts and focal points
// unless the body has others for them.
func updateFiles(body strictjson.Value, spec *v1alpha1.PostSpec) {
	stored := map[string]v1alpha1.MediaReference{}
	for ref := range spec.MediaReferences() {
		stored[ref.Name] = *ref
	}
	described := func(v strictjson.Value) v1alpha1.MediaReference {
		ref := mediaReference(v)
		if known, ok := stored[ref.Name]; ok {
			return known
		}
		return ref
	}
	switch {
	case spec.Image != nil:
		if files := body.Optional("media_ids"); files.IsSet() {
			spec.Image.MediaRefs = strictjson.List(files, 1, maxImages, described)
		}
		describe(body, spec.Image.MediaRefs)
	case spec.Video != nil:
		if file := body.Optional("media_id"); file.IsSet() {
			spec.Video.MediaRef = described(file)
		}
		describeVideo(body, &spec.Video.MediaRef)
		if offset := body.Optional("thumbnail_time"); offset.IsSet() {
			spec.Video.ThumbnailOffsetMillis = strictjson.Pointer(offset.OrNull(), milliseconds)
		}
	case spec.Tree != nil:
		if cards := body.Optional("tree_cards"); cards.IsSet() {
			spec.Tree.Cards = slices.Clip(strictjson.List(cards, 1, maxItems, func(v strictjson.Value) v1alpha1.TreeCard {
				out := card(v)
				for i, ref := range out.MediaRefs {
					if known, ok := stored[ref.Name]; ok {
						out.MediaRefs[i] = known
					}
				}
				describe(v, out.MediaRefs)
				return out
			}))
		}
	}
}
