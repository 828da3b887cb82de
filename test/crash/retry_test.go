// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// retrying lists the failpoints of a retry, in order.
var retrying = slices.Concat([]string{post.PointAfterReserve}, protocol)

// retry creates a post that retries a failed one.
func (t *team) retry(ctx SpecContext, failed *sent) *sent {
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p%d", serial.Add(1)), Namespace: t.namespace, Finalizers: []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: *failed.Spec.DeepCopy(),
	}
	p.Spec.RetryOf = &v1alpha1.LocalReference{Name: failed.Name}
	create(ctx, p)
	return &sent{Post: p, kind: failed.kind}
}

// refusals are the statuses with which platforms permanently refuse a post. On platforms other than X, 403 is a
// permission error, after which the post is sent again.
var refusals = map[v1alpha1.Platform]int{
	v1alpha1.PlatformX: http.StatusForbidden, v1alpha1.PlatformThreads: http.StatusBadRequest,
	v1alpha1.PlatformMastodon: http.StatusUnprocessableEntity, v1alpha1.PlatformBluesky: http.StatusBadRequest,
}

var _ = Describe("A refused post that two posts retry at once", func() {
	It("is published once, wherever the manager is killed", func(ctx SpecContext) {
		on := []v1alpha1.Platform{v1alpha1.PlatformX}
		if long {
			// A Facebook listing does not prove that a post is missing, so a killed call there must be resolved by a
			// user.
			on = slices.DeleteFunc(aText.targets(), func(to v1alpha1.Platform) bool { return to == v1alpha1.PlatformFacebook })
		}
		m, kills, twice, lost := startManager(), 0, 0, 0
		defer func() { m.kill() }()
		tm := newTeamOn(ctx, on...)
		for _, to := range on {
			tm.probed(ctx, to)
		}
		had := publishCallsEverywhere(ctx)
		attempts := map[v1alpha1.Platform]int{}
		for _, to := range on {
			for _, point := range retrying {
				Expect(platform.Fault(ctx, sandboxtest.Fault{
					Platform: string(to), Account: tm.accounts[to].ID, Operation: "publish", Kind: "status", Status: refusals[to], Times: 1,
				})).To(Succeed())
				failed := tm.post(ctx, aText, "refused, and its retry killed "+point, to)
				Eventually(func() bool { return over(ctx, failed) }).Should(BeTrue())
				met := points.once(point, func() { m.kill() })
				retries := []*sent{tm.retry(ctx, failed), tm.retry(ctx, failed)}
				Eventually(met).Should(BeClosed(), point)
				kills++
				m = startManager()
				Eventually(func() bool { return over(ctx, retries[0]) && over(ctx, retries[1]) }).Should(BeTrue(), func() string { return standing(ctx, retries) })

				now, err := tm.all(ctx)
				Expect(err).NotTo(HaveOccurred())
				shown := len(tm.shown(ctx)[words{on: to, text: failed.Spec.Targets[0].Caption}])
				twice += max(shown-1, 0)
				lost += max(1-shown, 0)
				var posted []string
				for _, p := range append(retries, failed) {
					target := now[p.Name].Status.Targets[0]
					if target.Attempt != nil {
						attempts[to] += int(target.Attempt.Number)
					}
					switch {
					case target.State == v1alpha1.TargetPosted:
						posted = append(posted, p.Name)
					case p != failed:
						Expect(target.Blocked.Reason).To(Equal(v1alpha1.ReasonRetryRefused), "the other retry: %+v", target)
					}
				}
				Expect(posted).To(ConsistOf(now[failed.Name].Status.Targets[0].RetriedBy), "killed %s", point)
			}
		}
		fmt.Printf("retries: %d refused posts, each retried by two posts, %d kills: %d published twice, %d lost\n", kills, kills, twice, lost)
		Expect(twice).To(BeZero(), "published twice")
		Expect(lost).To(BeZero(), "lost")
		for _, to := range on {
			Expect(publishCalls(ctx, to)-had[to]).To(BeNumerically("<=", attempts[to]), "calls that could publish to %s, for as many recorded attempts", to)
		}
	})
})
