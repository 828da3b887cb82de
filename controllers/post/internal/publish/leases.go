// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/posting/delivery"
)

// store writes a Lease as a new, armed group. If the Lease still holds another process's armed group, the write closes
// that group. If that group is not due yet, store leaves it and returns nil, unless overwrite is set.
func (g *Groups) store(ctx context.Context, slot int, due time.Time, overwrite bool) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := g.o.APIReader.Get(ctx, client.ObjectKey{Namespace: g.o.Namespace, Name: g.leaseName(slot)}, lease)
	missing := apierrors.IsNotFound(err)
	switch {
	case missing:
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: g.o.Namespace, Name: g.leaseName(slot), OwnerReferences: g.o.Owners(ctx),
			Labels: map[string]string{"app.kubernetes.io/name": "herald", "app.kubernetes.io/managed-by": g.o.Prefix + "-manager"},
		}}
	case err != nil:
		return nil, err
	case lease.Annotations[stateAnnotation] == "armed":
		if at := lease.Spec.AcquireTime; !overwrite && at != nil && at.After(g.o.Clock.Now()) {
			g.foreign[slot] = at.Time
			return nil, nil //nolint:nilnil // absence is an answer here
		}
		addClosed(lease)
	default:
		setClosed(lease, closedVersions(lease))
	}
	g.describe(lease, "armed")
	lease.Spec.AcquireTime = &metav1.MicroTime{Time: due}
	if missing {
		return lease, g.o.Client.Create(ctx, lease)
	}
	return lease, g.o.Client.Update(ctx, lease)
}

func (g *Groups) describe(lease *coordinationv1.Lease, state string) {
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, stateAnnotation, state)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: g.o.Clock.Now()}
}

// addClosed lists the group that a Lease holds as closed. The update that follows fails if the group was opened.
// Versions that closedVersions does not return are dropped.
func addClosed(lease *coordinationv1.Lease) {
	setClosed(lease, append(closedVersions(lease), lease.ResourceVersion))
}

func setClosed(lease *coordinationv1.Lease, closed []string) {
	if len(closed) > maxClosed {
		closed = closed[len(closed)-maxClosed:]
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, closedAnnotation, strings.Join(closed, " "))
}

// closedVersions returns the closed groups that a Lease lists. All of these are older than the Lease's own version.
// Newer ones belong to another cluster, or to this one before it was restored, and their numbers may be reused.
func closedVersions(lease *coordinationv1.Lease) []string {
	return slices.DeleteFunc(strings.Fields(lease.Annotations[closedAnnotation]), func(version string) bool {
		order, err := resourceversion.CompareResourceVersion(version, lease.ResourceVersion)
		return err != nil || order >= 0
	})
}

// State returns what this process knows about a group.
func (g *Groups) State(ref string) delivery.GroupState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known, ok := g.known[ref]; ok {
		return known.state
	}
	return delivery.GroupUnread
}

// remember stores the state of a group. The caller holds the lock.
func (g *Groups) remember(ref string, state delivery.GroupState) {
	now := g.o.Clock.Now()
	maps.DeleteFunc(g.known, func(_ string, known knownGroup) bool { return now.Sub(known.at) > groupStateTTL })
	g.known[ref] = knownGroup{state, now}
}

// Close closes another process's group, unless it may be open. State returns the result.
func (g *Groups) Close(ctx context.Context, ref string) error {
	g.closing.Lock()
	defer g.closing.Unlock()
	if g.State(ref) != delivery.GroupUnread {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.o.Within)
	defer cancel()
	closed, err := g.tryClose(ctx, ref)
	if apierrors.IsConflict(err) { // it was opened, or closed by another process, in between
		closed, err = g.tryClose(ctx, ref)
	}
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cannot close a group of posts that were claimed ahead: %w", err)
	}
	state := delivery.GroupMayBeOpen
	if closed && err == nil {
		state = delivery.GroupClosed
	}
	g.o.Log.Info("read the group of another process", "group", ref, "closed", closed)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remember(ref, state)
	return nil
}

// tryClose reports whether a group was closed before it was opened. A group that does not exist, or that was changed by
// anything else, may be open.
func (g *Groups) tryClose(ctx context.Context, ref string) (closed bool, err error) {
	name, version, _ := strings.Cut(ref, "/")
	if !g.owns(name) {
		return false, nil // a status cannot name any other Lease
	}
	var lease coordinationv1.Lease
	if err := g.o.APIReader.Get(ctx, types.NamespacedName{Namespace: g.o.Namespace, Name: name}, &lease); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if slices.Contains(closedVersions(&lease), version) {
		return true, nil
	}
	if lease.ResourceVersion != version {
		return false, nil
	}
	addClosed(&lease)
	g.describe(&lease, "closed")
	if err := g.o.Client.Update(ctx, &lease); err != nil {
		return false, err
	}
	return true, nil
}

// owns reports whether a Lease is one of those that hold groups.
func (g *Groups) owns(lease string) bool {
	for slot := range maxGroups {
		if g.leaseName(slot) == lease {
			return true
		}
	}
	return false
}
