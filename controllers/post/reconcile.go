// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/rules"
)

// Reconcile reads the objects that a post refers to, calls delivery.Decide, and runs the returned actions.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.assistant.end()
	r.owners.Start()
	defer r.scheduler.ReturnWake(req.String())

	post, reduced, err := r.fetch(ctx, req.NamespacedName)
	if err != nil || post == nil {
		return ctrl.Result{}, err
	}
	defer r.preparer.ReleaseUnused(req.String(), post)
	known := r.states.get(req.NamespacedName, post.UID)
	if known.publish.Stale(post) {
		// The cache does not contain this process's last write yet; its event will trigger the next reconciliation.
		return ctrl.Result{}, nil
	}
	now := r.o.Clock.Now()
	r.startOnce.Do(func() { r.startedAt = now })
	ctx, span := startTrace(ctx, r.o.Tracer, post, now)
	p := newReconciliation(ctx, post, known, now)
	p.reduced, p.decide = reduced, delivery.Decide
	err = r.reconcile(ctx, p)
	switch {
	case err == nil && p.isFinished():
		r.ended(ctx, p)
	case err == nil && (p.wrote || !known.recordRequested):
		known.recordRequested = true
		r.archiver.Enqueue(p.Post)
	}
	endTrace(span, p, err)
	return r.result(p, err)
}

