// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
)

// Plans tells whose namespace it is, and counts what a plan or a platform
// limits.
type Plans struct {
	// Owner returns the team that owns a namespace; nil if none does.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Quota keeps the count.
	Quota *quota.UsageStore
}

// plans keeps posts within what the plans of their teams allow.
type plans struct {
	o *Options
	// rejectTarget fails a target whose turn it was, and lets others have its account.
	rejectTarget func(p *reconciliation, d *publish.Delivery, reason, message string) error
}

// enforceLimits counts what is about to be claimed, unless that was counted when
// the post was created, and fails the targets for which nothing is left. It
// returns the others, and all of them with an error.
func (l *plans) enforceLimits(ctx context.Context, p *reconciliation, deliveries []*publish.Delivery) ([]*publish.Delivery, error) {
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
	refused, err := l.confirm(ctx, p, deliveries, limits)
	if err != nil {
		return deliveries, err
	}
	var within []*publish.Delivery
	for _, d := range deliveries {
		if why, over := refused[d.Target]; !over {
			within = append(within, d)
		} else if err := l.rejectTarget(p, d, why.reason, why.message); err != nil {
			return deliveries, err
		}
	}
	return within, nil
}

// refusal is why a target is not sent.
type refusal struct{ reason, message string }

// confirm counts what the post takes, wherever its deliveries go, and returns the
// targets for which nothing is left.
func (l *plans) confirm(ctx context.Context, p *reconciliation, deliveries []*publish.Delivery, limits plan.Limits) (map[int]refusal, error) {
	counters := map[v1alpha1.UsageSpec]bool{}
	for _, d := range deliveries {
		if counter, ok := limits.CounterOf(p.post, d.Target, d.Conn, l.o.StartingDeadline); ok {
			counters[counter] = true
		}
	}
	refused := map[int]refusal{}
	for counter := range counters {
		post, limit := l.stored(ctx, p, &counter), limits.Max(&counter)
		var over []usage.Refusal
		err := l.o.Plans.Quota.Amend(ctx, p.key.Namespace, counter, func(stored *v1alpha1.Usage) error {
			over = usage.Confirm(stored, post, limit, l.o.Clock.Now())
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, o := range over {
			refused[o.Target] = l.refuse(p, &counter, limit, o)
		}
	}
	return refused, nil
}

func (l *plans) refuse(p *reconciliation, counter *v1alpha1.UsageSpec, limit int, over usage.Refusal) refusal {
	if counter.Resource == v1alpha1.ResourceTikTokDrafts {
		return refusal{v1alpha1.ReasonDraftLimit, fmt.Sprintf(
			"not sent: TikTok takes at most %d pending drafts of an account within 24 hours, and %d are sent or scheduled for connection %q; post again another day",
			limit, over.Used, p.post.Spec.Targets[over.Target].ConnectionRef.Name)}
	}
	at := plan.IntendedAt(p.post, over.Target, l.o.StartingDeadline)
	return refusal{v1alpha1.ReasonPlanLimit, fmt.Sprintf(
		"not published: the starter plan allows %d posts to X in a calendar month (UTC), each account and each card of a tree counted; "+
			"%d of %s are used and this one needs %d. Change the plan or wait for another month, and post again",
		limit, over.Used, at.UTC().Format("January 2006"), plan.Cost(p.post))}
}

// coveredAccounts fails the targets whose accounts the team's plan does not
// cover, and returns the others. A tree that has begun goes on.
func (l *plans) coveredAccounts(ctx context.Context, p *reconciliation, deliveries []*publish.Delivery, limits plan.Limits) ([]*publish.Delivery, error) {
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
		if err := l.rejectTarget(p, d, v1alpha1.ReasonPlanLimit, fmt.Sprintf(
			"not published: the starter plan allows %d connected accounts, and connection %q is beyond them; "+
				"disable or delete another connection, or change the plan, and post again", limits.Accounts, d.Conn.Name)); err != nil {
			return nil, err
		}
	}
	return covered, nil
}

// releaseUnused gives back what was counted for a post of which nothing is left
// to do, and was not published. What cannot be given back now, the Team
// controller finds later.
func (l *plans) releaseUnused(ctx context.Context, p *reconciliation) {
	if l.o.Plans == nil || !unused(p.post) {
		return
	}
	team, err := l.o.Plans.Owner(ctx, p.key.Namespace)
	if err == nil {
		for _, counter := range plan.LimitsOf(team).Counters(p.post, l.connections(ctx, p), l.o.StartingDeadline) {
			err = errors.Join(err, l.o.Plans.Quota.Amend(ctx, p.key.Namespace, counter, func(stored *v1alpha1.Usage) error {
				usage.Settle(stored, l.stored(ctx, p, &counter))
				return nil
			}))
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

// stored is the post as a Usage is compared with it.
func (l *plans) stored(ctx context.Context, p *reconciliation, counter *v1alpha1.UsageSpec) usage.PostUses {
	return plan.Stored(counter, p.post, l.connections(ctx, p), l.o.StartingDeadline)
}

// connections finds those that the pass has read, and others as the cache has them;
// nil for one that cannot be read.
func (l *plans) connections(ctx context.Context, p *reconciliation) plan.Connections {
	return func(name string) *v1alpha1.Connection {
		if conn := p.connections[name]; conn != nil {
			return conn
		}
		var conn v1alpha1.Connection
		if err := l.o.Client.Get(ctx, types.NamespacedName{Namespace: p.key.Namespace, Name: name}, &conn); err != nil {
			return nil
		}
		return &conn
	}
}
