// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/signin"
)

var ada = map[string]any{"email": "ada@example.com", "email_verified": true, "name": "Ada", "groups": []string{"marketing", "system:masters"}}

// atProvider follows a sign-in's redirect to the provider, and returns the path and query of the provider's redirect
// back.
func (b *browser) atProvider(begun *reply) *url.URL {
	b.t.Helper()
	if begun.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("the sign-in did not begin: %d %s", begun.StatusCode, text(b.t, begun))
	}
	w := httptest.NewRecorder()
	b.issuer.ServeHTTP(w, httptest.NewRequest(http.MethodGet, begun.Header.Get("Location"), http.NoBody))
	back, err := url.Parse(w.Header().Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), site+"/signin/oidc/callback?") {
		b.t.Fatalf("the provider sends people to %q: %v %s", w.Header().Get("Location"), err, w.Body)
	}
	return back
}

func (b *browser) begin(query string) *url.URL {
	b.t.Helper()
	return b.atProvider(b.do(http.MethodGet, "/signin/oidc"+query))
}

func changed(back *url.URL, name, value string) string {
	q := back.Query()
	q.Set(name, value)
	return back.Path + "?" + q.Encode()
}

func TestOIDC(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newWorld(t, ada).browser()
		back := b.begin("?return_to=/teams/acme/posts?page=2")
		answer := b.do(http.MethodGet, back.RequestURI())
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/teams/acme/posts?page=2" {
			t.Fatalf("got %d to %q: %s", answer.StatusCode, answer.Header.Get("Location"), text(t, answer))
		}
		got := b.who()
		if got.Name != "oidc:ada@example.com" || got.DisplayName != "Ada" || !slices.Equal(got.Groups, []string{"oidc:marketing", "oidc:system:masters"}) {
			t.Errorf("got %+v", got)
		}
		asked := b.issuer.SignInRequests()[0]
		for name, want := range map[string]string{
			"response_type": "code", "scope": "openid profile email", "code_challenge_method": "S256", "redirect_uri": site + "/signin/oidc/callback",
		} {
			if asked.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, asked.Get(name), want)
			}
		}
		if len(asked.Get("nonce")) < 20 || len(asked.Get("state")) < 20 || asked.Get("code_challenge") == "" {
			t.Errorf("the request lacks state, nonce or challenge: %v", asked)
		}
		if len(b.cookies) != 1 {
			t.Errorf("the cookie of the way stays: %v", b.cookies)
		}
		if answer := b.do(http.MethodGet, "/signin?return_to=/teams/acme"); answer.Header.Get("Location") != "/teams/acme" {
			t.Errorf("a signed-in user has to sign in again: %d", answer.StatusCode)
		}
		second := b.begin("")
		if first, again := asked.Get("nonce"), b.issuer.SignInRequests()[1].Get("nonce"); first == again || second.Query().Get("state") == back.Query().Get("state") {
			t.Error("nonce or state of two sign-ins are equal")
		}
	})
}

// TestLongReturnPath verifies that a page with a long address, such as the consent page, does not prevent a sign-in.
func TestLongReturnPath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newWorld(t, ada).browser()
		begun := b.do(http.MethodGet, "/signin/oidc?return_to=/oauth/authorize?state="+strings.Repeat("a", 3500))
		for _, cookie := range begun.Header.Values("Set-Cookie") {
			if len(cookie) > 4096 {
				t.Errorf("browsers drop a cookie of %d bytes", len(cookie))
			}
		}
		answer := b.do(http.MethodGet, b.atProvider(begun).RequestURI())
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/" || b.who().Name != "oidc:ada@example.com" {
			t.Errorf("got %d to %q", answer.StatusCode, answer.Header.Get("Location"))
		}
	})
}

