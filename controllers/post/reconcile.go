// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/internal/cachetransform"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/rules"
)

// reconciliation is the state of one reconciliation of a post.
type reconciliation struct {
	// post is the working copy; stored is the status as last read or written.
	post   *v1alpha1.Post
	stored v1alpha1.PostStatus
	key    types.NamespacedName
	now    time.Time
	log    logr.Logger
	state  *postState
	// connections and media hold the existing objects that the post refers to, by name.
	connections map[string]*v1alpha1.Connection
	media       map[string]*v1alpha1.Media
	// limits holds the rate limits that apply to the post.
	limits *limits.View
	// tokens holds the tokens that were read, and credentials the errors of those that cannot be read, both by
	// connection.
	tokens      map[string]platforms.Token
	credentials map[string]error
	// unowned is set if no team owns the namespace. namespaceTerminating is set if the namespace is being deleted while
	// the post's last call has no outcome.
	unowned, namespaceTerminating bool
	// converts is set if the team's videos are converted.
	converts bool
	// suspended is set while the team is suspended, and suspensions holds its recent suspensions.
	suspended   bool
	suspensions []v1alpha1.Suspension
	// rollback is the rollback state of the cluster.
	rollback delivery.Rollback
	// hasUploadSecret is set if the post has a Secret with upload sessions.
	hasUploadSecret bool
	// wrote is set after a write to the post, whose watch event triggers the next reconciliation. calledPlatform is set
	// after a call to a platform or to the archive.
	wrote, calledPlatform bool
	// wait holds the time of the next reconciliation if nothing was written, and quotaRetryAt the time of the next try
	// to count plan usage; zero if no count has failed.
	wait         delivery.Wait
	quotaRetryAt time.Time
}

// conn returns the connection of a target, or nil if it does not exist.
func (p *reconciliation) conn(target int) *v1alpha1.Connection {
	if target >= len(p.post.Spec.Targets) {
		return nil
	}
	return p.connections[p.post.Spec.Targets[target].ConnectionRef.Name]
}

// markStored copies the status of post to stored after a write.
func (p *reconciliation) markStored() {
	p.stored = *p.post.Status.DeepCopy()
	p.wrote = true
}

// isFinished reports whether nothing more will be sent for the post.
func (p *reconciliation) isFinished() bool {
	if p.post.DeletionTimestamp.IsZero() {
		return p.post.Status.Finished
	}
	return !controllerutil.ContainsFinalizer(p.post, v1alpha1.DeliveryFinalizer)
}

// Reconcile reads the objects that a post refers to, calls delivery.Decide, and runs the returned actions.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.owners.Start()
	defer r.scheduler.ReturnWake(req.String())

	var post v1alpha1.Post
	if err := r.o.Client.Get(ctx, req.NamespacedName, &post); err != nil {
		if apierrors.IsNotFound(err) {
			r.states.forget(req.NamespacedName)
			r.limits.CancelProbes(req.NamespacedName)
			r.preparer.ReleaseUnused(req.String(), nil)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot read the post: %w", err)
	}
	if there, err := r.fetchFull(ctx, &post); err != nil || !there {
		return ctrl.Result{}, err
	}
	defer r.preparer.ReleaseUnused(req.String(), &post)
	known := r.states.get(req.NamespacedName, post.UID)
	if known.publish.Stale(&post) {
		// The cache does not have the last write of this process yet; its event will trigger the next reconciliation.
		return ctrl.Result{}, nil
	}
	now := r.o.Clock.Now()
	r.startOnce.Do(func() { r.startedAt = now })
	ctx, span := r.trace(ctx, &post, now)
	p := &reconciliation{
		post: post.DeepCopy(), stored: post.Status, key: req.NamespacedName, now: now, log: ctrl.LoggerFrom(ctx), state: known,
		tokens: map[string]platforms.Token{}, credentials: map[string]error{}, hasUploadSecret: prepare.HasUploadSecret(&post.Status),
	}
	err := r.reconcile(ctx, p)
	switch {
	case err == nil && p.isFinished():
		r.tidy(ctx, p)
		r.archiver.Enqueue(p.post)
	case err == nil && (p.wrote || !known.recordRequested):
		known.recordRequested = true
		r.archiver.Enqueue(p.post)
	}
	endTrace(span, p, err)
	r.states.prune(p.key, p.wait.ForInputs || p.wrote || err != nil)
	switch {
	case apierrors.IsConflict(err):
		// Another writer was faster, and its write triggers a reconciliation.
		p.log.V(1).Info("the post was changed meanwhile; looking again", "error", err.Error())
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case p.wrote || p.wait.Until.IsZero():
		return ctrl.Result{}, nil
	}
	return r.requeue(p), nil
}

