// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web is the web application. It renders pages on the server, and performs all actions through package bridge,
// as the REST API does. Package session authenticates users. Kubernetes RBAC in a team's namespace controls access to
// its pages and actions.
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
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/platforms"
)

// Access checks users' permissions in team namespaces.
type Access interface {
	// May reports whether a user may use a Kubernetes verb, such as "create", on one of Herald's resources, such as
	// "posts", or on another API's, such as "rolebindings.rbac.authorization.k8s.io".
	May(ctx context.Context, who access.Person, namespace, verb, resource string, name ...string) (bool, error)
	// Teams returns the teams whose posts a user may list, sorted by name.
	Teams(ctx context.Context, who access.Person) ([]*v1alpha1.Team, error)
}

// Config configures a Site. Every field is required unless it is documented as optional.
type Config struct {
	Service  *bridge.Service
	Sessions *session.Manager
	Access   Access
	// Members lists the role bindings in the teams' namespaces.
	Members Bindings
	// SignIn are the options for the sign-in and sign-out pages, without Page.
	SignIn signin.Options
	// Connect connects accounts on the platforms.
	Connect *connect.Service
	// RolePrefix is the prefix of the roles that Herald installs for users: RolePrefix-viewer, -editor and -admin.
	RolePrefix string
	// Agents authorizes agents; nil if this installation serves none.
	Agents *oauth.Server
	// PostReader returns the parser for the addresses and ids of a platform's posts, or nil if there is none. The
	// function itself may be nil.
	PostReader func(v1alpha1.Platform) platforms.PostParser
	// Teams limits each team's and each user's requests; nil disables the limits.
	Teams *limits.RateLimiter
	// Bodies limits the memory used for forms; nil disables the limit.
	Bodies *limits.BodyLimiter
	// SendsEmail is true if the installation has a mail server for notifications.
	SendsEmail bool
	// StoreOrigins are the store's origins, to which browsers upload files, separated by spaces; empty if there is no
	// store.
	StoreOrigins string
	// ConsentOrigins are the origins of the platforms' consent pages. Simulated platforms use plain HTTP and serve the
	// accounts' pictures from there.
	ConsentOrigins []string
	Clock          clock.Clock
	Log            *slog.Logger
}

// Site serves the pages.
type Site struct {
	Config

	// SignIn serves the sign-in and sign-out pages.
	SignIn *signin.Handlers

	assets  assets
	mux     *http.ServeMux
	policy  string
	streams streams
	// checks limits each user's previews, and saves their autosaves.
	checks, saves *limits.RateLimiter
	// closing is closed on shutdown, so that pages that follow a post reconnect to another replica.
	closing chan struct{}
}

// New returns a Site.
func New(config Config) *Site {
	s := &Site{
		Config: config, assets: sharedAssets(), mux: http.NewServeMux(), checks: limits.NewRateLimiter(checksPerMinute, config.Clock),
		saves: limits.NewRateLimiter(savesPerMinute, config.Clock), closing: make(chan struct{}),
	}
	s.policy = policyOf(config.StoreOrigins, config.ConsentOrigins)
	s.routes()
	return s
}

// policyOf returns the Content-Security-Policy of all pages. Account pictures come from the platforms, files from the
// store, and previews of newly chosen files from the browser's memory.
func policyOf(store string, consent []string) string {
	if store != "" {
		store = " " + store
	}
	others := strings.Join(append([]string{""}, consent...), " ")
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data: https:" + store + others + "; media-src blob:" + store +
		"; connect-src 'self'" + store + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// Guard sets the headers that isolate a page from other sites and disable caching. Call it before any handler.
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

// Close ends the streams of pages that follow posts. Call it only once.
func (s *Site) Close() { close(s.closing) }

// ServeHTTP serves a page. It must run behind http.CrossOriginProtection, which rejects requests from other sites, and
// behind the session handler.
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

// write writes a page. Another site that sends a request with a user's cookie neither receives the page nor can
// observe its length (SameSite, Cross-Origin-Opener-Policy), so the length of a compressed page reveals nothing to it.
func (s *Site) write(w http.ResponseWriter, status int, page g.Node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = send(w, status, page) // the client may have disconnected
}

// toSignIn redirects to the sign-in page, which redirects back.
func (s *Site) toSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("HX-Request") != "" {
		// The response replaces a preview. A redirect would lose the text that the user is writing.
		s.write(w, http.StatusOK, notice(caution, h.P(g.Text("You are signed out. Your text is still here. "), h.A(h.Href("/signin"), h.Target("_blank"), g.Text("Open another tab to sign in")),
			g.Text(", then go on."))))
		return
	}
	if r.Header.Get("Accept") == "application/json" {
		answerError(w, http.StatusUnauthorized, "sign in again")
		return
	}
	if r.Header.Get("Accept") == "text/event-stream" {
		w.WriteHeader(http.StatusNoContent) // ends an EventSource, which cannot show a page
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if path := r.URL.Path; strings.HasSuffix(path, "/posts/new") || strings.HasSuffix(path, "/edit") {
			s.page(w, http.StatusUnauthorized, "You are signed out", paragraph("Nothing was done. Sign in, and this browser shows what you wrote again. "+
				"Without JavaScript, open another tab and sign in there, then send this page again."),
				link("/signin?return_to="+url.QueryEscape(path), "Sign in", "primary"))
			return
		}
		s.page(w, http.StatusUnauthorized, "You are signed out", paragraph("Nothing was done. Open another tab and sign in there, then send this page again."),
			link("/signin", "Sign in", "primary"))
		return
	}
	http.Redirect(w, r, "/signin?return_to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}

func (s *Site) failure(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	var (
		known  *bridge.Error
		denied *errForbidden
	)
	title, status := "Something went wrong", http.StatusInternalServerError
	var message string
	switch {
	case errors.As(err, &denied):
		title, status, message = "You are not allowed to do that", http.StatusForbidden, denied.message
	case errors.As(err, &known):
		title, status, message = titleOfError(known), rest.StatusOf(known.Code), sentence(withoutID(s.messageOf(v, known)))
	case errors.Is(err, bridge.ErrUncertain):
		request.From(r.Context()).Err = err
		message = "It is not known whether the post was created. Look for it in the list of posts before you send it again."
	case errors.Is(err, bridge.ErrMaybeChanged):
		request.From(r.Context()).Err = err
		message = "It is not known whether the change was stored. Check the post before you try again."
	default:
		info := request.From(r.Context())
		info.Err = err
		message = "This is an internal error. Try again; if the problem persists, give the administrators this request id: " + info.ID
	}
	if r.Header.Get("Accept") == "application/json" {
		answerError(w, status, message)
		return
	}
	if v == nil || v.team == nil {
		s.page(w, status, title, paragraph(message), link("/", "To the start page", "primary"))
		return
	}
	s.render(w, v, status, view{title: title, place: placeNone, content: []g.Node{notice(bad, paragraph(message)), backLink(r)}})
}

// TooMany shows that an anonymous visitor's address has exceeded its limit.
func (s *Site) TooMany(w http.ResponseWriter, _ *http.Request, wait time.Duration) {
	s.page(w, http.StatusTooManyRequests, "Too many requests",
		paragraph("Visitors who are not signed in have sent too many requests from your address. Try again in "+plural(int(math.Ceil(wait.Seconds())), "second")+"."))
}

func (s *Site) absent(w http.ResponseWriter, _ *http.Request) {
	s.page(w, http.StatusNotFound, "There is nothing here",
		paragraph("The address is wrong, the page no longer exists, or you are not allowed to see it."), link("/", "To the start page", "primary"))
}
