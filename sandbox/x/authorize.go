// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

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
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// codeTTL is the life of X's authorization codes.
	codeTTL = 30 * time.Second
	// maxStateLength is the longest state that X takes.
	maxStateLength = 500
)

// code is what an authorization code stands for. Codes are kept in memory only: they live for half a minute.
type code struct {
	account   state.Key
	clientID  string
	redirect  string
	challenge string
	plain     bool // the challenge is the verifier itself
	scopes    []string
	expires   time.Time
}

type codes struct {
	mu     sync.Mutex
	byCode map[string]code
}

// issue returns a new code.
func (c *codes) issue(now time.Time, granted code) string {
	granted.expires = now.Add(codeTTL)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, old := range c.byCode {
		if !now.Before(old.expires) {
			delete(c.byCode, name)
		}
	}
	name := rand.Text()
	c.byCode[name] = granted
	return name
}

// redeem returns what a code stands for, once.
func (c *codes) redeem(now time.Time, name string) (code, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.byCode[name]
	delete(c.byCode, name)
	return found, ok && now.Before(found.expires)
}

// authorize is GET /i/oauth2/authorize: a person chooses the account to connect, by a link back to the same address
// that adds `account`.
func (p *Platform) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	redirect, message := checkAuthorize(query)
	if message != "" {
		pages.Message(w, http.StatusBadRequest, "Something went wrong", message)
		return
	}
	if id := query.Get("account"); id != "" {
		p.consented(w, r, redirect, id)
		return
	}
	consent := pages.Consent{
		On: Name, Platform: p.Title(), Client: query.Get("client_id"), Scopes: strings.Fields(query.Get("scope")),
		Deny: withQuery(redirect, url.Values{"error": {"access_denied"}, "state": {query.Get("state")}}),
	}
	for _, account := range p.Store.Summaries() {
		if account.Platform == Name {
			query.Set("account", account.ID)
			consent.Choices = append(consent.Choices, pages.NewChoice(account.Account, "/x/i/oauth2/authorize?"+query.Encode()))
		}
	}
	pages.RenderConsent(w, consent)
}

// checkAuthorize returns where to send the person afterwards, or what is wrong with the request.
func checkAuthorize(query url.Values) (*url.URL, string) {
	redirect, err := url.Parse(query.Get("redirect_uri"))
	method := query.Get("code_challenge_method")
	switch {
	case err != nil || redirect.Host == "" || redirect.Scheme != "http" && redirect.Scheme != "https":
		return nil, "The redirect_uri must be an absolute http or https address."
	case query.Get("response_type") != "code":
		return nil, "The response_type must be code."
	case query.Get("client_id") == "":
		return nil, "The client_id is missing."
	case query.Get("state") == "" || len(query.Get("state")) > maxStateLength:
		return nil, "The state must be there, with at most 500 characters."
	case query.Get("code_challenge") == "" || method != "S256" && method != "plain":
		return nil, "PKCE is mandatory: give code_challenge, and S256 or plain as code_challenge_method."
	case query.Get("scope") == "":
		return nil, "The scope is missing."
	}
	for scope := range strings.FieldsSeq(query.Get("scope")) {
		if !slices.Contains(allScopes(), scope) {
			return nil, "The scope " + scope + " is not known; scopes are separated by spaces."
		}
	}
	return redirect, ""
}

func (p *Platform) consented(w http.ResponseWriter, r *http.Request, redirect *url.URL, id string) {
	query := r.URL.Query()
	account, ok := p.Store.Account(state.Key{Platform: Name, ID: id})
	if !ok {
		pages.Message(w, http.StatusNotFound, "No such account", "There is no account "+id+" on X here.")
		return
	}
	issued := p.codes.issue(p.Clock.Now(), code{
		account: account.Key, clientID: query.Get("client_id"), redirect: query.Get("redirect_uri"),
		challenge: query.Get("code_challenge"), plain: query.Get("code_challenge_method") == "plain",
		scopes: strings.Fields(query.Get("scope")),
	})
	w.Header().Set("Cache-Control", "no-store")
	back := withQuery(redirect, url.Values{"code": {issued}, "state": {query.Get("state")}})
	http.Redirect(w, r, back, http.StatusFound) //nolint:gosec // sending people back to the client is what this endpoint is for
}

func withQuery(base *url.URL, add url.Values) string {
	out := *base
	query := out.Query()
	maps.Copy(query, add)
	out.RawQuery = query.Encode()
	return out.String()
}

// exchange gives tokens for an authorization code.
func (p *Platform) exchange(w http.ResponseWriter, clientID string, values url.Values) {
	granted, ok := p.codes.redeem(p.Clock.Now(), values.Get("code"))
	account, known := p.Store.Account(granted.account)
	if !ok || !known || granted.clientID != clientID || granted.redirect != values.Get("redirect_uri") {
		oauthFail(w, http.StatusBadRequest, "invalid_grant", "Value passed for the authorization code was invalid.")
		return
	}
	if !granted.verified(values.Get("code_verifier")) {
		oauthFail(w, http.StatusBadRequest, "invalid_grant", "Value passed for the code verifier did not match the code challenge.")
		return
	}
	tokens, err := p.Store.Grant(account.Key, state.Tokens{
		ExpiresAt: p.Clock.Now().Add(p.Terms(account).Access), Scopes: granted.scopes,
	}, slices.Contains(granted.scopes, scopeOffline))
	if err != nil {
		p.Logger.Error("a token could not be kept", "platform", Name, "account", account.ID, "error", err)
		oauthFail(w, http.StatusInternalServerError, "server_error", "Something is broken.")
		return
	}
	p.answerTokens(w, tokens)
}

// verified checks the verifier against the challenge (RFC 7636, section 4.6).
func (c code) verified(verifier string) bool {
	if !c.plain {
		sum := sha256.Sum256([]byte(verifier))
		verifier = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return verifier != "" && subtle.ConstantTimeCompare([]byte(verifier), []byte(c.challenge)) == 1
}
