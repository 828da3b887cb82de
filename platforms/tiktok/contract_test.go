// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok_test

import (
	"net/url"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/tiktok"
)

// refusals returns TikTok's responses to a post ("Error Codes" of the Content Posting API). Some have status 200.
func refusals() map[string]platformtest.Answer {
	out := map[string]platformtest.Answer{}
	for code, status := range map[string]int{
		"access_token_invalid": 401, "scope_not_authorized": 401, "rate_limit_exceeded": 429, "invalid_params": 400, "invalid_param": 400,
		"spam_risk_too_many_posts": 403, "spam_risk_user_banned_from_posting": 403, "spam_risk_too_many_pending_share": 403,
		"reached_active_user_cap": 403, "unaudited_client_can_only_post_to_private_accounts": 403, "url_ownership_unverified": 403,
		"privacy_level_option_mismatch": 403, "app_version_check_failed": 400, "internal_error": 500,
	} {
		body := map[string]any{"data": map[string]any{}, "error": map[string]any{"code": code, "message": "m", "log_id": "1"}}
		out[code], out[code+", called a success"] = platformtest.Answer{Status: status, Body: body}, platformtest.Answer{Status: 200, Body: body}
	}
	return out
}

func newAt(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return tiktok.New(platforms.Config{
		APIURL: url + "/tiktok", WebURL: url + "/tiktok", AuthorizeURL: url + "/tiktok",
		ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
	}, transport.New(transport.Options{}))
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "tiktok", New: newAt,
		Renewal:        platformtest.ByRotation,
		LateProcessing: true, Refusals: refusals(),
		Resumes: 6 << 20,
		// Photos are posted with a single call, and only its response contains their ticket.
		First:      v1alpha1.CategoryVideo,
		Unprovable: []v1alpha1.Category{v1alpha1.CategoryImage},
		Bearerless: []v1alpha1.Category{v1alpha1.CategoryVideo},
		Remakes:    []v1alpha1.Category{v1alpha1.CategoryVideo},
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }

func TestConnect(t *testing.T) {
	connecting := platformtest.Connecting{
		Suite: contract(), Scopes: []string{"user.info.basic", "user.info.profile", "video.publish", "video.upload", "video.list"},
		// Without user.info.profile only the username is missing, and either publish or upload is enough.
		Needed:   []string{"user.info.basic", "video.list"},
		Optional: []string{"user.info.profile", "video.publish", "video.upload"},
		Verifies: true,
	}
	connecting.Run(t)
}

func TestConsentURL(t *testing.T) {
	p := tiktok.New(tiktok.Config{ClientID: "herald"}, transport.New(transport.Options{}))
	platformtest.CheckConsent(t, p, "https://www.tiktok.com/v2/auth/authorize/", url.Values{
		"client_key": {"herald"}, "scope": {"user.info.basic,user.info.profile,video.publish,video.upload,video.list"},
		// TikTok expects the hash in hexadecimal.
		"code_challenge": {"13d31e961a1ad8ec2f16b10c4c982e0876a878ad6df144566ee1894acb70f9c3"}, "code_challenge_method": {"S256"},
	})
}
