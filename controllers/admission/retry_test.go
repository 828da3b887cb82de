// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// attempted creates a post to x and threads with these states, as the manager leaves it.
func attempted(ctx context.Context, x, threads v1alpha1.TargetState, change ...func(*v1alpha1.PostStatus)) string {
	GinkgoHelper()
	phases := map[v1alpha1.TargetState]v1alpha1.PostPhase{
		v1alpha1.TargetPosted: v1alpha1.PhasePosted, v1alpha1.TargetFailed: v1alpha1.PhaseFailed, v1alpha1.TargetUndecided: v1alpha1.PhaseFailed,
	}
	p := post(to("x", "threads"))
	Expect(apply(ctx, user, p)).To(Succeed())
	Expect(user.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
	p.Status.Targets = []v1alpha1.TargetStatus{
		{Index: 0, Platform: v1alpha1.PlatformX, State: x, Phase: phases[x]},
		{Index: 1, Platform: v1alpha1.PlatformThreads, State: threads, Phase: phases[threads]},
	}
	states := []v1alpha1.TargetState{x, threads}
	p.Status.Phase, p.Status.Finished = v1alpha1.PhaseFailed, !slices.Contains(states, v1alpha1.TargetUndecided)
	if x == v1alpha1.TargetPosted && threads == v1alpha1.TargetPosted {
		p.Status.Phase = v1alpha1.PhasePosted
	}
	for _, c := range change {
		c(&p.Status)
	}
	Expect(user.Status().Update(ctx, p)).To(Succeed())
	return p.Name
}

func retrying(name string) edit {
	return func(s *v1alpha1.PostSpec) { s.RetryOf = &v1alpha1.LocalReference{Name: name} }
}

var _ = Describe("applying a post that retries another one", func() {
	const failed, posted, undecided = v1alpha1.TargetFailed, v1alpha1.TargetPosted, v1alpha1.TargetUndecided
	BeforeEach(func() { warnings.drain() })

	by := func(name string) func(*v1alpha1.PostStatus) {
		return func(s *v1alpha1.PostStatus) { s.Targets[0].RetriedBy = name }
	}
	DescribeTable("rejects it if nothing can be retried",
		func(ctx context.Context, original func(ctx context.Context) string, field, words string, edits ...edit) {
			p := post(append([]edit{to("x", "threads"), retrying(original(ctx))}, edits...)...)
			warnings.drain()
			Expect(causes(apply(ctx, user, p))).To(ContainElement(And(HavePrefix(field+": "), ContainSubstring(words))))
		},
		Entry("an undecided target: a user has to answer first", func(ctx context.Context) string { return attempted(ctx, undecided, failed) },
			"spec.retryOf.name", "check the account, then answer as described in its OutcomeUnknown condition"),
		Entry("the same for a draft, which would be published by one change", func(ctx context.Context) string { return attempted(ctx, undecided, failed) },
			"spec.retryOf.name", "answer as described in its", edit(draft)),
		Entry("a published post", func(ctx context.Context) string { return attempted(ctx, posted, posted) },
			"spec.retryOf.name", "the post is posted; only a failed post can be retried"),
		Entry("only a target that is published", func(ctx context.Context) string { return attempted(ctx, posted, failed) },
			"spec.targets[0].connectionRef.name", "is published", to("x")),
		Entry("only a target that another post retries", func(ctx context.Context) string { return attempted(ctx, failed, failed, by("other")) },
			"spec.targets[0].connectionRef.name", `is already retried by post "other"`, to("x")),
		Entry("only an account that the failed post did not have", func(ctx context.Context) string { return attempted(ctx, failed, failed) },
			"spec.targets[0].connectionRef.name", `has no other target with the connection "facebook"`, to("facebook")),
	)

	DescribeTable("admits it otherwise, and warns about the unsent part",
		func(ctx context.Context, original func(ctx context.Context) string, words ...string) {
			p := post(to("x", "threads"), retrying(original(ctx)))
			warnings.drain()
			Expect(apply(ctx, user, p)).To(Succeed())
			seen := warnings.drain()
			Expect(seen).To(HaveLen(len(words)), "%v", seen)
			for i := range words {
				Expect(seen[i]).To(ContainSubstring(words[i]))
			}
		},
		Entry("all targets failed", func(ctx context.Context) string { return attempted(ctx, failed, failed) }),
		Entry("one target is published", func(ctx context.Context) string { return attempted(ctx, posted, failed) },
			"spec.targets[0].connectionRef.name: target 0 (x) of post"),
		Entry("no such post: a restored namespace may get it later", func(context.Context) string { return "nowhere" },
			`spec.retryOf.name: the namespace has no post "nowhere"`),
		Entry("a post of another team counts as missing", func(ctx context.Context) string {
			other := post(to("x"))
			other.Namespace = fmt.Sprintf("team-%d", serial.Add(1))
			Expect(user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}})).To(Succeed())
			Expect(apply(ctx, user, other)).To(Succeed())
			return other.Name
		}, "spec.retryOf.name: the namespace has no post"),
		Entry("an unfinished post: a restored one has not adopted its record yet", func(ctx context.Context) string {
			p := post(to("x", "threads"))
			Expect(apply(ctx, user, p)).To(Succeed())
			return p.Name
		}, "is not finished; this post waits for it until its starting deadline"),
	)

	It("admits a change of the post that has reserved the failed target", func(ctx context.Context) {
		p := post(to("x"))
		retrying(attempted(ctx, failed, posted, by(p.Name)))(&p.Spec)
		Expect(apply(ctx, user, p)).To(Succeed())
		saying("corrected")(&p.Spec)
		Expect(apply(ctx, user, p)).To(Succeed())
		Expect(warnings.drain()).To(BeEmpty())
	})
})
