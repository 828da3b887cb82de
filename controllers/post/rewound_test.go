// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/rewound"
)

var _ = Describe("A post of a cluster that was put back", func() {
	DescribeTable("is asked about again when it is deleted and made anew", func(ctx SpecContext, create func(ctx SpecContext, t team) *v1alpha1.Post) {
		t, k := newTeam(ctx), newKeeping()
		p := create(ctx, t)
		noticed := time.Now().Add(time.Second)
		m := startManager(interceptor.Funcs{}, k.options, func(o *post.Options) {
			o.Rewound = func(context.Context) (rewound.State, error) {
				return rewound.State{Rewound: &rewound.Rewind{Noticed: noticed}}, nil
			}
		})
		DeferCleanup(m.stop)
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Eventually(func() []string { return read(ctx, p).Finalizers }).Should(ContainElement(v1alpha1.DeliveryFinalizer))

		remove(ctx, p)
		Expect(k.of(ctx, t.namespace, p.Name)).To(HaveField("Targets", HaveLen(1)), "it may be out")
		Eventually(time.Now).Should(BeTemporally(">", noticed.Add(time.Second)), "what is made now is from after it was noticed")
		next := t.apply(ctx, p.Name, p.Spec.Targets[0].Caption)
		Eventually(func() string { return readyReason(ctx, next) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(publishesBy(t.account)).To(BeZero())
	},
		Entry("one that came through the API", func(ctx SpecContext, t team) *v1alpha1.Post { return t.post(ctx, "through the API") }),
		Entry("one that was applied", func(ctx SpecContext, t team) *v1alpha1.Post { return t.apply(ctx, "launch", "applied") }),
	)
})
