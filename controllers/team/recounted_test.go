// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/test/suite"
)

// test/deletions tests the same with Kubernetes' own quota controller. Here the spec simulates that controller with a
// fake clock.
var _ = Describe("A budget that Kubernetes could not count", func() {
	It("is counted again because the manager asks for it, ever more rarely, with all bounds in force, and not once it is counted", func(ctx SpecContext) {
		n := name("uncounted")
		create(ctx, n, n)
		Eventually(readiness(ctx, n)).Should(Equal("True NamespaceReady"))
		q, err := resourceQuota(ctx, n)()
		Expect(err).NotTo(HaveOccurred())
		want := bounds(q)

		began := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
		clock := clocktesting.NewFakePassiveClock(began)
		questions, refused, reads := 0, 0, 0
		var refusal error
		watched := interceptor.NewClient(asManager, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*corev1.ResourceQuota); ok {
					reads++
				}
				return c.Get(ctx, key, obj, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				if q, ok := obj.(*corev1.ResourceQuota); ok && refusal != nil && bounds(q) != want {
					refused++
					return refusal
				}
				err := c.Update(ctx, obj, opts...)
				if q, ok := obj.(*corev1.ResourceQuota); ok && err == nil && bounds(q) != want {
					Expect(bounds(q)).To(Equal(want+" and 1 more"), "no bound is given up")
					questions++
				}
				return err
			},
		})
		start := func() *team.Reconciler {
			GinkgoHelper()
			return suite.Must(team.New(team.Options{
				Manager: manager, APIServer: apiserver, ManagerNamespace: manager.Namespace, Names: names, Claimants: wanting,
				Client: watched, APIReader: watched, Clock: clock,
			}))
		}
		// look reconciles after the given time, and again if the suite's own manager, with the real clock, has written in
		// between.
		look := func(r *team.Reconciler, after, again time.Duration) {
			GinkgoHelper()
			clock.SetTime(began.Add(after))
			Eventually(func() (time.Duration, error) {
				result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: n}})
				return result.RequeueAfter, err
			}).Should(Equal(again))
		}
		counted := func(used corev1.ResourceList) {
			GinkgoHelper()
			Eventually(func() error {
				q, err := resourceQuota(ctx, n)()
				if err != nil {
					return err
				}
				q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: used}
				return k8s.Status().Update(ctx, q)
			}).Should(Succeed())
		}

		look(start(), 0, 0)
		Expect(questions).To(BeZero(), "no controller of quotas has looked, so nothing is refused")

		counted(nil)
		r := start()
		for _, step := range []struct {
			after, again time.Duration
			questions    int
			why          string
		}{
			{0, 5 * time.Second, 0, "it may count any moment"},
			{4 * time.Second, time.Second, 0, "the pause is not over"},
			{5 * time.Second, 10 * time.Second, 1, "it is asked"},
			{6 * time.Second, 9 * time.Second, 1, "the question is taken back, and it may count any moment"},
			{15 * time.Second, 20 * time.Second, 2, "it did not know the kinds"},
			{20 * time.Second, 15 * time.Second, 2, "whatever else makes a pass asks nothing"},
			{35 * time.Second, 40 * time.Second, 3, "now it knows them"},
		} {
			look(r, step.after, step.again)
			Expect(questions).To(Equal(step.questions), "after %s: %s", step.after, step.why)
		}

		By("a manager that ends before it takes the question back, and the next one")
		r = start()
		look(r, time.Minute, 5*time.Second)
		q, err = resourceQuota(ctx, n)()
		Expect(err).NotTo(HaveOccurred())
		Expect(bounds(q)).To(Equal(want))

		By("a policy of the cluster that refuses the question: the team is ready all the same, and Kubernetes counts by itself later")
		refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, q.Name, errors.New("a policy wants other bounds"))
		look(r, time.Minute+5*time.Second, 10*time.Second)
		look(r, time.Minute+6*time.Second, 9*time.Second)
		Expect([]int{questions, refused}).To(Equal([]int{3, 1}))
		refusal = nil
		look(r, time.Minute+15*time.Second, 20*time.Second)
		Expect(questions).To(Equal(4), "it is tried again")
		look(r, time.Minute+16*time.Second, 19*time.Second)

		By("Kubernetes counting")
		used := corev1.ResourceList{}
		for kind := range q.Spec.Hard {
			used[kind] = resource.MustParse("0")
		}
		counted(used)
		look(r, 2*time.Minute, 0)
		Expect(questions).To(Equal(4))
		reads = 0
		look(r, 3*time.Minute, 0)
		Expect(reads).To(BeZero(), "nothing is to be looked at any more")
	})
})
