// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herald-social/herald/apiserver/signin"
)

// TestCounted tests the sign-in metric: problems for the administrator are counted separately from the user's errors.
func TestCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		claims map[string]any
		do     func(b *browser)
		want   []string
		edits  []func(*signin.OIDC)
	}{
		"Link":    {"the button was pressed", nil, func(b *browser) { b.do(http.MethodPost, b.link(time.Hour)) }, []string{"link succeeded"}, nil},
		"Opened":  {"opening a link does not sign in", nil, func(b *browser) { b.do(http.MethodGet, b.link(time.Hour)) }, nil, nil},
		"Page":    {"the sign-in page does not sign in", nil, func(b *browser) { b.do(http.MethodGet, "/signin") }, nil, nil},
		"Unknown": {"no such link", nil, func(b *browser) { b.do(http.MethodPost, "/signin/link/none") }, []string{"link refused"}, nil},
		"Used": {"a link can be used once", nil, func(b *browser) {
			path := b.link(time.Hour)
			b.do(http.MethodPost, path)
			b.do(http.MethodPost, path)
		}, []string{"link succeeded", "link refused"}, nil},
		"Provider": {"a complete sign-in", ada, func(b *browser) { b.do(http.MethodGet, b.begin("").RequestURI()) }, []string{"oidc succeeded"}, nil},
		"NotVerified": {"the user has to verify the email address", map[string]any{"email": "ada@example.com"}, func(b *browser) {
			b.do(http.MethodGet, b.begin("").RequestURI())
		}, []string{"oidc refused"}, nil},
		"Away": {"the provider is unavailable", ada, func(b *browser) {
			b.down.Store(true)
			b.do(http.MethodGet, "/signin/oidc")
		}, []string{"oidc failed"}, nil},
		"AwayLater": {"the provider is unavailable when the user returns", ada, func(b *browser) {
			back := b.begin("")
			b.down.Store(true)
			b.do(http.MethodGet, back.RequestURI())
		}, []string{"oidc failed"}, nil},
		"WrongSecret": {"users cannot sign in with a wrong client secret", ada, func(b *browser) {
			b.do(http.MethodGet, b.begin("").RequestURI())
		}, []string{"oidc failed"}, []func(*signin.OIDC){func(o *signin.OIDC) {
			o.ClientSecret = func() (string, error) { return "another", nil }
		}}},
		"TooManyGroups": {"the groups do not fit into a cookie, so the provider must be reconfigured", map[string]any{
			"email": "ada@example.com", "email_verified": true, "groups": manyGroups(),
		}, func(b *browser) { b.do(http.MethodGet, b.begin("").RequestURI()) }, []string{"oidc failed"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, tc.claims, tc.edits...)
				tc.do(w.browser())
				if !slices.Equal(w.counted, tc.want) {
					t.Errorf("%s: counted %v, want %v", tc.reason, w.counted, tc.want)
				}
			})
		})
	}
}

// manyGroups returns more groups than a cookie can hold.
func manyGroups() []string {
	groups := make([]string, 400)
	for i := range groups {
		groups[i] = strings.Repeat("g", 20) + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	return groups
}

// TestReadyByLink verifies that session keys are enough for one-time links.
func TestReadyByLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		if err := w.handlers.Ready(); err != nil {
			t.Errorf("users cannot sign in: %v", err)
		}
		w.handlers.Watch(t.Context(), time.After) // returns immediately
	})
}

// TestWatch verifies that Ready notices before a user does that the provider is unavailable, and when it is back.
func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, ada)
		if w.handlers.Ready() == nil {
			t.Error("the provider has not been called")
		}
		w.down.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			w.handlers.Watch(ctx, time.After)
			close(done)
		}()
		ready := func(after time.Duration, want bool, reason string) {
			t.Helper()
			time.Sleep(after) //nolint:forbidigo // the bubble's time
			synctest.Wait()
			if err := w.handlers.Ready(); (err == nil) != want {
				t.Errorf("%s: %v", reason, err)
			}
		}
		ready(0, false, "the provider is unavailable")
		ready(2*time.Minute, false, "the provider stays unavailable")
		w.down.Store(false)
		ready(time.Minute, true, "the provider is available again, and was checked within a minute")
		w.down.Store(true)
		ready(time.Minute, true, "the last check counts for a while")
		ready(5*time.Minute, false, "the provider is unavailable again")
		w.down.Store(false)
		ready(time.Minute, true, "and back")
		stop()
		<-done
		if away, back := strings.Count(w.log.String(), "does not respond"), strings.Count(w.log.String(), "responds again"); away != 2 || back != 2 {
			t.Errorf("each change is a line of the log: %d and %d\n%s", away, back, w.log)
		}
	})
}
