// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
)

const (
	// firstAccount is a number as X's accounts have them.
	firstAccount = 1_800_000_000
	// atOnce is how many objects are made side by side.
	atOnce = 16
	// tokenLife lets tokens outlive the benchmark, so that Herald renews none: the floor does not either.
	tokenLife = 60 * 24 * time.Hour
)

// Team is a team with connected accounts and an API key.
type Team struct {
	Namespace   string
	Token       string
	Connections []Connection
}

// Connection is a connected account with its token.
type Connection struct {
	Name        string
	Platform    v1alpha1.Platform
	AccountID   string
	AccessToken string
}

// Connect makes teams with sandbox accounts connected to them, and returns when the manager has checked all of them.
// Herald must be started.
func (s *Stack) Connect(ctx context.Context, teams, connections int) ([]Team, error) {
	made, err := s.MakeTeams(ctx, "bench", teams)
	if err != nil {
		return nil, err
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range made {
		made[i].Connections = make([]Connection, connections)
		for j := range made[i].Connections {
			group.Go(func() error {
				var err error
				made[i].Connections[j], err = s.ConnectTo(inner, v1alpha1.PlatformX, made[i].Namespace, fmt.Sprint(firstAccount+i*connections+j))
				return err
			})
		}
	}
	return made, group.Wait()
}

// MakeTeams makes teams that have an API key each and no accounts. Herald must be started.
func (s *Stack) MakeTeams(ctx context.Context, name string, teams int) ([]Team, error) {
	made := make([]Team, teams)
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range made {
		made[i] = Team{Namespace: fmt.Sprintf("%s-%d", name, i+1)}
		group.Go(func() error { return s.makeTeam(inner, &made[i]) })
	}
	return made, group.Wait()
}

func (s *Stack) makeTeam(ctx context.Context, t *Team) error {
	team := &v1alpha1.Team{
		ObjectMeta: metav1.ObjectMeta{Name: t.Namespace},
		Spec: v1alpha1.TeamSpec{
			Namespace:    t.Namespace,
			Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive},
		},
	}
	if err := s.Kubernetes.Create(ctx, team); err != nil {
		return err
	}
	if err := s.waitReady(ctx, team, &team.Status.Conditions); err != nil {
		return err
	}
	t.Token = "hrld_" + rand.Text()
	sum := sha256.Sum256([]byte(t.Token))
	key := &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: "bench"},
		Spec:       v1alpha1.APIKeySpec{TokenSHA256: hex.EncodeToString(sum[:])},
	}
	if err := s.Kubernetes.Create(ctx, key); err != nil {
		return err
	}
	return s.waitReady(ctx, key, &key.Status.Conditions)
}

// ConnectTo connects a new account of a platform of the sandbox to a team, and returns when the manager has checked it.
// Herald must be started.
func (s *Stack) ConnectTo(ctx context.Context, platform v1alpha1.Platform, namespace, id string) (Connection, error) {
	account, err := s.Sandbox.Account(ctx, string(platform), id, map[string]any{"token_ttl_s": int(tokenLife.Seconds())})
	if err != nil {
		return Connection{}, err
	}
	c := Connection{Name: string(platform) + "-" + strings.ToLower(account.ID), Platform: platform, AccountID: account.ID, AccessToken: account.AccessToken}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Name},
		StringData: map[string]string{
			v1alpha1.CredentialsAccessToken:  account.AccessToken,
			v1alpha1.CredentialsRefreshToken: account.RefreshToken,
			v1alpha1.CredentialsExpiresAt:    account.ExpiresAt.UTC().Format(time.RFC3339),
		},
	}
	if err := s.Kubernetes.Create(ctx, secret); err != nil {
		return Connection{}, err
	}
	connection := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Name},
		Spec: v1alpha1.ConnectionSpec{
			Platform: platform, AccountID: account.ID, CredentialsSecretRef: v1alpha1.LocalReference{Name: c.Name},
		},
	}
	if err := s.Kubernetes.Create(ctx, connection); err != nil {
		return Connection{}, err
	}
	return c, s.waitReady(ctx, connection, &connection.Status.Conditions)
}

func (s *Stack) waitReady(ctx context.Context, object client.Object, conditions *[]metav1.Condition) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return cluster.WaitReady(ctx, s.Kubernetes, object, conditions)
}
