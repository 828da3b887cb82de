// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notifier sends the notifications of Notifiers. Package notify selects and orders them.
//
// Each Notifier has a worker, with its own queue and goroutine (worker.go). Workers of a namespace share a watch of its
// finished posts (feed.go). The other events come from the manager's cache. A worker sends one notification at a time,
// outside of every reconciliation, so a receiver delays only its own notifications.
//
// Progress is stored in the Notifier's status, at most every saveEvery. If a process ends in between, the next one
// sends the latest notifications again, with the same ids.
package notifier

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/notify"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=notifiers,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=notifiers/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts;connections;media;teams,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Sender sends requests to receivers.
type Sender interface {
	// Post sends a JSON body with these headers. The error is a *receiver.Error unless ctx is done.
	Post(ctx context.Context, address string, header map[string]string, body []byte) error
}

// Mailer sends emails.
type Mailer interface {
	// Send sends an email. The id is the same for repeated emails. The error is a *receiver.Error unless ctx is done.
	Send(ctx context.Context, id string, to []string, subject, body string) error
}

// Options configures the Reconciler. Client, APIReader, Watcher, Cache, Clock, Owned and Sender are required.
type Options struct {
	// Client reads from the cache and writes to the API server. APIReader reads from the API server, and Watcher
	// watches it: the cache lacks finished posts. Cache reports changes to the other objects.
	Client    client.Client
	APIReader client.Reader
	Watcher   client.WithWatch
	Cache     cache.Cache
	Clock     clock.WithTicker
	// Owned reports whether a team owns a namespace.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Namespaces are the watched namespaces; empty means all.
	Namespaces configv1alpha1.Namespaces
	// Sender sends requests. Mailer sends emails; nil without a mail server.
	Sender Sender
	Mailer Mailer
	// SiteURL is the address of the web application, for links; empty for none.
	SiteURL string
	// Events records the events of notifiers. If nil, none are emitted.
	Events events.EventRecorder
	// Metrics counts attempts. If nil, nothing is counted.
	Metrics *Metrics
}

// Reconciler starts and stops the workers of Notifiers.
type Reconciler struct {
	Options

	status    conditions.Reporter
	receivers receivers
	lanes     lanes
	changes   chan change

	mu sync.RWMutex
	// workers are the running workers, and feeds the namespaces that have some.
	workers map[types.NamespacedName]*worker
	feeds   map[string]*feed
}

// change is the current state of a Notifier, or nil if it is deleted.
type change struct {
	key      types.NamespacedName
	notifier *v1alpha1.Notifier
}

// New returns a Reconciler. It returns an error if a required option is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Watcher == nil || o.Cache == nil || o.Clock == nil || o.Owned == nil || o.Sender == nil {
		return nil, errors.New("the notifier reconciler needs Client, APIReader, Watcher, Cache, Clock, Owned and Sender")
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	o.Events = conditions.NewEventRecorder(o.Events, o.Client.Scheme(), o.Clock)
	r := &Reconciler{
		Options: o, lanes: newLanes(), changes: make(chan change),
		receivers: receivers{client: o.Client, clock: o.Clock, sender: o.Sender, mailer: o.Mailer},
		workers:   map[types.NamespacedName]*worker{}, feeds: map[string]*feed{},
		status: conditions.Reporter{
			Client: o.Client, Clock: o.Clock, Events: o.Events, Action: "Notify",
			Normal: []string{v1alpha1.ReasonDelivering, v1alpha1.ReasonSuspended},
		},
	}
	o.Metrics.observe(r.observe)
	return r, nil
}

// SetupWithManager follows Notifiers, and the Teams that acquire their namespaces.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	inNamespace := quota.InNamespace(r.Namespaces, r.Client, func() client.ObjectList { return &v1alpha1.NotifierList{} })
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Notifier{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Team{}, inNamespace, builder.WithPredicates(quota.OwnershipChanged())).
		WithOptions(controller.Options{ReconciliationTimeout: pacing.NotifierTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "notifier")).
		Complete(r)
	if err := errors.Join(err, mgr.Add(r)); err != nil {
		return fmt.Errorf("cannot set up the notifier controller: %w", err)
	}
	return nil
}

// Reconcile passes the current state of a Notifier to its worker.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c := change{key: req.NamespacedName, notifier: &v1alpha1.Notifier{}}
	err := r.Client.Get(ctx, req.NamespacedName, c.notifier)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot read the notifier: %w", err)
	}
	if err != nil || !c.notifier.DeletionTimestamp.IsZero() {
		c.notifier = nil
	}
	select {
	case r.changes <- c:
		return reconcile.Result{}, nil
	case <-ctx.Done():
		return reconcile.Result{}, ctx.Err()
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader sends.
func (r *Reconciler) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It runs the workers until ctx is done.
func (r *Reconciler) Start(ctx context.Context) error {
	if err := r.follow(ctx); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-r.changes:
			r.apply(ctx, c, &running)
		}
	}
}

// apply starts, updates or stops a worker, and the feed of its namespace.
func (r *Reconciler) apply(ctx context.Context, c change, running *sync.WaitGroup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, namespace := r.workers[c.key], c.key.Namespace
	if w != nil && (c.notifier == nil || c.notifier.UID != w.uid) {
		w.stop()
		delete(r.workers, c.key)
		w = nil
	}
	switch {
	case c.notifier == nil:
	case w != nil:
		w.update(c.notifier)
	default:
		f := r.feeds[namespace]
		if f == nil {
			f = newFeed(r, namespace)
			r.feeds[namespace] = f
			within, stop := context.WithCancel(ctx)
			f.stop = stop
			running.Go(func() { f.run(within) })
		}
		w = newWorker(r, f, c.notifier)
		r.workers[c.key] = w
		within, stop := context.WithCancel(ctx)
		w.stop = stop
		running.Go(func() { w.run(within) })
	}
	if f := r.feeds[namespace]; f != nil && len(r.in(namespace)) == 0 {
		f.stop()
		delete(r.feeds, namespace)
	}
}

// in returns the workers of a namespace. The caller holds mu.
func (r *Reconciler) in(namespace string) (found []*worker) {
	if r.feeds[namespace] == nil {
		return nil
	}
	for key, w := range r.workers {
		if key.Namespace == namespace {
			found = append(found, w)
		}
	}
	return found
}

// offer passes events to the workers of a namespace.
func (r *Reconciler) offer(namespace string, events ...notify.Event) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, w := range r.in(namespace) {
		w.offer(events...)
	}
}

// serves reports whether a namespace has workers.
func (r *Reconciler) serves(namespace string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.feeds[namespace] != nil
}
