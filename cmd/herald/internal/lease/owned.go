// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedrbacv1 "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// owned sets a cluster role as the owner of leases, and states the number of shards in them. client-go's lock writes
// only the spec.
type owned struct {
	typedcoordinationv1.LeasesGetter

	roles  typedrbacv1.ClusterRolesGetter
	role   string
	shards int
}

func (o owned) Leases(namespace string) typedcoordinationv1.LeaseInterface {
	return ownedLeases{LeaseInterface: o.LeasesGetter.Leases(namespace), owned: o}
}

type ownedLeases struct {
	typedcoordinationv1.LeaseInterface
	owned
}

func (l ownedLeases) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	lease.OwnerReferences = l.owners(ctx)
	stateShards(lease, l.shards)
	return l.LeaseInterface.Create(ctx, lease, options)
}

func (l ownedLeases) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	stateShards(lease, l.shards)
	return l.LeaseInterface.Update(ctx, lease, options)
}

// owners returns the owner references of the lease. If the role cannot be read, as in a local run, there are none:
// leading is more important than cleanup.
func (o owned) owners(ctx context.Context) []metav1.OwnerReference {
	role, err := o.roles.ClusterRoles().Get(ctx, o.role, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}}
}
