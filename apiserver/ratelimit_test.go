// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/apiserver"
)

// stepped is a clock with a fake time and real timers, so that a server can shut down.
type stepped struct {
	clock.Clock
	time *clocktesting.FakePassiveClock
}

func (s stepped) Now() time.Time { return s.time.Now() }

func (s stepped) Since(t time.Time) time.Duration { return s.time.Since(t) }

func (s stepped) step(d time.Duration) { s.time.SetTime(s.time.Now().Add(d)) }

var _ = Describe("A limit of requests", func() {
	It("holds for each API key, and says when to come back", func(ctx SpecContext) {
		clk := stepped{clock.RealClock{}, clocktesting.NewFakePassiveClock(time.Now())}
		limited := start(restricted, func(c *apiserver.Config) { c.RequestsPerMinute, c.Clock = 3, clk })
		defer limited.stop()
		t, other := newTeam(ctx), newTeam(ctx)
		ask := func(token, method, path, body string) reply {
			return do(ctx, limited, method, base+path, body, map[string]string{"Authorization": "Bearer " + token})
		}
		list := func(token string) reply { return ask(token, "GET", "/posts", "") }
		Eventually(func() int { return list(other.token).status }).Should(Equal(http.StatusOK), "the replica knows the keys")
		says := func(r reply, limit, remaining, reset, retryAfter string) {
			GinkgoHelper()
			var got []string
			for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"} {
				got = append(got, r.header.Get(name))
			}
			Expect(got).To(Equal([]string{limit, remaining, reset, retryAfter}), "%d %s", r.status, r.body)
		}
		got := list(t.token)
		Expect(got.status).To(Equal(http.StatusOK), got.body)
		says(got, "3", "2", "20", "")
		got = ask(t.token, "GET", "/media/nobody", "")
		got.mustFail(404, "NOT_FOUND", "nobody")
		says(got, "3", "1", "40", "")
		got = ask(t.token, "GET", "/posts?limit=x", "")
		got.mustFail(400, "VALIDATION_ERROR", "limit")
		says(got, "3", "0", "60", "")
		got = list(t.token)
		got.mustFail(429, "RATE_LIMITED", "try again in 20 seconds")
		says(got, "3", "0", "60", "20")
		clk.step(19*time.Second + 500*time.Millisecond)
		got = ask(t.token, "DELETE", "/posts/nobody", "")
		got.mustFail(429, "RATE_LIMITED", "try again in 1 seconds")
		says(got, "3", "0", "41", "1")
		clk.step(500 * time.Millisecond)
		got = list(t.token)
		Expect(got.status).To(Equal(http.StatusOK), "who waits as long as it is told to is served")
		says(got, "3", "0", "60", "")
		got = list("hrld_nobody")
		Expect(got.status).To(Equal(http.StatusUnauthorized))
		says(got, "", "", "", "")
		Expect(list(other.token).status).To(Equal(http.StatusOK), "keys do not share a limit")
		Expect(t.call(ctx, "GET", "/posts", "").header.Get("RateLimit-Limit")).To(BeEmpty(), "where there is no limit, none is named")
	})
})
