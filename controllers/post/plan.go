// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
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

// withinPlan counts what is about to be claimed, unless that was counted when
// the post was created, and fails the targets for which nothing is left. It
// returns the others, and all of them with an error.
func (s *scope) withinPlan(ctx context.Context, shipments []*shipment) ([]*shipment, error) {
	if s.Plans == nil {
		return shipments, nil
	}
	team, err := s.Plans.Owner(ctx, s.key.Namespace)
	if err != nil {
		return shipments, err
	}
	limits := plan.LimitsOf(team)
	covered, err := s.coveredAccounts(ctx, shipments, limits)
	if err != nil {
		return shipments, err
	}
	shipments = covered
	onX := func(sh *shipment) bool { return limits.XPosts > 0 && sh.conn.Spec.Platform == v1alpha1.PlatformX }
	toInbox := func(sh *shipment) bool { return plan.IsTikTokDraft(s.post, sh.index, sh.conn.Spec.Platform) }
	var within []*shipment
	for _, sh := range shipments {
		at := plan.IntendedAt(s.post, sh.index, s.StartingDeadline)
		ok := true
		switch {
		case onX(sh):
			ok, err = s.take(ctx, sh, quota.XPosts(s.key.Namespace, at), quota.Limit{Most: limits.XPosts},
				quota.Item{Target: sh.index, Count: plan.Cost(s.post), At: at}, v1alpha1.ReasonPlanLimit,
				func(used int) string { return xPostsMessage(limits.XPosts, used, plan.Cost(s.post), at) })
		case toInbox(sh):
			ok, err = s.take(ctx, sh, quota.TikTokDrafts(sh.conn), quota.Limit{Most: plan.MaxTikTokDrafts, Within: plan.TikTokDraftsFor},
				quota.Item{Target: sh.index, Count: 1, At: at}, v1alpha1.ReasonDraftLimit,
				func(used int) string { return inboxMessage(used, sh.conn.Name) })
		}
		if err != nil {
			return shipments, err
		}
		if ok {
			within = append(within, sh)
		}
	}
	return within, nil
}

// countPause is how soon it is tried again to count what a plan limits.
const countPause = 5 * time.Second

// cannotCount notes that targets wait because what the plan limits cannot be
// counted: nothing is sent uncounted, and nobody is left without the reason.
func (s *scope) cannotCount(ctx context.Context, shipments []*shipment, why error) error {
	s.log.Error(why, "cannot count what the team's plan limits; trying again", "uid", s.post.UID)
	for _, sh := range shipments {
		t := posting.Target(s.post, sh.index)
		if t.Phase == v1alpha1.PhaseFailed {
			continue
		}
		s.waitFor(sh.index, t, v1alpha1.ReasonUsageUnavailable,
			"what the team's plan allows cannot be counted: see that the namespace for it exists (the manager's flag --usage-namespace) and that the manager may write there")
		t.NextTryAt = v1alpha1.NewTimePtr(s.Clock.Now().Add(countPause))
	}
	_, err := s.write(ctx)
	return err
}

// take counts one target, or fails it.
func (s *scope) take(ctx context.Context, sh *shipment, counter quota.Counter, limit quota.Limit, share quota.Item,
	reason string, message func(used int) string,
) (bool, error) {
	answer, err := s.Plans.Quota.Take(ctx, counter, &quota.Reservation{
		Post: s.key.Name, UID: s.post.UID, Items: []quota.Item{share}, Keep: s.usesOf(ctx, counter), AllowPartial: true,
	}, limit)
	if err != nil {
		return false, err
	}
	if len(answer.Refused) == 0 {
		return true, nil
	}
	return false, s.turnAway(sh, reason, message(answer.Used))
}

func xPostsMessage(most, used, cost int, at time.Time) string {
	return fmt.Sprintf("not published: the starter plan allows %d posts to X in a calendar month (UTC), each account and each card of a tree counted; "+
		"%d of %s are used and this one needs %d. Change the plan or wait for another month, and post again",
		most, used, at.UTC().Format("January 2006"), cost)
}

func inboxMessage(used int, connection string) string {
	return fmt.Sprintf("not sent: TikTok takes at most %d pending drafts of an account within 24 hours, and %d are sent or scheduled for connection %q; post again another day",
		plan.MaxTikTokDrafts, used, connection)
}

