// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/session"
)

// TestThreatRegistrationFlood verifies that a registration is not stored, is rate limited, and does not expire.
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
		t.Errorf("a registration above the limit: %d %v", got.status, got.header)
	}
	other := func(r *http.Request) { r.RemoteAddr = "203.0.113.9:1234" }
	if got := w.send(http.MethodPost, RegisterPath, jsonType, body, other); got.status != http.StatusCreated {
		t.Errorf("from elsewhere: %d", got.status)
	}
	w.clock.Step(time.Minute)
	// The id is still valid a year later.
	client := w.registerClient(loopURI)
	w.clock.Step(366 * 24 * time.Hour)
	if _, err := w.Read(t.Context(), question(client), ada.Person); err != nil {
		t.Errorf("a year later: %v", err)
	}
}

// TestThreatRegistrationDenied verifies that endless registrations do not block other clients behind the same proxy.
func TestThreatRegistrationDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const stranger = 5000
	for range stranger {
		w.send(http.MethodPost, RegisterPath, jsonType, "{}")
	}
	w.registerClient(loopURI)
}

// TestThreatGuessing verifies that only failed token requests count against the limit, and that the limit does not
// delay successful ones.
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
		t.Errorf("a request above the limit: %d %v", got.status, got.header)
	}
	if w.grants.reads != reads {
		t.Errorf("guessed tokens caused %d requests to the Kubernetes API", w.grants.reads-reads)
	}
	if w.only().Revoked() {
		t.Error("guesses have ended the grant")
	}
	if got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); got.status != http.StatusOK {
		t.Errorf("the client, from the same address: %d %s", got.status, got.body)
	}
}

// TestThreatRefreshFlood verifies that the tokens of one grant, valid or not, cause a limited number of reads and
// writes per minute. Other grants, and requests that end the grant, are not delayed.
func TestThreatRefreshFlood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, first := w.connected(bridge.ScopeRead)
	other, others := w.connected(bridge.ScopeRead)
	var last, got answer
	reads, version := w.grants.reads, w.grants.version
	for got = first; got.status == http.StatusOK; got = w.post(TokenPath, refreshing(client, last.text("refresh_token"))) {
		if last = got; w.grants.version-version > maxReads {
			t.Fatal("refreshes have no end")
		}
	}
	if got.status != http.StatusTooManyRequests || got.text("error") != temporarily || got.header.Get("Retry-After") != "2" || w.grants.reads-reads > maxReads {
		t.Errorf("after %d reads: %d %v %s", w.grants.reads-reads, got.status, got.header, got.body)
	}
	if answer := w.post(TokenPath, refreshing(other, others.text("refresh_token"))); answer.status != http.StatusOK {
		t.Errorf("another grant: %d %s", answer.status, answer.body)
	}
	w.clock.Step(2 * time.Second)
	if got = w.post(TokenPath, refreshing(client, last.text("refresh_token"))); got.status != http.StatusOK {
		t.Errorf("after Retry-After: %d %s", got.status, got.body)
	}
	// The theft is detected however fast the thief refreshes.
	if answer := w.post(TokenPath, refreshing(client, first.text("refresh_token"))); answer.text("error") != invalidGrant || !slices.Contains(w.trail.noted, v1alpha1.GrantReuse) {
		t.Errorf("the client, with the token that was replaced: %d %s", answer.status, answer.body)
	}
	for name, send := range map[string]func() answer{
		"refreshing with a dead token":     func() answer { return w.post(TokenPath, refreshing(client, first.text("refresh_token"))) },
		"refreshing with the last token":   func() answer { return w.post(TokenPath, refreshing(client, got.text("refresh_token"))) },
		"revoking by a dead refresh token": func() answer { return w.post(RevokePath, url.Values{"token": {first.text("refresh_token")}}) },
		"revoking by an access token":      func() answer { return w.post(RevokePath, url.Values{"token": {first.text("access_token")}}) },
	} {
		reads := w.grants.reads
		for range 3 * maxReads {
			send()
		}
		if got := send(); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" || w.grants.reads-reads > maxReads {
			t.Errorf("%s: %d after %d reads", name, got.status, w.grants.reads-reads)
		}
	}
}

// TestThreatCodeFlood verifies that the holder of a code and its verifier causes a limited number of reads of the
// Kubernetes API.
func TestThreatCodeFlood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	code := w.allowed(question(client), bridge.ScopeRead)
	reads := w.grants.reads
	// An attacker with only the code does not use up the client's limit.
	for range 2 * maxReads {
		w.post(TokenPath, redemption(client, code, set("code_verifier", verifier+"x")))
	}
	if got := w.post(TokenPath, redemption(client, code)); got.status != http.StatusOK || w.grants.reads-reads != 1 {
		t.Errorf("the client: %d %s, after %d reads", got.status, got.body, w.grants.reads-reads)
	}
	for range 2 * maxReads {
		w.post(TokenPath, redemption(client, code))
	}
	if got := w.post(TokenPath, redemption(client, code)); got.status != http.StatusTooManyRequests || w.grants.reads-reads > 2*maxReads {
		t.Errorf("%d after %d reads", got.status, w.grants.reads-reads)
	}
}

