// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/session"
)

// TestThreatCodeTheft verifies that an attacker with only the code gets no tokens, and does not affect the client.
func TestThreatCodeTheft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, other := w.registerClient(loopURI, "http://127.0.0.1/other"), w.registerClient(loopURI)
	code := w.allowed(question(client), bridge.ScopeRead)
	for name, tc := range map[string]struct {
		form url.Values
		want string
	}{
		"without the verifier":                      {redemption(client, code, set("code_verifier")), invalidGrant},
		"with another verifier":                     {redemption(client, code, set("code_verifier", verifier+"x")), invalidGrant},
		"with the challenge":                        {redemption(client, code, set("code_verifier", challengeOf(verifier))), invalidGrant},
		"with a short verifier":                     {redemption(client, code, set("code_verifier", "short")), invalidGrant},
		"another client redeems the code":           {redemption(other, code), invalidGrant},
		"without a client":                          {redemption(client, code, set("client_id")), invalidClient},
		"for another address":                       {redemption(client, code, set("redirect_uri", "http://127.0.0.1/other")), invalidGrant},
		"changed":                                   {redemption(client, spoiled(code)), invalidGrant},
		"another sealed text of the server":         {redemption(client, w.keys.Seal(purposeConsent, map[string]string{}, time.Hour)), invalidGrant},
		"for another resource":                      {redemption(client, code, set("resource", "https://evil.example/mcp")), invalidTarget},
		"by another grant type":                     {redemption(client, code, set("grant_type", "password")), unsupportedGrant},
		"without a grant type":                      {redemption(client, code, set("grant_type")), invalidRequest},
		"with a parameter twice":                    {redemption(client, code, set("code", code, code)), invalidRequest},
		"the code is used as a refresh token":       {redemption(client, code, set("grant_type", "refresh_token"), set("refresh_token", code)), invalidGrant},
		"for two resources, only one of them valid": {redemption(client, code, set("resource", site+"/mcp", "https://evil.example")), invalidTarget},
	} {
		if got := w.post(TokenPath, tc.form); got.text("error") != tc.want || got.text("access_token") != "" {
			t.Errorf("%s: %d %s, want %s", name, got.status, got.body, tc.want)
		}
	}
	if got := w.post(TokenPath, redemption(client, code, set("resource", site+"/mcp/", site+"/mcp/v2"))); got.status != http.StatusOK {
		t.Errorf("the client itself: %d %s", got.status, got.body)
	}
	// OAuth 2.1 omits redirect_uri here.
	code = w.allowed(question(client), bridge.ScopeRead)
	if got := w.post(TokenPath, redemption(client, code, set("redirect_uri"))); got.status != http.StatusOK {
		t.Errorf("a client of OAuth 2.1: %d %s", got.status, got.body)
	}
}

func TestThreatCodeReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	code := w.allowed(question(client), bridge.ScopePublish)
	first := w.post(TokenPath, redemption(client, code))
	if !w.good(first.text("access_token")) {
		t.Fatal("the first exchange failed")
	}
	// Without the verifier a second use reveals nothing, and ends nothing.
	w.post(TokenPath, redemption(client, code, set("code_verifier", verifier+"x")))
	if !w.good(first.text("access_token")) {
		t.Error("a code without its verifier can revoke the grant")
	}
	if got := w.post(TokenPath, redemption(client, code)); got.text("error") != invalidGrant {
		t.Errorf("the second use: %d %s", got.status, got.body)
	}
	if w.good(first.text("access_token")) || w.post(TokenPath, refreshing(client, first.text("refresh_token"))).status == http.StatusOK {
		t.Error("the first exchange's token is still valid")
	}
	if w.only().Status.RevokedReason != v1alpha1.GrantReplay || !slices.Contains(w.trail.noted, v1alpha1.GrantReplay) {
		t.Errorf("the reuse was not logged: %q", w.trail.noted)
	}
	if got := w.post(TokenPath, redemption(client, code)); got.text("error") != invalidGrant {
		t.Errorf("the third use: %d %s", got.status, got.body)
	}
}

