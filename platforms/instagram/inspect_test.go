// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram_test

import (
	"net/http/httptest"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/sandboxtest"
)

func TestInspect(t *testing.T) {
	server, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(server)
	t.Cleanup(func() { site.Close(); _ = server.Close() })
	control := sandboxtest.Client{URL: site.URL}
	p := instagram.New(instagram.Config{APIURL: site.URL + "/instagram"}, transport.New(transport.Options{}))
	tests := map[string]struct {
		reason string
		id     string
		quota  any
		fault  string
		told   bool
		left   int
	}{
		"room":    {"what is left is told", "901", 12, "", true, 12},
		"none":    {"nothing is sent while nothing is left", "902", 0, "", true, 0},
		"outage":  {"that limits cannot be read is no reason to disconnect an account", "903", 12, "status", false, 0},
		"refused": {"nor is a refusal to tell them", "904", 12, "token_expired", false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			account, err := control.Account(t.Context(), "instagram", tc.id, map[string]any{"quota": tc.quota})
			if err != nil {
				t.Fatal(err)
			}
			if tc.fault != "" {
				fault := sandboxtest.Fault{Platform: "instagram", Operation: "*", Kind: tc.fault, Account: tc.id, Times: 5}
				if tc.fault == "status" {
					fault.Status = 503
				}
				if err := control.Fault(t.Context(), fault); err != nil {
					t.Fatal(err)
				}
			}
			got, err := p.Inspect(t.Context(), platforms.Account{ID: account.ID, Token: platforms.Token{Access: account.AccessToken}})
			if err != nil || got.TikTok != nil || len(got.RateLimits) == 1 != tc.told {
				t.Fatalf("%s: got %+v, %v", tc.reason, got, err)
			}
			if tc.told && (got.RateLimits[0].Name != platforms.PostsPerDay || got.RateLimits[0].Remaining != tc.left || got.RateLimits[0].BlockedUntil.IsZero() != (tc.left > 0)) {
				t.Errorf("%s: got %+v", tc.reason, got.RateLimits[0])
			}
		})
	}
}
