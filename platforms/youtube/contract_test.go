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

// refusals returns YouTube's error responses to an upload, by their reasons (the sections "Errors" of the YouTube Data
// API and of "videos.insert").
func refusals() map[string]platformtest.Answer {
	out := map[string]platformtest.Answer{}
	for reason, status := range map[string]int{
		"uploadLimitExceeded": 400, "quotaExceeded": 403, "rateLimitExceeded": 403, "uploadRateLimitExceeded": 429, "forbidden": 403,
		"insufficientPermissions": 403, "accessNotConfigured": 403, "youtubeSignupRequired": 401, "authError": 401, "channelSuspended": 403,
		"invalidTitle": 400, "invalidVideoMetadata": 400, "badRequest": 400, "notFound": 404, "gone": 410, "backendError": 503,
	} {
		out[reason] = platformtest.Answer{Status: status, Body: map[string]any{
			"error": map[string]any{"code": status, "message": "m", "errors": []any{map[string]any{"reason": reason, "domain": "global", "message": "m"}}},
		}}
	}
	return out
}

func newAt(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return youtube.New(platforms.Config{
		APIURL: url + "/youtube", WebURL: url + "/youtube", AuthorizeURL: url + "/youtube",
		ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
	}, transport.New(transport.Options{}))
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "youtube", New: newAt,
		Renewal: platformtest.ByRefreshToken,
		// YouTube refuses angle brackets.
		Refuses:        []string{"punctuation"},
		SilentLimits:   true,
		LateProcessing: true, Refusals: refusals(),
		Resumes: 4 << 20,
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }

func TestConnect(t *testing.T) {
	scopes := []string{"https://www.googleapis.com/auth/youtube.upload", "https://www.googleapis.com/auth/youtube.readonly"}
	connecting := platformtest.Connecting{Suite: contract(), Scopes: scopes, Needed: scopes, Verifies: true}
	connecting.Run(t)
}

func TestConsentURL(t *testing.T) {
	p := youtube.New(youtube.Config{ClientID: "herald"}, transport.New(transport.Options{}))
	platformtest.CheckConsent(t, p, "https://accounts.google.com/o/oauth2/v2/auth", url.Values{
		"client_id": {"herald"}, "access_type": {"offline"}, "prompt": {"consent"},
		"scope":          {"https://www.googleapis.com/auth/youtube.upload https://www.googleapis.com/auth/youtube.readonly"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	})
}
