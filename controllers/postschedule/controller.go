// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postschedule creates the posts of each PostSchedule. recurrence.Decide decides which ones.
//
// A post's name is derived from its time, and posts are created before the status is written. If a process ends in
// between, the next one tries to create the same posts again, and finds them.
package postschedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/quota"
)

// Posts have no finalizers of schedules and do not block their deletion, so no permission for postschedules/finalizers
// is needed.
//
// +kubebuilder:rbac:groups=social.herald.dev,resources=postschedules,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=postschedules/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;create
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections;teams,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// longestRest is the longest pause between two decisions. It limits the delay after the clock is set forward to half
	// of recurrence.Lead.
	longestRest = 30 * time.Minute
	// refusedPause is the pause after a post was refused, for example because of the team's budget.
	refusedPause = time.Minute
	// invalidPause is the pause after a post was rejected as invalid. The rejection may depend on a connection or a file.
	invalidPause = 10 * time.Minute
	// deletionPause is the pause while a post of the same name is being deleted, which takes Kubernetes seconds.
	deletionPause = 5 * time.Second
	// conflictPause is the requeue delay after a conflict, so that the cache can catch up.
	conflictPause = time.Second
)

// Options configures the Reconciler. Client, APIReader, Clock, Owner, Owned and StartingDeadline are required.
type Options struct {
	// Client reads from the cache and writes to the API server. APIReader reads from the API server: the cache lacks
	// finished posts.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.PassiveClock
	// Owner returns the team that claims a namespace, or nil. Owned reports whether it owns the namespace.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Namespaces are the watched namespaces; empty means all.
	Namespaces configv1alpha1.Namespaces
	// StartingDeadline is how late a post may be published.
	StartingDeadline time.Duration
	// Events records the events of schedules. If nil, none are emitted.
	Events events.EventRecorder
	// Metrics counts posts. If nil, nothing is counted.
	Metrics *Metrics
}

// Reconciler reconciles schedules.
type Reconciler struct {
	Options

	status conditions.Reporter
}

// New returns a Reconciler. It returns an error if a required option is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Clock == nil || o.Owner == nil || o.Owned == nil || o.StartingDeadline <= 0 {
		return nil, errors.New("the schedule reconciler needs Client, APIReader, Clock, Owner, Owned and StartingDeadline")
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	o.Events = conditions.NewEventRecorder(o.Events, o.Client.Scheme(), o.Clock)
	return &Reconciler{Options: o, status: conditions.Reporter{
		Client: o.Client, Clock: o.Clock, Events: o.Events, Action: "Reconcile",
		Normal: []string{v1alpha1.ReasonScheduled, v1alpha1.ReasonSuspended, v1alpha1.ReasonComplete, v1alpha1.ReasonAwaitingDeletion},
	}}, nil
}

// SetupWithManager reconciles schedules when their spec changes, when the Team acquires the namespace or its suspension
// ends, and at the times that they select.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	inNamespace := quota.InNamespace(r.Namespaces, r.Client, func() client.ObjectList { return &v1alpha1.PostScheduleList{} })
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.PostSchedule{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Team{}, inNamespace, builder.WithPredicates(predicate.Or(quota.OwnershipChanged(), quota.SuspensionEnded()))).
		WithOptions(controller.Options{ReconciliationTimeout: pacing.ScheduleTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "postschedule")).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up the schedule controller: %w", err)
	}
	return nil
}

// Reconcile creates the posts that one schedule needs now.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var s v1alpha1.PostSchedule
	if err := r.Client.Get(ctx, req.NamespacedName, &s); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	before := s.Status.DeepCopy()
	summary, again, failed := r.sync(ctx, &s)
	if failed == nil {
		conditions.Apply(&s.Status.Conditions, summary, s.Generation, r.Clock.Now())
		s.Status.ObservedGeneration = s.Generation
	}
	// Even after an error, the status records the posts that were created.
	err := errors.Join(failed, r.status.Report(ctx, &s, before, &s.Status))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.status.RequeueAfter(&s, again)}, nil
}
