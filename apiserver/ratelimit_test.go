// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/apiserver"
)

var _ = Describe("A limit of requests", func() {
	It("holds for each API key, and says when to come back", func(ctx SpecContext) {
		limited := start(restricted, func(c *apiserver.Config) { c.RequestsPerMinute = 3 })
		defer limited.stop()
		t, other := newTeam(ctx), newTeam(ctx)
		list := func(token string) reply {
			return do(ctx, limited, "GET", base+"/posts", "", map[string]string{"Authorization": "Bearer " + token})
		}
		Eventually(func() int { return list(other.token).status }).Should(Equal(http.StatusOK), "the replica knows the keys")
		for left := range 3 {
			got := list(t.token)
			Expect(got.status).To(Equal(http.StatusOK), got.body)
			Expect(got.header.Get("RateLimit-Remaining")).To(Equal([]string{"2", "1", "0"}[left]))
		}
		got := list(t.token)
		Expect(got.status).To(Equal(http.StatusTooManyRequests))
		Expect(got.body).To(ContainSubstring(`"RATE_LIMITED"`))
		Expect(got.header.Get("Retry-After")).NotTo(BeEmpty())
		Expect(list("hrld_nobody").status).To(Equal(http.StatusUnauthorized), "strangers are told nothing of limits")
		Expect(list(other.token).status).To(Equal(http.StatusOK), "keys do not share a limit")
		Expect(t.call(ctx, "GET", "/posts", "").header.Get("RateLimit-Limit")).To(BeEmpty(), "where there is no limit, none is named")
	})
})
