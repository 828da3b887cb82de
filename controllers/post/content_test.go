// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

func ofTree(p *v1alpha1.Post) {
	p.Spec.Category = v1alpha1.CategoryTree
	p.Spec.Targets[0].Caption = ""
	p.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "first"}, {Caption: "second"}}}
}

func showing(media string) func(p *v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		p.Spec.Category = v1alpha1.CategoryImage
		p.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: media}}}
	}
}

// picture creates a Media without an uploaded file.
func (t team) picture(ctx context.Context, name string) *v1alpha1.Media {
	GinkgoHelper()
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace},
		Spec:       v1alpha1.MediaSpec{FileName: "a.png", MimeType: v1alpha1.MimePNG, SizeBytes: 10},
	}
	Expect(k8s.Create(ctx, media)).To(Succeed())
	return media
}

// textOnly is a variant of X that cannot deliver files.
type textOnly struct{ fast }

func (t textOnly) Capabilities() platforms.Capabilities {
	limits := t.fast.Capabilities()
	limits.Delivers = []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryTree}
	return limits
}

var _ = Describe("A post with media or cards", Ordered, func() {
	var m *manager
	BeforeAll(func() { m = startManager() })
	AfterAll(func() { m.stop() })

	It("is never published as a different kind of post", func(ctx SpecContext) {
		m.stop()
		texts := startManager(func(o *post.Options) {
			p, ok := o.Platforms[v1alpha1.PlatformX].(fast)
			Expect(ok).To(BeTrue())
			o.Platforms[v1alpha1.PlatformX] = textOnly{p}
		})
		DeferCleanup(func() {
			texts.stop()
			m = startManager()
		})
		t := newTeam(ctx)
		media := t.picture(ctx, "picture")
		media.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 10, ETag: "e"}
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		p := t.post(ctx, "", ofTree, func(p *v1alpha1.Post) {
			p.Spec.Tree.Cards[1].MediaRefs = []v1alpha1.MediaReference{{Name: "picture"}}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.Reason).To(Equal(v1alpha1.ReasonUnsupported))
		Expect(target.Message).To(ContainSubstring("category tree to x"))
		Expect(target.Attempt).To(BeNil())
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("waits for a media file that does not exist yet, and is validated when it arrives", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "look", showing("picture"))
		accepted := func() string {
			c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionAccepted)
			if c == nil {
				return ""
			}
			return string(c.Status) + " " + c.Reason
		}
		Eventually(accepted).Should(Equal("False " + v1alpha1.ReasonMediaNotFound))

		media := t.picture(ctx, "picture")
		Eventually(accepted).Should(Equal("False "+v1alpha1.ReasonMediaNotReady), "the file is not uploaded yet")
		media.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 10, ETag: "e"}
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		Eventually(accepted).Should(Equal("True " + v1alpha1.ReasonAccepted))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed), "the store has no such file")
	})

	It("waits while its file is missing in the store, and continues when it is back", func(ctx SpecContext) {
		t := newTeam(ctx)
		media := t.picture(ctx, "lost")
		media.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 10, ETag: "e", Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFileMissing, LastTransitionTime: metav1.Now(),
		}}}
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		p := t.post(ctx, "look", showing("lost"))
		said := conditionOf(ctx, p, v1alpha1.ConditionAccepted)
		Eventually(said).Should(And(HavePrefix(v1alpha1.ReasonMediaNotReady), ContainSubstring("the store no longer has the file")))
		media.Status.Conditions[0].Status, media.Status.Conditions[0].Reason = metav1.ConditionTrue, v1alpha1.ReasonUploaded
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		Eventually(said).Should(HavePrefix(v1alpha1.ReasonAccepted))
	})

	DescribeTable("is validated again when its draft is promoted",
		func(ctx SpecContext, words string, change func(p *v1alpha1.Post)) {
			t := newTeam(ctx)
			p := t.post(ctx, "", ofTree, func(p *v1alpha1.Post) { p.Spec.Draft = true }, change)
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseDraft), "a draft may be unfinished")
			edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Draft = false })
			Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).Should(And(HavePrefix(v1alpha1.ReasonInvalid), ContainSubstring(words)))
			Expect(t.published(ctx)).To(BeEmpty())
		},
		Entry("a card that is too long", "spec.tree.cards[1].caption", func(p *v1alpha1.Post) {
			p.Spec.Tree.Cards[1].Caption = strings.Repeat("a", 281)
		}),
	)

	It("is rejected when its draft is promoted after its file was changed", func(ctx SpecContext) {
		t := newTeam(ctx)
		media := t.picture(ctx, "changed")
		media.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 10, ETag: "e"}
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		p := t.post(ctx, "look", showing("changed"), func(p *v1alpha1.Post) { p.Spec.Draft = true })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseDraft))
		media.Status.Phase = v1alpha1.MediaRejected
		media.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFileChanged,
			Message: "The file was overwritten.", LastTransitionTime: metav1.Now(),
		}}
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Draft = false })
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).
			Should(And(HavePrefix(v1alpha1.ReasonInvalid), ContainSubstring("The file was overwritten.")))
	})

	It("is rejected for a privacy level that its TikTok account does not offer", func(ctx SpecContext) {
		t := newTeam(ctx)
		conn := t.connection(ctx)
		conn.ObjectMeta = metav1.ObjectMeta{Name: "tiktok", Namespace: t.namespace}
		conn.Spec.Platform = v1alpha1.PlatformTikTok
		Expect(k8s.Create(ctx, conn)).To(Succeed())
		conn.Status = v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{string(v1alpha1.TikTokSelfOnly)}}}
		Expect(k8s.Status().Update(ctx, conn)).To(Succeed())
		p := t.post(ctx, "look", showing("gone"), func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "tiktok" })
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).
			Should(And(HavePrefix(v1alpha1.ReasonInvalid), ContainSubstring("it can choose SELF_ONLY")))
	})

	It("is rejected for a rejected file", func(ctx SpecContext) {
		t := newTeam(ctx)
		media := t.picture(ctx, "bad")
		media.Status.Phase = v1alpha1.MediaRejected
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		p := t.post(ctx, "look", showing("bad"))
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).Should(HavePrefix(v1alpha1.ReasonInvalid + ":"))
		Expect(t.published(ctx)).To(BeEmpty())
	})
})

