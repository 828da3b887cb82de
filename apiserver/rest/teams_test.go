// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/request"
)

// limitedHandler serves teams with keys named TEAM.KEY, each team with a limit of perMinute requests.
func limitedHandler(perMinute int) http.Handler {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	return NewHandler(bridge.New(bridge.Config{
		Key: func(token string) (*v1alpha1.APIKey, error) {
			team, name, _ := strings.Cut(token, ".")
			return &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}, nil
		},
		Used: func(*v1alpha1.APIKey) {}, Index: postindex.New(), Owner: activeTeam{}.Owner, Clock: clock, Log: slog.New(slog.DiscardHandler),
	}), Limits{Teams: limits.NewRateLimiter(perMinute, clock), Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)})
}

// TestTeamsAreLimited verifies that all keys of a team share a limit, and that an expensive request is charged for its
// cost.
func TestTeamsAreLimited(t *testing.T) {
	t.Parallel()
	handler := limitedHandler(20)
	ask := func(token, body string) *httptest.ResponseRecorder {
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(request.With(t.Context(), &request.Info{Header: w.Header()}), method, Prefix+"/posts", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(w, r)
		return w
	}
	for _, tt := range []struct {
		reason, token, body string
		status              int
		left                string
	}{
		{"a list costs one token", "a.one", "", 200, "19"},
		{"keys share their team's limit", "a.two", "", 200, "18"},
		{"another team has its own", "b.one", "", 200, "19"},
		{"a body costs its size, even if it is rejected", "a.one", `{"category":"text","x":"` + strings.Repeat("a", 640<<10) + `"}`, 400, "7"},
		{"the second body uses up the limit", "a.two", `{"category":"text","x":"` + strings.Repeat("a", 640<<10) + `"}`, 400, "0"},
		{"the team's limit is exceeded", "a.three", "", 429, "0"},
		{"another team's is not", "b.two", "", 200, "18"},
	} {
		got := ask(tt.token, tt.body)
		if got.Code != tt.status || got.Header().Get("RateLimit-Remaining") != tt.left {
			t.Errorf("%s: got %d %s with %s remaining; want %d and %s", tt.reason, got.Code, got.Body, got.Header().Get("RateLimit-Remaining"), tt.status, tt.left)
		}
	}
}

// padded returns a body of exactly 1 MiB.
func padded(body string) string { return body + strings.Repeat(" ", maxBody-len(body)) }

// TestRefusedBodiesAreCharged verifies that the bytes of a body are charged once, regardless of the result: the most
// expensive bodies never reach an operation.
func TestRefusedBodiesAreCharged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, body string
		change       func(*http.Request)
		status, cost int
	}{
		"too many values": {"1 MiB is 16 times 64 KiB", padded(full(`{"x":[`, `{}`, `]}`)), nil, 400, 17},
		"no JSON":         {"parsing costs as much", strings.Repeat("[", maxBody), nil, 400, 17},
		"wrong fields":    {"the operation rejects the body, and charges it once", `{"x":"` + strings.Repeat("a", maxBody-8) + `"}`, nil, 400, 17},
		"too large":       {"the body was read up to the limit", strings.Repeat("a", 2*maxBody), func(r *http.Request) { r.ContentLength = -1 }, 413, 17},
		"unread":          {"the declared length is too large", strings.Repeat("a", 2*maxBody), nil, 413, 1},
		"a bad key":       {"the response reports the body's errors as well", strings.Repeat("a", maxBody), func(r *http.Request) { r.Header.Set("Idempotency-Key", "") }, 400, 17},
		"small":           {"up to 64 KiB are included", "{" + strings.Repeat(" ", 60<<10), nil, 400, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(request.With(t.Context(), &request.Info{Header: w.Header()}), http.MethodPost, Prefix+"/posts", strings.NewReader(tc.body))
			r.Header.Set("Authorization", "Bearer a.one")
			r.Header.Set("Content-Type", "application/json")
			if tc.change != nil {
				tc.change(r)
			}
			limitedHandler(100).ServeHTTP(w, r)
			if left := w.Header().Get("RateLimit-Remaining"); w.Code != tc.status || left != strconv.Itoa(100-tc.cost) {
				t.Errorf("%s: got %d %.200s with %s of 100 remaining; want %d, and a cost of %d", tc.reason, w.Code, w.Body, left, tc.status, tc.cost)
			}
		})
	}
}
