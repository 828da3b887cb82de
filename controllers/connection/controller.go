// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection maintains connected accounts: it checks with each platform that the account can be published to,
// and renews the tokens. It is the only writer of credentials and of the Connections' status.
//
// Only a fault that a user must fix disconnects an account. Platform and API server outages are reported in the status
// and retried.
package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
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

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
)

// The role has no rule for Secrets: the Team's role binding grants access only to the Secrets of team namespaces.
//
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	reportTimeout = 10 * time.Second
	// conflictPause is the requeue delay after a conflict. It lets the cache catch up.
	conflictPause = time.Second
	// maxReports limits the attempts at a status write after conflicts.
	maxReports = 10
)

// Options configures the Reconciler. Client, APIReader, Platforms, Store, Owned and Clock are required.
type Options struct {
	// Client reads from the cache and writes to the API server. APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.Clock
	// Platforms are the platforms that this process supports.
	Platforms platforms.Registry
	// Store reads and writes the tokens.
	Store *credentials.Store
	// Renewed is called after a renewed token has replaced the old one. It is optional.
	Renewed func(old, renewed credentials.Token)
	// Events records the events of connections. If nil, none are emitted.
	Events events.EventRecorder
	// Owned reports whether a team owns a namespace. Accounts in other namespaces are not used.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Owner returns a namespace's team, whose plan may limit accounts, or nil. If Owner is nil, there is no limit.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Metrics exposes the state of connections. If nil, nothing is exposed.
	Metrics *Metrics
	// Unlisted counts platform errors whose code is not in a table. If nil, nothing is counted.
	Unlisted *unlisted.Counter
	// Namespaces are the watched namespaces; empty means all.
	Namespaces configv1alpha1.Namespaces
	// Spool persists renewed tokens across restarts until they are stored. If nil, none are persisted.
	Spool *credentials.Spool
	// Grace is the manager's shutdown timeout. Renewed tokens are still stored within it.
	Grace time.Duration
	// MaxConcurrentReconciles limits concurrent examinations (default 32), which mostly wait for the platform.
	MaxConcurrentReconciles int
}

// Reconciler reconciles connections.
type Reconciler struct {
	Options

	status conditions.Reporter
	// locks serializes examinations of a working copy.
	locks     *keyedLock
	register  *copyRegister
	tokens    *tokenSaver
	examiner  *examiner
	revoker   *tokenRevoker
	collector *garbageCollector
}

// New returns a Reconciler with the tokens from Spool. It returns an error if a required option is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Platforms == nil || o.Store == nil || o.Owned == nil || o.Clock == nil {
		return nil, errors.New("the connection reconciler needs Client, APIReader, Platforms, Store, Owned and Clock")
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil, o.Clock)
	}
	o.Events = conditions.NewEventRecorder(o.Events, o.Client.Scheme(), o.Clock)
	locks, register := &keyedLock{}, &copyRegister{store: o.Store}
	tokens := newTokenSaver(&o, locks)
	revoker := &tokenRevoker{
		client: o.Client, apiReader: o.APIReader, platforms: o.Platforms, store: o.Store, clock: o.Clock, owned: o.Owned, namespaces: o.Namespaces,
	}
	return &Reconciler{
		Options: o, locks: locks, register: register, tokens: tokens, revoker: revoker,
		status: conditions.Reporter{
			Client: o.Client, Clock: o.Clock, Events: o.Events, Action: "Probe", Normal: []string{v1alpha1.ReasonConnected, v1alpha1.ReasonDisabled},
		},
		examiner: &examiner{
			reader: o.Client, platforms: o.Platforms, store: o.Store, spool: o.Spool, clock: o.Clock, unlisted: o.Unlisted,
			tokens: tokens, register: register, verdicts: cache.NewLRUExpireCacheWithClock(maxVerdicts, o.Clock),
		},
		collector: &garbageCollector{
			client: o.Client, apiReader: o.APIReader, store: o.Store, clock: o.Clock, owned: o.Owned, namespaces: o.Namespaces,
			locks: locks, register: register, tokens: tokens, revoker: revoker,
		},
	}, nil
}

// SetupWithManager adds the reconciler to a manager. A connection is reconciled when its spec changes, when the
// social.herald.dev/probe-requested annotation changes, when status.rateLimitedUntil changes, when the limit ends, when
// the team's plan may cover other connections, when a Team acquires the namespace, and on a schedule. Other status
// changes do not trigger a reconciliation.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ctl := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Connection{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, probeRequested(), limitChanged()))).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.Namespaces, r.Client, func() client.ObjectList { return &v1alpha1.ConnectionList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.MaxConcurrentReconciles, 32), ReconciliationTimeout: pacing.ConnectionTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "connection"))
	if r.Owner != nil {
		changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
		ctl = ctl.
			Watches(&v1alpha1.Connection{}, handler.EnqueueRequestsFromMapFunc(r.neighbors), changed).
			Watches(&v1alpha1.Team{}, handler.EnqueueRequestsFromMapFunc(r.connectionsOfTeam), changed)
	}
	if err := ctl.Watches(&v1alpha1.Connection{}, r.collector.recordDeleted()).Complete(r); err != nil {
		return fmt.Errorf("cannot set up the connection controller: %w", err)
	}
	sweep := pacing.Sweep{Name: "connection-sweep", Do: r.collector.sweep, First: firstSweep, Every: sweepEvery, Within: pacing.SweepTimeout, Clock: r.Clock}
	if err := errors.Join(mgr.Add(sweep), mgr.Add(r.revoker.sweep()), mgr.Add(r.Flusher())); err != nil {
		return fmt.Errorf("cannot set up the sweeps and the storage of renewed tokens: %w", err)
	}
	return nil
}

