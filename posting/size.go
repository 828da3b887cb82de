// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// MaxPost is how many bytes of JSON a new post may take, with its annotations, labels
// and owners: what a team stores is bounded by how many posts it has. Of the platforms
// only Facebook takes more than some thousand characters, and a post to a hundred
// accounts has room for 2,600 each.
const MaxPost = 256 << 10

const (
	// maxObject is how many bytes of JSON a resource may have: etcd refuses
	// more in one request (the default of its --max-request-bytes, 1.5 MiB).
	maxObject = 1536 << 10
	// roomAround is kept for metadata and conditions: four conditions of at
	// most 2,000 bytes, which escaping makes up to six times as many.
	roomAround = 64 << 10
	// roomPerTarget is kept for the entry of a target: message 2 KiB, what is in
	// the way 1.5 KiB, checkpoint 1 KiB, what was prepared 2 KiB, addresses, ids
	// and times 0.75 KiB, and what the API server records of their ownership
	// 0.75 KiB.
	roomPerTarget = 8 << 10
	// roomPerCard is kept for the record of each card of a tree for each target:
	// id and time, and again their ownership.
	roomPerCard = 256
)

// Size returns how many bytes a post takes of what the Kubernetes API can store.
func Size(post *v1alpha1.Post) int {
	return stored(&post.Spec) + stored(&metav1.ObjectMeta{
		Annotations: post.Annotations, Labels: post.Labels, OwnerReferences: post.OwnerReferences, Finalizers: post.Finalizers,
	})
}

// Room returns how many bytes a post may take so that its delivery can be recorded to
// the end: a claim that cannot be stored would keep the post from ever going out. For a
// new post MaxPost holds as well.
func Room(post *v1alpha1.Post) int {
	targets := len(post.Spec.Targets)
	return maxObject - roomAround - targets*(roomPerTarget+Cards(&post.Spec)*roomPerCard)
}

// stored is the size of a value in the API server's JSON, which like this one
// writes <, > and & in six bytes each.
func stored(value any) int {
	data, err := json.Marshal(value)
	if err != nil {
		return 0 // what cannot be encoded is not stored either
	}
	return len(data)
}

// TooLarge reports whether the Kubernetes API refused to store something because
// of its size. It says so in words only: nothing of the kind has a code.
func TooLarge(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max"))
}
