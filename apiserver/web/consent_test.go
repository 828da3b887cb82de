// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	g "maragu.dev/gomponents"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/oauth"
)

// agentCallback is the agents' redirect URI in these tests.
const agentCallback = "http://127.0.0.1:33418/callback"

// agentID registers an agent under a name, and returns its id.
func (w *world) agentID(t *testing.T, name, redirect string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirect}})
	r := httptest.NewRequest(http.MethodPost, oauth.RegisterPath, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	w.site.Agents.Handler(oauth.RegisterPath).ServeHTTP(out, r)
	var made struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal(out.Body.Bytes(), &made); err != nil || made.ID == "" {
		t.Fatalf("register: %d %s", out.Code, out.Body)
	}
	return made.ID
}

// consentPath returns the path of an agent's authorization request.
func consentPath(client, redirect, scope string) string {
	sum := sha256.Sum256([]byte("verifier"))
	return oauth.AuthorizePath + "?" + url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {"a state"}, "scope": {scope},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode()
}

// levelsOf returns the levels that a page offers, and the sealed content of its form.
func levelsOf(t *testing.T, answer *httptest.ResponseRecorder) (offered []string, sealed string) {
	t.Helper()
	for _, input := range elements(parsed(t, answer.Body.String()), "input") {
		name, _ := attribute(input, "name")
		value, _ := attribute(input, "value")
		switch name {
		case "level":
			offered = append(offered, value)
		case "consent":
			sealed = value
		}
	}
	return offered, sealed
}

func TestConsentOffers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		who   access.Person
		scope string
		want  string
	}{
		"all":                       {editor, "", "read draft publish"},
		"the requested permissions": {editor, "read draft", "read draft"},
		"the user's permissions":    {viewer, "read draft publish", "read"},
		"a user for a team":         {administrator, "publish", "read draft publish"},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		answer := w.serve(newRequest(&tc.who, consentPath(w.agentID(t, "An agent", agentCallback), agentCallback, tc.scope), nil))
		offered, _ := levelsOf(t, answer)
		if answer.Code != http.StatusOK || strings.Join(offered, " ") != tc.want {
			t.Errorf("%s: %d, offered %q, want %q", name, answer.Code, offered, tc.want)
		}
	}
}

// TestThreatConsentClick verifies that an unintended click, such as the second click of a double click in another
// window, allows nothing. A level must be selected first, even if there is only one.
func TestThreatConsentClick(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		who    access.Person
		levels int
	}{"several": {editor, 3}, "one": {viewer, 1}} {
		w := newWorld(clocktesting.NewFakeClock(now))
		answer := w.serve(newRequest(&tc.who, consentPath(w.agentID(t, "An agent", agentCallback), agentCallback, ""), nil))
		levels := 0
		for _, input := range elements(parsed(t, answer.Body.String()), "input") {
			if kind, _ := attribute(input, "type"); kind != "radio" {
				continue
			}
			levels++
			_, required := attribute(input, "required")
			if _, checked := attribute(input, "checked"); checked || !required {
				t.Errorf("%s: checked %v, required %v", name, checked, required)
			}
		}
		if levels != tc.levels {
			t.Errorf("%s: %d levels", name, levels)
		}
		_, sealed := levelsOf(t, answer)
		if got := w.serve(newRequest(&tc.who, oauth.AuthorizePath, url.Values{"consent": {sealed}, "decision": {"allow"}})); got.Code != http.StatusForbidden || len(w.grants) != 0 {
			t.Errorf("%s: without a choice: %d, %d grants", name, got.Code, len(w.grants))
		}
	}
}

func TestConsentDecides(t *testing.T) {
	t.Parallel()
	for decision, want := range map[string]string{"allow": "code", "deny": "error", "": "error"} {
		w := newWorld(clocktesting.NewFakeClock(now))
		_, sealed := levelsOf(t, w.serve(newRequest(&editor, consentPath(w.agentID(t, "An agent", agentCallback), agentCallback, ""), nil)))
		if w.written() != 0 {
			t.Error("the page changed an object")
		}
		answer := w.serve(newRequest(&editor, oauth.AuthorizePath, url.Values{"consent": {sealed}, "level": {"draft"}, "decision": {decision}}))
		to, err := url.Parse(answer.Header().Get("Location"))
		if answer.Code != http.StatusSeeOther || err != nil || to.Host != "127.0.0.1:33418" || !to.Query().Has(want) || to.Query().Get("iss") != "https://herald.example" {
			t.Errorf("%s: %d, %s", decision, answer.Code, to)
		}
		if made := len(w.grants); made != map[string]int{"allow": 1}[decision] {
			t.Errorf("%s: created %d grants", decision, made)
		}
	}
}

// TestConsentSignedOut verifies that a signed-out authorization request redirects to sign-in with the full request in
// return_to, without fetching the client's metadata document.
func TestConsentSignedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	asked := false
	p := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(p.Close)
	for _, client := range []string{w.agentID(t, "An agent", agentCallback), p.URL + "/client.json", "nonsense"} {
		path := consentPath(client, agentCallback, "read draft")
		answer := w.serve(newRequest(nil, path, nil))
		back, err := url.Parse(answer.Header().Get("Location"))
		if answer.Code != http.StatusSeeOther || err != nil || back.Path != "/signin" || back.Query().Get("return_to") != path {
			t.Errorf("%s: %d, %s", client, answer.Code, back)
		}
	}
	if answer := w.serve(newRequest(nil, oauth.AuthorizePath, url.Values{"decision": {"allow"}})); answer.Code != http.StatusUnauthorized {
		t.Errorf("an unauthenticated response returned %d", answer.Code)
	}
	if asked {
		t.Error("an unauthenticated request fetched a document")
	}
}

// twoTeams gives a user access to both teams.
type twoTeams struct{ roles }

func (r twoTeams) Teams(context.Context, access.Person) ([]*v1alpha1.Team, error) {
	return r.teams, nil
}

func TestConsentChoosesTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), func(c *Config) { c.Access = twoTeams{c.Access.(roles)} })
	path := consentPath(w.agentID(t, "An agent", agentCallback), agentCallback, "read")
	answer := w.serve(newRequest(&editor, path, nil))
	var teams []string
	for _, a := range elements(parsed(t, answer.Body.String()), "a") {
		href, _ := attribute(a, "href")
		if to, err := url.Parse(href); err == nil && to.Path == oauth.AuthorizePath {
			teams = append(teams, to.Query().Get("team"))
			if to.Query().Get("state") != "a state" {
				t.Errorf("a link drops the authorization request: %s", href)
			}
		}
	}
	if strings.Join(teams, " ") != acme+" "+beta || len(elements(parsed(t, answer.Body.String()), "form")) != 0 {
		t.Errorf("the teams are %q", teams)
	}
	if answer := w.serve(newRequest(&editor, path+"&team="+acme, nil)); !strings.Contains(answer.Body.String(), `name="consent"`) {
		t.Error("the consent page lacks the selected team")
	}
	if answer := w.serve(newRequest(&editor, path+"&team="+beta, nil)); answer.Code != http.StatusForbidden || strings.Contains(answer.Body.String(), `name="consent"`) {
		t.Errorf("a team without permissions returned %d", answer.Code)
	}
	if answer := w.serve(newRequest(&editor, path+"&team=kube-system", nil)); strings.Contains(answer.Body.String(), `name="consent"`) {
		t.Error("the consent page shows a namespace without a team")
	}
}

// TestThreatConsentFrames verifies that no page can embed the consent page, and that its form can only lead to this
// site and to the agent.
func TestThreatConsentFrames(t *testing.T) {
	t.Parallel()
	for redirect, want := range map[string]string{
		agentCallback: "'self' http://127.0.0.1:33418 https:", "https://agent.example/cb": "'self' https:", "cursor://agent/cb": "'self' cursor:",
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		header := w.serve(newRequest(&editor, consentPath(w.agentID(t, "An agent", redirect), redirect, ""), nil)).Header()
		policy := header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "frame-ancestors 'none'") || header.Get("X-Frame-Options") != "DENY" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", redirect, header)
		}
		if !strings.Contains(policy, "form-action "+want+";") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", redirect, policy)
		}
	}
}

