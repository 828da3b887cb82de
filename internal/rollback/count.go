// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollback notices that a cluster was put back to an earlier state, such as a
// snapshot of its etcd. Objects have their own UIDs then, and say less than what happened:
// what was published since is scheduled again. Nothing in the cluster can tell.
//
// So the manager that works counts, once a minute and when it begins and ends: first on a
// Lease in the cluster, and then in a document in the bucket, which no restore of the
// cluster puts back. The cluster has never counted less than the bucket, unless it was put
// back. Its resourceVersions tell as well: they do not go back, and etcdutl has them leap so
// that no watch misses what is put back.
package rollback

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// revisionJump is by how much etcdutl lets revisions leap at least, where it is told to as the
// Kubernetes documentation says (--bump-revision 1000000000). A busy cluster makes a
// thousand of them a second, so that it takes eleven days without a count to come as far.
const revisionJump = 1_000_000_000

// maxRevision is more than etcd reaches by counting, or by leaps, since it counts writes.
// Other stores have their resourceVersions say the time, in microseconds or less, so that
// one from there on says nothing by growing fast.
const maxRevision = 1_000_000_000_000_000

// Rollback is a state to which the cluster was put back.
type Rollback struct {
	// From is when that state was counted last; zero if it never was.
	From time.Time `json:"from,omitzero"`
	// DetectedAt is when that was found out, by the clock of the Kubernetes API. What objects
	// from before say may be less than what happened.
	DetectedAt time.Time `json:"noticed"`
	// Evidence names the evidence.
	Evidence string `json:"why"`
}

// Count is how far a place has counted.
type Count struct {
	// Number grows by one with each count.
	Number int64 `json:"number"`
	// At is when it was counted, by the clock of the Kubernetes API.
	At time.Time `json:"at"`
	// ResourceVersion is that of the Lease with this count; the Lease itself does not say it.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// LastRollback is the last rewind; nil if there was none.
	LastRollback *Rollback `json:"rewound,omitempty"`
}

// parse reads a Count.
func parse(data []byte) (Count, error) {
	var c Count
	if err := json.Unmarshal(data, &c); err != nil || c.Number < 1 {
		return Count{}, fmt.Errorf("%.100q is no count of Herald's (%w)", data, cmp.Or(err, errUncounted))
	}
	return c, nil
}

var errUncounted = errors.New("counts begin at 1")

// next is the count that follows what the cluster and the bucket say, and whether the
// cluster was put back. Zero counts are those of places that have none. The bucket is read
// before the cluster, so that another manager that counts in between makes the cluster no
// less.
func next(cluster, bucket Count, now time.Time) (count Count, rewound bool) {
	count = Count{Number: max(cluster.Number, bucket.Number) + 1, At: now, LastRollback: latest(cluster.LastRollback, bucket.LastRollback)}
	if cluster.Number >= bucket.Number {
		return count, false
	}
	count.LastRollback = &Rollback{From: cluster.At, DetectedAt: now, Evidence: fmt.Sprintf("the cluster has counted to %d, and the bucket to %d", cluster.Number, bucket.Number)}
	return count, true
}

// revisionGap says how resourceVersions have gone from one noted in the bucket to one of now, if
// only a cluster that was put back has them go so; "" otherwise, and where they are no
// numbers, which Kubernetes lets other stores than etcd do.
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

// mostAdvanced is the count that is further on, with the last rewind that either of them knows.
func mostAdvanced(a, b Count) Count {
	far := a
	if b.Number > a.Number {
		far = b
	}
	far.LastRollback = latest(a.LastRollback, b.LastRollback)
	return far
}

// latest is the rewind that was noticed later; nil if there is none.
func latest(a, b *Rollback) *Rollback {
	if a == nil || b != nil && b.DetectedAt.After(a.DetectedAt) {
		return b
	}
	return a
}
