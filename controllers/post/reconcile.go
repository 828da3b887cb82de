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
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/internal/cachetransform"
	"github.com/herald-social/herald/internal/namespaces"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/rules"
)

// reconciliation is what one pass over one post knows.
type reconciliation struct {
	// post is the working copy; stored is the status as it was last read or
	// written.
	post   *v1alpha1.Post
	stored v1alpha1.PostStatus
	key    types.NamespacedName
	now    time.Time
	log    logr.Logger
	state  *postState
	// connections and media hold what the post refers to, by name; what does not
	// exist is absent.
	connections map[string]*v1alpha1.Connection
	media       map[string]*v1alpha1.Media
	// appLimitEnds holds when the limits of the installation's apps end, or ended.
	appLimitEnds map[v1alpha1.Platform]time.Time
	// tokens holds those that the pass has read, by connection, and credentials why
	// one cannot be read.
	tokens      map[string]platforms.Token
	credentials map[string]error
	// unowned is set if no team owns the namespace, and namespaceEnds if the post's last
	// call is asked about while the namespace is being deleted.
	unowned, namespaceTerminating bool
	// converts is set if the team has its videos converted.
	converts bool
	// suspended is set while nothing of the team is published, and suspensions are when
	// that was so.
	suspended   bool
	suspensions []v1alpha1.Suspension
	// rollback is what is known of the cluster having been put back.
	rollback delivery.Rollback
	// hasUploadSecret is set if uploads of the post are known to be kept in a Secret.
	hasUploadSecret bool
	// wrote is set once the pass has stored something, which wakes the post again, and
	// asked once it has begun to talk to a platform.
	wrote, calledPlatform bool
	// wait is when the post comes back otherwise, and quotaRetryAt when it is tried again
	// to count what a plan limits; zero if nothing waits for that.
	wait         delivery.Wait
	quotaRetryAt time.Time
}

// conn returns the connection of a target; nil if it does not exist.
func (p *reconciliation) conn(target int) *v1alpha1.Connection {
	if target >= len(p.post.Spec.Targets) {
		return nil
	}
	return p.connections[p.post.Spec.Targets[target].ConnectionRef.Name]
}

// markStored takes the post as it is stored now.
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

// Reconcile makes one pass over one post: it reads what the post refers to, asks
// delivery.Decide what comes next, and carries that out.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.owners.Start()
	defer r.scheduler.ReturnWake(req.String())

	var post v1alpha1.Post
	if err := r.o.Client.Get(ctx, req.NamespacedName, &post); err != nil {
		if apierrors.IsNotFound(err) {
			r.states.forget(req.NamespacedName)
			r.limits.apps.cancelProbes(req.NamespacedName)
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
		// The cache has not seen our own last write yet; its event comes.
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
		r.records.enqueue(p)
	case err == nil && (p.wrote || !known.recordRequested):
		known.recordRequested = true
		r.records.enqueue(p)
	}
	endTrace(span, p, err)
	r.states.prune(p.key, p.wait.ForInputs || p.wrote || err != nil)
	switch {
	case apierrors.IsConflict(err):
		// Another writer was first; that change wakes the post.
		p.log.V(1).Info("the post was changed meanwhile; looking again", "error", err.Error())
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case p.wrote || p.wait.Until.IsZero():
		return ctrl.Result{}, nil
	}
	return r.requeue(p), nil
}

// maxConcurrentReads is how many large posts are read from the API server at once: decoding one
// takes several times its size.
const maxConcurrentReads = 16

// fetchFull reads a post from the API server of which the cache does not keep all. It
// reports false if the post is gone, or another one of its name is there, of which the
// cache will tell.
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

// conflictPause lets the cache catch up after a lost write.
const conflictPause = 50 * time.Millisecond

// requeue comes back at the time of the pass's wait. A post that waits for its time
// comes behind the first ones that its team has due in the same second: a team's ten
// thousand posts are taken up between the posts of others, not before them.
func (r *Reconciler) requeue(p *reconciliation) ctrl.Result {
	// Never zero, which would mean "not again".
	result := ctrl.Result{RequeueAfter: max(p.wait.Until.Sub(r.o.Clock.Now()), time.Millisecond)}
	if p.wait.InTurn {
		result.Priority = new(r.priority(p.post))
	}
	return result
}

// priority is the priority of a scheduled post among those of its second.
func (r *Reconciler) priority(post *v1alpha1.Post) int {
	return -r.priorities.Next(post.Namespace, post.Spec.ScheduledAt.Time) / postsPerStep
}

