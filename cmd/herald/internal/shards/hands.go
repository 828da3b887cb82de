// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/posting/placement"
)

// act carries out a decision. A conflict with another replica does not prevent the other writes. Writes that would delay
// the renewal of the member Lease are left to another step, except for one, so that a slow API server does not prevent
// all of them. In both cases, another step should follow at once.
func (r *Replica) act(ctx, delivering context.Context, s *snapshot, d decision, until time.Time) (again bool, err error) {
	for _, i := range d.lost {
		r.giveUp(i, "another replica has taken it over")
	}
	for i, h := range r.given {
		if lease := s.shards[i]; holderOf(lease) != r.o.Identity || versionOf(lease) != h.Version {
			delete(r.given, i) // it was released, or taken over
		}
	}
	for _, i := range d.release {
		r.giveUp(i, "it goes to another replica")
	}
	var errs []error
	write := func(do func() error) {
		if len(errs) > 0 && !r.o.Clock.Now().Before(until) {
			again = true
			return
		}
		errs = append(errs, do())
	}
	for _, i := range d.release {
		if r.given[i].hasStopped() {
			write(func() error { return r.release(ctx, s.shards[i], i) })
		}
	}
	for _, i := range d.vacate {
		write(func() error { return r.store(ctx, r.shardLease(i), s.shards[i], vacate) })
	}
	for _, i := range d.acquire {
		write(func() error { return r.acquire(ctx, delivering, s.shards[i], i) })
	}
	again = again || slices.ContainsFunc(errs, wasFaster)
	return again, errors.Join(slices.DeleteFunc(errs, wasFaster)...)
}

// acquire takes over a shard under a new version. Without a confirmation, the process does not hold the shard; the next
// step takes it over again.
func (r *Replica) acquire(ctx, delivering context.Context, lease *coordinationv1.Lease, shard int) error {
	version, before := r.o.NewVersion(), holderOf(lease)
	err := r.store(ctx, r.shardLease(shard), lease, func(lease *coordinationv1.Lease) {
		r.setHolder(lease, r.o.Clock.Now())
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, versionAnnotation, version)
	})
	if err != nil {
		return err
	}
	h := &Held{Shard: placement.Name(shard), Version: version, current: r.isCurrent, since: r.o.Clock.Now(), stopped: make(chan struct{})}
	delivering, h.stop = context.WithCancel(delivering)
	r.held[shard] = h
	r.o.Metrics.acquired(shard, h)
	r.o.Log.Info("took over a shard", "shard", h.Shard, "version", version, "from", before)
	go func() {
		r.o.Deliver(delivering, h)
		close(h.stopped)
		r.signal()
	}()
	return nil
}

// giveUp stops the claims of a shard, if this process holds it.
func (r *Replica) giveUp(shard int, why string) {
	h := r.held[shard]
	if h == nil {
		return
	}
	h.giveUp()
	delete(r.held, shard)
	r.given[shard] = h
	r.o.Log.Info("gave up a shard", "shard", h.Shard, "version", h.Version, "reason", why)
}

// release vacates the Lease of a shard that was given up and whose delivery has ended.
func (r *Replica) release(ctx context.Context, lease *coordinationv1.Lease, shard int) error {
	if err := r.store(ctx, r.shardLease(shard), lease, vacate); err != nil {
		return err
	}
	delete(r.given, shard)
	return nil
}

// checkHeld gives up the shards whose delivery has ended, and all shards if the member Lease was not renewed in time.
func (r *Replica) checkHeld() {
	for i, h := range maps.Clone(r.held) {
		switch {
		case !r.isCurrent():
			r.giveUp(i, "the member Lease was not renewed in time")
		case h.hasStopped():
			r.giveUp(i, "its delivery has ended")
			r.failures.add(i, r.o.Clock.Now(), r.o.Clock.Since(h.since), r.o.Times.RetryPeriod.Duration)
		}
	}
}

// releaseAll releases everything during a shutdown. The Leases that it cannot release expire.
func (r *Replica) releaseAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Times.RenewDeadline.Duration)
	defer cancel()
	for i := range maps.Clone(r.held) {
		r.giveUp(i, "this process stops")
	}
	for _, h := range r.given {
		select {
		case <-h.stopped:
		case <-ctx.Done():
		}
	}
	s, err := r.read(ctx)
	if err != nil {
		r.o.Log.Error(err, "cannot release the shards; other replicas take them over once the member Lease has expired")
		return
	}
	var errs []error
	for i, h := range r.given {
		if lease := s.shards[i]; h.hasStopped() && holderOf(lease) == r.o.Identity && versionOf(lease) == h.Version {
			errs = append(errs, r.release(ctx, lease, i))
		}
	}
	if slot := r.ownSlot(s); slot >= 0 {
		errs = append(errs, r.store(ctx, r.memberLease(slot), s.members[slot], vacate))
	}
	if err := errors.Join(errs...); err != nil {
		r.o.Log.Error(err, "cannot release all shards; other replicas take them over once the member Lease has expired")
	}
}

// watchVacated wakes the replica when another one vacates a Lease, so that it takes over the shard at once. If the
// Leases cannot be watched, the replica notices this at its next step.
func (r *Replica) watchVacated(ctx context.Context) {
	for ctx.Err() == nil {
		changes, err := r.o.Watches.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(r.o.Namespace), r.labels())
		if err == nil {
			r.forwardVacated(ctx, changes)
			changes.Stop()
		}
		select {
		case <-ctx.Done():
		case <-r.o.Clock.After(r.o.Times.RetryPeriod.Duration):
		}
	}
}

func (r *Replica) forwardVacated(ctx context.Context, changes watch.Interface) {
	for {
		select {
		case <-ctx.Done():
			return
		case change, open := <-changes.ResultChan():
			if !open {
				return
			}
			if lease, ok := change.Object.(*coordinationv1.Lease); ok && (change.Type == watch.Deleted || holderOf(lease) == "") {
				r.signal()
			}
		}
	}
}

func (r *Replica) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func versionOf(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return lease.Annotations[versionAnnotation]
}
