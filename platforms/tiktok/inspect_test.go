// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
)

// TestInspectSandbox inspects an account in the sandbox, which was written from TikTok's documentation.
func TestInspectSandbox(t *testing.T) {
	control := sandboxtest.Start(t)
	p := New(Config{APIURL: control.URL + "/tiktok"}, transport.New(transport.Options{}))
	tests := map[string]struct {
		reason   string
		settings map[string]any
		want     *v1alpha1.TikTokAccount
		full     bool
	}{
		"public": {
			"an account that everybody sees chooses freely", nil,
			&v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"PUBLIC_TO_EVERYONE", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"}, MaxVideoPostDurationSeconds: 600}, false,
		},
		"private": {
			"a private one does not, nor may others use its videos",
			map[string]any{"private": true, "comment_disabled": true},
			&v1alpha1.TikTokAccount{
				PrivacyLevelOptions: []string{"FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"},
				CommentDisabled:     true, DuetDisabled: true, StitchDisabled: true, MaxVideoPostDurationSeconds: 600,
			}, false,
		},
		"full": {"one without room says only that", map[string]any{"quota": 0}, nil, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			account, err := control.Account(t.Context(), "tiktok", "open-"+name, tc.settings)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Inspect(t.Context(), platforms.Account{ID: account.ID, Token: platforms.Token{Access: account.AccessToken}})
			if diff := cmp.Diff(tc.want, got.TikTok); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			full := len(got.RateLimits) == 1 && got.RateLimits[0].Remaining == 0 && !got.RateLimits[0].BlockedUntil.IsZero() && !got.RateLimits[0].AppWide
			if full != tc.full {
				t.Errorf("%s: got %+v", tc.reason, got.RateLimits)
			}
		})
	}
}

func TestInspectAnswers(t *testing.T) {
	code := func(status int, code string) http.HandlerFunc {
		return says(status, `{"data":{},"error":{"code":"`+code+`","message":"","log_id":"1"}}`)
	}
	tests := map[string]struct {
		reason, scopes string
		answer         http.HandlerFunc
		class          platforms.Class
		none           bool
	}{
		"inbox only":      {"an account for drafts alone has nothing to choose, and is not asked", "user.info.basic,video.upload", nil, "", true},
		"token ended":     {"another token is needed", "", code(401, "access_token_invalid"), platforms.ClassRefresh, true},
		"scope missing":   {"a person has to grant it", "", code(401, "scope_not_authorized"), platforms.ClassReconnect, true},
		"banned":          {"a person has to act", "", code(200, "spam_risk_user_banned_from_posting"), platforms.ClassRestricted, true},
		"too often":       {"it is asked later", "", code(429, "rate_limit_exceeded"), platforms.ClassRateLimited, true},
		"app full":        {"the app has as many users as it may; those who are among them may go on", "", code(200, "reached_active_user_cap"), "", false},
		"outage":          {"an outage passes", "", says(503, ``), platforms.ClassTransient, true},
		"no levels":       {"an account that may choose nothing is no answer", "", says(200, `{"data":{"privacy_level_options":[]},"error":{"code":"ok"}}`), platforms.ClassUnknown, true},
		"new code":        {"a refusal of the question says nothing about the account", "", code(403, "something_new"), platforms.ClassUnknown, true},
		"not even theirs": {"nor is what something in between says", "", says(200, `hello`), platforms.ClassUnknown, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newTikTok(t, tc.answer)
			got, err := p.Inspect(t.Context(), platforms.Account{ID: "o-1", Token: platforms.Token{Access: "a1", Scopes: tc.scopes}})
			if class(err) != tc.class || got.TikTok != nil || (len(got.RateLimits) == 0) != tc.none {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
			if !tc.none && (got.RateLimits[0].AppWide || !got.RateLimits[0].BlockedUntil.Equal(noon.Add(time.Hour))) {
				t.Errorf("%s: got %+v", tc.reason, got.RateLimits[0])
			}
		})
	}
}
