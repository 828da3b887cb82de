// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = Describe("An Idempotency-Key", func() {
	var t *team
	BeforeEach(func(ctx SpecContext) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
	})

	keyed := func(ctx context.Context, key, body string) reply {
		GinkgoHelper()
		return do(ctx, instance, "POST", base+"/posts", body, map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": key})
	}

	It("makes one post of many requests, also of those that come at once", func(ctx SpecContext) {
		answers := make([]reply, 8)
		var requests sync.WaitGroup
		for i := range answers {
			requests.Go(func() {
				defer GinkgoRecover()
				answers[i] = keyed(ctx, "launch", text("acme-x", "once"))
			})
		}
		requests.Wait()
		for _, answer := range answers {
			Expect(answer.status).To(Equal(http.StatusCreated), answer.body)
			Expect(as[postBody](answer).Data.ID).To(Equal(as[postBody](answers[0]).Data.ID))
		}
		Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(Equal(1))
	})

	It("answers a repeated request with the post as it reads now", func(ctx SpecContext) {
		body := text("acme-x", "later", inAnHour())
		first := as[postBody](keyed(ctx, "k", body))
		Expect(t.call(ctx, "DELETE", "/posts/"+first.Data.ID, "").status).To(Equal(http.StatusOK))
		again := keyed(ctx, "k", body)
		Expect(again.status).To(Equal(http.StatusCreated), again.body)
		Expect(again.body).To(ContainSubstring(`"cancelled"`))
		again = keyed(ctx, "k", text("acme-x", "another body"))
		Expect(again.status).To(Equal(http.StatusConflict), again.body)
		Expect(again.body).To(And(ContainSubstring(`"CONFLICT"`), ContainSubstring(first.Data.ID)))
	})

	It("refuses a key that it cannot take", func(ctx SpecContext) {
		got := keyed(ctx, strings.Repeat("k", 256), text("acme-x", "hello"))
		Expect(got.status).To(Equal(http.StatusBadRequest), got.body)
		Expect(got.body).To(ContainSubstring("Idempotency-Key"))
	})
})
