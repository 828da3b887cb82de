// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// recurring returns a schedule of posts to a connection that rotates through texts.
func recurring(connection string, texts ...string) *v1alpha1.PostSchedule {
	return &v1alpha1.PostSchedule{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PostSchedule"},
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("s-%d", serial.Add(1))},
		Spec: v1alpha1.PostScheduleSpec{Schedule: "0 9 * * 1", Texts: texts, Template: v1alpha1.PostTemplate{
			Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: connection}}},
		}},
	}
}

var _ = Describe("applying a schedule", func() {
	BeforeEach(func() { warnings.drain() })

	DescribeTable("is never rejected, and warns if X may reject its posts",
		func(ctx context.Context, schedule *v1alpha1.PostSchedule, warned bool) {
			Expect(apply(ctx, user, schedule)).To(Succeed())
			want := BeEmpty()
			if warned {
				want = ConsistOf(HavePrefix("X may reject posts whose text repeats a recent one"))
			}
			Expect(warnings.drain()).To(want)
		},
		Entry("one text to X", recurring("x", "Good morning"), true),
		Entry("two texts to X: its window for repeated texts is undocumented", recurring("x", "Good morning", "Good day"), false),
		Entry("one text to Threads, which shows both", recurring("threads", "Good morning"), false),
		Entry("one text to a connection that is created later", recurring("later", "Good morning"), false),
	)

	It("warns at a change that makes the text repeat", func(ctx context.Context) {
		schedule := recurring("x", "Good morning", "Good day")
		Expect(apply(ctx, user, schedule)).To(Succeed())
		Expect(warnings.drain()).To(BeEmpty())
		schedule.Spec.Texts = schedule.Spec.Texts[:1]
		Expect(apply(ctx, user, schedule)).To(Succeed())
		Expect(warnings.drain()).To(HaveLen(1))
	})
})
