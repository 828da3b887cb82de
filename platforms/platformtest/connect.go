// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/sandboxtest"
)

const (
	// RedirectURI is the redirect URI in these tests.
	RedirectURI = "http://127.0.0.1:1/connect/platform/callback"
	// AppSecret is the app secret in these tests, for Connecting.New.
	AppSecret = "the-secret-of-the-app"
)

// Connecting is the part of the contract that covers connecting accounts.
type Connecting struct {
	// Suite provides the platform, configured with an app that has an id and AppSecret, and the accounts' settings.
	*Suite

	// Scopes are the requested scopes. Needed are the required scopes; if any one of several is enough, only the
	// first of them is listed.
	Scopes, Needed []string
	// Optional are scopes that the user may decline, one at a time.
	Optional []string
	// Verifies reports whether the platform checks the PKCE verifier.
	Verifies bool
	// Lasts reports whether the token of a Choice never expires.
	Lasts bool
}

// Run runs the contract.
func (c *Connecting) Run(t *testing.T) {
	t.Run("Connects", c.testConnects)
	t.Run("Refuses", c.testRefuses)
	t.Run("MissingScopes", c.testMissingScopes)
	t.Run("Faults", c.testExchangeFaults)
}

// visit is a user's visit to the platform's consent page.
type visit struct {
	*fixture
	connector platforms.Connector
	consent   platforms.Consent
	address   *url.URL
}

func (c *Connecting) visit(t *testing.T) *visit {
	t.Helper()
	v := &visit{fixture: c.start(t, clock.RealClock{}), consent: platforms.Consent{
		RedirectURI: RedirectURI, State: rand.Text(), Verifier: rand.Text() + rand.Text(),
	}}
	var ok bool
	if v.connector, ok = v.platform.(platforms.Connector); !ok {
		t.Fatalf("accounts of %s cannot be connected", c.Name)
	}
	address, err := v.connector.ConsentURL(v.consent)
	if err != nil {
		t.Fatal(err)
	}
	if v.address, err = url.Parse(address); err != nil {
		t.Fatal(err)
	}
	return v
}

// agree gives the user's consent and returns the resulting code.
func (v *visit) agree(t *testing.T) platforms.Code {
	t.Helper()
	query := v.address.Query()
	query.Set("account", v.account.ID)
	address := *v.address
	address.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := stay.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != http.StatusFound || !strings.HasPrefix(back.String(), RedirectURI) || back.Query().Get("state") != v.consent.State {
		t.Fatalf("the consent page returned %s and redirects to %q", resp.Status, back)
	}
	return platforms.Code{Value: back.Query().Get("code"), RedirectURI: RedirectURI, Verifier: v.consent.Verifier}
}

// silent checks that an error does not contain any secret.
func (v *visit) silent(t *testing.T, code platforms.Code, err error) {
	t.Helper()
	v.checkNoSecrets(t, err)
	for ; err != nil; err = errors.Unwrap(err) {
		for _, secret := range []string{code.Value, code.Verifier, AppSecret} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error contains a secret: %v", err)
			}
		}
	}
}

func (c *Connecting) testConnects(t *testing.T) {
	v := c.visit(t)
	asked := strings.FieldsFunc(v.address.Query().Get("scope"), func(r rune) bool { return r == ' ' || r == ',' })
	if !slices.Equal(asked, c.Scopes) {
		t.Errorf("the requested scopes are %q, want %q", asked, c.Scopes)
	}
	token, err := v.connector.Exchange(t.Context(), v.agree(t))
	if err != nil {
		t.Fatal(err)
	}
	choices, err := v.connector.Choices(t.Context(), token)
	if err != nil || len(choices) != 1 {
		t.Fatalf("got %d choices, %v", len(choices), err)
	}
	choice := choices[0]
	if choice.Identity.AccountID != v.account.ID || choice.Identity.DisplayName == "" || choice.Identity.IconURL == "" {
		t.Errorf("the account is %+v, want %s", choice.Identity, v.account.ID)
	}
	// The token must work in Herald's later calls.
	identity, err := v.platform.Identify(t.Context(), choice.Token)
	if err != nil || identity.AccountID != v.account.ID {
		t.Errorf("the token identifies %+v, %v", identity, err)
	}
	if choice.Token.ExpiresAt.IsZero() != c.Lasts {
		t.Errorf("the token expires at %v", choice.Token.ExpiresAt)
	}
	if byToken := c.Renewal == ByRefreshToken || c.Renewal == ByRotation; (choice.Token.Refresh != "") != byToken {
		t.Errorf("the grant has a refresh token: %t", choice.Token.Refresh != "")
	} else if byToken {
		if _, err := v.platform.Refresh(t.Context(), choice.Token); err != nil {
			t.Errorf("the refresh token does not work: %v", err)
		}
	}
	if granted := strings.Fields(choice.Token.Scopes); !slices.Equal(granted, c.Scopes) {
		t.Errorf("the scopes %q were granted", granted)
	}
}

