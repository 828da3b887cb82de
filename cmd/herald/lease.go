// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// leaseLock is the lease that the leader holds. Its client gives up early enough for
// another try before the lease is lost.
func leaseLock(cluster kubernetes, c *configv1alpha1.ManagerConfiguration, identity string) (*watchedLock, error) {
	config := rest.CopyConfig(cluster.Config)
	config.Timeout = c.LeaderElection.RenewDeadline.Duration / 2
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &watchedLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: cluster.namespace, Name: c.ReleaseName + "-manager"},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		lasts: c.LeaderElection.LeaseDuration.Duration, clock: clock.RealClock{},
	}, nil
}

// lateLease is for how long after the end of its lease a leader may live on: by then
// the election has ended a process that works. client-go's own check uses the same.
const lateLease = 20 * time.Second

// watchedLock is a lock that knows whether a leader has outlived its lease. A process
// whose election hangs would stay leader in its own eyes; the liveness probe ends it.
type watchedLock struct {
	resourcelock.Interface

	lasts time.Duration
	clock clock.PassiveClock

	mu sync.Mutex
	// renewed is when this process last wrote that it leads; zero if it does not lead.
	renewed time.Time
}

// Create implements resourcelock.Interface.
func (l *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, l.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (l *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, l.Interface.Update(ctx, record))
}

// Get implements resourcelock.Interface.
func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.set(time.Time{})
	}
	return record, raw, err
}

// note takes what was written, unless it failed.
func (l *watchedLock) note(record resourcelock.LeaderElectionRecord, err error) error {
	switch {
	case err != nil:
	case record.HolderIdentity == l.Identity():
		l.set(l.clock.Now())
	default:
		l.set(time.Time{})
	}
	return err
}

func (l *watchedLock) set(renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = renewed
}

// Check implements healthz.Checker: it fails in a leader whose lease has ended and that
// works on.
func (l *watchedLock) Check(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return nil
	}
	if past := l.clock.Since(l.renewed) - l.lasts; past > lateLease {
		return fmt.Errorf("the lease ended %s ago, and this process still leads", past)
	}
	return nil
}
