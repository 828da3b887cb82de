// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
)

// Quota counts what a team may do only so often.
type Quota interface {
	Check(ctx context.Context, b quota.Book, w *quota.Wish, limit quota.Limit) (quota.Answer, error)
	Take(ctx context.Context, b quota.Book, w *quota.Wish, limit quota.Limit) (quota.Answer, error)
	Return(ctx context.Context, b quota.Book, post string, uid types.UID, keep func(target int) int) error
}

// returnWithin bounds the giving back of what a post does not take. The manager
// finds later what could not be given back.
const returnWithin = 5 * time.Second

// needs is what a post takes of what is counted. The zero value takes nothing.
type needs struct {
	quota Quota
	// ofPlan are limits of the team's plan, ofPlatform those of a platform.
	ofPlan, ofPlatform []need
	// taken undoes what take did.
	taken []func(context.Context) error
}

// need is what a post takes of one count.
type need struct {
	book  quota.Book
	limit quota.Limit
	wish  quota.Wish
	// refusal words that there is not enough left.
	refusal func(quota.Answer) *Error
}

// withinPlan tells what a post takes, and refuses what the team's plan does not
// allow as things stand. A draft takes nothing.
func (s *Service) withinPlan(ctx context.Context, post *v1alpha1.Post, find func(string) *v1alpha1.Connection) (*needs, error) {
	limits := plan.LimitsOf(s.Teams.Owner(post.Namespace))
	if refused := s.requireCovered(post, limits, find); refused != nil {
		return nil, refused
	}
	n := &needs{quota: s.Quota}
	if post.Spec.Draft {
		return n, nil
	}
	var onX []quota.Share
	for i := range post.Spec.Targets {
		connection := find(post.Spec.Targets[i].ConnectionRef.Name)
		if connection == nil {
			continue
		}
		at := plan.IntendedAt(post, i, 0)
		switch platform := connection.Spec.Platform; {
		case platform == v1alpha1.PlatformX && limits.XPosts > 0:
			onX = append(onX, quota.Share{Target: i, Count: plan.Cost(post), At: at})
		case plan.IsTikTokDraft(post, i, platform):
			n.addTikTokDraft(post.Name, connection, quota.Share{Target: i, Count: 1, At: at})
		}
	}
	if len(onX) > 0 {
		n.ofPlan = append(n.ofPlan, xPosts(post, onX, limits.XPosts))
	}
	if err := n.check(ctx, n.ofPlan); err != nil {
		return nil, err
	}
	return n, nil
}

func xPosts(post *v1alpha1.Post, shares []quota.Share, most int) need {
	asked, at := 0, shares[0].At
	for _, share := range shares {
		asked += share.Count
	}
	return need{
		book:  quota.XPosts(post.Namespace, at),
		limit: quota.Limit{Most: most},
		wish:  quota.Wish{Post: post.Name, Shares: shares},
		refusal: func(a quota.Answer) *Error {
			return errorf(CodeSubscriptionRequired, "the starter plan allows %d posts to X in a calendar month (UTC), each account and each card of a tree counted; "+
				"%d of %s are used and this post needs %d. Cancel a scheduled post, choose another month, or change the plan.",
				most, a.Used, at.UTC().Format("January 2006"), asked)
		},
	}
}

// addTikTokDraft notes a target that goes to the inbox of an account. Several
// targets of a post may go to the same one.
func (n *needs) addTikTokDraft(post string, connection *v1alpha1.Connection, share quota.Share) {
	book := quota.TikTokDrafts(connection)
	for i := range n.ofPlatform {
		if n.ofPlatform[i].book.Name == book.Name {
			n.ofPlatform[i].wish.Shares = append(n.ofPlatform[i].wish.Shares, share)
			return
		}
	}
	n.ofPlatform = append(n.ofPlatform, need{
		book:  book,
		limit: quota.Limit{Most: plan.MaxTikTokDrafts, Within: plan.TikTokDraftsFor},
		wish:  quota.Wish{Post: post, Shares: []quota.Share{share}},
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
func (n *needs) check(ctx context.Context, list []need) error {
	for i := range list {
		answer, err := n.quota.Check(ctx, list[i].book, &list[i].wish, list[i].limit)
		if err != nil {
			return fmt.Errorf("look up a limit: %w", err)
		}
		if len(answer.Refused) > 0 {
			return list[i].refusal(answer)
		}
	}
	return nil
}

// take reserves what the post takes, all of it or nothing.
func (n *needs) take(ctx context.Context) error {
	for _, list := range [][]need{n.ofPlan, n.ofPlatform} {
		for i := range list {
			wanted := &list[i]
			answer, err := n.quota.Take(ctx, wanted.book, &wanted.wish, wanted.limit)
			if err == nil && len(answer.Refused) > 0 {
				err = wanted.refusal(answer)
			} else if err != nil {
				err = fmt.Errorf("count a post: %w", err)
			}
			if err != nil {
				return err
			}
			if len(answer.Added) > 0 {
				n.taken = append(n.taken, n.undo(wanted, answer.Added))
			}
		}
	}
	return nil
}

// undo gives back what was added, and no more: the rest was taken by an earlier
// request for the same post.
func (n *needs) undo(wanted *need, added []int) func(context.Context) error {
	keep := func(target int) int {
		at := slices.IndexFunc(wanted.wish.Shares, func(share quota.Share) bool { return share.Target == target })
		if at < 0 {
			return 0
		}
		if slices.Contains(added, target) {
			return 0
		}
		return wanted.wish.Shares[at].Count
	}
	return func(ctx context.Context) error {
		return n.quota.Return(ctx, wanted.book, wanted.wish.Post, "", keep)
	}
}

// giveBack undoes take. It goes on when the client has left.
func (n *needs) giveBack(ctx context.Context, s *Service) {
	if len(n.taken) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnWithin)
	defer cancel()
	for _, undo := range n.taken {
		if err := undo(ctx); err != nil {
			s.Log.WarnContext(ctx, "Cannot give back yet what a post did not take; the manager will", "error", err)
		}
	}
}

// returnAll gives back what a post took that has been cancelled.
func (s *Service) returnAll(ctx context.Context, post *v1alpha1.Post) {
	if post.Spec.Draft {
		return
	}
	var books []quota.Book
	if plan.LimitsOf(s.Teams.Owner(post.Namespace)).XPosts > 0 {
		books = append(books, quota.XPosts(post.Namespace, plan.IntendedAt(post, 0, 0)))
	}
	for i := range post.Spec.Targets {
		connection := s.Connections.Get(post.Namespace, post.Spec.Targets[i].ConnectionRef.Name)
		if connection != nil && plan.IsTikTokDraft(post, i, connection.Spec.Platform) {
			books = append(books, quota.TikTokDrafts(connection))
		}
	}
	if len(books) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnWithin)
	defer cancel()
	for _, book := range books {
		if err := s.Quota.Return(ctx, book, post.Name, post.UID, func(int) int { return 0 }); err != nil {
			s.Log.WarnContext(ctx, "Cannot give back yet what a cancelled post took; the manager will",
				"namespace", post.Namespace, "post", post.Name, "error", err)
		}
	}
}
