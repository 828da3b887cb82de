// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

var _ = Describe("A post of a team with plan limits", Ordered, func() {
	var (
		m      *manager
		quotas *quota.UsageStore
	)
	BeforeAll(func() {
		quotas = quota.NewUsageStore(quota.NewAPI(k8s, k8s))
		m = startManager(func(o *post.Options) {
			o.Plans = &post.Plans{Quota: quotas, Owner: func(context.Context, string) (*v1alpha1.Team, error) {
				return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter}}}, nil
			}}
			// X stands in for a TikTok inbox that accepts text posts.
			o.Platforms[v1alpha1.PlatformTikTok] = o.Platforms[v1alpha1.PlatformX]
		})
	})
	AfterAll(func() { m.stop() })

	// All posts are due within this test, or in other months.
	month := plan.XPosts(time.Now())
	reserve := func(ctx context.Context, t team, counter v1alpha1.UsageSpec, post string, counts ...int) {
		GinkgoHelper()
		at := suite.Must(time.Parse("2006-01", counter.Period))
		r := usage.Reservation{Post: post}
		for i, count := range counts {
			r.Uses = append(r.Uses, usage.Use{Target: i, Count: count, At: at})
		}
		Expect(quotas.Amend(ctx, t.namespace, counter, func(u *v1alpha1.Usage) error {
			Expect(usage.Reserve(u, r, 30, time.Now())).To(BeEmpty())
			return nil
		})).To(Succeed())
	}
	// before adds the usage of other posts.
	before := func(ctx context.Context, t team, count int) {
		GinkgoHelper()
		Expect(quotas.Amend(ctx, t.namespace, month, func(u *v1alpha1.Usage) error {
			Expect(usage.Confirm(u, usage.PostUses{Name: "before", UID: "an-older-post", Uses: []usage.Use{{Count: count, At: time.Now()}}}, 30, time.Now())).To(BeEmpty())
			return nil
		})).To(Succeed())
	}
	used := func(ctx context.Context, t team, counter v1alpha1.UsageSpec) func() int {
		return func() int {
			stored := suite.Must(quotas.Read(ctx, t.namespace, counter))
			return int(stored.Status.Used)
		}
	}
	target := func(ctx context.Context, p *v1alpha1.Post, i int) v1alpha1.TargetStatus {
		return read(ctx, p).Status.Targets[i]
	}

	// connectTikTok adds an account on the simulated TikTok to the team.
	connectTikTok := func(ctx context.Context, t team) {
		GinkgoHelper()
		conn := t.connection(ctx)
		tiktok := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "tiktok"}, Spec: conn.Spec}
		tiktok.Spec.Platform = v1alpha1.PlatformTikTok
		Expect(k8s.Create(ctx, tiktok)).To(Succeed())
		t.setReady(ctx, "tiktok", metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
	}

	It("is published while the limit is not reached, and then fails with PlanLimit without a call", func(ctx SpecContext) {
		t := newTeam(ctx)
		before(ctx, t, 29)
		posted(ctx, t.post(ctx, "the 30th"))
		p := t.post(ctx, "the 31st")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		failed := target(ctx, p, 0)
		Expect(failed.Reason).To(Equal(v1alpha1.ReasonPlanLimit))
		Expect(failed.Message).To(And(ContainSubstring("30 posts to X in a calendar month"), ContainSubstring("Change the plan")))
		Expect(failed.Attempt).To(BeNil(), "no target was claimed")
		Expect(t.published(ctx)).To(Equal([]string{"the 30th"}))
		Expect(used(ctx, t, month)()).To(Equal(30))
	})

	It("is not counted again if it was counted at its creation", func(ctx SpecContext) {
		t := newTeam(ctx)
		before(ctx, t, 29)
		p := posted(ctx, t.post(ctx, "reserved", func(p *v1alpha1.Post) { reserve(ctx, t, month, p.Name, 1) }))
		stored := suite.Must(quotas.Read(ctx, t.namespace, month))
		Expect(stored.Status.Used).To(BeEquivalentTo(30))
		Expect(stored.Status.Entries).To(ContainElement(And(HaveField("Post", p.Name), HaveField("UID", read(ctx, p).UID))), "a claimed post counts even after its deletion")
	})

	It("keeps its reservations when its targets change places", func(ctx SpecContext) {
		t := newTeam(ctx)
		connectTikTok(ctx, t)
		before(ctx, t, 29)
		// The reservation was for the first target on X. Now the second target is on X.
		p := t.post(ctx, "swapped", func(p *v1alpha1.Post) {
			reserve(ctx, t, month, p.Name, 1)
			p.Spec.Targets = []v1alpha1.PostTarget{
				{ConnectionRef: v1alpha1.LocalReference{Name: "tiktok"}, Caption: "swapped"}, p.Spec.Targets[0],
			}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(used(ctx, t, month)()).To(Equal(30), "one post to X counts once")
	})

	It("is sent to as many accounts as the limit allows", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "second")
		before(ctx, t, 29)
		p := t.post(ctx, "to two", func(p *v1alpha1.Post) {
			p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "to two"})
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		var phases []v1alpha1.PostPhase
		for i := range 2 {
			phases = append(phases, target(ctx, p, i).Phase)
		}
		Expect(phases).To(ConsistOf(v1alpha1.PhasePosted, v1alpha1.PhaseFailed))
	})

	It("that is one of many at once never exceeds the limit", func(ctx SpecContext) {
		t := newTeam(ctx)
		for i := range 3 {
			t.connect(ctx, fmt.Sprint("x", i))
		}
		before(ctx, t, 26)
		calls := publishCalls(ctx)
		var posts []*v1alpha1.Post
		for i := range 12 {
			posts = append(posts, t.post(ctx, fmt.Sprint("racer ", i), func(p *v1alpha1.Post) {
				p.Spec.Targets[0].ConnectionRef.Name = fmt.Sprint("x", i%3)
			}))
		}
		count := func() map[v1alpha1.PostPhase]int {
			phases := map[v1alpha1.PostPhase]int{}
			for _, p := range posts {
				phases[read(ctx, p).Status.Phase]++
			}
			return phases
		}
		Eventually(count).Should(Equal(map[v1alpha1.PostPhase]int{v1alpha1.PhasePosted: 4, v1alpha1.PhaseFailed: 8}))
		Expect(publishCalls(ctx) - calls).To(Equal(4))
		Expect(used(ctx, t, month)()).To(Equal(30))
	})

	It("that is a tree counts each card once", func(ctx SpecContext) {
		t := newTeam(ctx)
		before(ctx, t, 27)
		posted(ctx, t.post(ctx, "", ofTree))
		Expect(used(ctx, t, month)()).To(Equal(29))
		p := t.post(ctx, "", ofTree)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(target(ctx, p, 0)).To(And(HaveField("Reason", v1alpha1.ReasonPlanLimit), HaveField("Message", ContainSubstring("this one needs 2"))))
		Expect(t.published(ctx)).To(HaveLen(2))
		Expect(used(ctx, t, month)()).To(Equal(29))
	})

	It("counts once it is promoted", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "kept", func(p *v1alpha1.Post) { p.Spec.Draft = true })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseDraft))
		Expect(used(ctx, t, month)()).To(BeZero())
		Expect(k8s.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"draft":false}}`)))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(used(ctx, t, month)()).To(Equal(1))
	})

	DescribeTable("releases its unused reservations", func(ctx context.Context, change func(*v1alpha1.Post), then func(context.Context, team, *v1alpha1.Post)) {
		t := newTeam(ctx)
		at := time.Now()
		p := t.post(ctx, "in vain", change, func(p *v1alpha1.Post) {
			if p.Spec.ScheduledAt != nil {
				at = p.Spec.ScheduledAt.Time
			} else {
				// The platform responds after the claim.
				t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 403})
			}
			reserve(ctx, t, plan.XPosts(at), p.Name, 1)
		})
		then(ctx, t, p)
		Eventually(used(ctx, t, plan.XPosts(at))).Should(BeZero())
	},
		Entry("when it is cancelled", at(40*24*time.Hour), func(ctx context.Context, _ team, p *v1alpha1.Post) {
			Expect(k8s.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancelled":true}}`)))).To(Succeed())
		}),
		Entry("when it is deleted before its time", at(40*24*time.Hour), func(ctx context.Context, _ team, p *v1alpha1.Post) {
			Expect(k8s.Delete(ctx, p)).To(Succeed())
		}),
		Entry("when its time has passed", at(-3*time.Hour), func(ctx context.Context, _ team, p *v1alpha1.Post) {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
			Expect(target(ctx, p, 0).Reason).To(Equal(v1alpha1.ReasonMissedSchedule))
		}),
		Entry("when the platform refuses it", func(*v1alpha1.Post) {}, func(ctx context.Context, t team, p *v1alpha1.Post) {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
			Expect(t.published(ctx)).To(BeEmpty())
		}),
	)

	It("keeps its reservation when it is deleted after publication", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := posted(ctx, t.post(ctx, "published"))
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		Eventually(func() error { return client.IgnoreNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(p), p)) }).Should(Succeed())
		Consistently(used(ctx, t, month), 300*time.Millisecond).Should(Equal(1))
	})

	It("fails for an account that the plan does not include", func(ctx SpecContext) {
		t := newTeam(ctx) // has the connection x, the last one by name
		for i := range 10 {
			t.connect(ctx, fmt.Sprintf("a%02d", i))
		}
		var all v1alpha1.ConnectionList
		Expect(k8s.List(ctx, &all, client.InNamespace(t.namespace))).To(Succeed())
		youngest := all.Items[0]
		for _, c := range all.Items {
			if newer := c.CreationTimestamp.Compare(youngest.CreationTimestamp.Time); newer > 0 || newer == 0 && c.Name > youngest.Name {
				youngest = c
			}
		}
		beyond := func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = youngest.Name }
		p := t.post(ctx, "beyond", beyond)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(target(ctx, p, 0)).To(And(HaveField("Reason", v1alpha1.ReasonPlanLimit), HaveField("Message", ContainSubstring("10 connected accounts"))))

		t.setReady(ctx, youngest.Name, metav1.ConditionFalse, v1alpha1.ReasonPlanLimit, "")
		p = t.post(ctx, "beyond, as its connection says", beyond)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(target(ctx, p, 0).Reason).To(Equal(v1alpha1.ReasonPlanLimit))
	})

	It("waits in TikTok's inbox with at most four others within a day", func(ctx SpecContext) {
		t := newTeam(ctx)
		connectTikTok(ctx, t)
		toInbox := func(p *v1alpha1.Post) {
			p.Spec.Targets[0].ConnectionRef.Name = "tiktok"
			p.Spec.Targets[0].TikTok = &v1alpha1.TikTokOptions{Draft: true}
		}
		var posts []*v1alpha1.Post
		for i := range 7 {
			posts = append(posts, t.post(ctx, fmt.Sprint("inbox ", i), toInbox))
		}
		reasons := func() map[string]int {
			found := map[string]int{}
			for _, p := range posts {
				if s := read(ctx, p).Status; len(s.Targets) > 0 {
					found[string(s.Phase)+" "+s.Targets[0].Reason]++
				}
			}
			return found
		}
		Eventually(reasons).Should(Equal(map[string]int{"posted Posted": 5, "failed " + v1alpha1.ReasonDraftLimit: 2}))
		Expect(t.published(ctx)).To(HaveLen(5))
		posted(ctx, t.post(ctx, "published, not a draft", func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "tiktok" }))
	})
})

