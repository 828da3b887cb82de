// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
)

// observeEvery is the pause between two reads of a held lease.
const observeEvery = time.Second

// Observer reports whether a manager holds a lease, for a process that does not compete for it.
type Observer struct {
	Leases typedcoordinationv1.LeasesGetter
	Clock  clock.Clock
}

// Holder returns the identity of the holder of a lease, or "" if it has none. A named process holds the lease only if
// it renews it. Holder therefore watches the lease for its duration, measured by this process's clock, because the
// times in the lease come from another machine's clock, which may be wrong.
func (o *Observer) Holder(ctx context.Context, name types.NamespacedName) (string, error) {
	seen, err := o.read(ctx, name)
	if err != nil || holderOf(seen) == "" {
		return "", err
	}
	lasts := time.Duration(0)
	if seconds := seen.Spec.LeaseDurationSeconds; seconds != nil {
		lasts = time.Duration(*seconds) * time.Second
	}
	for since := o.Clock.Now(); o.Clock.Since(since) < lasts; {
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("stopped while the lease %s was watched: %w", name, ctx.Err())
		case <-o.Clock.After(observeEvery):
		}
		now, err := o.read(ctx, name)
		switch {
		case err != nil || holderOf(now) == "":
			return "", err
		case renewed(seen, now):
			return holderOf(now), nil
		}
	}
	return "", nil
}

// WaitFree waits up to timeout until a lease has no holder. It returns the last holder, or "" if the lease is free.
// With a timeout of zero it checks once, which takes the duration of the lease.
func (o *Observer) WaitFree(ctx context.Context, name types.NamespacedName, timeout time.Duration) (holder string, err error) {
	for since := o.Clock.Now(); ; {
		holder, err = o.Holder(ctx, name)
		if err != nil || holder == "" || o.Clock.Since(since) >= timeout {
			return holder, err
		}
	}
}

// WaitAllFree is like WaitFree, for several leases at once. It returns a lease that has a holder, and the holder, or "" if
// all leases are free.
func (o *Observer) WaitAllFree(ctx context.Context, names []types.NamespacedName, timeout time.Duration) (name types.NamespacedName, holder string, err error) {
	holders := make([]string, len(names))
	group, watching := errgroup.WithContext(ctx)
	for i := range names {
		group.Go(func() (err error) {
			holders[i], err = o.WaitFree(watching, names[i], timeout)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return types.NamespacedName{}, "", err
	}
	for i, holder := range holders {
		if holder != "" {
			return names[i], holder, nil
		}
	}
	return types.NamespacedName{}, "", nil
}

// read returns the lease, or an empty one if it does not exist.
func (o *Observer) read(ctx context.Context, name types.NamespacedName) (*coordinationv1.Lease, error) {
	found, err := o.Leases.Leases(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &coordinationv1.Lease{}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the lease %s, which shows whether a manager is running: %w", name, err)
	}
	return found, nil
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// renewed reports whether the holder wrote the lease between two reads.
func renewed(before, now *coordinationv1.Lease) bool {
	return holderOf(before) != holderOf(now) || before.UID != now.UID || !before.Spec.RenewTime.Equal(now.Spec.RenewTime)
}
