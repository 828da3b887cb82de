// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web is the web application: what people do in a browser. Pages are rendered here, on the server; everything that they
// do goes through package bridge, as the REST API does. Who a person is, package session tells, and what a person may see and do
// in a team is Kubernetes' own RBAC in the team's namespace.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	_ "time/tzdata" // images from scratch have no zones

	"k8s.io/utils/clock"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/person"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/web/session"
	"github.com/herald-social/herald/apiserver/web/signin"
)

// Access tells what a person may do in the namespaces of teams.
type Access interface {
	// May asks about a resource of Herald, such as "posts", and a verb of Kubernetes, such as "create".
	May(ctx context.Context, who person.Person, namespace, verb, resource string, name ...string) (bool, error)
	// Teams are those whose posts a person may list, by name.
	Teams(ctx context.Context, who person.Person) ([]*v1alpha1.Team, error)
}

// Config is what a Site is made of. Every field is required but where it says otherwise.
type Config struct {
	Service  *bridge.Service
	Sessions *session.Manager
	Access   Access
	// SignIn are the options of the pages to sign in and out, without their layout.
	SignIn signin.Options
	// Connect leads people through the consent of the platforms.
	Connect *connect.Service
	// Agents lets agents act for teams; nil if this installation serves none.
	Agents *oauth.Server
	// StoreOrigins are where browsers upload files to, separated by spaces; empty without a store.
	StoreOrigins string
	// ConsentOrigins are those of the pages on which people let Herald into their accounts. Simulated platforms, which have no HTTPS,
	// show the pictures of accounts from there.
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
	streams chan struct{}
	// closing is closed when this process stops: pages that follow a post connect anew, to another replica.
	closing chan struct{}
}

// New returns a Site.
func New(config Config) *Site {
	s := &Site{Config: config, assets: newAssets(), mux: http.NewServeMux(), streams: make(chan struct{}, maxStreams), closing: make(chan struct{})}
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

// Guard sets what tells browsers to let no other site near a page, and to keep none. It comes before everything that may answer.
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

// ServeHTTP serves a page. Before it stand http.CrossOriginProtection, which refuses what other sites send, and the sessions.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := s.mux.Handler(r)
	if pattern == "" {
		s.absent(w, r)
		return
	}
	request.From(r.Context()).Operation = "web " + pattern
	if request.TakesGzip(r) {
		w = packing{w}
	}
	s.mux.ServeHTTP(w, r)
}

// write writes a page. Who sends a request with a person's cookie from another site gets no page and cannot see how long one is
// (SameSite, Cross-Origin-Opener-Policy), so that the length of what is compressed tells nothing.
func (s *Site) write(w http.ResponseWriter, status int, page g.Node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = send(w, status, page) // the reader may have gone
}

// visit is one request of a person who is signed in, for a team.
type visit struct {
	*http.Request

	session   session.Session
	person    person.Person
	namespace string
	team      *v1alpha1.Team
	teams     []*v1alpha1.Team
	caller    bridge.Caller
	may       rights
	zone      *time.Location
	now       time.Time
}

// rights are what pages offer only to those who may use it.
type rights struct {
	create, update, connect, disconnect, listKeys, makeKeys bool
}

func (v *visit) teamName() string { return nameOf(v.team) }

// path is that of a page of the team.
func (v *visit) path(page string) string { return "/teams/" + v.namespace + "/" + page }

// handler answers a visit. An error of package bridge is shown as it is; any other goes to the log.
type handler func(w http.ResponseWriter, v *visit) error

// right is what a person must be allowed to do to get a page: a verb and a resource of Herald.
type right struct{ verb, resource string }

// The rights that pages ask for.
var (
	seePosts         = right{"list", "posts"}
	createPosts      = right{"create", "posts"}
	updatePosts      = right{"update", "posts"}
	seeConnections   = right{"list", "connections"}
	createConnection = right{"create", "connections"}
	deleteConnection = right{"delete", "connections"}
	seeKeys          = right{"list", "apikeys"}
	createKeys       = right{"create", "apikeys"}
	updateKeys       = right{"update", "apikeys"}
)

