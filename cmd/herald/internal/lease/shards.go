// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shardsAnnotation is the number of shards that the leader is configured with: "<number>@<acquireTime>". An older
// manager that becomes the leader keeps the annotation, but acquires the lease at another time.
const shardsAnnotation = "social.herald.dev/shards"

// stateShards states the number of shards in a lease before it is written. A leader with one shard states none.
func stateShards(lease *coordinationv1.Lease, shards int) {
	delete(lease.Annotations, shardsAnnotation)
	if shards > 1 && holderOf(lease) != "" {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, shardsAnnotation, strconv.Itoa(shards)+"@"+acquired(lease))
	}
}

// StatedShards returns the number of shards that a leader's lease states, or 0 if it states none. It reports false if
// nobody holds the lease.
func StatedShards(lease *coordinationv1.Lease) (shards int, known bool) {
	if holderOf(lease) == "" {
		return 0, false
	}
	number, at, _ := strings.Cut(lease.Annotations[shardsAnnotation], "@")
	if at != acquired(lease) {
		return 0, true
	}
	shards, err := strconv.Atoi(number)
	return shards, err == nil
}

// acquired returns the time when the holder acquired a lease, as the API server stores it.
func acquired(lease *coordinationv1.Lease) string {
	if lease.Spec.AcquireTime == nil {
		return ""
	}
	return lease.Spec.AcquireTime.UTC().Format(metav1.RFC3339Micro)
}
