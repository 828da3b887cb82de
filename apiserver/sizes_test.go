// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// pages returns a text post's body with count targets on the same Facebook page.
func pages(count int, caption string, more ...string) string {
	target := fmt.Sprintf(`{"connection_id":"acme-page","caption":%q}`, caption)
	return fmt.Sprintf(`{"category":"text","targets":[%s%s]%s}`, target, strings.Repeat(","+target, count-1), strings.Join(more, ""))
}

// told returns the largest target status in practice: during a call, and after its failure.
func told(index int32, now time.Time) v1alpha1.TargetStatus {
	target := claimed(index, now)
	target.Platform, target.Reason, target.Message = v1alpha1.PlatformFacebook, v1alpha1.ReasonRateLimited, strings.Repeat("m", 2000)
	target.State = v1alpha1.TargetPending
	target.Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: strings.Repeat("m", 1024), Remedy: strings.Repeat("m", 512)}
	target.NextTryAt, target.TryUntil = v1alpha1.NewTimePtr(now), v1alpha1.NewTimePtr(now)
	target.Attempt.Checkpoint, target.Attempt.ContentHash = strings.Repeat("c", 1024), strings.Repeat("h", 64)
	target.Prepared = &v1alpha1.Prepared{
		ContentHash: strings.Repeat("h", 64), Checkpoint: strings.Repeat("c", 1024), Problem: strings.Repeat("m", 1000), MadeAt: v1alpha1.NewTime(now),
	}
	target.Attempt.AccountID = strings.Repeat("a", 64)
	target.Attempt.SearchFrom, target.Attempt.UnknownSince, target.Attempt.EndedAt = v1alpha1.NewTimePtr(now), v1alpha1.NewTimePtr(now), v1alpha1.NewTimePtr(now)
	return target
}

var _ = Describe("a large post", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx, onStarter)
		t.connect(ctx, "acme-page", v1alpha1.PlatformFacebook)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
	})

	DescribeTable("is refused before anything is reserved, if what becomes of it would not fit beside it",
		func(ctx SpecContext, body, words string) {
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
			Expect(t.counts(ctx)).To(BeEmpty(), "nothing was counted")
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(BeZero())
		},
		Entry("of text that the store writes in six bytes a character",
			strings.Replace(pages(1, strings.Repeat("<", 60_000), inAnHour()), `"targets":[`, `"targets":[{"connection_id":"acme-x","caption":"counted"},`, 1),
			"targets: the post takes 360"),
		Entry("of ampersands, as a draft", pages(1, strings.Repeat("&", 60_000), draft), "a post may take at most 262144; shorten the captions, or make several posts"),
		Entry("of more text than a post may have, as a draft", pages(14, strings.Repeat("a", 60_000), draft), "targets: the post takes 84"),
		Entry("whose one caption is too long", pages(1, strings.Repeat("a", 65_537)), "targets[0].caption: must have at most 65536 characters"),
	)

	DescribeTable("is taken if it fits, with all that is ever recorded of it",
		func(ctx SpecContext, body string) {
			id := t.create(ctx, body).ID
			stored := t.stored(ctx, id)
			Expect(setStatus(ctx, stored, func(s *v1alpha1.PostStatus) {
				for i := range stored.Spec.Targets {
					s.Targets = append(s.Targets, told(int32(i), time.Now()))
				}
				for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
					s.Conditions = append(s.Conditions, metav1.Condition{
						Type: kind, Status: metav1.ConditionFalse, Reason: "R", Message: strings.Repeat("<", 2000), LastTransitionTime: metav1.Now(),
					})
				}
			})).To(Succeed(), "a claim of every target")
			got := as[postBody](t.call(ctx, "GET", "/posts/"+id, "")).Data
			Expect(got.Status).To(Equal("processing"))
			Expect(got.Platforms[0].Caption).To(Equal(stored.Spec.Targets[0].Caption))
		},
		Entry("three captions of the greatest length", pages(3, strings.Repeat("a", 65_536), inAnHour())),
		Entry("angle brackets up to the bound", pages(4, strings.Repeat("<", 10_800), inAnHour())),
		Entry("a hundred targets up to the bound", pages(100, strings.Repeat("<", 420), inAnHour())),
	)

	It("is refused by the controller if it was applied without the webhook, and never claimed", func(ctx SpecContext) {
		post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "huge"}, Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText}}
		for range 100 {
			post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
				ConnectionRef: v1alpha1.LocalReference{Name: "acme-page"}, Caption: strings.Repeat("a", 2_610),
			})
		}
		Expect(posting.Size(post)).To(BeNumerically(">", posting.MaxPost))
		Expect(admin.Create(ctx, post)).To(Succeed(), "the policy counts texts and not the names of fields")
		DeferCleanup(t.deliver())
		Eventually(t.accepted(ctx, "huge")).Should(Equal("False " + v1alpha1.ReasonInvalid))
		got := as[postBody](t.call(ctx, "GET", "/posts/huge", "")).Data
		Expect(got.Status).To(Equal("processing"), "it can be mended until the starting deadline")
		for _, target := range t.stored(ctx, "huge").Status.Targets {
			Expect(target.Message).To(ContainSubstring("shorten the captions"))
			Expect(target.Attempt).To(BeNil(), "nothing is claimed")
		}
	})

	It("is refused by name when it is larger than anybody stores", func(ctx SpecContext) {
		r := t.call(ctx, "POST", "/posts", pages(15, strings.Repeat("<", 65_000)))
		Expect(r.status).To(Equal(http.StatusBadRequest), "%.300s", r.body)
	})
})
