// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cachetransform says what the manager's cache keeps of an object. A team may store
// hundreds of posts of the largest size, which wait for months: the cache keeps ordinary
// objects as they are, and of large ones only what is read while they wait.
//
// An object of which something was left out is marked by an annotation whose name no
// object of Kubernetes can have. Therefore the API server refuses it, should it ever be
// written back: it cannot take the place of the object. The status of a marked object can
// be written, since the API server takes nothing else from such a write.
package cachetransform

import (
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// mark is the annotation of an object of which something was left out. Its value
	// says more for posts; see MediaBuckets.
	mark = "left out: this is a copy in the memory of Herald, not the object"

	// Small is how many bytes of texts a post, and of foreign metadata any object, may
	// have to be kept as it is: those of an ordinary post to all platforms.
	Small = 4 << 10
	// smallRefs is how many bytes the references to media files of a large post may take
	// to be kept: 400 files by the names that Herald gives.
	smallRefs = 16 << 10

	// heraldPrefix is what the names of Herald's annotations and labels begin with, and maxHeraldBytes how
	// many bytes of each are kept: many times what Herald writes.
	heraldPrefix   = "social.herald.dev/"
	maxHeraldBytes = 16 << 10
)

// IsComplete reports whether an object is as the API server has it. One that is not must be
// read from there before its content counts.
func IsComplete(obj metav1.Object) bool {
	_, marked := obj.GetAnnotations()[mark]
	return !marked
}

// Transform is what the cache does to each object before it keeps it. Of all kinds it
// leaves out the record of who wrote which field; of what teams make, what is large.
func Transform(obj any) (any, error) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil // the note of a deletion that was missed
	}
	object.SetManagedFields(nil)
	switch obj := obj.(type) {
	case *v1alpha1.Post:
		transformPost(obj)
	case *v1alpha1.Connection, *v1alpha1.Media, *v1alpha1.APIKey, *v1alpha1.OAuthGrant:
		if IsComplete(object) && foreignMetadata(object) > Small {
			dropMetadata(object, "")
		}
	}
	return obj, nil
}

func transformPost(post *v1alpha1.Post) {
	refs := refsOf(&post.Spec)
	if !IsComplete(post) || foreignMetadata(post)+textsOf(&post.Spec) <= Small && refs <= smallRefs {
		return
	}
	buckets := ""
	if refs > smallRefs {
		buckets = bucketsOf(&post.Spec)
		dropRefs(&post.Spec)
	}
	dropTexts(&post.Spec)
	dropMetadata(post, buckets)
}

// foreignMetadata is how many bytes the metadata takes that Herald does not read.
func foreignMetadata(object metav1.Object) (bytes int) {
	for name, value := range object.GetAnnotations() {
		bytes += len(name) + len(value)
	}
	for name, value := range object.GetLabels() {
		bytes += len(name) + len(value)
	}
	for _, owner := range object.GetOwnerReferences() {
		bytes += len(owner.APIVersion) + len(owner.Kind) + len(owner.Name) + len(owner.UID)
	}
	return bytes
}

// dropMetadata leaves out what is not Herald's, and marks the object.
func dropMetadata(object metav1.Object, value string) {
	annotations := heraldKeys(object.GetAnnotations())
	annotations[mark] = value
	object.SetAnnotations(annotations)
	object.SetLabels(heraldKeys(object.GetLabels()))
	object.SetOwnerReferences(nil)
}

// heraldKeys are those annotations or labels that are Herald's.
func heraldKeys(all map[string]string) map[string]string {
	kept, bytes := map[string]string{}, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(name, heraldPrefix) {
			continue
		}
		if bytes += len(name) + len(all[name]); bytes > maxHeraldBytes {
			break
		}
		kept[name] = all[name]
	}
	return kept
}

// textsOf is how many bytes the texts of a post take.
func textsOf(spec *v1alpha1.PostSpec) (bytes int) {
	for i := range spec.Targets {
		t := &spec.Targets[i]
		bytes += len(t.Caption)
		if t.YouTube != nil {
			bytes += len(t.YouTube.Title)
		}
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			bytes += len(spec.Tree.Cards[i].Caption)
		}
	}
	return bytes
}

func dropTexts(spec *v1alpha1.PostSpec) {
	for i := range spec.Targets {
		spec.Targets[i].Caption, spec.Targets[i].YouTube = "", nil
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			spec.Tree.Cards[i].Caption = ""
		}
	}
}

// refsOf is how many bytes the references of a post to media files take.
func refsOf(spec *v1alpha1.PostSpec) (bytes int) {
	const header = 16 // of a string in memory
	for name := range mediaOf(spec) {
		bytes += header + len(name)
	}
	return bytes
}

// mediaOf are the names of the media files that a post names, in its order.
func mediaOf(spec *v1alpha1.PostSpec) iter.Seq[string] {
	return func(yield func(string) bool) {
		lists := make([][]v1alpha1.LocalReference, 0, 2)
		if spec.Image != nil {
			lists = append(lists, spec.Image.MediaRefs)
		}
		if spec.Video != nil {
			lists = append(lists, []v1alpha1.LocalReference{spec.Video.MediaRef})
		}
		if spec.Tree != nil {
			for i := range spec.Tree.Cards {
				lists = append(lists, spec.Tree.Cards[i].MediaRefs)
			}
		}
		for _, list := range lists {
			for i := range list {
				if !yield(list[i].Name) {
					return
				}
			}
		}
	}
}

func dropRefs(spec *v1alpha1.PostSpec) {
	spec.Image = nil
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			spec.Tree.Cards[i].MediaRefs = nil
		}
	}
}
