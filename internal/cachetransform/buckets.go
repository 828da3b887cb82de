// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cachetransform

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// buckets is how many buckets the names of media files fall into. An index by name would
// have an entry for each of the 10,000 files that a post can name, some 200 bytes each;
// one by bucket has at most this many for a post.
const buckets = 256

// names are the names of the buckets.
var names = func() (all [buckets]string) {
	for i := range all {
		all[i] = hex.EncodeToString([]byte{byte(i)})
	}
	return all
}()

// MediaIndex finds posts by the buckets of their Media.
const MediaIndex = "spec.mediaRefs"

// IndexMedia has a cache keep MediaIndex, which a manager may ask for once. The controllers of posts and of media use it.
func IndexMedia(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.Post{}, MediaIndex, func(obj client.Object) []string {
		post, ok := obj.(*v1alpha1.Post)
		if !ok {
			return nil
		}
		return MediaBuckets(post)
	})
	if err != nil {
		return fmt.Errorf("cannot index posts by their media: %w", err)
	}
	return nil
}

// MediaBucket is the bucket that the name of a media file falls into.
func MediaBucket(name string) string { return names[bucketOf(name)] }

func bucketOf(name string) byte {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // it never fails
	sum := hash.Sum32()
	return byte(sum ^ sum>>8 ^ sum>>16 ^ sum>>24) //nolint:gosec // the lowest bits are what is wanted
}

// MediaBuckets are the buckets of all media files that a post names, each once, also of
// a post whose references the cache left out.
func MediaBuckets(post *v1alpha1.Post) []string {
	set, err := hex.DecodeString(post.Annotations[mark])
	if err != nil || len(set) != buckets/8 {
		set = bitsOf(&post.Spec)
	}
	var found []string
	for i := range buckets {
		if set[i/8]&(1<<(i%8)) != 0 {
			found = append(found, names[i])
		}
	}
	return found
}

// HasMediaRefs reports whether a post as the cache has it names all its media files.
func HasMediaRefs(post *v1alpha1.Post) bool { return post.Annotations[mark] == "" }

func bitsOf(spec *v1alpha1.PostSpec) []byte {
	set := make([]byte, buckets/8)
	for name := range mediaOf(spec) {
		b := bucketOf(name)
		set[b/8] |= 1 << (b % 8)
	}
	return set
}

func bucketsOf(spec *v1alpha1.PostSpec) string { return hex.EncodeToString(bitsOf(spec)) }
