// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/intake"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/ratelimit"
	"github.com/herald-social/herald/apiserver/request"
)

// TestTeamsAreCounted holds that all keys of a team have one limit, and that a request which costs
// much is charged for it.
func TestTeamsAreCounted(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	handler := NewHandler(bridge.New(bridge.Config{
		Key: func(token string) (*v1alpha1.APIKey, error) { // a token is TEAM.KEY
			team, name, _ := strings.Cut(token, ".")
			return &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}, nil
		},
		Used: func(*v1alpha1.APIKey) {}, Index: postindex.New(), Owner: activeTeam{}.Owner, Clock: clock, Log: slog.New(slog.DiscardHandler),
	}), Limits{Teams: ratelimit.New(20, clock), Bodies: intake.NewGate(intake.Most)})
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
		{"a list costs one", "a.one", "", 200, "19"},
		{"of whichever key", "a.two", "", 200, "18"},
		{"another team has its own", "b.one", "", 200, "19"},
		{"a body costs by its size, although it is refused", "a.one", `{"category":"text","x":"` + strings.Repeat("a", 640<<10) + `"}`, 400, "7"},
		{"and again", "a.two", `{"category":"text","x":"` + strings.Repeat("a", 640<<10) + `"}`, 400, "0"},
		{"until the team is in debt", "a.three", "", 429, "0"},
		{"which is not the other's", "b.two", "", 200, "18"},
	} {
		got := ask(tt.token, tt.body)
		if got.Code != tt.status || got.Header().Get("RateLimit-Remaining") != tt.left {
			t.Errorf("%s: answered %d %s with %s left; want %d and %s", tt.reason, got.Code, got.Body, got.Header().Get("RateLimit-Remaining"), tt.status, tt.left)
		}
	}
}
