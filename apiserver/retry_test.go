// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

// retriedBody is a version 2 post with the fields of retries.
type retriedBody struct {
	Data struct {
		ID        string  `json:"id"`
		Status    string  `json:"status"`
		RetryOf   *string `json:"retry_of"`
		Platforms []struct {
			ConnectionID string  `json:"connection_id"`
			Caption      string  `json:"caption"`
			RetriedBy    *string `json:"retried_by"`
		} `json:"platforms"`
	} `json:"data"`
}

var _ = Describe("Retrying a post through version 2", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
		Eventually(func() []string { return as[listBody](t.call(ctx, "GET", "/connections", "")).ids() }).Should(HaveLen(2))
	})

	It("creates one post for the failed targets, however often it is requested", func(ctx context.Context) {
		failed := t.finished(ctx, "Out on one of two", true)
		made := t.callV2(ctx, "POST", "/posts/"+failed+"/retry", "", "Idempotency-Key", "again")
		Expect(made.status).To(Equal(201), "%s", made.body)
		retry := as[retriedBody](made).Data
		Expect(made.header.Get("Location")).To(Equal(baseV2 + "/posts/" + retry.ID))
		Expect(made.header.Get("ETag")).NotTo(BeEmpty())
		Expect(retry.RetryOf).To(HaveValue(Equal(failed)))
		Expect(retry.Platforms).To(ConsistOf(And(HaveField("ConnectionID", "acme-threads"), HaveField("Caption", "and here"))))
		Expect(t.stored(ctx, retry.ID).Spec.RetryOf).To(HaveField("Name", failed))

		By("a repeated request, also after the target is reserved")
		Expect(setStatus(ctx, t.stored(ctx, failed), func(s *v1alpha1.PostStatus) { s.Targets[1].RetriedBy = retry.ID })).To(Succeed())
		again := t.callV2(ctx, "POST", "/posts/"+failed+"/retry", "", "Idempotency-Key", "again")
		Expect(again.status).To(Equal(201), "%s", again.body)
		Expect(again.header.Get("Idempotency-Replayed")).To(Equal("true"))
		Expect(as[retriedBody](again).Data.ID).To(Equal(retry.ID))
		Expect(as[retriedBody](t.callV2(ctx, "GET", "/posts/"+failed, "")).Data.Platforms[1].RetriedBy).To(HaveValue(Equal(retry.ID)))

		By("another request")
		t.callV2(ctx, "POST", "/posts/"+failed+"/retry", "").mustFail(409, "CONFLICT", "target 0: already posted there; target 1: post "+retry.ID+" sends it there again")
		Expect(as[errorBody](t.callV2(ctx, "POST", "/posts/"+t.finished(ctx, "Another", true)+"/retry", "", "Idempotency-Key", "again")).Error.Message).
			To(ContainSubstring("was used for another request"))
	})

	It("refuses targets that may be public or are unfinished", func(ctx context.Context) {
		t.callV2(ctx, "POST", "/posts/"+t.finished(ctx, "Out", false)+"/retry", "").mustFail(409, "CONFLICT", "already posted there")
		t.callV2(ctx, "POST", "/posts/"+t.create(ctx, onBoth("Later")).ID+"/retry", "").mustFail(409, "CONFLICT", "only a failed post can be retried")
		unknown := t.finished(ctx, "Perhaps out", true)
		Expect(setStatus(ctx, t.stored(ctx, unknown), func(s *v1alpha1.PostStatus) {
			s.Targets[1].State, s.Finished, s.FinishedAt, s.FinishedOn = v1alpha1.TargetUndecided, false, nil, ""
		})).To(Succeed())
		t.callV2(ctx, "POST", "/posts/"+unknown+"/retry", "").mustFail(409, "CONFLICT", "Needs an answer")
		t.callV2(ctx, "POST", "/posts/nowhere/retry", "").mustFail(404, "NOT_FOUND", `no post "nowhere"`)
		t.callV2(ctx, "GET", "/posts/nowhere/retry", "").mustFail(405, "VALIDATION_ERROR", "POST")
		t.callV2(ctx, "POST", "/posts/nowhere/other", "").mustFail(404, "NOT_FOUND", "")
		t.call(ctx, "POST", "/posts/"+unknown+"/retry", "").mustFail(404, "NOT_FOUND", "")
	})

	It("has the same response for agents", func(ctx context.Context) {
		failed := t.finished(ctx, "Out on one of two", true)
		made, result := use(ctx, t.agentAt(ctx, instance.site+"/mcp/v2"), "retry_post", fmt.Sprintf(`{"id":%q}`, failed))
		Expect(result.IsError).To(BeFalse(), made.body)
		Expect(made.body).To(MatchJSON(t.callV2(ctx, "GET", "/posts/"+as[retriedBody](made).Data.ID, "").body))
		Expect(as[retriedBody](made).Data.RetryOf).To(HaveValue(Equal(failed)))
	})
})
