// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestThreatLostPermission verifies that an agent loses a permission when the user does.
func TestThreatLostPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tokens := w.connected(bridge.ScopePublish)
	for _, step := range []struct {
		lost string
		want []bridge.Scope
	}{
		{"", []bridge.Scope{bridge.ScopeRead, bridge.ScopeDraft, bridge.ScopePublish}},
		{"update posts", []bridge.Scope{bridge.ScopeRead}},
		{"create posts", []bridge.Scope{bridge.ScopeRead}},
		{"list posts", nil},
	} {
		delete(w.roles, ada.Person.Name+" "+acme+" "+step.lost)
		caller, err := w.Caller(t.Context(), tokens.text("access_token"))
		if !slices.Equal(caller.Scopes, step.want) || (err == nil) != (step.want != nil) {
			t.Errorf("without the right to %s: %q, %v", step.lost, caller.Scopes, err)
		}
		if err == nil && (caller.Namespace != acme || caller.Author != ada.Person.Name || caller.Agent != "An agent" || caller.Scopes == nil) {
			t.Errorf("the caller is %+v", caller)
		}
	}
}

// TestThreatMoreThanThePerson verifies that an agent needs every permission that the user would need for the same
// action in the web application.
func TestThreatMoreThanThePerson(t *testing.T) {
	t.Parallel()
	read := []bridge.Scope{bridge.ScopeRead}
	for lost, tc := range map[string]struct {
		want   []bridge.Scope
		reason string
	}{
		"list posts":       {nil, "posts are read, and a draft is read before it is written"},
		"list connections": {nil, "accounts are read, and a post names them"},
		"create posts":     {read, "a draft is a post"},
		"update posts":     {read, "drafts are cancelled"},
		"create media":     {read, "files are uploaded"},
	} {
		w := newWorld(t)
		_, tokens := w.connected(bridge.ScopePublish)
		delete(w.roles, ada.Person.Name+" "+acme+" "+lost)
		if caller, err := w.Caller(t.Context(), tokens.text("access_token")); !slices.Equal(caller.Scopes, tc.want) || (err == nil) != (tc.want != nil) {
			t.Errorf("without the right to %s: %q, %v, want %q, since %s", lost, caller.Scopes, err, tc.want, tc.reason)
		}
	}
}

// TestThreatReorderedScopes verifies that the scopes of a grant are a set. A different order or a missing scope grants
// nothing more.
func TestThreatReorderedScopes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scopes []v1alpha1.OAuthScope
		lost   string
		want   string
		reason string
	}{
		"backwards":           {[]v1alpha1.OAuthScope{"publish", "draft", "read"}, "", "read draft publish", "the order of scopes does not matter"},
		"backwards, no posts": {[]v1alpha1.OAuthScope{"publish", "draft", "read"}, "list posts", "", "every scope includes read"},
		"backwards, reader":   {[]v1alpha1.OAuthScope{"publish", "draft", "read"}, "update posts", "read", "a missing permission also removes draft"},
		"only publish":        {[]v1alpha1.OAuthScope{"publish"}, "list posts", "", "reading needs read, which the grant lacks"},
	} {
		w := newWorld(t)
		client, tokens := w.connected(bridge.ScopePublish)
		w.change(func(g *v1alpha1.OAuthGrant) { g.Spec.Scopes = tc.scopes })
		delete(w.roles, ada.Person.Name+" "+acme+" "+tc.lost)
		tokens = w.post(TokenPath, refreshing(client, tokens.text("refresh_token")))
		caller, err := w.Caller(t.Context(), tokens.text("access_token"))
		if got := scopeText(caller.Scopes); got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v, want %q, since %s", name, got, err, tc.want, tc.reason)
		}
	}
}

// TestThreatOtherTeam verifies that a token is valid only in its grant's namespace, and only while that belongs to a
// team.
func TestThreatOtherTeam(t *testing.T) {
	t.Parallel()
	served := true
	w := newWorld(t, func(c *Config) { c.Served = func(string) bool { return served } })
	client, tokens := w.connected(bridge.ScopeRead)
	w.roles.give(ada.Person.Name, beta, reading...)
	// A copy of the grant in another namespace is a different grant.
	copied := w.only()
	copied.Namespace = beta
	_, _ = w.grants.Create(t.Context(), copied)
	caller, err := w.Caller(t.Context(), tokens.text("access_token"))
	if err != nil || caller.Namespace != acme {
		t.Errorf("the token acts in %q: %v", caller.Namespace, err)
	}
	moved := strings.Replace(tokens.text("refresh_token"), acme, beta, 1)
	if got := w.post(TokenPath, refreshing(client, moved)); got.text("error") != invalidGrant {
		t.Errorf("a refresh token of another namespace: %d %s", got.status, got.body)
	}
	served = false
	if w.good(tokens.text("access_token")) || w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))).status == http.StatusOK {
		t.Error("a token of a team that is no longer served was accepted")
	}
}

