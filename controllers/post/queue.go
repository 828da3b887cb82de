// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientworkqueue "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
)

type workqueue = clientworkqueue.TypedRateLimitingInterface[reconcile.Request]

type postQueue struct {
	o      *Options
	states *postStates
	// priorities orders the posts that are due at the same time.
	priorities *dispatch.Sequencer
	// queue is the queue of the controller, or nil before its start.
	queue atomic.Pointer[workqueue]
	// assisted is the queue of posts that are prepared while another process delivers them. It is nil in that queue.
	assisted *postQueue
}

func newPostQueue(o *Options, states *postStates) *postQueue {
	return &postQueue{o: o, states: states, priorities: dispatch.NewSequencer(o.Clock.Now)}
}

func (q *postQueue) start(_ context.Context, queue workqueue) error {
	q.queue.Store(&queue)
	return nil
}

func (q *postQueue) enqueue(post types.NamespacedName) {
	q.enqueueAssisted(post)
	if queue := q.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: post})
	}
}

func (q *postQueue) enqueueAssisted(post types.NamespacedName) {
	if q.assisted != nil {
		q.assisted.enqueue(post)
	}
}

// enqueueAfter adds a post to the queue with a priority, at the latest after the delay.
func (q *postQueue) enqueueAfter(post reconcile.Request, after time.Duration, priority int) {
	queue := q.queue.Load()
	if queue == nil {
		return
	}
	if ordered, ok := (*queue).(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		ordered.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, post)
		return
	}
	(*queue).AddAfter(post, after)
}

func (q *postQueue) len() int {
	if queue := q.queue.Load(); queue != nil {
		return (*queue).Len()
	}
	return 0
}

func (q *postQueue) wakeApp(platform v1alpha1.Platform, most int) {
	for _, post := range q.states.drainUpTo(appInput(platform), most) {
		q.enqueue(post)
	}
}

func (q *postQueue) priority(post *v1alpha1.Post) int {
	return -q.priorities.Next(post.Namespace, post.Spec.ScheduledAt.Time) / postsPerStep
}

// postsPerStep is the number of a team's posts, due in the same second, that share a priority.
const postsPerStep = 16
