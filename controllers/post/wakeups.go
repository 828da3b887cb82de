// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/stats"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting"
)

// An accepted scheduled post is not reconciled before its preparation, or the last check before it is due, and does not
// use any resources until then. This file triggers earlier reconciliations: after clock jumps, and after the loss of an
// input.
//
// Any other case is covered by the resync of controller-runtime's informers, which triggers a reconciliation of each
// post every ten hours.

// wakeSpread spreads the reconciliations of posts that are not due after a clock jump: 100,000 of them take six seconds
// of CPU time (BenchmarkIdle).
const wakeSpread = 30 * time.Second

// clockJumped enqueues all posts except drafts, since their times may come before their timers fire. Due posts are
// enqueued at once, and the others are spread over wakeSpread.
func (q *postQueue) clockJumped(posts *stats.Objects) {
	now := q.o.Clock.Now()
	posts.EachPost(func(post *v1alpha1.Post) {
		switch key := client.ObjectKeyFromObject(post); {
		case post.Spec.Draft:
		case posting.Of(post).UntilDue(now) > wakeSpread:
			q.enqueueAfter(reconcile.Request{NamespacedName: key}, pacing.Spread(wakeSpread, post.UID), 0)
		case post.Spec.ScheduledAt == nil:
			q.enqueueAfter(reconcile.Request{NamespacedName: key}, 0, 0)
		default:
			q.enqueueAfter(reconcile.Request{NamespacedName: key}, 0, q.priority(post))
		}
	})
}

func (q *postQueue) enqueueForInput(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) (requests []reconcile.Request) {
		for _, key := range []types.NamespacedName{client.ObjectKeyFromObject(obj), {Namespace: obj.GetNamespace()}} {
			for _, post := range q.states.drain(input{kind, key}) {
				q.enqueueAssisted(post)
				requests = append(requests, reconcile.Request{NamespacedName: post})
			}
		}
		return requests
	})
}

// enqueueAppLimited enqueues the posts that wait for an app's rate limit after the limit was recorded, or removed by a
// user. It also drops the known limits of a deleted connection.
func (q *postQueue) enqueueAppLimited(known *limits.Limits) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue) {
			before, ok := e.ObjectOld.(*v1alpha1.Connection)
			after, is := e.ObjectNew.(*v1alpha1.Connection)
			if ok && is && (before.Status.App != after.Status.App || !v1alpha1.SemanticEqual(before.Status.AppRateLimitedUntil, after.Status.AppRateLimitedUntil)) {
				q.wakeApp(after.Spec.Platform, math.MaxInt)
			}
			if ok && is && before.UID != after.UID {
				known.Forget(before.UID)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue) {
			known.Forget(e.Object.GetUID())
			if conn, ok := e.Object.(*v1alpha1.Connection); ok && conn.Status.AppRateLimitedUntil != nil {
				q.wakeApp(conn.Spec.Platform, math.MaxInt)
			}
		},
	}
}

// enqueueDependents enqueues the posts that refer to a connection or a file that has become unusable. Accepted posts
// have no subscriptions: storing the references of each post would take more memory than the posts.
func (q *postQueue) enqueueDependents() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		in := []client.ListOption{client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy}
		uses := func(post *v1alpha1.Post) bool {
			return slices.ContainsFunc(post.Spec.Targets, func(t v1alpha1.PostTarget) bool { return t.ConnectionRef.Name == obj.GetName() })
		}
		if _, ok := obj.(*v1alpha1.Media); ok {
			in = append(in, client.MatchingFields{kubeclient.MediaIndex: kubeclient.MediaBucket(obj.GetName())})
			uses = func(post *v1alpha1.Post) bool {
				return !kubeclient.HasMediaRefs(post) || slices.Contains(posting.Of(post).MediaNames(), obj.GetName())
			}
		}
		var posts v1alpha1.PostList
		if err := q.o.Client.List(ctx, &posts, in...); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot notify the posts that use a removed object; they notice when they are due", "namespace", obj.GetNamespace(), "name", obj.GetName())
			return nil
		}
		now := q.o.Clock.Now()
		for i := range posts.Items {
			if post := &posts.Items[i]; !post.Spec.Draft && posting.Of(post).UntilDue(now) > 0 && uses(post) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(post)})
			}
		}
		return requests
	})
}

// becameUnusable passes changes that may make a connection or a file unusable for a post: deletion, replacement, other
// TikTok settings, or a missing file. Both kinds are written often, and other changes matter only when a post is due.
func becameUnusable() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				return true
			}
			switch before := e.ObjectOld.(type) {
			case *v1alpha1.Connection:
				after, ok := e.ObjectNew.(*v1alpha1.Connection)
				return ok && !v1alpha1.SemanticEqual(before.Status.TikTok, after.Status.TikTok)
			case *v1alpha1.Media:
				after, ok := e.ObjectNew.(*v1alpha1.Media)
				return ok && usable(before) && !usable(after)
			}
			return false
		},
	}
}

func usable(m *v1alpha1.Media) bool {
	return m.DeletionTimestamp.IsZero() && m.Status.Phase == v1alpha1.MediaUploaded && conditions.Reason(m.Status.Conditions) != v1alpha1.ReasonFileMissing
}

func (q *postQueue) enqueueSuspended() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) (requests []reconcile.Request) {
		if team, ok := obj.(*v1alpha1.Team); ok {
			for _, post := range q.states.drain(suspensionInput(team.Spec.Namespace)) {
				requests = append(requests, reconcile.Request{NamespacedName: post})
			}
		}
		return requests
	})
}

// suspendAllChanged enqueues the waiting posts after the suspension of all teams. Teams' own suspensions still apply.
func (q *postQueue) suspendAllChanged() {
	if q.o.SuspendAll.On() {
		return
	}
	for _, post := range q.states.drainKind(kindSuspension) {
		q.enqueue(post)
	}
}
