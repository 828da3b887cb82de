// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/test/sandboxtest"
)

// copyOf makes an applied post a copy of an unknown object, as after a restore from a backup.
func copyOf(p *v1alpha1.Post) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.ArmedAnnotation, p.Name+"/00000000-0000-0000-0000-000000000000")
}

func toSecond(p *v1alpha1.Post) {
	p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "hello"})
}

func asksPerson(ctx context.Context, p *v1alpha1.Post) func() bool {
	return func() bool {
		return meta.IsStatusConditionTrue(read(ctx, p).Status.Conditions, v1alpha1.ConditionOutcomeUnknown)
	}
}

func states(ctx context.Context, p *v1alpha1.Post) func() []v1alpha1.TargetState {
	return func() (all []v1alpha1.TargetState) {
		now := read(ctx, p)
		for i := range now.Spec.Targets {
			if t := posting.Target(now, i); t != nil {
				all = append(all, posting.StateOf(t))
			}
		}
		return all
	}
}

var _ = Describe("A post about which a person is asked", func() {
	var m *manager
	var k *keeping
	var acme, second team
	var loose *unheld
	start := func() {
		m = startDisturbed(loose.funcs(), k.options, func(o *post.Options) { o.Records.Underway = 100 * time.Millisecond })
	}
	BeforeEach(func(ctx SpecContext) {
		k, loose = newKeeping(), &unheld{}
		start()
		DeferCleanup(func() { m.stop() })
		acme = newTeam(ctx)
		second = team{namespace: acme.namespace, account: acme.connect(ctx, "second")}
		acme.createTeam(ctx)
	})
	// lose deletes a post while no manager is running, as if its cluster were lost.
	lose := func(ctx SpecContext, p *v1alpha1.Post) {
		GinkgoHelper()
		m.stop()
		now := read(ctx, p)
		now.Finalizers = nil
		Expect(k8s.Update(ctx, now)).To(Succeed())
		Expect(k8s.Delete(ctx, now)).To(Succeed())
		start()
	}

	It("is asked about again when it was deleted, and applied without the mark of a copy", func(ctx SpecContext) {
		p := acme.apply(ctx, "launch", "hello", copyOf)
		Eventually(asksPerson(ctx, p)).Should(BeTrue())
		Expect(loose.all()).To(BeEmpty(), "it could vanish the moment a person is asked")
		remove(ctx, p)
		p = acme.apply(ctx, "launch", "hello")
		Eventually(asksPerson(ctx, p)).Should(BeTrue())
		Expect(publishesBy(acme.account)).To(BeZero())
	})

	It("is remembered as it stands when the cluster is lost meanwhile", func(ctx SpecContext) {
		p := acme.apply(ctx, "launch", "hello", copyOf, toSecond)
		Eventually(asksPerson(ctx, p)).Should(BeTrue())
		Expect(k8s.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"social.herald.dev/settle":"0=posted:1234567890"}}}`)))).To(Succeed())
		Eventually(states(ctx, p)).Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetUndecided}))
		Eventually(func() []v1alpha1.TargetState { return statesOf(k.of(ctx, acme.namespace, "launch")) }).
			Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetUndecided}))
		lose(ctx, p)
		p = acme.apply(ctx, "launch", "hello", toSecond)
		Eventually(states(ctx, p)).Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetUndecided}))
		Expect(read(ctx, p).Status.Targets[0].ExternalID).To(Equal("1234567890"))
		Expect(publishesBy(acme.account)).To(BeZero())
	})

	It("is asked for what was still under way when the cluster was lost", func(ctx SpecContext) {
		second.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 600, Times: 9})
		p := acme.apply(ctx, "launch", "hello", toSecond)
		Eventually(states(ctx, p)).Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetPending}))
		out := read(ctx, p).Status.Targets[0].ExternalID
		Eventually(func() []v1alpha1.TargetState { return statesOf(k.of(ctx, acme.namespace, "launch")) }).
			Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetPending}))
		lose(ctx, p)
		p = acme.apply(ctx, "launch", "hello", toSecond)
		Eventually(states(ctx, p)).Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetUndecided}))
		Expect(posting.Target(read(ctx, p), 0).ExternalID).To(Equal(out))
		Expect(publishesBy(acme.account)).To(Equal(1))
	})

	It("is remembered by a manager that finds it so", func(ctx SpecContext) {
		p := acme.apply(ctx, "launch", "hello", copyOf)
		Eventually(asksPerson(ctx, p)).Should(BeTrue())
		Eventually(func() *record.Record { return k.of(ctx, acme.namespace, "launch") }).ShouldNot(BeNil())
		Expect(k.Delete(ctx, archive.Team{Namespace: acme.namespace, Name: "of-" + acme.namespace}, "launch")).To(Succeed())
		m.stop()
		start()
		Eventually(func() *record.Record { return k.of(ctx, acme.namespace, "launch") }).ShouldNot(BeNil())
	})
})

func statesOf(r *record.Record) (all []v1alpha1.TargetState) {
	if r == nil {
		return nil
	}
	for i := range r.Targets {
		all = append(all, r.Targets[i].State)
	}
	return all
}

var _ = Describe("A post of a name that has a record", func() {
	DescribeTable("is looked up once more when it is due:", func(ctx SpecContext, change func(ctx context.Context, acme team, p *v1alpha1.Post)) {
		k := newKeeping()
		runManager(k.options)
		acme := newTeam(ctx)
		second := acme.connect(ctx, "second")
		p := posted(ctx, acme.apply(ctx, "launch", "hello"))
		out := read(ctx, p).Status.Targets[0].ExternalID
		remove(ctx, p)
		p = acme.apply(ctx, "launch", "hello", at(time.Hour), func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "second" })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Eventually(func() *v1alpha1.EarlierPost { return read(ctx, p).Status.Earlier }).ShouldNot(BeNil())
		change(ctx, acme, read(ctx, p))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		now := read(ctx, p)
		last := posting.Target(now, len(now.Spec.Targets)-1)
		Expect(last.ExternalID).To(Equal(out))
		Expect(now.Status.Earlier.Targets).To(ConsistOf(last.Index))
		Expect(publishesBy(acme.account)).To(Equal(1))
		Expect(publishesBy(second)).To(Equal(len(now.Spec.Targets) - 1))
	},
		Entry("an edit brought a target that is out", func(ctx context.Context, _ team, p *v1alpha1.Post) {
			edit(ctx, p, func(p *v1alpha1.Post) {
				p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"})
				p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now())
			})
		}),
		Entry("its Connection was made anew, for an account where it is out", func(ctx context.Context, acme team, p *v1alpha1.Post) {
			acme.rename(ctx, "second", "third")
			acme.rename(ctx, "x", "second")
			edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now()) })
		}),
	)
})
