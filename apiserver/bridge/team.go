// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/suspension"
	"github.com/herald-social/herald/posting/usage"
)

// TeamView is a team for display.
type TeamView struct {
	// Name is the name of the resource; DisplayName may be empty.
	Name, DisplayName string
	Plan              v1alpha1.Plan
	State             v1alpha1.SubscriptionState
	// TrialEndsAt is when the trial ends, which may be in the past; zero for a team that is not on trial.
	TrialEndsAt time.Time
	// Refusal is the reason why the team cannot create objects; empty if it can.
	Refusal string
	// XPosts is the number of posts to X in the current month (UTC). It is not counted on a plan without a limit.
	XPosts Meter
	// Accounts is the number of connected accounts that are not disabled.
	Accounts Meter
	// TikTokDrafts are the drafts sent or scheduled to the inboxes of TikTok accounts within any 24 hours around the
	// current time, by connection.
	TikTokDrafts []AccountMeter
	// Posts is the number of listed posts. It has no limit.
	Posts int
	// Budget is the team's usage of each budget item.
	Budget []v1alpha1.BudgetUse
	// Agents are the settings for agents.
	Agents v1alpha1.Agents
}

// AccountMeter is an account's usage of a limit.
type AccountMeter struct {
	Connection *v1alpha1.Connection
	Meter
}

// Meter is the usage of a limit.
type Meter struct {
	Used int
	// Limit is zero if there is none.
	Limit int
}

// ViewTeam returns the caller's team, or NOT_FOUND if no team owns the namespace.
func (s *Service) ViewTeam(ctx context.Context, caller Caller) (TeamView, error) {
	team := s.Owner(caller.Namespace)
	if team == nil {
		return TeamView{}, errorf(CodeNotFound, "namespace %q belongs to no team", caller.Namespace)
	}
	limits := plan.LimitsOf(team)
	view := TeamView{
		Name: team.Name, DisplayName: team.Spec.DisplayName,
		Agents: team.Spec.Agents,
		Plan:   team.Spec.Subscription.Plan, State: team.Spec.Subscription.State,
		Budget: s.Budget(caller.Namespace),
		XPosts: Meter{Limit: limits.XPosts}, Accounts: Meter{Limit: limits.Accounts},
	}
	if view.State == v1alpha1.SubscriptionTrialing {
		view.TrialEndsAt = plan.TrialEnd(team)
	}
	if refused := s.RequireSubscription(caller); refused != nil {
		view.Refusal = refused.Error()
	}
	counts, err := s.CountPosts(ctx, caller)
	if err != nil {
		return TeamView{}, err
	}
	view.Posts = counts.All()
	for _, c := range s.Connections.List(caller.Namespace) {
		if c.DeletionTimestamp != nil {
			continue
		}
		if !c.Spec.Disabled {
			view.Accounts.Used++
		}
		if c.Spec.Platform == v1alpha1.PlatformTikTok {
			view.TikTokDrafts = append(view.TikTokDrafts, AccountMeter{Connection: c})
		}
	}
	if limits.XPosts > 0 {
		stored, err := s.Quota.Read(ctx, caller.Namespace, plan.XPosts(s.Clock.Now()))
		if err != nil {
			return TeamView{}, fmt.Errorf("count the team's posts to X: %w", err)
		}
		view.XPosts.Used = int(stored.Status.Used)
	}
	return view, s.loadDraftMeters(ctx, caller, limits, view.TikTokDrafts)
}

// shardOf returns the shard of the caller's team, or "" if the manager has not assigned one. The manager corrects the
// label of a post that was created while the team was moved.
func (s *Service) shardOf(caller Caller) string {
	if team := s.Owner(caller.Namespace); team != nil {
		return team.Status.Shard
	}
	return ""
}

// Suspended reports whether publishing is suspended for the caller's team, and since when. The time is zero until the
// manager has recorded it.
func (s *Service) Suspended(caller Caller) (since time.Time, suspended bool) {
	team := s.Owner(caller.Namespace)
	if team == nil || !team.Suspended() {
		return time.Time{}, false
	}
	return suspension.OngoingSince(team.Status.Suspensions), true
}

const maxConcurrentDrafts = 8

func (s *Service) loadDraftMeters(ctx context.Context, caller Caller, limits plan.Limits, accounts []AccountMeter) error {
	slices.SortFunc(accounts, func(a, b AccountMeter) int { return cmp.Compare(a.Connection.Name, b.Connection.Name) })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentDrafts)
	for i := range accounts {
		group.Go(func() error {
			counter := plan.TikTokDrafts(accounts[i].Connection)
			stored, err := s.Quota.Read(ctx, caller.Namespace, counter)
			if err != nil {
				return fmt.Errorf("count the drafts of an account: %w", err)
			}
			accounts[i].Meter = Meter{Used: usage.Used(stored, s.Clock.Now()), Limit: limits.Max(&counter)}
			return nil
		})
	}
	return group.Wait()
}
