// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
	"github.com/herald-social/herald/test/suite"
)

// These specs count step by step, with the permissions of an installed manager.
var _ = Describe("A team's usage", func() {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var (
		ns      string
		clock   *clocktesting.FakePassiveClock
		store   *quota.UsageStore
		r       *team.Reconciler
		request ctrl.Request
	)
	BeforeEach(func(ctx SpecContext) {
		ns = name("counted")
		t := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: v1alpha1.TeamSpec{
			Namespace: ns, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter},
		}}
		Expect(k8s.Create(ctx, t)).To(Succeed())
		Eventually(readiness(ctx, ns)).Should(Equal("True NamespaceReady"))
		clock = clocktesting.NewFakePassiveClock(now)
		store = quota.NewUsageStore(quota.NewAPI(asManager, asManager))
		r = suite.Must(team.New(team.Options{
			Manager: manager, APIServer: apiserver, ManagerNamespace: manager.Namespace, Names: names, Claimants: claimants,
			Client: asManager, APIReader: asManager, Clock: clock, Quota: store,
			Owner: func(context.Context, string) (*v1alpha1.Team, error) { return t, nil },
		}))
		request = ctrl.Request{NamespacedName: types.NamespacedName{Name: ns}}
	})

	It("is counted without reading unchanged objects", func(ctx SpecContext) {
		asked := map[string]int{}
		reader := interceptor.NewClient(asManager, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				asked[fmt.Sprintf("%T", obj)]++
				return c.Get(ctx, key, obj, opts...)
			},
		})
		owner := func(context.Context, string) (*v1alpha1.Team, error) { return &v1alpha1.Team{}, nil }
		one := suite.Must(team.New(team.Options{
			Manager: manager, APIServer: apiserver, ManagerNamespace: manager.Namespace, Names: names, Claimants: claimants,
			Client: asManager, APIReader: reader, Clock: clock, Quota: quota.NewUsageStore(quota.NewAPI(reader, asManager)), Owner: owner,
		}))
		pass := func() {
			GinkgoHelper()
			Eventually(func() (time.Duration, error) {
				result, err := one.Reconcile(ctx, request)
				return result.RequeueAfter, err
			}).Should(Equal(5 * time.Minute))
		}
		pass()
		Expect(asked).To(HaveKey("*v1.Namespace"), "the first pass reads the namespace")
		clear(asked)
		pass()
		Expect(asked).To(HaveLen(1))
		Expect(asked).To(HaveKey("*v1alpha1.Usage"), "usage is stored there")
		clock.SetTime(now.Add(time.Hour))
		pass()
		Expect(asked).To(HaveKey("*v1.Namespace"), "a watch may have missed an event")
	})

	// reserve reserves something for a post: with a UID as its delivery does, otherwise as the request to create it.
	reserve := func(ctx context.Context, at time.Time, post string, uid types.UID, count int) {
		GinkgoHelper()
		uses := []usage.Use{{Count: count, At: at}}
		Expect(store.Amend(ctx, ns, plan.XPosts(at), func(u *v1alpha1.Usage) error {
			if uid == "" {
				Expect(usage.Reserve(u, usage.Reservation{Post: post, Request: "a-request", Uses: uses}, 30, clock.Now())).To(BeEmpty())
			} else {
				Expect(usage.Confirm(u, usage.PostUses{Name: post, UID: uid, Uses: uses}, 30, clock.Now())).To(BeEmpty())
			}
			return nil
		})).To(Succeed())
	}
	stored := func(ctx context.Context) []v1alpha1.Usage {
		GinkgoHelper()
		var found v1alpha1.UsageList
		Expect(k8s.List(ctx, &found, client.InNamespace(ns))).To(Succeed())
		return found.Items
	}
	// look reconciles the team and returns the usage as "X posts, accounts".
	look := func(ctx context.Context) string {
		GinkgoHelper()
		var result ctrl.Result
		// The suite's manager writes the same status. After a conflict, the reconciliation is repeated.
		Eventually(func() (time.Duration, error) {
			var err error
			result, err = r.Reconcile(ctx, request)
			return result.RequeueAfter, err
		}).Should(Equal(5 * time.Minute))
		var t v1alpha1.Team
		Expect(k8s.Get(ctx, request.NamespacedName, &t)).To(Succeed())
		Expect(t.Status.Usage).NotTo(BeNil())
		if t.Status.Usage.XPostsThisMonth == nil {
			return fmt.Sprintf("any, %d", t.Status.Usage.ConnectedAccounts)
		}
		return fmt.Sprintf("%d, %d", *t.Status.Usage.XPostsThisMonth, t.Status.Usage.ConnectedAccounts)
	}
	connect := func(ctx context.Context, name string, disabled bool) {
		GinkgoHelper()
		Expect(k8s.Create(ctx, &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec: v1alpha1.ConnectionSpec{
				Platform: v1alpha1.PlatformX, AccountID: name, Disabled: disabled, CredentialsSecretRef: v1alpha1.LocalReference{Name: name},
			},
		})).To(Succeed())
	}
	newPost := func(ctx context.Context, name string, edits ...func(*v1alpha1.Post)) *v1alpha1.Post {
		GinkgoHelper()
		p := &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec: v1alpha1.PostSpec{
				Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(now.Add(time.Hour)),
				Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "a"}},
			},
		}
		for _, edit := range edits {
			edit(p)
		}
		Expect(k8s.Create(ctx, p)).To(Succeed())
		return p
	}

	It("is reported in its status: this month's posts to X, and accounts", func(ctx SpecContext) {
		Expect(look(ctx)).To(Equal("0, 0"))
		connect(ctx, "one", false)
		connect(ctx, "two", false)
		connect(ctx, "off", true)
		newPost(ctx, "p1", func(p *v1alpha1.Post) {
			p.Spec.Category = v1alpha1.CategoryTree
			p.Spec.Targets[0].Caption = ""
			p.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "a"}, {Caption: "b"}, {Caption: "c"}}}
		})
		reserve(ctx, now, "p1", "", 3)
		reserve(ctx, now.AddDate(0, 1, 0), "p2", "", 4)
		Expect(look(ctx)).To(Equal("3, 2"))

		var t v1alpha1.Team
		Expect(k8s.Get(ctx, request.NamespacedName, &t)).To(Succeed())
		t.Spec.Subscription.Plan = v1alpha1.PlanUnlimited
		Expect(k8s.Update(ctx, &t)).To(Succeed())
		Expect(look(ctx)).To(Equal("any, 2"), "usage without a limit is not counted")
	})

	It("is released if its reservation was not used, and only then", func(ctx SpecContext) {
		newPost(ctx, "waits")
		newPost(ctx, "withdrawn", func(p *v1alpha1.Post) { p.Spec.Cancelled = true })
		newPost(ctx, "moved", func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(now.AddDate(0, 1, 0)) })
		Expect(look(ctx)).To(Equal("0, 0"))
		for _, post := range []string{"waits", "withdrawn", "moved", "never-came"} {
			reserve(ctx, now, post, "", 1)
		}
		reserve(ctx, now, "delivered-and-deleted", "an-old-uid", 1)
		clock.SetTime(now.Add(5 * time.Minute))
		reserve(ctx, now, "comes-any-moment", "", 1)
		Expect(look(ctx)).To(Equal("6, 0"), "the count is shown more often than it is put in order")
		clock.SetTime(now.Add(10 * time.Minute))
		Expect(look(ctx)).To(Equal("3, 0"))
		usages := stored(ctx)
		Expect(usages).To(HaveLen(1))
		Expect(usages[0].Status.Entries).To(ConsistOf(
			And(HaveField("Post", "waits"), HaveField("Request", BeEmpty())),
			HaveField("Post", "comes-any-moment"),
			And(HaveField("Post", "delivered-and-deleted"), HaveField("Settled", true)),
		))
	})

	It("remains counted when posts are archived, and is released for unpublished ones", func(ctx SpecContext) {
		end := func(name string, target v1alpha1.TargetStatus) *v1alpha1.Post {
			GinkgoHelper()
			p := newPost(ctx, name)
			target.Platform, target.Attempt.Number, target.Attempt.ID = v1alpha1.PlatformX, 1, "a"
			target.Attempt.StartedAt, target.Attempt.SendBefore = v1alpha1.NewTime(now), v1alpha1.NewTime(now)
			p.Status = v1alpha1.PostStatus{Phase: target.Phase, Finished: true, FinishedAt: v1alpha1.NewTimePtr(now), Targets: []v1alpha1.TargetStatus{target}}
			Expect(k8s.Status().Update(ctx, p)).To(Succeed())
			reserve(ctx, now, name, p.UID, 1)
			return p
		}
		connect(ctx, "x", false)
		out := end("published", v1alpha1.TargetStatus{
			Phase: v1alpha1.PhasePosted, State: v1alpha1.TargetPosted, ExternalID: "1", PostedAt: v1alpha1.NewTimePtr(now), Attempt: &v1alpha1.Attempt{Outcome: v1alpha1.OutcomePosted},
		})
		refused := end("refused", v1alpha1.TargetStatus{
			Phase: v1alpha1.PhaseFailed, State: v1alpha1.TargetFailed, Attempt: &v1alpha1.Attempt{Outcome: v1alpha1.OutcomeRefused},
		})
		Expect(look(ctx)).To(Equal("1, 1"), "unused reservations are released when the post finishes, or by this recount")
		for _, p := range []*v1alpha1.Post{out, refused} {
			Expect(k8s.Delete(ctx, p)).To(Succeed())
		}
		clock.SetTime(now.Add(10 * time.Minute))
		Expect(look(ctx)).To(Equal("1, 1"), "published posts count for their month")
	})

	It("is corrected even if another Usage is invalid", func(ctx SpecContext) {
		october := plan.XPosts(now.AddDate(0, -1, 0))
		// It is the first one by name.
		spoilt := &v1alpha1.Usage{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: quota.Name(&october)},
			Spec:       v1alpha1.UsageSpec{Resource: "others", Period: october.Period},
		}
		Expect(k8s.Create(ctx, spoilt)).To(Succeed())
		copied := &v1alpha1.Usage{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a-copy"}, Spec: october}
		Expect(k8s.Create(ctx, copied)).To(Succeed())
		reserve(ctx, now, "never-came", "", 1)
		clock.SetTime(now.Add(10 * time.Minute))
		Expect(look(ctx)).To(Equal("0, 0"))
	})

	It("is deleted when it is old, and kept when it is recent", func(ctx SpecContext) {
		august, october := now.AddDate(0, -3, 0), now.AddDate(0, -1, 0)
		reserve(ctx, august, "old", "uid", 1)
		reserve(ctx, october, "late", "uid", 1)
		drafts := plan.TikTokDrafts(&v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{AccountID: "tiktok"}})
		Expect(store.Amend(ctx, ns, drafts, func(u *v1alpha1.Usage) error {
			usage.Confirm(u, usage.PostUses{Name: "draft", UID: "uid", Uses: []usage.Use{{Count: 1, At: now.Add(-49 * time.Hour)}}}, 5, now)
			return nil
		})).To(Succeed())
		Expect(look(ctx)).To(Equal("0, 0"))
		Expect(stored(ctx)).To(ConsistOf(And(HaveField("Spec.Period", "2026-10"), HaveField("Status.Used", int32(1)))))
	})

	It("is in its namespace, where editors cannot change it", func(ctx SpecContext) {
		reserve(ctx, now, "a", "uid", 1)
		apply(k8s, "users/usage_roles.yaml")
		var roles rbacv1.ClusterRoleList
		Expect(k8s.List(ctx, &roles)).To(Succeed())
		for _, role := range roles.Items {
			aggregated := false
			for label := range role.Labels {
				aggregated = aggregated || strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
			}
			for _, rule := range role.Rules {
				if aggregated && slices.Contains(rule.Resources, "usages") {
					Expect(rule.Verbs).To(ConsistOf("get", "list", "watch"), role.Name)
				}
			}
		}
	})
})
