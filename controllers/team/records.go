// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Records is the archive with the records of teams, by namespace and name.
type Records interface {
	// Clear removes the records of a team. It stops after a few seconds and reports whether records are left.
	Clear(ctx context.Context, namespace, team string) (left bool, err error)
}

const (
	// clearTimeout is the timeout for one attempt, during which other teams wait. clearAgain is the pause after a failed
	// attempt, and abandonAfter limits all attempts.
	clearTimeout = time.Minute
	clearAgain   = 30 * time.Second
	abandonAfter = time.Hour
)

// ensureFinalizer adds the finalizer before the team can have records. Without a bucket it adds none.
func (r *Reconciler) ensureFinalizer(ctx context.Context, team *v1alpha1.Team) error {
	before := team.DeepCopy()
	if r.Records == nil || !controllerutil.AddFinalizer(team, v1alpha1.RecordsFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, team, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot add the finalizer to the team: %w", err)
	}
	return nil
}

// finalize removes the records of a team that is being deleted, and then the finalizer. It returns the requeue delay.
// If the store fails, the Team is kept for abandonAfter; a new Team with the same name then finds the remaining
// records.
func (r *Reconciler) finalize(ctx context.Context, team *v1alpha1.Team) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(team, v1alpha1.RecordsFinalizer) {
		return 0, nil
	}
	left, failed := r.clear(ctx, team)
	switch {
	case ctx.Err() != nil:
		return 0, failed // the process is shutting down
	case failed == nil && left:
		return time.Millisecond, nil
	case failed != nil && r.Clock.Since(team.DeletionTimestamp.Time) < abandonAfter:
		ctrllog.FromContext(ctx).Error(failed, "cannot remove a team's records; retrying")
		return clearAgain, nil
	}
	before := team.DeepCopy()
	controllerutil.RemoveFinalizer(team, v1alpha1.RecordsFinalizer)
	err := r.Client.Patch(ctx, team, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("cannot remove the finalizer from the team: %w", err)
	}
	if failed != nil {
		ctrllog.FromContext(ctx).Error(failed, "released a Team whose records could not be removed", "namespace", team.Spec.Namespace)
		r.reportAbandoned(team)
	}
	return 0, nil
}

func (r *Reconciler) clear(ctx context.Context, team *v1alpha1.Team) (left bool, err error) {
	if r.Records == nil {
		return false, nil // The bucket was removed from the configuration. Its contents belong to its owner.
	}
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	return r.Records.Clear(ctx, team.Spec.Namespace, team.Name)
}

func (r *Reconciler) reportAbandoned(team *v1alpha1.Team) {
	if r.Events == nil {
		return
	}
	r.Events.Eventf(team, nil, corev1.EventTypeWarning, v1alpha1.ReasonRecordsAbandoned, "Reconcile",
		"Team %q is gone, but the store did not remove the records of its posts for an hour. A Team of this name with the namespace %q finds them again; "+
			"otherwise delete what lies below _herald/archive/%[2]s/%[1]s/ in the bucket.", team.Name, team.Spec.Namespace)
}