// TestThreatCodeOfDeletedGrant verifies that deleting a grant does not make its code valid again.
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
	// A manually created grant with the same name is a different grant.
	_, _ = w.grants.Create(t.Context(), grant)
	if got := w.post(TokenPath, redemption(client, code)); got.text("error") != invalidGrant {
		t.Errorf("after a new grant of the same name: %d %s", got.status, got.body)
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

// TestThreatDowngrade verifies that only S256 is accepted.
func TestThreatDowngrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	for name, tc := range map[string]struct {
		query url.Values
		want  string
	}{
		"no challenge":              {question(client, set("code_challenge")), invalidRequest},
		"no method":                 {question(client, set("code_challenge_method")), invalidRequest},
		"plain":                     {question(client, set("code_challenge_method", "plain")), invalidRequest},
		"s256":                      {question(client, set("code_challenge_method", "s256")), invalidRequest},
		"short challenge":           {question(client, set("code_challenge", "abc")), invalidRequest},
		"padded challenge":          {question(client, set("code_challenge", challengeOf(verifier)[:42]+"=")), invalidRequest},
		"two challenges":            {question(client, set("code_challenge", challengeOf(verifier), challengeOf("x"))), invalidRequest},
		"implicit":                  {question(client, set("response_type", "token")), unsupportedResponse},
		"hybrid":                    {question(client, set("response_type", "code id_token")), unsupportedResponse},
		"a missing response type":   {question(client, set("response_type")), invalidRequest},
		"fragment":                  {question(client, set("response_mode", "fragment")), invalidRequest},
		"form_post":                 {question(client, set("response_mode", "form_post")), invalidRequest},
		"request object":            {question(client, set("request", "eyJhbGciOiJub25lIn0.e30.")), invalidRequest},
		"a request by URI":          {question(client, set("request_uri", "https://evil.example/r")), invalidRequest},
		"two states":                {question(client, set("state", "a", "b")), invalidRequest},
		"unknown scope":             {question(client, set("scope", "admin")), invalidScope},
		"other resource":            {question(client, set("resource", "https://evil.example/mcp")), invalidTarget},
		"REST as the resource":      {question(client, set("resource", site+"/api/v1")), invalidTarget},
		"one valid resource of two": {question(client, set("resource", site+"/mcp", "https://evil.example")), invalidTarget},
		"long state":                {question(client, set("state", strings.Repeat("s", maxState+1))), invalidRequest},
	} {
		_, err := w.Read(t.Context(), tc.query, ada.Person)
		var refused *Refused
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, want an error for the client", name, err)
			continue
		}
		got := queryOf(t, refused.Location)
		if !strings.HasPrefix(refused.Location, loopURI+"?") || got.Get("error") != tc.want || got.Get("iss") != site || got.Get("error_description") == "" {
			t.Errorf("%s: %s, want %s", name, refused.Location, tc.want)
		}
		if state := tc.query["state"]; len(state) == 1 && len(state[0]) <= maxState && got.Get("state") != state[0] {
			t.Errorf("%s: the redirect lacks the state: %s", name, refused.Location)
		}
	}
}

// TestThreatMixUp verifies that each response names its issuer, exactly as in the metadata.
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

// TestThreatFixation verifies that a consent form can be submitted only by the session that it was shown to, and cannot
// be replaced with anything else.
func TestThreatFixation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	w.roles.give(eve.Person.Name, acme, editing...)
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
		"another user's session":    {eve, Decision{Sealed: sealed, Allow: true, Most: bridge.ScopeRead}},
		"another sign-in's session": {again, Decision{Sealed: sealed, Allow: true, Most: bridge.ScopeRead}},
		"another user's denial":     {eve, Decision{Sealed: sealed}},
		"changed":                   {ada, Decision{Sealed: spoiled(sealed), Allow: true, Most: bridge.ScopeRead}},
		"nothing":                   {ada, Decision{Allow: true, Most: bridge.ScopeRead}},
		"a code":                    {ada, Decision{Sealed: code, Allow: true, Most: bridge.ScopeRead}},
	} {
		location, err := w.Decide(t.Context(), tc.of, tc.d)
		var shown *PageError
		if !errors.As(err, &shown) || location != "" {
			t.Errorf("%s: %q, %v", name, location, err)
		}
	}
	w.clock.Step(consentLife)
	if _, err := w.Decide(t.Context(), ada, Decision{Sealed: sealed, Allow: true, Most: bridge.ScopeRead}); err == nil {
		t.Error("an expired consent page was accepted")
	}
}

