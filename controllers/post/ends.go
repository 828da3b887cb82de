// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endsKnown is how long it is believed whether a namespace is being deleted: thousands of its
// posts, which wait for the store, do not ask each for itself.
const endsKnown = 5 * time.Second

// ends knows which namespaces are being deleted.
type ends struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[string]ending
}

// ending is whether a namespace was being deleted when it was read.
type ending struct {
	is bool
	at time.Time
}

func newEnds(o *Options) *ends {
	return &ends{reader: o.APIReader, clock: o.Clock, known: map[string]ending{}}
}

// namespace reports whether a namespace is being deleted, or is gone.
func (e *ends) namespace(ctx context.Context, name string) (bool, error) {
	now := e.clock.Now()
	e.mu.Lock()
	found, ok := e.known[name]
	e.mu.Unlock()
	if ok && now.Sub(found.at) < endsKnown {
		return found.is, nil
	}
	namespace := metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := e.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot read namespace %q: %w", name, err)
	}
	is := apierrors.IsNotFound(err) || !namespace.DeletionTimestamp.IsZero()
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.known, func(_ string, old ending) bool { return now.Sub(old.at) >= endsKnown })
	e.known[name] = ending{is, now}
	return is, nil
}