// TestThreatConsentPhishing verifies that the page shows the requesting agent, whether it is verified, and where the
// response is sent.
func TestThreatConsentPhishing(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	text := textOf(parsed(t, w.serve(newRequest(&editor, consentPath(w.agentID(t, evil, "https://evil.example/cb"), "https://evil.example/cb", ""), nil)).Body.String()))
	says(t, "an unknown agent", text, []string{"This agent is not verified.", "It redirects to", "evil.example", acme, "oidc:edith"}, nil)
	checkMarkup(t, "consent", parsed(t, w.serve(newRequest(&editor, consentPath(w.agentID(t, evil, "https://evil.example/cb"), "https://evil.example/cb", ""), nil)).Body.String()))
	const anyProgram = "Any program on this computer can impersonate it"
	verified := oauth.Client{ID: "https://agent.example/client.json", Name: "Claude", Verified: true}
	for redirect, tc := range map[string]struct {
		reason  string
		caution bool
		where   string
	}{
		"https://agent.example/cb":              {"the response goes to a site", false, "agent.example"},
		"https://agent.example:/cb":             {"an empty port does not make a site an application", false, "agent.example:"},
		agentCallback:                           {"any program can listen on this machine", true, "a program on this computer, 127.0.0.1:33418"},
		"cursor://install.example/mcp?config=x": {"any program can open it, or be opened by it", true, "the application on this computer that opens cursor://install.example/mcp"},
		"com.example.agent:/oauth":              {"any program can open it, or be opened by it", true, "the application on this computer that opens com.example.agent:/oauth"},
	} {
		asked := &oauth.Request{Client: verified, Redirect: redirect}
		text := textOf(parsed(t, render(t, requester(asked))))
		if !strings.Contains(text, "agent.example") || strings.Contains(text, "not verified") || strings.Contains(text, anyProgram) != tc.caution {
			t.Errorf("%s, %s: of a verified agent: %q", redirect, tc.reason, text)
		}
		if where := textOf(parsed(t, render(t, g.Group(whereTo(asked))))); strings.TrimSpace(where) != tc.where {
			t.Errorf("%s: the response goes to %q, want %q", redirect, where, tc.where)
		}
	}
	// A name is quoted, and cannot contain the closing quotation mark.
	named := w.serve(newRequest(&editor, consentPath(w.agentID(t, "Claude”, verified by its site, and “x", agentCallback), agentCallback, ""), nil)).Body.String()
	if want := "Allow “Claude', verified by its site, and 'x”?"; !strings.Contains(textOf(parsed(t, named)), want) {
		t.Errorf("the heading is not %q", want)
	}
	// An error page describes the error, and does not redirect.
	wrong := w.serve(newRequest(&editor, consentPath(w.agentID(t, evil, agentCallback), "https://evil.example/"+url.PathEscape(evil), ""), nil))
	checkMarkup(t, "wrong address", parsed(t, wrong.Body.String()))
	if wrong.Code != http.StatusBadRequest || wrong.Header().Get("Location") != "" || wrong.Header().Get("Refresh") != "" {
		t.Errorf("a wrong address: %d, %v", wrong.Code, wrong.Header())
	}
}

// TestThreatConsentErrors verifies that an error before the consent page does not redirect to an untrusted site, but
// shows a page with the requesting agent and where the link leads.
func TestThreatConsentErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, redirect string
		// back is the link's text; empty if the browser is redirected.
		back string
	}{
		"a site":                    {"an unknown party registered it", "https://evil.example/herald/signin", "Back to evil.example"},
		"an application":            {"its URL identifies it", "cursor://agent/install?name=x", "Back to cursor:"},
		"a program on this machine": {"a program on this machine is not a site", agentCallback, ""},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		answer := w.serve(newRequest(&editor, consentPath(w.agentID(t, evil, tc.redirect), tc.redirect, "everything"), nil))
		if tc.back == "" {
			if to := answer.Header().Get("Location"); answer.Code != http.StatusSeeOther || !strings.HasPrefix(to, tc.redirect+"?error=invalid_scope") {
				t.Errorf("%s, %s: %d, %q", name, tc.reason, answer.Code, to)
			}
			continue
		}
		page := parsed(t, answer.Body.String())
		if answer.Code != http.StatusBadRequest || answer.Header().Get("Location") != "" || answer.Header().Get("Refresh") != "" {
			t.Errorf("%s, %s: %d, %v", name, tc.reason, answer.Code, answer.Header())
		}
		says(t, name, textOf(page), []string{"not verified", "the supported scopes are read draft publish", "Access was not granted"}, nil)
		found := false
		for _, a := range elements(page, "a") {
			href, _ := attribute(a, "href")
			to, err := url.Parse(href)
			if textOf(a) != tc.back || err != nil {
				continue
			}
			found = strings.HasPrefix(href, tc.redirect) && to.Query().Get("error") == "invalid_scope" && to.Query().Get("state") == "a state" &&
				to.Query().Get("iss") == "https://herald.example"
		}
		if !found {
			t.Errorf("%s: link %q with the response is missing", name, tc.back)
		}
	}
	w := newWorld(clocktesting.NewFakeClock(now))
	answer := w.serve(newRequest(&editor, consentPath(w.agentID(t, evil, "https://evil.example/cb"), "https://evil.example/cb", "everything"), nil))
	checkMarkup(t, "an error", parsed(t, answer.Body.String()))
}

