// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/herald-social/herald/test/suite"
)

// question returns the message of the OutcomeUnknown condition, or "".
func question(ctx context.Context, p *v1alpha1.Post) func() string {
	return func() string {
		if c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionOutcomeUnknown); c != nil {
			return c.Message
		}
		return ""
	}
}

// commands returns the lines of a question that are meant to be copied.
func commands(message string) (lines []string) {
	for line := range strings.SplitSeq(message, "\n") {
		if strings.HasPrefix(line, "  kubectl ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// restored makes a post look like a restored backup, so that only a user can determine whether it was published.
func restored(p *v1alpha1.Post) {
	p.Annotations = map[string]string{v1alpha1.BornAnnotation: time.Now().Add(-24 * time.Hour).Format(time.RFC3339)}
}

func onSecond(p *v1alpha1.Post) {
	p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: p.Spec.Targets[0].Caption})
}

// saidWrong returns the problems with a post's resolutions, according to its events.
func saidWrong(ctx context.Context, p *v1alpha1.Post) func() string {
	return func() string {
		var found corev1.EventList
		Expect(k8s.List(ctx, &found, client.InNamespace(p.Namespace))).To(Succeed())
		var all []string
		for i := range found.Items {
			if e := &found.Items[i]; e.InvolvedObject.Name == p.Name && e.Reason == "InvalidResolution" {
				all = append(all, e.Message)
			}
		}
		return strings.Join(all, "\n")
	}
}

var _ = Describe("A user's resolution", Ordered, func() {
	var (
		m   *manager
		run func(ctx SpecContext, line string)
	)
	BeforeAll(func() {
		m = startManager(func(o *post.Options) { o.StartingDeadline = 8 * time.Second })
		kubectl := suite.Must(filepath.Abs(filepath.Join("..", "..", "bin", "kubectl")))
		if _, err := os.Stat(kubectl); err != nil {
			if kubectl, err = exec.LookPath("kubectl"); err != nil {
				Skip("there is no kubectl, in bin/ or in the PATH; `make tools` builds it")
			}
		}
		access := suite.Must(env.Kubeconfig("person", "default", "system:masters"))
		file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(os.WriteFile(file, access, 0o600)).To(Succeed())
		run = func(ctx SpecContext, line string) {
			GinkgoHelper()
			shell := exec.CommandContext(ctx, "sh", "-c", line)
			shell.Env = append(os.Environ(), "KUBECONFIG="+file, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
			said, err := shell.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(said))
		}
	})
	AfterAll(func() { m.stop() })

	It("can be entered with the condition's commands, unchanged", func(ctx SpecContext) {
		t := newTeam(ctx)
		second := t.connect(ctx, "second")
		p := t.post(ctx, "in doubt", restored, onSecond)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		lines := commands(question(ctx, p)())
		Expect(lines).To(HaveLen(4), "two answers for each target")

		run(ctx, lines[0])
		Eventually(saidWrong(ctx, p)).Should(ContainSubstring(`target 0: "ID" is not the id of a post`), "the placeholder is no id")
		Expect(phase(ctx, p)()).To(Equal(v1alpha1.PhaseFailed))

		run(ctx, strings.Replace(lines[0], "ID", "1991", 1))
		Eventually(func() string { return read(ctx, p).Status.Targets[0].ExternalID }).Should(Equal("1991"))
		Eventually(func() []string { return commands(question(ctx, p)()) }).Should(Equal(lines[2:]), "the other target still needs an answer")
		run(ctx, lines[3])
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(question(ctx, p)()).To(BeEmpty())
		Expect(t.published(ctx)).To(BeEmpty(), "answered as published")
		Expect(team{account: second}.published(ctx)).To(Equal([]string{"in doubt"}), "answered as not published")
	})

	It("can answer for several targets in one command", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "second")
		p := t.post(ctx, "both in doubt", restored, onSecond)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		line := commands(question(ctx, p)())[0]
		run(ctx, strings.Replace(line, "posted:ID", "posted:1,1=posted:2", 1))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[1].ExternalID).To(Equal("2"))
	})

	It("names a tree's card, and the tree continues", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		t.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 500})
		p := t.post(ctx, "", cards("first in doubt", "then this"))
		Eventually(question(ctx, p)).Should(ContainSubstring("card 1 of 2"))
		Expect(question(ctx, p)()).To(ContainSubstring("account " + t.account.ID))
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		run(ctx, strings.Replace(commands(question(ctx, p)())[0], "ID", posts[0].ID, 1))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(chain(ctx, "x", t.account, withURL(read(ctx, p).Status.Targets[0], posts[0].URL))).To(Equal([]string{"first in doubt", "then this"}))
	})

	It("survives a restart of the manager", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "asked before", restored)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		asked := question(ctx, p)()
		m.stop()
		run(ctx, commands(asked)[1])
		m = startManager()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"asked before"}))
	})

	DescribeTable("that is invalid causes an event, and has no effect", func(ctx SpecContext, resolution, said string) {
		t := newTeam(ctx)
		p := t.post(ctx, "wrongly answered", restored)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		settle(ctx, p, resolution)
		Eventually(saidWrong(ctx, p)).Should(ContainSubstring(said))
		Eventually(func() map[string]string { return read(ctx, p).Annotations }).ShouldNot(HaveKey(v1alpha1.SettleAnnotation))
		Expect(readyReason(ctx, p)).To(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(t.published(ctx)).To(BeEmpty())
	},
		Entry("a missing target", "7=not-sent", "there is no target 7"),
		Entry("an unknown word", "0=perhaps", "is not a resolution"),
		Entry("a URL of another platform", "0=posted:https://www.tiktok.com/@acme/video/1", "does not identify a post on X"),
		Entry("the URL of a profile", "0=posted:https://x.com/acme", "does not identify a post on X"),
	)

	It("of a post with known outcomes is rejected", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "waits", at(time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		settle(ctx, p, "0=not-sent")
		Eventually(saidWrong(ctx, p)).Should(ContainSubstring("only a target whose outcome is unknown"))
	})
})

