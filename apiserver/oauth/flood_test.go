// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/herald-social/herald/apiserver/bridge"
)

// TestThreatRegistrationFlood: registering stores nothing, is bounded, and needs no end.
func TestThreatRegistrationFlood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := map[string]bool{}
	for range maxRegistrations {
		ids[w.registerClient(loopURI)] = true
	}
	if len(ids) != maxRegistrations || w.grants.version != 0 || w.grants.reads != 0 {
		t.Errorf("%d ids, %d writes, %d reads", len(ids), w.grants.version, w.grants.reads)
	}
	body := `{"redirect_uris":["` + loopURI + `"]}`
	if got := w.send(http.MethodPost, RegisterPath, jsonType, body); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", got.status, got.header)
	}
	other := func(r *http.Request) { r.RemoteAddr = "203.0.113.9:1234" }
	if got := w.send(http.MethodPost, RegisterPath, jsonType, body, other); got.status != http.StatusCreated {
		t.Errorf("from elsewhere: %d", got.status)
	}
	w.clock.Step(time.Minute)
	// A year later the id is still good.
	client := w.registerClient(loopURI)
	w.clock.Step(366 * 24 * time.Hour)
	if _, err := w.Read(t.Context(), question(client), ada.Person); err != nil {
		t.Errorf("a year later: %v", err)
	}
}

// TestThreatRegistrationDenied: one who registers without end takes the registration from nobody behind the same proxy.
func TestThreatRegistrationDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const stranger = 5000
	for range stranger {
		w.send(http.MethodPost, RegisterPath, jsonType, "{}")
	}
	w.registerClient(loopURI)
}

// TestThreatGuessing: of requests for tokens those that fail are counted, and those that succeed are not held up by them.
func TestThreatGuessing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	grant := w.only()
	reads := w.grants.reads
	guess := refreshPrefix + grant.Namespace + "." + grant.Name + ".1.c2VjcmV0.c2lnbmF0dXJl"
	for range maxFailures {
		if got := w.post(TokenPath, refreshing(client, guess)); got.status != http.StatusBadRequest {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := w.post(TokenPath, refreshing(client, guess)); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", got.status, got.header)
	}
	if w.grants.reads != reads {
		t.Errorf("guesses have asked the Kubernetes API %d times", w.grants.reads-reads)
	}
	if w.only().Revoked() {
		t.Error("guesses have ended the grant")
	}
	if got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); got.status != http.StatusOK {
		t.Errorf("the client, from the same address: %d %s", got.status, got.body)
	}
}

// TestThreatTooManyGrants: a person cannot fill the cluster with grants.
func TestThreatTooManyGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	for range maxGrants {
		w.allowed(question(client), bridge.ScopeRead)
	}
	asked, _ := w.Read(t.Context(), question(client), ada.Person)
	if _, err := w.Decide(t.Context(), ada, Decision{Sealed: w.Seal(asked, ada, acme), Allow: true, Most: bridge.ScopeRead}); err == nil {
		t.Error("there is one more")
	}
	// Codes that nobody exchanges leave nothing behind.
	w.clock.Step(unredeemedFor)
	w.Sweep(t.Context())
	if n := len(w.grants.List("")); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestThreatNoKeys: without keys nothing is made, and nothing is good.
func TestThreatNoKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	code := w.allowed(question(client), bridge.ScopeRead)
	w.keys.lasting = ""
	for name, got := range map[string]answer{
		"register": w.send(http.MethodPost, RegisterPath, jsonType, `{"redirect_uris":["`+loopURI+`"]}`),
		"redeem":   w.post(TokenPath, redemption(client, code)),
		"refresh":  w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))),
	} {
		if got.status != http.StatusServiceUnavailable || got.text("error") != temporarily {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if _, err := w.Read(t.Context(), question(client), ada.Person); err == nil {
		t.Error("a client is known without a key")
	}
	// The key comes back, or another one does: what is stored by its hash is good in both cases.
	w.keys.lasting = "another lasting key"
	if got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); got.status != http.StatusOK {
		t.Errorf("with another key: %d %s", got.status, got.body)
	}
}

// TestThreatResponses: no answer with a token is kept, and none reads a cookie.
func TestThreatResponses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tokens := w.connected(bridge.ScopeRead)
	answers := map[string]answer{"tokens": tokens, "failure": w.post(TokenPath, url.Values{})}
	for path := range maps.Keys(w.handlers) {
		answers["preflight "+path] = w.send(http.MethodOptions, path, "", "")
		if got := w.send(http.MethodDelete, path, "", ""); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") == "" {
			t.Errorf("DELETE %s: %d", path, got.status)
		}
	}
	for name, got := range answers {
		if got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("Access-Control-Allow-Credentials") != "" || got.header.Get("Set-Cookie") != "" ||
			got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", name, got.header)
		}
	}
}
