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
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
)

type plans struct {
	o         *Options
	scheduler *dispatch.Scheduler
	// recorder is nil if refusals cause no events.
	recorder *recorder
}

// silently returns plans that emit no events.
func (l *plans) silently() *plans { return &plans{o: l.o, scheduler: l.scheduler} }

// enforceLimits counts the usage of deliveries before their claim, unless it was counted when the post was created, and
// fails the targets that exceed a limit. It returns the other deliveries or, with an error, all of them.
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

type refusal struct{ reason, message string }

func (l *plans) confirm(ctx context.Context, p *reconciliation, deliveries []*publish.Delivery, limits plan.Limits) (map[int]refusal, error) {
	counters := map[v1alpha1.UsageSpec]bool{}
	for _, d := range deliveries {
		if counter, ok := limits.CounterOf(p.Post, d.Target, d.Conn, l.o.StartingDeadline); ok {
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
			"not sent: TikTok accepts at most %d pending drafts of an account within 24 hours, and %d are sent or scheduled for connection %q; post again another day",
			limit, over.Used, p.Post.Spec.Targets[over.Target].ConnectionRef.Name)}
	}
	at := plan.IntendedAt(p.Post, over.Target, l.o.StartingDeadline)
	return refusal{v1alpha1.ReasonPlanLimit, fmt.Sprintf(
		"not published: the starter plan allows %d posts to X in a calendar month (UTC), each account and each card of a tree counted; "+
			"%d of %s are used and this one needs %d. Change the plan or wait for another month, and post again",
		limit, over.Used, at.UTC().Format("January 2006"), plan.Cost(p.Post))}
}

// coveredAccounts fails targets whose accounts exceed the plan, except trees in progress, and returns the others.
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
		if plan.Covers(usable, d.Conn) || len(p.Target(d.Target).Cards) > 0 {
			covered = append(covered, d)
			continue
		}
		if err := l.rejectTarget(p, d, v1alpha1.ReasonPlanLimit, fmt.Sprintf(
			"not published: the starter plan allows %d connected accounts, and connection %q exceeds that; "+
				"disable or delete another connection, or change the plan, and post again", limits.Accounts, d.Conn.Name)); err != nil {
			return nil, err
		}
	}
	return covered, nil
}

func (l *plans) rejectTarget(p *reconciliation, d *publish.Delivery, reason, message string) error {
	if err := attempt.Fail(p.Target(d.Target), v1alpha1.Blocked{Reason: reason, Problem: message}); err != nil {
		return fmt.Errorf("target %d: %w", d.Target, err)
	}
	l.scheduler.Release(p.key.String(), d.Gate())
	if l.recorder == nil {
		return nil
	}
	l.recorder.emitFinal(targetSubject(p.Post, d.Target, d.Conn), delivery.Event{
		Warning: true, Reason: reason, Message: fmt.Sprintf("target %d (%s): %s", d.Target, d.Conn.Spec.Platform, message),
	})
	return nil
}

// releaseUnused releases a finished post's unused usage. After a failure, the Team controller releases it later.
func (l *plans) releaseUnused(ctx context.Context, p *reconciliation) {
	if l.o.Plans == nil || !unused(p.Post) {
		return
	}
	team, err := l.o.Plans.Owner(ctx, p.key.Namespace)
	if err == nil {
		for _, counter := range plan.LimitsOf(team).Counters(p.Post, l.connections(ctx, p), l.o.StartingDeadline) {
			err = errors.Join(err, l.o.Plans.Quota.Amend(ctx, p.key.Namespace, counter, func(stored *v1alpha1.Usage) error {
				usage.Settle(stored, l.stored(ctx, p, &counter))
				return nil
			}))
		}
	}
	if err != nil {
		p.log.Info("cannot release the unused plan usage of the post", "error", err.Error())
	}
}

func unused(post *v1alpha1.Post) bool {
	for i := range post.Spec.Targets {
		if plan.UseOf(post, i).Count < plan.Cost(post) {
			return true
		}
	}
	return false
}

func (l *plans) stored(ctx context.Context, p *reconciliation, counter *v1alpha1.UsageSpec) usage.PostUses {
	return plan.UsesOfStored(counter, p.Post, l.connections(ctx, p), l.o.StartingDeadline)
}

// connections returns a function that finds a connection among the ones already read, or in the cache. It returns nil
// for a connection that cannot be read.
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
