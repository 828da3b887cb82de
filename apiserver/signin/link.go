// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"errors"
	"net/http"
	"strconv"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/session"
)

// link serves a one-time link. A GET does not use up the link, because mail and chat programs open links automatically;
// the button on the page posts to the same address and signs in. The address is the secret, so the POST does not need a
// body.
func (h *Handlers) link(w http.ResponseWriter, r *http.Request) {
	if h.provider != nil {
		h.refuse(w, r, refusal{http.StatusNotFound, "One-time links are not used here", "People sign in here with " + h.provider.name + ".", nil})
		return
	}
	if err := h.Sessions.Ready(); err != nil {
		h.fail(w, r, ByLink, notReady(err))
		return
	}
	// Behind a proxy all visitors have the same address, so known links do not count against its limit.
	token := r.PathValue("token")
	if !h.Sessions.HasLink(token) {
		if allowed, wait := h.limit.Allow(request.Address(r), http.Header{}); !allowed {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
			h.fail(w, r, ByLink, refusal{
				http.StatusTooManyRequests, "Too many tries",
				"This link is not known here yet, and too many unknown links were opened from your address. Wait a minute, then open it again.", nil,
			})
			return
		}
	}
	if r.Method != http.MethodPost {
		if err := h.Sessions.CheckLink(r.Context(), token); err != nil {
			h.fail(w, r, ByLink, h.linkRefusal(err))
			return
		}
		h.write(w, http.StatusOK, "Sign in",
			html.H1(g.Text("Sign in to Herald")),
			html.P(g.Text("Press the button to continue. This link works only once.")),
			html.Form(html.Method("post"), html.Button(html.Type("submit"), html.Class("button primary"), g.Text("Sign in"))),
		)
		return
	}
	if err := h.Sessions.UseLink(r.Context(), token); err != nil {
		h.fail(w, r, ByLink, h.linkRefusal(err))
		return
	}
	back := "/"
	if cookie, err := r.Cookie(h.Sessions.CookieName(returning)); err == nil {
		back = h.backOf(cookie)
		h.Sessions.SetCookie(w, returning, "", 0)
	}
	h.signedIn(w, r, access.Person{Name: access.LinkPerson, DisplayName: "Administrator"}, ByLink, back)
}

// returning is the name and sealing purpose of the cookie that holds the page to return to after signing in: a one-time
// link arrives outside the browser, and does not carry such an address.
const returning = "herald_return"

// remember stores the requested page until the user opens a link.
func (h *Handlers) remember(w http.ResponseWriter, back string) {
	if sealed := h.Sessions.Seal(returning, back, roundTrip); len(sealed) < maxReturn {
		h.Sessions.SetCookie(w, returning, sealed, roundTrip)
	}
}

// maxReturn is the maximum length of the cookie; see maxCookie in package session.
const maxReturn = 3800

// backOf returns the requested page, or "/" if it is unknown.
func (h *Handlers) backOf(cookie *http.Cookie) string {
	var back string
	if h.Sessions.Open(returning, cookie.Value, &back) != nil {
		return "/"
	}
	return localPath(back)
}

func (h *Handlers) linkRefusal(err error) refusal {
	again := " Ask an administrator for a new one."
	if h.LinkCommand != "" {
		again = " A new one is created with: " + h.LinkCommand
	}
	switch {
	case errors.Is(err, session.ErrLinkUnknown):
		return refusal{http.StatusNotFound, "Unknown link", "There is no such link. Copy the whole address, without spaces or line breaks." + again, err}
	case errors.Is(err, session.ErrLinkUsed):
		return refusal{http.StatusGone, "Used link", "This link has already been used. If that was not you, sign out everywhere." + again, err}
	case errors.Is(err, session.ErrLinkExpired):
		return refusal{http.StatusGone, "Expired link", "This link has expired." + again, err}
	default:
		return refusal{http.StatusServiceUnavailable, notSignedIn, "Herald cannot check the link now. Try again in a minute; if the link has been used by then, ask for a new one.", err}
	}
}