// TestThreatOtherClients verifies that other clients' requests from the same address do not keep a client from learning
// that it must authorize again.
func TestThreatOtherClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	for range 2 * maxFailures {
		w.post(TokenPath, refreshing(client, "made up"))
		w.post(TokenPath, url.Values{"grant_type": {"refresh_token"}})
	}
	w.change(func(g *v1alpha1.OAuthGrant) { g.Spec.Revoked = true })
	for name, tc := range map[string]struct {
		form url.Values
		want string
	}{
		"a revoked grant":        {refreshing(client, tokens.text("refresh_token")), invalidGrant},
		"another client's token": {refreshing(w.registerClient(loopURI), tokens.text("refresh_token")), invalidGrant},
		"an invalid form":        {url.Values{"client_id": {client}}, invalidRequest},
	} {
		if got := w.post(TokenPath, tc.form); got.status != http.StatusBadRequest || got.text("error") != tc.want {
			t.Errorf("%s: %d %s, want %s", name, got.status, got.body, tc.want)
		}
	}
}

// TestThreatTooManyGrants verifies that a user cannot fill the cluster with grants, nor use up a team's limit.
func TestThreatTooManyGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	for range maxGrantsOfPerson {
		w.allowed(question(client), bridge.ScopeRead)
	}
	if got := w.oneMore(ada, client); !strings.Contains(got, "Agents page") {
		t.Errorf("a grant above the user's limit: %q", got)
	}
	w.roles.give(eve.Person.Name, acme, reading...)
	if got := w.oneMore(eve, client); got != "" {
		t.Errorf("one of another: %s", got)
	}
	for i := range maxGrants - maxGrantsOfPerson - 1 {
		who := session.Session{ID: "another", Person: access.Person{Name: "oidc:" + strconv.Itoa(i/maxGrantsOfPerson)}}
		w.roles.give(who.Person.Name, acme, reading...)
		if got := w.oneMore(who, client); got != "" {
			t.Fatalf("grant %d of another user: %s", i, got)
		}
	}
	if got := w.oneMore(eve, client); !strings.Contains(got, "The team has too many") {
		t.Errorf("a grant above the team's limit: %q", got)
	}
	// An ended grant makes room.
	for _, grant := range w.grants.List(acme) {
		if grant.Spec.Person.Name == eve.Person.Name {
			grant.Spec.Revoked = true
			_, _ = w.grants.Update(t.Context(), grant, grant)
		}
	}
	if got := w.oneMore(eve, client); got != "" {
		t.Errorf("after one was revoked: %s", got)
	}
	// Nothing remains of codes that are not exchanged.
	w.clock.Step(unredeemedFor)
	w.Sweep(t.Context())
	if n := len(w.grants.List("")); n != 0 {
		t.Errorf("%d grants remain", n)
	}
}

// oneMore lets a user allow a client to read, and returns the message of the error page; empty if there is no error.
func (w *world) oneMore(of session.Session, client string) string {
	w.t.Helper()
	asked, err := w.Read(w.t.Context(), question(client), of.Person)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err = w.Decide(w.t.Context(), of, Decision{Sealed: w.Seal(asked, of, acme), Allow: true, Most: bridge.ScopeRead}); err == nil {
		return ""
	}
	var shown *PageError
	if !errors.As(err, &shown) {
		w.t.Fatal(err)
	}
	return shown.Error()
}

// TestThreatAllowAndRevoke verifies that there is no limit on allowing and revoking, but that the number of retained
// ended grants is limited.
func TestThreatAllowAndRevoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 * maxGrantsOfPerson {
		w.clock.Step(time.Second)
		w.connected(bridge.ScopeRead)
		for _, grant := range w.grants.List(acme) {
			grant.Spec.Revoked = true
			_, _ = w.grants.Update(t.Context(), grant, grant)
		}
		if n := len(w.grants.List(acme)); n > maxGrantsOfPerson {
			t.Fatalf("%d grants remain after %d", n, i+1)
		}
	}
	for _, grant := range w.grants.List(acme) {
		if age := w.clock.Now().Sub(grant.CreationTimestamp.Time); age > maxGrantsOfPerson*time.Second {
			t.Errorf("a grant from %s ago remains, so an older one was not deleted first", age)
		}
	}
}

// TestRevokedByPerson verifies that a grant that a user has revoked, on the page or with kubectl, is retained for
// seven days.
func TestRevokedByPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.connected(bridge.ScopeRead)
	w.change(func(g *v1alpha1.OAuthGrant) { g.Spec.Revoked = true })
	w.Sweep(t.Context())
	noted := w.only()
	if at := noted.Status.RevokedAt; at == nil || !at.Time.Equal(start) || noted.Status.RevokedReason != "" {
		t.Errorf("got the status %+v", noted.Status)
	}
	w.clock.Step(endedRetention - time.Second)
	w.Sweep(t.Context())
	if w.only().ResourceVersion != noted.ResourceVersion {
		t.Error("the use was recorded twice")
	}
	w.clock.Step(time.Second)
	w.Sweep(t.Context())
	if n := len(w.grants.List("")); n != 0 {
		t.Errorf("%d grants remain", n)
	}
}

// TestThreatNoKeys verifies that without keys, nothing is issued and nothing is valid.
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
		t.Error("a client was accepted without keys")
	}
	// The key is restored, or replaced: a token whose hash is stored is valid in both cases.
	w.keys.lasting = "another lasting key"
	if got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); got.status != http.StatusOK {
		t.Errorf("with another key: %d %s", got.status, got.body)
	}
}

// TestThreatResponses verifies that no response with a token is cacheable, and no endpoint reads a cookie.
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