// TestThreatEscalation verifies that nothing beyond the available scopes can be allowed, requested or refreshed.
func TestThreatEscalation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	w.roles.give(eve.Person.Name, acme, reading...)
	for name, tc := range map[string]struct {
		of        session.Session
		scope     string
		namespace string
		most      bridge.Scope
		want      string
	}{
		"all":                           {ada, "read draft publish", acme, bridge.ScopePublish, "read draft publish"},
		"less than requested":           {ada, "publish", acme, bridge.ScopeRead, "read"},
		"all, if no scope is requested": {ada, "", acme, bridge.ScopePublish, "read draft publish"},
		"more than requested":           {ada, "read", acme, bridge.ScopeDraft, ""},
		"more than permitted":           {eve, "publish", acme, bridge.ScopeDraft, ""},
		"the user's own scope":          {eve, "publish", acme, bridge.ScopeRead, "read"},
		"another team":                  {ada, "publish", beta, bridge.ScopeRead, ""},
		"a namespace without a team":    {ada, "publish", "kube-system", bridge.ScopeRead, ""},
		"an unknown scope":              {ada, "publish", acme, "admin", ""},
		"several scopes instead of one": {ada, "publish", acme, "read publish", ""},
		"none":                          {ada, "publish", acme, "", ""},
		"unknown scopes are ignored":    {ada, "openid offline_access draft", acme, bridge.ScopeDraft, "read draft"},
	} {
		w.roles.give(ada.Person.Name, "kube-system", editing...)
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

// TestThreatRefreshScope verifies that a refresh returns the same scopes or fewer.
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

// TestThreatHostileBodies verifies that hostile bodies are rejected, and use little memory: a body is truncated at 16
// KiB, and its decoded form is at most a hundred times as large. The test does not run in parallel, since it would
// count the memory of other tests.
func TestThreatHostileBodies(t *testing.T) { //nolint:paralleltest // it measures
	const most = 2 << 20
	form := "application/x-www-form-urlencoded"
	for _, tc := range []struct{ name, reason, path, kind, body string }{
		{"a mebibyte", "the server does not read the whole body", RegisterPath, jsonType, `{"client_name":"` + strings.Repeat("a", 1<<20)},
		{"brackets only", "each adds a level to a decoder", RegisterPath, jsonType, strings.Repeat("[", maxRegistration)},
		{"brackets within a field", "the field has another type", RegisterPath, jsonType, `{"redirect_uris":` + strings.Repeat("[", maxRegistration-20)},
		{"thousands of URIs", "each adds a string", RegisterPath, jsonType, `{"redirect_uris":["` + strings.Repeat(`","`, 5000) + `"]}`},
		{"a repeated field", "the last one would count", RegisterPath, jsonType, `{` + strings.Repeat(`"redirect_uris":["a"],`, 700) + `"client_name":"x"}`},
		{"thousands of parameters", "each adds a map entry", TokenPath, form, strings.Repeat("a&", maxTokenForm/2)},
		{"different parameters", "each has its own name", TokenPath, form, manyParameters(maxTokenForm)},
		{"a form of a mebibyte", "the server does not read the whole body", TokenPath, form, "code=" + strings.Repeat("a", 1<<20)},
		{"a code as long as the form", "the server parses and verifies the code", TokenPath, form, "grant_type=authorization_code&code=" + strings.Repeat("a.", maxTokenForm/2-50)},
		{"a token as long as the form", "revocation parses and verifies it", RevokePath, form, "token=" + strings.Repeat("a.", maxTokenForm/2-50)},
		{"percent signs", "each is an escape or an error", TokenPath, form, "code=" + strings.Repeat("%25", maxTokenForm/3-10)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			handler := w.Handler(tc.path)
			out := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, site+tc.path, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.kind)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			handler.ServeHTTP(out, r)
			runtime.ReadMemStats(&after)
			if out.Code < 400 && tc.path != RevokePath || out.Code >= http.StatusInternalServerError {
				t.Errorf("%s: %d %s", tc.reason, out.Code, out.Body)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > most {
				t.Errorf("%s: %d bytes were allocated", tc.reason, taken)
			}
			if w.grants.version != 0 {
				t.Errorf("%s: %d writes", tc.reason, w.grants.version)
			}
		})
	}
}

// manyParameters returns a form of the given size, in bytes, with the most parameters that fit.
func manyParameters(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size-4; i++ {
		b.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + "&")
	}
	return b.String()
}
