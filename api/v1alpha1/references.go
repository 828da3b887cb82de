// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "iter"

// MediaReferences returns pointers to the post's references to media files, in order. Callers may modify the
// references.
func (spec *PostSpec) MediaReferences() iter.Seq[*MediaReference] {
	return func(yield func(*MediaReference) bool) {
		all := func(refs []MediaReference) bool {
			for i := range refs {
				if !yield(&refs[i]) {
					return false
				}
			}
			return true
		}
		if spec.Image != nil && !all(spec.Image.MediaRefs) || spec.Video != nil && !yield(&spec.Video.MediaRef) || spec.Tree == nil {
			return
		}
		for i := range spec.Tree.Cards {
			if !all(spec.Tree.Cards[i].MediaRefs) {
				return
			}
		}
	}
}
