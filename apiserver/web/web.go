// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web is the web application: what people do in a browser. It renders pages on the server, and everything that they do goes
// through package bridge, as in the REST API. Package session tells who a person is. Kubernetes' own RBAC in a team's namespace says
// what the person may see and do there.
package web

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bodylimit"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/httpcode"
	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/person"
	"github.com/herald-social/herald/apiserver/ratelimit"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/web/session"
	"github.com/herald-social/herald/apiserver/web/signin"
	"github.com/herald-social/herald/platforms"
)

// Access tells what a person may do in the namespaces of teams.
type Access interface {
	// May asks about a resource of Herald, such as "posts", and a verb of Kubernetes, such as "create".
	May(ctx context.Context, who person.Person, namespace, verb, resource string, name ...string) (bool, error)
	// Teams are those whose posts a person may list, by name.
	Teams(ctx context.Context, who person.Person) ([]*v1alpha1.Team, error)
}

// Config is what a Site needs. Every field is required unless it says otherwise.
type Config struct {
	Service  *bridge.Service
	Sessions *session.Manager
	Access   Access
	// SignIn are the options of the pages to sign in and out, without their layout.
	SignIn signin.Options
	// Connect leads people through the consent of the platforms.
	Connect *connect.Service
	// RolePrefix begins the names of the roles that Herald is installed with for people: RolePrefix-viewer, -editor and -admin.
	RolePrefix string
	// Agents lets agents act for teams; nil if this installation serves none.
	Agents *oauth.Server
	// PostReader returns what reads the names of posts on a platform; nil if nothing does. It may be nil itself.
	PostReader func(v1alpha1.Platform) platforms.PostParser
	// Teams counts what is asked for in the name of each team, and what each person asks for; nil counts nothing.
	Teams *ratelimit.Limiter
	// Bodies has room for forms; nil has room for all.
	Bodies *bodylimit.Limiter
	// StoreOrigins are where browsers upload files to, separated by spaces; empty without a store.
	StoreOrigins string
	// ConsentOrigins are the origins of the pages where people let Herald into their accounts. Simulated platforms have no HTTPS and
	// serve the pictures of accounts from there.
	ConsentOrigins []string
	Clock          clock.Clock
	Log            *slog.Logger
}

// Site serves the pages.
type Site struct {
	Config

	// SignIn are the pages to sign in and out.
	SignIn *signin.Handlers

	assets  assets
	mux     *http.ServeMux
	policy  string
	streams streams
	// checks bounds how often one person asks what a post will look like.
	checks *ratelimit.Limiter
	// closing is closed when this process stops: pages that follow a post connect anew, to another replica.
	closing chan struct{}
}

// New returns a Site.
func New(config Config) *Site {
	s := &Site{
		Config: config, assets: newAssets(), mux: http.NewServeMux(), checks: ratelimit.New(checksPerMinute, config.Clock), closing: make(chan struct{}),
	}
	s.policy = policyOf(config.StoreOrigins, config.ConsentOrigins)
	s.routes()
	return s
}

// policyOf is the Content-Security-Policy of all pages. Pictures of accounts come from the platforms; files go to the store and
// come from it, and what was just chosen is shown from the browser's memory.
func policyOf(store string, consent []string) string {
	if store != "" {
		store = " " + store
	}
	others := strings.Join(append([]string{""}, consent...), " ")
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data: https:" + store + others + "; media-src blob:" + store +
		"; connect-src 'self'" + store + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// Guard sets the headers that keep other sites away from a page, and the page out of caches. It must run before any handler answers.
func (s *Site) Guard(head http.Header) {
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Security-Policy", s.policy)
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=()")
	head.Set("X-Frame-Options", "DENY")
	if strings.HasPrefix(s.Config.SignIn.SiteURL, "https://") {
		head.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// Close ends the connections over which pages follow posts. It is called once.
func (s *Site) Close() { close(s.closing) }

// ServeHTTP serves a page. http.CrossOriginProtection, which refuses what other sites send, and the sessions come before it.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := s.mux.Handler(r)
	if pattern == "" {
		s.absent(w, r)
		return
	}
	request.From(r.Context()).Operation = "web " + pattern
	if request.AcceptsGzip(r) {
		w = packing{w}
	}
	s.mux.ServeHTTP(w, r)
}

// write writes a page. Another site that sends a request with a person's cookie gets no page and cannot see its length
// (SameSite, Cross-Origin-Opener-Policy), so the length of a compressed page tells it nothing.
func (s *Site) write(w http.ResponseWriter, status int, page g.Node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = send(w, status, page) // the reader may have gone
}

// toSignIn leads to the sign-in page, which leads back.
func (s *Site) toSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("HX-Request") != "" {
		// The answer replaces a preview. A redirect would lose the text that the person is writing.
		s.write(w, http.StatusOK, notice(caution, h.P(g.Text("You are signed out. What you wrote is still here. "), h.A(h.Href("/signin"), h.Target("_blank"), g.Text("Open another tab to sign in")),
			g.Text(", then go on."))))
		return
	}
	if r.Header.Get("Accept") == "text/event-stream" {
		w.WriteHeader(http.StatusNoContent) // the end of an EventSource, which can show no page
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.page(w, http.StatusUnauthorized, "You are signed out", paragraph("Nothing was done. Open another tab and sign in there, then send this page again."),
			link("/signin", "Sign in", "primary"))
		return
	}
	http.Redirect(w, r, "/signin?return_to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}

// failure shows an error.
func (s *Site) failure(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	var (
		known  *bridge.Error
		denied *errForbidden
	)
	title, status := "Something went wrong", http.StatusInternalServerError
	var message string
	switch {
	case errors.As(err, &denied):
		title, status, message = "You may not do that", http.StatusForbidden, denied.message
	case errors.As(err, &known):
		title, status, message = titleOfError(known), httpcode.Of(known.Code), sentence(known.Message)
	case errors.Is(err, bridge.ErrUncertain):
		request.From(r.Context()).Err = err
		message = "It is not known whether the post was created. Look for it in the list of posts before you send it again."
	case errors.Is(err, bridge.ErrMaybeChanged):
		request.From(r.Context()).Err = err
		message = "It is not known whether the change was stored. Look at the post as it is now before you try again."
	default:
		info := request.From(r.Context())
		info.Err = err
		message = "It is our fault, not yours. Try again; if it stays, tell the people who run Herald this request id: " + info.ID
	}
	if r.Header.Get("Accept") == "application/json" {
		answerError(w, status, message)
		return
	}
	if v == nil || v.team == nil {
		s.page(w, status, title, paragraph(message), link("/", "To the start", "primary"))
		return
	}
	s.render(w, v, status, view{title: title, place: placeNone, content: []g.Node{notice(bad, paragraph(message)), backLink(r)}})
}

// TooMany answers a stranger from whose address too much was asked.
func (s *Site) TooMany(w http.ResponseWriter, _ *http.Request, wait time.Duration) {
	s.page(w, http.StatusTooManyRequests, "Too many requests",
		paragraph("Visitors who are not signed in have sent too many requests from your address. Try again in "+plural(int(math.Ceil(wait.Seconds())), "second")+"."))
}

// absent is the answer for an address without a page.
func (s *Site) absent(w http.ResponseWriter, _ *http.Request) {
	s.page(w, http.StatusNotFound, "There is nothing here",
		paragraph("The address is wrong, what it named is gone, or you may not see it."), link("/", "To the start", "primary"))
}
