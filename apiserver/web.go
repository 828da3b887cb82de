// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/apiserver/web/session"
	"github.com/herald-social/herald/apiserver/web/signin"
)

// WebConfig is what the web application is made of, beside what the REST API is.
type WebConfig struct {
	// Namespace is that of this installation, and SignInSecret the Secret there that the
	// replicas share.
	Namespace    string
	SignInSecret string
	// OIDC lets people in; without it they sign in by a one-time link.
	OIDC *signin.OIDC
	// LinkCommand makes a one-time link when an administrator runs it.
	LinkCommand string
}

// web is the web application.
type web struct {
	sessions *session.Manager
	access   *access.Checker
	handler  http.Handler
}

// newWeb returns the web application; nil if it is not wanted.
func newWeb(config *Config, teams *kube.Teams) (*web, error) {
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
	served := func() []*v1alpha1.Team {
		var mine []*v1alpha1.Team
		for _, team := range teams.List() {
			if config.Namespaces.Include(team.Spec.Namespace) {
				mine = append(mine, team)
			}
		}
		return mine
	}
	w := &web{
		access: access.New(reviews, served, config.Clock),
		sessions: session.NewManager(session.Options{
			Secrets: secrets, Namespace: config.Web.Namespace, Name: config.Web.SignInSecret,
			Secure: strings.HasPrefix(config.SiteURL, "https://"), Clock: config.Clock, Log: config.Log,
		}),
	}
	mux := http.NewServeMux()
	handlers := signin.New(signin.Options{
		Sessions: w.sessions, Page: plainPage, SiteURL: config.SiteURL, OIDC: config.Web.OIDC, LinkCommand: config.Web.LinkCommand,
		Clock: config.Clock, Log: config.Log,
	})
	handlers.Mount(mux)
	mux.HandleFunc("/", rest.WriteNotFound)
	w.handler, err = w.guarded(mux, handlers.CrossOrigin, config.SiteURL)
	return w, err
}

// guarded puts before the pages what stands before all of them: no other site sends a form
// here, and each request has its session.
func (w *web) guarded(pages http.Handler, refuse http.HandlerFunc, siteURL string) (http.Handler, error) {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(refuse)
	// A proxy may change the host that requests are for.
	if err := crossOrigin.AddTrustedOrigin(siteURL); err != nil {
		return nil, fmt.Errorf("siteURL %s: %w", siteURL, err)
	}
	guarded := crossOrigin.Handler(w.sessions.Handler(pages))
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		// http.ServeMux would redirect these.
		if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
			rest.WriteNotFound(out, r)
			return
		}
		out.Header().Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		guarded.ServeHTTP(out, r)
	}), nil
}

// site is the handler of the pages; nil if there are none.
func (w *web) site() http.Handler {
	if w == nil {
		return nil
	}
	return w.handler
}

// run keeps sessions until ctx ends.
func (w *web) run(ctx context.Context) {
	if w != nil {
		w.sessions.Run(ctx)
	}
}

// plainPage is a page without a layout.
func plainPage(title string, body ...g.Node) g.Node {
	return html.Doctype(html.HTML(
		html.Lang("en"),
		html.Head(
			html.Meta(html.Charset("utf-8")),
			html.Meta(html.Name("viewport"), html.Content("width=device-width, initial-scale=1")),
			html.TitleEl(g.Text(title+" · Herald")),
		),
		html.Body(html.Main(body...)),
	))
}
