// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"sync"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/session"
)

type agents struct {
	oauth  *oauth.Server
	grants *kube.Grants
	used   *access.LastUsed
}

// newAgents returns the authorization server, or nil if it is not configured.
func newAgents(config *Config, service *bridge.Service, teams *kube.Teams, sessions *session.Manager, checker *access.Checker,
	guard *limits.AnonymousGuard,
) (*agents, error) {
	wanted := config.Web.Agents
	if wanted == nil || !config.MCP { // tokens are only valid for MCP
		return nil, nil //nolint:nilnil // nil disables OAuth
	}
	client, err := kube.NewClient(config.Kubernetes, config.UserAgent)
	if err != nil {
		return nil, err
	}
	a := &agents{grants: kube.NewGrants(client, config.Namespaces, watchClock)}
	a.used = access.NewLastUsed(a.grants.Touch, config.Clock, config.Log)
	a.oauth = oauth.New(oauth.Config{
		SiteURL: config.SiteURL, Keys: sessions, Grants: a.grants, Access: checker, AuditLog: service,
		Served: func(namespace string) bool {
			return config.Namespaces.Include(namespace) && teams.Owner(namespace) != nil
		},
		Used:            func(grant *v1alpha1.OAuthGrant) { a.used.RecordUse(grant, grant.Status.LastUsedAt) },
		Anonymous:       guard,
		LoopbackClients: wanted.LoopbackClients, Proxied: wanted.Proxied, Clock: config.Clock, Log: config.Log,
	})
	return a, nil
}

func (a *agents) server() *oauth.Server {
	if a == nil {
		return nil
	}
	return a.oauth
}

// run watches grants until ctx is done. The REST API does not wait for it.
func (a *agents) run(ctx context.Context) {
	if a == nil {
		return
	}
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { a.grants.RunWithContext(ctx) })
	background.Go(func() { a.used.Run(ctx) })
	a.oauth.Run(ctx)
}

func (w *web) authorization() *oauth.Server {
	if w == nil {
		return nil
	}
	return w.agents.server()
}

// open returns the handler of an OAuth path that does not need a session, or nil.
func (w *web) open(path string) http.Handler { return w.authorization().Handler(path) }

func (w *web) watches() []watching {
	if w == nil || w.agents == nil {
		return nil
	}
	return []watching{w.agents.grants}
}