var _ = Describe("A post of a team without plan limits", func() {
	It("does not send requests to count its usage, whether published, rejected or cancelled", func(ctx SpecContext) {
		// Quota is nil, so any count would panic.
		runManager(func(o *post.Options) {
			o.Plans = &post.Plans{Owner: func(context.Context, string) (*v1alpha1.Team, error) {
				return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited}}}, nil
			}}
		})
		t := newTeam(ctx)
		posted(ctx, t.post(ctx, "published"))
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 403})
		p := t.post(ctx, "refused")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		p = t.post(ctx, "cancelled", at(time.Hour))
		Expect(k8s.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancelled":true}}`)))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
	})
})

var _ = Describe("A post whose usage cannot be counted", func() {
	It("reports the reason, and is published when counting succeeds", func(ctx SpecContext) {
		api := &unavailable{API: quota.NewAPI(k8s, k8s)}
		api.down.Store(true)
		runManager(func(o *post.Options) {
			o.Plans = &post.Plans{Quota: quota.NewUsageStore(api), Owner: func(context.Context, string) (*v1alpha1.Team, error) {
				return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter}}}, nil
			}}
		})
		t := newTeam(ctx)
		p := t.post(ctx, "not counted")
		Eventually(func() string {
			if s := read(ctx, p).Status; len(s.Targets) > 0 {
				return s.Targets[0].Reason + ": " + s.Targets[0].Message
			}
			return ""
		}).Should(And(HavePrefix(v1alpha1.ReasonUsageUnavailable), ContainSubstring("usages.social.herald.dev")))
		Expect(t.published(ctx)).To(BeEmpty())
		waiting, asked := read(ctx, p), api.asked.Load()
		Expect(waiting.Status.Targets[0].Message).To(HaveSuffix("Herald tries again"))
		Eventually(api.asked.Load).Should(BeNumerically(">=", asked+3))
		Expect(read(ctx, p).ResourceVersion).To(Equal(waiting.ResourceVersion), "an unchanged status is not written")
		api.down.Store(false)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"not counted"}))
	})
})

// unavailable fails all reads while down is set.
type unavailable struct {
	quota.API

	down  atomic.Bool
	asked atomic.Int32
}

func (u *unavailable) Get(ctx context.Context, namespace, name string) (*v1alpha1.Usage, error) {
	u.asked.Add(1)
	if u.down.Load() {
		return nil, errors.New("the server could not find the requested resource")
	}
	return u.API.Get(ctx, namespace, name)
}