// postsPerStep is how many posts of one team, due within the same second, are taken
// up before those of other teams that are due then.
const postsPerStep = 16

// reconcile reads what the post refers to, decides and acts.
func (r *Reconciler) reconcile(ctx context.Context, p *reconciliation) error {
	if held, err := r.ensureFinalizer(ctx, p); err != nil || held {
		return err
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

// read reads the connections and files of the post, and what platforms say of the
// app.
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
	if p.appLimitEnds, err = r.limits.apps.read(ctx, p.connections, p.now); err != nil {
		return err
	}
	for platform, end := range p.appLimitEnds {
		if !end.IsZero() {
			r.states.subscribe(p.key, appInput(platform))
		}
	}
	if err := r.readSuspension(ctx, p); err != nil {
		return err
	}
	if err := r.readRollback(ctx, p); err != nil {
		return err
	}
	return r.readNamespace(ctx, p)
}

// readRollback reads whether the cluster was put back to an earlier state. What the archive
// has answered about the post before that was noticed tells nothing of it.
func (r *Reconciler) readRollback(ctx context.Context, p *reconciliation) error {
	if r.o.Rollback == nil {
		return nil
	}
	state, err := r.o.Rollback(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
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

// readNamespace reads whose the namespace is, what that team decides about its videos and, for a post that goes although its last
// call has no outcome, whether the namespace goes as well.
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
	p.namespaceTerminating, err = namespaces.IsTerminating(ctx, r.o.APIReader, p.key.Namespace)
	return err //nolint:wrapcheck // it says what was being done
}

// fewInputs is for how many inputs of a kind a post waits by name. A post with more, of
// thousands of files, is woken by any of its namespace: to remember each would take a
// megabyte.
const fewInputs = 200

// inputs reads inputs of the post, as far as they exist. Each is registered before it
// is read: a change between the two wakes.
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

// facts are what is decided from.
func (r *Reconciler) facts(p *reconciliation) *delivery.Facts {
	f := &delivery.Facts{
		Post: p.post, Now: p.now, StartedAt: r.startedAt, Settings: r.o.settings(), Platforms: r.o.Platforms, Connections: p.connections, Media: p.media,
		Unowned: p.unowned, NamespaceTerminating: p.namespaceTerminating, Suspended: p.suspended, Suspensions: p.suspensions, Rollback: p.rollback,
		Results:            p.state.publish.Drain(p.post),
		CredentialsProblem: func(connection string) error { return p.credentials[connection] },
	}
	f.BlockedUntil = func(conn *v1alpha1.Connection) time.Time { return r.blockedUntil(p, conn, p.now) }
	f.MayProbe = func(conn *v1alpha1.Connection) bool {
		return r.limits.apps.acquireProbe(conn, p.appLimitEnds[conn.Spec.Platform], p.key, p.now)
	}
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

// accepted reports whether a post was accepted as it is.
func accepted(post *v1alpha1.Post) bool {
	c := meta.FindStatusCondition(post.Status.Conditions, v1alpha1.ConditionAccepted)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == post.Generation
}

// validatedBefore returns a post whose size was judged before, perhaps by a version that allowed
// more, and nil for any other. A post that was refused, also for its size, was not let in: it
// is judged as a new one is, as the webhook would have. One that no team owns may have been
// let in by a version that knew of no teams.
func validatedBefore(post *v1alpha1.Post) *v1alpha1.Post {
	accepted := meta.FindStatusCondition(post.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Reason == v1alpha1.ReasonInvalid {
		return nil
	}
	return post
}

// target is a target of the pass's post, for what is prepared for it.
func (r *Reconciler) target(p *reconciliation, i int) *prepare.Target {
	conn := p.conn(i)
	return &prepare.Target{
		Post: p.post, Index: i, Conn: conn, Media: p.media, Token: p.tokens[conn.Name], Converts: p.converts,
		Wake: func() { r.enqueue(p.key) },
	}
}

// tidy gives back what a post that needs nothing more was counted for and did not
// take, and removes what was prepared for it.
func (r *Reconciler) tidy(ctx context.Context, p *reconciliation) {
	r.plans.releaseUnused(ctx, p)
	r.limits.apps.cancelProbes(p.key)
	if err := r.preparer.Discard(ctx, &p.state.prepare, p.post, p.hasUploadSecret); err != nil {
		p.log.Info("the Secret of the post's uploads stays until the post is removed", "error", err.Error())
	}
}
