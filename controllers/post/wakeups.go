// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/cachetransform"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting"
)

// An accepted scheduled post is not reconciled before its preparation, or the last check before its time, and costs
// nothing until then. This file triggers earlier reconciliations: after clock jumps, and after the loss of an input.
//
// Any other case is covered by the resync of the informers of controller-runtime, which triggers a reconciliation of
// each post every ten hours.

// wakeSpread spreads the reconciliations of posts that are not due after a clock jump: 100,000 of them take six seconds
// of one processor (BenchmarkIdle).
const wakeSpread = 30 * time.Second

// clockJumped enqueues all posts except drafts, since their times may come before their timers fire. Due posts are
// enqueued at once, and the others are spread over wakeSpread.
func (r *Reconciler) clockJumped() {
	now := r.o.Clock.Now()
	r.objects.EachPost(func(post *v1alpha1.Post) {
		switch key := client.ObjectKeyFromObject(post); {
		case post.Spec.Draft:
		case posting.UntilDue(post, now) > wakeSpread:
			r.enqueueAfter(reconcile.Request{NamespacedName: key}, pacing.Spread(wakeSpread, post.UID), 0)
		case post.Spec.ScheduledAt == nil:
			r.enqueueAfter(reconcile.Request{NamespacedName: key}, 0, 0)
		default:
			r.enqueueAfter(reconcile.Request{NamespacedName: key}, 0, r.priority(post))
		}
	})
}

// enqueueAfter adds a post to the queue with a priority, after the delay at the latest.
func (r *Reconciler) enqueueAfter(post reconcile.Request, after time.Duration, priority int) {
	queue := r.queue.Load()
	if queue == nil {
		return
	}
	if ordered, ok := (*queue).(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		ordered.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, post)
		return
	}
	(*queue).AddAfter(post, after)
}

// enqueueDependents enqueues the posts that refer to a connection or a file which has become unusable. Accepted posts
// have no subscriptions: storing the references of each post would take more memory than the posts.
func (r *Reconciler) enqueueDependents() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		in := []client.ListOption{client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy}
		uses := func(post *v1alpha1.Post) bool {
			return slices.ContainsFunc(post.Spec.Targets, func(t v1alpha1.PostTarget) bool { return t.ConnectionRef.Name == obj.GetName() })
		}
		if _, ok := obj.(*v1alpha1.Media); ok {
			in = append(in, client.MatchingFields{cachetransform.MediaIndex: cachetransform.MediaBucket(obj.GetName())})
			uses = func(post *v1alpha1.Post) bool {
				return !cachetransform.HasMediaRefs(post) || slices.Contains(posting.MediaNames(&post.Spec), obj.GetName())
			}
		}
		var posts v1alpha1.PostList
		if err := r.o.Client.List(ctx, &posts, in...); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot tell the posts which use what is gone; they find out at their time", "namespace", obj.GetNamespace(), "name", obj.GetName())
			return nil
		}
		now := r.o.Clock.Now()
		for i := range posts.Items {
			if post := &posts.Items[i]; !post.Spec.Draft && posting.UntilDue(post, now) > 0 && uses(post) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(post)})
			}
		}
		return requests
	})
}

// becameUnusable passes the changes that may make a connection or a file unusable for a post: deletion, replacement,
// other TikTok settings, or a missing file. Both kinds are written often, and other changes only matter when a post is
// due.
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

// usable reports whether a file can be posted, according to its Media.
func usable(m *v1alpha1.Media) bool {
	return m.DeletionTimestamp.IsZero() && m.Status.Phase == v1alpha1.MediaUploaded && conditions.Reason(m.Status.Conditions) != v1alpha1.ReasonFileMissing
}