func (c *Connecting) testRefuses(t *testing.T) {
	tests := map[string]struct {
		reason  string
		change  func(t *testing.T, v *visit, code *platforms.Code)
		class   platforms.Class
		applies bool
	}{
		"used twice": {"a code is valid for one exchange", func(t *testing.T, v *visit, code *platforms.Code) {
			t.Helper()
			if _, err := v.connector.Exchange(t.Context(), *code); err != nil {
				t.Fatal(err)
			}
		}, platforms.ClassReconnect, true},
		"made up": {"a code that the platform did not issue is invalid", func(_ *testing.T, _ *visit, code *platforms.Code) {
			code.Value = "made-up-" + rand.Text()
		}, platforms.ClassReconnect, true},
		"another verifier": {"a stolen code is invalid without the verifier", func(_ *testing.T, _ *visit, code *platforms.Code) {
			code.Verifier = rand.Text() + rand.Text()
		}, platforms.ClassReconnect, c.Verifies},
		"another way back": {"a code is valid for the redirect URL that received it", func(_ *testing.T, _ *visit, code *platforms.Code) {
			code.RedirectURI += "/elsewhere"
		}, platforms.ClassReconnect, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if !tc.applies {
				t.Skip("the platform knows no PKCE")
			}
			v := c.visit(t)
			code := v.agree(t)
			tc.change(t, v, &code)
			token, err := v.connector.Exchange(t.Context(), code)
			if recorder.ClassOf(err) != tc.class || token != (platforms.Token{}) {
				t.Errorf("%s: got %v of class %q", tc.reason, err, recorder.ClassOf(err))
			}
			v.silent(t, code, err)
		})
	}
}

// testMissingScopes declines one permission at a time.
func (c *Connecting) testMissingScopes(t *testing.T) {
	for _, scope := range c.Needed {
		t.Run(scope, func(t *testing.T) {
			v := c.visit(t)
			code := v.without(t, c.Scopes, scope)
			_, err := v.connector.Exchange(t.Context(), code)
			if recorder.ClassOf(err) != platforms.ClassReconnect || !strings.Contains(err.Error(), scope) {
				t.Errorf("without %s: got %v of class %q", scope, err, recorder.ClassOf(err))
			}
			v.silent(t, code, err)
		})
	}
	for _, scope := range c.Optional {
		t.Run(scope, func(t *testing.T) {
			v := c.visit(t)
			token, err := v.connector.Exchange(t.Context(), v.without(t, c.Scopes, scope))
			if err != nil || slices.Contains(strings.Fields(token.Scopes), scope) {
				t.Errorf("without %s: got the scopes %q, %v", scope, token.Scopes, err)
			}
		})
	}
}

// without consents to all scopes except one.
func (v *visit) without(t *testing.T, scopes []string, scope string) platforms.Code {
	t.Helper()
	query := v.address.Query()
	query.Set("scope", strings.Join(slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == scope }), " "))
	v.address.RawQuery = query.Encode()
	return v.agree(t)
}

func (c *Connecting) testExchangeFaults(t *testing.T) {
	tests := map[string]struct {
		reason string
		fault  sandboxtest.Fault
		class  platforms.Class
	}{
		"outage":       {"an outage is temporary", sandboxtest.Fault{Kind: "status", Status: 503}, platforms.ClassTransient},
		"redirect":     {"following it would disclose the code to another server", sandboxtest.Fault{Kind: "status", Status: 307}, platforms.ClassUnknown},
		"closed after": {"a lost response is not requested again, because the code is used", sandboxtest.Fault{Kind: "drop_after"}, platforms.ClassTransient},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := c.visit(t)
			code := v.agree(t)
			tc.fault.Platform, tc.fault.Operation, tc.fault.Times = c.Name, "*", 9
			if err := v.control.Fault(t.Context(), tc.fault); err != nil {
				t.Fatal(err)
			}
			before := v.arrived(t)
			_, err := v.connector.Exchange(t.Context(), code)
			if recorder.ClassOf(err) != tc.class {
				t.Errorf("%s: got %v of class %q", tc.reason, err, recorder.ClassOf(err))
			}
			v.silent(t, code, err)
			if sum := v.arrived(t) - before; sum != 1 {
				t.Errorf("%d calls arrived for one exchange", sum)
			}
		})
	}
}

// arrived returns the number of calls that the platform has received.
func (v *visit) arrived(t *testing.T) (sum int) {
	t.Helper()
	counts, err := v.control.Calls(t.Context(), v.name)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range counts {
		sum += n
	}
	return sum
}

// CheckConsent compares a consent page's address with the expected one: page, with the parameters in want in addition
// to those that every platform has. The verifier is the example from RFC 7636, appendix B.
func CheckConsent(t *testing.T, connector platforms.Connector, page string, want url.Values) {
	t.Helper()
	got, err := connector.ConsentURL(platforms.Consent{
		RedirectURI: RedirectURI, State: "s1", Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
	})
	want["response_type"], want["redirect_uri"], want["state"] = []string{"code"}, []string{RedirectURI}, []string{"s1"}
	if address := page + "?" + want.Encode(); err != nil || got != address {
		t.Errorf("got  %s, %v\nwant %s", got, err, address)
	}
}
