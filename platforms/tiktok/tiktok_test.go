// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/sandboxtest"
)

// noon is the current time in these tests.
var noon = recorder.Noon

var (
	says  = recorder.Respond
	class = recorder.ClassOf

	identifies, renews, refuses = platformtest.Identified, platformtest.Renewed, platformtest.Refused
)

func newTikTok(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	return New(Config{
		APIURL: server.URL + "/", ClientID: "key", ClientSecret: func() string { return "s3cr3t" }, Clock: clocktesting.NewFakeClock(noon),
	}, transport.New(transport.Options{})), server
}

func fails(status int, code string) http.HandlerFunc {
	return says(status, `{"data":{},"error":{"code":"`+code+`","message":"…","log_id":"1"}}`)
}

func TestIdentify(t *testing.T) {
	account := platforms.Identity{AccountID: "o-1", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"}
	user := `"data":{"user":{"open_id":"o-1","display_name":"Acme","username":"acme","avatar_url":"https://cdn.example/a"}}`
	platformtest.Identify(t, newTikTok, "/v2/user/info/?fields=open_id,avatar_url,display_name,username",
		identifies("account", "it has an open id, a name and a handle", says(200, `{`+user+`,"error":{"code":"ok","message":""}}`), account),
		refuses("ended token", "an expired token is renewed", fails(401, "access_token_invalid"), platforms.ClassRefresh),
		refuses("scope", "a user has to grant the scope", fails(401, "scope_not_authorized"), platforms.ClassReconnect),
		refuses("scope, a field", "a field may need a scope of its own", fails(400, "scope_permission_missed"), platforms.ClassReconnect),
		refuses("within a 200", "an error may have the status of a success", fails(200, "internal_error"), platforms.ClassTransient),
		refuses("limited", "TikTok counts calls over a minute", fails(429, "rate_limit_exceeded"), platforms.ClassRateLimited).Waiting(time.Minute),
		refuses("bad request", "a rejected request does not describe the account", fails(400, "invalid_params"), platforms.ClassUnknown),
		refuses("bare 401", "a status alone does not describe the account", says(401, ``), platforms.ClassUnknown),
		refuses("no account", "a response without an account does not describe it", says(200, `{"data":{},"error":{"code":"ok"}}`), platforms.ClassUnknown),
		refuses("no error code", "a response without an error code is not a success", says(200, `{`+user+`}`), platforms.ClassUnknown))
}

func TestIdentifyRequestsGrantedFields(t *testing.T) {
	for scopes, want := range map[string]bool{
		"": true, "user.info.basic user.info.profile": true, "user.info.basic,user.info.profile": true, "user.info.basic video.publish": false,
	} {
		p, server := newTikTok(t, says(500, ``))
		_, _ = p.Identify(t.Context(), platforms.Token{Access: "access", Scopes: scopes})
		if got := strings.Contains(server.Requests()[0].Query.Get("fields"), "username"); got != want {
			t.Errorf("with scopes %q, the username is requested: %v", scopes, got)
		}
	}
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Refresh: "r1", Scopes: "video.publish", ExpiresAt: noon}
	rotated := platforms.Token{Access: "a2", Refresh: "r2", Scopes: "user.info.basic video.publish", ExpiresAt: noon.Add(2 * time.Hour)}
	rotated.RefreshExpiresAt = noon.Add(180 * 24 * time.Hour)
	kept := platforms.Token{Access: "a2", Refresh: "r1", Scopes: "video.publish", ExpiresAt: noon.Add(time.Minute)}
	oauth := func(status int, code string) http.HandlerFunc {
		return says(status, `{"error":"`+code+`","error_description":"…","log_id":"1"}`)
	}
	asked := recorder.Request{Method: http.MethodPost, Path: "/v2/oauth/token/", Form: url.Values{
		"client_key": {"key"}, "client_secret": {"s3cr3t"}, "grant_type": {"refresh_token"}, "refresh_token": {"r1"},
	}}
	platformtest.Renew(t, newTikTok, old, asked,
		renews("rotated", "both tokens are replaced; scopes are separated by commas", says(200, `{"access_token":"a2","expires_in":7200,`+
			`"refresh_token":"r2","refresh_expires_in":15552000,"open_id":"o-1","scope":"user.info.basic,video.publish","token_type":"Bearer"}`), rotated),
		renews("not rotated", "omitted values stay", says(200, `{"access_token":"a2","expires_in":60}`), kept),
		refuses("no refresh token", "a refresh needs a refresh token", nil, platforms.ClassReconnect).Of(platforms.Token{Access: "a1"}),
		refuses("used or revoked", "a dead refresh token needs a user", oauth(400, "invalid_grant"), platforms.ClassReconnect),
		refuses("within a 200", "an error may have the status of a success", oauth(200, "invalid_grant"), platforms.ClassReconnect),
		refuses("app refused", "reconnecting does not correct a wrong secret", oauth(401, "invalid_client"), platforms.ClassTransient),
		refuses("request refused", "reconnecting does not correct a wrong configuration", oauth(400, "invalid_request"), platforms.ClassTransient),
		refuses("busy", "an outage ends", oauth(503, "temporarily_unavailable"), platforms.ClassTransient),
		refuses("limit by name", "a limit expires", oauth(429, "rate_limit_exceeded"), platforms.ClassRateLimited))
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if len(limits.Categories) == 0 || len(limits.Delivers) != 2 || limits.RefreshLead != 15*time.Minute {
		t.Errorf("got %+v", limits)
	}
	if got := limits.CaptionLength("a🎉"); got != 3 {
		t.Errorf("an emoji has two UTF-16 code units, but %d were counted", got)
	}
}

