// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/dpop"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/keytest"
	"github.com/herald-social/herald/test/must"
)

const clientID = "https://herald.example/oauth/bluesky/client-metadata.json"

// issuer is a server that is the authorization server, the account's server and the directory at once.
type issuer struct {
	t    *testing.T
	http *httptest.Server
	key  *jose.JSONWebKey

	mu sync.Mutex
	// nonce is the nonce that requests must contain.
	nonce string
	forms []url.Values
	// documents are the responses to reads, by path; an empty one does not exist.
	documents map[string]string
	// subject is the account in token responses.
	subject string
}

func startIssuer(t *testing.T) (*Platform, *issuer) {
	t.Helper()
	secret := keytest.P256(t)
	key, err := parseClientKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	document, err := key.clientMetadata(clientID, "https://herald.example", []string{"https://herald.example/connect/bluesky/callback"})
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		JWKS jose.JSONWebKeySet `json:"jwks"`
	}
	if err := json.Unmarshal(document, &published); err != nil || len(published.JWKS.Keys) != 1 || !published.JWKS.Keys[0].IsPublic() {
		t.Fatalf("the document has not one public key: %s, %v", document, err)
	}
	s := &issuer{t: t, key: &published.JWKS.Keys[0], nonce: "n1", subject: accountDID, documents: documents()}
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			s.answer(w, r)
			return
		}
		text := s.documents[r.URL.Path]
		if text == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(text, "HERE", s.http.URL)))
	}))
	t.Cleanup(s.http.Close)
	return New(Config{
		Config:       platforms.Config{APIURL: s.http.URL, ClientID: clientID, ClientSecret: func() string { return secret }, Clock: clocktesting.NewFakeClock(recorder.Noon)},
		DirectoryURL: s.http.URL,
	}, transport.New(transport.Options{})), s
}

// claimsOf verifies a token's signature with a key, by default the one in its header, and returns its claims.
func (s *issuer) claimsOf(text string, key any) map[string]any {
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		s.t.Errorf("%q is not a token: %v", text, err)
		return nil
	}
	if key == nil {
		key = token.Headers[0].JSONWebKey
	}
	claims := map[string]any{}
	if err := token.Claims(key, &claims); err != nil {
		s.t.Errorf("a signature is wrong: %v", err)
	}
	return claims
}

// answer checks the proofs that every request to an authorization server must contain, and responds to it.
func (s *issuer) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		s.t.Error(err)
	}
	proof := s.claimsOf(r.Header.Get("DPoP"), nil)
	if proof["htm"] != "POST" || proof["htu"] != s.http.URL+r.URL.Path {
		s.t.Errorf("the proof is for another request: %v", proof)
	}
	assertion := s.claimsOf(r.Form.Get("client_assertion"), s.key)
	if assertion["iss"] != clientID || assertion["sub"] != clientID || assertion["aud"] != s.http.URL || r.Form.Get("client_id") != clientID {
		s.t.Errorf("the assertion is for another client or server: %v", assertion)
	}
	w.Header().Set("DPoP-Nonce", s.nonce)
	if proof["nonce"] != s.nonce {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"use_dpop_nonce"}`))
		return
	}
	s.forms = append(s.forms, r.Form)
	if r.URL.Path == "/oauth/par" {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"request_uri":"urn:request:1","expires_in":299}`))
		return
	}
	n := len(s.forms)
	fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":"refresh-%d","token_type":"DPoP","expires_in":3600,"scope":"%s","sub":"%s"}`, n, n, Scopes, s.subject)
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	p, s := startIssuer(t)
	consent := platforms.Consent{RedirectURI: "https://herald.example/connect/bluesky/callback", State: "s1", Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}
	page, of, failure := p.begin(t.Context(), "acme.example", consent)
	if failure != nil {
		t.Fatal(failure)
	}
	query := url.Values{"client_id": {clientID}, "request_uri": {"urn:request:1"}}
	if want := s.http.URL + "/oauth/authorize?" + query.Encode(); page != want {
		t.Errorf("the page is %s, want %s", page, want)
	}
	if form := s.forms[0]; form.Get("code_challenge") != "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" || form.Get("scope") != Scopes || form.Get("login_hint") != "acme.example" {
		t.Errorf("requested %v", form)
	}
	code := platforms.Code{Value: "c", RedirectURI: consent.RedirectURI, Verifier: consent.Verifier}
	if _, failure := p.finish(t.Context(), of, code, "https://evil.example"); failure == nil || failure.Class != platforms.ClassReconnect || len(s.forms) != 1 {
		t.Errorf("a code from another issuer was sent: %v", failure)
	}
	s.nonce = "n2" // servers rotate nonces
	token, failure := p.finish(t.Context(), of, code, s.http.URL)
	if failure != nil {
		t.Fatal(failure)
	}
	bound, access, ok := parseBound(token.Access)
	if !ok || access != "access-2" || bound.DID != accountDID || bound.PDS != s.http.URL || bound.Issuer != s.http.URL || token.ExpiresAt.IsZero() {
		t.Errorf("the token is %+v", token)
	}
	renewed, failure := p.renewed(t.Context(), token)
	if failure != nil || s.forms[2].Get("refresh_token") != "refresh-2" {
		t.Fatalf("renewed with %v, %v", s.forms[2], failure)
	}
	if again, text, ok := parseBound(renewed.Refresh); !ok || text != "refresh-3" || again.DID != accountDID {
		t.Errorf("the renewed token is %+v", renewed)
	}
	if ok, shared := p.Revocable(renewed); !ok || shared {
		t.Error("the tokens of one consent cannot be revoked")
	}
	if err := p.Revoke(t.Context(), renewed); err != nil || s.forms[3].Get("token") != "refresh-3" {
		t.Errorf("revoked %v: %v", s.forms[3], err)
	}
	s.subject = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
	if _, failure := p.renewed(t.Context(), renewed); failure == nil || failure.Class != platforms.ClassReconnect {
		t.Errorf("a token of another account was accepted: %v", failure)
	}
}

