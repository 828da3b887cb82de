// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollback detects that a cluster was restored to an earlier state, such as a snapshot of etcd. Restored
// objects keep their UIDs and are older than the published posts, so that posts published since the snapshot are
// scheduled again. Nothing inside the cluster shows that.
//
// So the leader counts, every minute and when it starts and stops: first on a Lease in the cluster, then in a document
// in the bucket, which a restore of the cluster leaves alone. The cluster's count is lower than the bucket's only after
// a rollback. resourceVersions are evidence as well: they never decrease, and etcdutl makes them jump so that no watch
// misses restored objects.
package rollback

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// revisionJump is the smallest jump of revisions that etcdutl makes when it is called as the Kubernetes documentation
// recommends (--bump-revision 1000000000). A busy cluster makes a thousand revisions per second, so that it takes
// eleven days without a count to advance as far.
const revisionJump = 1_000_000_000

// maxRevision exceeds any revision that etcd reaches by counting writes or by jumps. Other stores use the time in
// microseconds or finer as resourceVersion; a fast increase above this number is no evidence.
const maxRevision = 1_000_000_000_000_000

// Rollback describes the return of the cluster to an earlier state.
type Rollback struct {
	// From is the last count of the restored state; zero if it was never counted.
	From time.Time `json:"from,omitzero"`
	// DetectedAt is when the rollback was detected, by the clock of the Kubernetes API. Objects older than that may
	// lack published posts.
	DetectedAt time.Time `json:"noticed"`
	// Evidence describes the evidence.
	Evidence string `json:"why"`
}

// Count is the counter of one place.
type Count struct {
	// Number grows by one with each count.
	Number int64 `json:"number"`
	// At is the time of the count, by the clock of the Kubernetes API.
	At time.Time `json:"at"`
	// ResourceVersion is the resourceVersion of the Lease with this count; it is not stored on the Lease itself.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// LastRollback is the last rollback; nil if there was none.
	LastRollback *Rollback `json:"rewound,omitempty"`
}

// parse parses a Count.
func parse(data []byte) (Count, error) {
	var c Count
	if err := json.Unmarshal(data, &c); err != nil || c.Number < 1 {
		return Count{}, fmt.Errorf("%.100q is no count of Herald's (%w)", data, cmp.Or(err, errUncounted))
	}
	return c, nil
}

var errUncounted = errors.New("counts begin at 1")

// next returns the count that follows the cluster's and the bucket's, and whether the cluster was rolled back. A place
// without a count has the zero Count. Read the bucket before the cluster: another manager that counts in between can
// then only raise the cluster's count.
func next(cluster, bucket Count, now time.Time) (count Count, rewound bool) {
	count = Count{Number: max(cluster.Number, bucket.Number) + 1, At: now, LastRollback: latest(cluster.LastRollback, bucket.LastRollback)}
	if cluster.Number >= bucket.Number {
		return count, false
	}
	count.LastRollback = &Rollback{From: cluster.At, DetectedAt: now, Evidence: fmt.Sprintf("the cluster has counted to %d, and the bucket to %d", cluster.Number, bucket.Number)}
	return count, true
}

// revisionGap compares a resourceVersion noted in the bucket with the present one. It returns the evidence if only a
// rollback explains the difference, and "" otherwise, or if they are not numbers, which Kubernetes permits for stores
// other than etcd.
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

// mostAdvanced returns the higher count, with the last rollback of either.
func mostAdvanced(a, b Count) Count {
	far := a
	if b.Number > a.Number {
		far = b
	}
	far.LastRollback = latest(a.LastRollback, b.LastRollback)
	return far
}

// latest returns the rollback that was detected later; nil if there is none.
func latest(a, b *Rollback) *Rollback {
	if a == nil || b != nil && b.DetectedAt.After(a.DetectedAt) {
		return b
	}
	return a
}
