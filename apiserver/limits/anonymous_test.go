// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/apiserver/request"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	guard := NewAnonymousGuard(2, clk)
	refused := time.Duration(0)
	at := func(door Surface) http.Handler {
		return guard.Handler(door, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
			func(w http.ResponseWriter, _ *http.Request, wait time.Duration) {
				refused = wait
				w.WriteHeader(http.StatusTooManyRequests)
			})
	}
	for i, tc := range []struct {
		reason  string
		door    Surface
		address string
		known   bool
		after   time.Duration
		want    int
	}{
		{"two requests are allowed per minute", SurfacePages, "203.0.113.7:1", false, 0, 200},
		{"the port does not matter", SurfacePages, "203.0.113.7:2", false, 0, 200},
		{"the third request is rejected", SurfacePages, "203.0.113.7:3", false, 0, 429},
		{"signed-in users at the same address are not affected", SurfacePages, "203.0.113.7:4", true, 0, 200},
		{"other surfaces have their own limit", SurfaceOAuth, "203.0.113.7:5", false, 0, 200},
		{"other addresses have their own limit", SurfacePages, "203.0.113.8:1", false, 0, 200},
		{"a client that follows Retry-After is admitted", SurfacePages, "203.0.113.7:6", false, 30 * time.Second, 200},
	} {
		clk.SetTime(clk.Now().Add(tc.after))
		w := httptest.NewRecorder()
		info := &request.Info{Authenticated: tc.known, Header: w.Header()}
		r := httptest.NewRequestWithContext(request.With(t.Context(), info), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = tc.address
		at(tc.door).ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%d, %s: got %d, want %d", i, tc.reason, w.Code, tc.want)
		}
		if late := w.Code == http.StatusTooManyRequests; late && (refused != 30*time.Second || w.Header().Get("Retry-After") != "30" || w.Header().Get("Connection") != "close") {
			t.Errorf("%d, %s: to wait %s, with %v", i, tc.reason, refused, w.Header())
		}
	}
	for _, none := range []*AnonymousGuard{nil, NewAnonymousGuard(0, clk)} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		for range 100 {
			if allowed, _ := none.Allow(r, SurfacePages); !allowed {
				t.Fatal("without a limit, a request was rejected")
			}
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	lines := NewLogLimiter(clk)
	for i, tc := range []struct {
		reason, kind string
		after        time.Duration
		times        int
		written      int
		leftOut      int64
	}{
		{"the first message of a kind is logged", "a", 0, 1000, 1, 0},
		{"another kind", "b", 30 * time.Second, 1, 1, 0},
		{"repeats within the minute are suppressed", "a", 29 * time.Second, 1, 0, 0},
		{"after a minute, the suppressed count is logged", "a", time.Second, 1, 1, 1000},
		{"no message was suppressed", "a", time.Minute, 5, 1, 0},
		{"another kind's message logs the remaining count", "c", 2 * time.Minute, 1, 1, 0},
		{"after its own minute", "c", time.Minute, 1, 1, 4},
	} {
		clk.SetTime(clk.Now().Add(tc.after))
		written, leftOut := 0, int64(0)
		for range tc.times {
			if write, left := lines.Allow(tc.kind); write {
				written++
				leftOut += left
			}
		}
		if written != tc.written || leftOut != tc.leftOut {
			t.Errorf("%d, %s: wrote %d lines, omitted %d; want %d and %d", i, tc.reason, written, leftOut, tc.written, tc.leftOut)
		}
	}
}

// TestManyKinds verifies that unauthenticated clients with many addresses fill neither the log nor the memory.
func TestManyKinds(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	lines := NewLogLimiter(clk)
	const asked, minutes = 10_000, 3
	written, leftOut := int64(0), int64(0)
	for minute := range minutes {
		for i := range asked {
			if write, left := lines.Allow(strconv.Itoa(minute*asked + i)); write {
				written++
				leftOut += left
			}
		}
		clk.SetTime(clk.Now().Add(time.Minute))
	}
	if len(lines.kinds) > maxLines || written > minutes*maxLines {
		t.Errorf("%d kinds are remembered, %d lines written; want at most %d, and as many in a minute", len(lines.kinds), written, maxLines)
	}
	if want := int64((minutes - 1) * (asked - maxLines)); leftOut != want {
		t.Errorf("the log counts %d omitted lines, want %d from before the last minute", leftOut, want)
	}
}
