// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollback detects that a cluster was restored to an earlier state, for example from an etcd snapshot. Restored
// objects keep their UIDs and are older than the published posts, so posts published since the snapshot are scheduled
// again. Nothing inside the cluster shows that.
//
// So the leader counts, every minute and when it starts and stops: first on a Lease in the cluster, then in a document
// in the bucket, which restoring the cluster does not touch. Only after a rollback is the count in the cluster lower
// than the count in the bucket. resourceVersions are evidence as well: they never decrease, and etcdutl makes them jump
// so that no watch misses restored objects.
package rollback

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// revisionJump is the smallest jump in revisions that etcdutl makes when it is called as the Kubernetes documentation
// recommends (--bump-revision 1000000000). A busy cluster makes a thousand revisions per second, so it needs eleven
// days without a count to advance that far.
const revisionJump = 1_000_000_000

// maxRevision exceeds any revision that etcd reaches by counting writes or by jumping. Other stores use the time in
// microseconds or finer as resourceVersion; a fast increase above this number is not evidence.
const maxRevision = 1_000_000_000_000_000

// Rollback describes how the cluster returned to an earlier state.
type Rollback struct {
	// From is the last count of the restored state, or zero if there was none.
	From time.Time `json:"from,omitzero"`
	// DetectedAt is when the rollback was detected, according to the API's clock. Older objects may lack published posts.
	DetectedAt time.Time `json:"noticed"`
	// Evidence describes how the rollback was detected.
	Evidence string `json:"why"`
}

// Count is the counter in one place.
type Count struct {
	// Number increases by one with each count.
	Number int64 `json:"number"`
	// At is the time of the count, according to the Kubernetes API's clock.
	At time.Time `json:"at"`
	// ResourceVersion is the resourceVersion of the Lease with this count. It is not stored on the Lease itself.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// LastRollback is the last rollback, or nil if there was none.
	LastRollback *Rollback `json:"rewound,omitempty"`
}

func parse(data []byte) (Count, error) {
	var c Count
	if err := json.Unmarshal(data, &c); err != nil || c.Number < 1 {
		return Count{}, fmt.Errorf("%.100q is not a count from Herald (%w)", data, cmp.Or(err, errUncounted))
	}
	return c, nil
}

var errUncounted = errors.New("counts begin at 1")

// next returns the count that follows the counts in the cluster and the bucket, and whether the cluster was rolled
// back. A place without a count has the zero Count. Read the bucket before the cluster: if another manager counts in
// between, it can only raise the cluster's count.
func next(cluster, bucket Count, now time.Time) (count Count, rewound bool) {
	count = Count{Number: max(cluster.Number, bucket.Number) + 1, At: now, LastRollback: latest(cluster.LastRollback, bucket.LastRollback)}
	if cluster.Number >= bucket.Number {
		return count, false
	}
	count.LastRollback = &Rollback{From: cluster.At, DetectedAt: now, Evidence: fmt.Sprintf("the cluster has counted to %d, and the bucket to %d", cluster.Number, bucket.Number)}
	return count, true
}

// revisionGap compares a resourceVersion noted in the bucket with the current one. It returns the evidence if only a
// rollback explains the difference, and otherwise "". It also returns "" if they are not numbers, which Kubernetes
// permits for stores other than etcd.
func revisionGap(from, to string) string {
	was, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		return ""
	}
	is, err := strconv.ParseUint(to, 10, 64)
	switch {
	case err != nil:
		return ""
	case is < was:
		return fmt.Sprintf("resourceVersions went back from %d to %d", was, is)
	case is-was >= revisionJump && was < maxRevision:
		return fmt.Sprintf("resourceVersions leapt from %d to %d", was, is)
	}
	return ""
}

func mostAdvanced(a, b Count) Count {
	far := a
	if b.Number > a.Number {
		far = b
	}
	far.LastRollback = latest(a.LastRollback, b.LastRollback)
	return far
}

// latest returns the rollback that was detected later, or nil if there is none.
func latest(a, b *Rollback) *Rollback {
	if a == nil || b != nil && b.DetectedAt.After(a.DetectedAt) {
		return b
	}
	return a
}
