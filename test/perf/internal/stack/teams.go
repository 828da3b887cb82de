// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/posting/plan"
)

const (
	// keyName is the name of every team's API key.
	keyName = "bench"
	// atOnce is the number of objects created concurrently.
	atOnce = 16
	// tokenLife lets tokens outlive the benchmark, so Herald does not renew any; the floor does not either.
	tokenLife = 60 * 24 * time.Hour
)

// Team is a team with connected accounts and an API key.
type Team struct {
	Namespace   string
	Token       string
	Connections []Connection
}

// Connection is a connected account and its token.
type Connection struct {
	Name        string
	Platform    v1alpha1.Platform
	AccountID   string
	AccessToken string
}

// MakeTeams creates teams with one API key each and no accounts. Herald must be running.
func (s *Stack) MakeTeams(ctx context.Context, name string, teams int) ([]Team, error) {
	created := make([]Team, teams)
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range created {
		created[i] = Team{Namespace: fmt.Sprintf("%s-%d", name, i+1)}
		group.Go(func() error {
			team := unlimited(created[i].Namespace)
			team.Spec.Budget = cluster.LargeBudget()
			return s.makeTeam(inner, &created[i], team)
		})
	}
	return created, group.Wait()
}

// MakeTeamWithin creates a team with the budget of its plan, and returns the budget.
func (s *Stack) MakeTeamWithin(ctx context.Context, name string) (Team, plan.Budget, error) {
	created, team := Team{Namespace: name}, unlimited(name)
	err := s.makeTeam(ctx, &created, team)
	return created, plan.BudgetOf(team), err
}

// unlimited returns a team whose plan has no limits.
func unlimited(name string) *v1alpha1.Team {
	return &v1alpha1.Team{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.TeamSpec{
			Namespace:    name,
			Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive},
		},
	}
}

func (s *Stack) makeTeam(ctx context.Context, t *Team, team *v1alpha1.Team) error {
	if err := s.Kubernetes.Create(ctx, team); err != nil {
		return err
	}
	if err := s.waitReady(ctx, team, &team.Status.Conditions); err != nil {
		return err
	}
	t.Token = apitoken.New(t.Namespace, keyName)
	key := &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: keyName},
		Spec:       v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "bench", SHA256: apitoken.Hash(t.Namespace, keyName, t.Token)}}},
	}
	if err := s.Kubernetes.Create(ctx, key); err != nil {
		return err
	}
	return s.waitReady(ctx, key, &key.Status.Conditions)
}

// Connect connects count new accounts on a sandbox platform to a team, numbered from first, and waits until the manager
// has probed all of them. Herald must be running.
func (s *Stack) Connect(ctx context.Context, platform v1alpha1.Platform, namespace string, first, count int) ([]Connection, error) {
	created := make([]Connection, count)
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range created {
		group.Go(func() (err error) {
			created[i], err = s.connect(inner, platform, namespace, strconv.Itoa(first+i))
			return err
		})
	}
	return created, group.Wait()
}

func (s *Stack) connect(ctx context.Context, platform v1alpha1.Platform, namespace, id string) (Connection, error) {
	account, err := s.Sandbox.Account(ctx, string(platform), id, map[string]any{"token_ttl_s": int(tokenLife.Seconds())})
	if err != nil {
		return Connection{}, err
	}
	c := Connection{Name: string(platform) + "-" + strings.ToLower(account.ID), Platform: platform, AccountID: account.ID, AccessToken: account.AccessToken}
	connection := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Name}}
	tokens := cluster.Account{
		ID: account.ID, AccessToken: account.AccessToken, RefreshToken: account.RefreshToken, Scopes: account.Scopes,
		ExpiresAt: account.ExpiresAt.UTC().Format(time.RFC3339),
	}
	if err := cluster.CreateConnection(ctx, s.Kubernetes, connection, platform, tokens); err != nil {
		return c, err
	}
	return c, s.waitReady(ctx, connection, &connection.Status.Conditions)
}

func (s *Stack) waitReady(ctx context.Context, object client.Object, conditions *[]metav1.Condition) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return cluster.WaitReady(ctx, s.Kubernetes, object, conditions)
}
