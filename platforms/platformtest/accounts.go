// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/sandboxtest"
)

// endedClass returns the error class for an expired access token: refresh if the token can be renewed, and reconnect
// otherwise.
func (s *Suite) endedClass() platforms.Class {
	switch s.Renewal {
	case ByRefreshToken, ByRotation:
		return platforms.ClassRefresh
	case ByItself, Never:
		return platforms.ClassReconnect
	default:
		return ""
	}
}

func (s *Suite) testIdentify(t *testing.T) {
	t.Run("account", func(t *testing.T) {
		f := s.start(t, clock.RealClock{})
		identity, err := f.platform.Identify(t.Context(), f.token())
		if err != nil || identity.AccountID != f.account.ID || identity.Username != f.account.Username || identity.DisplayName == "" || (identity.IconURL == "") != s.NoPicture {
			t.Errorf("got %+v, %v; want account %s", identity, err, f.account.ID)
		}
		_, err = f.platform.Identify(t.Context(), platforms.Token{Access: "nobody's"})
		if recorder.ClassOf(err) != s.endedClass() {
			t.Errorf("an invalid token returns %v", err)
		}
	})
	tests := map[string]struct {
		reason string
		fault  sandboxtest.Fault
		class  []platforms.Class
	}{
		"outage":        {"an outage is temporary", sandboxtest.Fault{Kind: "status", Status: 500}, []platforms.Class{platforms.ClassTransient}},
		"gateway":       {"an error from a proxy is temporary", sandboxtest.Fault{Kind: "status", Status: 502}, []platforms.Class{platforms.ClassTransient}},
		"redirect":      {"an unexpected response does not concern the account", sandboxtest.Fault{Kind: "status", Status: 307}, []platforms.Class{platforms.ClassUnknown}},
		"no content":    {"a success without an account is not evidence", sandboxtest.Fault{Kind: "status", Status: 204}, []platforms.Class{platforms.ClassUnknown}},
		"rate limited":  {"a rate limit is temporary", sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, []platforms.Class{platforms.ClassRateLimited}},
		"token expired": {"an expired token has to be replaced", sandboxtest.Fault{Kind: "token_expired"}, []platforms.Class{s.endedClass()}},
		"token revoked": {"a revoked token has to be replaced", sandboxtest.Fault{Kind: "token_revoked"}, []platforms.Class{s.endedClass()}},
		// The HTTP client may retry a read when its connection closes.
		"closed": {"a lost response is requested again", sandboxtest.Fault{Kind: "drop_after"}, []platforms.Class{platforms.ClassTransient, ""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := s.start(t, clock.RealClock{})
			s.skipUnnoticed(t, tc.fault)
			tc.fault.Operation = "identity"
			f.fault(t, tc.fault)
			_, err := f.platform.Identify(t.Context(), f.token())
			if !slices.Contains(tc.class, recorder.ClassOf(err)) {
				t.Errorf("%s: got %v of class %q", tc.reason, err, recorder.ClassOf(err))
			}
			f.checkNoSecrets(t, err)
		})
	}
}

// skipUnnoticed skips the test of a fault that the platform's own sessions conceal. The platform's package tests the
// renewal of sessions.
func (s *Suite) skipUnnoticed(t *testing.T, fault sandboxtest.Fault) {
	t.Helper()
	if s.Sessions && fault.Kind == "token_expired" {
		t.Skipf("%s renews its sessions within a call", s.Name)
	}
}

func (s *Suite) testRefresh(t *testing.T) {
	if s.Renewal == Never {
		f := s.start(t, clock.RealClock{})
		if _, err := f.platform.Refresh(t.Context(), f.token()); recorder.ClassOf(err) != platforms.ClassReconnect || f.arrived(t, "refresh_token") != 0 {
			t.Errorf("got %v; this platform's tokens cannot be renewed", err)
		}
		return
	}
	t.Run("renews", s.testRenewal)
	tests := map[string]struct {
		reason string
		fault  sandboxtest.Fault
		class  platforms.Class
	}{
		"closed before": {"a lost call does not disconnect the account", sandboxtest.Fault{Kind: "drop_before"}, platforms.ClassTransient},
		"closed after":  {"a lost response does not disconnect the account", sandboxtest.Fault{Kind: "drop_after"}, platforms.ClassTransient},
		"outage":        {"an outage is temporary", sandboxtest.Fault{Kind: "status", Status: 500}, platforms.ClassTransient},
		"unavailable":   {"another status for an outage", sandboxtest.Fault{Kind: "status", Status: 503}, platforms.ClassTransient},
		"redirect":      {"following it would use a refresh token twice", sandboxtest.Fault{Kind: "status", Status: 307}, platforms.ClassUnknown},
		"rate limited":  {"a rate limit is temporary", sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, platforms.ClassRateLimited},
		"revoked":       {"after a revoked grant, a user has to reconnect", sandboxtest.Fault{Kind: "token_revoked"}, platforms.ClassReconnect},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := s.start(t, clock.RealClock{})
			tc.fault.Operation = "refresh_token"
			f.fault(t, tc.fault)
			renewed, err := f.platform.Refresh(t.Context(), f.token())
			if recorder.ClassOf(err) != tc.class || renewed != (platforms.Token{}) {
				t.Errorf("%s: got %v of class %q", tc.reason, err, recorder.ClassOf(err))
			}
			f.checkNoSecrets(t, err)
			if n := f.arrived(t, "refresh_token"); n != 1 {
				t.Errorf("%d calls arrived for one renewal", n)
			}
		})
	}
}