// TestAppPasswordIsNotRevoked checks that Herald does not claim to revoke an app password, which only the account's
// owner can do.
func TestAppPasswordIsNotRevoked(t *testing.T) {
	t.Parallel()
	if ok, _ := New(Config{}, nil).Revocable(platforms.Token{Access: "acme.example:abcd-efgh-ijkl-mnop"}); ok {
		t.Error("an app password counts as revocable")
	}
}

// TestDamagedToken checks that no part of a damaged token is sent as a handle and an app password.
func TestDamagedToken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was called", r.URL.Path) }))
	defer server.Close()
	p := New(Config{Config: platforms.Config{APIURL: server.URL}}, transport.New(transport.Options{}))
	token := platforms.Token{Access: "dpop|key|" + accountDID + "|https://pds.example", Refresh: "dpop|key"}
	if _, err := p.Identify(t.Context(), token); recorder.ClassOf(err) != platforms.ClassReconnect {
		t.Errorf("it is identified with %v", err)
	}
	if _, err := p.Refresh(t.Context(), token); recorder.ClassOf(err) != platforms.ClassReconnect {
		t.Errorf("it is renewed with %v", err)
	}
}

func TestGranted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, scopes string
		want           bool
	}{
		"as requested": {"the server writes them as Herald does", Scopes, true},
		"in full":      {"a server without single permissions grants them all", "atproto transition:generic", true},
		"no posts":     {"every post would fail", "atproto blob:*/*", false},
		"no files":     {"every post with files would fail", "atproto repo:app.bsky.feed.post", false},
		"not AT":       {"the token is for another protocol", "transition:generic", false},
	} {
		if got := granted(strings.Fields(tc.scopes)); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

func TestParseBound(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"an app password":    "acme.example:abcd-efgh-ijkl-mnop",
		"a DID and password": accountDID + ":abcd-efgh-ijkl-mnop",
		"a part":             "dpop|key|did",
		"no key":             "dpop|!|did|pds|issuer|token",
	} {
		if _, _, ok := parseBound(text); ok {
			t.Errorf("%s is read as a bound token", name)
		}
	}
}

// TestRenewalAndDocuments checks that no faulty document disconnects a working account, and that a refresh token, which
// can be used only once, is not sent if the response could arrive too late.
func TestRenewalAndDocuments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, path, text string
		within             time.Duration
		class              platforms.Class
	}{
		"maintenance":   {"a page instead of the document is no decision of anyone", "/" + accountDID, "<html>", time.Minute, platforms.ClassTransient},
		"no document":   {"the directory may have lost it for a while", "/" + accountDID, "", time.Minute, platforms.ClassTransient},
		"no OAuth":      {"a proxy may answer 404", resource, "", time.Minute, platforms.ClassTransient},
		"another state": {"the server may be about to change", issuerPath, "{}", time.Minute, platforms.ClassTransient},
		"moved":         {"the other server did not issue the token", resource, `{"resource":"HERE","authorization_servers":["HERE/"]}`, time.Minute, platforms.ClassTransient},
		"no time left":  {"the response with the next refresh token would be lost", "", "", minTime - time.Second, platforms.ClassTransient},
		"in time":       {"the token is renewed", "", "", time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := startIssuer(t)
			key, err := dpop.NewProofKey()
			must.Succeed(t, err)
			of := bound{Key: key, DID: accountDID, PDS: s.http.URL, Issuer: s.http.URL}
			refresh, err := of.text("refresh")
			must.Succeed(t, err)
			if tc.path != "" {
				s.documents[tc.path] = tc.text
			}
			ctx, cancel := context.WithTimeout(t.Context(), tc.within)
			defer cancel()
			_, err = p.Refresh(ctx, platforms.Token{Access: refresh, Refresh: refresh})
			if recorder.ClassOf(err) != tc.class || (len(s.forms) > 0) != (tc.class == "") {
				t.Errorf("%s: %v after %d requests", tc.reason, err, len(s.forms))
			}
			if tc.path != "" && tc.path != issuerPath {
				must.Succeed(t, p.Revoke(t.Context(), platforms.Token{Access: refresh, Refresh: refresh})) // the issuer is known
			}
		})
	}
}
