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

// Quota stores what is counted of a team; package quota says more.
type Quota interface {
	Read(ctx context.Context, namespace string, counter v1alpha1.UsageSpec) (*v1alpha1.Usage, error)
	Amend(ctx context.Context, namespace string, counter v1alpha1.UsageSpec, change func(*v1alpha1.Usage) error) error
}

// returnWithin bounds the giving back of what a post does not take. The manager
// finds later what could not be given back.
const returnWithin = 5 * time.Second

// reservations is what a post takes of what is counted.
type reservations struct {
	service *Service
	post    *v1alpha1.Post
	find    plan.Connections
	limits  plan.Limits
	// request tells this request apart from others under the same Idempotency-Key, or
	// for the same stored post; empty if there can be no other.
	request string
	// all begins with what the team's plan limits, which comes before what platforms
	// do; the first taken of them are, or may be, reserved.
	all      []reservation
	reserved int
}

// reservation is what a post takes of one count.
type reservation struct {
	counter v1alpha1.UsageSpec
	limit   int
	uses    []usage.Use
}

// withinPlan returns what a post takes, and refuses what the team's plan does not
// allow as things stand. A draft takes nothing.
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

// requireCovered refuses a post to an account beyond those that the plan covers.
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
		// One that was made a moment ago is not in memory yet.
		if !slices.ContainsFunc(all, func(c *v1alpha1.Connection) bool { return c.Name == connection.Name }) {
			all = append(all, connection)
		}
	}
	usable := plan.Usable(all, limits.Accounts)
	for _, connection := range named {
		if !plan.Covers(usable, connection) {
			return errorf(CodeSubscriptionRequired, "the starter plan allows %d connected accounts, and connection %q is beyond them: the oldest ones that are not disabled count. "+
				"Disable or delete another connection, or change the plan.", limits.Accounts, connection.Name)
		}
	}
	return nil
}

// check refuses what cannot be taken of a resource as things stand, before
// anything else is looked at that would have to be taken back.
func (n *reservations) check(ctx context.Context, resource string) error {
	for i := range n.all {
		wanted := &n.all[i]
		if wanted.counter.Resource != resource {
			continue
		}
		stored, err := n.service.Quota.Read(ctx, n.post.Namespace, wanted.counter)
		if err != nil {
			return fmt.Errorf("count what a post takes: %w", err)
		}
		if refused := n.apply(wanted, stored); refused != nil {
			return refused
		}
	}
	return nil
}

// reserve reserves what the post takes. After an error, part of it is reserved.
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
			return fmt.Errorf("count what a post takes: %w", err)
		}
	}
	return nil
}

// apply enters what the post takes, or words why that is refused.
func (n *reservations) apply(wanted *reservation, stored *v1alpha1.Usage) *Error {
	refused := usage.Reserve(stored, usage.Reservation{Post: n.post.Name, Request: n.request, Uses: wanted.uses},
		wanted.limit, n.service.Clock.Now())
	if len(refused) == 0 {
		return nil
	}
	first := refused[0]
	if wanted.counter.Resource == v1alpha1.ResourceTikTokDrafts {
		return errorf(CodeValidation, "targets[%d].tiktok_draft: TikTok takes at most %d pending drafts of an account within 24 hours, and besides this post %d are sent or scheduled for connection %q; "+
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

// release takes back what this request reserved. What others reserved under the
// same key stays. It goes on when the client has left.
func (n *reservations) release(ctx context.Context) {
	n.amend(ctx, func(stored *v1alpha1.Usage, _ *reservation) { usage.Release(stored, n.post.Name, n.request) })
}

// transfer leaves what is counted to a post that was there already: this request
// may have reserved after the post's delivery took what it needs.
func (n *reservations) transfer(ctx context.Context, made *v1alpha1.Post) {
	n.amend(ctx, func(stored *v1alpha1.Usage, of *reservation) {
		usage.Settle(stored, plan.Stored(&of.counter, made, n.find, 0))
	})
}

func (n *reservations) amend(ctx context.Context, change func(*v1alpha1.Usage, *reservation)) {
	for i := range n.reserved {
		n.service.settle(ctx, n.post, n.all[i].counter, func(stored *v1alpha1.Usage) { change(stored, &n.all[i]) })
	}
}

// returnAll gives back what a post took that has been cancelled.
func (s *Service) returnAll(ctx context.Context, post *v1alpha1.Post) {
	if post.Spec.Draft {
		return
	}
	find := s.inMemory(post.Namespace)
	for _, counter := range plan.LimitsOf(s.Owner(post.Namespace)).Counters(post, find, 0) {
		s.settle(ctx, post, counter, func(stored *v1alpha1.Usage) { usage.Settle(stored, plan.Stored(&counter, post, find, 0)) })
	}
}

// settle lowers what is counted for a post. It goes on when the client has left;
// the manager does later what cannot be done now.
func (s *Service) settle(ctx context.Context, post *v1alpha1.Post, counter v1alpha1.UsageSpec, change func(*v1alpha1.Usage)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnWithin)
	defer cancel()
	err := s.Quota.Amend(ctx, post.Namespace, counter, func(stored *v1alpha1.Usage) error {
		change(stored)
		return nil
	})
	if err != nil {
		s.Log.WarnContext(ctx, "Cannot give back yet what a post does not take; the manager will",
			"namespace", post.Namespace, "post", post.Name, "error", err)
	}
}
