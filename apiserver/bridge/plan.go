// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
)

// Quota counts what a team may do only so often.
type Quota interface {
	Check(ctx context.Context, b quota.Counter, w *quota.Reservation, limit quota.Limit) (quota.Answer, error)
	Take(ctx context.Context, b quota.Counter, w *quota.Reservation, limit quota.Limit) (quota.Answer, error)
	Undo(ctx context.Context, b quota.Counter, w *quota.Reservation, granted quota.Answer, limit quota.Limit) error
	Return(ctx context.Context, b quota.Counter, post string, uid types.UID, keep func(target int) int) error
}

// returnWithin bounds the giving back of what a post does not take. The manager
// finds later what could not be given back.
const returnWithin = 5 * time.Second

// needs is what a post takes of what is counted.
type needs struct {
	service *Service
	// by distinguishes this request from others under the same Idempotency-Key;
	// empty without one.
	by   string
	find func(string) *v1alpha1.Connection
	// all begins with limits of the team's plan, which come before those of
	// platforms.
	all []need
}

// need is what a post takes of one count.
type need struct {
	counter quota.Counter
	limit   quota.Limit
	// ofPlatform is set for a limit of a platform, not of the team's plan.
	ofPlatform  bool
	reservation quota.Reservation
	// granted is what came of it.
	granted quota.Answer
	// use is what a target of a post takes of the count, given its connection.
	use func(post *v1alpha1.Post, target int, connection *v1alpha1.Connection) plan.Use
	// refusal words that there is not enough left.
	refusal func(quota.Answer) *Error
}

// withinPlan returns what a post takes, and refuses what the team's plan does not
// allow as things stand. A draft takes nothing.
func (s *Service) withinPlan(ctx context.Context, post *v1alpha1.Post, find func(string) *v1alpha1.Connection) (*needs, error) {
	limits := plan.LimitsOf(s.Owner(post.Namespace))
	if refused := s.requireCovered(post, limits, find); refused != nil {
		return nil, refused
	}
	n := &needs{service: s, find: find}
	if post.Spec.Draft {
		return n, nil
	}
	if post.Annotations[v1alpha1.RequestAnnotation] != "" {
		n.by = rand.Text()
	}
	var onX []quota.Item
	for i := range post.Spec.Targets {
		connection := find(post.Spec.Targets[i].ConnectionRef.Name)
		if connection == nil {
			continue
		}
		at := plan.IntendedAt(post, i, 0)
		switch platform := connection.Spec.Platform; {
		case platform == v1alpha1.PlatformX && limits.XPosts > 0:
			onX = append(onX, quota.Item{Target: i, Count: plan.Cost(post), At: at})
		case plan.IsTikTokDraft(post, i, platform):
			n.addTikTokDraft(post.Name, connection, quota.Item{Target: i, Count: 1, At: at})
		}
	}
	if len(onX) > 0 {
		n.all = slices.Insert(n.all, 0, n.xPosts(post, onX, limits.XPosts))
	}
	if err := n.check(ctx, false); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *needs) xPosts(post *v1alpha1.Post, items []quota.Item, most int) need {
	asked, at := 0, items[0].At
	for _, item := range items {
		asked += item.Count
	}
	return need{
		counter:     quota.XPosts(post.Namespace, at),
		limit:       quota.Limit{Most: most},
		reservation: quota.Reservation{Post: post.Name, By: n.by, Items: items},
		use:         plan.XUse,
		refusal: func(a quota.Answer) *Error {
			return errorf(CodeSubscriptionRequired, "the starter plan allows %d posts to X in a calendar month (UTC), each account and each card of a tree counted; "+
				"%d of %s are used and this post needs %d. Cancel a scheduled post, choose another month, or change the plan.",
				most, a.Used, at.UTC().Format("January 2006"), asked)
		},
	}
}

// addTikTokDraft adds a target that goes to the inbox of an account. Several
// targets of a post may go to the same one.
func (n *needs) addTikTokDraft(post string, connection *v1alpha1.Connection, item quota.Item) {
	counter := quota.TikTokDrafts(connection)
	for i := range n.all {
		if n.all[i].counter.Name == counter.Name {
			n.all[i].reservation.Items = append(n.all[i].reservation.Items, item)
			return
		}
	}
	n.all = append(n.all, need{
		counter:     counter,
		limit:       quota.Limit{Most: plan.MaxTikTokDrafts, Within: plan.TikTokDraftsFor},
		ofPlatform:  true,
		reservation: quota.Reservation{Post: post, By: n.by, Items: []quota.Item{item}},
		use:         plan.InboxUse,
		refusal: func(a quota.Answer) *Error {
			return errorf(CodeValidation, "targets[%d].tiktok_draft: TikTok takes at most %d pending drafts of an account within 24 hours, and besides this post %d are sent or scheduled for connection %q; "+
				"schedule it for another day, or publish it without tiktok_draft",
				a.Refused[0], plan.MaxTikTokDrafts, a.Used, connection.Name)
		},
	})
}

