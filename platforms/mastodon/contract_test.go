// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/mastodon"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/sandboxtest"
)

func newAt(t *testing.T, address string) platforms.Platform {
	t.Helper()
	return mastodon.New(mastodon.Config{APIURL: address + "/mastodon"}, transport.New(transport.Options{}))
}

// refusals returns Mastodon's documented errors, and an error in another language.
func refusals() map[string]platformtest.Answer {
	out := map[string]platformtest.Answer{}
	for text, status := range map[string]int{
		"The access token is invalid": 401, "This action is outside the authorized scopes": 403, "Your login is currently disabled": 403,
		"Record not found": 404, "The post you are trying to reply to does not appear to exist.": 404, "Gone": 410,
		"Validation failed: Text can't be blank": 422, "Validation failed: Text character limit of 500 exceeded": 422,
		"Validation failed: Media 1 not found or already attached to another post": 422, "Validierung fehlgeschlagen: Text darf nicht leer sein": 422,
		"Cannot attach files that have not finished processing. Try again in a moment!": 422, "Too many requests": 429,
		"There was a temporary problem serving your request, please try again": 503,
	} {
		out[fmt.Sprintf("%d %s", status, text)] = platformtest.Answer{Status: status, Body: map[string]any{"error": text}}
	}
	return out
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "mastodon", New: newAt, Renewal: platformtest.Never, Refusals: refusals(),
		AltTexts: []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo}, MaxAltText: 1500,
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

// TestInspect reads the sandbox's limits, which are Mastodon's defaults. The status contains only those that Herald
// does not assume.
func TestInspect(t *testing.T) {
	simulated, err := sandbox.New(sandbox.Options{})
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, simulated.Close()) })
	site := httptest.NewServer(simulated)
	t.Cleanup(site.Close)
	made, err := sandboxtest.Client{URL: site.URL}.Account(t.Context(), "mastodon", "7", map[string]any{"username": "acme"})
	must.Succeed(t, err)
	p := mastodon.New(mastodon.Config{APIURL: site.URL + "/mastodon"}, transport.New(transport.Options{}))
	found, err := p.Inspect(t.Context(), platforms.Account{ID: "7", Token: platforms.Token{Access: made.AccessToken}})
	want := &v1alpha1.MastodonServer{MaxCharacters: 500, CharactersPerURL: 23, MaxMedia: 4, MaxImageBytes: 16 << 20, MaxVideoBytes: 99 << 20}
	if diff := cmp.Diff(want, found.Mastodon); diff != "" || err != nil {
		t.Errorf("%v, the sandbox's limits (-want +got):\n%s", err, diff)
	}
}

// onServer returns the Connector for the sandbox, on which Herald has registered an app.
func onServer(t *testing.T, address string) platforms.Platform {
	t.Helper()
	p := mastodon.New(mastodon.Config{APIURL: address + "/mastodon"}, transport.New(transport.Options{}))
	app, err := p.Register(t.Context(), "", platforms.Site{URL: "https://herald.example", RedirectURI: platformtest.RedirectURI}, platforms.ServerApp{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Register(t.Context(), "", platforms.Site{URL: "https://herald.example", RedirectURI: platformtest.RedirectURI}, app); err != nil || again != app {
		t.Errorf("the app was registered twice, %v", err)
	}
	return p.On("", app)
}

func TestConnect(t *testing.T) {
	scopes := []string{"read:accounts", "read:statuses", "write:statuses", "write:media"}
	suite := contract()
	suite.New = onServer
	connecting := platformtest.Connecting{Suite: suite, Scopes: scopes, Needed: scopes, Verifies: true, Lasts: true}
	connecting.Run(t)
}

func TestConsentURL(t *testing.T) {
	p := mastodon.New(mastodon.Config{}, transport.New(transport.Options{}))
	platformtest.CheckConsent(t, p.On("https://mastodon.example", platforms.ServerApp{ClientID: "herald", PKCE: true}), "https://mastodon.example/oauth/authorize", url.Values{
		"client_id": {"herald"}, "scope": {"read:accounts read:statuses write:statuses write:media"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	})
	address, err := p.On("https://mastodon.example", platforms.ServerApp{ClientID: "herald"}).ConsentURL(platforms.Consent{RedirectURI: platformtest.RedirectURI, State: "s1"})
	if err != nil || strings.Contains(address, "code_challenge") {
		t.Errorf("a server without PKCE: %s, %v", address, err)
	}
}

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }
