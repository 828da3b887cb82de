// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease is the lease that the leading manager holds.
//
// The claim of a post keeps two managers from publishing it twice, not the lease: it
// decides who works. What it must do is change hands quickly. client-go's election
// asks for the lease every few seconds, gives it back when the process has ended, and
// ends a process at once that cannot renew it, whatever calls to platforms are under
// way. This lock gives it back as soon as the process is told to stop, has a process
// that cannot renew it stop as if it were told to, and one that waits watch it.
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

// overdue is for how long after the end of its lease a leader may live on: by then
// the election has ended a process that works. client-go's own check uses the same.
const overdue = 20 * time.Second

// tries is how many requests must fit into the time for which renewing is tried: a
// write, a read after it, and what the watchdog needs to be first.
const tries = 3

// Lock is the lease of one process. It knows whether a leader has outlived it: a
// process whose election hangs would stay leader in its own eyes, and the liveness
// probe ends it.
type Lock struct {
	resourcelock.Interface

	// watch returns the changes of the lease, its present state first.
	watch    func(context.Context) (watch.Interface, error)
	duration time.Duration
	clock    clock.WithDelayedExecution

	// renewDeadline is for how long a leader tries to renew the lease before stop is called.
	renewDeadline time.Duration
	stop          func()

	// writing is held while the lease is read or written.
	writing sync.Mutex

	mu sync.Mutex
	// renewed is when this process last wrote that it leads; zero if it does not lead.
	renewed time.Time
	// ended is set once the lease was given back or lost. Nothing more is renewed, and
	// the election goes on in the belief that this process leads, until that has ended.
	ended bool
	// holds is set while the lease may bear this process's name.
	holds    bool
	watchdog clock.Timer
}

// Options are what New needs. Every field is required.
type Options struct {
	// Config reaches the Kubernetes API.
	Config *rest.Config
	// Name is the lease.
	Name types.NamespacedName
	// Identity is what this process calls itself in the lease.
	Identity string
	// Role is the cluster role of the release. Kubernetes removes the lease with it, when Herald is uninstalled.
	Role string
	// Times are those of the election.
	Times configv1alpha1.LeaderElection
	// Stop tells the process to stop. It is called when the lease cannot be renewed.
	Stop  func()
	Clock clock.WithDelayedExecution
}

// New returns the lock of a lease.
func New(o Options) (*Lock, error) {
	config := rest.CopyConfig(o.Config)
	// Connections of its own: one that is shared, by HTTP/2, would be found dead only after the lease has ended.
	config.NextProtos = []string{"http/1.1"}
	watches, err := typedcoordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client to watch the lease: %w", err)
	}
	// A write and a read after it give up before the election does.
	config.Timeout = o.Times.RenewDeadline.Duration / tries
	leases, err := typedcoordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the lease: %w", err)
	}
	roles, err := typedrbacv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the role that the lease belongs to: %w", err)
	}
	return &Lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.Name.Namespace, Name: o.Name.Name},
			Client:     owned{LeasesGetter: leases, roles: roles, role: o.Role},
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

// Update implements resourcelock.Interface. It does nothing once the lease is given
// back or lost: the election, which does not know of that, must not take it again.
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

// write writes the record, with the time at which it does: the election notes it before
// it asks for the lease, which may take long.
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

// Get implements resourcelock.Interface. While another process holds the lease, it
// answers only when that gives it back or stops to renew it.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.read(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		// A leader that another one has followed ends what it has begun as if it were told to stop.
		l.expire(l.lastRenewed())
		l.set(time.Time{}, false)
	}
	if l.hasEnded() {
		return &resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity()}, nil, nil
	}
	if err != nil || record.HolderIdentity == l.Identity() || record.HolderIdentity == "" || !l.waitReleased(ctx) {
		return record, raw, err
	}
	return l.read(ctx)
}

// read reads the lease. client-go's lock keeps what it has read for the next write.
func (l *Lock) read(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.Interface.Get(ctx)
}

// waitReleased returns true as soon as nobody holds the lease. It returns false if its holder
// has not renewed it for as long as it lasts, and if it cannot be watched: then the
// election asks again after its pause.
func (l *Lock) waitReleased(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := l.watch(ctx)
	if err != nil {
		return false
	}
	defer changes.Stop()
	expiry := l.clock.NewTimer(l.duration)
	defer expiry.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-expiry.C():
			return false
		case change, open := <-changes.ResultChan():
			if !open {
				return false
			}
			lease, ok := change.Object.(*coordinationv1.Lease)
			if !ok {
				return false
			}
			if change.Type == watch.Deleted || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
				return true
			}
			expiry.Reset(l.duration)
		}
	}
}

// Release gives the lease back, if this process holds it, so that another one takes it
// at once. The election of this process goes on in the belief that it leads, and writes
// nothing more: the process must have been told to stop before, so that it claims no
// more posts.
func (l *Lock) Release(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if !l.mayHold() {
		return nil
	}
	held, _, err := l.Interface.Get(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the lease %s to give it back: %w", l.Describe(), err)
	}
	if held.HolderIdentity != l.Identity() {
		return nil
	}
	// One second is what client-go writes too: who sees it may take it at once.
	free := resourcelock.LeaderElectionRecord{LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: held.AcquireTime}
	if err := l.write(ctx, free, l.Interface.Update); err != nil {
		return fmt.Errorf("cannot give the lease %s back: %w", l.Describe(), err)
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

// set notes when this process last wrote that it leads, or that it does not, and whether
// the lease bears its name.
func (l *Lock) set(renewed time.Time, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = holds
	if l.ended {
		// A write that was under way when the process was told to stop.
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

// lastRenewed is when this process last wrote that it leads; zero if it does not lead.
func (l *Lock) lastRenewed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}

// expire stops the process if it leads and the lease has not been renewed since.
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

// Check is that of probes.Checks: it fails in a leader whose lease has ended and that
// works on.
func (l *Lock) Check(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return nil
	}
	if past := l.clock.Since(l.renewed) - l.duration; past > overdue {
		return fmt.Errorf("the lease ended at %s, and this process still leads", l.renewed.Add(l.duration).UTC().Format(time.RFC3339))
	}
	return nil
}
