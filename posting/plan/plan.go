// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan defines the limits of plans and how much of them a post uses. It does no I/O. Package usage counts, and
// internal/quota stores the counts.
package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/usage"
)

// The limits of the plans (contract, section Limits).
const (
	// starterXPosts is the number of posts to X that a starter team may publish per calendar month (UTC).
	starterXPosts   = 30
	starterAccounts = 10
	// trialDuration is the length of a trial whose end is not set (contract, Limits: a 7-day free trial).
	trialDuration = 7 * 24 * time.Hour
)

// TikTok's own limit on pending drafts in an account's inbox (contract: at most 5 pending drafts per 24 hours).
const (
	MaxTikTokDrafts    = 5
	tikTokDraftsPeriod = "24h"
)

// Limits are the limits of a plan.
type Limits struct {
	// XPosts limits posts to X per calendar month (UTC). Each card of a tree counts. Zero means no limit.
	XPosts int
	// Accounts is the maximum number of accounts that can be used. Zero means no limit.
	Accounts int
}

// LimitsOf returns a team's limits. A namespace without a team (nil) has none, because the API does not post there.
func LimitsOf(team *v1alpha1.Team) Limits {
	if team == nil || team.Spec.Subscription.Plan != v1alpha1.PlanStarter {
		return Limits{}
	}
	return Limits{XPosts: starterXPosts, Accounts: starterAccounts}
}

// TrialEnd returns the end of a team's trial: the time in its subscription, or seven days after the Team was created.
// After that, the team may not create objects. The result does not depend on the state of the subscription.
func TrialEnd(team *v1alpha1.Team) time.Time {
	if end := team.Spec.Subscription.TrialEndsAt; end != nil {
		return end.Time
	}
	return team.CreationTimestamp.Add(trialDuration)
}

// Usable returns the names of the connections that a team may use under its plan's account limit: the oldest ones that
// are neither disabled nor being deleted. Names break ties between equal creation times. If accounts is zero, which
// means no limit, the result is nil, as Covers expects.
func Usable(connections []*v1alpha1.Connection, accounts int) map[string]bool {
	if accounts == 0 {
		return nil
	}
	active := make([]*v1alpha1.Connection, 0, len(connections))
	for _, c := range connections {
		if !c.Spec.Disabled && c.DeletionTimestamp.IsZero() {
			active = append(active, c)
		}
	}
	slices.SortFunc(active, func(a, b *v1alpha1.Connection) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	usable := make(map[string]bool, accounts)
	for _, c := range active[:min(accounts, len(active))] {
		usable[c.Name] = true
	}
	return usable
}

// Covers reports whether the plan allows a connection, given the result of Usable. Disabled ones are always covered.
func Covers(usable map[string]bool, c *v1alpha1.Connection) bool {
	return usable == nil || c.Spec.Disabled || usable[c.Name]
}

// Cost returns the number of X posts that a target creates. Each card of a tree counts as one.
func Cost(post *v1alpha1.Post) int {
	if post.Spec.Tree != nil {
		return len(post.Spec.Tree.Cards)
	}
	return 1
}

// IsTikTokDraft reports whether target i, which is on the given platform, is a draft in a TikTok inbox.
func IsTikTokDraft(post *v1alpha1.Post, i int, platform v1alpha1.Platform) bool {
	options := post.Spec.Targets[i].TikTok
	return platform == v1alpha1.PlatformTikTok && options != nil && options.Draft
}

// IntendedAt returns the time when target i was meant to be published: its scheduled or creation time or, if it was a
// draft, when delivery started. startingDeadline is the manager's starting deadline, which TryUntil includes.
func IntendedAt(post *v1alpha1.Post, i int, startingDeadline time.Duration) time.Time {
	if post.Spec.ScheduledAt != nil {
		return post.Spec.ScheduledAt.Time
	}
	if t := posting.Of(post).Target(i); post.Generation > 1 && t != nil && t.TryUntil != nil {
		return t.TryUntil.Add(-startingDeadline)
	}
	return posting.Of(post).Created()
}

// UseOf returns what target i of a post uses, on any platform. Published posts count. Posts that may be published count
// until they are settled. Failed and withdrawn targets no longer count.
func UseOf(post *v1alpha1.Post, i int) usage.Use {
	use := usage.Use{Target: i}
	view, cost := posting.Of(post), Cost(post)
	t := view.Target(i)
	if t == nil {
		t = &v1alpha1.TargetStatus{}
	}
	switch state := posting.StateOf(t); {
	case state == v1alpha1.TargetPosted:
		use.Count, use.Final = cost, true
	case state == v1alpha1.TargetFailed:
		use.Count, use.Final = min(len(t.Cards), cost), true
	case view.Cancelled() && view.Unsent() && state != v1alpha1.TargetUndecided:
		use.Final = true
	case state == v1alpha1.TargetUndecided, t.Attempt != nil:
		use.Count = cost
	case post.Spec.Draft, !post.DeletionTimestamp.IsZero():
	default:
		use.Count = cost
	}
	return use
}
