// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

// patch changes a post with the version that was read.
func (t *team) patch(ctx context.Context, of postV2, body string) reply {
	GinkgoHelper()
	return t.callV2(ctx, "PATCH", "/posts/"+of.ID, body, "If-Match", `"`+of.Version+`"`)
}

var _ = Describe("Changing a post through version 2", func() {
	var (
		t  *team
		at = time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second).Format("2006-01-02T15:04:05.000Z07:00")
	)
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
		t.connect(ctx, "expired-x", v1alpha1.PlatformX)
		Eventually(func() []string { return as[listBody](t.call(ctx, "GET", "/connections", "")).ids() }).Should(HaveLen(3))
	})

	DescribeTable("takes", func(ctx context.Context, before func() string, body, status string, check func(v1alpha1.PostSpec)) {
		made := t.createV2(ctx, before())
		r := t.patch(ctx, made, body)
		Expect(r.status).To(Equal(200), "%s", r.body)
		changed := as[struct{ Data postV2 }](r).Data
		Expect(changed.Status).To(Equal(status))
		Expect(changed.Version).NotTo(Equal(made.Version))
		Expect(r.header.Get("ETag")).To(Equal(`"` + changed.Version + `"`))
		check(t.stored(ctx, made.ID).Spec)

		By("the same request repeated, after a lost response")
		again := t.patch(ctx, made, body)
		Expect(again.status).To(Equal(200), "%s", again.body)
		Expect(as[struct{ Data postV2 }](again).Data.Version).To(Equal(changed.Version))
	},
		Entry("another text and account of a draft", func() string { return text("acme-x", "Hello", draft) },
			`{"targets":[{"connection_id":"acme-threads","caption":"Better"}]}`, "draft",
			func(s v1alpha1.PostSpec) {
				Expect(s.Draft).To(BeTrue())
				Expect(s.Targets).To(HaveLen(1))
				Expect(s.Targets[0]).To(And(HaveField("Caption", "Better"), HaveField("ConnectionRef.Name", "acme-threads")))
			}),
		Entry("a draft to publish now", func() string { return text("acme-x", "Hello", draft) }, `{"draft":false}`, "processing",
			func(s v1alpha1.PostSpec) {
				Expect(s.Draft).To(BeFalse())
				Expect(s.ScheduledAt).To(BeNil())
				Expect(s.Targets[0].Caption).To(Equal("Hello"), "omitted fields remain unchanged")
			}),
		Entry("a draft to schedule, with its last edit", func() string { return text("acme-x", "Hello", draft) },
			`{"draft":false,"scheduled_at":"`+at+`","targets":[{"connection_id":"acme-x","caption":"Final"}]}`, "scheduled",
			func(s v1alpha1.PostSpec) {
				Expect(s.ScheduledAt.String()).To(Equal(at))
				Expect(s.Targets[0].Caption).To(Equal("Final"))
			}),
		Entry("another time", func() string { return text("acme-x", "Hello", inAnHour()) }, `{"scheduled_at":"`+at+`"}`, "scheduled",
			func(s v1alpha1.PostSpec) { Expect(s.ScheduledAt.String()).To(Equal(at)) }),
		Entry("another text of a scheduled post", func() string { return text("acme-x", "Hello", inAnHour()) },
			`{"category":"text","draft":false,"targets":[{"connection_id":"acme-x","caption":"Better"}]}`, "scheduled",
			func(s v1alpha1.PostSpec) {
				Expect(s.Targets[0].Caption).To(Equal("Better"))
				Expect(s.ScheduledAt).NotTo(BeNil())
			}),
		Entry("a scheduled post to publish now", func() string { return text("acme-x", "Hello", inAnHour()) }, `{"scheduled_at":null}`, "processing",
			func(s v1alpha1.PostSpec) { Expect(s.ScheduledAt).To(BeNil()) }),
		Entry("the cards of a tree", func() string {
			return `{"category":"tree","draft":true,"tree_cards":[{"caption":"a"},{"caption":"b"}],"targets":[{"connection_id":"acme-x"}]}`
		}, `{"tree_cards":[{"caption":"a"},{"caption":"b"},{"caption":"c"}]}`, "draft",
			func(s v1alpha1.PostSpec) { Expect(s.Tree.Cards).To(HaveLen(3)) }),
	)

	DescribeTable("refuses", func(ctx context.Context, before func() string, body string, status int, code string, words ...string) {
		made := t.createV2(ctx, before())
		r := t.patch(ctx, made, body)
		r.mustFail(status, code, "")
		for _, part := range words {
			Expect(r.body).To(ContainSubstring(part))
		}
		Expect(fmt.Sprint(t.stored(ctx, made.ID).Generation)).To(Equal("1"), "the post was not changed")
	},
		Entry("all errors together, each with its path", func() string { return text("acme-x", "Hello", inAnHour()) },
			`{"scheduled_at":"soon","category":"film","targets":[{"connection_id":"nowhere","caption":"a"},{"connection_id":7}]}`, 400, "VALIDATION_ERROR",
			"scheduled_at: must be a time", "category: must be one of", "targets[0].connection_id: no such connection", "targets[1].connection_id: must be a string"),
		Entry("another category", func() string { return text("acme-x", "Hello", draft) }, `{"category":"image"}`, 400, "VALIDATION_ERROR", "category: cannot be changed"),
		Entry("a time for a draft that stays a draft", func() string { return text("acme-x", "Hello", draft) }, `{"scheduled_at":"`+at+`"}`, 400, "VALIDATION_ERROR", "scheduled_at: "),
		Entry("a scheduled post as a draft", func() string { return text("acme-x", "Hello", inAnHour()) }, `{"draft":true,"scheduled_at":null}`, 400, "VALIDATION_ERROR", "draft: a post that is not a draft"),
		Entry("a time in the past", func() string { return text("acme-x", "Hello", inAnHour()) }, `{"scheduled_at":"2020-01-01T00:00:00Z"}`, 400, "VALIDATION_ERROR", "scheduled_at: must be in the future"),
		Entry("publishing a draft without a text", func() string { return `{"category":"text","draft":true,"targets":[{"connection_id":"acme-x"}]}` }, `{"draft":false}`, 400, "VALIDATION_ERROR", "targets[0].caption"),
		Entry("an account that has to be reconnected", func() string { return text("expired-x", "Hello", draft) }, `{"draft":false}`, 409, "POSTING_READINESS_RECONNECT_REQUIRED", "expired-x"),
		Entry("a text that is too long", func() string { return text("acme-x", "Hello", inAnHour()) },
			`{"targets":[{"connection_id":"acme-x","caption":"`+longText(281)+`"}]}`, 400, "VALIDATION_ERROR", "targets[0].caption"),
		Entry("an invalid list of targets", func() string { return text("acme-x", "Hello", draft) }, `{"targets":null}`, 400, "VALIDATION_ERROR", "targets: must be"),
		Entry("an invalid body", func() string { return text("acme-x", "Hello", draft) }, `[]`, 400, "VALIDATION_ERROR", ""),
	)

	It("requires the version that was read, and never overwrites another change", func(ctx context.Context) {
		made := t.createV2(ctx, text("acme-x", "Hello", draft))
		path, edit := "/posts/"+made.ID, func(words string) string {
			return fmt.Sprintf(`{"targets":[{"connection_id":"acme-x","caption":%q}]}`, words)
		}
		t.callV2(ctx, "PATCH", path, edit("a")).mustFail(428, "PRECONDITION_REQUIRED", "If-Match")
		for _, malformed := range []string{made.Version, `""`, `"a", "b"`, `"`} {
			t.callV2(ctx, "PATCH", path, edit("a"), "If-Match", malformed).mustFail(400, "VALIDATION_ERROR", "If-Match: must be one ETag")
		}
		Expect(t.patch(ctx, made, edit("first")).status).To(Equal(200))
		t.patch(ctx, made, edit("second")).mustFail(412, "PRECONDITION_FAILED", "has changed since")
		Expect(t.stored(ctx, made.ID).Spec.Targets[0].Caption).To(Equal("first"))
		current := t.callV2(ctx, "GET", path, "").header.Get("ETag")
		Expect(t.callV2(ctx, "PATCH", path, edit("third"), "If-Match", "W/"+current).status).To(Equal(200), "a proxy has weakened the tag")
		Expect(t.callV2(ctx, "PATCH", path, edit("fourth"), "If-Match", "*").status).To(Equal(200))
	})

	It("reports ignored fields, and accepts a merge patch by its media type", func(ctx context.Context) {
		made := t.createV2(ctx, text("acme-x", "Hello", draft))
		r := t.callV2(ctx, "PATCH", "/posts/"+made.ID, `{"media_ids":["a"],"alt":1,"draft":true}`,
			"If-Match", "*", "Content-Type", "application/merge-patch+json")
		Expect(r.status).To(Equal(200), "%s", r.body)
		Expect(r.header.Get("Herald-Ignored")).To(Equal("media_ids, alt"))
		t.callV2(ctx, "PATCH", "/posts/"+made.ID, `{}`, "If-Match", "*", "Content-Type", "text/plain").mustFail(415, "VALIDATION_ERROR", "")
	})

	It("is rejected once delivery has started or the post is finished", func(ctx context.Context) {
		made := t.createV2(ctx, text("acme-x", "Hello", inAnHour()))
		Expect(setStatus(ctx, t.stored(ctx, made.ID), func(s *v1alpha1.PostStatus) {
			s.Phase = v1alpha1.PhaseProcessing
			s.Targets = []v1alpha1.TargetStatus{claimed(0, time.Now())}
		})).To(Succeed())
		t.patch(ctx, made, `{"scheduled_at":"`+at+`"}`).mustFail(409, "CONFLICT", "is being delivered")
		cancelled := t.createV2(ctx, text("acme-x", "Hello", draft))
		Expect(t.callV2(ctx, "DELETE", "/posts/"+cancelled.ID, "").status).To(Equal(200))
		t.callV2(ctx, "PATCH", "/posts/"+cancelled.ID, `{"draft":false}`, "If-Match", "*").mustFail(409, "CONFLICT", "cancelled")
		t.callV2(ctx, "PATCH", "/posts/pnothing", `{}`, "If-Match", "*").mustFail(404, "NOT_FOUND", "pnothing")
	})
})

