// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestThreatRefreshTheft verifies that the second use of a refresh token, by the thief or by the client, ends the
// grant.
func TestThreatRefreshTheft(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// rotations is the number of the client's refreshes after the theft; later is the thief's delay after the last
		// one.
		rotations int
		later     time.Duration
		ends      bool
	}{
		"the next day":       {"the client used it a day ago", 1, 24 * time.Hour, true},
		"after the grace":    {"no client waits that long for a response", 1, grace + time.Millisecond, true},
		"two later":          {"only the last token has a grace period", 2, 0, true},
		"within the grace":   {"the client may not have received the response", 1, grace, false},
		"at the same moment": {"the client may not have received the response", 1, 0, false},
	} {
		w := newWorld(t)
		client, stolen := w.connected(bridge.ScopeRead)
		now := stolen
		for range tc.rotations {
			now = w.post(TokenPath, refreshing(client, now.text("refresh_token")))
		}
		w.clock.Step(tc.later)
		got := w.post(TokenPath, refreshing(client, stolen.text("refresh_token")))
		if ended := w.only().Status.RevokedReason == v1alpha1.GrantReuse; ended != tc.ends || (got.status == http.StatusOK) == tc.ends {
			t.Errorf("%s: %d %s, want an end: %v, since %s", name, got.status, got.body, tc.ends, tc.reason)
		}
		if !tc.ends {
			if got.text("refresh_token") != now.text("refresh_token") {
				t.Errorf("%s: two tokens of one generation exist", name)
			}
			continue
		}
		if !slices.Contains(w.trail.noted, v1alpha1.GrantReuse) {
			t.Errorf("%s: the reuse was not recorded", name)
		}
		if again := w.post(TokenPath, refreshing(client, now.text("refresh_token"))); again.text("error") != invalidGrant || w.good(now.text("access_token")) {
			t.Errorf("%s: the refresh succeeded: %d %s", name, again.status, again.body)
		}
	}
}

// TestThreatRefreshOfOthers verifies that a token or client_id that does not match the grant is rejected, and ends
// nothing.
func TestThreatRefreshOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	other := w.registerClient(loopURI)
	token := tokens.text("refresh_token")
	grant := w.only()
	for name, form := range map[string]map[string][]string{
		"another client":         refreshing(other, token),
		"the client by its hash": refreshing(grant.Spec.Client.ID, token),
		"no client":              refreshing(client, token, set("client_id")),
		"another resource":       refreshing(client, token, set("resource", "https://evil.example/mcp")),
		"the hash":               refreshing(client, hashOf(token)),
		"changed":                refreshing(client, spoiled(token)),
		"a later generation":     refreshing(client, refreshPrefix+grant.Namespace+"."+grant.Name+".2.c2VjcmV0.c2lnbmF0dXJl"),
		"another grant":          refreshing(client, refreshPrefix+grant.Namespace+".agent-other.1.c2VjcmV0.c2lnbmF0dXJl"),
		"a path":                 refreshing(client, refreshPrefix+"..-x.agent/../x.1.a.b"),
		"an access token":        refreshing(client, tokens.text("access_token")),
		"nothing":                refreshing(client, "", set("refresh_token")),
		"parts missing":          refreshing(client, refreshPrefix+grant.Namespace+"."+grant.Name),
		"a generation of zero":   refreshing(client, refreshPrefix+grant.Namespace+"."+grant.Name+".0.a.b"),
		"a generation too large": refreshing(client, refreshPrefix+grant.Namespace+"."+grant.Name+".99999999999999999999.a.b"),
	} {
		if got := w.post(TokenPath, form); got.status == http.StatusOK || got.status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := w.post(TokenPath, refreshing(client, token)); got.status != http.StatusOK {
		t.Errorf("the client itself: %d %s", got.status, got.body)
	}
}

