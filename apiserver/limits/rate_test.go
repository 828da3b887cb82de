// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestTake(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	l := NewRateLimiter(3, clock)
	for _, tt := range []struct {
		caller                          string
		after                           time.Duration
		allowed                         bool
		remaining, reset, retry, reason string
	}{
		{"a", 0, true, "2", "20", "", "three requests a minute, all at once if necessary"},
		{"a", 0, true, "1", "40", "", "each request uses one token"},
		{"b", 0, true, "2", "20", "", "callers do not share"},
		{"a", 0, true, "0", "60", "", "the last one"},
		{"a", 0, false, "0", "60", "20", "one is added every twenty seconds"},
		{"a", 5 * time.Second, false, "0", "55", "15", "a rejected request uses none"},
		{"a", 15 * time.Second, true, "0", "60", "", "clients that wait for Retry-After are accepted"},
		{"a", 10 * time.Minute, true, "2", "20", "", "no more than the limit is saved up"},
	} {
		clock.SetTime(clock.Now().Add(tt.after))
		header := http.Header{}
		allowed, _ := l.Allow(tt.caller, header)
		got := []string{header.Get("RateLimit-Limit"), header.Get("RateLimit-Remaining"), header.Get("RateLimit-Reset"), header.Get("Retry-After")}
		want := []string{"3", tt.remaining, tt.reset, tt.retry}
		for i := range got {
			if got[i] != want[i] || allowed != tt.allowed {
				t.Errorf("%s: %v %q, want %v %q", tt.reason, allowed, got, tt.allowed, want)
				break
			}
		}
	}
	if len(l.callers) != 1 {
		t.Errorf("%d callers are remembered; absent ones are not needed", len(l.callers))
	}
}

func TestNoLimit(t *testing.T) {
	header := http.Header{}
	if allowed, _ := NewRateLimiter(0, clocktesting.NewFakePassiveClock(time.Unix(0, 0))).Allow("a", header); !allowed || len(header) != 0 {
		t.Errorf("without a limit, every client is accepted without headers: %v %v", allowed, header)
	}
}

func TestCharge(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	l := NewRateLimiter(60, clock)
	for _, tt := range []struct {
		after            time.Duration
		requests         int
		remaining, reset string
		reason           string
	}{
		{0, 10, "50", "10", "a request's cost is deducted"},
		{0, 0, "", "", "a request of the basic cost sets no headers"},
		{0, 60, "0", "70", "a cost above the remainder becomes debt"},
		{0, 1 << 40, "0", "120", "debt is at most one full limit"},
		{0, 5, "0", "120", "debt does not grow further"},
		{90 * time.Second, 1, "29", "31", "debt decreases over time"},
	} {
		clock.SetTime(clock.Now().Add(tt.after))
		header := http.Header{}
		l.Charge("a", tt.requests, header)
		if got := header.Get("RateLimit-Remaining"); got != tt.remaining || header.Get("RateLimit-Reset") != tt.reset {
			t.Errorf("%s: %s remaining, reset after %s; want %s and %s", tt.reason, got, header.Get("RateLimit-Reset"), tt.remaining, tt.reset)
		}
	}
	l.Charge("a", 60, http.Header{})
	header := http.Header{}
	if allowed, wait := l.Allow("a", header); allowed || wait != 32*time.Second || header.Get("Retry-After") != "32" {
		t.Errorf("a client in debt was accepted: %v, %s, %v", allowed, wait, header)
	}
	(*RateLimiter)(nil).Charge("a", 5, nil)
	(*RateLimiter)(nil).ChargeSparing("a", 5)
}

// TestBounded verifies that clients with many addresses neither fill the memory nor lock out others.
func TestBounded(t *testing.T) {
	t.Parallel()
	l := NewRateLimiter(2, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	for i := range 3 * maxRateCallers {
		if allowed, _ := l.Allow(strconv.Itoa(i), http.Header{}); !allowed {
			t.Fatalf("a new caller is refused, after %d", i)
		}
	}
	if len(l.callers) > maxRateCallers {
		t.Errorf("%d callers are remembered, more than %d", len(l.callers), maxRateCallers)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason              string
		bytes, parts, whole int
		want                int
	}{
		"no targets or bytes": {"a page of posts", 0, 0, 0, 0},
		"a usual post":        {"six targets with an image each cost one request", 2_000, 6 + 1, 0, 0},
		"many targets":        {"ten targets cost one extra", 0, 25, 0, 2},
		"a thread":            {"2,000 files cost the reads", 40_000, 2_001, 0, 200},
		"a large body":        {"64 KiB cost one extra", 200_000, 1, 0, 3},
		"fresh pictures":      {"each is checked in the store", 0, 6, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, meter := WithMeter(t.Context())
			MeterFrom(ctx).Bytes(tc.bytes)
			MeterFrom(ctx).Parts(tc.parts)
			MeterFrom(ctx).Whole(tc.whole)
			if got := meter.Requests(); got != tc.want {
				t.Errorf("%s: costs %d more, want %d", tc.reason, got, tc.want)
			}
		})
	}
	none := MeterFrom(t.Context())
	none.Bytes(1)
	none.Parts(1)
	none.Whole(1)
	if got := none.Requests(); got != 0 {
		t.Errorf("without a running total, a request costs %d extra", got)
	}
}
