// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
)

// Plans tells whose namespace it is, and counts what a plan or a platform
// limits.
type Plans struct {
	// Owner returns the team that owns a namespace; nil if none does.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Quota keeps the count.
	Quota *quota.Store
}

// plans keeps posts within what the plans of their teams allow.
type plans struct {
	o *Options
	// turnAway fails a target whose turn it was, and lets others have its account.
	turnAway func(p *pass, d *publish.Delivery, reason, message string) error
}

// withinPlan counts what is about to be claimed, unless that was counted when
// the post was created, and fails the targets for which nothing is left. It
// returns the others, and all of them with an error.
func (l *plans) withinPlan(ctx context.Context, p *pass, deliveries []*publish.Delivery) ([]*publish.Delivery, error) {
	if l.o.Plans == nil {
		return deliveries, nil
	}
	team, err := l.o.Plans.Owner(ctx, p.key.Namespace)
	if err != nil {
		return deliveries, err
	}
	limits := plan.LimitsOf(team)
	covered, err := l.coveredAccounts(ctx, p, deliveries, limits)
	if err != nil {
		return deliveries, err
	}
	deliveries = covered
	var within []*publish.Delivery
	for _, d := range deliveries {
		at := plan.IntendedAt(p.post, d.Target, l.o.StartingDeadline)
		ok := true
		switch platform := d.Conn.Spec.Platform; {
		case platform == v1alpha1.PlatformX && limits.XPosts > 0:
			ok, err = l.take(ctx, p, d, quota.XPosts(p.key.Namespace, at), quota.Limit{Most: limits.XPosts},
				quota.Item{Target: d.Target, Count: plan.Cost(p.post), At: at}, v1alpha1.ReasonPlanLimit,
				func(used int) string {
					return fmt.Sprintf("not published: the starter plan allows %d posts to X in a calendar month (UTC), each account and each card of a tree counted; "+
						"%d of %s are used and this one needs %d. Change the plan or wait for another month, and post again",
						limits.XPosts, used, at.UTC().Format("January 2006"), plan.Cost(p.post))
				})
		case plan.IsTikTokDraft(p.post, d.Target, platform):
			ok, err = l.take(ctx, p, d, quota.TikTokDrafts(d.Conn), quota.Limit{Most: plan.MaxTikTokDrafts, Within: plan.TikTokDraftsFor},
				quota.Item{Target: d.Target, Count: 1, At: at}, v1alpha1.ReasonDraftLimit,
				func(used int) string {
					return fmt.Sprintf("not sent: TikTok takes at most %d pending drafts of an account within 24 hours, and %d are sent or scheduled for connection %q; post again another day",
						plan.MaxTikTokDrafts, used, d.Conn.Name)
				})
		}
		if err != nil {
			return deliveries, err
		}
		if ok {
			within = append(within, d)
		}
	}
	return within, nil
}

// take counts one target, or fails it.
func (l *plans) take(ctx context.Context, p *pass, d *publish.Delivery, counter quota.Counter, limit quota.Limit, share quota.Item,
	reason string, message func(used int) string,
) (bool, error) {
	answer, err := l.o.Plans.Quota.Take(ctx, counter, &quota.Reservation{
		Post: p.key.Name, UID: p.post.UID, Items: []quota.Item{share}, Keep: l.usesOf(ctx, p, counter), AllowPartial: true,
	}, limit)
	if err != nil {
		return false, err
	}
	if len(answer.Refused) == 0 {
		return true, nil
	}
	return false, l.turnAway(p, d, reason, message(answer.Used))
}

