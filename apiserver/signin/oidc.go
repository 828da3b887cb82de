// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"golang.org/x/oauth2"
)

const (
	// roundTrip is how long a sign-in at the provider may take.
	roundTrip = 10 * time.Minute
	// pending is the name and sealing purpose of the cookie during the sign-in.
	pending = "herald_signin"
	// exchangeTimeout is the timeout for a sign-in's calls to the provider.
	exchangeTimeout = 20 * time.Second
)

// OIDC configures the OpenID Connect provider. All fields except ClientSecret, the prefixes and GroupsClaim are
// required.
type OIDC struct {
	// IssuerURL is the provider's issuer URL.
	IssuerURL string
	// ClientID is Herald's client id. ClientSecret returns the client's secret; nil for a public client.
	ClientID     string
	ClientSecret func() (string, error)
	// UsernameClaim is the claim with the user's name; UsernamePrefix is prepended to it. An email is accepted only
	// if the provider has verified it. GroupsClaim and GroupsPrefix do the same for groups; without the claim, users
	// have no groups.
	UsernameClaim  string
	UsernamePrefix string
	GroupsClaim    string
	GroupsPrefix   string
	// Scopes are requested in addition to openid.
	Scopes []string
	// Client sends the requests to the provider.
	Client *http.Client
}

// attempt is a sign-in in progress at the provider. The browser stores it sealed, so a callback from another browser or
// site does not match.
type attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Back     string `json:"b"`
}

func (h *Handlers) start(w http.ResponseWriter, r *http.Request) {
	if err := h.Sessions.Ready(); err != nil {
		h.fail(w, r, ByOIDC, notReady(err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), exchangeTimeout)
	defer cancel()
	known, err := h.provider.discover(ctx)
	if err != nil {
		h.fail(w, r, ByOIDC, h.away(err))
		return
	}
	a := attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Back: localPath(r.URL.Query().Get("return_to"))}
	address, err := known.authorize(a)
	if err != nil {
		h.fail(w, r, ByOIDC, h.away(err))
		return
	}
	sealed := h.Sessions.Seal(pending, a, roundTrip)
	if len(sealed) >= maxReturn { // without the cookie no sign-in would succeed
		a.Back = "/"
		sealed = h.Sessions.Seal(pending, a, roundTrip)
	}
	h.Sessions.SetCookie(w, pending, sealed, roundTrip)
	http.Redirect(w, r, address, http.StatusSeeOther)
}

func (h *Handlers) callback(w http.ResponseWriter, r *http.Request) {
	if err := h.Sessions.Ready(); err != nil {
		h.fail(w, r, ByOIDC, notReady(err))
		return
	}
	a, ok := h.pendingOf(r)
	// The attempt ends here in any case, so a second callback has no effect.
	h.Sessions.SetCookie(w, pending, "", 0)
	query := r.URL.Query()
	if !ok || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(a.State)) != 1 {
		h.fail(w, r, ByOIDC, refusal{
			http.StatusBadRequest, notSignedIn,
			"This sign-in was not started in this browser, was started more than ten minutes ago, or has already ended. Start again.",
			errors.New("the callback's state does not match the browser's"),
		})
		return
	}
	if code := query.Get("error"); code != "" {
		h.fail(w, r, ByOIDC, refusal{
			http.StatusForbidden, notSignedIn, h.provider.name + " rejected the sign-in. Start again, or ask its administrator.",
			errors.New("the provider refuses: " + shortened(code) + ": " + shortened(query.Get("error_description"))),
		})
		return
	}
	if issuer := query.Get("iss"); issuer != "" && issuer != h.OIDC.IssuerURL {
		h.fail(w, r, ByOIDC, refusal{
			http.StatusBadRequest, notSignedIn, "The response came from a different provider than requested. Start again.",
			errors.New("the callback names another issuer: " + shortened(issuer)),
		})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), exchangeTimeout)
	defer cancel()
	p, err := h.provider.person(ctx, query.Get("code"), a)
	if err != nil {
		h.reportOutcome(ByOIDC, outcomeOf(err))
		h.refuse(w, r, h.exchangeRefusal(err))
		return
	}
	h.signedIn(w, r, p, ByOIDC, a.Back)
}

func (h *Handlers) pendingOf(r *http.Request) (a attempt, ok bool) {
	cookie, err := r.Cookie(h.Sessions.CookieName(pending))
	if err != nil {
		return a, false
	}
	err = h.Sessions.Open(pending, cookie.Value, &a)
	return a, err == nil && a.State != ""
}

func (h *Handlers) away(err error) refusal {
	return refusal{
		http.StatusBadGateway, "The provider does not respond",
		h.provider.name + " cannot be reached, or its response cannot be used. Try again in a minute; if the problem persists, an administrator can find the reason in the apiserver's log.", err,
	}
}

func (h *Handlers) exchangeRefusal(err error) refusal {
	var claims *claimError
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &claims):
		return refusal{http.StatusForbidden, notSignedIn, claims.text, err}
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError:
		return refusal{
			http.StatusBadRequest, notSignedIn,
			h.provider.name + " no longer accepts this sign-in's code: it was already used, or is too old. Start again. If the problem persists, the client's secret may be wrong.", err,
		}
	case errors.Is(err, errToken):
		return refusal{http.StatusBadRequest, notSignedIn, "The ID token from " + h.provider.name + " is not valid. Start again.", err}
	default:
		return h.away(err)
	}
}

// outcomeOf distinguishes codes that were rejected because of the user from problems for the administrator: the
// provider, the client's secret, or a clock.
func outcomeOf(err error) Outcome {
	if _, ok := errors.AsType[*claimError](err); ok {
		return Refused
	}
	// The code was used, has expired, or was issued to another client (RFC 6749, section 5.2).
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode == "invalid_grant" {
		return Refused
	}
	return Failed
}

// maxShown limits external text in the log, in bytes.
const maxShown = 200

func shortened(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "…"
	}
	return text
}
