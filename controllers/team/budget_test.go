// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/test/suite"
)

func resourceQuota(ctx context.Context, namespace string) func() (*corev1.ResourceQuota, error) {
	return func() (*corev1.ResourceQuota, error) {
		var q corev1.ResourceQuota
		err := k8s.Get(ctx, types.NamespacedName{Namespace: namespace, Name: v1alpha1.BudgetQuota}, &q)
		return &q, err
	}
}

// bounds returns the limits of a quota by kind, as "posts=1 media=2 …".
func bounds(q *corev1.ResourceQuota) string {
	var out []string
	for _, kind := range []string{"posts", "media", "apikeys", "connections", "oauthgrants", "postschedules", "notifiers"} {
		hard := q.Spec.Hard[corev1.ResourceName("count/"+kind+".social.herald.dev")]
		out = append(out, fmt.Sprintf("%s=%d", kind, hard.Value()))
	}
	if more := len(q.Spec.Hard) - len(out); more != 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, " ")
}

var _ = Describe("The budget of a Team", func() {
	const starter = "posts=2000 media=4100 apikeys=20 connections=200 oauthgrants=1000 postschedules=50 notifiers=10"

	It("limits the objects in its namespace, and follows the Team", func(ctx SpecContext) {
		t := ready(ctx, "bounded")
		n := t.Name
		q, err := resourceQuota(ctx, n)()
		Expect(err).NotTo(HaveOccurred(), "the quota exists before the Team is ready")
		Expect(bounds(q)).To(Equal("posts=16000 media=33000 apikeys=100 connections=5000 oauthgrants=5000 postschedules=200 notifiers=50"))
		Expect(q.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "herald"))
		Expect(q.OwnerReferences).To(ConsistOf(HaveField("Name", "herald-team-secrets")), "the quota is deleted with the release")

		change := func(edit func(*v1alpha1.TeamSpec)) {
			GinkgoHelper()
			Eventually(func() error {
				Expect(k8s.Get(ctx, client.ObjectKeyFromObject(t), t)).To(Succeed())
				edit(&t.Spec)
				return k8s.Update(ctx, t)
			}).Should(Succeed())
		}
		is := func(want string) {
			GinkgoHelper()
			Eventually(func(g Gomega) string {
				q, err := resourceQuota(ctx, n)()
				g.Expect(err).NotTo(HaveOccurred())
				return bounds(q)
			}).Should(Equal(want))
		}
		change(func(s *v1alpha1.TeamSpec) { s.Subscription.State = v1alpha1.SubscriptionTrialing })
		is(starter)
		change(func(s *v1alpha1.TeamSpec) { s.Budget.Posts, s.Budget.Keys = new(int32(10)), new(int32(0)) })
		is("posts=10 media=120 apikeys=0 connections=200 oauthgrants=1000 postschedules=50 notifiers=10")
		change(func(s *v1alpha1.TeamSpec) { s.Budget = v1alpha1.TeamBudget{} })
		is(starter)
	})

	It("is restored if the quota is changed or deleted, and ignores Kubernetes' counts", func(ctx SpecContext) {
		n := ready(ctx, "bounded").Name
		q := suite.Must(resourceQuota(ctx, n)())
		want := bounds(q)

		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{"count/posts.social.herald.dev": resource.MustParse("3")}}
		Expect(k8s.Status().Update(ctx, q)).To(Succeed())
		q.Spec.Hard["count/posts.social.herald.dev"] = resource.MustParse("1000000")
		q.Spec.Hard["count/secrets"] = resource.MustParse("0")
		q.Labels = nil
		Expect(k8s.Update(ctx, q)).To(Succeed())
		back := func(g Gomega) {
			q, err := resourceQuota(ctx, n)()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bounds(q)).To(Equal(want))
			g.Expect(q.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "herald"))
		}
		Eventually(back).Should(Succeed())
		q = suite.Must(resourceQuota(ctx, n)())
		Expect(q.Status.Used).NotTo(BeEmpty(), "Kubernetes' counts remain")
		Expect(k8s.Delete(ctx, q)).To(Succeed())
		Eventually(back).Should(Succeed())
	})

	DescribeTable("is validated in the Team", func(ctx SpecContext, field string, value any, words string) {
		t := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"namespace": "judged", "budget": map[string]any{field: value}}}}
		t.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Team"))
		t.SetName(name("judged"))
		err := k8s.Create(ctx, t, client.DryRunAll)
		if words == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring("spec.budget.%s: Invalid value: %s", field, words)))
	},
		Entry("with a negative number of posts", "posts", int64(-1), "-1"),
		Entry("with more posts than etcd can store", "posts", int64(10_000_001), "10000001"),
		Entry("with bytes as a number, as Kubernetes accepts quantities", "postBytes", int64(1<<40), ""),
		Entry("with bytes and a fraction", "postBytes", "1.5Gi", ""),
		Entry("with bytes in thousands", "pendingFileBytes", "20G", ""),
		Entry("with bytes in a unit that Kubernetes does not have", "postBytes", "1MB", `"1MB"`),
		Entry("with a negative number of bytes", "postBytes", int64(-1), "-1: must be a number of bytes, such as 1048576, 128Mi or 1.5Gi"),
		Entry("with bytes beyond the largest number", "pendingFileBytes", "9999999Ti", `"9999999Ti"`),
		Entry("with a fraction of a byte, in the form that is written back", "postBytes", "1025024m", ""),
		Entry("with an exponent that the schema admits but a quantity cannot have", "postBytes", "1e1.5", `"1e1.5"`),
	)

	It("is reported in its status as the apiserver counted it, and as a metric when it is nearly used up", func(ctx SpecContext) {
		t := ready(ctx, "shown")
		n := t.Name
		store := quota.NewUsageStore(quota.NewAPI(asManager, asManager))
		registry := prometheus.NewRegistry()
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
		r := suite.Must(team.New(team.Options{
			Manager: manager, APIServer: apiserver, ManagerNamespace: manager.Namespace, Names: names, Claimants: claimants,
			Client: asManager, APIReader: asManager, Clock: clock, Quota: store, Metrics: team.NewMetrics(registry),
			Owner: func(context.Context, string) (*v1alpha1.Team, error) { return t, nil },
		}))
		look := func() {
			GinkgoHelper()
			request := ctrl.Request{NamespacedName: types.NamespacedName{Name: n}}
			Eventually(func() (time.Duration, error) {
				result, err := r.Reconcile(ctx, request)
				return result.RequeueAfter, err
			}).Should(Equal(5 * time.Minute))
			Expect(k8s.Get(ctx, request.NamespacedName, t)).To(Succeed())
		}
		near := func(posts, bytes int) {
			GinkgoHelper()
			Expect(testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
				# HELP herald_teams_near_budget Teams that have used 90 %% of a field of their budget or more, by field. Reported by the leader.
				# TYPE herald_teams_near_budget gauge
				herald_teams_near_budget{budget="keys"} 0
				herald_teams_near_budget{budget="pendingFileBytes"} 0
				herald_teams_near_budget{budget="pendingFiles"} 0
				herald_teams_near_budget{budget="postBytes"} %d
				herald_teams_near_budget{budget="posts"} %d
				herald_teams_near_budget{budget="unfinishedPosts"} 0
				`, bytes, posts)), "herald_teams_near_budget")).To(Succeed())
		}
		count := func(posts, bytes int64) {
			GinkgoHelper()
			budget := plan.BudgetOf(t)
			Expect(store.RecordBudget(ctx, n, []v1alpha1.BudgetUse{
				budget.Use(v1alpha1.BudgetPosts, posts), budget.Use(v1alpha1.BudgetPostBytes, bytes),
			}, clock.Now(), 0)).To(Succeed())
		}
		look()
		Expect(t.Status.Usage.Budget).To(BeEmpty(), "usage is unknown")
		near(0, 0)
		count(14_399, 512<<20)
		look()
		Expect(t.Status.Usage.Budget).To(ConsistOf(
			v1alpha1.BudgetUse{Item: v1alpha1.BudgetPosts, Used: 14_399, Limit: 16_000},
			v1alpha1.BudgetUse{Item: v1alpha1.BudgetPostBytes, Used: 512 << 20, Limit: 512 << 20},
		))
		near(0, 1)
		count(14_400, 0)
		look()
		near(1, 0)
		clock.SetTime(clock.Now().Add(time.Hour)) // a sweep of Usages keeps this one
		look()
		near(1, 0)
		Expect(k8s.Delete(ctx, t)).To(Succeed())
		Expect(r.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: n}})).Error().NotTo(HaveOccurred())
		near(0, 0)
	})
})

// test/deletions tests the same with Kubernetes' own quota controller. Here the spec simulates that controller with a
// fake clock.
var _ = Describe("A budget that Kubernetes failed to count", func() {
	It("is counted again at the manager's request, with growing pauses and all limits enforced, until it is counted", func(ctx SpecContext) {
		n := ready(ctx, "uncounted").Name
		q := suite.Must(resourceQuota(ctx, n)())
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
					Expect(bounds(q)).To(Equal(want+" and 1 more"), "all limits remain")
					questions++
				}
				return err
			},
		})
		start := func() *team.Reconciler {
			GinkgoHelper()
			return suite.Must(team.New(team.Options{
				Manager: manager, APIServer: apiserver, ManagerNamespace: manager.Namespace, Names: names, Claimants: claimants,
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
		Expect(questions).To(BeZero(), "no quota controller runs, so nothing is rejected")

		counted(nil)
		r := start()
		for _, step := range []struct {
			after, again time.Duration
			questions    int
			why          string
		}{
			{0, 5 * time.Second, 0, "the quota may count at any moment"},
			{4 * time.Second, time.Second, 0, "the pause is not over"},
			{5 * time.Second, 10 * time.Second, 1, "the first recount request"},
			{6 * time.Second, 9 * time.Second, 1, "the request is removed, so a count may follow"},
			{15 * time.Second, 20 * time.Second, 2, "the controller did not know the kinds"},
			{20 * time.Second, 15 * time.Second, 2, "other passes send no request"},
			{35 * time.Second, 40 * time.Second, 3, "the kinds are known"},
		} {
			look(r, step.after, step.again)
			Expect(questions).To(Equal(step.questions), "after %s: %s", step.after, step.why)
		}

		By("a manager that ends before it removes the count request, and the next one")
		r = start()
		look(r, time.Minute, 5*time.Second)
		q = suite.Must(resourceQuota(ctx, n)())
		Expect(bounds(q)).To(Equal(want))

		By("a cluster policy that rejects the count request: the team is ready anyway, and Kubernetes counts later")
		refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, q.Name, errors.New("a policy wants other bounds"))
		look(r, time.Minute+5*time.Second, 10*time.Second)
		look(r, time.Minute+6*time.Second, 9*time.Second)
		Expect([]int{questions, refused}).To(Equal([]int{3, 1}))
		refusal = nil
		look(r, time.Minute+15*time.Second, 20*time.Second)
		Expect(questions).To(Equal(4), "the recount is requested again")
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
		Expect(reads).To(BeZero(), "no further check is needed")
	})
})