// coveredAccounts fails the targets whose accounts the team's plan does not
// cover, and returns the others. A tree that has begun goes on.
func (l *plans) coveredAccounts(ctx context.Context, p *pass, deliveries []*publish.Delivery, limits plan.Limits) ([]*publish.Delivery, error) {
	if limits.Accounts == 0 {
		return deliveries, nil
	}
	var found v1alpha1.ConnectionList
	if err := l.o.Client.List(ctx, &found, client.InNamespace(p.key.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the team's connections: %w", err)
	}
	all := make([]*v1alpha1.Connection, len(found.Items))
	for i := range found.Items {
		all[i] = &found.Items[i]
	}
	usable := plan.Usable(all, limits.Accounts)
	var covered []*publish.Delivery
	for _, d := range deliveries {
		if plan.Covers(usable, d.Conn) || len(posting.Target(p.post, d.Target).Cards) > 0 {
			covered = append(covered, d)
			continue
		}
		if err := l.turnAway(p, d, v1alpha1.ReasonPlanLimit, fmt.Sprintf(
			"not published: the starter plan allows %d connected accounts, and connection %q is beyond them; "+
				"disable or delete another connection, or change the plan, and post again", limits.Accounts, d.Conn.Name)); err != nil {
			return nil, err
		}
	}
	return covered, nil
}

// returnUnused gives back what was counted for a post of which nothing is left
// to do, and was not published. What cannot be given back now, the Team
// controller finds later.
func (l *plans) returnUnused(ctx context.Context, p *pass) {
	if l.o.Plans == nil || !unused(p.post) {
		return
	}
	counters, err := l.countersOf(ctx, p)
	for _, counter := range counters {
		if err == nil {
			err = l.o.Plans.Quota.Return(ctx, counter, p.post.Name, p.post.UID, l.usesOf(ctx, p, counter))
		}
	}
	if err != nil {
		p.log.Info("cannot give back yet what the post did not take", "error", err.Error())
	}
}

// unused reports whether less was published for a post than may be counted.
func unused(post *v1alpha1.Post) bool {
	for i := range post.Spec.Targets {
		if plan.UseOf(post, i).Count < plan.Cost(post) {
			return true
		}
	}
	return false
}

// countersOf lists the counters that may count the post.
func (l *plans) countersOf(ctx context.Context, p *pass) (counters []quota.Counter, err error) {
	team, err := l.o.Plans.Owner(ctx, p.key.Namespace)
	if err != nil {
		return nil, err
	}
	if plan.LimitsOf(team).XPosts > 0 {
		seen := map[string]bool{}
		for i := range p.post.Spec.Targets {
			if counter := quota.XPosts(p.key.Namespace, plan.IntendedAt(p.post, i, l.o.StartingDeadline)); !seen[counter.Name] {
				seen[counter.Name] = true
				counters = append(counters, counter)
			}
		}
	}
	for i := range p.post.Spec.Targets {
		if !plan.IsTikTokDraft(p.post, i, v1alpha1.PlatformTikTok) {
			continue
		}
		conn := l.known(ctx, p, p.post.Spec.Targets[i].ConnectionRef.Name)
		if conn != nil && conn.Spec.Platform == v1alpha1.PlatformTikTok {
			counters = append(counters, quota.TikTokDrafts(conn))
		}
	}
	return counters, nil
}

// usesOf returns what tells how much each target takes of a counter. What was
// reserved for a target that goes elsewhere since is nothing of it.
func (l *plans) usesOf(ctx context.Context, p *pass, counter quota.Counter) func(target int) int {
	return func(target int) int {
		var conn *v1alpha1.Connection
		if target < len(p.post.Spec.Targets) {
			conn = l.known(ctx, p, p.post.Spec.Targets[target].ConnectionRef.Name)
		}
		switch {
		case counter.Kind == quota.KindXPosts:
			return plan.XUse(p.post, target, conn).Count
		case conn != nil && quota.TikTokDrafts(conn).Name != counter.Name:
			return 0
		default:
			return plan.InboxUse(p.post, target, conn).Count
		}
	}
}

// known is a connection as the cache has it; nil if it cannot be read.
func (l *plans) known(ctx context.Context, p *pass, name string) *v1alpha1.Connection {
	if conn := p.connections[name]; conn != nil {
		return conn
	}
	var conn v1alpha1.Connection
	if err := l.o.Client.Get(ctx, types.NamespacedName{Namespace: p.key.Namespace, Name: name}, &conn); err != nil {
		return nil
	}
	return &conn
}
