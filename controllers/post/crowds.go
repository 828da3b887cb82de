// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/posting/delivery"
)

// crowds counts the posts that wait for the same time. A post registers in a reconciliation minutes before it is due.
// The posts of a crowd are woken to be armed.
type crowds struct {
	clock clock.WithTicker
	size  int
	queue *postQueue

	mu   sync.Mutex
	byAt map[int64]*crowd
}

// crowd holds the posts that are due at one time, in the order of their registration.
type crowd struct {
	due   time.Time
	posts []types.NamespacedName
	known map[types.NamespacedName]bool
	// woken is the number of posts that were woken.
	woken int
}

func newCrowds(o *Options, queue *postQueue) *crowds {
	return &crowds{clock: o.Clock, size: o.CrowdSize, queue: queue, byAt: map[int64]*crowd{}}
}

// expect registers a post that waits until it is due.
func (c *crowds) expect(post types.NamespacedName, due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byAt[due.UnixMilli()]
	if at == nil {
		at = &crowd{due: due, known: map[types.NamespacedName]bool{}}
		c.byAt[due.UnixMilli()] = at
	}
	if !at.known[post] {
		at.known[post] = true
		at.posts = append(at.posts, post)
	}
}

// isCrowded reports whether the posts that are due at the given time should be armed now.
func (c *crowds) isCrowded(due, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byAt[due.UnixMilli()]
	return at != nil && len(at.posts) >= c.size && due.Sub(now) <= delivery.ArmAhead(len(at.posts))
}

// crowdStep is the interval between checks of the crowds. A crowd may be woken late by that much.
const crowdStep = 250 * time.Millisecond

// Start implements manager.Runnable.
func (c *crowds) Start(ctx context.Context) error {
	ticker := c.clock.NewTicker(crowdStep)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			for _, post := range c.wake() {
				c.queue.enqueueAfter(reconcile.Request{NamespacedName: post.NamespacedName}, 0, post.priority)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

type wokenPost struct {
	types.NamespacedName
	priority int
}

// wake returns the posts to arm now, and drops the crowds whose time has passed. Posts that are already due have
// priority.
func (c *crowds) wake() (posts []wokenPost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	for key, at := range c.byAt {
		switch left := at.due.Sub(now); {
		case left <= 0:
			delete(c.byAt, key)
		case left <= delivery.ArmAhead(len(at.posts)) && len(at.posts) >= c.size:
			for ; at.woken < len(at.posts); at.woken++ {
				post := at.posts[at.woken]
				posts = append(posts, wokenPost{post, -1 - c.queue.priorities.Next(post.Namespace, at.due)/postsPerStep})
			}
		}
	}
	return posts
}
