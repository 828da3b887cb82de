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
	"github.com/herald-social/herald/internal/cached"
	"github.com/herald-social/herald/internal/namespaces"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/rules"
)

// pass is what one pass over one post knows.
type pass struct {
	// post is the working copy; stored is the status as it was last read or
	// written.
	post   *v1alpha1.Post
	stored v1alpha1.PostStatus
	key    types.NamespacedName
	now    time.Time
	log    logr.Logger
	memory *memory
	// connections and media hold what the post refers to, by name; what does not
	// exist is absent.
	connections map[string]*v1alpha1.Connection
	media       map[string]*v1alpha1.Media
	// appEnds holds when the limits of the installation's apps end, or ended.
	appEnds map[v1alpha1.Platform]time.Time
	// tokens holds those that the pass has read, by connection, and credentials why
	// one cannot be read.
	tokens      map[string]platforms.Token
	credentials map[string]error
	// unowned is set if no team owns the namespace, and namespaceEnds if the post's last
	// call is asked about while the namespace is being deleted.
	unowned, namespaceEnds bool
	// converts is set if the team has its videos converted.
	converts bool
	// suspended is set while nothing of the team is published, and suspensions are when
	// that was so.
	suspended   bool
	suspensions []v1alpha1.Suspension
	// rewound is what is known of the cluster having been put back.
	rewound delivery.Rewound
	// keepsSecret is set if uploads of the post are known to be kept in a Secret.
	keepsSecret bool
	// wrote is set once the pass has stored something, which wakes the post again, and
	// asked once it has begun to talk to a platform.
	wrote, asked bool
	// wait is when the post comes back otherwise, and countAt when it is tried again
	// to count what a plan limits; zero if nothing waits for that.
	wait    delivery.Wait
	countAt time.Time
}

// conn returns the connection of a target; nil if it does not exist.
func (p *pass) conn(target int) *v1alpha1.Connection {
	if target >= len(p.post.Spec.Targets) {
		return nil
	}
	return p.connections[p.post.Spec.Targets[target].ConnectionRef.Name]
}

// written takes the post as it is stored now.
func (p *pass) written() {
	p.stored = *p.post.Status.DeepCopy()
	p.wrote = true
}

// over reports whether nothing more will be sent for the post.
func (p *pass) over() bool {
	if p.post.DeletionTimestamp.IsZero() {
		return p.post.Status.Finished
	}
	return !controllerutil.ContainsFinalizer(p.post, v1alpha1.DeliveryFinalizer)
}