// withURL sets the URL that a resolution does not contain.
func withURL(t v1alpha1.TargetStatus, url string) v1alpha1.TargetStatus {
	t.ExternalURL = url
	return t
}

// copyOf makes an applied post a copy of an unknown object, as after a restore from a backup.
func copyOf(p *v1alpha1.Post) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.ArmedAnnotation, p.Name+"/00000000-0000-0000-0000-000000000000")
}

func toSecond(p *v1alpha1.Post) {
	p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "hello"})
}

func awaitsResolution(ctx context.Context, p *v1alpha1.Post) func() bool {
	return func() bool {
		return meta.IsStatusConditionTrue(read(ctx, p).Status.Conditions, v1alpha1.ConditionOutcomeUnknown)
	}
}

func states(ctx context.Context, p *v1alpha1.Post) func() []v1alpha1.TargetState {
	return func() (all []v1alpha1.TargetState) {
		now := read(ctx, p)
		for i := range now.Spec.Targets {
			if t := posting.Of(now).Target(i); t != nil {
				all = append(all, posting.StateOf(t))
			}
		}
		return all
	}
}

var _ = Describe("A post with an unknown outcome", func() {
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

	It("is undecided again after it was deleted and applied without the mark of a copy", func(ctx SpecContext) {
		p := acme.apply(ctx, "launch", "hello", copyOf)
		Eventually(awaitsResolution(ctx, p)).Should(BeTrue())
		Expect(loose.all()).To(BeEmpty(), "an untracked object could disappear before the user answers")
		remove(ctx, p)
		p = acme.apply(ctx, "launch", "hello")
		Eventually(awaitsResolution(ctx, p)).Should(BeTrue())
		Expect(publishesBy(acme.account)).To(BeZero())
	})

	It("is recorded in its present state when the cluster is lost meanwhile", func(ctx SpecContext) {
		p := acme.apply(ctx, "launch", "hello", copyOf, toSecond)
		Eventually(awaitsResolution(ctx, p)).Should(BeTrue())
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

	It("is looked up for calls that were in progress when the cluster was lost", func(ctx SpecContext) {
		second.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 600, Times: 9})
		p := acme.apply(ctx, "launch", "hello", toSecond)
		Eventually(states(ctx, p)).Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetPending}))
		out := read(ctx, p).Status.Targets[0].ExternalID
		Eventually(func() []v1alpha1.TargetState { return statesOf(k.of(ctx, acme.namespace, "launch")) }).
			Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetPending}))
		lose(ctx, p)
		p = acme.apply(ctx, "launch", "hello", toSecond)
		Eventually(states(ctx, p)).Should(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetUndecided}))
		Expect(posting.Of(read(ctx, p)).Target(0).ExternalID).To(Equal(out))
		Expect(publishesBy(acme.account)).To(Equal(1))
	})

	It("is recorded by a manager that finds it in this state", func(ctx SpecContext) {
		p := acme.apply(ctx, "launch", "hello", copyOf)
		Eventually(awaitsResolution(ctx, p)).Should(BeTrue())
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

var _ = Describe("A post whose name has a record", func() {
	DescribeTable("is looked up again when it is due:", func(ctx SpecContext, change func(ctx context.Context, acme team, p *v1alpha1.Post)) {
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
		last := posting.Of(now).Target(len(now.Spec.Targets) - 1)
		Expect(last.ExternalID).To(Equal(out))
		Expect(now.Status.Earlier.Targets).To(ConsistOf(last.Index))
		Expect(publishesBy(acme.account)).To(Equal(1))
		Expect(publishesBy(second)).To(Equal(len(now.Spec.Targets) - 1))
	},
		Entry("an edit added a target that is published", func(ctx context.Context, _ team, p *v1alpha1.Post) {
			edit(ctx, p, func(p *v1alpha1.Post) {
				p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"})
				p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now())
			})
		}),
		Entry("its Connection was recreated, for an account where it is published", func(ctx context.Context, acme team, p *v1alpha1.Post) {
			acme.rename(ctx, "second", "third")
			acme.rename(ctx, "x", "second")
			edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now()) })
		}),
	)
})
