// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/web/session"
)

// TestThreatCodeTheft: who has the code alone gets nothing by it, and takes nothing from the client.
func TestThreatCodeTheft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, other := w.registerClient(loopURI, "http://127.0.0.1/other"), w.registerClient(loopURI)
	code := w.allowed(question(client), bridge.ScopeRead)
	for name, tc := range map[string]struct {
		form url.Values
		want string
	}{
		"without the verifier":        {redemption(client, code, set("code_verifier")), invalidGrant},
		"with another verifier":       {redemption(client, code, set("code_verifier", verifier+"x")), invalidGrant},
		"with the challenge":          {redemption(client, code, set("code_verifier", challengeOf(verifier))), invalidGrant},
		"with a short verifier":       {redemption(client, code, set("code_verifier", "short")), invalidGrant},
		"as another client":           {redemption(other, code), invalidGrant},
		"as no client":                {redemption(client, code, set("client_id")), invalidClient},
		"for another address":         {redemption(client, code, set("redirect_uri", "http://127.0.0.1/other")), invalidGrant},
		"for no address":              {redemption(client, code, set("redirect_uri")), invalidGrant},
		"changed":                     {redemption(client, spoiled(code)), invalidGrant},
		"another text of ours":        {redemption(client, w.keys.Seal(purposeConsent, map[string]string{}, time.Hour)), invalidGrant},
		"for another resource":        {redemption(client, code, set("resource", "https://evil.example/mcp")), invalidTarget},
		"by another grant type":       {redemption(client, code, set("grant_type", "password")), unsupportedGrant},
		"by no grant type":            {redemption(client, code, set("grant_type")), invalidRequest},
		"with a parameter twice":      {redemption(client, code, set("code", code, code)), invalidRequest},
		"as a refresh":                {redemption(client, code, set("grant_type", "refresh_token"), set("refresh_token", code)), invalidGrant},
		"for two resources, one ours": {redemption(client, code, set("resource", site+"/mcp", "https://evil.example")), invalidTarget},
	} {
		if got := w.post(TokenPath, tc.form); got.text("error") != tc.want || got.text("access_token") != "" {
			t.Errorf("%s: %d %s, want %s", name, got.status, got.body, tc.want)
		}
	}
	if got := w.post(TokenPath, redemption(client, code, set("resource", site+"/mcp/"))); got.status != http.StatusOK {
		t.Errorf("the client itself: %d %s", got.status, got.body)
	}
}

func TestThreatCodeReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	code := w.allowed(question(client), bridge.ScopePublish)
	first := w.post(TokenPath, redemption(client, code))
	if !w.good(first.text("access_token")) {
		t.Fatal("the first use is good")
	}
	// Without the verifier a second use tells nothing, and ends nothing.
	w.post(TokenPath, redemption(client, code, set("code_verifier", verifier+"x")))
	if !w.good(first.text("access_token")) {
		t.Error("a stranger with the code alone can end the grant")
	}
	if got := w.post(TokenPath, redemption(client, code)); got.text("error") != invalidGrant {
		t.Errorf("the second use: %d %s", got.status, got.body)
	}
	if w.good(first.text("access_token")) || w.post(TokenPath, refreshing(client, first.text("refresh_token"))).status == http.StatusOK {
		t.Error("what the first use brought is still good")
	}
	if w.only().Status.RevokedReason != v1alpha1.GrantReplay || !slices.Contains(w.trail.noted, v1alpha1.GrantReplay) {
		t.Errorf("it is not noted: %q", w.trail.noted)
	}
	if got := w.post(TokenPath, redemption(client, code)); got.text("error") != invalidGrant {
		t.Errorf("the third use: %d %s", got.status, got.body)
	}
}

// TestThreatCodeOfDeletedGrant: deleting a grant must not open its code again.
func TestThreatCodeOfDeletedGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	code := w.allowed(question(client), bridge.ScopeRead)
	w.post(TokenPath, redemption(client, code))
	grant := w.only()
	_ = w.grants.Delete(t.Context(), grant)
	if got := w.post(TokenPath, redemption(client, code)); got.text("error") != invalidGrant {
		t.Errorf("after the grant was deleted: %d %s", got.status, got.body)
	}
	// One of the same name, made by hand, is another.
	_, _ = w.grants.Create(t.Context(), grant)
	if got := w.post(TokenPath, redemption(client, code)); got.text("error") != invalidGrant {
		t.Errorf("after one of its name was made: %d %s", got.status, got.body)
	}
}