// TestThreats verifies that no forged or replayed callback signs anyone in.
func TestThreats(t *testing.T) {
	// issues returns an attack in which the token has one claim chosen by the attacker.
	issues := func(claim string, value any) func(*browser) string {
		return func(b *browser) string {
			b.issuer.Claims = map[string]any{"email": "ada@example.com", "email_verified": true, claim: value}
			return b.begin("").RequestURI()
		}
	}
	alters := func(name, value string) func(*browser) string {
		return func(b *browser) string { return changed(b.begin(""), name, value) }
	}
	for name, tc := range map[string]struct {
		reason string
		// attack returns the callback that the browser then opens.
		attack func(b *browser) string
		status int
		// counted is the outcome that is counted: a bad token counts as a failure of the provider.
		counted string
	}{
		"started elsewhere": {
			"an attacker sends the victim the callback of the attacker's sign-in",
			func(b *browser) string { return b.browser().begin("").RequestURI() }, 400, "refused",
		},
		"state of another session": {"the victim has started a sign-in too", func(b *browser) string {
			b.begin("")
			return b.browser().begin("").RequestURI()
		}, 400, "refused"},
		"no state": {"state binds the response to the browser", alters("state", ""), 400, "refused"},
		"code of another": {"the attacker's code with the victim's state: PKCE binds the code to the browser", func(b *browser) string {
			return alters("code", b.browser().begin("").Query().Get("code"))(b)
		}, 400, "refused"},
		"replayed callback": {"the URL is in the browser's history", func(b *browser) string {
			back := b.begin("").RequestURI()
			b.do(http.MethodGet, back)
			b.cookies = map[string]*http.Cookie{}
			return back
		}, 400, "refused"},
		"replayed code": {"the cookie was stolen as well: the provider accepts a code once", func(b *browser) string {
			back, way := b.begin("").RequestURI(), maps.Clone(b.cookies)
			b.do(http.MethodGet, back)
			b.cookies = way
			return back
		}, 400, "refused"},
		"nonce of another":   {"a token that was issued for another sign-in", issues("nonce", "another"), 400, "failed"},
		"for another client": {"a token that was issued for another application", issues("aud", "another"), 400, "failed"},
		"of another issuer":  {"a token from another provider", issues("iss", "https://evil.example"), 400, "failed"},
		"expired token": {"the token has expired", func(b *browser) string {
			return issues("exp", time.Now().Add(-time.Minute).Unix())(b)
		}, 400, "failed"},
		"mix-up": {"another provider responds instead of the requested one (RFC 9207)", alters("iss", "https://evil.example"), 400, "refused"},
		"too late": {"an old sign-in is found on a shared computer", func(b *browser) string {
			back := b.begin("").RequestURI()
			time.Sleep(11 * time.Minute) //nolint:forbidigo // in a bubble of synctest
			return back
		}, 400, "refused"},
		"a cookie of the site": {"a sealed text with another purpose instead of the state", func(b *browser) string {
			back := b.begin("")
			b.cookies["__Host-herald_signin"].Value = b.sessions.Seal("session", map[string]string{"s": back.Query().Get("state")}, time.Hour)
			return back.RequestURI()
		}, 400, "refused"},
		"denied": {"the user pressed No", alters("error", "access_denied"), 403, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := newWorld(t, ada).browser()
				path := tc.attack(b)
				b.counted = nil
				answer := b.do(http.MethodGet, path)
				if answer.StatusCode != tc.status || b.who().Name != "" || !slices.Equal(b.counted, []string{"oidc " + tc.counted}) {
					t.Errorf("%s: got %d as %q, counted %v: %s", tc.reason, answer.StatusCode, b.who().Name, b.counted, text(t, answer))
				}
				for _, cookie := range answer.Cookies() {
					if cookie.MaxAge >= 0 {
						t.Errorf("%s: it sets %s", tc.reason, cookie.Name)
					}
				}
			})
		})
	}
}

func TestCallbackByPost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newWorld(t, ada).browser()
		if answer := b.do(http.MethodPost, b.begin("").RequestURI()); answer.StatusCode != http.StatusMethodNotAllowed || b.who().Name != "" {
			t.Errorf("the sign-in page accepts GET only: %d as %q", answer.StatusCode, b.who().Name)
		}
	})
}