// coveredAccounts fails the targets whose accounts the team's plan does not
// cover, and returns the others. A tree that has begun goes on.
func (s *scope) coveredAccounts(ctx context.Context, shipments []*shipment, limits plan.Limits) ([]*shipment, error) {
	if limits.Accounts == 0 {
		return shipments, nil
	}
	var found v1alpha1.ConnectionList
	if err := s.Client.List(ctx, &found, client.InNamespace(s.key.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the team's connections: %w", err)
	}
	all := make([]*v1alpha1.Connection, len(found.Items))
	for i := range found.Items {
		all[i] = &found.Items[i]
	}
	usable := plan.Usable(all, limits.Accounts)
	var covered []*shipment
	for _, sh := range shipments {
		if plan.Covers(usable, sh.conn) || len(posting.Target(s.post, sh.index).Cards) > 0 {
			covered = append(covered, sh)
			continue
		}
		if err := s.turnAway(sh, v1alpha1.ReasonPlanLimit, fmt.Sprintf(
			"not published: the starter plan allows %d connected accounts, and connection %q is beyond them; "+
				"disable or delete another connection, or change the plan, and post again", limits.Accounts, sh.conn.Name)); err != nil {
			return nil, err
		}
	}
	return covered, nil
}

// turnAway fails a target whose turn it was, and lets others have its account.
func (s *scope) turnAway(sh *shipment, reason, message string) error {
	if err := attempt.Fail(posting.Target(s.post, sh.index), reason, message); err != nil {
		return fmt.Errorf("target %d: %w", sh.index, err)
	}
	s.admission.Release(s.key.String(), sh.gate())
	s.warn(reason, fmt.Sprintf("target %d (%s): %s", sh.index, sh.conn.Spec.Platform, message))
	return nil
}

// beyondPlan says why the plan does not let target i be published, as far as
// its connection tells, or "".
func (s *scope) beyondPlan(i int) string {
	conn := s.connection(i)
	if conn == nil || len(posting.Target(s.post, i).Cards) > 0 || conditions.Reason(conn.Status.Conditions) != v1alpha1.ReasonPlanLimit {
		return ""
	}
	return fmt.Sprintf("not published: connection %q is beyond what the team's plan allows; disable or delete another connection, or change the plan, and post again", conn.Name)
}

// over reports whether nothing more will be sent for the post.
func (s *scope) over() bool {
	if s.post.DeletionTimestamp.IsZero() {
		return s.post.Status.Finished
	}
	return !controllerutil.ContainsFinalizer(s.post, v1alpha1.DeliveryFinalizer)
}

// returnUnused gives back what was counted for a post of which nothing is left
// to do, and was not published. What cannot be given back now, the Team
// controller finds later.
func (s *scope) returnUnused(ctx context.Context) {
	if s.Plans == nil {
		return
	}
	unused := func(i int) bool { return plan.UseOf(s.post, i).Count < plan.Cost(s.post) }
	if !slices.ContainsFunc(indexes(s.post), unused) {
		return
	}
	counters, err := s.booksOf(ctx)
	for _, counter := range counters {
		if err == nil {
			err = s.Plans.Quota.Return(ctx, counter, s.post.Name, s.post.UID, s.usesOf(ctx, counter))
		}
	}
	if err != nil {
		s.log.Info("cannot give back yet what the post did not take", "error", err.Error())
	}
}

// booksOf lists the books in which the post may have been counted.
func (s *scope) booksOf(ctx context.Context) (counters []quota.Counter, err error) {
	team, err := s.Plans.Owner(ctx, s.key.Namespace)
	if err != nil {
		return nil, err
	}
	if plan.LimitsOf(team).XPosts > 0 {
		seen := map[string]bool{}
		for i := range s.post.Spec.Targets {
			if counter := quota.XPosts(s.key.Namespace, plan.IntendedAt(s.post, i, s.StartingDeadline)); !seen[counter.Name] {
				seen[counter.Name] = true
				counters = append(counters, counter)
			}
		}
	}
	for i := range s.post.Spec.Targets {
		if !plan.IsTikTokDraft(s.post, i, v1alpha1.PlatformTikTok) {
			continue
		}
		var conn v1alpha1.Connection
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: s.post.Spec.Targets[i].ConnectionRef.Name}, &conn)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read connection %q: %w", s.post.Spec.Targets[i].ConnectionRef.Name, err)
		}
		if err == nil && conn.Spec.Platform == v1alpha1.PlatformTikTok {
			counters = append(counters, quota.TikTokDrafts(&conn))
		}
	}
	return counters, nil
}

// usesOf returns what tells how much each target takes of a book. What was
// reserved for a target that goes elsewhere since is nothing of it.
func (s *scope) usesOf(ctx context.Context, counter quota.Counter) func(target int) int {
	return func(target int) int {
		var conn *v1alpha1.Connection
		if target < len(s.post.Spec.Targets) {
			conn = s.known(ctx, s.post.Spec.Targets[target].ConnectionRef.Name)
		}
		switch {
		case counter.Kind == quota.KindXPosts:
			return plan.XUse(s.post, target, conn).Count
		case conn != nil && quota.TikTokDrafts(conn).Name != counter.Name:
			return 0
		default:
			return plan.InboxUse(s.post, target, conn).Count
		}
	}
}

// known is a connection as the cache has it; nil if it cannot be read.
func (s *scope) known(ctx context.Context, name string) *v1alpha1.Connection {
	if conn := s.conns[name]; conn != nil {
		return conn
	}
	var conn v1alpha1.Connection
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: name}, &conn); err != nil {
		return nil
	}
	return &conn
}

func indexes(post *v1alpha1.Post) []int {
	all := make([]int, len(post.Spec.Targets))
	for i := range all {
		all[i] = i
	}
	return all
}