// team makes an http.Handler of a handler for the pages of a team. A person who may see nothing of a team learns no more than
// that there is nothing.
func (s *Site) team(need right, handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := session.From(r.Context())
		if !ok {
			s.toSignIn(w, r)
			return
		}
		v, err := s.visit(r, who)
		if err == nil && v.team != nil {
			var allowed bool
			if allowed, err = s.allowed(r.Context(), v, need); err == nil && !allowed {
				err = forbidden(need, v)
			}
		}
		switch {
		case err != nil:
		case v.team == nil:
			s.absent(w, r)
			return
		default:
			err = handle(w, v)
		}
		if err != nil {
			s.failure(w, r, v, err)
		}
	}
}

// visit finds out what there is to know of a request. The team is nil if the person may see none of that namespace.
func (s *Site) visit(r *http.Request, of session.Session) (*visit, error) {
	ctx, who := r.Context(), of.Person
	v := &visit{Request: r, session: of, person: who, namespace: r.PathValue("namespace"), now: s.Clock.Now(), zone: zoneOf(r)}
	v.caller = bridge.Caller{Namespace: v.namespace, Author: who.Name}
	request.From(ctx).Namespace, request.From(ctx).Key = v.namespace, who.Name
	var err error
	if v.teams, err = s.Access.Teams(ctx, who); err != nil {
		return v, err
	}
	for _, team := range v.teams {
		if team.Spec.Namespace == v.namespace {
			v.team = team
		}
	}
	if v.team == nil {
		return v, nil
	}
	for need, has := range map[right]*bool{
		createPosts: &v.may.create, updatePosts: &v.may.update, createConnection: &v.may.connect, deleteConnection: &v.may.disconnect,
		seeKeys: &v.may.listKeys, createKeys: &v.may.makeKeys,
	} {
		if *has, err = s.allowed(ctx, v, need); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (s *Site) allowed(ctx context.Context, v *visit, need right) (bool, error) {
	return s.Access.May(ctx, v.person, v.namespace, need.verb, need.resource)
}

// errForbidden is that a person may not do something.
type errForbidden struct{ message string }

func (e *errForbidden) Error() string { return e.message }

func forbidden(need right, v *visit) error {
	return &errForbidden{"You may not " + need.verb + " " + need.resource + " of the team " + v.teamName() +
		". Ask the people who run Herald for a role in the namespace " + v.namespace + "."}
}

// zoneCookie names the cookie with the viewer's time zone, which the page's script sets.
const zoneCookie = "zone"

// zoneOf is the viewer's time zone; UTC while it is not known.
func zoneOf(r *http.Request) *time.Location {
	cookie, err := r.Cookie(zoneCookie)
	if err != nil || len(cookie.Value) > 64 {
		return time.UTC
	}
	name, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		return time.UTC
	}
	return zoneNamed(name)
}

// zoneNamed finds a zone of the IANA's database; UTC if there is none of that name.
func zoneNamed(name string) *time.Location {
	if name == "" || name == "Local" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// toSignIn leads to the page to sign in, and from there back.
func (s *Site) toSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("HX-Request") != "" {
		// It takes the place of a preview. To lead away would lose what is being written.
		s.write(w, http.StatusOK, note(caution, h.P(g.Text("You are signed out. What you wrote is still here. "), h.A(h.Href("/signin"), h.Target("_blank"), g.Text("Open another tab to sign in")),
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
		title, status, message = titleOfError(known), statusOf(known), sentence(known.Message)
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
	s.render(w, v, status, view{title: title, content: []g.Node{note(bad, paragraph(message)), backLink(r)}})
}

// absent answers where there is no page.
func (s *Site) absent(w http.ResponseWriter, _ *http.Request) {
	s.page(w, http.StatusNotFound, "There is nothing here",
		paragraph("The address is wrong, what it named is gone, or you may not see it."), link("/", "To the start", "primary"))
}
