// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clientworkqueue "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting/suspension"
)

// maxConcurrentSuspensions limits the teams suspended or resumed concurrently. Each takes one write: a thousand took
// five seconds on two busy cores, regardless of other work for teams.
const maxConcurrentSuspensions = 16

// suspensionReconciler suspends and resumes teams. It has its own workers, because other work on teams may take minutes
// and a suspension must not wait for it.
type suspensionReconciler struct {
	client     client.Reader
	clock      clock.PassiveClock
	status     *conditions.Reporter
	events     events.EventRecorder
	metrics    *Metrics
	namespaces configv1alpha1.Namespaces
	suspendAll *installation.Suspension
	// retention is Options.SuspensionRetention.
	retention time.Duration
	// shards is Options.Shards.
	shards int
}

func (r *suspensionReconciler) setupWithManager(mgr ctrl.Manager) error {
	ctl := ctrl.NewControllerManagedBy(mgr).Named("team-suspension").
		For(&v1alpha1.Team{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, suspensionsChanged))).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrentSuspensions, ReconciliationTimeout: pacing.TeamTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "team-suspension"))
	if r.suspendAll != nil {
		ctl = ctl.WatchesRawSource(source.Func(r.watchSuspendAll))
	}
	if err := ctl.Complete(r); err != nil {
		return fmt.Errorf("cannot set up the controller of suspensions: %w", err)
	}
	return nil
}

// Reconcile suspends or resumes one Team.
func (r *suspensionReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var team v1alpha1.Team
	err := r.client.Get(ctx, req.NamespacedName, &team)
	if err != nil || !r.namespaces.Include(team.Spec.Namespace) {
		r.metrics.suspended(req.Name, false)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.suspend(ctx, &team); err != nil {
		return onConflict(err)
	}
	return reconcile.Result{RequeueAfter: suspension.PruneAfter(team.Status.Suspensions, r.clock.Now(), r.retention)}, nil
}

// suspend records in a team's status whether the team is suspended, by its spec or by the configuration, and since
// when. Apart from the start of a move to another shard, nothing else writes these fields. The team remains suspended
// until the end of the suspension is written.
//
// With one shard, the controllers that move teams do not run. A move that was open when the shards were turned off is
// ended here, since the team would be suspended for ever. A restart finds moves that other versions have left open.
func (r *suspensionReconciler) suspend(ctx context.Context, team *v1alpha1.Team) error {
	before := team.Status.DeepCopy()
	now := r.clock.Now()
	if r.shards < 2 && team.Moving() {
		team.Status.Move.Until = v1alpha1.NewTimePtr(now)
	}
	reason, message := r.reasonFor(team)
	team.Status.Suspensions = suspension.Update(team.Status.Suspensions, reason != "", now, r.retention)
	was := meta.IsStatusConditionTrue(before.Conditions, v1alpha1.ConditionSuspended)
	if reason == "" {
		meta.RemoveStatusCondition(&team.Status.Conditions, v1alpha1.ConditionSuspended)
	} else {
		meta.SetStatusCondition(&team.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			ObservedGeneration: team.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	if err := r.status.Report(ctx, team, before, &team.Status); err != nil {
		return err
	}
	r.metrics.suspended(team.Name, reason != "" && team.DeletionTimestamp.IsZero())
	switch {
	case r.events == nil || was == (reason != ""):
	case was:
		r.events.Eventf(team, nil, corev1.EventTypeNormal, v1alpha1.ReasonResumed, "Resume", "posts are published again; their deadlines have moved by the suspended time")
	default:
		r.events.Eventf(team, nil, corev1.EventTypeNormal, reason, "Suspend", "%s", message)
	}
	return nil
}

// suspensionsChanged passes changes to status.suspensions, and the start and end of a team's move to another shard. They
// repeat a reconciliation that read a stale cache, which would otherwise miss a suspension that was set or lifted in
// between.
var suspensionsChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Team)
		after, is := e.ObjectNew.(*v1alpha1.Team)
		return ok && is && (before.Moving() != after.Moving() || !v1alpha1.SemanticEqual(before.Status.Suspensions, after.Status.Suspensions))
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func (r *suspensionReconciler) reasonFor(team *v1alpha1.Team) (reason, message string) {
	const what = "posts are accepted and prepared, and nothing is published; "
	switch {
	case team.Spec.Suspend && r.suspendAll.On():
		return v1alpha1.ReasonSuspendedBySpec, what + "set spec.suspend to false, and suspend in the manager's configuration, which suspends all teams, to resume"
	case team.Spec.Suspend:
		return v1alpha1.ReasonSuspendedBySpec, what + "set spec.suspend to false to resume"
	case r.suspendAll.On():
		return v1alpha1.ReasonSuspendedByConfiguration, what + "set suspend to false in the manager's configuration to resume"
	case team.Moving():
		return v1alpha1.ReasonSuspendedByMove, "the team's posts are moved to another manager, which takes seconds; publishing resumes by itself"
	default:
		return "", ""
	}
}

func (r *suspensionReconciler) watchSuspendAll(ctx context.Context, queue clientworkqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.suspendAll.Subscribe(func() {
		var teams v1alpha1.TeamList
		if err := r.client.List(ctx, &teams, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("cannot list the teams: %w", err), "cannot notify the teams of a change of suspend in the configuration")
			return
		}
		for i := range teams.Items {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&teams.Items[i])})
		}
	})
	return nil
}
