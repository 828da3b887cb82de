// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// TestScopes calls every operation with tokens that lack one permission each. It creates the tokens in the store, because an owner's grant
// has all permissions.
func TestScopes(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	store, err := state.Open(state.Options{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	account := state.Account{Key: state.Key{Platform: Name, ID: "7"}, Username: "seven"}
	if _, _, err := store.CreateAccount(account, state.Tokens{Access: "none"}, false); err != nil {
		t.Fatal(err)
	}
	gate := faults.NewGate(faults.NewBoard(), clock)
	defer gate.Close()
	mux := http.NewServeMux()
	New(simulator.Options{
		Store: store, Gate: gate, Clock: clock, Logger: slog.New(slog.DiscardHandler), SiteURL: func(*http.Request) string { return "" },
	}).Register(mux)

	const facebook = facebookBase + "/v25.0"
	tests := []struct {
		path   string
		scopes string // the token's scopes
		lacks  string
	}{
		{"GET /instagram/v25.0/me", scopePublish, scopeBasic},
		{"GET /instagram/v25.0/7/media", scopePublish, scopeBasic},
		{"GET /instagram/v25.0/123", scopePublish, scopeBasic},
		{"POST /instagram/v25.0/7/media", scopeBasic, scopePublish},
		{"POST /instagram/v25.0/7/media_publish", scopeBasic, scopePublish},
		{"GET /instagram/v25.0/7/content_publishing_limit", scopeBasic, scopePublish},
		{"GET " + facebook + "/me/accounts", scopeFacebookBasic, scopePageList},
		{"GET " + facebook + "/7", scopePageRead, scopeFacebookBasic},
		{"GET " + facebook + "/7/media", scopeFacebookBasic, scopePageRead},
		{"GET " + facebook + "/123", scopePageRead, scopeFacebookBasic},
		{"POST " + facebook + "/7/media", scopeFacebookBasic + " " + scopePageRead, scopeFacebookPublish},
		{"POST " + facebook + "/7/media", scopeFacebookBasic + " " + scopeFacebookPublish, scopePageRead},
		{"POST " + facebook + "/7/media_publish", scopeFacebookBasic + " " + scopePageRead, scopeFacebookPublish},
		{"POST " + uploadPath("v25.0", "123"), scopeFacebookBasic + " " + scopePageRead, scopeFacebookPublish},
	}
	for _, tt := range tests {
		t.Run(tt.path+" without "+tt.lacks, func(t *testing.T) {
			granted, err := store.Grant(account.Key, state.Tokens{Scopes: strings.Fields(tt.scopes)}, false)
			if err != nil {
				t.Fatal(err)
			}
			method, path, _ := strings.Cut(tt.path, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
			r.Header.Set("Authorization", "OAuth "+granted.Access)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if body := w.Body.String(); w.Code != http.StatusForbidden || !strings.Contains(body, tt.lacks) {
				t.Errorf("%d %s, want 403 that names %s", w.Code, body, tt.lacks)
			}
		})
	}
}
