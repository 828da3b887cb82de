// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/plan"
)

// ListConnections returns the team's connections, oldest first, without those that are disabled, being deleted or
// outside the plan. An empty platform matches all.
func (s *Service) ListConnections(caller Caller, platform v1alpha1.Platform) []Connection {
	found := s.Connections.List(caller.Namespace)
	usable := plan.Usable(found, plan.LimitsOf(s.Owner(caller.Namespace)).Accounts)
	out := make([]Connection, 0, len(found))
	for _, c := range found {
		if c.Spec.Disabled || c.DeletionTimestamp != nil || !plan.Covers(usable, c) || (platform != "" && c.Spec.Platform != platform) ||
			caller.Version1 && !c.Spec.Platform.InVersion1() {
			continue
		}
		connection := Connection{
			ID:          c.Name,
			Platform:    c.Spec.Platform,
			AccountName: c.Status.AccountName,
			IconURL:     platforms.PictureURL(c.Status.IconURL), // earlier versions stored any URL
			ConnectedAt: c.CreationTimestamp.Time,
		}
		if c.Status.ConnectedAt != nil {
			connection.ConnectedAt = c.Status.ConnectedAt.Time
		}
		out = append(out, connection)
	}
	slices.SortFunc(out, func(a, b Connection) int {
		if c := a.ConnectedAt.Compare(b.ConnectedAt); c != 0 {
			return c
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return out
}

// Account is a connected account with its readiness.
type Account struct {
	Connection
	// Username is the account's handle, without an @; empty if the platform has none.
	Username string
	// Last is the result of the last check. Creating a post triggers a new one.
	Last readiness.Result
	// TikTok has a TikTok account's options; nil while unknown, and for other platforms.
	TikTok *v1alpha1.TikTokAccount
}

// ListAccounts is like ListConnections, but includes the last known readiness. It does not call platforms.
func (s *Service) ListAccounts(caller Caller) []Account {
	connections := s.ListConnections(caller, "")
	accounts := make([]Account, 0, len(connections))
	for i := range connections {
		found := s.Connections.Get(caller.Namespace, connections[i].ID)
		if found == nil {
			continue // just deleted
		}
		accounts = append(accounts, Account{Connection: connections[i], Username: found.Status.Username, Last: readiness.Last(found), TikTok: found.Status.TikTok})
	}
	return accounts
}

// lookup finds one request's connections. A connection that is not in the cache is read once from the Kubernetes API,
// because it may be new. After maxMissing missing connections it stops reading, because the post is rejected anyway.
type lookup struct {
	service   *Service
	namespace string
	known     map[string]*v1alpha1.Connection
	// version1 is Caller.Version1.
	version1 bool
	missing  int
	err      error
}

func (s *Service) lookup(namespace string, version1 bool) *lookup {
	return &lookup{service: s, namespace: namespace, version1: version1, known: map[string]*v1alpha1.Connection{}}
}

// in returns the lookup function for the rules. The function also returns nil if the Kubernetes API did not respond;
// err then contains the error.
func (l *lookup) in(ctx context.Context) func(string) *v1alpha1.Connection {
	return func(name string) *v1alpha1.Connection {
		if connection, ok := l.known[name]; ok {
			return connection
		}
		connection := l.find(ctx, name)
		if connection != nil && (connection.DeletionTimestamp != nil || l.version1 && !connection.Spec.Platform.InVersion1()) {
			connection = nil
		}
		l.known[name] = connection
		return connection
	}
}

func (l *lookup) find(ctx context.Context, name string) *v1alpha1.Connection {
	if connection := l.service.Connections.Get(l.namespace, name); connection != nil {
		return connection
	}
	if !validName(name) || l.missing >= maxMissing {
		return nil
	}
	limits.MeterFrom(ctx).Parts(1)
	connection, err := l.service.Connections.Live(ctx, l.namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		l.missing++
		return nil
	case err != nil:
		l.err = err
		return nil
	}
	return connection
}

// latest returns a connection's current state, which may contain an account name that a readiness check has just
// recorded.
func (l *lookup) latest(name string) *v1alpha1.Connection {
	if connection := l.service.Connections.Get(l.namespace, name); connection != nil {
		return connection
	}
	return l.known[name]
}
