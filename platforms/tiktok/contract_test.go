// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok_test

import (
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

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "tiktok",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return tiktok.New(tiktok.Config{
				APIURL: url + "/tiktok", WebURL: url + "/tiktok", ClientID: "herald", ClientSecret: func() string { return "secret" },
			}, transport.New(transport.Options{}))
		},
		Renewal:        platformtest.ByRotation,
		LateProcessing: true, Refusals: refusals(),
		Resumes: 6 << 20,
		// Photos need a single publishing call, and only its response contains their ticket.
		First:      v1alpha1.CategoryVideo,
		Unprovable: []v1alpha1.Category{v1alpha1.CategoryImage},
		Bearerless: []v1alpha1.Category{v1alpha1.CategoryVideo},
		Remakes:    []v1alpha1.Category{v1alpha1.CategoryVideo},
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }
