// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/placement"
	"github.com/herald-social/herald/posting/suspension"
)

// accountOf returns the account of a connection that its platform has ever confirmed, or "". Anyone may name any account
// in a Connection, and nothing was published through one that was never confirmed.
func accountOf(conn *v1alpha1.Connection) string {
	if conn.Status.ConnectedAt == nil && !conn.Status.Confirmed() {
		return ""
	}
	return string(conn.Spec.Platform) + "/" + conn.Spec.AccountID
}

// assignTeams gives each team its shard.
func (r *Reconciler) assignTeams(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var teams v1alpha1.TeamList
	if err := r.Client.List(ctx, &teams); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list the teams: %w", err)
	}
	known, byName, err := r.teams(ctx, teams.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	again := false
	for _, step := range placement.Decide(known, r.Shards) {
		switch err := r.assign(ctx, byName[step.Team], step); {
		case apierrors.IsConflict(err):
			again = true
		case client.IgnoreNotFound(err) != nil:
			return reconcile.Result{}, err
		}
	}
	if again {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	return reconcile.Result{}, nil
}

// teams returns the installation's teams that own their namespaces, with their accounts.
func (r *Reconciler) teams(ctx context.Context, teams []v1alpha1.Team) (known []placement.Team, byName map[string]*v1alpha1.Team, err error) {
	accounts, err := r.accounts(ctx)
	if err != nil {
		return nil, nil, err
	}
	byName = map[string]*v1alpha1.Team{}
	for i := range teams {
		team := &teams[i]
		namespace := team.Spec.Namespace
		owner, err := r.Owner(ctx, namespace)
		if err != nil {
			return nil, nil, err //nolint:wrapcheck // the error names the operation
		}
		if owner == nil || owner.UID != team.UID || !r.Namespaces.Include(namespace) {
			continue
		}
		byName[team.Name] = team
		known = append(known, placement.Team{
			Name: team.Name, Shard: team.Status.Shard, Moving: team.Moving(), Posts: r.Unfinished(namespace), Accounts: accounts[namespace],
		})
	}
	return known, byName, nil
}

// accounts returns the confirmed accounts of each namespace.
func (r *Reconciler) accounts(ctx context.Context) (map[string][]string, error) {
	var connections v1alpha1.ConnectionList
	if err := r.Client.List(ctx, &connections, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the connections: %w", err)
	}
	accounts := map[string][]string{}
	for i := range connections.Items {
		if account := accountOf(&connections.Items[i]); account != "" {
			accounts[connections.Items[i].Namespace] = append(accounts[connections.Items[i].Namespace], account)
		}
	}
	return accounts, nil
}

// assign stores a team's shard. A team that has one is suspended in the same write, so that neither holder claims its
// posts while they are labelled.
func (r *Reconciler) assign(ctx context.Context, team *v1alpha1.Team, step placement.Step) error {
	base := team.DeepCopy()
	now := r.Clock.Now()
	team.Status.Shard = step.Shard
	if step.From != "" {
		team.Status.Move = &v1alpha1.ShardMove{From: step.From, Since: v1alpha1.NewTime(now)}
		team.Status.Suspensions = suspension.Update(team.Status.Suspensions, true, now, r.SuspensionRetention)
	}
	if err := r.Client.Status().Patch(ctx, team, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot assign team %s to shard %s: %w", team.Name, step.Shard, err)
	}
	ctrl.LoggerFrom(ctx).Info("assigned a team to a shard", "team", team.Name, "shard", step.Shard, "from", step.From)
	return nil
}
