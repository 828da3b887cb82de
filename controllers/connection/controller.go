// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection looks after connected accounts: it asks each platform
// whether an account can be published to, and renews the tokens. It is the only
// writer of credentials, and of the status of Connections.
//
// An account is disconnected only by what a person has to mend. That a platform
// does not answer, or the API server, is written down and passes.
package connection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
)

// Secrets are not named here: the Team's role binding gives the manager the
// right to those of team namespaces only.
//
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// defaultMaxConcurrentReconciles is how many connections are examined at once, most of
	// the time waiting for platforms.
	defaultMaxConcurrentReconciles = 32
	// reportWithin bounds the writing of a status.
	reportWithin = 10 * time.Second
	// mostReports is how often a status is written anew after somebody else
	// changed the object.
	mostReports = 10
)

// Options is what the reconciler needs. Client, APIReader, Platforms, Store and
// Clock are required.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Platforms are the platforms of this process.
	Platforms platforms.Registry
	// Store keeps the tokens.
	Store *credentials.Store
	// Clock is the time.
	Clock clock.PassiveClock
	// Events takes the events of connections; nil emits none.
	Events events.EventRecorder
	// Owner returns the team that owns a namespace, nil if none does: its plan
	// may allow only so many accounts. Nil allows any number.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Metrics shows how connections stand; nil shows nothing.
	Metrics *Metrics
	// MaxConcurrentReconciles is how many connections are examined at once; defaults to 32.
	MaxConcurrentReconciles int
}

// Reconciler works on connections.
type Reconciler struct {
	Options

	status conditions.Reporter
	// unsaved holds renewed tokens that could not be stored yet, by the name
	// of their connection.
	unsaved sync.Map
}

// New returns a reconciler; an error says which of the required options is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Platforms == nil || o.Store == nil || o.Clock == nil {
		return nil, errors.New("the connection reconciler needs Client, APIReader, Platforms, Store and Clock")
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil, o.Clock)
	}
	if o.MaxConcurrentReconciles <= 0 {
		o.MaxConcurrentReconciles = defaultMaxConcurrentReconciles
	}
	return &Reconciler{Options: o, status: conditions.Reporter{
		Client: o.Client, Events: o.Events, Action: "Probe", Normal: []string{v1alpha1.ReasonConnected, v1alpha1.ReasonDisabled},
	}}, nil
}

// SetupWithManager adds the reconciler to a manager. Connections are looked at
// when their spec changes, when somebody asks for it by the annotation
// social.herald.dev/probe-requested, when the plan of their team may have come to
// cover others, and by the clock; never because of their own status.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ctl := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Connection{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, probeRequested()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.MaxConcurrentReconciles})
	if r.Owner != nil {
		changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
		ctl = ctl.
			Watches(&v1alpha1.Connection{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), changed).
			Watches(&v1alpha1.Team{}, handler.EnqueueRequestsFromMapFunc(r.connectionsOfTeam), changed)
	}
	if err := ctl.Complete(r); err != nil {
		return fmt.Errorf("cannot set up the connection controller: %w", err)
	}
	return nil
}

// probeRequested passes on updates that ask for a probe.
func probeRequested() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[v1alpha1.ProbeAnnotation] != e.ObjectNew.GetAnnotations()[v1alpha1.ProbeAnnotation]
	}}
}

// Reconcile examines one connection, if it is time to.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var conn v1alpha1.Connection
	err := r.Client.Get(ctx, req.NamespacedName, &conn)
	if apierrors.IsNotFound(err) || err == nil && !conn.DeletionTimestamp.IsZero() {
		r.Metrics.drop(req.NamespacedName)
		r.unsaved.Delete(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot read the connection: %w", err)
	}
	allowed, err := r.beyondPlan(ctx, &conn)
	if err != nil {
		return reconcile.Result{}, err
	}
	declaredLead := r.declaredLead(&conn)
	planned := (allowed > 0) == (conditions.Reason(conn.Status.Conditions) == v1alpha1.ReasonPlanLimit)
	if now := r.Clock.Now(); planned && !due(&conn, declaredLead, now) && !r.replaced(ctx, &conn) {
		r.Metrics.show(&conn)
		return reconcile.Result{RequeueAfter: rest(&conn, declaredLead, now)}, nil
	}
	probe := conn.Annotations[v1alpha1.ProbeAnnotation]
	o := outcome{reason: v1alpha1.ReasonPlanLimit, message: fmt.Sprintf(msgBeyondPlan, allowed)}
	if allowed == 0 {
		o = r.examine(ctx, &conn)
	}
	// The result is worth writing even if this process is told to end.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportWithin)
	defer cancel()
	if err := r.report(writing, &conn, o, probe); err != nil {
		return reconcile.Result{}, err
	}
	r.Metrics.show(&conn)
	if o.reason == v1alpha1.ReasonConnected {
		r.tidy(ctx, &conn, o.read)
	}
	return reconcile.Result{RequeueAfter: next(&conn, o, declaredLead, r.Clock.Now())}, nil
}

func (r *Reconciler) declaredLead(conn *v1alpha1.Connection) time.Duration {
	if platform, ok := r.Platforms[conn.Spec.Platform]; ok {
		return platform.Capabilities().RefreshLead
	}
	return 0
}

// replaced tells whether a disconnected account was given other credentials in
// place, as GitOps users do: nothing else about the connection changes then.
func (r *Reconciler) replaced(ctx context.Context, conn *v1alpha1.Connection) bool {
	if !needsReconnect(conditions.Reason(conn.Status.Conditions)) {
		return false
	}
	read, err := r.Store.Load(ctx, conn)
	return err == nil && read.Version != conn.Status.CredentialsVersion
}

// report writes what an examination found into the status. Others change the
// object at the same time, above all to ask for the next examination; the
// result is then written into what they left, unless that has another spec.
func (r *Reconciler) report(ctx context.Context, conn *v1alpha1.Connection, o outcome, probe string) error {
	now := r.Clock.Now()
	for range mostReports {
		before := conn.Status.DeepCopy()
		apply(conn, o, probe, now)
		uid, generation := conn.UID, conn.Generation
		if err := r.status.Report(ctx, conn, before, &conn.Status); !apierrors.IsConflict(err) {
			return err
		}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(conn), conn); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot read the connection again: %w", err)
		}
		if conn.UID != uid || conn.Generation != generation {
			return nil
		}
	}
	return errors.New("cannot write the status of the connection: somebody else changes it all the time")
}
