// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package team creates the namespace of each Team. It grants the manager access to the Secrets there and, if the web
// application is enabled, lets the apiserver create Secrets. A ResourceQuota limits the stored objects according to the
// team's budget. The package also reconciles the team's Usages and shows them in status.usage.
//
// Deleting a Team keeps its namespace and everything in it, so that one mistaken command does not lose connections and
// posts. To remove the namespace, delete it; to give it to another Team, change its label. The team's records in the
// archive are deleted with the Team.
package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/quota"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;update;delete,resourceNames=herald-manager-secrets;herald-apiserver-credentials
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=get;bind,resourceNames=herald-team-secrets
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=get;list;watch;bind,resourceNames=herald-team-credentials
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=create
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=get;list;watch;update,resourceNames=budget.social.herald.dev
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections;posts,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=usages,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=social.herald.dev,resources=usages/status,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Names are the names of the objects of one Helm release.
type Names struct {
	// RoleBinding grants the manager ClusterRole's permissions for Secrets in each team's namespace.
	RoleBinding string
	ClusterRole string
	// CredentialsBinding grants the apiserver CredentialsRole's permissions in each team's namespace: to create
	// Secrets, and nothing else. Without the web application, the role does not exist and no binding is created.
	CredentialsBinding string
	CredentialsRole    string
}

// Options configures the Reconciler. Client, APIReader, Clock, Manager, APIServer, ManagerNamespace, Names and
// Claimants are required.
type Options struct {
	// Client reads from the cache and writes to the API server. APIReader reads from the API server: a stale copy must
	// not decide whether a namespace is taken.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.PassiveClock
	// Events records the events of teams. If nil, none are emitted.
	Events events.EventRecorder
	// Manager is the account of this process. It is granted access to the Secrets in teams' namespaces.
	Manager rbacv1.Subject
	// APIServer is the account of the apiserver, which stores the tokens of newly connected accounts.
	APIServer rbacv1.Subject
	// ManagerNamespace is the namespace of this installation. No team can own it.
	ManagerNamespace string
	// Names are the names of the release's objects.
	Names Names
	// Namespaces are the namespaces of this installation. Teams of others belong to another installation.
	Namespaces configv1alpha1.Namespaces
	// Absent are the namespaces of this installation in which the manager had no permissions at startup.
	Absent configv1alpha1.Namespaces
	// Claimants returns the teams that claim a namespace, from the cache.
	Claimants func(ctx context.Context, namespace string) ([]v1alpha1.Team, error)
	// Owner returns a namespace's team, or nil. Quota stores the usage of teams. Without them, usage is not counted.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	Quota *quota.UsageStore
	// SuspendAll suspends all teams, or none if nil. SuspensionRetention is how long a past suspension is kept, not
	// counting suspended time. Post deadlines may depend on it, so it is the starting deadline of posts.
	SuspendAll          *installation.Suspension
	SuspensionRetention time.Duration
	// Shards is the number of shards. With less than two, no team is moved between shards, and moves that are still open
	// are ended.
	Shards int
	// Records is the archive with the records of teams, or nil without a bucket.
	Records Records
	// Metrics counts teams that are near their budget or suspended. If nil, nothing is counted.
	Metrics *Metrics
	// MaxConcurrentReconciles limits the teams reconciled concurrently (default 4).
	MaxConcurrentReconciles int
}

// Reconciler reconciles teams.
type Reconciler struct {
	Options

	status      conditions.Reporter
	syncs       syncTracker
	recounts    recounts
	usages      *usageSweeper
	suspensions *suspensionReconciler
}

