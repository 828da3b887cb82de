// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsauth

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/test/must"
)

func TestFilter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, header string
		away           bool
		want, asked    int
	}{
		"no token":       {"a token is required", "", false, http.StatusUnauthorized, 0},
		"another scheme": {"a password is not a token", "Basic eDp5", false, http.StatusUnauthorized, 0},
		"unknown token":  {"the token is unknown", token("unknown"), false, http.StatusUnauthorized, 1},
		"opaque token":   {"Kubernetes' tokens are JWTs, so others are rejected without a request", "Bearer unknown", false, http.StatusUnauthorized, 0},
		"no header":      {"three segments do not make a JWT", "Bearer a.b.c", false, http.StatusUnauthorized, 0},
		"long token":     {"the Kubernetes API would parse the token", token(strings.Repeat("a", 4<<10)), false, http.StatusUnauthorized, 0},
		"no right":       {"an authenticated account does not suffice", token("guest"), false, http.StatusForbidden, 2},
		"right":          {"a role allows it; the second request uses the cache", token("prometheus"), false, http.StatusOK, 2},
		"API away":       {"without an authorization, the request fails", token("prometheus"), true, http.StatusInternalServerError, 2},
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
			must.Succeed(t, err)
			handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			must.Succeed(t, err)
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
				t.Errorf("%s: sent %d requests to the API, want %d", tc.reason, asked, tc.asked)
			}
		})
	}
}

// token returns a header with an account's JSON Web Token, and owner returns the account.
func token(of string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return "Bearer " + encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(of)) + ".c2ln"
}

func owner(token string) string {
	name, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		return err.Error()
	}
	return string(name)
}

// reviewed counts a Kubernetes API's reviews.
type reviewed struct {
	http.RoundTripper

	asked atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (v *reviewed) RoundTrip(r *http.Request) (*http.Response, error) {
	v.asked.Add(1)
	return v.RoundTripper.RoundTrip(r)
}

// guarded serves metrics behind a guard whose Kubernetes API is answer.
func guarded(t *testing.T, c clock.PassiveClock) (serve func(address, header string) int, api *reviewed) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(t, w, r)
	}))
	t.Cleanup(server.Close)
	api = &reviewed{RoundTripper: server.Client().Transport}
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}, QPS: -1}
	tokens, err := typedauthenticationv1.NewForConfigAndClient(config, &http.Client{Transport: api})
	must.Succeed(t, err)
	rights, err := typedauthorizationv1.NewForConfigAndClient(config, &http.Client{Transport: api})
	must.Succeed(t, err)
	g := newGuard(tokens.TokenReviews(), rights.SubjectAccessReviews(), c)
	return func(address, header string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		r.RemoteAddr = address
		r.Header.Set("Authorization", header)
		status, err := g.authorize(w, r)
		if err != nil {
			t.Error(err)
		}
		return status
	}, api
}

// TestFlood sends forged tokens from one address and from many while Prometheus scrapes.
func TestFlood(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	serve, api := guarded(t, c)
	prometheus := token("prometheus")
	if status := serve("10.0.0.1:1", prometheus); status != http.StatusOK {
		t.Fatal(status)
	}
	before := api.asked.Load()
	for i := range 10_000 {
		serve("10.0.0.2:1", token(fmt.Sprintf("unknown-%d", i)))
	}
	if asked := api.asked.Load() - before; asked > reviewsPerMinute {
		t.Errorf("one address caused %d requests to the Kubernetes API in a minute, want at most %d", asked, reviewsPerMinute)
	}
	before = api.asked.Load()
	for i := range 2_000 {
		serve(fmt.Sprintf("[2001:db8::%x]:1", i+1), token(fmt.Sprintf("unknown-of-a-network-%d", i)))
	}
	if asked := api.asked.Load() - before; asked > reviewsPerMinute {
		t.Errorf("one network of 64 bits caused %d requests to the Kubernetes API in a minute, want at most %d", asked, reviewsPerMinute)
	}
	for i := range 2_000 {
		serve(fmt.Sprintf("10.1.%d.%d:1", i/256, i%256), token(fmt.Sprintf("unknown-of-many-%d", i)))
	}
	before = api.asked.Load()
	if status := serve("10.0.0.1:1", prometheus); status != http.StatusOK || api.asked.Load() != before {
		t.Errorf("made-up tokens evicted the cached review of Prometheus: %d", status)
	}
	c.SetTime(c.Now().Add(2 * allowedTTL))
	if status := serve("10.0.0.2:1", prometheus); status != http.StatusOK {
		t.Errorf("a cached token was reviewed again, or limited by other clients of its address: %d", status)
	}
}

// TestConcurrentReviews sends forged tokens while the Kubernetes API is slow.
func TestConcurrentReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(slow{asked: new(atomic.Int32)}, nil, clock.RealClock{})
		var log bytes.Buffer
		logger := funcr.New(func(_, text string) { log.WriteString(text + "\n") }, funcr.Options{})
		statuses := make(chan int, 50)
		var mu sync.Mutex
		for i := range 50 {
			go func() {
				r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
				r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", i)
				r.Header.Set("Authorization", token(fmt.Sprintf("unknown-%d", i)))
				status, err := g.authorize(httptest.NewRecorder(), r)
				mu.Lock()
				g.log(logger, err)
				mu.Unlock()
				statuses <- status
			}()
		}
		synctest.Wait()
		if asked := g.tokens.(slow).asked.Load(); asked != maxConcurrentReviews {
			t.Errorf("%d requests are pending, want %d", asked, maxConcurrentReviews)
		}
		for range 50 { // after reviewTimeout, which passes immediately here
			if status := <-statuses; status != http.StatusServiceUnavailable && status != http.StatusInternalServerError {
				t.Errorf("got %d", status)
			}
		}
		if lines := strings.Count(log.String(), "\n"); lines > 2 {
			t.Errorf("two causes are logged in %d lines: %s", lines, log.String())
		}
	})
}

// slow never responds in time.
type slow struct {
	typedauthenticationv1.TokenReviewInterface

	asked *atomic.Int32
}

// Create implements typedauthenticationv1.TokenReviewInterface.
func (s slow) Create(ctx context.Context, _ *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// answer acts as the Kubernetes API: the token names the account, and only prometheus may get /metrics.
func answer(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	var reply any
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status.User.Username = owner(review.Spec.Token)
		review.Status.Authenticated = !strings.HasPrefix(review.Status.User.Username, "unknown")
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
