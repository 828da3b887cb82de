// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
)

func ofTree(p *v1alpha1.Post) {
	p.Spec.Category = v1alpha1.CategoryTree
	p.Spec.Targets[0].Caption = ""
	p.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "first"}, {Caption: "second"}}}
}

func showing(media string) func(p *v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		p.Spec.Category = v1alpha1.CategoryImage
		p.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.LocalReference{{Name: media}}}
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

// textOnly is X without the delivery of files.
type textOnly struct{ fast }

func (t textOnly) Capabilities() platforms.Capabilities {
	limits := t.fast.Capabilities()
	limits.Delivers = []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryTree}
	return limits
}

var _ = Describe("A post that is more than text", Ordered, func() {
	var m *manager
	BeforeAll(func() { m = startManager() })
	AfterAll(func() { m.stop() })

	It("is never sent as something else", func(ctx SpecContext) {
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
			p.Spec.Tree.Cards[1].MediaRefs = []v1alpha1.LocalReference{{Name: "picture"}}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.Reason).To(Equal(v1alpha1.ReasonUnsupported))
		Expect(target.Message).To(ContainSubstring("category tree to x"))
		Expect(target.Attempt).To(BeNil())
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("waits for a media file that is named before it exists, and is judged when it has come", func(ctx SpecContext) {
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
		Eventually(accepted).Should(Equal("False "+v1alpha1.ReasonMediaNotReady), "it is not uploaded yet")
		media.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 10, ETag: "e"}
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		Eventually(accepted).Should(Equal("True " + v1alpha1.ReasonAccepted))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed), "the store has no such file")
	})

	It("waits while the store has lost its file, and goes on when the file is back", func(ctx SpecContext) {
		t := newTeam(ctx)
		media := t.picture(ctx, "lost")
		media.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 10, ETag: "e", Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFileMissing, LastTransitionTime: metav1.Now(),
		}}}
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		p := t.post(ctx, "look", showing("lost"))
		said := conditionOf(ctx, p, v1alpha1.ConditionAccepted)
		Eventually(said).Should(And(HavePrefix(v1alpha1.ReasonMediaNotReady), ContainSubstring("the store does not have the file any more")))
		media.Status.Conditions[0].Status, media.Status.Conditions[0].Reason = metav1.ConditionTrue, v1alpha1.ReasonUploaded
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		Eventually(said).Should(HavePrefix(v1alpha1.ReasonAccepted))
	})

	DescribeTable("is judged anew when a draft of it is promoted",
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

	It("is refused when a draft of it is promoted whose file was changed meanwhile", func(ctx SpecContext) {
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
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).Should(And(HavePrefix(v1alpha1.ReasonInvalid), ContainSubstring("The file was overwritten.")))
	})

	It("is refused for a privacy level that its TikTok account cannot choose", func(ctx SpecContext) {
		t := newTeam(ctx)
		conn := t.connection(ctx)
		conn.ObjectMeta = metav1.ObjectMeta{Name: "tiktok", Namespace: t.namespace}
		conn.Spec.Platform = v1alpha1.PlatformTikTok
		Expect(k8s.Create(ctx, conn)).To(Succeed())
		conn.Status = v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{string(v1alpha1.TikTokSelfOnly)}}}
		Expect(k8s.Status().Update(ctx, conn)).To(Succeed())
		p := t.post(ctx, "look", showing("gone"), func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "tiktok" })
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).Should(And(HavePrefix(v1alpha1.ReasonInvalid), ContainSubstring("it can choose SELF_ONLY")))
	})

	It("is refused for a file that was rejected", func(ctx SpecContext) {
		t := newTeam(ctx)
		media := t.picture(ctx, "bad")
		media.Status.Phase = v1alpha1.MediaRejected
		Expect(k8s.Status().Update(ctx, media)).To(Succeed())
		p := t.post(ctx, "look", showing("bad"))
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).Should(HavePrefix(v1alpha1.ReasonInvalid + ":"))
		Expect(t.published(ctx)).To(BeEmpty())
	})
})