// FuzzCaption compares the counts with the definition of UTF-16: two units for code points beyond the first 65,536, and
// one for all others.
func FuzzCaption(f *testing.F) {
	for _, text := range []string{"", "Hello", "é日本", "👨‍👩‍👧 and 🇮🇸", "\xff\xed\xa0\x80", strings.Repeat("🎉", 1100), "\ufffd\U0010ffff"} {
		f.Add(text)
	}
	limits := New(Config{}, nil).Capabilities()
	f.Fuzz(func(t *testing.T, text string) {
		want := 0
		for _, r := range text {
			want++
			if r > 0xffff {
				want++
			}
		}
		if got := limits.CaptionLength(text); got != want {
			t.Errorf("%q has %d UTF-16 code units, but %d were counted", text, want, got)
		}
	})
}

// TestLimitScope distinguishes the limit for drafts, which does not affect direct posts, from the account's limits.
func TestLimitScope(t *testing.T) {
	for code, alone := range map[string]bool{
		"spam_risk_too_many_pending_share": true, "spam_risk_too_many_posts": false, "reached_active_user_cap": false,
	} {
		t.Run(code, func(t *testing.T) {
			_, p := newDesk(t)
			for name, got := range map[string]*platforms.Error{
				"answer": p.classify(apiError{status: http.StatusForbidden, code: code}).Error, "status": failedOf(code),
			} {
				if got.Class != platforms.ClassQuota || got.PostOnly != alone {
					t.Errorf("%s: got %+v, want a quota for drafts only: %v", name, got, alone)
				}
			}
		})
	}
}

func TestValidateOptions(t *testing.T) {
	t.Parallel()
	private := []string{"SELF_ONLY", "FOLLOWER_OF_CREATOR"}
	for _, tt := range []struct {
		name, reason string
		can          []string
		options      *v1alpha1.TikTokOptions
		want         string
	}{
		{"draft", "the user may still choose in the app", private, nil, ""},
		{"draft, configured", "the level is configured", private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, "the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY"},
		{"public account", "an omitted level means public", []string{"PUBLIC_TO_EVERYONE", "SELF_ONLY"}, nil, ""},
		{"omitted", "the default level is not offered to private accounts", private, nil, "the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY"},
		{"configured", "private accounts cannot choose it", private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, "the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY"},
		{"chosen well", "a private account can choose this one", private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}, ""},
		{"no level offered", "no level may be offered", private[1:], nil, "the account cannot choose PUBLIC_TO_EVERYONE, nor any other level that a post can ask for"},
		{"inbox draft", "its owner chooses in the app", private, &v1alpha1.TikTokOptions{Draft: true}, ""},
		{"no list of levels", "TikTok decides", nil, nil, ""},
		{"never examined", "TikTok itself decides", nil, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			account := &v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: tt.can}}
			if tt.name == "never examined" {
				account.TikTok = nil
			}
			target := &v1alpha1.PostTarget{TikTok: tt.options}
			errs := New(Config{}, nil).Capabilities().ValidateOptions(target, strings.HasPrefix(tt.name, "draft"), account, field.NewPath("spec", "targets").Index(0))
			got := ""
			if len(errs) > 0 {
				got = errs[0].Detail
				if path := "spec.targets[0].tiktok.privacyLevel"; errs[0].Field != path {
					t.Errorf("the error is at %s, want %s", errs[0].Field, path)
				}
			}
			if got != tt.want || len(errs) > 1 {
				t.Errorf("%s: got %v, want %q", tt.reason, errs, tt.want)
			}
		})
	}
}

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
			"private accounts have no public videos",
			map[string]any{"private": true, "comment_disabled": true},
			&v1alpha1.TikTokAccount{
				PrivacyLevelOptions: []string{"FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"},
				CommentDisabled:     true, DuetDisabled: true, StitchDisabled: true, MaxVideoPostDurationSeconds: 600,
			}, false,
		},
		"full": {"an account without room reports only that", map[string]any{"quota": 0}, nil, true},
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

