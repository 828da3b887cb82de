// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/request"
)

// anyKey accepts every key.
type anyKey struct{}

func (anyKey) Authenticate(string) (*v1alpha1.APIKey, error) { return &v1alpha1.APIKey{}, nil }

// stuckPosts is a Kubernetes API that never answers.
type stuckPosts struct{ bridge.PostClient }

func (stuckPosts) Get(ctx context.Context, _, _ string) (*v1alpha1.Post, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSilentKubernetesAPI(t *testing.T) {
	t.Parallel()
	handler := NewHandler(bridge.New(bridge.Config{
		Key: anyKey{}.Authenticate, Used: func(*v1alpha1.APIKey) {}, Posts: stuckPosts{}, Index: postindex.New(),
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	}), Limits{})
	synctest.Test(t, func(t *testing.T) {
		info := &request.Info{ID: "id-17"}
		r := httptest.NewRequestWithContext(request.With(t.Context(), info), http.MethodGet, Prefix+"/posts/p1", http.NoBody)
		r.Header.Set("Authorization", "Bearer t")
		w := httptest.NewRecorder()
		start := time.Now()
		handler.ServeHTTP(w, r)
		if took := time.Since(start); took != responseTimeout {
			t.Errorf("responded after %s, want %s", took, responseTimeout)
		}
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "INTERNAL_ERROR") {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if info.Err == nil || info.Operation != "getPost" {
			t.Errorf("the log contains %+v", info)
		}
	})
}

// TestStatusOf verifies that every code of package bridge has an explicit status, and that an unknown code is an internal
// error.
func TestStatusOf(t *testing.T) {
	t.Parallel()
	for code, want := range map[bridge.Code]int{
		bridge.CodeValidation: 400, bridge.CodeTikTokPrivacy: 400, bridge.CodeUnauthorized: 401, bridge.CodeSubscriptionRequired: 403,
		bridge.CodeNotFound: 404, bridge.CodeConflict: 409, bridge.CodeReconnectRequired: 409, bridge.CodeReadinessUnavailable: 409,
		bridge.CodeRateLimited: 429, bridge.CodeInternal: 500, "NEW": 500,
	} {
		if got := StatusOf(code); got != want {
			t.Errorf("%s returns %d, want %d", code, got, want)
		}
	}
}