func longText(length int) string { return strings.Repeat("a", length) }

type validationBody struct {
	Data struct {
		Valid    bool
		Problems []struct {
			Code    string
			Path    *string
			Message string
		}
		More int
	}
}

var _ = Describe("Validating a post", func() {
	It("reports all errors of a creation together, without writing", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-youtube", v1alpha1.PlatformYouTube)
		before := t.objects(ctx)
		good := text("acme-x", "Hello", inAnHour())
		r := t.callV2(ctx, "POST", "/posts/validate", good)
		Expect(r.status).To(Equal(200), "%s", r.body)
		Expect(r.body).To(MatchJSON(`{"data":{"valid":true,"problems":[],"more":0}}`))

		for _, bad := range []string{
			`{}`,
			`{"category":"text","scheduled_at":"soon","targets":[{"connection_id":"acme-x"},{"connection_id":"nowhere","caption":"a"}]}`,
			`{"category":"text","targets":[{"connection_id":"acme-youtube","caption":"a","tiktok_draft":true,"tiktok_auto_add_music":true}]}`,
			`{"category":"image","media_ids":["nothing"],"targets":[{"connection_id":"acme-x","caption":"a"}]}`,
			text("acme-x", longText(300)),
		} {
			refused := as[errorBody](t.call(ctx, "POST", "/posts", bad)).Error
			found := as[validationBody](t.callV2(ctx, "POST", "/posts/validate", bad)).Data
			Expect(found.Valid).To(BeFalse())
			joined := ""
			for i, p := range found.Problems {
				Expect(p.Code).To(Equal(refused.Code))
				Expect(p.Path).NotTo(BeNil(), p.Message)
				if i > 0 {
					joined += "; "
				}
				joined += *p.Path + ": " + p.Message
			}
			Expect(joined).To(Equal(refused.Message), "the same function refuses both")
		}
		Expect(t.objects(ctx)).To(Equal(before))
	})

	It("continues after accounts, plan and rules, each with its code", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "expired-x", v1alpha1.PlatformX)
		t.connect(ctx, "down-x", v1alpha1.PlatformX)
		for _, name := range []string{"expired-x", "down-x"} {
			Expect(t.call(ctx, "POST", "/posts", text(name, "Hello")).status).To(Equal(409), "its check is recorded")
		}
		body := `{"category":"text","targets":[{"connection_id":"expired-x","caption":"a"},{"connection_id":"down-x","caption":"` + longText(300) + `"}]}`
		Eventually(func(g Gomega) {
			codes := []string{}
			for _, p := range as[validationBody](t.callV2(ctx, "POST", "/posts/validate", body)).Data.Problems {
				codes = append(codes, p.Code)
			}
			g.Expect(codes).To(ConsistOf("VALIDATION_ERROR", "POSTING_READINESS_RECONNECT_REQUIRED", "POSTING_READINESS_UNAVAILABLE"))
		}).Should(Succeed())
		drafted := as[validationBody](t.callV2(ctx, "POST", "/posts/validate", text("expired-x", "a", draft))).Data
		Expect(drafted.Valid).To(BeTrue(), "a draft is not published")
	})

	It("answers invalid requests like a creation", func(ctx context.Context) {
		t := newTeam(ctx)
		t.callV2(ctx, "POST", "/posts/validate", `[`).mustFail(400, "VALIDATION_ERROR", "")
		t.callV2(ctx, "POST", "/posts/validate", `{}`, "Content-Type", "text/plain").mustFail(415, "VALIDATION_ERROR", "")
		t.call(ctx, "POST", "/posts/validate", `{}`).mustFail(405, "VALIDATION_ERROR", "")
	})
})
