// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

// assistant prepares posts' files while another process delivers the posts. It never claims: it runs the actions of
// delivery.DecidePreparation. When this process begins to deliver posts, the assistant stops, and the Reconciler, which
// shares each post's state with it, continues the running preparations.
type assistant struct {
	o        *Options
	states   *postStates
	inputs   *inputReader
	preparer *prepare.Preparer
	steps    reconcileSteps
	queue    *postQueue

	// ended is set when this process delivers posts. Each reconciliation holds a read lock on active, and stopping cancels
	// them all.
	ended    atomic.Bool
	active   sync.RWMutex
	stopping context.Context //nolint:containedctx // it ends with the assistant's role, not with a call
	stop     context.CancelFunc
}

// reconcileSteps are the steps that a reconciliation and a preparation share.
type reconcileSteps interface {
	fetch(ctx context.Context, key types.NamespacedName) (post *v1alpha1.Post, reduced bool, err error)
	facts(p *reconciliation) *delivery.Facts
	execute(ctx context.Context, p *reconciliation, f *delivery.Facts, actions []delivery.Action) error
	result(p *reconciliation, err error) (ctrl.Result, error)
}

// maxAssisted is the number of posts that an assistant reconciles concurrently. Uploads run in the background.
const maxAssisted = 16

func newAssistant(o *Options, states *postStates, inputs *inputReader, preparer *prepare.Preparer, steps reconcileSteps) *assistant {
	a := &assistant{o: o, states: states, inputs: inputs, preparer: preparer, steps: steps, queue: newPostQueue(o, states)}
	a.stopping, a.stop = context.WithCancel(context.Background())
	return a
}

// end ends the assistant's role, and waits for its reconciliations, which may share the state of a post.
func (a *assistant) end() {
	if a.ended.Load() {
		return
	}
	a.stop()
	a.active.Lock()
	defer a.active.Unlock()
	a.ended.Store(true)
	a.queue.queue.Store(nil)
}

// setupWithManager registers the assistant, which runs in every process. If Options.Holder is empty, there is no
// assistant.
func (a *assistant) setupWithManager(mgr ctrl.Manager) error {
	if a.o.Holder == "" {
		return nil
	}
	hasFiles := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		post, ok := obj.(*v1alpha1.Post)
		return ok && !a.ended.Load() && len(posting.OwnMedia(&post.Spec)) > 0
	})
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("post-assistant").
		For(&v1alpha1.Post{}, builder.WithPredicates(hasFiles)).
		WatchesRawSource(source.Func(a.queue.start)).
		WithOptions(controller.Options{
			NeedLeaderElection: new(false), MaxConcurrentReconciles: maxAssisted,
			ReconciliationTimeout: pacing.PostTimeout, RateLimiter: pacing.NewRateLimiter(),
		}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "post-assistant")).
		Complete(a); err != nil {
		return fmt.Errorf("cannot set up the assistant of the post controller: %w", err)
	}
	return nil
}

// Reconcile prepares a post, unless this process delivers posts.
func (a *assistant) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	a.active.RLock()
	defer a.active.RUnlock()
	if a.ended.Load() {
		return ctrl.Result{}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	detach := context.AfterFunc(a.stopping, cancel) //nolint:contextcheck // it ends with the role of the assistant
	defer detach()

	post, _, err := a.steps.fetch(ctx, req.NamespacedName)
	if err != nil || post == nil {
		return ctrl.Result{}, err
	}
	defer a.preparer.ReleaseUnused(req.String(), post)
	known := a.states.get(req.NamespacedName, post.UID)
	if known.publish.Stale(post) {
		return ctrl.Result{}, nil
	}
	p := newReconciliation(ctx, post, known, a.o.Clock.Now())
	p.decide = delivery.DecidePreparation
	return a.steps.result(p, a.prepare(ctx, p))
}

func (a *assistant) prepare(ctx context.Context, p *reconciliation) error {
	if err := a.inputs.readForPreparation(ctx, p); err != nil {
		return err
	}
	facts := a.steps.facts(p)
	return a.steps.execute(ctx, p, facts, p.decide(facts))
}
