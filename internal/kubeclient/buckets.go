// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// mediaBuckets is the number of buckets for media file names. An index by name would have an entry of about 200 bytes
// for each of the 10,000 files that a post can refer to. An index by bucket has at most mediaBuckets entries per post.
const mediaBuckets = 256

var bucketNames = func() (all [mediaBuckets]string) {
	for i := range all {
		all[i] = hex.EncodeToString([]byte{byte(i)})
	}
	return all
}()

// MediaIndex is the index of posts by the buckets of their Media.
const MediaIndex = "spec.mediaRefs"

// IndexMedia adds MediaIndex to a cache, once per manager. The post and media controllers use it.
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

// MediaBucket returns the bucket of a media file name.
func MediaBucket(name string) string { return bucketNames[bucketOf(name)] }

func bucketOf(name string) byte {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // it never fails
	sum := hash.Sum32()
	return byte(sum ^ sum>>8 ^ sum>>16 ^ sum>>24) //nolint:gosec // only the lowest bits are needed
}

// MediaBuckets returns the buckets of a post's media files, even if the cache has dropped its references.
func MediaBuckets(post *v1alpha1.Post) []string {
	set, err := hex.DecodeString(post.Annotations[reducedMark])
	if err != nil || len(set) != mediaBuckets/8 {
		set = bitsOf(&post.Spec)
	}
	var found []string
	for i := range mediaBuckets {
		if set[i/8]&(1<<(i%8)) != 0 {
			found = append(found, bucketNames[i])
		}
	}
	return found
}

// HasMediaRefs reports whether a post from the cache still has all its references to media files.
func HasMediaRefs(post *v1alpha1.Post) bool { return post.Annotations[reducedMark] == "" }

func bitsOf(spec *v1alpha1.PostSpec) []byte {
	set := make([]byte, mediaBuckets/8)
	for ref := range spec.MediaReferences() {
		b := bucketOf(ref.Name)
		set[b/8] |= 1 << (b % 8)
	}
	return set
}

func bucketsOf(spec *v1alpha1.PostSpec) string { return hex.EncodeToString(bitsOf(spec)) }