func TestInspectResponses(t *testing.T) {
	code := func(status int, code string) http.HandlerFunc {
		return says(status, `{"data":{},"error":{"code":"`+code+`","message":"","log_id":"1"}}`)
	}
	tests := map[string]struct {
		reason, scopes string
		answer         http.HandlerFunc
		class          platforms.Class
		none           bool
	}{
		"inbox only":      {"an account for drafts only needs no options, and is not queried", "user.info.basic,video.upload", nil, "", true},
		"token ended":     {"another token is needed", "", code(401, "access_token_invalid"), platforms.ClassRefresh, true},
		"scope missing":   {"a user has to grant it", "", code(401, "scope_not_authorized"), platforms.ClassReconnect, true},
		"banned":          {"a user has to act", "", code(200, "spam_risk_user_banned_from_posting"), platforms.ClassRestricted, true},
		"too often":       {"the call is retried later", "", code(429, "rate_limit_exceeded"), platforms.ClassRateLimited, true},
		"app full":        {"the app has reached its user limit, which does not affect existing users", "", code(200, "reached_active_user_cap"), "", false},
		"outage":          {"an outage passes", "", says(503, ``), platforms.ClassTransient, true},
		"no levels":       {"an account without any levels is an invalid response", "", says(200, `{"data":{"privacy_level_options":[]},"error":{"code":"ok"}}`), platforms.ClassUnknown, true},
		"new code":        {"a refusal of the question is not evidence about the account", "", code(403, "something_new"), platforms.ClassUnknown, true},
		"not even theirs": {"another server's response is not proof", "", says(200, `hello`), platforms.ClassUnknown, true},
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

// FuzzClassify checks that any response results in an error that describes a problem without repeating foreign text,
// and that an outage is not treated as a refusal.
func FuzzClassify(f *testing.F) {
	f.Add(400, "invalid_params")
	f.Add(200, "spam_risk_too_many_posts")
	f.Add(401, "access_token_invalid")
	f.Add(429, "")
	f.Add(-1, "<script>")
	p := New(Config{}, nil)
	f.Fuzz(func(t *testing.T, status int, code string) {
		bad := p.classify(apiError{status: status, code: code, signed: true})
		if bad == nil || bad.Error == nil || bad.Problem == "" {
			t.Fatal("an empty error was returned")
		}
		if bad.documented && (bad.Class == platforms.ClassTransient || bad.Class == platforms.ClassUnknown) {
			t.Errorf("%d %q is documented as a refusal, of class %v", status, code, bad.Class)
		}
		if bad.Unlisted && (bad.Subject != "" || bad.Class != platforms.ClassPermanent || bad.Code != sanitizeWord(code)) {
			t.Errorf("%d %q is in no table and makes %+v", status, code, bad.Error)
		}
		if bad.isUnknownID() && status >= http.StatusInternalServerError {
			t.Errorf("%d %q counts as proof that it was not published", status, code)
		}
		if failed := failedOf(code); failed == nil || failed.Problem == "" {
			t.Errorf("the reason %q makes no error", code)
		}
		if word := sanitizeWord(code); word != code && word != "unspecified" {
			t.Errorf("the reason %q is shown as %q", code, word)
		}
	})
}

// FuzzListed checks that any listed post is handled without a panic, and that its creation time is plausible or zero.
func FuzzListed(f *testing.F) {
	f.Add(`{"id":"7300000000000000001","create_time":1800000000,"title":"Hello"}`, "Hello")
	f.Add(`{"id":{},"create_time":"-1","video_description":null}`, "")
	f.Add(`{"create_time":1e300}`, "\u200d")
	f.Fuzz(func(t *testing.T, body, caption string) {
		listed, ok := jsondoc.Decode[listedPost]([]byte(body))
		if !ok {
			return
		}
		job := &platforms.Job{}
		job.Content.Text = caption
		_ = listed.fits(job)
		if at := listed.created(); !at.IsZero() && (at.Year() < 1970 || at.Year() > 9999) {
			t.Errorf("%q was created at %s", body, at)
		}
		matchesTruncated(caption, jsondoc.Text(body))
	})
}