func TestClaims(t *testing.T) {
	long := strings.Repeat("a", 300)
	for name, tc := range map[string]struct {
		reason string
		claims map[string]any
		edit   func(*signin.OIDC)
		want   access.Person
		says   string
	}{
		"not verified":                   {"anyone could claim the address", map[string]any{"email": "ada@example.com", "email_verified": false}, nil, access.Person{}, "has not verified your email"},
		"no verification claim":          {"an omitted claim is not a confirmation", map[string]any{"email": "ada@example.com"}, nil, access.Person{}, "has not verified your email"},
		"verification claim as a string": {"some providers write a string", map[string]any{"email": "ada@example.com", "email_verified": "true"}, nil, access.Person{Name: "oidc:ada@example.com", DisplayName: "ada@example.com"}, ""},
		"no email":                       {"the claim is missing", map[string]any{"name": "Ada"}, nil, access.Person{}, "web.oidc.usernameClaim"},
		"a number":                       {"names are strings", map[string]any{"email": 7, "email_verified": true}, nil, access.Person{}, "did not return your email"},
		"another claim":                  {"the configuration selects another claim", map[string]any{"preferred_username": "ada"}, func(o *signin.OIDC) { o.UsernameClaim = "sub" }, access.Person{Name: "oidc:1", DisplayName: "ada"}, ""},
		"no prefix":                      {"the name has no prefix", map[string]any{"sub": "ada"}, func(o *signin.OIDC) { o.UsernameClaim, o.UsernamePrefix = "sub", "" }, access.Person{Name: "ada", DisplayName: "ada"}, ""},
		"a system user":                  {"without a prefix, a provider could assign a name of the cluster", map[string]any{"sub": "system:admin"}, func(o *signin.OIDC) { o.UsernameClaim, o.UsernamePrefix = "sub", "" }, access.Person{}, "cannot be used here"},
		"the user of the link":           {"a provider could assign the administrator's name", map[string]any{"sub": "herald:link"}, func(o *signin.OIDC) { o.UsernameClaim, o.UsernamePrefix = "sub", "" }, access.Person{}, "cannot be used here"},
		"endless":                        {"each record of an action contains the name", map[string]any{"sub": long}, func(o *signin.OIDC) { o.UsernameClaim = "sub" }, access.Person{}, "cannot be used here"},
		"line break":                     {"a name must not add lines to the log", map[string]any{"sub": "ada\nroot"}, func(o *signin.OIDC) { o.UsernameClaim = "sub" }, access.Person{}, "cannot be used here"},
		"masters":                        {"a provider's group is not a group of the cluster", map[string]any{"sub": "ada", "groups": []string{"system:masters", "b", "a", "b", ""}}, func(o *signin.OIDC) { o.UsernameClaim, o.GroupsPrefix = "sub", "" }, access.Person{Name: "oidc:ada", DisplayName: "ada", Groups: []string{"a", "b"}}, ""},
		"one group":                      {"some providers write a string instead of a list with one entry", map[string]any{"sub": "ada", "groups": "a"}, func(o *signin.OIDC) { o.UsernameClaim = "sub" }, access.Person{Name: "oidc:ada", DisplayName: "ada", Groups: []string{"oidc:a"}}, ""},
		"groups unasked":                 {"groups need a configured claim", map[string]any{"sub": "ada", "groups": []string{"a"}}, func(o *signin.OIDC) { o.UsernameClaim, o.GroupsClaim = "sub", "" }, access.Person{Name: "oidc:ada", DisplayName: "ada"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				edit := tc.edit
				if edit == nil {
					edit = func(*signin.OIDC) {}
				}
				b := newWorld(t, tc.claims, edit).browser()
				answer := b.do(http.MethodGet, b.begin("").RequestURI())
				got := b.who()
				if got.Name != tc.want.Name || got.DisplayName != tc.want.DisplayName || !slices.Equal(got.Groups, tc.want.Groups) {
					t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
				}
				if body := text(t, answer); tc.says != "" && (answer.StatusCode != http.StatusForbidden || !strings.Contains(body, tc.says)) {
					t.Errorf("%s: got %d, want %q in %s", tc.reason, answer.StatusCode, tc.says, body)
				}
			})
		})
	}
}

