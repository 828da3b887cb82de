// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package installation says whose a bucket is. What is in a bucket and belongs to no object
// of the cluster is removed after a while; a second cluster with the same bucket, such as
// one that was made anew from a backup, would remove what is the first one's. So a marker in
// the bucket names the cluster that may remove, and a person names another one.
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

// Key is the key of the marker.
const Key = store.Reserved + "installation.json"

const (
	mimeType = "application/json"
	// mostBytes is how large a marker may be: one of 100 clusters before it has 8 KiB.
	mostBytes = 16 << 10
	// tries is how often the marker is read again after another cluster wrote it at the same
	// time.
	tries = 3
)

// Documents keeps the marker; *store.Store implements it.
type Documents interface {
	ReadDocument(ctx context.Context, key, known string, most int64) (data []byte, etag string, err error)
	PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (string, error)
}

// Marker is what the bucket says of itself.
type Marker struct {
	// Cluster is the identity of the cluster that may remove what is in the bucket.
	Cluster string `json:"cluster"`
	// Since is when it became so.
	Since time.Time `json:"since"`
	// Before is the identity of the cluster that it was taken over from; empty for the first.
	Before string `json:"before,omitempty"`
}

// ForeignBucketError is returned to a cluster that may remove nothing, since the bucket is
// another's.
type ForeignBucketError struct {
	// Cluster may remove, Own is who asked.
	Cluster, Own string
}

// Error implements error.
func (e *ForeignBucketError) Error() string {
	return fmt.Sprintf("the bucket belongs to cluster %s, and this one is %s: nothing in it is removed. If that cluster is gone, or uses the bucket "+
		"no longer, set media.takeOverFrom: %s in the configuration of the manager; otherwise give this installation a bucket of its own",
		e.Cluster, e.Own, e.Cluster)
}

// Bucket is the bucket of this installation. It may be used by many goroutines at once.
type Bucket struct {
	documents Documents
	clock     clock.PassiveClock
	cluster   func(ctx context.Context) (string, error)
	from      string
}

// New returns a Bucket. own returns the identity of this cluster; see Cluster. from is the
// identity of the cluster from which a person takes it over; empty if none does.
func New(documents Documents, own func(ctx context.Context) (string, error), from string, now clock.PassiveClock) *Bucket {
	return &Bucket{documents: documents, cluster: own, from: from, clock: now}
}

// MayDelete returns nil if this installation may remove what it finds without an owner in
// the bucket: the marker is its own, or there is none and it writes one, or it is of the
// cluster from which a person takes over. A marker of another cluster is an *ForeignBucketError.
// Who asks deletes nothing after any error. Without a store there is nothing to delete, and
// no error.
//
// It reads the marker each time: who removes much asks once before each round.
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
		// Another cluster that writes at the same time is found by the next read.
		if err := b.write(ctx, Marker{Cluster: own, Since: b.clock.Now().UTC(), Before: marker.Cluster}, etag); !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
	return errors.New("several clusters mark the bucket as theirs at the same time: nothing in it is removed")
}

// read returns the marker and its etag; both are empty if there is none.
func (b *Bucket) read(ctx context.Context) (marker Marker, etag string, err error) {
	data, etag, err := b.documents.ReadDocument(ctx, Key, "", mostBytes)
	if errors.Is(err, store.ErrNotFound) {
		return Marker{}, "", nil
	}
	if err != nil {
		return Marker{}, "", fmt.Errorf("cannot tell whose the bucket is: %w", err)
	}
	if err := json.Unmarshal(data, &marker); err != nil || marker.Cluster == "" {
		return Marker{}, "", fmt.Errorf("cannot tell whose the bucket is: %s is no marker of Herald's; "+
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