// cards turns a post into a tree whose cards have these captions.
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

// chain returns the captions on an account, and checks that each post replies to the previous one.
func chain(ctx context.Context, on string, account sandboxtest.Account, target v1alpha1.TargetStatus) []string {
	GinkgoHelper()
	posts := suite.Must(platform.Posts(ctx, on, account.ID))
	texts, before := []string{}, ""
	for i, p := range posts {
		Expect(p.InReplyTo).To(Equal(before), "card %d", i)
		before = p.ID
		texts = append(texts, p.Text)
		Expect(target.Cards[i].ExternalID).To(Equal(p.ID), "the entry has the post's id")
		Expect(target.Cards[i].PostedAt).NotTo(BeNil())
	}
	if len(posts) > 0 {
		Expect(target.ExternalID).To(Equal(posts[0].ID), "a tree's id is its first card's")
		Expect(target.ExternalURL).To(Equal(posts[0].URL))
	}
	return texts
}

var _ = Describe("A tree", Ordered, func() {
	var (
		m      *manager
		writes writeCount
	)
	BeforeAll(func() { m = startDisturbed(interceptWrites(&writes), withThreads) })
	AfterAll(func() { m.stop() })

	words := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("tree %d, card %d", serial.Add(1), i)
		}
		return out
	}

	It("is published card by card, each as a reply to the previous one, on all its accounts", func(ctx SpecContext) {
		t := newTeam(ctx)
		onThreads := t.onThreads(ctx, 0)
		text := words(4)
		before := publishCalls(ctx)
		p := posted(ctx, t.post(ctx, "", toBoth, cards(text...)))
		Expect(publishCalls(ctx)-before).To(Equal(4), "one call for each card")
		now := read(ctx, p)
		Expect(chain(ctx, "x", t.account, now.Status.Targets[0])).To(Equal(text))
		Expect(chain(ctx, "threads", onThreads, now.Status.Targets[1])).To(Equal(text))
		Expect(now.Status.Finished).To(BeTrue())
	})

	It("records a card and claims the next one in a single write", func(ctx SpecContext) {
		for _, on := range []string{"x", "threads"} {
			t := newTeam(ctx)
			target := func(*v1alpha1.Post) {}
			if on == "threads" {
				t.onThreads(ctx, 0)
				target = toThreads
			}
			writes.of(t.namespace)
			posted(ctx, t.post(ctx, "", target, cards(words(5)...)))
			// On a busy machine, preparing the next card may take longer than recording the last one.
			Expect(writes.n.Load()).To(BeNumerically("~", 7, 1), "on %s: a claim, four cards that claim the next, a card; two writes for each would be 10", on)
		}
	})

	It("is not published by another manager while the next card is claimed", func(ctx SpecContext) {
		// The metadata is edited at the worst moment: the combined write fails, and the card is recorded alone.
		t := newTeam(ctx)
		text := words(3)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 500})
		before := publishCalls(ctx)
		p := t.post(ctx, "", cards(text...))
		Eventually(func() int { return publishCalls(ctx) }).Should(BeNumerically(">", before))
		edit(ctx, p, func(p *v1alpha1.Post) { p.Labels = map[string]string{"touched": "true"} })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishCalls(ctx) - before).To(Equal(3))
		Expect(chain(ctx, "x", t.account, read(ctx, p).Status.Targets[0])).To(Equal(text))
	})

	It("may contain the same text twice", func(ctx SpecContext) {
		t := newTeam(ctx)
		onThreads := t.onThreads(ctx, 0)
		p := posted(ctx, t.post(ctx, "", toThreads, cards("again", "again", "again")))
		Expect(chain(ctx, "threads", onThreads, read(ctx, p).Status.Targets[0])).To(Equal([]string{"again", "again", "again"}))
	})

	// All trees are sent concurrently, each on its own account.
	Context("continues from the failed card after a fault", func() {
		type row struct {
			reason, platform string
			fault            sandboxtest.Fault
		}
		rows := []row{
			{"X published, the response was lost", "x", sandboxtest.Fault{Operation: "publish", Kind: "drop_after"}},
			{"X did not publish, the response was lost", "x", sandboxtest.Fault{Operation: "publish", Kind: "drop_before"}},
			{"X published it and responded with 500", "x", sandboxtest.Fault{Operation: "publish", Kind: "error_after", Status: 500}},
			{"X was too busy", "x", sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 1}},
			{"Threads published, the response was lost", "threads", sandboxtest.Fault{Operation: "publish", Kind: "drop_after"}},
			{"Threads did not publish, the response was lost", "threads", sandboxtest.Fault{Operation: "publish", Kind: "drop_before"}},
		}
		type begun struct {
			team    team
			account sandboxtest.Account
			target  func(*v1alpha1.Post)
			text    []string
			first   *v1alpha1.Post
			tree    *v1alpha1.Post
		}
		trees := make([]begun, len(rows))
		var refused begun
		BeforeAll(func(ctx SpecContext) {
			refused = begun{team: newTeam(ctx), text: words(2)}
			// X refuses a repeated text from one account.
			refused.tree = refused.team.post(ctx, "", cards(refused.text[0], refused.text[1], refused.text[0]))
			for i, row := range rows {
				t := newTeam(ctx)
				b := begun{team: t, account: t.account, target: func(*v1alpha1.Post) {}, text: words(3)}
				if row.platform == "threads" {
					b.account, b.target = t.onThreads(ctx, 0), toThreads
				}
				// The earlier post succeeds, and the first card must not reply to it.
				b.first = t.post(ctx, "", b.target, func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "before the tree" })
				trees[i] = b
			}
			for i, row := range rows {
				b := &trees[i]
				Eventually(phase(ctx, b.first)).Should(Equal(v1alpha1.PhasePosted))
				f := row.fault
				f.Platform, f.Account, f.Times = row.platform, b.account.ID, 2
				Expect(platform.Fault(ctx, f)).To(Succeed())
				b.tree = b.team.post(ctx, "", b.target, cards(b.text...))
			}
		})
		for i, row := range rows {
			It(row.reason, func(ctx SpecContext) {
				Eventually(phase(ctx, trees[i].tree)).Should(Equal(v1alpha1.PhasePosted))
				posts := suite.Must(platform.Posts(ctx, row.platform, trees[i].account.ID))
				Expect(posts).To(HaveLen(4), "each card once, after the post before")
				for j, want := range trees[i].text {
					Expect(posts[j+1].Text).To(Equal(want))
				}
				Expect(posts[1].InReplyTo).To(BeEmpty())
				Expect(posts[2].InReplyTo).To(Equal(posts[1].ID))
				Expect(posts[3].InReplyTo).To(Equal(posts[2].ID))
			})
		}

		It("names the rejected card and the published ones", func(ctx SpecContext) {
			Eventually(phase(ctx, refused.tree)).Should(Equal(v1alpha1.PhaseFailed))
			target := read(ctx, refused.tree).Status.Targets[0]
			Expect(chain(ctx, "x", refused.team.account, target)).To(Equal(refused.text))
			Expect(target.Message).To(And(HavePrefix("card 3 was not published: "), ContainSubstring("the cards before it are online, beginning at "+target.ExternalURL)))
		})
	})

	It("stops when its post is deleted, however many accounts it is being sent to", func(ctx SpecContext) {
		t := newTeam(ctx)
		second := t.connect(ctx, "second")
		for account, delay := range map[string]int{t.account.ID: 3000, second.ID: 4000} {
			Expect(platform.Fault(ctx, sandboxtest.Fault{
				Platform: "x", Account: account, Operation: "publish", Kind: "delay", DelayMS: delay, Times: 1,
			})).To(Succeed())
		}
		p := t.post(ctx, "", func(p *v1alpha1.Post) {
			other := p.Spec.Targets[0]
			other.ConnectionRef.Name = "second"
			p.Spec.Targets = append(p.Spec.Targets, other)
		}, cards(words(3)...))
		for _, account := range []sandboxtest.Account{t.account, second} {
			Eventually(func() int { return publishesBy(account) }).Should(Equal(1))
		}
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, p)).Should(BeTrue())
		for _, account := range []sandboxtest.Account{t.account, second} {
			Expect(publishesBy(account)).To(Equal(1), "only the calls in progress finished")
		}
	})

	It("cannot be cancelled between its cards", func(ctx SpecContext) {
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
