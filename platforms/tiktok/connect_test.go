// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok_test

import (
	"net/url"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/tiktok"
)

func connectable(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return tiktok.New(tiktok.Config{
		APIURL: url + "/tiktok", WebURL: url + "/tiktok", AuthorizeURL: url + "/tiktok",
		ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
	}, transport.New(transport.Options{}))
}

func TestConnect(t *testing.T) {
	connecting := platformtest.Connecting{
		Suite:  &platformtest.Suite{Name: "tiktok", New: connectable, Renewal: platformtest.ByRotation},
		Scopes: []string{"user.info.basic", "user.info.profile", "video.publish", "video.upload", "video.list"},
		// Without user.info.profile only the username is missing, and either publish or upload is enough.
		Needed:   []string{"user.info.basic", "video.list"},
		Optional: []string{"user.info.profile", "video.publish", "video.upload"},
		Verifies: true,
	}
	connecting.Run(t)
}

func TestConsentURL(t *testing.T) {
	t.Parallel()
	p := tiktok.New(tiktok.Config{ClientID: "herald"}, transport.New(transport.Options{}))
	got, err := p.ConsentURL(platforms.Consent{
		RedirectURI: "https://herald.example.com/connect/tiktok/callback", State: "s1", Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "https://www.tiktok.com/v2/auth/authorize/?" + url.Values{
		"response_type": {"code"}, "client_key": {"herald"}, "redirect_uri": {"https://herald.example.com/connect/tiktok/callback"}, "state": {"s1"},
		"scope": {"user.info.basic,user.info.profile,video.publish,video.upload,video.list"},
		// The hash of RFC 7636, appendix B, in hexadecimal.
		"code_challenge": {"13d31e961a1ad8ec2f16b10c4c982e0876a878ad6df144566ee1894acb70f9c3"}, "code_challenge_method": {"S256"},
	}.Encode()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
