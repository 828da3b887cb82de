// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease implements the leading manager's lease.
//
// A post's claim, not the lease, prevents two managers from publishing it twice. The lease only decides which manager
// works, and it must change hands quickly. client-go's election polls the lease every few seconds, releases it after
// the process has stopped working, and terminates a process that cannot renew it, even during calls to platforms. This
// lock releases the lease as soon as a shutdown starts, shuts down gracefully if the lease cannot be renewed, and
// watches the lease while waiting for it.
package lease

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedrbacv1 "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// overdue is how long a leader may outlive its lease. By then the election has stopped a healthy process. client-go's
// own check uses the same value.
const overdue = 20 * time.Second

// tries is the number of requests that must fit into the renew deadline: a write, a read after it, and a margin that
// lets the watchdog act first.
const tries = 3

// Lock is one process's lease. Its check detects a leader that has outlived the lease: a process whose election hangs
// would still consider itself the leader, and the liveness probe restarts it.
type Lock struct {
	resourcelock.Interface

	// watch returns the changes to the lease, starting with its current state.
	watch    func(context.Context) (watch.Interface, error)
	duration time.Duration
	clock    clock.WithDelayedExecution

	// renewDeadline is how long a leader tries to renew the lease before it calls stop.
	renewDeadline time.Duration
	stop          func()

	// writing is held while the lease is read or written.
	writing sync.Mutex

	// sight is the last record of another holder, and when Get saw it first. Only the election calls Get.
	sight struct {
		record resourcelock.LeaderElectionRecord
		at     time.Time
	}

	mu sync.Mutex
	// renewed is when this process last wrote the lease as leader, or zero if it does not lead.
	renewed time.Time
	// ended is set once the lease has been released or lost. After that, it is not renewed. The election still considers
	// this process the leader until the process exits.
	ended bool
	// holds is true while the lease may name this process as holder.
	holds    bool
	watchdog clock.Timer
}

// Options configures a Lock. All fields are required.
type Options struct {
	// Config reaches the Kubernetes API.
	Config *rest.Config
	// Name is the name of the lease.
	Name types.NamespacedName
	// Identity is the holder identity of this process.
	Identity string
	// Role is the cluster role of the release. It owns the lease, so that uninstalling Herald deletes the lease.
	Role string
	// Shards is the configured number of shards. The leader's lease states it if it is above 1.
	Shards int
	// Times configures the election.
	Times configv1alpha1.LeaderElection
	// Stop starts shutting the process down. It is called when the lease cannot be renewed.
	Stop  func()
	Clock clock.WithDelayedExecution
}

// New returns a lock for the lease.
func New(o Options) (*Lock, error) {
	config := rest.CopyConfig(o.Config)
	// Use separate connections: a broken shared HTTP/2 connection would be detected only after the lease has expired.
	config.NextProtos = []string{"http/1.1"}
	watches, err := typedcoordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client to watch the lease: %w", err)
	}
	// A write and a read after it time out before the renew deadline.
	config.Timeout = o.Times.RenewDeadline.Duration / tries
	leases, err := typedcoordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the lease: %w", err)
	}
	roles, err := typedrbacv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the role that owns the lease: %w", err)
	}
	return &Lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.Name.Namespace, Name: o.Name.Name},
			Client:     owned{LeasesGetter: leases, roles: roles, role: o.Role, shards: o.Shards},
			LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
		},
		watch: func(ctx context.Context) (watch.Interface, error) {
			return watches.Leases(o.Name.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, o.Name.Name).String()})
		},
		duration: o.Times.LeaseDuration.Duration, clock: o.Clock,
		renewDeadline: o.Times.RenewDeadline.Duration - o.Times.RetryPeriod.Duration, stop: o.Stop,
	}, nil
}

// Create implements resourcelock.Interface.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.hasEnded() {
		return nil
	}
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface. It does nothing once the lease has been released or lost, because the
// election is unaware of that and must not acquire the lease again.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.hasEnded() {
		return nil
	}
	if err := l.write(ctx, record, l.Interface.Update); err != nil && !l.hasEnded() {
		return err
	}
	return nil
}

// write writes the record with the current time. The election sets its time before the request, which may take a long
// time.
func (l *Lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, to func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	now := l.clock.Now()
	record.RenewTime = metav1.NewTime(now)
	if !l.leads() {
		record.AcquireTime = record.RenewTime
	}
	if err := to(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity == l.Identity() {
		l.set(now, true)
	} else {
		l.set(time.Time{}, false)
	}
	return nil
}

// Get implements resourcelock.Interface. While another process holds the lease, it blocks until that process releases
// the lease or stops renewing it. Get clears the holder of an expired lease: the election starts to count the lease's
// duration when Get returns, and would wait a second time.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.read(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		// A deposed leader shuts down gracefully.
		l.expire(l.lastRenewed())
		l.set(time.Time{}, false)
	}
	if l.hasEnded() {
		return &resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity()}, nil, nil
	}
	if err != nil || record.HolderIdentity == l.Identity() || record.HolderIdentity == "" || !l.waitReleased(ctx, record) {
		return record, raw, err
	}
	record, raw, err = l.read(ctx)
	if err == nil && l.remaining(record) <= 0 {
		// If the holder renews the lease after this read, the election's write fails with a conflict.
		record.HolderIdentity = ""
	}
	return record, raw, err
}

func (l *Lock) read(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.Interface.Get(ctx)
}

// waitReleased waits until a lease with the given record has no holder or has expired. It returns false if the lease
// cannot be watched any longer; the election then retries after its pause.
func (l *Lock) waitReleased(ctx context.Context, record *resourcelock.LeaderElectionRecord) bool {
	expiry := l.clock.NewTimer(l.remaining(record))
	defer expiry.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opening := l.clock.AfterFunc(l.renewDeadline, cancel)
	changes, err := l.watch(ctx)
	opening.Stop()
	if err != nil {
		return false
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-expiry.C():
			return true
		case change, open := <-changes.ResultChan():
			if !open {
				return false
			}
			lease, ok := change.Object.(*coordinationv1.Lease)
			if !ok {
				return false
			}
			record = resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
			if change.Type == watch.Deleted || record.HolderIdentity == "" {
				return true
			}
			expiry.Reset(l.remaining(record))
		}
	}
}

// remaining returns the time until a lease with the given record expires, measured from the first sight of the record: the
// times in it come from another machine's clock, which may be wrong. Its holder may be configured with a longer duration
// than this process.
func (l *Lock) remaining(record *resourcelock.LeaderElectionRecord) time.Duration {
	now, seen := l.clock.Now(), &l.sight.record
	if record.HolderIdentity != seen.HolderIdentity || !record.RenewTime.Equal(&seen.RenewTime) {
		l.sight.record, l.sight.at = *record, now
	}
	return max(l.duration, time.Duration(record.LeaseDurationSeconds)*time.Second) - now.Sub(l.sight.at)
}

// Release releases the lease if this process holds it, so that another process can acquire it immediately. This
// process's election continues without writing. The process must be shutting down already, so that it claims no more
// posts.
func (l *Lock) Release(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if !l.mayHold() {
		return nil
	}
	held, _, err := l.Interface.Get(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the lease %s to release it: %w", l.Describe(), err)
	}
	if held.HolderIdentity != l.Identity() {
		return nil
	}
	// Like client-go, this sets a duration of one second, so a waiting process can acquire the lease immediately.
	free := resourcelock.LeaderElectionRecord{LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: held.AcquireTime}
	if err := l.write(ctx, free, l.Interface.Update); err != nil {
		return fmt.Errorf("cannot release the lease %s: %w", l.Describe(), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return nil
}

func (l *Lock) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

func (l *Lock) mayHold() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds
}

func (l *Lock) leads() bool { return !l.lastRenewed().IsZero() }

// set records when this process last wrote the lease as leader, or zero if it does not lead, and whether the lease may
// name it as holder.
func (l *Lock) set(renewed time.Time, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = holds
	if l.ended {
		// The write was in flight when the shutdown started.
		renewed = time.Time{}
	}
	l.renewed = renewed
	if l.watchdog != nil {
		l.watchdog.Stop()
		l.watchdog = nil
	}
	if renewed.IsZero() {
		return
	}
	l.watchdog = l.clock.AfterFunc(l.renewDeadline, func() { l.expire(renewed) })
}

func (l *Lock) lastRenewed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}

func (l *Lock) expire(since time.Time) {
	l.mu.Lock()
	current := !l.ended && !since.IsZero() && l.renewed.Equal(since)
	if current {
		l.ended, l.renewed = true, time.Time{}
	}
	l.mu.Unlock()
	if current {
		l.stop()
	}
}

// Check is a probe check; see apiserver.ProbeChecks. It fails if a leader has outlived its lease by overdue.
func (l *Lock) Check(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return nil
	}
	if past := l.clock.Since(l.renewed) - l.duration; past > overdue {
		return fmt.Errorf("the lease expired at %s, but this process still leads", l.renewed.Add(l.duration).UTC().Format(time.RFC3339))
	}
	return nil
}
