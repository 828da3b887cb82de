// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	webpages "github.com/herald-social/herald/apiserver/web"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
)

// WebConfig configures the web application, in addition to Config.
type WebConfig struct {
	// Namespace is this installation's namespace. SignInSecret is the Secret there that the replicas share.
	Namespace    string
	SignInSecret string
	// RolePrefix is the name prefix of the roles for users.
	RolePrefix string
	// OIDC configures sign-in through OpenID Connect. Without it, users sign in with a one-time link.
	OIDC *signin.OIDC
	// SendsEmail is true if the installation has a mail server for notifications.
	SendsEmail bool
	// LinkCommand is the command that an administrator uses to create a one-time link.
	LinkCommand string
	// Platforms are the platforms whose accounts users may connect, with their apps' secrets.
	Platforms platforms.Registry
	// Apps are those apps. Credentials are marked with the app that obtained them.
	Apps credentials.Apps
	// StoreOrigins are the origins to which browsers upload files, separated by spaces; empty if there is no store.
	StoreOrigins string
	// Agents allows users to authorize agents for teams; nil disables OAuth.
	Agents *AgentsConfig
}

// AgentsConfig configures how agents are authorized.
type AgentsConfig struct {
	// LoopbackClients allows agents' metadata documents from loopback addresses, for trials.
	LoopbackClients bool
	// Proxied is true if this program can reach other sites only through a proxy.
	Proxied bool
}

type web struct {
	sessions *session.Manager
	signIn   *signin.Handlers
	clock    clock.Clock
	handler  http.Handler
	agents   *agents
	// close ends responses that last for minutes.
	close func()
}

// newWeb returns the web application, or nil if it is disabled.
func newWeb(config *Config, service *bridge.Service, teams *kube.Teams, connections *kube.Connections, credentials kube.Credentials, limits rest.Limits) (*web, error) {
	if config.Web == nil {
		return nil, nil //nolint:nilnil // nil disables the web application
	}
	secrets, err := kube.NewSecrets(config.Kubernetes, config.UserAgent, config.Web.Namespace)
	if err != nil {
		return nil, err
	}
	reviews, err := kube.NewReviews(config.Kubernetes, config.UserAgent)
	if err != nil {
		return nil, err
	}
	bindings, err := kube.NewRoleBindings(config.Kubernetes, config.UserAgent)
	if err != nil {
		return nil, err
	}
	served := func() []*v1alpha1.Team {
		var mine []*v1alpha1.Team
		for _, team := range teams.List() {
			if config.Namespaces.Include(team.Spec.Namespace) {
				mine = append(mine, team)
			}
		}
		return mine
	}
	w := &web{clock: config.Clock, sessions: session.NewManager(session.Options{
		Secrets: secrets, Namespace: config.Web.Namespace, Name: config.Web.SignInSecret,
		Secure: strings.HasPrefix(config.SiteURL, "https://"), Clock: config.Clock, Log: config.Log,
	})}
	connector := connect.New(connect.Config{
		SiteURL: config.SiteURL, Platforms: config.Web.Platforms, Apps: config.Web.Apps, Owner: teams.Owner, Connections: connections, Secrets: credentials,
		Servers: connect.NewServerApps(secrets, config.Web.SignInSecret, config.Clock), Sealer: w.sessions, Clock: config.Clock, Log: config.Log,
	})
	signIns := newSignIns(config.Registry, config.Web.OIDC != nil)
	checker := access.New(reviews, served, config.Clock)
	if w.agents, err = newAgents(config, service, teams, w.sessions, checker, limits.Anonymous); err != nil {
		return nil, err
	}
	pages := webpages.New(webpages.Config{
		Service: service, Sessions: w.sessions, Access: checker, Members: bindings, Agents: w.agents.server(), PostReader: config.Web.Platforms.PostParser, Teams: limits.Teams, Bodies: limits.Bodies,
		SignIn: signin.Options{
			Sessions: w.sessions, SiteURL: config.SiteURL, OIDC: config.Web.OIDC, LinkCommand: config.Web.LinkCommand,
			OnOutcome: func(by signin.Method, outcome signin.Outcome) {
				signIns.WithLabelValues(string(by), string(outcome)).Inc()
			},
			Clock: config.Clock, Log: config.Log,
		},
		Connect: connector, RolePrefix: config.Web.RolePrefix, SendsEmail: config.Web.SendsEmail, StoreOrigins: config.Web.StoreOrigins, ConsentOrigins: consentOrigins(config.Web.Platforms),
		Clock: config.Clock, Log: config.Log,
	})
	w.close, w.signIn = pages.Close, pages.SignIn
	registerReady(config.Registry, w.signIn.Ready)
	w.handler, err = w.guarded(pages, limits.Anonymous, config.SiteURL)
	return w, err
}

func consentOrigins(registry platforms.Registry) []string {
	var origins []string
	for _, platform := range registry {
		connector, ok := platform.(platforms.Connector)
		if !ok {
			continue
		}
		address, err := connector.ConsentURL(platforms.Consent{})
		if err != nil {
			continue // the platform has no app
		}
		if u, err := url.Parse(address); err == nil && !slices.Contains(origins, u.Scheme+"://"+u.Host) {
			origins = append(origins, u.Scheme+"://"+u.Host)
		}
	}
	slices.Sort(origins)
	return origins
}

// guarded adds sessions, the rate limit for requests without one, and protection from cross-origin forms.
func (w *web) guarded(pages *webpages.Site, guard *limits.AnonymousGuard, siteURL string) (http.Handler, error) {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(pages.SignIn.CrossOrigin))
	// A proxy may change the Host header.
	if err := crossOrigin.AddTrustedOrigin(siteURL); err != nil {
		return nil, fmt.Errorf("siteURL %s: %w", siteURL, err)
	}
	own := crossOrigin.Handler(pages)
	clean := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		// http.ServeMux would redirect these.
		if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
			rest.WriteNotFound(out, r)
			return
		}
		own.ServeHTTP(out, r)
	})
	counted := w.sessions.Handler(guard.Handler(limits.SurfacePages, clean, pages.TooMany))
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		pages.Guard(out.Header())
		counted.ServeHTTP(out, r)
	}), nil
}

func (w *web) signedIn(r *http.Request) bool {
	if w == nil {
		return false
	}
	_, ok := w.sessions.Read(r)
	return ok
}

func (w *web) site() http.Handler {
	if w == nil {
		return nil
	}
	return w.handler
}

// run maintains the session keys, the provider's state and the agents' grants until ctx is done.
func (w *web) run(ctx context.Context) {
	if w == nil {
		return
	}
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { w.signIn.Watch(ctx, w.clock.After) })
	background.Go(func() { w.agents.run(ctx) })
	w.sessions.Run(ctx)
}