// TestThreatAudience verifies that a token is valid for only one address.
func TestThreatAudience(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tokens := w.connected(bridge.ScopeRead)
	moved := newWorld(t, func(c *Config) {
		c.SiteURL, c.Keys, c.Grants, c.Access = "https://other.example", w.keys, w.grants, w.roles
	})
	if moved.good(tokens.text("access_token")) {
		t.Error("another site accepted the token")
	}
	for audience, want := range map[string]bool{site + "/mcp": true, "https://other.example/mcp": false, "": false} {
		var content accessContent
		if err := w.keys.Open(purposeAccess, strings.TrimPrefix(tokens.text("access_token"), TokenPrefix), &content); err != nil {
			t.Fatal(err)
		}
		content.Audience = audience
		if got := w.good(TokenPrefix + w.keys.Seal(purposeAccess, content, time.Hour)); got != want {
			t.Errorf("this server's token for %q is valid: %t, want %t", audience, got, want)
		}
	}
	for name, token := range map[string]string{
		"an API key": "hrld_abc_def", "nothing": "", "the prefix": TokenPrefix, "another purpose": TokenPrefix + w.keys.Seal("session", accessContent{Audience: site + "/mcp"}, time.Hour),
		"a refresh token": tokens.text("refresh_token"), "without its prefix": strings.TrimPrefix(tokens.text("access_token"), TokenPrefix),
		"changed": tokens.text("access_token")[:60] + "AAAA",
	} {
		if w.good(token) {
			t.Errorf("%s opens something", name)
		}
	}
	w.clock.Step(accessLife)
	if w.good(tokens.text("access_token")) {
		t.Error("the token is valid for more than an hour")
	}
}

// TestThreatForgedGrant verifies that a grant created with kubectl authorizes nothing, and neither does a copy of one.
func TestThreatForgedGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	forged := w.only()
	stored := forged.DeepCopy()
	forged.Spec.Person.Name, forged.Spec.Scopes = "oidc:admin", []v1alpha1.OAuthScope{"read", "draft", "publish"}
	w.roles.give("oidc:admin", acme, editing...)
	_ = w.grants.Delete(t.Context(), stored)
	made, _ := w.grants.Create(t.Context(), forged)
	if w.good(tokens.text("access_token")) {
		t.Error("a deleted grant's token is valid for a new grant of the same name")
	}
	if got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); got.text("error") != invalidGrant {
		t.Errorf("a refresh token of a deleted grant: %d %s", got.status, got.body)
	}
	// Only Herald can write a status. Even a copied hash does not help, because the token contains the name of the
	// original grant.
	made.Name = "agent-forged"
	made, _ = w.grants.Create(t.Context(), made)
	made.Status = stored.Status
	_, _ = w.grants.UpdateStatus(t.Context(), made)
	renamed := strings.Replace(tokens.text("refresh_token"), stored.Name, made.Name, 1)
	if got := w.post(TokenPath, refreshing(client, renamed)); got.text("error") != invalidGrant {
		t.Errorf("a copied hash: %d %s", got.status, got.body)
	}
}

// TestThreatRevoked verifies that a revoked grant ends immediately, however it was revoked.
func TestThreatRevoked(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, client string, tokens answer){
		"on the page": func(w *world, _ string, _ answer) {
			err := w.RevokeGrant(w.t.Context(), bridge.Caller{Namespace: acme, Author: "herald:link"}, w.only().Name, func(*v1alpha1.OAuthGrant) error { return nil })
			if err != nil || !slices.Contains(w.trail.noted, "herald:link "+string(bridge.ActAgentRevoked)) {
				w.t.Errorf("%v, noted is %q", err, w.trail.noted)
			}
		},
		"deleted": func(w *world, _ string, _ answer) { _ = w.grants.Delete(w.t.Context(), w.only()) },
		"being gone": func(w *world, _ string, _ answer) {
			w.change(func(g *v1alpha1.OAuthGrant) { g.DeletionTimestamp = &metav1.Time{Time: start} })
		},
		"by the access token": func(w *world, _ string, tokens answer) {
			w.mustRevoke(url.Values{"token": {tokens.text("access_token")}, "token_type_hint": {"refresh_token"}})
		},
		"by the refresh token": func(w *world, client string, tokens answer) {
			w.mustRevoke(url.Values{"token": {tokens.text("refresh_token")}, "client_id": {client}})
		},
		"idle for 30 days": func(w *world, _ string, _ answer) { w.clock.Step(idleLife + time.Second) },
	} {
		w := newWorld(t)
		client, tokens := w.connected(bridge.ScopeRead)
		end(w, client, tokens)
		if w.good(tokens.text("access_token")) {
			t.Errorf("%s: the access token is valid", name)
		}
		if got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); got.text("error") != invalidGrant {
			t.Errorf("%s: the refresh token: %d %s", name, got.status, got.body)
		}
	}
}

func (w *world) change(edit func(*v1alpha1.OAuthGrant)) {
	w.t.Helper()
	if _, err := w.grants.write(w.only(), edit); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mustRevoke(form url.Values) {
	w.t.Helper()
	if got := w.post(RevokePath, form); got.status != http.StatusOK {
		w.t.Errorf("revoke: %d %s", got.status, got.body)
	}
	if w.only().Status.RevokedReason != v1alpha1.GrantSignedOff {
		w.t.Errorf("the reason is %q", w.only().Status.RevokedReason)
	}
}

// TestThreatRevokingOthers verifies that other clients' requests revoke nothing and reveal nothing.
func TestThreatRevokingOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tokens := w.connected(bridge.ScopeRead)
	other := w.registerClient(loopURI)
	grant := w.only()
	for name, form := range map[string]url.Values{
		"made up":          {"token": {refreshPrefix + grant.Namespace + "." + grant.Name + ".1.c2VjcmV0.c2lnbmF0dXJl"}},
		"an access token":  {"token": {TokenPrefix + "abc"}},
		"something":        {"token": {"something"}},
		"another client's": {"token": {tokens.text("refresh_token")}, "client_id": {other}},
	} {
		got := w.post(RevokePath, form)
		if want := map[bool]int{true: http.StatusBadRequest, false: http.StatusOK}[name == "another client's"]; got.status != want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if w.only().Revoked() {
		t.Error("a stranger has ended the grant")
	}
}
