// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x_test

import (
	"net/url"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/x"
)

func connectable(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return x.New(x.Config{
		APIURL: url + "/x", WebURL: url + "/x", AuthorizeURL: url + "/x", ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
	}, transport.New(transport.Options{}))
}

func TestConnect(t *testing.T) {
	scopes := []string{"tweet.read", "tweet.write", "users.read", "media.write", "offline.access"}
	connecting := platformtest.Connecting{
		Suite: &platformtest.Suite{Name: "x", New: connectable, Renewal: platformtest.ByRotation}, Scopes: scopes, Needed: scopes, Verifies: true,
	}
	connecting.Run(t)
}

// TestConnectPublicClient connects an account through an app without a secret.
func TestConnectPublicClient(t *testing.T) {
	public := func(t *testing.T, url string) platforms.Platform {
		t.Helper()
		return x.New(x.Config{APIURL: url + "/x", WebURL: url + "/x", AuthorizeURL: url + "/x", ClientID: "herald"}, transport.New(transport.Options{}))
	}
	connecting := platformtest.Connecting{
		Suite:  &platformtest.Suite{Name: "x", New: public, Renewal: platformtest.ByRotation},
		Scopes: []string{"tweet.read", "tweet.write", "users.read", "media.write", "offline.access"}, Verifies: true,
	}
	connecting.Run(t)
}

func TestConsentURL(t *testing.T) {
	t.Parallel()
	p := x.New(x.Config{ClientID: "herald"}, transport.New(transport.Options{}))
	// The example of RFC 7636, appendix B.
	got, err := p.ConsentURL(platforms.Consent{
		RedirectURI: "https://herald.example.com/connect/x/callback", State: "s1", Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "https://x.com/i/oauth2/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {"herald"}, "redirect_uri": {"https://herald.example.com/connect/x/callback"}, "state": {"s1"},
		"scope":          {"tweet.read tweet.write users.read media.write offline.access"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}.Encode()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
