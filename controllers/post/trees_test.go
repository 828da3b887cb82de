// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/sandboxtest"
)

// cards makes a post a tree of cards with these words.
func cards(words ...string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		p.Spec.Category, p.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{}
		for i := range p.Spec.Targets {
			p.Spec.Targets[i].Caption = ""
		}
		for _, w := range words {
			p.Spec.Tree.Cards = append(p.Spec.Tree.Cards, v1alpha1.TreeCard{Caption: w})
		}
	}
}

// chain returns what an account shows, and checks that each post hangs from the
// one before.
func chain(ctx context.Context, on string, account sandboxtest.Account, target v1alpha1.TargetStatus) []string {
	GinkgoHelper()
	posts, err := platform.Posts(ctx, on, account.ID)
	Expect(err).NotTo(HaveOccurred())
	texts, before := []string{}, ""
	for i, p := range posts {
		Expect(p.InReplyTo).To(Equal(before), "card %d", i)
		before = p.ID
		texts = append(texts, p.Text)
		Expect(target.Cards[i].ExternalID).To(Equal(p.ID), "the ledger names what is there")
		Expect(target.Cards[i].PostedAt).NotTo(BeNil())
	}
	if len(posts) > 0 {
		Expect(target.ExternalID).To(Equal(posts[0].ID), "a tree goes by its first card")
		Expect(target.ExternalURL).To(Equal(posts[0].URL))
	}
	return texts
}

var _ = Describe("A tree", Ordered, func() {
	var m *manager
	BeforeAll(func() { m = startManager(interceptor.Funcs{}, withThreads) })
	AfterAll(func() { m.stop() })

	words := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("tree %d, card %d", serial.Add(1), i)
		}
		return out
	}

	It("is published card by card, each hanging from the one before, on all its accounts", func(ctx SpecContext) {
		t := newTeam(ctx)
		onThreads := t.onThreads(ctx, 0)
		text := words(4)
		before := publishCalls(ctx)
		p := t.post(ctx, "", toBoth, cards(text...))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishCalls(ctx)-before).To(Equal(4), "one call for each card")
		now := read(ctx, p)
		Expect(chain(ctx, "x", t.account, now.Status.Targets[0])).To(Equal(text))
		Expect(chain(ctx, "threads", onThreads, now.Status.Targets[1])).To(Equal(text))
		Expect(now.Status.Finished).To(BeTrue())
	})

	It("may say the same twice", func(ctx SpecContext) {
		t := newTeam(ctx)
		onThreads := t.onThreads(ctx, 0)
		p := t.post(ctx, "", toThreads, cards("again", "again", "again"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(chain(ctx, "threads", onThreads, read(ctx, p).Status.Targets[0])).To(Equal([]string{"again", "again", "again"}))
	})

	DescribeTable("goes on where it stood after a fault in its middle",
		func(ctx SpecContext, on string, f sandboxtest.Fault) {
			t := newTeam(ctx)
			account, target := t.account, func(*v1alpha1.Post) {}
			if on == "threads" {
				account, target = t.onThreads(ctx, 0), toThreads
			}
			text := words(3)
			// The first card goes well, and meets the fault after it.
			first := t.post(ctx, "", target, func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "before the tree" })
			Eventually(phase(ctx, first)).Should(Equal(v1alpha1.PhasePosted))
			f.Platform, f.Account, f.Times = on, account.ID, 2
			Expect(platform.Fault(ctx, f)).To(Succeed())
			p := t.post(ctx, "", target, cards(text...))
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			posts, err := platform.Posts(ctx, on, account.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(posts).To(HaveLen(4), "each card once, after the post before")
			for i, want := range text {
				Expect(posts[i+1].Text).To(Equal(want))
			}
			Expect(posts[1].InReplyTo).To(BeEmpty())
			Expect(posts[2].InReplyTo).To(Equal(posts[1].ID))
			Expect(posts[3].InReplyTo).To(Equal(posts[2].ID))
		},
		Entry("X published, the answer was lost", "x", sandboxtest.Fault{Operation: "publish", Kind: "drop_after"}),
		Entry("X did not publish, the answer was lost", "x", sandboxtest.Fault{Operation: "publish", Kind: "drop_before"}),
		Entry("X published and answered 500", "x", sandboxtest.Fault{Operation: "publish", Kind: "error_after", Status: 500}),
		Entry("X was too busy", "x", sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 1}),
		Entry("Threads published, the answer was lost", "threads", sandboxtest.Fault{Operation: "publish", Kind: "drop_after"}),
		Entry("Threads did not publish, the answer was lost", "threads", sandboxtest.Fault{Operation: "publish", Kind: "drop_before"}),
	)

	It("says which card was refused and what is online already", func(ctx SpecContext) {
		t := newTeam(ctx)
		text := words(2)
		// X refuses the same words twice from one account.
		p := t.post(ctx, "", cards(text[0], text[1], text[0]))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, p).Status.Targets[0]
		Expect(chain(ctx, "x", t.account, target)).To(Equal(text))
		Expect(target.Message).To(And(HavePrefix("card 3 was not published: "), ContainSubstring("the cards before it are online, beginning at "+target.ExternalURL)))
	})

	It("is not cancelled in its middle", func(ctx SpecContext) {
		t := newTeam(ctx)
		text := words(3)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 700})
		p := t.post(ctx, "", at(0), cards(text...))
		Eventually(func() *v1alpha1.Attempt {
			if s := read(ctx, p).Status; len(s.Targets) > 0 {
				return s.Targets[0].Attempt
			}
			return nil
		}).ShouldNot(BeNil())
		Expect(cancelPost(ctx, read(ctx, p))).NotTo(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(chain(ctx, "x", t.account, read(ctx, p).Status.Targets[0])).To(Equal(text))
	})
})
