// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/session"
)

// refusal is a page with an error and its remedy.
type refusal struct {
	status      int
	title, text string
	// cause is the error for the log; nil if the visitor caused it.
	cause error
}

// notSignedIn is the title of pages about a failed sign-in.
const notSignedIn = "Not signed in"

// only restricts a handler to the given methods. It disables caching, because pages show the user's name.
func (h *Handlers) only(operation string, serve http.HandlerFunc, methods ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request.From(r.Context()).Operation = operation
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		// A link's address is a secret that other sites must not receive. With no-referrer, browsers would send forms
		// without their origin.
		header.Set("Referrer-Policy", "same-origin")
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		if !slices.Contains(methods, method) {
			allowed := strings.Join(methods, ", ")
			header.Set("Allow", allowed)
			h.refuse(w, r, refusal{http.StatusMethodNotAllowed, "Method not allowed", "This page supports only " + allowed + ". Start at the sign-in page.", nil})
			return
		}
		serve(w, r)
	}
}

func (h *Handlers) write(w http.ResponseWriter, status int, title string, body ...g.Node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = h.Page(title, body...).Render(w) // the client may have disconnected
}

// refuse writes a refusal's page. It logs the cause, within a rate limit; failures of Herald and of the provider also
// appear in the request log.
func (h *Handlers) refuse(w http.ResponseWriter, r *http.Request, no refusal) {
	if no.cause != nil {
		if no.status >= http.StatusInternalServerError {
			request.From(r.Context()).Err = no.cause
		}
		if write, leftOut := h.refusals.Allow([2]string{no.title, request.Address(r)}); write {
			h.Log.LogAttrs(r.Context(), slog.LevelInfo, "Sign-in refused", audit(r, slog.Any("error", no.cause), slog.Int64("notLogged", leftOut))...)
		}
	}
	h.write(w, no.status, no.title,
		html.H1(g.Text(no.title)),
		html.P(g.Text(no.text)),
		html.P(html.A(html.Class("button"), html.Href(Path), g.Text("To the sign-in page"))),
	)
}

// CrossOrigin writes the page for a form that another site has sent, for http.CrossOriginProtection.
func (h *Handlers) CrossOrigin(w http.ResponseWriter, r *http.Request) {
	h.only("crossOrigin", func(w http.ResponseWriter, r *http.Request) {
		h.refuse(w, r, refusal{
			http.StatusForbidden, "Request from another site",
			"Nothing has changed: the request came from another site's page, or through a proxy that hides its origin. Open Herald itself and try again.",
			nil,
		})
	}, r.Method)(w, r)
}

// notReady returns the page for a site without keys. Only the log contains the cause, which may be confidential.
func notReady(err error) refusal {
	return refusal{
		http.StatusServiceUnavailable, "Signing in does not work yet",
		"Herald has no session keys. Try again in a minute; if the problem persists, an administrator can find the reason in the apiserver's log.", err,
	}
}

func issueRefusal(err error) refusal {
	if errors.Is(err, session.ErrTooLarge) {
		return refusal{
			http.StatusForbidden, "Too many groups",
			"Your account is in too many groups for a cookie. Ask an administrator to configure the provider to send only the groups to which Herald's roles are bound.", err,
		}
	}
	return notReady(err)
}

func (h *Handlers) choices(back string) []g.Node {
	body := []g.Node{html.H1(g.Text("Sign in to Herald"))}
	if h.provider != nil {
		address := startPath
		if back != "/" {
			address += "?return_to=" + url.QueryEscape(back)
		}
		return append(body, html.P(html.A(html.Class("button primary"), html.Href(address), g.Text("Sign in with "+h.provider.name))))
	}
	if h.LinkCommand == "" {
		return append(body, html.P(g.Text("You need a one-time link. Ask an administrator of this installation for one, and open it. It works once, within 15 minutes.")))
	}
	return append(body,
		html.P(g.Text("You need a one-time link. This command creates one:")),
		html.Pre(html.Code(g.Text(h.LinkCommand))),
		html.P(g.Text("Open the address that it prints. It works once, within 15 minutes.")),
	)
}
