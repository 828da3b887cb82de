// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube_test

import (
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/youtube"
)

// refusals returns YouTube's responses to an upload, by their reasons ("Errors" of the YouTube Data API, and of
// "videos.insert").
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

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "youtube",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return youtube.New(youtube.Config{APIURL: url + "/youtube", WebURL: url + "/youtube", ClientID: "herald", ClientSecret: func() string { return "secret" }}, transport.New(transport.Options{}))
		},
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