func TestThreatOldCode(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]int{59 * time.Second: http.StatusOK, time.Minute: http.StatusBadRequest} {
		w := newWorld(t)
		client := w.registerClient(loopURI)
		code := w.allowed(question(client), bridge.ScopeRead)
		w.clock.Step(after)
		if got := w.post(TokenPath, redemption(client, code)); got.status != want {
			t.Errorf("after %s: %d %s, want %d", after, got.status, got.body, want)
		}
	}
}

// TestThreatDowngrade: nothing but S256, and no way round it.
func TestThreatDowngrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	for name, tc := range map[string]struct {
		query url.Values
		want  string
	}{
		"no challenge":       {question(client, set("code_challenge")), invalidRequest},
		"no method":          {question(client, set("code_challenge_method")), invalidRequest},
		"plain":              {question(client, set("code_challenge_method", "plain")), invalidRequest},
		"s256":               {question(client, set("code_challenge_method", "s256")), invalidRequest},
		"short challenge":    {question(client, set("code_challenge", "abc")), invalidRequest},
		"padded challenge":   {question(client, set("code_challenge", challengeOf(verifier)[:42]+"=")), invalidRequest},
		"two challenges":     {question(client, set("code_challenge", challengeOf(verifier), challengeOf("x"))), invalidRequest},
		"implicit":           {question(client, set("response_type", "token")), unsupportedResponse},
		"hybrid":             {question(client, set("response_type", "code id_token")), unsupportedResponse},
		"no response type":   {question(client, set("response_type")), invalidRequest},
		"fragment":           {question(client, set("response_mode", "fragment")), invalidRequest},
		"form_post":          {question(client, set("response_mode", "form_post")), invalidRequest},
		"request object":     {question(client, set("request", "eyJhbGciOiJub25lIn0.e30.")), invalidRequest},
		"request by address": {question(client, set("request_uri", "https://evil.example/r")), invalidRequest},
		"two states":         {question(client, set("state", "a", "b")), invalidRequest},
		"unknown scope":      {question(client, set("scope", "admin")), invalidScope},
		"other resource":     {question(client, set("resource", "https://evil.example/mcp")), invalidTarget},
		"resource of REST":   {question(client, set("resource", site+"/api/v1")), invalidTarget},
		"one of two":         {question(client, set("resource", site+"/mcp", "https://evil.example")), invalidTarget},
		"long state":         {question(client, set("state", strings.Repeat("s", maxState+1))), invalidRequest},
	} {
		_, err := w.Read(t.Context(), tc.query, ada.Person)
		var refused *Refused
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, want that the client hears of it", name, err)
			continue
		}
		got := queryOf(t, refused.Location)
		if !strings.HasPrefix(refused.Location, loopURI+"?") || got.Get("error") != tc.want || got.Get("iss") != site || got.Get("error_description") == "" {
			t.Errorf("%s: %s, want %s", name, refused.Location, tc.want)
		}
		if state := tc.query["state"]; len(state) == 1 && len(state[0]) <= maxState && got.Get("state") != state[0] {
			t.Errorf("%s: the state does not come back: %s", name, refused.Location)
		}
	}
}

// TestThreatMixUp: each answer names its issuer, which is the one of the metadata, letter by letter.
func TestThreatMixUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient("https://agent.example/cb?of=herald")
	query := question(client, set("redirect_uri", "https://agent.example/cb?of=herald"))
	asked, err := w.Read(t.Context(), query, ada.Person)
	if err != nil {
		t.Fatal(err)
	}
	for _, allow := range []bool{true, false} {
		location, err := w.Decide(t.Context(), ada, Decision{Sealed: w.Seal(asked, ada, acme), Allow: allow, Most: bridge.ScopeRead})
		if err != nil {
			t.Fatal(err)
		}
		got := queryOf(t, location)
		if got.Get("iss") != site || got.Get("state") != "a state" || got.Get("of") != "herald" || got.Has("code") != allow {
			t.Errorf("allowed %v: %s", allow, location)
		}
		if !allow && got.Get("error") != accessDenied {
			t.Errorf("denied: %s", location)
		}
	}
	if metadata := w.send(http.MethodGet, ServerMetadataPath, "", ""); metadata.text("issuer") != site {
		t.Errorf("the issuer is %q", metadata.text("issuer"))
	}
}