// fetch returns a post, and whether the cache holds only part of it. It returns nil if the post no longer exists.
func (r *Reconciler) fetch(ctx context.Context, key types.NamespacedName) (post *v1alpha1.Post, reduced bool, err error) {
	post = &v1alpha1.Post{}
	if err := r.o.Client.Get(ctx, key, post); err != nil {
		if apierrors.IsNotFound(err) {
			r.states.forget(key)
			r.limits.CancelProbes(key)
			r.preparer.ReleaseUnused(key.String(), nil)
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("cannot read the post: %w", err)
	}
	reduced = !kubeclient.IsComplete(post)
	if there, err := r.inputs.fetchFull(ctx, post); err != nil || !there {
		return nil, false, err
	}
	return post, reduced, nil
}

// result returns the result of a reconciliation that ended with err.
func (r *Reconciler) result(p *reconciliation, err error) (ctrl.Result, error) {
	r.states.prune(p.key, p.wait.ForInputs || p.wrote || err != nil)
	switch {
	case apierrors.IsConflict(err):
		// Another client has written first, and its write triggers a reconciliation.
		p.log.V(1).Info("the post has changed; retrying", "error", err.Error())
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case p.wrote || p.wait.Until.IsZero():
		return ctrl.Result{}, nil
	}
	return r.requeue(p), nil
}

// conflictPause gives the cache time to catch up after a conflict.
const conflictPause = 50 * time.Millisecond

// requeue requeues the post at the time in p.wait. A scheduled post gets a lower priority than its team's first posts
// in the same second, so that ten thousand posts of one team do not delay the posts of other teams.
func (r *Reconciler) requeue(p *reconciliation) ctrl.Result {
	// A zero RequeueAfter would not requeue the post.
	result := ctrl.Result{RequeueAfter: max(p.wait.Until.Sub(r.o.Clock.Now()), time.Millisecond)}
	if p.wait.InTurn {
		result.Priority = new(r.queue.priority(p.Post))
		r.prefetcher.expect(p.Post, p.Due())
		if r.publisher.Groups != nil {
			r.crowds.expect(p.key, p.Due())
		}
	}
	return result
}

func (r *Reconciler) reconcile(ctx context.Context, p *reconciliation) error {
	if added, err := r.finalizers.Ensure(ctx, p.Post); err != nil || added {
		p.wrote = added
		return err //nolint:wrapcheck // the error names the operation
	}
	if err := r.inputs.read(ctx, p); err != nil {
		return err
	}
	r.armer.results.moveTo(p.key, &p.state.publish)
	facts := r.facts(p)
	if answered, err := r.answerRequest(ctx, p, facts); err != nil || answered {
		return err
	}
	return r.execute(ctx, p, facts, p.decide(facts))
}

func (r *Reconciler) facts(p *reconciliation) *delivery.Facts {
	f := &delivery.Facts{
		View: p.View, Now: p.now, StartedAt: r.startedAt, Settings: r.o.settings(), Platforms: r.o.Platforms, Connections: p.connections, Media: p.media,
		Unowned: p.unowned, NamespaceTerminating: p.namespaceTerminating, Suspended: p.suspended, Suspensions: p.suspensions, Rollback: p.rollback,
		Holder:  r.o.Holder,
		Crowded: !p.reduced && r.crowds.isCrowded(p.Due(), p.now), Group: r.armer.groupState,
		Results:            p.state.publish.Drain(p.Post),
		CredentialsProblem: func(connection string) error { return p.credentials[connection] },
	}
	f.BlockedUntil = func(conn *v1alpha1.Connection) time.Time { return p.limits.BlockedUntil(conn, p.now) }
	f.NeedsProbe = func(conn *v1alpha1.Connection) bool { return p.limits.NeedsProbe(conn, p.now) }
	f.MayProbe = func(conn *v1alpha1.Connection) bool { return p.limits.AcquireProbe(conn, p.now) }
	f.Preparation = func(target int) delivery.Preparation {
		return r.preparer.State(&p.state.prepare, r.deliveries.target(p, target), p.now)
	}
	f.Invalid = func() field.ErrorList {
		env := rules.Env{
			Connection:   func(name string) *v1alpha1.Connection { return p.connections[name] },
			Media:        func(name string) *v1alpha1.Media { return p.media[name] },
			Capabilities: r.o.Platforms.Capabilities,
			Converts:     p.converts,
			Accepted:     isAccepted(p.Post),
			Stored:       validatedBefore(p.Post),
		}
		return append(rules.Validate(p.Post, env), rules.ValidateOptions(p.Post, env)...)
	}
	return f
}

func isAccepted(post *v1alpha1.Post) bool {
	c := meta.FindStatusCondition(post.Status.Conditions, v1alpha1.ConditionAccepted)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == post.Generation
}

// validatedBefore returns the post if its size was validated before, possibly by a version with higher limits, and nil
// otherwise. A rejected post, even one rejected for its size, is validated like a new one, as the webhook would do. A
// post in a namespace without a team may have been accepted by a version without teams.
func validatedBefore(post *v1alpha1.Post) *v1alpha1.Post {
	accepted := meta.FindStatusCondition(post.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Reason == v1alpha1.ReasonInvalid {
		return nil
	}
	return post
}

// answerRequest lists the candidates again if the social.herald.dev/list-candidates annotation requests it, and removes
// the annotation. A user's resolutions and unrecorded results take precedence. It reports whether it did so.
func (r *Reconciler) answerRequest(ctx context.Context, p *reconciliation, f *delivery.Facts) (answered bool, err error) {
	_, requested := p.Post.Annotations[v1alpha1.ListCandidatesAnnotation]
	_, settles := p.Post.Annotations[v1alpha1.SettleAnnotation]
	if !requested || settles || len(f.Results) > 0 || !p.Post.DeletionTimestamp.IsZero() {
		return false, nil
	}
	var targets []int
	for i := range p.Post.Status.Targets {
		if index := int(p.Post.Status.Targets[i].Index); index < len(p.Post.Spec.Targets) {
			targets = append(targets, index)
		}
	}
	listCandidates(ctx, r.lookups, p, f, targets)
	if err := r.write(ctx, p, nil); err != nil {
		return true, err
	}
	return true, removeAnnotation(ctx, r.o.Client, p, v1alpha1.ListCandidatesAnnotation)
}

// ended ends the delivery of a post for now: it requests the post's record, and releases what a finished post used.
func (r *Reconciler) ended(ctx context.Context, p *reconciliation) {
	if p.isFinished() {
		r.cleanUp(ctx, p)
	}
	r.archiver.Enqueue(p.Post)
}

func (r *Reconciler) cleanUp(ctx context.Context, p *reconciliation) {
	r.plans.releaseUnused(ctx, p)
	r.limits.CancelProbes(p.key)
	if err := r.preparer.Discard(ctx, &p.state.prepare, p.Post, p.hasUploadSecret); err != nil {
		p.log.Info("the Secret of the post's uploads stays until the post is removed", "error", err.Error())
	}
}
