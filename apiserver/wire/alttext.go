// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// The fields of version 2 for the alt texts of a post's files: alt_texts corresponds to media_ids, in the same order,
// and alt_text to media_id.
const (
	fieldAltTexts = "alt_texts"
	fieldAltText  = "alt_text"
)

// CreatePostV2 is CreatePost for version 2.
func CreatePostV2(body strictjson.Value) (bridge.CreatePost, error) {
	out := createPost(body, cardV2, targetReaderV2)
	switch spec := &out.Spec; {
	case spec.Image != nil:
		describe(body, spec.Image.MediaRefs)
	case spec.Video != nil:
		describeVideo(body, &spec.Video.MediaRef)
	case spec.Category == "":
		accept(body, fieldAltTexts, fieldAltText, fieldFocalPoints, fieldFocalPoint)
	}
	return out, refused(body)
}

// CreateMediaUploadV2 is CreateMediaUpload for version 2.
func CreateMediaUploadV2(body strictjson.Value) (bridge.CreateMediaUpload, error) {
	out, _ := CreateMediaUpload(body) // body.Problems has its problems
	out.Spec.AltText = altTextIn(body.Optional(fieldAltText))
	return out, refused(body)
}

func cardV2(v strictjson.Value) v1alpha1.TreeCard {
	out := card(v)
	describe(v, out.MediaRefs)
	return out
}

// describe decodes the alt texts and focal points of an object's media_ids. For null or "", the Media's own alt text
// applies.
func describe(of strictjson.Value, refs []v1alpha1.MediaReference) {
	forEach(of.Optional(fieldAltTexts), "alt text", refs, altTextIn, func(ref *v1alpha1.MediaReference, text string) { ref.AltText = text })
	forEach(of.Optional(fieldFocalPoints), "focal point", refs, focalPoint, func(ref *v1alpha1.MediaReference, point *v1alpha1.FocalPoint) { ref.FocalPoint = point })
}

// describeVideo decodes the alt text and focal point of an object's media_id. If a field is missing, ref keeps its
// value.
func describeVideo(of strictjson.Value, ref *v1alpha1.MediaReference) {
	if text := of.Optional(fieldAltText); text.IsSet() {
		ref.AltText = altTextIn(text)
	}
	if point := of.Optional(fieldFocalPoint); point.IsSet() {
		ref.FocalPoint = focalPoint(point)
	}
}

// forEach decodes a list with one item for each of the media, and applies it to refs. An empty list sets the zero value
// for all. Without the list, refs do not change.
func forEach[T any](list strictjson.Value, what string, refs []v1alpha1.MediaReference, item func(strictjson.Value) T, set func(*v1alpha1.MediaReference, T)) {
	if !list.IsSet() {
		return
	}
	items := strictjson.List(list, 0, maxItems, item)
	if len(items) > 0 && len(items) != len(refs) {
		list.Refuse(fmt.Sprintf("has %d items, and media_ids %d; write one %s, or null, for each of the media", len(items), len(refs), what))
		return
	}
	for i := range refs {
		var value T
		if len(items) > 0 {
			value = items[i]
		}
		set(&refs[i], value)
	}
}

func altTextIn(v strictjson.Value) string { return v.OrNull().Text(0, v1alpha1.MaxAltText) }