// requireCovered refuses a post to an account beyond those that the plan covers.
func (s *Service) requireCovered(post *v1alpha1.Post, limits plan.Limits, find func(string) *v1alpha1.Connection) error {
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

// check refuses what cannot be taken as things stand, before anything else is
// looked at that would have to be taken back.
func (n *needs) check(ctx context.Context, ofPlatform bool) error {
	for i := range n.all {
		if n.all[i].ofPlatform != ofPlatform {
			continue
		}
		if _, err := n.ask(ctx, &n.all[i], n.service.Quota.Check); err != nil {
			return err
		}
	}
	return nil
}

// take reserves what the post takes, all of it or nothing.
func (n *needs) take(ctx context.Context) (err error) {
	for i := range n.all {
		if n.all[i].granted, err = n.ask(ctx, &n.all[i], n.service.Quota.Take); err != nil {
			return err
		}
	}
	return nil
}

// ask asks for what a post takes, and refuses it if there is not enough left. A post
// that was delivered may have had the same name, that is the same Idempotency-Key: if
// it is gone, it still counts, and the new one needs a share of its own.
func (n *needs) ask(ctx context.Context, wanted *need,
	put func(context.Context, quota.Counter, *quota.Reservation, quota.Limit) (quota.Answer, error),
) (quota.Answer, error) {
	answer, err := put(ctx, wanted.counter, &wanted.reservation, wanted.limit)
	if err == nil && answer.Delivered != "" {
		made, failed := n.service.Posts.Get(ctx, wanted.counter.Namespace, wanted.reservation.Post)
		switch {
		case failed == nil && made.UID == answer.Delivered: // and the create will find it
		case failed == nil, apierrors.IsNotFound(failed):
			wanted.reservation.Gone = answer.Delivered
			answer, err = put(ctx, wanted.counter, &wanted.reservation, wanted.limit)
		default:
			err = fmt.Errorf("read what was created under an Idempotency-Key: %w", failed)
		}
	}
	switch {
	case err != nil:
		return quota.Answer{}, fmt.Errorf("count what a post takes: %w", err)
	case len(answer.Refused) > 0:
		return quota.Answer{}, wanted.refusal(answer)
	default:
		return answer, nil
	}
}

// giveBack undoes take, as far as no other request under the same key relies on
// what was taken. If made is given, that is the post of another such request, and
// no more than it takes stays counted. It goes on when the client has left.
func (n *needs) giveBack(ctx context.Context, made *v1alpha1.Post) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnWithin)
	defer cancel()
	for i := range n.all {
		taken := &n.all[i]
		var err error
		if len(taken.granted.Added) > 0 {
			err = n.service.Quota.Undo(ctx, taken.counter, &taken.reservation, taken.granted, taken.limit)
		}
		if err == nil && made != nil {
			err = n.service.Quota.Return(ctx, taken.counter, made.Name, "", func(target int) int {
				var connection *v1alpha1.Connection
				if target < len(made.Spec.Targets) {
					connection = n.find(made.Spec.Targets[target].ConnectionRef.Name)
				}
				return taken.use(made, target, connection).Count
			})
		}
		if err != nil {
			n.service.Log.WarnContext(ctx, "Cannot give back yet what a post did not take; the manager will", "error", err)
		}
	}
}

// returnAll gives back what a post took that has been cancelled.
func (s *Service) returnAll(ctx context.Context, post *v1alpha1.Post) {
	if post.Spec.Draft {
		return
	}
	var counters []quota.Counter
	if plan.LimitsOf(s.Owner(post.Namespace)).XPosts > 0 {
		counters = append(counters, quota.XPosts(post.Namespace, plan.IntendedAt(post, 0, 0)))
	}
	for i := range post.Spec.Targets {
		connection := s.Connections.Get(post.Namespace, post.Spec.Targets[i].ConnectionRef.Name)
		if connection != nil && plan.IsTikTokDraft(post, i, connection.Spec.Platform) {
			counters = append(counters, quota.TikTokDrafts(connection))
		}
	}
	if len(counters) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnWithin)
	defer cancel()
	for _, counter := range counters {
		if err := s.Quota.Return(ctx, counter, post.Name, post.UID, func(int) int { return 0 }); err != nil {
			s.Log.WarnContext(ctx, "Cannot give back yet what a cancelled post took; the manager will",
				"namespace", post.Namespace, "post", post.Name, "error", err)
		}
	}
}
