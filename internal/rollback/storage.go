// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/internal/media/store"
)

// The count is stored in two places: on a Lease in the cluster, and in a document in the bucket.

// Annotation is the annotation on the Lease that holds the cluster's count.
const Annotation = "social.herald.dev/count"

// Key returns the key of the document that holds the count for a cluster's Lease.
func Key(cluster string, lease types.NamespacedName) string {
	return store.Reserved + "clock/" + cluster + "/" + lease.Namespace + "/" + lease.Name + ".json"
}

const (
	mimeType = "application/json"
	maxBytes = 16 << 10
)

func (c *Detector) writeBucket(ctx context.Context, key string, count Count, etag string) error {
	data, err := json.Marshal(count)
	if err != nil {
		return err
	}
	if _, err := c.o.Documents.PutDocument(ctx, key, mimeType, append(data, '\n'), etag); err != nil {
		return fmt.Errorf("cannot count in the bucket: %w", err)
	}
	return nil
}

type bucketError struct{ error }

func (e *bucketError) Unwrap() error { return e.error }

// readBucket returns the bucket's count and its etag. Both are zero if there is none.
func (c *Detector) readBucket(ctx context.Context, key string) (Count, string, error) {
	data, etag, err := c.o.Documents.ReadDocument(ctx, key, "", maxBytes)
	if errors.Is(err, store.ErrNotFound) {
		return Count{}, "", nil
	}
	if err != nil {
		return Count{}, "", fmt.Errorf("cannot read the count in the bucket: %w", err)
	}
	count, err := parse(data)
	if err != nil {
		return Count{}, "", fmt.Errorf("%s in the bucket: %w; remove it; if the cluster was restored to an earlier state, check which posts were published since", key, err)
	}
	return count, etag, nil
}

// readLease returns the Lease and its count, or a new Lease. An annotation that cannot be parsed counts as missing.
func (c *Detector) readLease(ctx context.Context) (*coordinationv1.Lease, Count, error) {
	lease := &coordinationv1.Lease{}
	err := c.o.Reader.Get(ctx, c.o.Lease, lease)
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.o.Lease.Namespace, Name: c.o.Lease.Name}}, Count{}, nil
	}
	if err != nil {
		return nil, Count{}, fmt.Errorf("cannot read the cluster's count on lease %s: %w", c.o.Lease, err)
	}
	count, err := parse([]byte(lease.Annotations[Annotation]))
	if err != nil {
		log(ctx).Info("the lease has no count; the cluster's count is taken as zero", "lease", c.o.Lease.String(), "error", err.Error())
		return lease, Count{}, nil
	}
	return lease, count, nil
}

func (c *Detector) writeLease(ctx context.Context, lease *coordinationv1.Lease, count Count) error {
	data, err := json.Marshal(count)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, Annotation, string(data))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: count.At}
	if lease.ResourceVersion == "" {
		err = c.o.Client.Create(ctx, lease)
	} else {
		err = c.o.Client.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("cannot count on lease %s: %w", c.o.Lease, err)
	}
	return nil
}
