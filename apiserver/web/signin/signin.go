// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signin lets people in: by OpenID Connect where a provider is configured, and by a
// one-time link otherwise. What they may do is not decided here.
package signin

import (
	"log/slog"
	"net/http"

	"k8s.io/utils/clock"
	g "maragu.dev/gomponents"

	"github.com/herald-social/herald/apiserver/anonymous"
	"github.com/herald-social/herald/apiserver/person"
	"github.com/herald-social/herald/apiserver/ratelimit"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/web/session"
)

// Paths of the pages.
const (
	Path         = "/signin"
	LinkPath     = "/signin/link/"
	startPath    = "/signin/oidc"
	callbackPath = "/signin/oidc/callback"
	SignOutPath  = "/signout"
)

const (
	// linkTries is how many requests for unknown links one address may make in a minute. A token
	// is not guessed; this protects the Kubernetes API, which is asked about each.
	linkTries = 30
	// maxForm is how large a form may be.
	maxForm = 4 << 10
)

// Page puts the layout of the site around a page.
type Page func(title string, body ...g.Node) g.Node

// Options is what Handlers are made of. All fields are required but where it
// says otherwise.
type Options struct {
	// Sessions issues and reads sessions.
	Sessions *session.Manager
	// Page is the layout.
	Page Page
	// SiteURL is the site's address, without a slash at its end.
	SiteURL string
	// OIDC is the provider; nil lets people sign in by a one-time link.
	OIDC *OIDC
	// LinkCommand is what an administrator runs for a one-time link; it is shown to those who
	// have none.
	LinkCommand string
	// OnOutcome is told of each sign-in that ended; it may be nil.
	OnOutcome func(Method, Outcome)
	Clock     clock.PassiveClock
	Log       *slog.Logger
}

// Method is a way to sign in.
type Method string

// The methods.
const (
	ByLink Method = "link"
	ByOIDC Method = "oidc"
)

// Outcome is how a sign-in ended.
type Outcome string

// The outcomes. What is refused, a person has to do otherwise: the link was used, or the
// provider does not let them in. What failed, an administrator has to mend.
const (
	Succeeded Outcome = "succeeded"
	Refused   Outcome = "refused"
	Failed    Outcome = "failed"
)

// Handlers serve the pages by which people sign in and out. Every page that changes something
// is a POST; http.CrossOriginProtection must stand before all of them.
type Handlers struct {
	Options

	limit    *ratelimit.Limiter
	refusals *anonymous.LogLimiter
	provider *provider
}

// New returns the handlers. It asks no provider yet.
func New(o Options) *Handlers {
	h := &Handlers{Options: o, limit: ratelimit.New(linkTries, o.Clock), refusals: anonymous.NewLogLimiter(o.Clock)}
	if o.OIDC != nil {
		h.provider = newProvider(o.OIDC, o.SiteURL+callbackPath, o.Clock)
	}
	return h
}

// Mount adds the handlers to a mux, each for its path and all methods: a method that a page
// does not take is answered by a page as well.
func (h *Handlers) Mount(mux *http.ServeMux) {
	mux.HandleFunc(Path, h.only("signInPage", h.choose, http.MethodGet))
	mux.HandleFunc(LinkPath+"{token}", h.only("signInByLink", h.link, http.MethodGet, http.MethodPost))
	mux.HandleFunc(SignOutPath, h.only("signOut", h.signOut, http.MethodPost))
	if h.provider != nil {
		mux.HandleFunc(startPath, h.only("signInByProvider", h.start, http.MethodGet))
		mux.HandleFunc(callbackPath, h.only("signInCallback", h.callback, http.MethodGet))
	}
}

// choose is the page from which people sign in.
func (h *Handlers) choose(w http.ResponseWriter, r *http.Request) {
	back := localPath(r.URL.Query().Get("return_to"))
	if _, ok := h.Sessions.Read(r); ok {
		http.Redirect(w, r, back, http.StatusSeeOther) //nolint:gosec // G710: localPath has judged it
		return
	}
	if err := h.Sessions.Ready(); err != nil {
		h.refuse(w, r, notReady(err))
		return
	}
	if h.provider == nil && back != "/" {
		h.remember(w, back)
	}
	h.write(w, http.StatusOK, "Sign in", h.choices(back)...)
}

// signedIn begins the session of a person and goes on to a page of the site.
func (h *Handlers) signedIn(w http.ResponseWriter, r *http.Request, p person.Person, by Method, back string) {
	issued, err := h.Sessions.Issue(w, p)
	if err != nil {
		h.count(by, Failed)
		h.refuse(w, r, issueRefusal(err))
		return
	}
	h.count(by, Succeeded)
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "Signed in",
		audit(r, slog.String("person", p.Name), slog.String("by", string(by)), slog.String("session", issued.ID[:8]))...)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// fail ends a sign-in with a page that says what is wrong.
func (h *Handlers) fail(w http.ResponseWriter, r *http.Request, by Method, no refusal) {
	outcome := Refused
	if no.status >= http.StatusInternalServerError {
		outcome = Failed
	}
	h.count(by, outcome)
	h.refuse(w, r, no)
}

func (h *Handlers) count(by Method, outcome Outcome) {
	if h.OnOutcome != nil {
		h.OnOutcome(by, outcome)
	}
}

// signOut signs out here, or everywhere if the form says so.
func (h *Handlers) signOut(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	everywhere := r.FormValue("everywhere") != ""
	current, ok := h.Sessions.Read(r)
	if ok && everywhere {
		if err := h.Sessions.SignOutEverywhere(r.Context(), current.Person.Name); err != nil {
			h.refuse(w, r, refusal{
				http.StatusServiceUnavailable, "Not signed out",
				"Nothing has changed: Herald cannot store now that you sign out everywhere. Go back and try again, or sign out on this device alone.", err,
			})
			return
		}
	}
	if ok {
		h.Log.LogAttrs(r.Context(), slog.LevelInfo, "Signed out",
			audit(r, slog.String("person", current.Person.Name), slog.Bool("everywhere", everywhere))...)
	}
	h.Sessions.Clear(w)
	http.Redirect(w, r, Path, http.StatusSeeOther)
}

// Ready returns nil if people can sign in, as far as is known without one who does: there
// are keys for sessions, and the provider answered when it was asked last.
func (h *Handlers) Ready() error {
	if err := h.Sessions.Ready(); err != nil {
		return err
	}
	if h.provider != nil {
		return h.provider.answers()
	}
	return nil
}

// audit is what a line about something that a person did tells, beside the rest.
func audit(r *http.Request, more ...slog.Attr) []slog.Attr {
	return append(more, slog.String("requestId", request.From(r.Context()).ID), slog.String("remote", request.Remote(r)))
}