// Reconcile makes one pass over one post: it reads what the post refers to, asks
// delivery.Decide what comes next, and carries that out.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.owners.Start()
	defer r.scheduler.Pass(req.String())

	var post v1alpha1.Post
	if err := r.o.Client.Get(ctx, req.NamespacedName, &post); err != nil {
		if apierrors.IsNotFound(err) {
			r.memories.forget(req.NamespacedName)
			r.limits.apps.stop(req.NamespacedName)
			r.preparer.Pass(req.String(), nil)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot read the post: %w", err)
	}
	if there, err := r.complete(ctx, &post); err != nil || !there {
		return ctrl.Result{}, err
	}
	defer r.preparer.Pass(req.String(), &post)
	known := r.memories.of(req.NamespacedName, post.UID)
	if known.publish.Stale(&post) {
		// The cache has not seen our own last write yet; its event comes.
		return ctrl.Result{}, nil
	}
	now := r.o.Clock.Now()
	r.beginOnce.Do(func() { r.began = now })
	ctx, span := r.trace(ctx, &post, now)
	p := &pass{
		post: post.DeepCopy(), stored: post.Status, key: req.NamespacedName, now: now, log: ctrl.LoggerFrom(ctx), memory: known,
		tokens: map[string]platforms.Token{}, credentials: map[string]error{}, keepsSecret: prepare.KeepsSecret(&post.Status),
	}
	err := r.work(ctx, p)
	switch {
	case err == nil && p.over():
		r.tidy(ctx, p)
		r.records.later(p)
	case err == nil && (p.wrote || !known.recorded):
		known.recorded = true
		r.records.later(p)
	}
	endTrace(span, p, err)
	r.memories.end(p.key, p.wait.ForInputs || p.wrote || err != nil)
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

// readAtOnce is how many large posts are read from the API server at once: decoding one
// takes several times its size.
const readAtOnce = 16

// complete reads a post from the API server of which the cache does not keep all. It
// reports false if the post is gone, or another one of its name is there, of which the
// cache will tell.
func (r *Reconciler) complete(ctx context.Context, post *v1alpha1.Post) (there bool, err error) {
	if cached.Whole(post) {
		return true, nil
	}
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
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
	case live.UID != post.UID || !cached.Whole(&live):
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
func (r *Reconciler) requeue(p *pass) ctrl.Result {
	// Never zero, which would mean "not again".
	result := ctrl.Result{RequeueAfter: max(p.wait.Until.Sub(r.o.Clock.Now()), time.Millisecond)}
	if p.wait.InTurn {
		result.Priority = new(r.turn(p.post))
	}
	return result
}

// turn is the priority of a scheduled post among those of its second.
func (r *Reconciler) turn(post *v1alpha1.Post) int {
	return -r.turns.Take(post.Namespace, post.Spec.ScheduledAt.Time) / turnsPerStep
}

// turnsPerStep is how many posts of one team, due within the same second, are taken
// up before those of other teams that are due then.
const turnsPerStep = 16

// work reads what the post refers to, decides and acts.
func (r *Reconciler) work(ctx context.Context, p *pass) error {
	if held, err := r.hold(ctx, p); err != nil || held {
		return err
	}
	if err := r.read(ctx, p); err != nil {
		return err
	}
	facts := r.facts(p)
	if answered, err := r.answerRequest(ctx, p, facts); err != nil || answered {
		return err
	}
	return r.carryOut(ctx, p, facts, delivery.Decide(facts))
}

// read reads the connections and files of the post, and what platforms say of the
// app.
func (r *Reconciler) read(ctx context.Context, p *pass) (err error) {
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
	if p.appEnds, err = r.limits.apps.read(ctx, p.connections, p.now); err != nil {
		return err
	}
	for platform, end := range p.appEnds {
		if !end.IsZero() {
			r.memories.wait(p.key, appInput(platform))
		}
	}
	if err := r.readSuspension(ctx, p); err != nil {
		return err
	}
	if err := r.readRewound(ctx, p); err != nil {
		return err
	}
	return r.readNamespace(ctx, p)
}

// readRewound reads whether the cluster was put back to an earlier state. What the archive
// has answered about the post before that was noticed tells nothing of it.
func (r *Reconciler) readRewound(ctx context.Context, p *pass) error {
	if r.o.Rewound == nil {
		return nil
	}
	state, err := r.o.Rewound(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	p.rewound = delivery.Rewound{Unsure: state.Unsure, Problem: state.Problem}
	if state.Rewound != nil {
		p.rewound.Noticed = state.Rewound.Noticed
	}
	if p.memory.askedFor.Before(p.rewound.Noticed) {
		p.memory.earlier, p.memory.askedFor = nil, p.rewound.Noticed
	}
	return nil
}

// readNamespace reads whose the namespace is, what that team decides about its videos and, for a post that goes although its last
// call has no outcome, whether the namespace goes as well.
func (r *Reconciler) readNamespace(ctx context.Context, p *pass) error {
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
	p.namespaceEnds, err = namespaces.Ends(ctx, r.o.APIReader, p.key.Namespace)
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
}](ctx context.Context, r *Reconciler, p *pass, kind string, names []string) (map[string]P, error) {
	found := map[string]P{}
	many := len(names) > fewInputs
	if many {
		r.memories.wait(p.key, input{kind, types.NamespacedName{Namespace: p.key.Namespace}})
	}
	for _, name := range names {
		if found[name] != nil {
			continue
		}
		key := types.NamespacedName{Namespace: p.key.Namespace, Name: name}
		if !many {
			r.memories.wait(p.key, input{kind, key})
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
func (r *Reconciler) facts(p *pass) *delivery.Facts {
	f := &delivery.Facts{
		Post: p.post, Now: p.now, Began: r.began, Settings: r.o.settings(), Platforms: r.o.Platforms, Connections: p.connections, Media: p.media,
		Unowned: p.unowned, NamespaceEnds: p.namespaceEnds, Suspended: p.suspended, Suspensions: p.suspensions, Rewound: p.rewound,
		Results:            p.memory.publish.Recall(p.post),
		CredentialsProblem: func(connection string) error { return p.credentials[connection] },
	}
	f.BlockedUntil = func(conn *v1alpha1.Connection) time.Time { return r.blockedUntil(p, conn, p.now) }
	f.Ask = func(conn *v1alpha1.Connection) bool {
		return r.limits.apps.ask(conn, p.appEnds[conn.Spec.Platform], p.key, p.now)
	}
	f.Preparation = func(target int) delivery.Preparation {
		return r.preparer.State(&p.memory.prepare, r.target(p, target), p.now)
	}
	f.Invalid = func() field.ErrorList {
		env := rules.Env{
			Connection:   func(name string) *v1alpha1.Connection { return p.connections[name] },
			Media:        func(name string) *v1alpha1.Media { return p.media[name] },
			Capabilities: r.o.Platforms.Capabilities,
			Converts:     p.converts,
			Accepted:     accepted(p.post),
			Stored:       judgedBefore(p.post),
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

// judgedBefore returns a post whose size was judged before, perhaps by a version that allowed
// more, and nil for any other. A post that was refused, also for its size, was not let in: it
// is judged as a new one is, as the webhook would have. One that no team owns may have been
// let in by a version that knew of no teams.
func judgedBefore(post *v1alpha1.Post) *v1alpha1.Post {
	accepted := meta.FindStatusCondition(post.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Reason == v1alpha1.ReasonInvalid {
		return nil
	}
	return post
}

// target is a target of the pass's post, for what is prepared for it.
func (r *Reconciler) target(p *pass, i int) *prepare.Target {
	conn := p.conn(i)
	return &prepare.Target{
		Post: p.post, Index: i, Conn: conn, Media: p.media, Token: p.tokens[conn.Name], Converts: p.converts,
		Wake: func() { r.enqueue(p.key) },
	}
}

// tidy gives back what a post that needs nothing more was counted for and did not
// take, and removes what was prepared for it.
func (r *Reconciler) tidy(ctx context.Context, p *pass) {
	r.plans.returnUnused(ctx, p)
	r.limits.apps.stop(p.key)
	if err := r.preparer.Discard(ctx, &p.memory.prepare, p.post, p.keepsSecret); err != nil {
		p.log.Info("the Secret of the post's uploads stays until the post is removed", "error", err.Error())
	}
}
