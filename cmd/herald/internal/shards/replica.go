// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shards divides the shards among the replicas of the manager; see docs/adr/0035.
//
// A replica renews a member Lease while it can also read and take shards. A shard's Lease is written only when the shard
// changes hands, and its holder counts as alive while its member Lease is renewed. Nothing here prevents two processes
// from delivering a shard's posts at once: the claim of each post does, and its version shows other holders whose it is.
package shards

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// RequestsPerRenewal is the number of requests that must fit into the renew deadline.
const RequestsPerRenewal = 3

// errExists is returned if a Lease exists that the list did not contain. The next list does.
var errExists = errors.New("it exists already")

// Options configures a Replica. All fields are required.
type Options struct {
	// Client reads from the API server without a cache. Its requests time out within the renew deadline divided by
	// RequestsPerRenewal. Watches watches without a timeout.
	Client  client.Client
	Watches client.WithWatch
	// Namespace holds the Leases, whose names start with Release. Leader is the name of the leader's Lease.
	Namespace, Release, Leader string
	// Identity identifies this process. No other running process has it, but an earlier one may have had it.
	Identity string
	// Shards is the configured number of shards.
	Shards int
	// Stated returns the number of shards that the leader's Lease states, and false if nobody leads.
	Stated func(leader *coordinationv1.Lease) (shards int, known bool)
	// Times are the durations of the leader's Lease, which the member Leases share.
	Times configv1alpha1.LeaderElection
	Clock clock.Clock
	// NewVersion returns a random version.
	NewVersion func() string
	// Owners returns the owner references of the Leases.
	Owners func(ctx context.Context) []metav1.OwnerReference
	// Deliver delivers the posts of a shard until ctx is done, and marks the shard once it has listed them. It returns
	// once it makes no more claims and none of its groups can be opened anymore; running calls may continue.
	Deliver func(ctx context.Context, held *Held)
	// Metrics are those for the configured number of shards.
	Metrics *Metrics
	Log     logr.Logger
}

// Replica is this process's part in the division of the shards.
type Replica struct {
	o Options

	// renewed is the time of the last confirmed renewal of the member Lease.
	renewed atomic.Pointer[time.Time]
	sights  [maxMembers]sight
	// stated is the number of shards that the leader stated last.
	stated int
	// held are the held shards, and given are those that were given up and are not released yet.
	held, given map[int]*Held
	// failures are the failed deliveries.
	failures failures
	// wake is signalled when another replica vacates a Lease, or a delivery of this one has ended.
	wake chan struct{}
}

// New returns a Replica.
func New(o Options) *Replica {
	return &Replica{o: o, held: map[int]*Held{}, given: map[int]*Held{}, failures: failures{}, wake: make(chan struct{}, 1)}
}

// Start takes and releases shards until ctx is done, and then releases all. It implements manager.Runnable.
func (r *Replica) Start(ctx context.Context) error {
	go r.watchVacated(ctx)
	for ctx.Err() == nil {
		if r.attempt(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.o.Clock.After(r.o.Times.RetryPeriod.Duration):
		case <-r.wake:
		}
	}
	r.releaseAll(context.WithoutCancel(ctx))
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica holds shards.
func (*Replica) NeedLeaderElection() bool { return false }

// attempt runs one step and logs its error. It reports whether another step should follow at once.
func (r *Replica) attempt(ctx context.Context) (again bool) {
	within, cancel := context.WithTimeout(ctx, r.validity())
	defer cancel()
	again, err := r.step(within, ctx)
	switch {
	case err == nil, ctx.Err() != nil:
	case wasFaster(err):
		r.o.Log.V(1).Info("another replica was faster", "error", err.Error())
	default:
		r.o.Log.Error(err, "cannot take part in the division of the shards")
		return false
	}
	return again
}

// wasFaster reports whether a write failed because another process has written the Lease.
func wasFaster(err error) bool { return apierrors.IsConflict(err) || errors.Is(err, errExists) }

// step reads the Leases, gives up, releases and takes shards, and renews the member Lease. The renewal comes last, so
// that a replica that cannot take its shards does not count as a member. delivering ends the deliveries of the taken
// shards.
func (r *Replica) step(ctx, delivering context.Context) (again bool, err error) {
	began := r.o.Clock.Now()
	r.checkHeld()
	s, err := r.read(ctx)
	if err != nil {
		return false, err
	}
	if s.known {
		r.stated = s.stated
		r.o.Metrics.setStated(s.stated)
	}
	now := r.o.Clock.Now()
	live := r.observe(s, now)
	slot := r.ownSlot(s)
	if slot < 0 {
		return r.join(ctx, s, live)
	}
	v := r.view(s, live, now)
	if again, err = r.act(ctx, delivering, s, decide(v), r.writeUntil(began)); err != nil {
		return false, err
	}
	return again, r.renew(ctx, s, slot)
}

// view returns the view for a decision.
func (r *Replica) view(s *snapshot, live map[string]bool, now time.Time) *view {
	v := &view{self: r.o.Identity, stated: r.stated, shards: make([]shardView, len(s.shards))}
	members := map[string]bool{}
	for _, lease := range s.members {
		holder := holderOf(lease)
		if live[holder] && (isConfigured(lease, len(s.shards)) || holder == r.o.Identity && r.stated == len(s.shards)) {
			members[holder] = true
		}
	}
	v.members = sorted(members)
	for i, lease := range s.shards {
		shard := &v.shards[i]
		shard.held, shard.given = r.held[i].version(), r.given[i].version()
		shard.version, shard.failed = versionOf(lease), r.failures.isRecent(i, now)
		if holder := holderOf(lease); live[holder] {
			shard.holder = holder
		}
	}
	return v
}