// maxConcurrentReads limits concurrent reads of large posts from the API server: decoding one takes several times its
// size in memory.
const maxConcurrentReads = 16

// fetchFull reads a post from the API server if the cache holds only a part of it. It reports false if the post was
// deleted or replaced; the cache will deliver a new post of the same name.
func (r *Reconciler) fetchFull(ctx context.Context, post *v1alpha1.Post) (there bool, err error) {
	if cachetransform.IsComplete(post) {
		return true, nil
	}
	select {
	case r.largeReads <- struct{}{}:
		defer func() { <-r.largeReads }()
	case <-ctx.Done():
		return false, fmt.Errorf("stopped before reading the post: %w", ctx.Err())
	}
	var live v1alpha1.Post
	err = r.o.APIReader.Get(ctx, client.ObjectKeyFromObject(post), &live)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot read the post: %w", err)
	case live.UID != post.UID || !cachetransform.IsComplete(&live):
		return false, nil
	}
	live.ManagedFields = nil
	*post = live
	return true, nil
}

// conflictPause gives the cache time to catch up after a conflict.
const conflictPause = 50 * time.Millisecond

// requeue requeues the post at the time in p.wait. A scheduled post gets a lower priority than the first posts of its
// team in the same second, so that ten thousand posts of one team are processed between the posts of other teams, not
// before them.
func (r *Reconciler) requeue(p *reconciliation) ctrl.Result {
	// A zero RequeueAfter would not requeue the post.
	result := ctrl.Result{RequeueAfter: max(p.wait.Until.Sub(r.o.Clock.Now()), time.Millisecond)}
	if p.wait.InTurn {
		result.Priority = new(r.priority(p.post))
	}
	return result
}

// priority returns the priority of a scheduled post among the posts of the same second.
func (r *Reconciler) priority(post *v1alpha1.Post) int {
	return -r.priorities.Next(post.Namespace, post.Spec.ScheduledAt.Time) / postsPerStep
}

// postsPerStep is the number of posts of one team, due within the same second, that share a priority. Other teams'
// posts follow after each step.
const postsPerStep = 16

// reconcile reads the inputs, decides and acts.
func (r *Reconciler) reconcile(ctx context.Context, p *reconciliation) error {
	if held, err := r.finalizers.Ensure(ctx, p.post); err != nil || held {
		p.wrote = held
		return err //nolint:wrapcheck // the error names the operation
	}
	if err := r.read(ctx, p); err != nil {
		return err
	}
	facts := r.facts(p)
	if answered, err := r.answerRequest(ctx, p, facts); err != nil || answered {
		return err
	}
	return r.execute(ctx, p, facts, delivery.Decide(facts))
}

// read reads the connections and files of the post, the rate limits of the apps, and the state of the team, the
// namespace and the cluster.
func (r *Reconciler) read(ctx context.Context, p *reconciliation) (err error) {
	var connections []string
	for i := range p.post.Spec.Targets {
		connections = append(connections, p.post.Spec.Targets[i].ConnectionRef.Name)
	}
	if p.connections, err = inputs[v1alpha1.Connection](ctx, r, p, kindConnection, connections); err != nil {
		return err
	}
	if p.media, err = inputs[v1alpha1.Media](ctx, r, p, kindMedia, posting.MediaNames(&p.post.Spec)); err != nil {
		return err
	}
	if p.limits, err = r.limits.Read(ctx, p.key, p.connections, p.now); err != nil {
		return err
	}
	for _, platform := range p.limits.LimitedPlatforms() {
		r.states.subscribe(p.key, appInput(platform))
	}
	if err := r.readSuspension(ctx, p); err != nil {
		return err
	}
	if err := r.readRollback(ctx, p); err != nil {
		return err
	}
	return r.readNamespace(ctx, p)
}

// readRollback reads the rollback state of the cluster. It drops an answer of the archive that is older than the
// detection of the rollback, since it may be outdated.
func (r *Reconciler) readRollback(ctx context.Context, p *reconciliation) error {
	if r.o.Rollback == nil {
		return nil
	}
	state, err := r.o.Rollback(ctx)
	if err != nil {
		return err //nolint:wrapcheck // the error names the operation
	}
	p.rollback = delivery.Rollback{UncertainSince: state.UnknownSince, Problem: state.Problem}
	if state.LastRollback != nil {
		p.rollback.DetectedAt = state.LastRollback.DetectedAt
	}
	if p.state.rollbackSeenAt.Before(p.rollback.DetectedAt) {
		p.state.earlier, p.state.rollbackSeenAt = nil, p.rollback.DetectedAt
	}
	return nil
}

