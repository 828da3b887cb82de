// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
)

// observeEvery is the pause between two looks at a lease that somebody holds.
const observeEvery = time.Second

// Observer tells whether a manager holds a lease, to a process that does not want it.
type Observer struct {
	Leases typedcoordinationv1.LeasesGetter
	Clock  clock.Clock
}

// Holder returns what the process calls itself that holds a lease, and "" if none does. One
// whose name is on the lease holds it only if it renews it: that is watched for as long as
// the lease lasts, by this process's clock alone. Times in the lease are those of another
// machine, which may go wrong.
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

// WaitFree waits until nobody holds a lease, for so long at most, and returns who holds it
// then; "" if it is free. Without patience it looks once, which takes as long as the lease
// lasts.
func (o *Observer) WaitFree(ctx context.Context, name types.NamespacedName, patience time.Duration) (holder string, err error) {
	for since := o.Clock.Now(); ; {
		holder, err = o.Holder(ctx, name)
		if err != nil || holder == "" || o.Clock.Since(since) >= patience {
			return holder, err
		}
	}
}

// read returns a lease that nobody holds where there is none.
func (o *Observer) read(ctx context.Context, name types.NamespacedName) (*coordinationv1.Lease, error) {
	found, err := o.Leases.Leases(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &coordinationv1.Lease{}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the lease %s, which tells whether a manager runs: %w", name, err)
	}
	return found, nil
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// renewed reports whether a holder wrote the lease between two looks.
func renewed(before, now *coordinationv1.Lease) bool {
	return holderOf(before) != holderOf(now) || before.UID != now.UID || !before.Spec.RenewTime.Equal(now.Spec.RenewTime)
}
