// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube_test

import (
	"net/url"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/youtube"
)

func connectable(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return youtube.New(youtube.Config{
		APIURL: url + "/youtube", WebURL: url + "/youtube", AuthorizeURL: url + "/youtube",
		ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
	}, transport.New(transport.Options{}))
}

func TestConnect(t *testing.T) {
	scopes := []string{"https://www.googleapis.com/auth/youtube.upload", "https://www.googleapis.com/auth/youtube.readonly"}
	connecting := platformtest.Connecting{
		Suite:  &platformtest.Suite{Name: "youtube", New: connectable, Renewal: platformtest.ByRefreshToken},
		Scopes: scopes, Needed: scopes, Verifies: true,
	}
	connecting.Run(t)
}

func TestConsentURL(t *testing.T) {
	t.Parallel()
	p := youtube.New(youtube.Config{ClientID: "herald"}, transport.New(transport.Options{}))
	got, err := p.ConsentURL(platforms.Consent{
		RedirectURI: "https://herald.example.com/connect/youtube/callback", State: "s1", Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "https://accounts.google.com/o/oauth2/v2/auth?" + url.Values{
		"response_type": {"code"}, "client_id": {"herald"}, "redirect_uri": {"https://herald.example.com/connect/youtube/callback"}, "state": {"s1"},
		"scope":       {"https://www.googleapis.com/auth/youtube.upload https://www.googleapis.com/auth/youtube.readonly"},
		"access_type": {"offline"}, "prompt": {"consent"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}.Encode()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