// TestThreatFixation: what was shown to one session, another cannot send, nor anything else in its place.
func TestThreatFixation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	w.roles.give(eve.Person.Name, acme, "list posts", "create posts", "update posts")
	asked, err := w.Read(t.Context(), question(client), ada.Person)
	if err != nil {
		t.Fatal(err)
	}
	sealed := w.Seal(asked, ada, acme)
	code := w.allowed(question(client), bridge.ScopeRead)
	again := session.Session{ID: "another-session-of-ada", Person: ada.Person}
	for name, tc := range map[string]struct {
		of session.Session
		d  Decision
	}{
		"of another person":   {eve, Decision{Sealed: sealed, Allow: true, Most: bridge.ScopeRead}},
		"of another sign-in":  {again, Decision{Sealed: sealed, Allow: true, Most: bridge.ScopeRead}},
		"a denial of another": {eve, Decision{Sealed: sealed}},
		"changed":             {ada, Decision{Sealed: spoiled(sealed), Allow: true, Most: bridge.ScopeRead}},
		"nothing":             {ada, Decision{Allow: true, Most: bridge.ScopeRead}},
		"a code":              {ada, Decision{Sealed: code, Allow: true, Most: bridge.ScopeRead}},
	} {
		location, err := w.Decide(t.Context(), tc.of, tc.d)
		var shown *PageError
		if !errors.As(err, &shown) || location != "" {
			t.Errorf("%s: %q, %v", name, location, err)
		}
	}
	w.clock.Step(consentLife)
	if _, err := w.Decide(t.Context(), ada, Decision{Sealed: sealed, Allow: true, Most: bridge.ScopeRead}); err == nil {
		t.Error("a page that was open for too long is taken")
	}
}

// TestThreatEscalation: nobody allows, asks or refreshes more than there is.
func TestThreatEscalation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	w.roles.give(eve.Person.Name, acme, "list posts")
	for name, tc := range map[string]struct {
		of        session.Session
		scope     string
		namespace string
		most      bridge.Scope
		want      string
	}{
		"all":                         {ada, "read draft publish", acme, bridge.ScopePublish, "read draft publish"},
		"less than asked":             {ada, "publish", acme, bridge.ScopeRead, "read"},
		"without a scope, all":        {ada, "", acme, bridge.ScopePublish, "read draft publish"},
		"more than asked":             {ada, "read", acme, bridge.ScopeDraft, ""},
		"more than may":               {eve, "publish", acme, bridge.ScopeDraft, ""},
		"what may":                    {eve, "publish", acme, bridge.ScopeRead, "read"},
		"a team of others":            {ada, "publish", beta, bridge.ScopeRead, ""},
		"a namespace of no team":      {ada, "publish", "kube-system", bridge.ScopeRead, ""},
		"a scope that there is not":   {ada, "publish", acme, "admin", ""},
		"several in place of one":     {ada, "publish", acme, "read publish", ""},
		"none":                        {ada, "publish", acme, "", ""},
		"others beside are no matter": {ada, "openid offline_access draft", acme, bridge.ScopeDraft, "read draft"},
	} {
		w.roles.give(ada.Person.Name, "kube-system", "list posts", "create posts", "update posts")
		asked, err := w.Read(t.Context(), question(client, set("scope", tc.scope)), tc.of.Person)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		location, err := w.Decide(t.Context(), tc.of, Decision{Sealed: w.Seal(asked, tc.of, tc.namespace), Allow: true, Most: tc.most})
		if tc.want == "" {
			if err == nil || location != "" {
				t.Errorf("%s: %s", name, location)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := w.post(TokenPath, redemption(client, queryOf(t, location).Get("code"))); got.text("scope") != tc.want {
			t.Errorf("%s: %s, want %q", name, got.body, tc.want)
		}
	}
}

// TestThreatRefreshScope: a refresh brings the same or less.
func TestThreatRefreshScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeDraft)
	for _, step := range []struct{ scope, want, problem string }{
		{"publish", "", invalidScope}, {"admin", "", invalidScope}, {"read", "read", ""}, {"", "read draft", ""}, {"read draft", "read draft", ""},
	} {
		got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"), set("scope", step.scope)))
		if got.text("scope") != step.want || got.text("error") != step.problem {
			t.Errorf("%q: %d %s", step.scope, got.status, got.body)
		}
		if got.status == http.StatusOK {
			tokens = got
		}
	}
}

// TestThreatLostRight: what the person may no longer do, the agent may not either.
func TestThreatLostRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tokens := w.connected(bridge.ScopePublish)
	for _, step := range []struct {
		lost string
		want []bridge.Scope
	}{
		{"", []bridge.Scope{bridge.ScopeRead, bridge.ScopeDraft, bridge.ScopePublish}},
		{"update posts", []bridge.Scope{bridge.ScopeRead, bridge.ScopeDraft}},
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

// TestThreatOtherTeam: a token is good in the namespace of its grant, as long as that is a team's.
func TestThreatOtherTeam(t *testing.T) {
	t.Parallel()
	served := true
	w := newWorld(t, func(c *Config) { c.Served = func(string) bool { return served } })
	client, tokens := w.connected(bridge.ScopeRead)
	w.roles.give(ada.Person.Name, beta, "list posts")
	// The same grant under the same name elsewhere is another one.
	copied := w.only()
	copied.Namespace = beta
	_, _ = w.grants.Create(t.Context(), copied)
	caller, err := w.Caller(t.Context(), tokens.text("access_token"))
	if err != nil || caller.Namespace != acme {
		t.Errorf("it acts in %q: %v", caller.Namespace, err)
	}
	moved := strings.Replace(tokens.text("refresh_token"), acme, beta, 1)
	if got := w.post(TokenPath, refreshing(client, moved)); got.text("error") != invalidGrant {
		t.Errorf("a refresh token of another namespace: %d %s", got.status, got.body)
	}
	served = false
	if w.good(tokens.text("access_token")) || w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))).status == http.StatusOK {
		t.Error("a team that is not served any more is acted for")
	}
}

// TestThreatAudience: a token is good for one address alone.
func TestThreatAudience(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tokens := w.connected(bridge.ScopeRead)
	moved := newWorld(t, func(c *Config) {
		c.SiteURL, c.Keys, c.Grants, c.Access = "https://other.example", w.keys, w.grants, w.roles
	})
	if moved.good(tokens.text("access_token")) {
		t.Error("another site takes it")
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
		t.Error("it is good for more than an hour")
	}
}

// TestThreatForgedGrant: a grant that somebody makes with kubectl opens nothing, and neither does a copy of one.
func TestThreatForgedGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, tokens := w.connected(bridge.ScopeRead)
	forged := w.only()
	stored := forged.DeepCopy()
	forged.Spec.Person.Name, forged.Spec.Scopes = "oidc:admin", []v1alpha1.OAuthScope{"read", "draft", "publish"}
	w.roles.give("oidc:admin", acme, "list posts", "create posts", "update posts")
	_ = w.grants.Delete(t.Context(), stored)
	made, _ := w.grants.Create(t.Context(), forged)
	if w.good(tokens.text("access_token")) {
		t.Error("a token of a deleted grant is good for one of the same name")
	}
	if got := w.post(TokenPath, refreshing(client, tokens.text("refresh_token"))); got.text("error") != invalidGrant {
		t.Errorf("a refresh token of a deleted grant: %d %s", got.status, got.body)
	}
	// Nobody but Herald writes a status. A hash that was copied there all the same is that of a token which names its own grant.
	made.Name = "agent-forged"
	made, _ = w.grants.Create(t.Context(), made)
	made.Status = stored.Status
	_, _ = w.grants.UpdateStatus(t.Context(), made)
	renamed := strings.Replace(tokens.text("refresh_token"), stored.Name, made.Name, 1)
	if got := w.post(TokenPath, refreshing(client, renamed)); got.text("error") != invalidGrant {
		t.Errorf("a copied hash: %d %s", got.status, got.body)
	}
}

// TestThreatRevoked: a grant that anyone has ended is over at once, whichever way.
func TestThreatRevoked(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, client string, tokens answer){
		"on the page": func(w *world, _ string, _ answer) {
			err := w.End(w.t.Context(), bridge.Caller{Namespace: acme, Author: "herald:link"}, w.only().Name, func(*v1alpha1.OAuthGrant) error { return nil })
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
			t.Errorf("%s: the access token is good", name)
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

// TestThreatRevokingOthers: what strangers send ends nothing, and tells them nothing.
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
