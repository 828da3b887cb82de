// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/posting/placement"
)

const (
	// versionAnnotation is the version of a shard, in its Lease.
	versionAnnotation = "social.herald.dev/shard-version"
	// numberAnnotation is the number of shards that a replica is configured with, in its member Lease. It is missing while the
	// others should take its share; see renew.
	numberAnnotation = "social.herald.dev/shards"
	// componentLabel selects the Leases of this package.
	componentLabel, component = "app.kubernetes.io/component", "shards"
)

// maxMembers is the number of replicas that can hold shards. The manager's role names the Lease of each.
const maxMembers = 16

// snapshot holds the Leases of one list. A Lease that does not exist has no entry.
type snapshot struct {
	members [maxMembers]*coordinationv1.Lease
	shards  []*coordinationv1.Lease
	// stated is the number of shards in the leader's Lease, and known is false if nobody leads.
	stated int
	known  bool
}

// MemberLeases returns the names of the Leases that the replicas of a release renew while they share the shards.
func MemberLeases(release string) []string {
	names := make([]string, maxMembers)
	for slot := range names {
		names[slot] = memberLease(release, slot)
	}
	return names
}

func memberLease(release string, slot int) string {
	return fmt.Sprintf("%s-member-%02d", release, slot)
}

func (r *Replica) memberLease(slot int) string { return memberLease(r.o.Release, slot) }

func (r *Replica) shardLease(shard int) string {
	return r.o.Release + "-shard-" + placement.Name(shard)
}

func (r *Replica) labels() client.MatchingLabels {
	return client.MatchingLabels{"app.kubernetes.io/name": "herald", "app.kubernetes.io/managed-by": r.o.Release + "-manager", componentLabel: component}
}

// read lists the Leases, and reads the leader's.
func (r *Replica) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{shards: make([]*coordinationv1.Lease, r.o.Shards)}
	var list coordinationv1.LeaseList
	if err := r.o.Client.List(ctx, &list, client.InNamespace(r.o.Namespace), r.labels()); err != nil {
		return nil, fmt.Errorf("cannot list the Leases of the shards: %w", err)
	}
	found := map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	for slot := range s.members {
		s.members[slot] = found[r.memberLease(slot)]
	}
	for shard := range s.shards {
		s.shards[shard] = found[r.shardLease(shard)]
	}
	var leader coordinationv1.Lease
	err := r.o.Client.Get(ctx, types.NamespacedName{Namespace: r.o.Namespace, Name: r.o.Leader}, &leader)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot read the leader's Lease, which states the number of shards: %w", err)
	}
	s.stated, s.known = r.o.Stated(&leader)
	return s, nil
}

// store writes a Lease, or creates it if found is nil. It returns an error unless the write was confirmed.
func (r *Replica) store(ctx context.Context, name string, found *coordinationv1.Lease, change func(*coordinationv1.Lease)) error {
	if found != nil {
		lease := found.DeepCopy()
		change(lease)
		if err := r.o.Client.Update(ctx, lease); err != nil {
			return fmt.Errorf("cannot write the Lease %s: %w", name, err)
		}
		return nil
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.o.Namespace, Name: name, Labels: r.labels(), OwnerReferences: r.o.Owners(ctx)}}
	change(lease)
	err := r.o.Client.Create(ctx, lease)
	if apierrors.IsAlreadyExists(err) {
		// Another replica has created it, or its labels were removed.
		return r.relabel(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("cannot create the Lease %s: %w", name, err)
	}
	return nil
}

// relabel restores the labels of a Lease, so that the next list shows it. It returns an error, because the Lease was
// not written as requested.
func (r *Replica) relabel(ctx context.Context, name string) error {
	var lease coordinationv1.Lease
	if err := r.o.Client.Get(ctx, types.NamespacedName{Namespace: r.o.Namespace, Name: name}, &lease); err != nil {
		return fmt.Errorf("cannot read the Lease %s: %w", name, err)
	}
	if lease.Labels[componentLabel] != component {
		lease.Labels = r.labels()
		if err := r.o.Client.Update(ctx, &lease); err != nil {
			return fmt.Errorf("cannot label the Lease %s: %w", name, err)
		}
	}
	return fmt.Errorf("the Lease %s: %w", name, errExists)
}

// holderOf returns the replica that a Lease names, or "".
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// setHolder enters a replica as the holder of a Lease.
func (r *Replica) setHolder(lease *coordinationv1.Lease, now time.Time) {
	lease.Spec.HolderIdentity = new(r.o.Identity)
	lease.Spec.LeaseDurationSeconds = new(int32(r.o.Times.LeaseDuration.Seconds()))
	lease.Spec.AcquireTime = &metav1.MicroTime{Time: now}
	lease.Spec.RenewTime = lease.Spec.AcquireTime
}

// vacate removes the holder of a Lease.
func vacate(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = new("") }

// isConfigured reports whether a member Lease belongs to a replica that can hold shards of this number.
func isConfigured(lease *coordinationv1.Lease, shards int) bool {
	return lease.Annotations[numberAnnotation] == strconv.Itoa(shards)
}
