// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
)

// Quota stores a team's usage; see package quota.
type Quota interface {
	Read(ctx context.Context, namespace string, counter v1alpha1.UsageSpec) (*v1alpha1.Usage, error)
	Amend(ctx context.Context, namespace string, counter v1alpha1.UsageSpec, change func(*v1alpha1.Usage) error) error
}

// returnTimeout is the timeout for releasing usage. The manager later corrects what could not be released.
const returnTimeout = 5 * time.Second

type reservations struct {
	service *Service
	post    *v1alpha1.Post
	find    plan.Connections
	limits  plan.Limits
	// request distinguishes this request from others with the same Idempotency-Key, or for the same stored post; empty
	// if there can be no other.
	request string
	// all lists the usage under plan limits first, and then under platform limits. reserved is the number of its first
	// entries that are, or may be, reserved.
	all      []reservation
	reserved int
}

// reservation is the amount that a post needs of one counter.
type reservation struct {
	counter v1alpha1.UsageSpec
	limit   int
	uses    []usage.Use
}

// withinPlan returns the usage that a post needs, and rejects a post that the team's plan does not currently allow. A
// draft does not need a reservation.
func (s *Service) withinPlan(ctx context.Context, post *v1alpha1.Post, find plan.Connections) (*reservations, error) {
	limits := plan.LimitsOf(s.Owner(post.Namespace))
	if refused := s.requireCovered(post, limits, find); refused != nil {
		return nil, refused
	}
	n := &reservations{service: s, post: post, find: find, limits: limits}
	if post.Spec.Draft {
		return n, nil
	}
	if post.UID != "" || post.Annotations[v1alpha1.RequestAnnotation] != "" {
		n.request = rand.Text()
	}
	for _, counter := range limits.Counters(post, find, 0) {
		n.all = append(n.all, reservation{counter, limits.Max(&counter), plan.Uses(&counter, post, find, 0)})
	}
	if err := n.check(ctx, v1alpha1.ResourceXPosts); err != nil {
		return nil, err
	}
	return n, nil
}

// requireCovered rejects a post to an account beyond the plan's limit.
func (s *Service) requireCovered(post *v1alpha1.Post, limits plan.Limits, find plan.Connections) error {
	if limits.Accounts == 0 {
		return nil
	}
	all := s.Connections.List(post.Namespace)
	named := make([]*v1alpha1.Connection, 0, len(post.Spec.Targets))
	for i := range post.Spec.Targets {
		if connection := find(post.Spec.Targets[i].ConnectionRef.Name); connection != nil {
			named = append(named, connection)
		}
	}
	for _, connection := range named {
		// A new connection may not be in the cache yet.
		if !slices.ContainsFunc(all, func(c *v1alpha1.Connection) bool { return c.Name == connection.Name }) {
			all = append(all, connection)
		}
	}
	usable := plan.Usable(all, limits.Accounts)
	for _, connection := range named {
		if !plan.Covers(usable, connection) {
			return errorf(CodeSubscriptionRequired, "the starter plan allows %d connected accounts, and connection %q exceeds that: the oldest ones that are not disabled count. "+
				"Disable or delete another connection, or change the plan.", limits.Accounts, connection.Name)
		}
	}
	return nil
}

// check rejects a post that currently exceeds a resource's limit, before any work that would have to be undone.
func (n *reservations) check(ctx context.Context, resource string) error {
	for i := range n.all {
		wanted := &n.all[i]
		if wanted.counter.Resource != resource {
			continue
		}
		stored, err := n.service.Quota.Read(ctx, n.post.Namespace, wanted.counter)
		if err != nil {
			return fmt.Errorf("count a post's usage: %w", err)
		}
		if refused := n.apply(wanted, stored); refused != nil {
			return refused
		}
	}
	return nil
}

// reserve reserves the post's usage. After an error, part of it is reserved.
func (n *reservations) reserve(ctx context.Context) error {
	for i := range n.all {
		wanted := &n.all[i]
		var refused *Error
		err := n.service.Quota.Amend(ctx, n.post.Namespace, wanted.counter, func(stored *v1alpha1.Usage) error {
			refused = n.apply(wanted, stored)
			return nil
		})
		if refused != nil {
			return refused
		}
		n.reserved = i + 1
		if err != nil {
			return fmt.Errorf("count a post's usage: %w", err)
		}
	}
	return nil
}

func (n *reservations) apply(wanted *reservation, stored *v1alpha1.Usage) *Error {
	refused := usage.Reserve(stored, usage.Reservation{Post: n.post.Name, Request: n.request, Uses: wanted.uses},
		wanted.limit, n.service.Clock.Now())
	if len(refused) == 0 {
		return nil
	}
	first := refused[0]
	if wanted.counter.Resource == v1alpha1.ResourceTikTokDrafts {
		return errorf(CodeValidation, "targets[%d].tiktok_draft: TikTok accepts at most %d pending drafts of an account within 24 hours, and %d others are sent or scheduled for connection %q; "+
			"schedule it for another day, or publish it without tiktok_draft",
			first.Target, wanted.limit, first.Used, n.post.Spec.Targets[first.Target].ConnectionRef.Name)
	}
	asked := 0
	for _, use := range wanted.uses {
		if !use.Assumed {
			asked += use.Count
		}
	}
	return errorf(CodeSubscriptionRequired, "the starter plan allows %d posts to X in a calendar month (UTC), each account and each card of a tree counted; "+
		"%d of %s are used and this post needs %d. Cancel a scheduled post, choose another month, or change the plan.",
		wanted.limit, first.Used, plan.IntendedAt(n.post, 0, 0).UTC().Format("January 2006"), asked)
}

// release releases only this request's reservations, even if the client disconnects.
func (n *reservations) release(ctx context.Context) {
	n.amend(ctx, func(stored *v1alpha1.Usage, _ *reservation) { usage.Release(stored, n.post.Name, n.request) })
}

// transfer moves the usage to a post that already existed, because this request may have reserved after the post's
// delivery confirmed its own usage.
func (n *reservations) transfer(ctx context.Context, made *v1alpha1.Post) {
	n.amend(ctx, func(stored *v1alpha1.Usage, of *reservation) {
		usage.Settle(stored, plan.UsesOfStored(&of.counter, made, n.find, 0))
	})
}

func (n *reservations) amend(ctx context.Context, change func(*v1alpha1.Usage, *reservation)) {
	for i := range n.reserved {
		n.service.settle(ctx, n.post, n.all[i].counter, func(stored *v1alpha1.Usage) { change(stored, &n.all[i]) })
	}
}

func (s *Service) returnAll(ctx context.Context, post *v1alpha1.Post) {
	if post.Spec.Draft {
		return
	}
	find := s.inMemory(post.Namespace)
	for _, counter := range plan.LimitsOf(s.Owner(post.Namespace)).Counters(post, find, 0) {
		s.settle(ctx, post, counter, func(stored *v1alpha1.Usage) { usage.Settle(stored, plan.UsesOfStored(&counter, post, find, 0)) })
	}
}

// settle lowers a post's usage. It continues if the client disconnects; the manager corrects a failure later.
func (s *Service) settle(ctx context.Context, post *v1alpha1.Post, counter v1alpha1.UsageSpec, change func(*v1alpha1.Usage)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTimeout)
	defer cancel()
	err := s.Quota.Amend(ctx, post.Namespace, counter, func(stored *v1alpha1.Usage) error {
		change(stored)
		return nil
	})
	if err != nil {
		s.Log.WarnContext(ctx, "Cannot release a post's unused usage; the manager will",
			"namespace", post.Namespace, "post", post.Name, "error", err)
	}
}