// testRenewal renews a token that is a day old: some platforms refuse to renew younger ones.
func (s *Suite) testRenewal(t *testing.T) {
	clk := clocktesting.NewFakeClock(now())
	f := s.start(t, clk)
	clk.Step(25 * time.Hour)
	renewed, err := f.platform.Refresh(t.Context(), f.token())
	if err != nil || renewed.Access == "" || renewed.Access == f.account.AccessToken {
		t.Fatalf("the token was not renewed: %v", err)
	}
	if !renewed.ExpiresAt.After(now()) {
		t.Errorf("the renewed token expires at %v", renewed.ExpiresAt)
	}
	if identity, err := f.platform.Identify(t.Context(), renewed); err != nil || identity.AccountID != f.account.ID {
		t.Errorf("the renewed token identifies %+v, %v", identity, err)
	}
	switch s.Renewal {
	case ByRotation:
		if renewed.Refresh == "" || renewed.Refresh == f.account.RefreshToken {
			t.Error("the refresh token was not replaced")
		}
		if _, err := f.platform.Refresh(t.Context(), f.token()); recorder.ClassOf(err) != platforms.ClassReconnect {
			t.Errorf("a used refresh token returns %v", err)
		}
	case ByRefreshToken:
		if renewed.Refresh == "" || renewed.Refresh != f.account.RefreshToken {
			t.Error("the refresh token must not change")
		}
	case ByItself:
		if !f.platform.Capabilities().RenewsItself || f.platform.Capabilities().RefreshLead <= 0 {
			t.Error("the capabilities lack RenewsItself or RefreshLead")
		}
	case Never:
	}
}

// testPostsLeft reads an account's remaining posting quota.
func (s *Suite) testPostsLeft(t *testing.T) {
	tests := map[string]struct {
		reason string
		quota  int
		fault  sandboxtest.Fault
		told   bool
	}{
		"room":    {"the remaining quota is returned", 12, sandboxtest.Fault{}, true},
		"none":    {"an exhausted quota is returned too", 0, sandboxtest.Fault{}, true},
		"outage":  {"unreadable limits do not disconnect an account", 12, sandboxtest.Fault{Kind: "status", Status: 503}, false},
		"refused": {"a rejected request for limits does not disconnect an account", 12, sandboxtest.Fault{Kind: "token_expired"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := s.start(t, clock.RealClock{})
			inspector, ok := f.platform.(platforms.AccountInspector)
			if !ok {
				t.Fatalf("%s does not inspect accounts", s.Name)
			}
			if _, err := f.control.Account(t.Context(), s.Name, f.account.ID, map[string]any{"quota": tc.quota}); err != nil {
				t.Fatal(err)
			}
			if tc.fault.Kind != "" {
				tc.fault.Operation, tc.fault.Times = "*", 5
				f.fault(t, tc.fault)
			}
			got, err := inspector.Inspect(t.Context(), platforms.Account{ID: f.account.ID, Token: f.token()})
			if err != nil || got.TikTok != nil || len(got.RateLimits) == 1 != tc.told {
				t.Fatalf("%s: got %+v, %v", tc.reason, got, err)
			}
			if !tc.told {
				return
			}
			if limit := got.RateLimits[0]; limit.Name != platforms.PostsPerDay || limit.Remaining != tc.quota || limit.BlockedUntil.IsZero() != (tc.quota > 0) {
				t.Errorf("%s: got %+v", tc.reason, limit)
			}
		})
	}
}
