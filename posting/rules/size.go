// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// size refuses a post that is so large that what becomes of it could not be
// stored beside it.
func size(post *v1alpha1.Post, spec *field.Path) field.ErrorList {
	bytes, most := posting.Size(post)
	if bytes <= most {
		return nil
	}
	path, texts := spec.Child("targets"), "captions"
	if post.Spec.Category == v1alpha1.CategoryTree {
		path, texts = spec.Child("tree", "cards"), "cards"
	}
	if most <= 0 {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			"what becomes of so many cards at so many targets cannot be stored; make several posts with fewer targets each")}
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{},
		fmt.Sprintf("the post takes %d bytes to store, of which each <, > and & takes 6, and at most %d fit; shorten the %s, or make several posts with fewer targets each",
			bytes, most, texts))}
}
