// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// reducedMark is the annotation of a reduced object. For posts, its value lists the buckets; see MediaBuckets.
	reducedMark = "left out: this is a copy in the memory of Herald, not the object"

	// MaxUnreduced is the largest size in bytes of an object that is stored unchanged. It applies to a post's text, and to
	// any object's metadata that is not Herald's. An ordinary post to all platforms is smaller.
	MaxUnreduced = 4 << 10
	// smallRefs is the largest total size in bytes of the media references that a reduced post keeps: 400 of Herald's
	// names.
	smallRefs = 16 << 10

	// heraldPrefix is the prefix of Herald's annotations and labels. maxHeraldBytes limits the stored bytes of each, to
	// many times the size that Herald writes.
	heraldPrefix   = "social.herald.dev/"
	maxHeraldBytes = 16 << 10
)

// IsComplete reports whether an object is unreduced. The API server has the full content of a reduced one.
func IsComplete(obj metav1.Object) bool {
	_, marked := obj.GetAnnotations()[reducedMark]
	return !marked
}

// TransformForCache reduces an object before the manager's cache stores it. A team may have hundreds of maximum-size
// posts that wait for months. The cache stores ordinary objects unchanged, but only those fields of large ones that are
// read while they wait.
//
// A reduced object carries an annotation whose name is invalid in Kubernetes, so the API server rejects it if it is
// written back, and it cannot replace the object. The status of such an object can still be written, since the API
// server ignores everything else in a status write.
//
// The transform drops the managed fields of all kinds, large fields of the kinds that teams create, and most of the
// metadata of posts in metadata watches.
func TransformForCache(obj any) (any, error) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil // the tombstone of a missed deletion
	}
	object.SetManagedFields(nil)
	switch obj := obj.(type) {
	case *v1alpha1.Post:
		transformPost(obj)
	case *metav1.PartialObjectMetadata:
		if obj.Kind == "Post" { // they are counted and labelled
			obj.Annotations, obj.OwnerReferences, obj.Finalizers = nil, nil, nil
			obj.Labels = heraldKeys(obj.Labels)
		}
	case *v1alpha1.Connection, *v1alpha1.Media, *v1alpha1.APIKey, *v1alpha1.OAuthGrant, *v1alpha1.PostSchedule, *v1alpha1.Notifier:
		if IsComplete(object) && foreignMetadata(object) > MaxUnreduced {
			dropMetadata(object, "")
		}
	}
	return obj, nil
}

// TransformForLeader is TransformForCache for a leader that does not deliver the posts: it reduces all of them.
func TransformForLeader(obj any) (any, error) {
	if post, ok := obj.(*v1alpha1.Post); ok && IsComplete(post) {
		post.SetManagedFields(nil)
		reducePost(post)
		return post, nil
	}
	return TransformForCache(obj)
}

func transformPost(post *v1alpha1.Post) {
	if IsComplete(post) && (foreignMetadata(post)+textsOf(&post.Spec) > MaxUnreduced || refsOf(&post.Spec) > smallRefs) {
		reducePost(post)
	}
}

func reducePost(post *v1alpha1.Post) {
	refs := refsOf(&post.Spec)
	buckets := ""
	if refs > smallRefs {
		buckets = bucketsOf(&post.Spec)
		dropRefs(&post.Spec)
	}
	dropTexts(&post.Spec)
	dropMetadata(post, buckets)
}

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

func dropMetadata(object metav1.Object, value string) {
	annotations := heraldKeys(object.GetAnnotations())
	annotations[reducedMark] = value
	object.SetAnnotations(annotations)
	object.SetLabels(heraldKeys(object.GetLabels()))
	object.SetOwnerReferences(nil)
}

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
	for ref := range spec.MediaReferences() {
		bytes += len(ref.AltText)
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
	for ref := range spec.MediaReferences() {
		ref.AltText = ""
	}
}

func refsOf(spec *v1alpha1.PostSpec) (bytes int) {
	const header = 16 // of a string in memory
	for ref := range spec.MediaReferences() {
		bytes += header + len(ref.Name)
	}
	return bytes
}

func dropRefs(spec *v1alpha1.PostSpec) {
	spec.Image = nil
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			spec.Tree.Cards[i].MediaRefs = nil
		}
	}
}
