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
	"github.com/herald-social/herald/apiserver/anonymous"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/rest"
	webpages "github.com/herald-social/herald/apiserver/web"
	"github.com/herald-social/herald/apiserver/web/session"
	"github.com/herald-social/herald/apiserver/web/signin"
	"github.com/herald-social/herald/internal/appid"
	"github.com/herald-social/herald/platforms"
)

// WebConfig is what the web application is made of, beside what the REST API is.
type WebConfig struct {
	// Namespace is that of this installation, and SignInSecret the Secret there that the
	// replicas share.
	Namespace    string
	SignInSecret string
	// RolePrefix begins the names of the roles for people.
	RolePrefix string
	// OIDC lets people in; without it they sign in by a one-time link.
	OIDC *signin.OIDC
	// LinkCommand makes a one-time link when an administrator runs it.
	LinkCommand string
	// Platforms are those whose accounts people may connect, with the secrets of their apps.
	Platforms platforms.Registry
	// Apps are these apps, with which credentials are marked that they obtained.
	Apps appid.Apps
	// StoreOrigins are where browsers upload files to, separated by spaces; empty
	// without a store.
	StoreOrigins string
	// Agents lets people allow agents to act for teams; nil serves no OAuth.
	Agents *AgentsConfig
}

// AgentsConfig says which agents may ask.
type AgentsConfig struct {
	// LoopbackClients takes the metadata documents of agents from this machine too, for trials.
	LoopbackClients bool
	// Proxied says that this program reaches sites by a proxy alone.
	Proxied bool
}

// web is the web application.
type web struct {
	sessions *session.Manager
	signIn   *signin.Handlers
	clock    clock.Clock
	handler  http.Handler
	agents   *agents
	// close ends what would go on for minutes.
	close func()
}

// newWeb returns the web application; nil if it is not wanted.
func newWeb(config *Config, service *bridge.Service, teams *kube.Teams, connections *kube.Connections, limits rest.Limits) (*web, error) {
	if config.Web == nil {
		return nil, nil //nolint:nilnil // nil serves the REST API alone
	}
	secrets, err := kube.NewSecrets(config.Kubernetes, config.UserAgent, config.Web.Namespace)
	if err != nil {
		return nil, err
	}
	reviews, err := kube.NewReviews(config.Kubernetes, config.UserAgent)
	if err != nil {
		return nil, err
	}
	credentials, err := kube.NewCredentials(config.Kubernetes, config.UserAgent)
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
		Sealer: w.sessions, Clock: config.Clock, Log: config.Log,
	})
	signIns := newSignIns(config.Registry, config.Web.OIDC != nil)
	checker := access.New(reviews, served, config.Clock)
	if w.agents, err = newAgents(config, service, teams, w.sessions, checker, limits.Anonymous); err != nil {
		return nil, err
	}
	pages := webpages.New(webpages.Config{
		Service: service, Sessions: w.sessions, Access: checker, Agents: w.agents.server(), PostReader: config.Web.Platforms.PostParser, Teams: limits.Teams, Bodies: limits.Bodies,
		SignIn: signin.Options{
			Sessions: w.sessions, SiteURL: config.SiteURL, OIDC: config.Web.OIDC, LinkCommand: config.Web.LinkCommand,
			OnOutcome: func(by signin.Method, outcome signin.Outcome) {
				signIns.WithLabelValues(string(by), string(outcome)).Inc()
			},
			Clock: config.Clock, Log: config.Log,
		},
		Connect: connector, RolePrefix: config.Web.RolePrefix, StoreOrigins: config.Web.StoreOrigins, ConsentOrigins: consentOrigins(config.Web.Platforms),
		Clock: config.Clock, Log: config.Log,
	})
	w.close, w.signIn = pages.Close, pages.SignIn
	registerReady(config.Registry, w.signIn.Ready)
	w.handler, err = w.guarded(pages, limits.Anonymous, config.SiteURL)
	return w, err
}

// consentOrigins are those of the pages on which people let Herald into their accounts.
func consentOrigins(registry platforms.Registry) []string {
	var origins []string
	for _, platform := range registry {
		connector, ok := platform.(platforms.Connector)
		if !ok {
			continue
		}
		address, err := connector.ConsentURL(platforms.Consent{})
		if err != nil {
			continue // it has no app
		}
		if u, err := url.Parse(address); err == nil && !slices.Contains(origins, u.Scheme+"://"+u.Host) {
			origins = append(origins, u.Scheme+"://"+u.Host)
		}
	}
	slices.Sort(origins)
	return origins
}

// guarded puts before the pages what stands before all of them: each request has its session,
// those without one are counted by address, and no other site sends a form here.
func (w *web) guarded(pages *webpages.Site, guard *anonymous.Guard, siteURL string) (http.Handler, error) {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(pages.SignIn.CrossOrigin))
	// A proxy may change the host that requests are for.
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
	counted := w.sessions.Handler(guard.Handler(anonymous.Pages, clean, pages.TooMany))
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		pages.Guard(out.Header())
		counted.ServeHTTP(out, r)
	}), nil
}

// signedIn reports whether a request has a session.
func (w *web) signedIn(r *http.Request) bool {
	if w == nil {
		return false
	}
	_, ok := w.sessions.Read(r)
	return ok
}

// site is the handler of the pages; nil if there are none.
func (w *web) site() http.Handler {
	if w == nil {
		return nil
	}
	return w.handler
}

// run keeps sessions, an eye on the provider, and what agents were allowed, until ctx ends.
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
