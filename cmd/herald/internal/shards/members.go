// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sight is the first sight of a member Lease's current version. The times in the Lease come from another machine's
// clock, which may be wrong.
type sight struct {
	resourceVersion string
	at              time.Time
}

// observe updates the sights of the member Leases, and returns the live replicas: those whose Lease has changed within
// its duration, by this process's clock.
func (r *Replica) observe(s *snapshot, now time.Time) (live map[string]bool) {
	live = map[string]bool{}
	for slot, lease := range s.members {
		if lease == nil {
			r.sights[slot] = sight{}
			continue
		}
		if r.sights[slot].resourceVersion != lease.ResourceVersion {
			r.sights[slot] = sight{lease.ResourceVersion, now}
		}
		if holder := holderOf(lease); holder != "" && now.Sub(r.sights[slot].at) < durationOf(lease) {
			live[holder] = true
		}
	}
	return live
}

func durationOf(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// ownSlot returns the slot of this replica's member Lease, or -1 if it has none.
func (r *Replica) ownSlot(s *snapshot) int {
	for slot, lease := range s.members {
		if holderOf(lease) == r.o.Identity {
			return slot
		}
	}
	return -1
}

// join stores this replica's member Lease in a slot without a live replica, if there is one.
func (r *Replica) join(ctx context.Context, s *snapshot, live map[string]bool) (joined bool, err error) {
	for slot, lease := range s.members {
		if !live[holderOf(lease)] {
			return true, r.renew(ctx, s, slot)
		}
	}
	return false, nil
}

// renew writes this replica's member Lease. A replica that does not take all shards does not name its number of them: the
// others would leave it the free shards. That is the case if the leader has another number, if the leader's is unknown,
// and while failed deliveries are left to others.
func (r *Replica) renew(ctx context.Context, s *snapshot, slot int) error {
	now := r.o.Clock.Now() // the request may take long
	err := r.store(ctx, r.memberLease(slot), s.members[slot], func(lease *coordinationv1.Lease) {
		if holderOf(lease) != r.o.Identity {
			r.setHolder(lease, now)
		}
		lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
		if r.stated == r.o.Shards && !r.failures.anyRecent(now) {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, numberAnnotation, strconv.Itoa(r.o.Shards))
		} else {
			delete(lease.Annotations, numberAnnotation)
		}
	})
	if err == nil {
		r.renewed.Store(&now)
	}
	return err
}

// isCurrent reports whether the member Lease was renewed recently enough: after that, another replica could soon take
// over the shards.
func (r *Replica) isCurrent() bool {
	at := r.renewed.Load()
	return at != nil && r.o.Clock.Since(*at) < r.validity()
}

// validity is the time from a renewal during which the shards are held.
func (r *Replica) validity() time.Duration {
	return r.o.Times.RenewDeadline.Duration - r.o.Times.RetryPeriod.Duration
}

// writeUntil returns the deadline for a step's writes to other Leases. The rest of the member Lease's validity is reserved
// for the last write and the renewal. began is the start of the step.
func (r *Replica) writeUntil(began time.Time) time.Time {
	if at := r.renewed.Load(); at != nil {
		began = *at
	}
	return began.Add(r.validity() / 2)
}
