// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider is a small OpenID Connect provider for tests in a browser: one page on which a person chooses who to
// be, and codes with PKCE that are exchanged for an ID token (OpenID Connect Core 1.0, section 3.1; RFC 7636). It is strict
// where a client could be careless: the exact redirect address, one use of a code, the client's secret, the verifier.
package provider

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	keyBits  = 2048
	keyID    = "test"
	codeLife = time.Minute
	idLife   = 10 * time.Minute
)

// Provider is one that runs.
type Provider struct {
	// URL is the issuer.
	URL string

	options Options
	server  *httptest.Server
	key     *rsa.PrivateKey

	mu    sync.Mutex
	codes map[string]granted
}

// Options are what a provider knows.
type Options struct {
	ClientID, ClientSecret string
	// RedirectURI is the only address to which people are sent back.
	RedirectURI string
	// People are the claims of each, by the name on the page. "sub" is that name if they do not have one.
	People map[string]map[string]any
	// Tamper, which may be nil, changes the claims of an ID token, for what a client must refuse.
	Tamper func(claims map[string]any)
}

type granted struct {
	who   string
	asked url.Values
	ends  time.Time
}

// Start starts a provider on a loopback address. Close ends it.
func Start(options Options) (*Provider, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	p := &Provider{options: options, key: key, codes: map[string]granted{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.server = httptest.NewServer(mux)
	p.URL = p.server.URL
	return p, nil
}

// Close ends the provider.
func (p *Provider) Close() { p.server.Close() }

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
		"scopes_supported":                      []string{"openid", "email", "profile", "groups"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": keyID,
		"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize shows a link for each person, back to the same address with `as`, and one to refuse.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for name, want := range map[string]string{
		"client_id": p.options.ClientID, "redirect_uri": p.options.RedirectURI, "response_type": "code", "code_challenge_method": "S256",
	} {
		if query.Get(name) != want {
			http.Error(w, fmt.Sprintf("%s is %q, want %q", name, query.Get(name), want), http.StatusBadRequest)
			return
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if query.Get(name) == "" {
			http.Error(w, name+" is missing", http.StatusBadRequest)
			return
		}
	}
	who := query.Get("as")
	if _, known := p.options.People[who]; known {
		http.Redirect(w, r, p.back(query, url.Values{"code": {p.issue(who, query)}}), http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,"><main><h1>Who are you?</h1><ul>`)
	for _, name := range slices.Sorted(maps.Keys(p.options.People)) {
		query.Set("as", name)
		fmt.Fprintf(w, `<li><a href="/authorize?%s">%s</a>`, html.EscapeString(query.Encode()), html.EscapeString(name))
	}
	refuse := p.back(query, url.Values{"error": {"access_denied"}})
	fmt.Fprintf(w, `</ul><a href="%s">Nobody</a></main>`, html.EscapeString(refuse))
}

// back is the client's address with an answer.
func (p *Provider) back(asked, answer url.Values) string {
	answer.Set("state", asked.Get("state"))
	answer.Set("iss", p.URL)
	return p.options.RedirectURI + "?" + answer.Encode()
}

func (p *Provider) issue(who string, asked url.Values) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := rand.Text()
	p.codes[code] = granted{who, asked, time.Now().Add(codeLife)}
	return code
}

// token exchanges a code, once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, isBasic := r.BasicAuth()
	if !isBasic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != p.options.ClientID || secret != p.options.ClientSecret {
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	code := r.PostFormValue("code")
	p.mu.Lock()
	found, ok := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	proven := subtle.ConstantTimeCompare([]byte(encode(sum[:])), []byte(found.asked.Get("code_challenge"))) == 1
	if !ok || !proven || time.Now().After(found.ends) || r.PostFormValue("redirect_uri") != p.options.RedirectURI {
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	token, err := p.idToken(found)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(idLife.Seconds()), "id_token": token})
}

func (p *Provider) idToken(of granted) (string, error) {
	now := time.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": p.options.ClientID, "sub": of.who, "nonce": of.asked.Get("nonce"), "iat": now.Unix(), "exp": now.Add(idLife).Unix(),
	}
	maps.Copy(claims, p.options.People[of.who])
	if p.options.Tamper != nil {
		p.options.Tamper(claims)
	}
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": keyID})
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encode(header) + "." + encode(payload)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	return signed + "." + encode(signature), err
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(body)
}
