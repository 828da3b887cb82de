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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
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

// restored makes a post look like a restored backup, so that only a person can determine whether it was published.
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

var _ = Describe("A person's resolution", Ordered, func() {
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

	It("is entered by the commands that the condition gives, as they are", func(ctx SpecContext) {
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
		Eventually(func() []string { return commands(question(ctx, p)()) }).Should(Equal(lines[2:]), "the other target still waits")
		run(ctx, lines[3])
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(question(ctx, p)()).To(BeEmpty())
		Expect(t.published(ctx)).To(BeEmpty(), "it was said to be there")
		Expect(team{account: second}.published(ctx)).To(Equal([]string{"in doubt"}), "it was said not to be there")
	})

	It("may answer for several targets in one command", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "second")
		p := t.post(ctx, "both in doubt", restored, onSecond)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		line := commands(question(ctx, p)())[0]
		run(ctx, strings.Replace(line, "posted:ID", "posted:1,1=posted:2", 1))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[1].ExternalID).To(Equal("2"))
	})

	It("says of a tree which card it is about, and lets the tree go on", func(ctx SpecContext) {
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

	DescribeTable("that is wrong is answered with an event and changes nothing", func(ctx SpecContext, resolution, said string) {
		t := newTeam(ctx)
		p := t.post(ctx, "wrongly answered", restored)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		settle(ctx, p, resolution)
		Eventually(saidWrong(ctx, p)).Should(ContainSubstring(said))
		Eventually(func() map[string]string { return read(ctx, p).Annotations }).ShouldNot(HaveKey(v1alpha1.SettleAnnotation))
		Expect(readyReason(ctx, p)).To(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(t.published(ctx)).To(BeEmpty())
	},
		Entry("a target that is not there", "7=not-sent", "there is no target 7"),
		Entry("a word that is none", "0=perhaps", "is not a resolution"),
		Entry("an address of another platform", "0=posted:https://www.tiktok.com/@acme/video/1", "names no post of X"),
		Entry("the address of a profile", "0=posted:https://x.com/acme", "names no post of X"),
	)

	It("on a post that nobody doubts is refused", func(ctx SpecContext) {
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
