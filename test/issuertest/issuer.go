// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package issuertest is an OpenID Connect provider for tests (OpenID Connect Core 1.0, section 3.1; RFC 7636). It is
// strict about everything that a client might neglect: it checks the exact redirect URI, state, nonce, PKCE and its
// verifier, the client secret, and that a code is used only once.
package issuertest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// The only client of the provider.
const (
	ClientID     = "herald"
	ClientSecret = "s3cr3t"
)

const (
	keyBits = 2048
	keyID   = "test"
	idLife  = time.Minute
)

// signingKey is shared by all providers in a test binary: generating a key is slow.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, keyBits) })

// Issuer is the provider. Set its fields before it serves. Use it as a handler, or call Start to serve it on a loopback
// address.
type Issuer struct {
	// URL is its issuer URL. Start sets it.
	URL string
	// RedirectURI is the only accepted redirect URI.
	RedirectURI string
	// Claims are the claims of the only user, who is signed in without a prompt. They are added to the standard
	// claims of the ID token and may replace them.
	Claims map[string]any
	// People are the claims of several users, by their name on the selection page, which is also the claim "sub". They
	// are used if Claims is nil.
	People map[string]map[string]any

	server *httptest.Server
	mu     sync.Mutex
	codes  map[string]grant
	asked  []url.Values
}

// grant is the content of an authorization code. Codes do not expire: the client itself must reject a late response.
type grant struct {
	claims map[string]any
	asked  url.Values
}

// Start serves the provider on a loopback address until Close.
func (i *Issuer) Start() {
	i.server = httptest.NewServer(i)
	i.URL = i.server.URL
}

// Close stops the server that Start started.
func (i *Issuer) Close() { i.server.Close() }

// SignInRequests returns the queries of all sign-in requests.
func (i *Issuer) SignInRequests() []url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.asked)
}

// ServeHTTP serves the provider.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, err := signingKey()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /.well-known/openid-configuration":
		reply(w, http.StatusOK, i.discovery())
	case "GET /keys":
		keys := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: keyID, Algorithm: oidc.RS256}}}
		keys.SetIssuer(i.URL)
		keys.ServeHTTP(w, r)
	case "GET /authorize":
		i.authorize(w, r)
	case "POST /token":
		i.token(w, r, key)
	default:
		http.NotFound(w, r)
	}
}

func (i *Issuer) discovery() map[string]any {
	return map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{oidc.RS256}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
		"scopes_supported":                      []string{"openid", "email", "profile", "groups"},
	}
}

// authorize signs in the only user, or offers a choice of users.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	i.mu.Lock()
	i.asked = append(i.asked, query)
	i.mu.Unlock()
	if problem := i.wrong(query); problem != "" {
		http.Error(w, problem, http.StatusBadRequest)
		return
	}
	claims, known := i.Claims, i.Claims != nil
	if name := query.Get("as"); !known && name != "" {
		if claims, known = i.People[name]; known {
			claims = maps.Clone(claims)
			claims["sub"] = name
		}
	}
	if !known {
		i.choose(w, query)
		return
	}
	http.Redirect(w, r, i.back(query, url.Values{"code": {i.issue(claims, query)}}), http.StatusSeeOther)
}

// wrong returns the problem with a sign-in request, or "".
func (i *Issuer) wrong(query url.Values) string {
	for name, want := range map[string]string{
		"client_id": ClientID, "redirect_uri": i.RedirectURI, "response_type": "code", "code_challenge_method": "S256",
	} {
		if query.Get(name) != want {
			return fmt.Sprintf("%s is %q, want %q", name, query.Get(name), want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if query.Get(name) == "" {
			return name + " is missing"
		}
	}
	return ""
}

// choose shows a link for each user, to the same URL with the parameter "as", and a link to deny access.
func (i *Issuer) choose(w http.ResponseWriter, query url.Values) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,"><main><h1>Who are you?</h1><ul>`)
	for _, name := range slices.Sorted(maps.Keys(i.People)) {
		query.Set("as", name)
		fmt.Fprintf(w, `<li><a href="/authorize?%s">%s</a>`, html.EscapeString(query.Encode()), html.EscapeString(name))
	}
	refuse := i.back(query, url.Values{"error": {"access_denied"}})
	fmt.Fprintf(w, `</ul><a href="%s">Nobody</a></main>`, html.EscapeString(refuse))
}

// back returns the client's redirect URI with the response added.
func (i *Issuer) back(asked, answer url.Values) string {
	answer.Set("state", asked.Get("state"))
	answer.Set("iss", i.URL)
	return i.RedirectURI + "?" + answer.Encode()
}

func (i *Issuer) issue(claims map[string]any, asked url.Values) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.codes == nil {
		i.codes = map[string]grant{}
	}
	code := rand.Text()
	i.codes[code] = grant{claims, asked}
	return code
}

// redeem removes a code and returns its grant. Every use makes a code invalid.
func (i *Issuer) redeem(code string) (grant, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, ok := i.codes[code]
	delete(i.codes, code)
	return known, ok
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request, key *rsa.PrivateKey) {
	id, secret, isBasic := r.BasicAuth()
	if !isBasic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	known, ok := i.redeem(r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	switch {
	case id != ClientID || secret != ClientSecret:
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
	case !ok || r.PostFormValue("redirect_uri") != i.RedirectURI ||
		subtle.ConstantTimeCompare([]byte(challenge), []byte(known.asked.Get("code_challenge"))) != 1:
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
	default:
		text, err := json.Marshal(i.claims(known))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		reply(w, http.StatusOK, map[string]any{
			"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(idLife.Seconds()),
			"id_token": oidctest.SignIDToken(key, keyID, oidc.RS256, string(text)),
		})
	}
}

// claims returns a grant's ID token claims.
func (i *Issuer) claims(of grant) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "aud": ClientID, "sub": "1", "nonce": of.asked.Get("nonce"), "iat": now.Unix(), "exp": now.Add(idLife).Unix(),
	}
	maps.Copy(claims, of.claims)
	return claims
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have closed the connection
}
