// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oauth simulates a user's authorization of a client, for all platforms: the consent page and its authorization
// codes (RFC 6749, section 4.1, and RFC 7636, PKCE). Each platform implements its own token endpoint and wording.
package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/herald-social/herald/sandbox/pages"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Dialog is a platform's page for choosing the account to connect. Create one with NewDialog.
type Dialog struct {
	simulator.Options
	simulator.Profile
	// ClientParam is the name of the parameter with the client's id.
	ClientParam string
	// ClientName returns the name of a registered client; nil on a platform whose clients the sandbox does not register. The
	// page then shows the id.
	ClientName func(id string) string
	// CodeLife is the lifetime of a code.
	CodeLife time.Duration
	// Fragment is the fragment of the redirect URI; empty for none.
	Fragment string
	// Check runs the platform's own checks of a request, after the common ones. It returns a human-readable message, or "" if the request
	// is valid.
	Check func(url.Values) string
	// Offers reports whether an account can be chosen; nil offers all accounts of the platform.
	Offers func(state.Account) bool

	mu     sync.Mutex
	byCode map[string]Grant
}

// NewDialog initializes a dialog and returns it.
func NewDialog(d *Dialog) *Dialog {
	d.byCode = map[string]Grant{}
	return d
}

// Grant is the authorization behind a code. Codes are kept in memory only: they live for minutes.
type Grant struct {
	Account state.Account
	// Asked holds the parameters of the authorization request.
	Asked   url.Values
	Scopes  []string
	expires time.Time
}

// ServeHTTP serves the dialog. Each account is a link to the same address with the account parameter.
func (d *Dialog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	redirect, message := d.check(query)
	if message != "" {
		pages.Message(w, http.StatusBadRequest, "Something went wrong", message)
		return
	}
	if id := query.Get("account"); id != "" {
		d.consented(w, r, redirect, id)
		return
	}
	consent := pages.Consent{
		On: d.Name(), Platform: d.Title(), Client: d.client(query.Get(d.ClientParam)), Scopes: scopesOf(query),
		Deny: d.back(redirect, url.Values{"error": {"access_denied"}, "state": {query.Get("state")}}),
	}
	for _, account := range d.Store.Summaries() {
		if d.offered(account.Account) {
			query.Set("account", account.ID)
			consent.Choices = append(consent.Choices, pages.NewChoice(account.Account, r.URL.Path+"?"+query.Encode()))
		}
	}
	pages.RenderConsent(w, consent)
}

func (d *Dialog) client(id string) string {
	if d.ClientName == nil {
		return id
	}
	return d.ClientName(id)
}

func (d *Dialog) offered(a state.Account) bool {
	return a.Platform == d.Name() && (d.Offers == nil || d.Offers(a))
}

// check returns the redirect URI, or a message if the request is invalid.
func (d *Dialog) check(query url.Values) (*url.URL, string) {
	redirect, err := url.Parse(query.Get("redirect_uri"))
	kind := query.Get("response_type")
	switch {
	case err != nil || redirect.Host == "" || redirect.Scheme != "http" && redirect.Scheme != "https":
		return nil, "The redirect_uri must be an absolute http or https address."
	case kind != "" && kind != "code":
		return nil, "The response_type must be code."
	case query.Get(d.ClientParam) == "":
		return nil, "The " + d.ClientParam + " is missing."
	case d.Check != nil:
		return redirect, d.Check(query)
	default:
		return redirect, ""
	}
}

// scopesOf returns the requested scopes. Some platforms separate them by spaces and others by commas; Facebook accepts both.
func scopesOf(query url.Values) []string {
	return strings.FieldsFunc(query.Get("scope"), func(r rune) bool { return r == ' ' || r == ',' })
}

func (d *Dialog) consented(w http.ResponseWriter, r *http.Request, redirect *url.URL, id string) {
	query := r.URL.Query()
	account, ok := d.Store.Account(state.Key{Platform: d.Name(), ID: id})
	if !ok || !d.offered(account) {
		pages.Message(w, http.StatusNotFound, "No such account", "There is no account "+id+" on "+d.Title()+" here.")
		return
	}
	answer := url.Values{"code": {d.issue(account, query)}}
	if query.Has("state") {
		answer.Set("state", query.Get("state"))
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, d.back(redirect, answer), http.StatusFound) //nolint:gosec // the dialog exists to redirect users to the client
}

// issue returns a new code.
func (d *Dialog) issue(account state.Account, asked url.Values) string {
	granted := Grant{Account: account, Asked: asked, Scopes: scopesOf(asked), expires: d.Clock.Now().Add(d.CodeLife)}
	if len(granted.Scopes) == 0 {
		granted.Scopes = d.Terms(account).Scopes
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.byCode, func(_ string, old Grant) bool { return !d.Clock.Now().Before(old.expires) })
	code := rand.Text()
	d.byCode[code] = granted
	return code
}

// Redeem returns a code's grant. A code works once, and only for its client and redirect_uri.
func (d *Dialog) Redeem(code, client, redirect string) (Grant, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.byCode[code]
	delete(d.byCode, code)
	return found, ok && d.Clock.Now().Before(found.expires) &&
		found.Asked.Get(d.ClientParam) == client && found.Asked.Get("redirect_uri") == redirect
}

// Encoding encodes a hash as a challenge.
type Encoding func([]byte) string

// Base64URL is the encoding of RFC 7636, section 4.2.
var Base64URL Encoding = base64.RawURLEncoding.EncodeToString

// Verified checks the verifier against the challenge (RFC 7636, section 4.6). A grant without a challenge passes. The
// method name is case-insensitive because twitter-api-v2 sends s256.
func (g Grant) Verified(verifier string, encode Encoding) bool {
	challenge := g.Asked.Get("code_challenge")
	if challenge == "" {
		return true
	}
	proof := verifier
	if strings.EqualFold(g.Asked.Get("code_challenge_method"), "S256") {
		sum := sha256.Sum256([]byte(verifier))
		proof = encode(sum[:])
	}
	return verifier != "" && subtle.ConstantTimeCompare([]byte(proof), []byte(challenge)) == 1
}

// Tokens issues the tokens of a grant. life is the lifetime of the access token; 0 is the platform's default.
func (d *Dialog) Tokens(g Grant, life time.Duration, refresh bool) (state.Tokens, error) {
	terms := d.Terms(g.Account)
	if ttl := g.Account.Settings.TokenTTL; life > 0 && (ttl == 0 || life < ttl) {
		terms.Access = life
	}
	fresh := terms.Tokens(d.Clock.Now())
	fresh.Scopes = slices.Clone(g.Scopes)
	if !refresh {
		fresh.RefreshExpiresAt = time.Time{}
	}
	tokens, err := d.Store.Grant(g.Account.Key, fresh, refresh)
	if err != nil {
		d.Logger.Error("a token could not be kept", "platform", d.Name(), "account", g.Account.ID, "error", err)
	}
	return tokens, err
}

// back returns the redirect URI with the response parameters.
func (d *Dialog) back(to *url.URL, answer url.Values) string {
	out := *to
	query := out.Query()
	maps.Copy(query, answer)
	out.RawQuery, out.Fragment = query.Encode(), d.Fragment
	return out.String()
}
