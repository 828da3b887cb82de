// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package installation holds the state of a whole installation: who owns its bucket, and whether it is suspended.
//
// Files that do not belong to an object in the cluster are removed from the bucket after a while. A second cluster with
// the same bucket, for example one restored from a backup, would remove the first one's files. So a marker in the
// bucket contains the id of the cluster that may remove files, and only an administrator can change it.
package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/media/store"
)

// Key is the marker's key.
const Key = store.Reserved + "installation.json"

const (
	mimeType = "application/json"
	// maxBytes is the maximum size of a marker. After 100 previous clusters it takes 8 KiB.
	maxBytes = 16 << 10
	// tries limits how often the marker is read when other clusters write it at the same time.
	tries = 3
)

// Documents stores the marker; *store.Store implements it.
type Documents interface {
	ReadDocument(ctx context.Context, key, known string, most int64) (data []byte, etag string, err error)
	PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (string, error)
}

// Marker is the content of the marker file.
type Marker struct {
	// Cluster is the identity of the cluster that may remove files from the bucket.
	Cluster string `json:"cluster"`
	// Since is when the cluster became the owner.
	Since time.Time `json:"since"`
	// Before is the identity of the previous owner, or empty for the first one.
	Before string `json:"before,omitempty"`
}

// ForeignBucketError is returned to a cluster that must not remove anything, because the bucket belongs to another
// cluster.
type ForeignBucketError struct {
	// Cluster is the owner, Own the caller.
	Cluster, Own string
}

// Error implements error.
func (e *ForeignBucketError) Error() string {
	return fmt.Sprintf("the bucket belongs to cluster %s, and this one is %s: nothing in it is removed. If that cluster is gone, or uses the bucket "+
		"no longer, set media.takeOverFrom: %s in the configuration of the manager; otherwise give this installation its own bucket",
		e.Cluster, e.Own, e.Cluster)
}

// Bucket is this installation's bucket. It is safe for concurrent use.
type Bucket struct {
	documents Documents
	clock     clock.PassiveClock
	cluster   func(ctx context.Context) (string, error)
	from      string
}

// New returns a Bucket. own returns this cluster's identity; see Cluster. from is the identity of the cluster from
// which a user takes over the bucket, or empty if there is none.
func New(documents Documents, own func(ctx context.Context) (string, error), from string, now clock.PassiveClock) *Bucket {
	return &Bucket{documents: documents, cluster: own, from: from, clock: now}
}

// MayDelete returns nil if this installation may remove files without an owner from the bucket: the marker contains
// this cluster, or there is none and MayDelete writes one, or it contains the cluster that the administrator configured
// to take over from. If another cluster owns the bucket, the error is a *ForeignBucketError. After any error, the
// caller must not delete anything. Without a store there is nothing to delete, and no error.
//
// It reads the marker each time, so a caller that removes many files calls it once per round.
func (b *Bucket) MayDelete(ctx context.Context) error {
	own, err := b.cluster(ctx)
	if err != nil {
		return err
	}
	for range tries {
		marker, etag, err := b.read(ctx)
		switch {
		case errors.Is(err, store.ErrNone):
			return nil
		case err != nil:
			return err
		case marker.Cluster == own:
			return nil
		case marker.Cluster != "" && marker.Cluster != b.from:
			return &ForeignBucketError{Cluster: marker.Cluster, Own: own}
		}
		// If another cluster writes at the same time, the next read finds it.
		if err := b.write(ctx, Marker{Cluster: own, Since: b.clock.Now().UTC(), Before: marker.Cluster}, etag); !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
	return errors.New("several clusters mark the bucket as theirs at the same time: nothing in it is removed")
}

func (b *Bucket) read(ctx context.Context) (marker Marker, etag string, err error) {
	data, etag, err := b.documents.ReadDocument(ctx, Key, "", maxBytes)
	if errors.Is(err, store.ErrNotFound) {
		return Marker{}, "", nil
	}
	if err != nil {
		return Marker{}, "", fmt.Errorf("cannot read the owner of the bucket: %w", err)
	}
	if err := json.Unmarshal(data, &marker); err != nil || marker.Cluster == "" {
		return Marker{}, "", fmt.Errorf("cannot read the owner of the bucket: %s is not one of Herald's markers; "+
			"remove it if the bucket is this installation's (%w)", Key, errors.Join(err, errUnnamed))
	}
	return marker, etag, nil
}

var errUnnamed = errors.New("it must name a cluster")

func (b *Bucket) write(ctx context.Context, marker Marker, etag string) error {
	data, err := json.Marshal(marker)
	if err != nil {
		return err
	}
	_, err = b.documents.PutDocument(ctx, Key, mimeType, append(data, '\n'), etag)
	if err != nil && !errors.Is(err, store.ErrChanged) {
		return fmt.Errorf("cannot mark the bucket as this cluster's: %w", err)
	}
	return err //nolint:wrapcheck // MayDelete reads again
}