// New returns a Reconciler. It returns an error if a required option is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Clock == nil || o.Manager.Name == "" || o.APIServer.Name == "" ||
		o.ManagerNamespace == "" || o.Names == (Names{}) || o.Claimants == nil {
		return nil, errors.New("the team reconciler needs Client, APIReader, Clock, Manager, APIServer, ManagerNamespace, Names and Claimants")
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	o.Events = conditions.NewEventRecorder(o.Events, o.Client.Scheme(), o.Clock)
	r := &Reconciler{
		Options: o, usages: &usageSweeper{client: o.Client, apiReader: o.APIReader, quota: o.Quota},
		status: conditions.Reporter{
			Client: o.Client, Events: o.Events, Action: "Reconcile", Normal: []string{v1alpha1.ReasonNamespaceReady},
		},
	}
	r.suspensions = &suspensionReconciler{
		client: o.Client, clock: o.Clock, status: &r.status, events: o.Events, metrics: o.Metrics, namespaces: o.Namespaces,
		suspendAll: o.SuspendAll, retention: o.SuspensionRetention, shards: o.Shards,
	}
	return r, nil
}

// SetupWithManager adds the reconciler to a manager. A team is reconciled when the Team, its namespace, one of Herald's
// role bindings there or its ResourceQuota changes, when another Team that claims the same namespace changes, and when
// its usage is counted. All teams are reconciled when the web application is added or removed.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	byNamespace := func(namespaceOf func(client.Object) string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return r.teamsOf(ctx, namespaceOf(obj))
		})
	}
	ctl := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Team{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Team{}, byNamespace(wantedNamespace), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, byNamespace(client.Object.GetName)).
		WatchesMetadata(&rbacv1.RoleBinding{}, byNamespace(client.Object.GetNamespace)).
		Watches(&corev1.ResourceQuota{}, byNamespace(client.Object.GetNamespace), builder.WithPredicates(wantedQuota)).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.MaxConcurrentReconciles, 4), ReconciliationTimeout: pacing.TeamTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "team"))
	if r.tracksUsage() {
		ctl = ctl.Watches(&v1alpha1.Connection{}, handler.EnqueueRequestsFromMapFunc(r.teamOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			WatchesMetadata(&v1alpha1.Usage{}, r.enqueueCounted(), builder.WithPredicates(countsXPosts))
	}
	if err := r.watchCredentials(mgr, ctl, byNamespace); err != nil {
		return err
	}
	if err := ctl.Complete(r); err != nil {
		return fmt.Errorf("cannot set up the team controller: %w", err)
	}
	return r.suspensions.setupWithManager(mgr)
}

func wantedNamespace(obj client.Object) string {
	if team, ok := obj.(*v1alpha1.Team); ok {
		return team.Spec.Namespace
	}
	return ""
}

func (r *Reconciler) teamsOf(ctx context.Context, namespace string) []reconcile.Request {
	teams, err := r.Claimants(ctx, namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the team of a changed namespace", "namespace", namespace)
		return nil
	}
	requests := make([]reconcile.Request, len(teams))
	for i := range teams {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&teams[i])
	}
	r.syncs.recordChange(requests)
	return requests
}

// conflictPause is the requeue delay after a conflict, so that the cache can catch up.
const conflictPause = 50 * time.Millisecond

