// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Watch detects that a manager has started again.
type Watch struct {
	Observer

	// Find returns the leases that a manager may hold.
	Find func(ctx context.Context) ([]types.NamespacedName, error)

	snapshot map[types.NamespacedName]*coordinationv1.Lease
}

// Snapshot records the leases while they have no holder.
func (w *Watch) Snapshot(ctx context.Context) (err error) {
	w.snapshot, err = w.leases(ctx)
	return err
}

// NewHolder returns the process that has acquired or renewed a lease since Snapshot, or "". Unlike WaitFree, it returns
// immediately, because a starting manager writes the lease before anything else.
func (w *Watch) NewHolder(ctx context.Context) (holder string, err error) {
	now, err := w.leases(ctx)
	if err != nil {
		return "", err
	}
	for name, found := range now {
		before := w.snapshot[name]
		if before == nil {
			before = &coordinationv1.Lease{}
		}
		if holder := holderOf(found); holder != "" && renewed(before, found) {
			return holder, nil
		}
	}
	return "", nil
}

func (w *Watch) leases(ctx context.Context) (map[types.NamespacedName]*coordinationv1.Lease, error) {
	names, err := w.Find(ctx)
	if err != nil {
		return nil, err
	}
	found := map[types.NamespacedName]*coordinationv1.Lease{}
	for _, name := range names {
		if found[name], err = w.read(ctx, name); err != nil {
			return nil, err
		}
	}
	return found, nil
}
