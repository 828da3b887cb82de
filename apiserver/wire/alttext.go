// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// Version 2 has the alt texts of a post's files: alt_texts belongs to media_ids, in the same order, and alt_text to
// media_id.
const (
	fieldAltTexts = "alt_texts"
	fieldAltText  = "alt_text"
)

// CreatePostV2 is CreatePost for version 2.
func CreatePostV2(body strictjson.Value) (bridge.CreatePost, error) {
	out := createPost(body, cardV2, targetReaderV2)
	switch spec := &out.Spec; {
	case spec.Image != nil:
		altTexts(body, spec.Image.MediaRefs)
	case spec.Video != nil:
		altText(body, &spec.Video.MediaRef)
	case spec.Category == "":
		accept(body, fieldAltTexts, fieldAltText)
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
	altTexts(v, out.MediaRefs)
	return out
}

// altTexts decodes the alt texts of an object's media_ids. Null and "" leave the text to the Media, and so does an empty
// list for all. Without the field, refs keep theirs.
func altTexts(of strictjson.Value, refs []v1alpha1.MediaReference) {
	list := of.Optional(fieldAltTexts)
	if !list.IsSet() {
		return
	}
	texts := strictjson.List(list, 0, maxItems, altTextIn)
	if len(texts) > 0 && len(texts) != len(refs) {
		list.Refuse(fmt.Sprintf("has %d items, and media_ids %d; write one alt text, or null, for each of the media", len(texts), len(refs)))
		return
	}
	for i := range refs {
		refs[i].AltText = ""
		if len(texts) > 0 {
			refs[i].AltText = texts[i]
		}
	}
}

// altText decodes the alt text of an object's media_id. Without the field, ref keeps its own.
func altText(of strictjson.Value, ref *v1alpha1.MediaReference) {
	if text := of.Optional(fieldAltText); text.IsSet() {
		ref.AltText = altTextIn(text)
	}
}

func altTextIn(v strictjson.Value) string { return v.OrNull().Text(0, v1alpha1.MaxAltText) }

// appendAltTexts appends the alt texts of files, in their order, with null for a file whose own text applies.
func appendAltTexts(b []byte, refs []v1alpha1.MediaReference) []byte {
	return appendList(b, refs, func(b []byte, ref *v1alpha1.MediaReference) []byte { return appendStringOrNull(b, ref.AltText) })
}
