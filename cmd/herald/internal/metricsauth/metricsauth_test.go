// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsauth

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

func TestFilter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, header string
		away           bool
		want, asked    int
	}{
		"no token":      {"anybody could ask", "", false, http.StatusUnauthorized, 0},
		"another sort":  {"a password is no token", "Basic eDp5", false, http.StatusUnauthorized, 0},
		"unknown token": {"it opens nothing", "Bearer unknown", false, http.StatusUnauthorized, 1},
		"no right":      {"an account of its own is not enough", "Bearer guest", false, http.StatusForbidden, 2},
		"right":         {"a role allows it; the second request asks nothing", "Bearer prometheus", false, http.StatusOK, 2},
		"API away":      {"who cannot be judged is not let in", "Bearer prometheus", true, http.StatusInternalServerError, 2},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if tc.away {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				answer(t, w, r)
			}))
			defer api.Close()
			filter, err := Filter(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, api.Client())
			if err != nil {
				t.Fatal(err)
			}
			handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
				r.Header.Set("Authorization", tc.header)
				handler.ServeHTTP(w, r)
				if w.Code != tc.want {
					t.Errorf("%s: got %d, want %d", tc.reason, w.Code, tc.want)
				}
			}
			if asked != tc.asked {
				t.Errorf("%s: the API was asked %d times, want %d", tc.reason, asked, tc.asked)
			}
		})
	}
}

// answer is the Kubernetes API: the token is the account's name, and prometheus may get /metrics.
func answer(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	var reply any
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status.Authenticated = review.Spec.Token != "unknown"
		review.Status.User.Username = review.Spec.Token
		reply = review
	default:
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		at := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && at.Path == "/metrics" && at.Verb == "get"
		reply = review
	}
	if err := json.NewEncoder(w).Encode(reply); err != nil {
		t.Error(err)
	}
}
