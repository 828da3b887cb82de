// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// ValidateSize checks only the size of a post, regardless of its state, because cancelled posts take up storage too.
// stored is the post in the Kubernetes API, or nil for a new one.
func ValidateSize(post, stored *v1alpha1.Post) field.ErrorList {
	v := validation{post: post, env: Env{Stored: stored}}
	return v.size(field.NewPath("spec"))
}

// size rejects a post that is too large or does not leave room for its delivery status. A stored post may keep its
// size.
func (v *validation) size(spec *field.Path) field.ErrorList {
	view := posting.Of(v.post)
	bytes, room, allowed := view.Size(), view.MaxStorableSize(), posting.MaxPost
	if v.env.Stored != nil {
		allowed = max(allowed, posting.Of(v.env.Stored).Size())
	}
	most := min(room, allowed)
	if bytes <= most {
		return nil
	}
	path, texts := spec.Child("targets"), "captions"
	if v.post.Spec.Category == v1alpha1.CategoryTree {
		path, texts = spec.Child("tree", "cards"), "cards"
	}
	if most <= 0 {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			"the outcomes of this many cards and targets cannot be stored; create several posts with fewer targets each")}
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
		"the post takes %d bytes to store, with its annotations and each <, > and & as 6, and a post may take at most %d; "+
			"shorten the %s, or create several posts with fewer targets each", bytes, most, texts))}
}