func TestWrongSecret(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newWorld(t, ada, func(o *signin.OIDC) { o.ClientSecret = func() (string, error) { return "wrong", nil } }).browser()
		answer := b.do(http.MethodGet, b.begin("").RequestURI())
		if body := text(t, answer); answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, "secret may be wrong") || b.who().Name != "" {
			t.Errorf("got %d: %s", answer.StatusCode, body)
		}
	})
}

// TestProviderUnavailable verifies that the provider may start later than Herald, and may be temporarily unavailable.
func TestProviderUnavailable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, ada)
		b := w.browser()
		w.down.Store(true)
		answer := b.do(http.MethodGet, "/signin/oidc")
		if body := text(t, answer); answer.StatusCode != http.StatusBadGateway || !strings.Contains(body, "Try again") || strings.Contains(body, "refused") {
			t.Errorf("got %d: %s", answer.StatusCode, body)
		}
		if !strings.Contains(w.log.String(), "connection refused") {
			t.Errorf("the administrator does not get the reason: %s", w.log)
		}
		w.down.Store(false)
		back := b.begin("").RequestURI()
		w.down.Store(true)
		if status := b.do(http.MethodGet, back).StatusCode; status != http.StatusBadGateway {
			t.Errorf("away at the exchange: %d", status)
		}
		w.down.Store(false)
		b.do(http.MethodGet, b.begin("").RequestURI())
		if b.who().Name == "" {
			t.Error("users cannot sign in although the provider is available again")
		}
	})
}

// TestOpenRedirect verifies that users stay on this site, regardless of the return address.
func TestOpenRedirect(t *testing.T) {
	for _, tc := range []struct{ reason, wanted, want string }{
		{"a page", "/teams/acme/posts", "/teams/acme/posts"},
		{"with a query", "/teams/acme/posts?status=draft&page=2", "/teams/acme/posts?status=draft&page=2"},
		{"non-Latin letters", "/teams/acme/posts?q=h%C3%A9", "/teams/acme/posts?q=h%C3%A9"},
		{"no address", "", "/"},
		{"another site", "https://evil.example/", "/"},
		{"without a scheme", "//evil.example/", "/"},
		{"with more slashes", "///evil.example", "/"},
		{"browsers interpret a backslash as a slash", `/\evil.example`, "/"},
		{"two backslashes", `\\evil.example`, "/"},
		{"encoded", "/%2fevil.example", "/"},
		{"encoded backslash", "/%5cevil.example", "/"},
		{"encoded twice", "/%252fevil.example", "/"},
		{"encoded completely", "%2f%2fevil.example", "/"},
		{"browsers drop a tab", "/\t/evil.example", "/"},
		{"an encoded tab", "/%09/evil.example", "/"},
		{"a line break, which would end the header", "/a\r\nSet-Cookie: x=y", "/"},
		{"a script", "javascript:alert(1)", "/"},
		{"user information before the host", "https://herald.example.com@evil.example", "/"},
		{"a relative path", "evil.example", "/"},
		{"a circle", "/signin?return_to=/signin", "/"},
		{"a sign-out", "/signout", "/"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := newWorld(t, ada).browser()
				answer := b.do(http.MethodGet, b.begin("?return_to="+url.QueryEscape(tc.wanted)).RequestURI())
				if got := answer.Header.Get("Location"); got != tc.want {
					t.Errorf("%q leads to %q, want %q", tc.wanted, got, tc.want)
				}
			})
		})
	}
}
