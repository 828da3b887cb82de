// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package issuertest is an OpenID Connect provider for tests. It lets in one person without
// asking, and takes a code once, with the secret of the client and the PKCE verifier that
// belong to it.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// What the provider knows of its one client.
const (
	ClientID     = "herald"
	ClientSecret = "s3cr3t"
)

// Issuer is the provider. Set its fields before it serves.
type Issuer struct {
	// URL is how it calls itself: the address under which it is served.
	URL string
	// Claims are those of the person, beside what every ID token has; they may replace that.
	Claims map[string]any
	// Now tells the time; time.Now by default.
	Now func() time.Time

	once  sync.Once
	key   *ecdsa.PrivateKey
	mu    sync.Mutex
	codes map[string]grant
	asked []url.Values
}

// grant is what a code stands for.
type grant struct{ challenge, nonce, redirect string }

func (i *Issuer) setUp() {
	i.once.Do(func() {
		i.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		i.codes = map[string]grant{}
		if i.Now == nil {
			i.Now = time.Now
		}
	})
}

// Asked are the queries of all requests to sign in.
func (i *Issuer) Asked() []url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]url.Values(nil), i.asked...)
}

// ServeHTTP serves the provider.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.setUp()
	switch r.URL.Path {
	case "/.well-known/openid-configuration", "/keys":
		keys := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: i.key.Public(), KeyID: "test", Algorithm: oidc.ES256}}}
		keys.SetIssuer(i.URL)
		if r.URL.Path == "/keys" {
			keys.ServeHTTP(w, r)
			return
		}
		answer(w, http.StatusOK, map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{oidc.ES256}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		})
	case "/authorize":
		i.authorize(w, r)
	case "/token":
		i.token(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	i.asked = append(i.asked, q)
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != ClientID || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "what client is that?", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	i.codes[code] = grant{q.Get("code_challenge"), q.Get("nonce"), q.Get("redirect_uri")}
	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	code := r.FormValue("code")
	known, ok := i.codes[code]
	delete(i.codes, code)
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case id != ClientID || secret != ClientSecret:
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
	case !ok || known.redirect != r.FormValue("redirect_uri") || known.challenge != base64.RawURLEncoding.EncodeToString(sum[:]):
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
	default:
		now := i.Now()
		claims := map[string]any{
			"iss": i.URL, "aud": ClientID, "sub": "1", "nonce": known.nonce, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		}
		maps.Copy(claims, i.Claims)
		text, _ := json.Marshal(claims)
		answer(w, http.StatusOK, map[string]any{
			"access_token": "a", "token_type": "Bearer", "id_token": oidctest.SignIDToken(i.key, "test", oidc.ES256, string(text)),
		})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
