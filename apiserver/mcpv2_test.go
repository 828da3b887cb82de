// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = Describe("Agents using version 2 of MCP", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		Eventually(func() []string { return as[listBody](t.call(ctx, "GET", "/connections", "")).ids() }).Should(HaveLen(1))
	})

	It("validate, draft, edit, reschedule and publish a post with REST's responses", func(ctx context.Context) {
		session := t.agentAt(ctx, instance.site+"/mcp/v2")
		checked, _ := use(ctx, session, "validate_post", text("acme-x", longText(300)))
		Expect(checked.body).To(MatchJSON(t.callV2(ctx, "POST", "/posts/validate", text("acme-x", longText(300))).body))

		made, _ := use(ctx, session, "create_post", text("acme-x", "Hello", draft))
		post := as[struct{ Data postV2 }](made).Data
		got, _ := use(ctx, session, "get_post", fmt.Sprintf(`{"id":%q}`, post.ID))
		Expect(got.body).To(MatchJSON(t.callV2(ctx, "GET", "/posts/"+post.ID, "").body))

		edited, result := use(ctx, session, "update_post", fmt.Sprintf(`{"id":%q,"version":%q,"alt":1,"targets":[{"connection_id":"acme-x","caption":"Better"}]}`, post.ID, post.Version))
		Expect(result.IsError).To(BeFalse(), edited.body)
		Expect(edited.body).To(MatchJSON(t.callV2(ctx, "GET", "/posts/"+post.ID, "").body))
		Expect(result.Content).To(ContainElement(HaveField("Text", ContainSubstring("ignored: alt"))))

		stale, result := use(ctx, session, "update_post", fmt.Sprintf(`{"id":%q,"version":%q,"draft":false}`, post.ID, post.Version))
		Expect(result.IsError).To(BeTrue())
		Expect(stale.body).To(ContainSubstring(`"PRECONDITION_FAILED"`))
		now := as[struct{ Data postV2 }](edited).Data
		planned, result := use(ctx, session, "update_post", fmt.Sprintf(`{"id":%q,"version":%q,"draft":false%s}`, post.ID, now.Version, inAnHour()))
		Expect(result.IsError).To(BeFalse(), planned.body)
		Expect(as[postBody](planned).Data.Status).To(Equal("scheduled"))

		list, _ := use(ctx, session, "list_posts", `{"q":"better","sort":"display_at","limit":5}`)
		Expect(list.body).To(MatchJSON(t.callV2(ctx, "GET", "/posts?q=better&sort=display_at&limit=5", "").body))
		Expect(metricsOf(instance)).To(ContainSubstring(`operation="mcp v2 update_post"`))
		missing, result := use(ctx, session, "update_post", `{"draft":false}`)
		Expect(result.IsError).To(BeTrue())
		Expect(missing.body).To(And(ContainSubstring("id: is missing"), ContainSubstring("version: is missing")))
	})

	It("can only change drafts if their team requires reviews", func(ctx context.Context) {
		Expect(admin.Get(ctx, clientKey(t.resource), t.resource)).To(Succeed())
		t.resource.Spec.Agents.Publishing = v1alpha1.AgentsDraft
		Expect(admin.Update(ctx, t.resource)).To(Succeed())
		session := t.agentAt(ctx, instance.site+"/mcp/v2")
		scheduled := t.createV2(ctx, text("acme-x", "By a program", inAnHour()))
		written := t.createV2(ctx, text("acme-x", "Hello", draft))
		Eventually(func(g Gomega) {
			for _, arguments := range []string{
				fmt.Sprintf(`{"id":%q,"version":%q,"draft":false}`, written.ID, written.Version),
				fmt.Sprintf(`{"id":%q,"version":%q,"targets":[{"connection_id":"acme-x","caption":"Another"}]}`, scheduled.ID, scheduled.Version),
			} {
				refused, result := use(ctx, session, "update_post", arguments)
				g.Expect(result.IsError).To(BeTrue())
				g.Expect(refused.body).To(ContainSubstring("the team reviews what agents publish"))
			}
		}).Should(Succeed())
		_, result := use(ctx, session, "update_post", fmt.Sprintf(`{"id":%q,"version":%q,"targets":[{"connection_id":"acme-x","caption":"Better"}]}`, written.ID, written.Version))
		Expect(result.IsError).To(BeFalse())
	})

	It("have their own URL, with the limits and the challenge of version 1", func(ctx context.Context) {
		r := do(ctx, instance, "POST", "/mcp/v2/", "{}", nil)
		Expect(r.status).To(Equal(http.StatusUnauthorized))
		Expect(do(ctx, instance, "GET", "/mcp/v3", "", nil).status).To(Equal(http.StatusNotFound))
	})
})
