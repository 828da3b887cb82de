// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota stores each team's usage in its Usages, and finds the team that owns a namespace. Several processes
// write a Usage with optimistic concurrency, so that no race exceeds a limit.
package quota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// conflictBackoff is the backoff for a write to a Usage after a conflict. Each conflict means that another request made
// progress, and a full Usage is no longer written, so its limit also bounds the conflicts. The pauses of 2 to 12 ms are
// jittered, so that many writers do not collide again.
var conflictBackoff = wait.Backoff{Duration: 2 * time.Millisecond, Jitter: 5, Steps: 200}

// API reads and writes Usages in the Kubernetes API, without a cache. Its errors can be checked with
// k8s.io/apimachinery/pkg/api/errors.
type API interface {
	Get(ctx context.Context, namespace, name string) (*v1alpha1.Usage, error)
	Create(ctx context.Context, usage *v1alpha1.Usage) (*v1alpha1.Usage, error)
	// UpdateStatus stores a status. It returns a conflict if the Usage was written since it was read.
	UpdateStatus(ctx context.Context, usage *v1alpha1.Usage) (*v1alpha1.Usage, error)
}

// UsageStore stores Usages. It is safe for concurrent use, even by several processes. Its errors wrap an error of the
// API.
type UsageStore struct {
	api API
	// writers admits one writer of a Usage at a time, so that the requests of one process do not conflict with each
	// other: without it, n simultaneous requests need up to n²/2 writes. A Usage's key selects its semaphore.
	writers [64]*semaphore.Weighted
	seed    maphash.Seed
}

// NewUsageStore returns a UsageStore.
func NewUsageStore(api API) *UsageStore {
	s := &UsageStore{api: api, seed: maphash.MakeSeed()}
	for i := range s.writers {
		s.writers[i] = semaphore.NewWeighted(1)
	}
	return s
}

// Name returns the name of a team's Usage for a counter.
func Name(counter *v1alpha1.UsageSpec) string {
	name := counter.Resource
	if counter.Period != "" {
		name += "-" + counter.Period
	}
	if counter.Account != "" {
		sum := sha256.Sum256([]byte(counter.Account))
		name += "-" + hex.EncodeToString(sum[:8])
	}
	return name
}

// Read returns a stored Usage, or an empty one if there is none.
func (s *UsageStore) Read(ctx context.Context, namespace string, counter v1alpha1.UsageSpec) (*v1alpha1.Usage, error) {
	stored, err := s.api.Get(ctx, namespace, Name(&counter))
	switch {
	case apierrors.IsNotFound(err):
		return &v1alpha1.Usage{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name(&counter)}, Spec: counter}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read Usage %s/%s: %w", namespace, Name(&counter), err)
	case stored.Spec != counter:
		return nil, fmt.Errorf("cannot use Usage %s/%s: it counts %+v, not %+v, so that Herald did not create it; delete it",
			namespace, stored.Name, stored.Spec, counter)
	default:
		return stored, nil
	}
}

// Amend changes or creates a Usage, if there is anything to store. After a conflict, it calls change again. change must
// not use the store, and should be fast: other writers wait for it.
func (s *UsageStore) Amend(ctx context.Context, namespace string, counter v1alpha1.UsageSpec, change func(*v1alpha1.Usage) error) error {
	key := types.NamespacedName{Namespace: namespace, Name: Name(&counter)}
	writer := s.writers[maphash.Comparable(s.seed, key)%uint64(len(s.writers))]
	if err := writer.Acquire(ctx, 1); err != nil {
		return err
	}
	defer writer.Release(1)
	var fatal error
	err := wait.ExponentialBackoffWithContext(ctx, conflictBackoff, func(ctx context.Context) (done bool, err error) {
		done, fatal = s.amendOnce(ctx, namespace, counter, change)
		return done, fatal
	})
	switch {
	case fatal != nil:
		return fatal
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("cannot write Usage %s: other processes changed it each time; try again", key)
	default:
		return nil
	}
}

func (s *UsageStore) amendOnce(ctx context.Context, namespace string, counter v1alpha1.UsageSpec, change func(*v1alpha1.Usage) error) (done bool, err error) {
	stored, err := s.Read(ctx, namespace, counter)
	if err != nil {
		return false, err
	}
	next := stored.DeepCopy()
	if err := change(next); err != nil {
		return false, err
	}
	if v1alpha1.SemanticEqual(stored.Status.Entries, next.Status.Entries) {
		return true, nil
	}
	if stored.ResourceVersion == "" {
		created, err := s.api.Create(ctx, stored)
		if apierrors.IsAlreadyExists(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot create Usage %s/%s: %w", namespace, stored.Name, err)
		}
		next.ObjectMeta = created.ObjectMeta
	}
	switch _, err := s.api.UpdateStatus(ctx, next); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot write Usage %s/%s: %w", namespace, next.Name, err)
	default:
		return true, nil
	}
}

type manager struct {
	reader client.Reader
	writer client.Client
}

// NewAPI returns an API that reads from reader, which must not be a cache.
func NewAPI(reader client.Reader, writer client.Client) API { return &manager{reader, writer} }

func (m *manager) Get(ctx context.Context, namespace, name string) (*v1alpha1.Usage, error) {
	found := &v1alpha1.Usage{}
	return found, m.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found)
}

func (m *manager) Create(ctx context.Context, usage *v1alpha1.Usage) (*v1alpha1.Usage, error) {
	created := usage.DeepCopy()
	return created, m.writer.Create(ctx, created)
}

func (m *manager) UpdateStatus(ctx context.Context, usage *v1alpha1.Usage) (*v1alpha1.Usage, error) {
	updated := usage.DeepCopy()
	return updated, m.writer.Status().Update(ctx, updated)
}
