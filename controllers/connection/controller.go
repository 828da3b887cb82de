// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection maintains connected accounts: it asks each platform whether an
// account can be published to, and renews the tokens. It is the only writer of
// credentials, and of the status of Connections.
//
// Only a fault that a person has to mend disconnects an account. When a platform or
// the API server does not answer, the status says so until it does.
package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
	"github.com/herald-social/herald/internal/credentials/spool"
	"github.com/herald-social/herald/internal/deadline"
	"github.com/herald-social/herald/internal/eventrecorder"
	"github.com/herald-social/herald/internal/logconstructor"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/retries"
	"github.com/herald-social/herald/internal/sweeps"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
)

// Secrets are not named here: the Team's role binding gives the manager the
// right to those of team namespaces only.
//
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// reportWithin bounds the writing of a status.
	reportWithin = 10 * time.Second
	// conflictPause lets the cache catch up after a lost write.
	conflictPause = time.Second
	// mostReports is how often the write of a status is tried after conflicts.
	mostReports = 10
)

// Options is what the reconciler needs. Client, APIReader, Platforms, Store, Owned and
// Clock are required.
type Options struct {
	// Client reads from the cache and writes to the API server, from which APIReader
	// reads.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.Clock
	// Platforms are the platforms of this process.
	Platforms platforms.Registry
	// Store keeps the tokens.
	Store *credentials.Store
	// Renewed hears that a token was replaced by one that was obtained with
	// it; nil tells nobody.
	Renewed func(old, renewed credentials.Token)
	// Events takes the events of connections; nil emits none.
	Events events.EventRecorder
	// Owned reports whether a team owns a namespace. In others, no account is used.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Owner returns the team that owns a namespace, or nil: its plan may limit the
	// number of accounts. A nil Owner sets no limit.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Metrics exposes the state of connections; nil exposes nothing.
	Metrics *Metrics
	// Unlisted counts the errors of platforms that are in no table; nil counts nothing.
	Unlisted *unlisted.Counter
	// Namespaces are those that are watched; empty means all.
	Namespaces configv1alpha1.Namespaces
	// Spool keeps renewed tokens over the end of the process until they are stored; nil keeps
	// none.
	Spool *spool.Spool
	// Grace is how long the manager takes to stop at most: as long renewed tokens are stored.
	Grace time.Duration
	// MaxConcurrentReconciles is how many connections are examined at once, most of
	// the time waiting for platforms (default 32).
	MaxConcurrentReconciles int
}

// Reconciler reconciles connections.
type Reconciler struct {
	Options

	status conditions.Reporter
	// unsaved holds renewed tokens that could not be stored yet, by the name of the
	// working copy that they belong into.
	unsaved sync.Map
	// inherited are those of a process before this one, and inheritedAll is false if some of them could
	// not be read so far.
	inherited    []unsaved
	inheritedAll bool
	// locks has each working copy examined once at a time, and verdicts are what the platform
	// said lately of inputs that were not taken over.
	locks    keyedLock
	verdicts *cache.LRUExpireCache
	// registered are the working copies that stand in the register, and deleted the connections
	// that were deleted a moment ago, by their names.
	registered, deleted sync.Map
	// stopping is set once the manager was told to stop.
	stopping atomic.Bool
}

// New returns a reconciler, which knows of the renewed tokens that lie in Safe; an error says
// which of the required options is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Platforms == nil || o.Store == nil || o.Owned == nil || o.Clock == nil {
		return nil, errors.New("the connection reconciler needs Client, APIReader, Platforms, Store, Owned and Clock")
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil, o.Clock)
	}
	o.Events = eventrecorder.New(o.Events, o.Client.Scheme(), o.Clock)
	r := &Reconciler{Options: o, verdicts: cache.NewLRUExpireCacheWithClock(mostVerdicts, o.Clock), status: conditions.Reporter{
		Client: o.Client, Clock: o.Clock, Events: o.Events, Action: "Probe", Normal: []string{v1alpha1.ReasonConnected, v1alpha1.ReasonDisabled},
	}}
	r.inherited, r.inheritedAll = r.loadSpooled()
	return r, nil
}

// SetupWithManager adds the reconciler to a manager. A connection is reconciled when
// its spec changes, when the annotation social.herald.dev/probe-requested asks for it,
// when a post has found a limit of its account, and when that ends,
// when the plan of its team may cover other connections, when a Team comes to own its
// namespace, and by the clock; never because of its own status.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ctl := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Connection{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, probeRequested(), limitChanged()))).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.Client, func() client.ObjectList { return &v1alpha1.ConnectionList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.MaxConcurrentReconciles, 32), ReconciliationTimeout: deadline.Connection, RateLimiter: retries.Limiter()}).
		WithLogConstructor(logconstructor.ForController(mgr.GetLogger(), "connection"))
	if r.Owner != nil {
		changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
		ctl = ctl.
			Watches(&v1alpha1.Connection{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), changed).
			Watches(&v1alpha1.Team{}, handler.EnqueueRequestsFromMapFunc(r.connectionsOfTeam), changed)
	}
	if err := ctl.Watches(&v1alpha1.Connection{}, r.recordDeleted()).Complete(r); err != nil {
		return fmt.Errorf("cannot set up the connection controller: %w", err)
	}
	sweep := sweeps.Sweep{Name: "connection-sweep", Do: r.Sweep, First: firstSweep, Every: sweepEvery, Within: deadline.Sweep, Clock: r.Clock}
	if err := errors.Join(mgr.Add(sweep), mgr.Add(r.Flusher())); err != nil {
		return fmt.Errorf("cannot set up what looks after tokens: %w", err)
	}
	return nil
}

// probeRequested passes updates that ask for a probe.
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
		again, err := r.forget(ctx, req.NamespacedName)
		return reconcile.Result{RequeueAfter: again}, err
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot read the connection: %w", err)
	}
	r.deleted.Delete(req.NamespacedName)
	held, err := r.withheld(ctx, &conn)
	if err != nil {
		return reconcile.Result{}, err
	}
	declaredLead := r.declaredLead(&conn)
	if now := r.Clock.Now(); held.reason == withheldBy(&conn) && !due(&conn, declaredLead, now) && !r.replaced(ctx, &conn) {
		return r.reconcileIdle(ctx, &conn, declaredLead, now)
	}
	probe := conn.Annotations[v1alpha1.ProbeAnnotation]
	o := held
	if o.reason == "" {
		var again time.Duration
		if o, again = r.examineLocked(ctx, &conn); again > 0 {
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	// The result is written even if this process is told to end.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportWithin)
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

// reconcileIdle does for a connection that is not examined now what needs no platform.
func (r *Reconciler) reconcileIdle(ctx context.Context, conn *v1alpha1.Connection, declaredLead time.Duration, now time.Time) (reconcile.Result, error) {
	if isLimitStale(conn, now) {
		if err := r.reportLimit(ctx, conn, now); apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictPause}, nil // the cache shows the change in a moment
		} else if err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.status.Report(ctx, conn, &conn.Status, &conn.Status); err != nil { // a warning that was held back
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

// replaced reports whether a disconnected account was given other credentials in place, as
// GitOps users do: nothing else about the connection changes then.
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
	_, told := r.verdicts.Get(verdictKey(conn, found.Input.Hash))
	return found.Input.Freshness == credentials.New && !told
}

// report writes the outcome of an examination into the status. Clients change the
// object at the same time, above all to ask for the next examination; the outcome is
// then written into the changed object, unless that has another spec.
func (r *Reconciler) report(ctx context.Context, conn *v1alpha1.Connection, o outcome, probe string) error {
	now := r.Clock.Now()
	for range mostReports {
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