func probeRequested() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[v1alpha1.ProbeAnnotation] != e.ObjectNew.GetAnnotations()[v1alpha1.ProbeAnnotation]
	}}
}

// Reconcile examines one connection if it is due.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var conn v1alpha1.Connection
	err := r.Client.Get(ctx, req.NamespacedName, &conn)
	if apierrors.IsNotFound(err) || err == nil && !conn.DeletionTimestamp.IsZero() {
		r.Metrics.drop(req.NamespacedName)
		again, err := r.collector.forget(ctx, req.NamespacedName)
		return reconcile.Result{RequeueAfter: again}, err
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot read the connection: %w", err)
	}
	r.collector.cancel(req.NamespacedName)
	withheld, err := r.withheld(ctx, &conn)
	if err != nil {
		return reconcile.Result{}, err
	}
	declaredLead := r.declaredLead(&conn)
	if now := r.Clock.Now(); withheld.reason == withheldBy(&conn) && !due(&conn, declaredLead, now) && !r.replaced(ctx, &conn) {
		return r.reconcileIdle(ctx, &conn, declaredLead, now)
	}
	probe := conn.Annotations[v1alpha1.ProbeAnnotation]
	o := withheld
	if o.reason == "" {
		var again time.Duration
		if o, again = r.examineLocked(ctx, &conn); again > 0 {
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	// The result is written even during shutdown.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	if err := r.report(writing, &conn, o, probe); err != nil {
		return reconcile.Result{}, err
	}
	r.Metrics.set(&conn)
	if o.reason == v1alpha1.ReasonConnected {
		r.deleteOldSecret(ctx, &conn, o.input)
		r.sweepSecrets(ctx, &conn)
	}
	now := r.Clock.Now()
	return reconcile.Result{RequeueAfter: r.status.RequeueAfter(&conn, requeueForLimit(&conn, requeueAfterOutcome(&conn, o, declaredLead, now), now))}, nil
}

func (r *Reconciler) reconcileIdle(ctx context.Context, conn *v1alpha1.Connection, declaredLead time.Duration, now time.Time) (reconcile.Result, error) {
	if isLimitStale(conn, now) {
		if err := r.reportLimit(ctx, conn, now); apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictPause}, nil // the cache will show the change shortly
		} else if err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.status.Report(ctx, conn, &conn.Status, &conn.Status); err != nil { // emit a warning that was held back
		return reconcile.Result{}, err
	}
	r.Metrics.set(conn)
	again, err := r.copyEarly(ctx, conn)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.status.RequeueAfter(conn, requeueForLimit(conn, cmp.Or(again, requeueAfter(conn, declaredLead, now)), now))}, nil
}

func (r *Reconciler) declaredLead(conn *v1alpha1.Connection) time.Duration {
	if platform, ok := r.Platforms[conn.Spec.Platform]; ok {
		return platform.Capabilities().RefreshLead
	}
	return 0
}

// replaced reports whether a disconnected account's credentials were replaced in place, as GitOps users do. Such a
// change leaves the Connection's spec unchanged.
func (r *Reconciler) replaced(ctx context.Context, conn *v1alpha1.Connection) bool {
	if !needsReconnect(conditions.Reason(conn.Status.Conditions)) {
		return false
	}
	found, err := r.Store.Find(ctx, conn)
	switch {
	case err != nil:
		return false
	case found.Working == nil:
		return true
	case found.Known && found.Working.Version != conn.Status.CredentialsVersion:
		return true
	}
	return found.Input.Freshness == credentials.New && !r.examiner.hasVerdict(conn, found.Input.Hash)
}

// report writes the outcome of an examination to the status. After a conflict it applies the outcome to the new object,
// unless the spec has changed. Conflicts are common: clients request the next examination while one is running.
func (r *Reconciler) report(ctx context.Context, conn *v1alpha1.Connection, o outcome, probe string) error {
	now := r.Clock.Now()
	for range maxReports {
		before := conn.Status.DeepCopy()
		apply(conn, o, probe, now)
		uid, generation := conn.UID, conn.Generation
		err := r.status.Report(ctx, conn, before, &conn.Status)
		if err == nil {
			r.announceLimit(ctx, conn, before.Conditions)
			return nil
		}
		if !apierrors.IsConflict(err) {
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
	return errors.New("cannot write the status of the connection: other clients changed it each time; the next examination tries again")
}
