// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/x"
)

// refusals returns X's responses to a post, by the codes of the old API and the types of the current one ("Response
// codes").
func refusals() map[string]platformtest.Answer {
	out := map[string]platformtest.Answer{}
	for code, status := range map[int]int{
		32: 401, 64: 403, 88: 429, 89: 401, 131: 500, 185: 403, 187: 403, 226: 403, 261: 403, 326: 403, 344: 403, 349: 403, 385: 403,
	} {
		out[fmt.Sprintf("code %d", code)] = platformtest.Answer{Status: status, Body: map[string]any{"errors": []any{map[string]any{"code": code, "message": "m"}}}}
	}
	for kind, status := range map[string]int{
		"client-forbidden": 403, "usage-capped": 429, "user-suspended": 403, "credits": 402, "not-authorized-for-resource": 403,
		"invalid-request": 400, "unsupported-authentication": 403, "resource-not-found": 404,
	} {
		out[kind] = platformtest.Answer{Status: status, Body: map[string]any{
			"type": "https://api.x.com/2/problems/" + kind, "title": "m", "detail": "m", "status": status,
		}}
	}
	return out
}

func newAt(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return x.New(platforms.Config{
		APIURL: url + "/x", WebURL: url + "/x", AuthorizeURL: url + "/x",
		ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
	}, transport.New(transport.Options{}))
}

var altTexts = []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo}

func contract() *platformtest.Suite {
	return &platformtest.Suite{Name: "x", New: newAt, Renewal: platformtest.ByRotation, Resumes: 8 << 20, Refusals: refusals(), AltTexts: altTexts, AltTextCall: "metadata"}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }

// TestConnect connects an account through an app with a secret, and through one without.
func TestConnect(t *testing.T) {
	scopes := []string{"tweet.read", "tweet.write", "users.read", "media.write", "offline.access"}
	public := contract()
	public.New = func(t *testing.T, url string) platforms.Platform {
		t.Helper()
		return x.New(x.Config{APIURL: url + "/x", WebURL: url + "/x", AuthorizeURL: url + "/x", ClientID: "herald"}, transport.New(transport.Options{}))
	}
	for name, suite := range map[string]*platformtest.Suite{"confidential": contract(), "public": public} {
		connecting := platformtest.Connecting{Suite: suite, Scopes: scopes, Needed: scopes, Verifies: true}
		t.Run(name, connecting.Run)
	}
}

func TestConsentURL(t *testing.T) {
	p := x.New(x.Config{ClientID: "herald"}, transport.New(transport.Options{}))
	platformtest.CheckConsent(t, p, "https://x.com/i/oauth2/authorize", url.Values{
		"client_id": {"herald"}, "scope": {"tweet.read tweet.write users.read media.write offline.access"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	})
}