// Reconcile reconciles one Team.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var team v1alpha1.Team
	if err := r.Client.Get(ctx, req.NamespacedName, &team); err != nil {
		r.usages.forget(req.Name)
		if apierrors.IsNotFound(err) {
			r.syncs.forget(req.Name)
			r.recounts.forget(req.Name)
		}
		r.Metrics.record(req.Name, nil)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	absent := slices.Contains(r.Absent, team.Spec.Namespace)
	if !absent && !r.Namespaces.Include(team.Spec.Namespace) {
		r.Metrics.record(req.Name, nil)
		return reconcile.Result{}, nil
	}
	if !team.DeletionTimestamp.IsZero() {
		r.Metrics.record(req.Name, nil)
		again, err := r.finalize(ctx, &team)
		return reconcile.Result{RequeueAfter: again}, err
	}
	if absent {
		r.Metrics.record(req.Name, nil)
		return onConflict(r.report(ctx, &team, withoutAccess(&team), nil))
	}
	summary, err := r.sync(ctx, &team)
	if err != nil {
		return onConflict(err)
	}
	var usage *v1alpha1.TeamUsage
	var again time.Duration
	if summary.Ready && r.tracksUsage() {
		usage, again = r.syncUsage(ctx, &team), showEvery
	}
	if err := r.report(ctx, &team, summary, usage); err != nil {
		return onConflict(err)
	}
	if wait, ok := r.recounts.wait(team.Name, r.Clock.Now()); ok && summary.Ready && (again == 0 || wait < again) {
		again = max(wait, conflictPause) // it may be over already
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// onConflict requeues soon after a conflict: the cache lacks the last write, or Kubernetes has updated the quota's
// counts. It returns other errors unchanged.
func onConflict(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	return reconcile.Result{}, err
}

// sync creates the namespace, the quota and the role bindings, if the team may have them. It does not send API requests
// if nothing has changed since the last complete sync.
func (r *Reconciler) sync(ctx context.Context, team *v1alpha1.Team) (conditions.Summary, error) {
	now := r.Clock.Now()
	if r.syncs.isSynced(team, now) {
		return ready(team), nil
	}
	changes := r.syncs.start(team.Name)
	summary, err := r.syncAll(ctx, team)
	if _, isUncounted := r.recounts.wait(team.Name, now); err == nil && summary.Ready && !isUncounted {
		r.syncs.markSynced(team, changes, now)
	}
	return summary, err
}

func (r *Reconciler) syncAll(ctx context.Context, team *v1alpha1.Team) (conditions.Summary, error) {
	teams, err := r.Claimants(ctx, team.Spec.Namespace)
	if err != nil {
		return conditions.Summary{}, err
	}
	if refusal, refused := refuseTeam(team, teams, r.ManagerNamespace); refused {
		return refusal, nil
	}
	namespace, err := r.namespace(ctx, team)
	switch {
	case len(r.Namespaces) > 0 && apierrors.IsForbidden(err):
		return withoutAccess(team), nil
	case err != nil:
		return conditions.Summary{}, err
	}
	if refusal, refused := refuseNamespace(team, namespace); refused {
		return refusal, nil
	}
	if err := r.ensureFinalizer(ctx, team); err != nil {
		return conditions.Summary{}, err
	}
	if err := r.ensureQuota(ctx, team); err != nil {
		return conditions.Summary{}, err
	}
	if err := r.bindAccounts(ctx, team.Spec.Namespace); err != nil {
		return conditions.Summary{}, err
	}
	return ready(team), nil
}

func (r *Reconciler) namespace(ctx context.Context, team *v1alpha1.Team) (*corev1.Namespace, error) {
	var namespace corev1.Namespace
	err := r.APIReader.Get(ctx, types.NamespacedName{Name: team.Spec.Namespace}, &namespace)
	if err == nil {
		return &namespace, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cannot read namespace %q: %w", team.Spec.Namespace, err)
	}
	namespace = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   team.Spec.Namespace,
		Labels: map[string]string{v1alpha1.TeamLabel: team.Name, managedBy: managedByHerald},
	}}
	if err := r.Client.Create(ctx, &namespace); err != nil {
		return nil, fmt.Errorf("cannot create namespace %q: %w", team.Spec.Namespace, err)
	}
	return &namespace, nil
}

func (r *Reconciler) report(ctx context.Context, team *v1alpha1.Team, summary conditions.Summary, usage *v1alpha1.TeamUsage) error {
	before := team.Status.DeepCopy()
	if usage != nil {
		team.Status.Usage = usage
	}
	conditions.Apply(&team.Status.Conditions, summary, team.Generation, r.Clock.Now())
	team.Status.ObservedGeneration = team.Generation
	return r.status.Report(ctx, team, before, &team.Status)
}
