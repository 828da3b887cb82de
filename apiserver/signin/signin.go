// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signin signs users in: with OpenID Connect if a provider is configured, and otherwise with a one-time link.
// It does not decide their permissions.
package signin

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"

	"k8s.io/utils/clock"
	g "maragu.dev/gomponents"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/session"
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
	// linkTries limits the requests per minute for unknown links from one address. A token cannot be guessed; the limit
	// protects the Kubernetes API, since each request reads from it.
	linkTries = 30
	// maxForm is the maximum size of a form, in bytes.
	maxForm = 4 << 10
)

// Page adds the site's layout to a page.
type Page func(title string, body ...g.Node) g.Node

// Options configures Handlers. All fields are required unless they are documented as optional.
type Options struct {
	// Sessions issues and reads sessions.
	Sessions *session.Manager
	// Page is the layout.
	Page Page
	// SiteURL is the site's URL, without a trailing slash.
	SiteURL string
	// OIDC is the provider; nil selects one-time links.
	OIDC *OIDC
	// LinkCommand is the command that an administrator uses to create a one-time link. It names files and namespaces,
	// so pages show it only if SiteURL is on the visitor's own machine.
	LinkCommand string
	// OnOutcome is called when a sign-in ends; may be nil.
	OnOutcome func(Method, Outcome)
	Clock     clock.PassiveClock
	Log       *slog.Logger
}

// Method is a way to sign in.
type Method string

// The ways to sign in.
const (
	ByLink Method = "link"
	ByOIDC Method = "oidc"
)

// Outcome is how a sign-in ended.
type Outcome string

// The outcomes. A refused sign-in requires action by the user: the link was used, or the provider rejects the user. A
// failed one requires an administrator.
const (
	Succeeded Outcome = "succeeded"
	Refused   Outcome = "refused"
	Failed    Outcome = "failed"
)

// Handlers serves the pages for signing in and out. Every page that changes something is a POST;
// http.CrossOriginProtection must wrap all of them.
type Handlers struct {
	Options

	limit    *limits.RateLimiter
	refusals *limits.LogLimiter
	provider *provider
}

// New returns the handlers. It does not contact the provider.
func New(o Options) *Handlers {
	if !local(o.SiteURL) {
		o.LinkCommand = ""
	}
	h := &Handlers{Options: o, limit: limits.NewRateLimiter(linkTries, o.Clock), refusals: limits.NewLogLimiter(o.Clock)}
	if o.OIDC != nil {
		h.provider = newProvider(o.OIDC, o.SiteURL+callbackPath, o.Clock)
	}
	return h
}

// local reports whether a site is on a loopback address.
func local(site string) bool {
	u, err := url.Parse(site)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}

// Mount registers each handler for its path and all methods, so that an unsupported method also gets an error page.
func (h *Handlers) Mount(mux *http.ServeMux) {
	mux.HandleFunc(Path, h.only("signInPage", h.choose, http.MethodGet))
	mux.HandleFunc(LinkPath+"{token}", h.only("signInByLink", h.link, http.MethodGet, http.MethodPost))
	mux.HandleFunc(SignOutPath, h.only("signOut", h.signOut, http.MethodPost))
	if h.provider != nil {
		mux.HandleFunc(startPath, h.only("signInByProvider", h.start, http.MethodGet))
		mux.HandleFunc(callbackPath, h.only("signInCallback", h.callback, http.MethodGet))
	}
}

func (h *Handlers) choose(w http.ResponseWriter, r *http.Request) {
	back := localPath(r.URL.Query().Get("return_to"))
	if _, ok := h.Sessions.Read(r); ok {
		http.Redirect(w, r, back, http.StatusSeeOther) //nolint:gosec // G710: localPath has validated it
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

func (h *Handlers) signedIn(w http.ResponseWriter, r *http.Request, p access.Person, by Method, back string) {
	issued, err := h.Sessions.Issue(w, p)
	if err != nil {
		h.reportOutcome(by, Failed)
		h.refuse(w, r, issueRefusal(err))
		return
	}
	h.reportOutcome(by, Succeeded)
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "Signed in",
		audit(r, slog.String("person", p.Name), slog.String("by", string(by)), slog.String("session", issued.ID[:8]))...)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

func (h *Handlers) fail(w http.ResponseWriter, r *http.Request, by Method, no refusal) {
	outcome := Refused
	if no.status >= http.StatusInternalServerError {
		outcome = Failed
	}
	h.reportOutcome(by, outcome)
	h.refuse(w, r, no)
}

func (h *Handlers) reportOutcome(by Method, outcome Outcome) {
	if h.OnOutcome != nil {
		h.OnOutcome(by, outcome)
	}
}

// signOut signs out of this browser, or everywhere if the form requests it.
func (h *Handlers) signOut(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	everywhere := r.FormValue("everywhere") != ""
	current, ok := h.Sessions.Read(r)
	if ok && everywhere {
		if err := h.Sessions.SignOutEverywhere(r.Context(), current.Person.Name); err != nil {
			h.refuse(w, r, refusal{
				http.StatusServiceUnavailable, "Not signed out",
				"Nothing has changed: Herald cannot sign you out everywhere now. Go back and try again, or sign out only on this device.", err,
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

// Ready returns nil if session keys are loaded and the last fetch from the provider succeeded.
func (h *Handlers) Ready() error {
	if err := h.Sessions.Ready(); err != nil {
		return err
	}
	if h.provider != nil {
		return h.provider.answers()
	}
	return nil
}

// audit adds the attributes common to all log lines about a user's actions.
func audit(r *http.Request, more ...slog.Attr) []slog.Attr {
	return append(more, slog.String("requestId", request.From(r.Context()).ID), slog.String("remote", request.Remote(r)))
}
