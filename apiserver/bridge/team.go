// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/plan"
)

// TeamView is a team as people see it.
type TeamView struct {
	// Name is that of the resource; DisplayName is empty if none was given.
	Name, DisplayName string
	Plan              v1alpha1.Plan
	State             v1alpha1.SubscriptionState
	// TrialEndsAt is when the trial ends, or has ended; zero for a team that is not on
	// trial.
	TrialEndsAt time.Time
	// Refusal says why the team may create nothing; empty if it may.
	Refusal string
	// XPosts are the posts to X of the present month (UTC), of the plan's limit. Nothing
	// is counted where there is no limit.
	XPosts Meter
	// Accounts are the connected ones that are not disabled.
	Accounts Meter
	// Agents says what agents may do.
	Agents v1alpha1.Agents
}

// Meter is how much of a limit is used.
type Meter struct {
	Used int
	// Limit is zero if there is none.
	Limit int
}

// ViewTeam returns the caller's team; a NOT_FOUND if no team owns the namespace.
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
		XPosts: Meter{Limit: limits.XPosts}, Accounts: Meter{Limit: limits.Accounts},
	}
	if view.State == v1alpha1.SubscriptionTrialing {
		view.TrialEndsAt = plan.TrialEnd(team)
	}
	if refused := s.RequireSubscription(caller); refused != nil {
		view.Refusal = refused.Error()
	}
	for _, c := range s.Connections.List(caller.Namespace) {
		if !c.Spec.Disabled && c.DeletionTimestamp == nil {
			view.Accounts.Used++
		}
	}
	if limits.XPosts > 0 {
		stored, err := s.Quota.Read(ctx, caller.Namespace, plan.XPosts(s.Clock.Now()))
		if err != nil {
			return TeamView{}, fmt.Errorf("count the team's posts to X: %w", err)
		}
		view.XPosts.Used = int(stored.Status.Used)
	}
	return view, nil
}