// render returns the text of part of a page.
func render(t *testing.T, node g.Node) string {
	t.Helper()
	var out strings.Builder
	if err := node.Render(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAgentsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for name, who := range map[string]access.Person{"agent-edith": editor, "agent-vera": viewer} {
		w.grants[acme+"/"+name] = &v1alpha1.OAuthGrant{
			ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: name, CreationTimestamp: metav1.NewTime(now)},
			Spec: v1alpha1.OAuthGrantSpec{
				Client: v1alpha1.OAuthGrantClient{ID: "dcr:1", Name: name, RedirectHost: "127.0.0.1:1"}, Person: v1alpha1.OAuthGrantPerson{Name: who.Name},
				Scopes: []v1alpha1.OAuthScope{"read", "draft"}, Resource: "https://herald.example/mcp", ExpiresAt: v1alpha1.NewTime(now.AddDate(0, 1, 0)),
			},
			Status: v1alpha1.OAuthGrantStatus{RedeemedAt: v1alpha1.NewTimePtr(now)},
		}
	}
	w.grants[acme+"/agent-unredeemed"] = w.grants[acme+"/agent-vera"].DeepCopy()
	w.grants[acme+"/agent-unredeemed"].Name, w.grants[acme+"/agent-unredeemed"].Status.RedeemedAt = "agent-unredeemed", nil
	alone := newWorld(clocktesting.NewFakeClock(now), func(c *Config) { c.Access = ownOnly{c.Access.(roles)} })
	alone.grants = w.grants
	for name, tc := range map[string]struct {
		w         *world
		who       access.Person
		sees, may string
	}{
		"the user's own grants":           {alone, viewer, "agent-vera", "agent-vera"},
		"another's":                       {alone, editor, "agent-edith", "agent-edith"},
		"all grants, to an editor":        {w, editor, "agent-edith agent-vera", "agent-edith"},
		"all grants, to an administrator": {w, administrator, "agent-edith agent-vera", "agent-edith agent-vera"},
	} {
		page := tc.w.get(t, tc.who, "/teams/"+acme+"/agents")
		var sees, may []string
		for _, item := range elements(page, "li") {
			if id, ok := attribute(item, "id"); ok {
				sees = append(sees, id)
			}
		}
		for _, form := range elements(page, "form") {
			if action, _ := attribute(form, "action"); strings.HasSuffix(action, "/revoke") {
				may = append(may, strings.TrimSuffix(strings.TrimPrefix(action, "/teams/"+acme+"/agents/"), "/revoke"))
			}
		}
		if strings.Join(sees, " ") != tc.sees || strings.Join(may, " ") != tc.may {
			t.Errorf("%s: sees %q and may revoke %q", name, sees, may)
		}
	}
	if answer := w.serve(newRequest(&viewer, "/teams/"+acme+"/agents/agent-edith/revoke", url.Values{})); answer.Code != http.StatusForbidden || w.grants[acme+"/agent-edith"].Spec.Revoked {
		t.Errorf("another's: %d", answer.Code)
	}
	if answer := w.serve(newRequest(&viewer, "/teams/"+acme+"/agents/agent-vera/revoke", url.Values{})); answer.Code != http.StatusSeeOther || !w.grants[acme+"/agent-vera"].Spec.Revoked {
		t.Errorf("one's own: %d", answer.Code)
	}
	if answer := w.serve(newRequest(&viewer, "/teams/"+acme+"/agents/agent-none/revoke", url.Values{})); answer.Code != http.StatusNotFound {
		t.Errorf("an unknown grant returned %d", answer.Code)
	}
}

// ownOnly denies access to other people's grants.
type ownOnly struct{ roles }

func (r ownOnly) May(ctx context.Context, who access.Person, namespace, verb, resource string, name ...string) (bool, error) {
	if resource == "oauthgrants" {
		return false, nil
	}
	return r.roles.May(ctx, who, namespace, verb, resource, name...)
}

// TestWithoutAgents verifies that an installation without agents has neither their pages nor links to them.
func TestWithoutAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), func(c *Config) { c.Agents = nil })
	for _, path := range []string{oauth.AuthorizePath, "/teams/" + acme + "/agents"} {
		if answer := w.serve(newRequest(&administrator, path, nil)); answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
	if strings.Contains(w.serve(newRequest(&administrator, "/teams/"+acme+"/", nil)).Body.String(), "/agents") {
		t.Error("the navigation links to the agents")
	}
}