// readNamespace reads the owner of the namespace and the team's setting for video conversion. For a post that is
// deleted while its last call has no outcome, it also reads whether the namespace is being deleted.
func (r *Reconciler) readNamespace(ctx context.Context, p *reconciliation) error {
	owned, err := r.o.Owned(ctx, p.key.Namespace)
	if err != nil {
		return err
	}
	p.unowned = !owned
	if r.o.TeamMedia != nil {
		decided, err := r.o.TeamMedia(ctx, p.key.Namespace)
		if err != nil {
			return err
		}
		p.converts = decided.Convert
	}
	open := slices.ContainsFunc(p.post.Status.Targets, func(t v1alpha1.TargetStatus) bool { return attempt.IsOpen(t.Attempt) })
	if p.post.DeletionTimestamp.IsZero() || !open {
		return nil
	}
	p.namespaceTerminating, err = kubeclient.IsNamespaceTerminating(ctx, r.o.APIReader, p.key.Namespace)
	return err //nolint:wrapcheck // the error names the operation
}

// fewInputs is the largest number of inputs of one kind that a post waits for by name. A post with more inputs, which
// may be thousands of files, is woken by any input of its namespace: the names would take a megabyte.
const fewInputs = 200

// inputs returns the existing inputs of the post, by name. It subscribes the post to each input before it reads it, so
// that no change between the two is missed.
func inputs[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reconciler, p *reconciliation, kind string, names []string) (map[string]P, error) {
	found := map[string]P{}
	many := len(names) > fewInputs
	if many {
		r.states.subscribe(p.key, input{kind, types.NamespacedName{Namespace: p.key.Namespace}})
	}
	for _, name := range names {
		if found[name] != nil {
			continue
		}
		key := types.NamespacedName{Namespace: p.key.Namespace, Name: name}
		if !many {
			r.states.subscribe(p.key, input{kind, key})
		}
		obj := P(new(T))
		err := r.o.Client.Get(ctx, key, obj)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read %s %q: %w", kind, name, err)
		}
		if err == nil {
			found[name] = obj
		}
	}
	return found, nil
}

// facts returns the facts for delivery.Decide.
func (r *Reconciler) facts(p *reconciliation) *delivery.Facts {
	f := &delivery.Facts{
		Post: p.post, Now: p.now, StartedAt: r.startedAt, Settings: r.o.settings(), Platforms: r.o.Platforms, Connections: p.connections, Media: p.media,
		Unowned: p.unowned, NamespaceTerminating: p.namespaceTerminating, Suspended: p.suspended, Suspensions: p.suspensions, Rollback: p.rollback,
		Results:            p.state.publish.Drain(p.post),
		CredentialsProblem: func(connection string) error { return p.credentials[connection] },
	}
	f.BlockedUntil = func(conn *v1alpha1.Connection) time.Time { return p.limits.BlockedUntil(conn, p.now) }
	f.MayProbe = func(conn *v1alpha1.Connection) bool { return p.limits.AcquireProbe(conn, p.now) }
	f.Preparation = func(target int) delivery.Preparation {
		return r.preparer.State(&p.state.prepare, r.target(p, target), p.now)
	}
	f.Invalid = func() field.ErrorList {
		env := rules.Env{
			Connection:   func(name string) *v1alpha1.Connection { return p.connections[name] },
			Media:        func(name string) *v1alpha1.Media { return p.media[name] },
			Capabilities: r.o.Platforms.Capabilities,
			Converts:     p.converts,
			Accepted:     accepted(p.post),
			Stored:       validatedBefore(p.post),
		}
		return append(rules.Validate(p.post, env), rules.ValidateOptions(p.post, env)...)
	}
	return f
}

// accepted reports whether the current generation of a post was accepted.
func accepted(post *v1alpha1.Post) bool {
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

// target returns a target of the post for the preparer.
func (r *Reconciler) target(p *reconciliation, i int) *prepare.Target {
	conn := p.conn(i)
	return &prepare.Target{
		Post: p.post, Index: i, Conn: conn, Media: p.media, Token: p.tokens[conn.Name], Converts: p.converts,
		Wake: func() { r.enqueue(p.key) },
	}
}

// tidy releases the unused plan usage of a finished post, and discards its preparations.
func (r *Reconciler) tidy(ctx context.Context, p *reconciliation) {
	r.plans.releaseUnused(ctx, p)
	r.limits.CancelProbes(p.key)
	if err := r.preparer.Discard(ctx, &p.state.prepare, p.post, p.hasUploadSecret); err != nil {
		p.log.Info("the Secret of the post's uploads stays until the post is removed", "error", err.Error())
	}
}