// TestConcurrentRefresh verifies that two concurrent refreshes with the same token return the same new token, and that
// it remains usable.
func TestConcurrentRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	answers := make(chan string)
	for range 2 {
		go func() {
			answers <- w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))).text("refresh_token")
		}()
	}
	one, two := <-answers, <-answers
	if one == "" || one != two || w.only().Status.Refresh.Generation != 2 {
		t.Errorf("got %q and %q", one, two)
	}
	if got := w.post(TokenPath, refreshing(client, one)); got.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}

// TestLives verifies that a grant lives as long as it is used, up to half a year.
func TestLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	for age := time.Duration(0); age+idleLife < absoluteLife; age += idleLife {
		w.clock.Step(idleLife)
		w.keys.Sealer = newWorld(t).keys.Sealer // the sealing keys are rotated in between
		if tokens = w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); tokens.status != http.StatusOK {
			t.Fatalf("after %s: %d %s", age+idleLife, tokens.status, tokens.body)
		}
	}
	w.clock.Step(idleLife)
	if got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); got.text("error") != invalidGrant {
		t.Errorf("after half a year: %d %s", got.status, got.body)
	}
	w.Sweep(t.Context())
	if len(w.grants.List("")) != 1 {
		t.Error("users cannot see the grant's end")
	}
	w.clock.Step(endedRetention)
	w.Sweep(t.Context())
	if len(w.grants.List("")) != 0 {
		t.Error("the grant is never removed")
	}
	// The admission policies allow no other deletion.
	if last := w.grants.removed[0]; last.RevokedAt == nil || last.RevokedReason != v1alpha1.GrantExpired {
		t.Errorf("the removed grant's status is not final: %+v", last)
	}
}

// TestGrantUnknownToReplica verifies that a token is valid for a few seconds at a replica that has not seen its grant
// yet.
func TestGrantUnknownToReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tokens := w.connected(bridge.ScopeRead)
	w.grants.forgetful = true
	if !w.good(tokens.text("access_token")) {
		t.Error("a new token is invalid")
	}
	w.clock.Step(fresh)
	if w.good(tokens.text("access_token")) {
		t.Error("a token without a grant in memory remains valid")
	}
}

// TestReplicaStarts verifies that a replica whose cache has not synced rejects no token that may be valid. A client
// would discard it.
func TestReplicaStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	w.clock.Step(accessLife / 2)
	var early *bridge.Error
	w.keys.missing = true
	if _, err := w.Caller(t.Context(), tokens.text("access_token")); !errors.As(err, &early) || early.Code != bridge.CodeRateLimited {
		t.Errorf("a token that cannot be read yet: %v", err)
	}
	if got := w.post(RevokePath, url.Values{"token": {tokens.text("access_token")}}); got.status != http.StatusServiceUnavailable {
		t.Errorf("an unverifiable token was revoked, or the response is %d %s", got.status, got.body)
	}
	w.keys.missing = false
	w.grants.forgetful, w.grants.starting = true, true
	for range maxReads {
		if !w.good(tokens.text("access_token")) {
			t.Fatal("a valid token was rejected")
		}
	}
	reads := w.grants.reads
	var known *bridge.Error
	if _, err := w.Caller(t.Context(), tokens.text("access_token")); !errors.As(err, &known) || known.Code != bridge.CodeRateLimited || w.grants.reads != reads {
		t.Errorf("one call more: %v, after %d reads more", err, w.grants.reads-reads)
	}
	// A refresh token that was signed with another key is recognized only by its grant.
	w.keys.lasting = "another lasting key"
	form := refreshing(client, tokens.text("refresh_token"))
	for path, form := range map[string]url.Values{TokenPath: form, RevokePath: {"token": form["refresh_token"]}} {
		if got := w.post(path, form); got.status != http.StatusServiceUnavailable || got.text("error") != temporarily || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	w.clock.Step(time.Minute)
	_ = w.grants.Delete(t.Context(), w.only())
	if w.good(tokens.text("access_token")) {
		t.Error("a token of a deleted grant is valid")
	}
	w.grants.forgetful, w.grants.starting = false, false
	if got := w.post(TokenPath, form); got.text("error") != invalidGrant {
		t.Errorf("once the grants are read: %d %s", got.status, got.body)
	}
}
