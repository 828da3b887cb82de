// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan says what a team's plan allows, and what a post takes of it. It
// does no I/O; package usage counts, and internal/quota stores the count.
package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/usage"
)

// What the plans allow (contract, section Limits).
const (
	// starterXPosts is how many posts to X a starter team may publish in a
	// calendar month (UTC).
	starterXPosts = 30
	// starterAccounts is how many accounts a starter team may have connected.
	starterAccounts = 10
	// trialDuration is how long a trial lasts whose end was not set (contract, Limits: a
	// 7-day free trial).
	trialDuration = 7 * 24 * time.Hour
)

// TikTok's own limit on what lies in an account's inbox, whatever the plan
// (contract: at most 5 pending drafts per 24 hours).
const (
	MaxTikTokDrafts    = 5
	tikTokDraftsPeriod = "24h"
)

// Limits is what a plan allows.
type Limits struct {
	// XPosts is how many posts to X are published in a calendar month (UTC),
	// each card of a tree counted; zero means any number.
	XPosts int
	// Accounts is how many accounts can be used; zero means any number.
	Accounts int
}

// LimitsOf returns what a team may use. A namespace that no team owns (nil) has
// no limits: the API does not post there.
func LimitsOf(team *v1alpha1.Team) Limits {
	if team == nil || team.Spec.Subscription.Plan != v1alpha1.PlanStarter {
		return Limits{}
	}
	return Limits{XPosts: starterXPosts, Accounts: starterAccounts}
}

// TrialEnd returns when the trial of a team ends, from which moment on the team may
// create nothing: at the time that its subscription names, or else seven days after the
// Team was created. It says so whatever the state of the subscription is.
func TrialEnd(team *v1alpha1.Team) time.Time {
	if end := team.Spec.Subscription.TrialEndsAt; end != nil {
		return end.Time
	}
	return team.CreationTimestamp.Add(trialDuration)
}

// Usable returns the names of the connections that a plan with so many accounts
// lets a team use: of those that are neither disabled nor being deleted the
// oldest, and those of the same second by name, so that the answer is always the
// same. Zero accounts means any number; the result is nil then, which
// Covers understands.
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

// Covers tells whether the plan lets a connection be used, given what Usable
// returned. One that is disabled is not the plan's business.
func Covers(usable map[string]bool, c *v1alpha1.Connection) bool {
	return usable == nil || c.Spec.Disabled || usable[c.Name]
}

// Cost is how many posts one target of a post is on X: each card of a tree is
// one.
func Cost(post *v1alpha1.Post) int {
	if post.Spec.Tree != nil {
		return len(post.Spec.Tree.Cards)
	}
	return 1
}

// IsTikTokDraft tells whether target i goes to the inbox of a TikTok account,
// given its platform.
func IsTikTokDraft(post *v1alpha1.Post, i int, platform v1alpha1.Platform) bool {
	options := post.Spec.Targets[i].TikTok
	return platform == v1alpha1.PlatformTikTok && options != nil && options.Draft
}

// IntendedAt is when target i was, or is, to be published: its scheduled time;
// or else its creation; or, of what was a draft before, when it was first worked
// on. startingDeadline is that of the manager, which notes by it until when it
// tries.
func IntendedAt(post *v1alpha1.Post, i int, startingDeadline time.Duration) time.Time {
	if post.Spec.ScheduledAt != nil {
		return post.Spec.ScheduledAt.Time
	}
	if t := posting.Target(post, i); post.Generation > 1 && t != nil && t.TryUntil != nil {
		return t.TryUntil.Add(-startingDeadline)
	}
	return posting.Created(post)
}

// UseOf tells what target i of a post takes, wherever it goes. What is published
// counts, what may have been published counts until that is settled, and what
// failed or was withdrawn gives back what was counted for it.
func UseOf(post *v1alpha1.Post, i int) usage.Use {
	use := usage.Use{Target: i}
	cost := Cost(post)
	t := posting.Target(post, i)
	if t == nil {
		t = &v1alpha1.TargetStatus{}
	}
	switch state := posting.StateOf(t); {
	case state == v1alpha1.TargetPosted:
		use.Count, use.Final = cost, true
	case state == v1alpha1.TargetFailed:
		use.Count, use.Final = min(len(t.Cards), cost), true
	case state == v1alpha1.TargetUndecided, t.Attempt != nil:
		use.Count = cost
	case posting.Cancelled(post) && !posting.Started(post):
		use.Final = true
	case post.Spec.Draft, !post.DeletionTimestamp.IsZero():
	default:
		use.Count = cost
	}
	return use
}
