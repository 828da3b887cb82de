// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/quota"
)

// What is counted is looked at step by step, with the rights that the manager
// is installed with.
var _ = Describe("What a team uses", func() {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var (
		ns      string
		clock   *clocktesting.FakePassiveClock
		store   *quota.Store
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
		maps, err := typedcorev1.NewForConfig(limited)
		Expect(err).NotTo(HaveOccurred())
		store = quota.NewStore(maps, "", clock)
		r, err = team.New(team.Options{
			Manager: manager, ManagerNamespace: manager.Namespace, Names: names,
			Client: asManager, APIReader: asManager, Clock: clock, Quota: store,
			Owner: func(context.Context, string) (*v1alpha1.Team, error) { return t, nil },
		})
		Expect(err).NotTo(HaveOccurred())
		request = ctrl.Request{NamespacedName: types.NamespacedName{Name: ns}}
	})

	reserve := func(ctx context.Context, at time.Time, post string, uid types.UID, count int) {
		GinkgoHelper()
		answer, err := store.Take(ctx, quota.XPosts(ns, at), &quota.Reservation{
			Post: post, UID: uid, Items: []quota.Item{{Count: count, At: at}},
		}, quota.Limit{Most: 30})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Refused).To(BeEmpty())
	}
	used := func(ctx context.Context, at time.Time) int {
		GinkgoHelper()
		page, err := store.Entries(ctx, quota.XPosts(ns, at))
		Expect(err).NotTo(HaveOccurred())
		return page.Used()
	}
	// look makes a pass and returns the usage as "X posts, accounts".
	look := func(ctx context.Context) string {
		GinkgoHelper()
		var result ctrl.Result
		// The suite's manager writes the same status; who loses comes again at once.
		Eventually(func() (time.Duration, error) {
			var err error
			result, err = r.Reconcile(ctx, request)
			return result.RequeueAfter, err
		}).Should(BeElementOf(time.Minute, 10*time.Minute))
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

	It("is shown in its status: posts to X of this month, and accounts", func(ctx SpecContext) {
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
		Expect(look(ctx)).To(Equal("any, 2"), "nobody counts what is not limited")
	})

	It("is given back when it was reserved in vain, and only then", func(ctx SpecContext) {
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
		page, err := store.Entries(ctx, quota.XPosts(ns, now))
		Expect(err).NotTo(HaveOccurred())
		Expect(page).To(And(HaveLen(3), HaveKey("waits"), HaveKey("comes-any-moment"), HaveKey("delivered-and-deleted")))
	})

	It("is put in order although somebody spoilt another count", func(ctx SpecContext) {
		// By name it is the first of the books.
		spoilt := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: quota.DefaultNamespace, Name: ns + ".x-posts.2026-10", Labels: map[string]string{
				v1alpha1.QuotaLabel: quota.KindXPosts, v1alpha1.QuotaOfLabel: ns,
			}},
			Data: map[string]string{"a": "30?"},
		}
		Expect(k8s.Create(ctx, spoilt)).To(Succeed())
		reserve(ctx, now, "never-came", "", 1)
		clock.SetTime(now.Add(10 * time.Minute))
		Expect(look(ctx)).To(Equal("0, 0"))
	})

	It("of long ago is cleared away, of late is kept", func(ctx SpecContext) {
		august, october := now.AddDate(0, -3, 0), now.AddDate(0, -1, 0)
		reserve(ctx, august, "old", "uid", 1)
		reserve(ctx, october, "late", "uid", 1)
		conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tiktok", UID: "c"}}
		drafts := quota.TikTokDrafts(conn)
		_, err := store.Take(ctx, drafts, &quota.Reservation{Post: "draft", UID: "uid", Items: []quota.Item{{Count: 1, At: now.Add(-49 * time.Hour)}}}, quota.Limit{Most: 5, Within: 24 * time.Hour})
		Expect(err).NotTo(HaveOccurred())
		Expect(look(ctx)).To(Equal("0, 0"))
		counters, err := store.Counters(ctx, ns)
		Expect(err).NotTo(HaveOccurred())
		Expect(counters).To(HaveLen(1))
		Expect(used(ctx, october)).To(Equal(1))
	})
})
