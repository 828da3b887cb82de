// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/test/suite"
)

// filledText returns the largest admitted text post to the given number of accounts.
func filledText(targets int) *v1alpha1.Post {
	post := validPost()
	post.Spec.Targets = nil
	for i := range targets {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("account-%02d", i)}, Caption: "a",
		})
	}
	for i := range post.Spec.Targets {
		left := min(posting.MaxPost, posting.Of(post).MaxStorableSize()) - posting.Of(post).Size()
		post.Spec.Targets[i].Caption += strings.Repeat("a", min(65_535, left))
	}
	return post
}

// filledTree returns the largest admitted tree with the given numbers of accounts and cards.
func filledTree(targets, cards int) *v1alpha1.Post {
	post := validPost()
	post.Spec.Category, post.Spec.Tree, post.Spec.Targets = v1alpha1.CategoryTree, &v1alpha1.TreeContent{}, nil
	for i := range targets {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("account-%02d", i)}})
	}
	for range cards {
		post.Spec.Tree.Cards = append(post.Spec.Tree.Cards, v1alpha1.TreeCard{Caption: "a"})
	}
	for i := range post.Spec.Tree.Cards {
		left := min(posting.MaxPost, posting.Of(post).MaxStorableSize()) - posting.Of(post).Size()
		post.Spec.Tree.Cards[i].Caption += strings.Repeat("a", min(65_535, left))
	}
	return post
}

// applied adds kubectl's annotation that contains the applied manifest.
func applied(post *v1alpha1.Post) *v1alpha1.Post {
	post.Spec.Targets[0].Caption = strings.Repeat("a", 50_000)
	for i := range post.Spec.Targets[1:] {
		post.Spec.Targets[1+i].Caption = "a"
	}
	post.Annotations = map[string]string{}
	post.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = strings.Repeat("a", min(posting.MaxPost, posting.Of(post).MaxStorableSize())-posting.Of(post).Size()-100)
	return post
}

// largestStatus returns the largest status that a target can have: the messages of a blocked target, a preparation, and an
// attempt with all its times.
func largestStatus(index int32, cards int) v1alpha1.TargetStatus {
	now := v1alpha1.NewTime(time.Now())
	of := strings.Repeat
	t := v1alpha1.TargetStatus{
		Index: index, Platform: v1alpha1.PlatformInstagram, State: v1alpha1.TargetPending, Phase: v1alpha1.PhaseProcessing,
		Reason: v1alpha1.ReasonConnectionNotReady, Message: of("m", 2048), NextTryAt: &now, TryUntil: &now,
		Blocked: &v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady, Problem: of("p", 1024), Remedy: of("r", 512)},
		Prepared: &v1alpha1.Prepared{
			ContentHash: of("h", 64), Checkpoint: of("c", 1024), Problem: of("p", 1024), Secret: true, Complete: true, MadeAt: now,
			By: &v1alpha1.PreparedBy{Holder: of("h", 128), Until: now},
		},
		Attempt: &v1alpha1.Attempt{
			Number: 100, ID: of("i", 26), StartedAt: now, SendBefore: now, ContentHash: of("h", 64), Checkpoint: of("c", 1024),
			AccountID: of("a", 64), SearchFrom: &now, UnknownSince: &now, EndedAt: &now, Lookups: 9,
		},
	}
	if cards > 0 {
		t.ExternalID, t.ExternalURL, t.PostedAt = of("e", 40), of("u", 200), &now
		t.Attempt.Card = int32(cards - 1)
		for card := range cards - 1 {
			t.Cards = append(t.Cards, v1alpha1.CardStatus{Index: int32(card), ExternalID: of("e", 40), PostedAt: &now})
		}
	}
	return t
}

// candidates returns the maximum number of candidates, each of the largest size.
func candidates() (all []v1alpha1.Candidate) {
	now := v1alpha1.NewTime(time.Now())
	for range v1alpha1.MostCandidates {
		all = append(all, v1alpha1.Candidate{
			ExternalID: strings.Repeat("1", v1alpha1.MaxCandidateID), ExternalURL: strings.Repeat("u", v1alpha1.MaxCandidateURL),
			Text: strings.Repeat("é", v1alpha1.MaxCandidateText), PostedAt: &now,
		})
	}
	return all
}

var _ = DescribeTable("the largest accepted post has space for its complete delivery record",
	func(ctx SpecContext, post *v1alpha1.Post) {
		most := min(posting.MaxPost, posting.Of(post).MaxStorableSize())
		Expect(posting.Of(post).Size()).To(BeNumerically("~", most, 200), "the post has the largest size")
		Expect(k8s.Create(ctx, post, client.FieldOwner("herald-apiserver"))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8s.Delete(ctx, post)).To(Succeed()) })

		By("recording the acceptance first, with a field manager of its own")
		now := metav1.Now()
		for _, kind := range []string{
			v1alpha1.ConditionAccepted, v1alpha1.ConditionReady, v1alpha1.ConditionPrepared,
			v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionOutcomeUnknown,
		} {
			post.Status.Conditions = append(post.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionFalse, Reason: "R", Message: strings.Repeat("c", 2000), LastTransitionTime: now,
			})
		}
		Expect(k8s.Status().Update(ctx, post, client.FieldOwner("herald"))).To(Succeed())

		By("claiming all targets, and recording the longest messages")
		cards := posting.Of(post).Cards()
		if post.Spec.Category != v1alpha1.CategoryTree {
			cards = 0
		}
		post.Status.Phase, post.Status.Platforms = v1alpha1.PhaseProcessing, strings.Repeat("p", 60)
		for i := range post.Spec.Targets {
			post.Status.Targets = append(post.Status.Targets, largestStatus(int32(i), cards))
		}
		Expect(k8s.Status().Update(ctx, post, client.FieldOwner("herald"))).To(Succeed(), "a post is not published if its claim cannot be stored")

		By("recording the outcomes, also by a manager with another name")
		for i := range post.Status.Targets {
			t := &post.Status.Targets[i]
			t.Attempt.Outcome, t.Attempt.Duplicate, t.Attempt.OperationID = v1alpha1.OutcomeUnknown, true, strings.Repeat("o", 64)
			t.ExternalURL = strings.Repeat("u", 200)
		}
		for i := range post.Status.Targets {
			posting.SetCandidates(post, &post.Status.Targets[i], candidates())
			post.Status.Targets[i].Prepared, post.Status.Targets[i].AnswerProblem = nil, strings.Repeat("p", 1024)
		}
		Expect(k8s.Status().Update(ctx, post, client.FieldOwner("another"))).To(Succeed(), "the record of a publication must fit")
		stored := suite.Must(json.Marshal(post))
		AddReportEntry("bytes stored", len(stored))
		Expect(len(stored)).To(BeNumerically("<", 1536<<10))
	},
	Entry("one caption of the maximum length, to five accounts", filledText(5)),
	Entry("a hundred accounts", filledText(100)),
	Entry("a hundred accounts, with kubectl's annotation", applied(filledText(100))),
	Entry("a tree of a hundred cards to forty accounts", filledTree(40, 100)),
	Entry("a tree of 26 cards to a hundred accounts", filledTree(100, 26)),
	Entry("a tree of four cards to a hundred accounts", filledTree(100, 4)),
	Entry("a tree of a hundred cards to one account", filledTree(1, 100)),
)

// captionsOf sets captions with the given number of characters in total.
func captionsOf(characters int) func(*v1alpha1.PostSpec) {
	return func(s *v1alpha1.PostSpec) {
		name := s.Targets[0].ConnectionRef
		s.Targets = nil
		for characters > 0 {
			n := min(characters, 65_536)
			s.Targets = append(s.Targets, v1alpha1.PostTarget{ConnectionRef: name, Caption: strings.Repeat("a", n)})
			characters -= n
		}
	}
}

var _ = DescribeTable("the total text size of a Post", creates,
	Entry("256 Ki characters of captions", with(asText, captionsOf(262_144)), ""),
	Entry("one byte more", with(asText, captionsOf(262_145)), "total more than 256 KiB; shorten them"),
	Entry("one more, as a draft", with(asText, drafted(captionsOf(262_145))), "total more than 256 KiB; shorten them"),
	Entry("256 Ki characters of cards", with(asTree, cards(longCards(262_144)...)), ""),
	Entry("one more in a card", with(asTree, cards(longCards(262_145)...)), "total more than 256 KiB; shorten them"),
)

func longCards(characters int) (list []v1alpha1.TreeCard) {
	for characters > 0 {
		n := min(characters, 65_536)
		list = append(list, v1alpha1.TreeCard{Caption: strings.Repeat("a", n)})
		characters -= n
	}
	return list
}

var _ = Describe("A Post stored by an earlier version, above the current size limit", Serial, func() {
	// That version's CRDs did not have the rules about size.
	older := func(ctx SpecContext, store func()) {
		GinkgoHelper()
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		key := client.ObjectKey{Name: "posts.social.herald.dev"}
		Expect(k8s.Get(ctx, key, crd)).To(Succeed())
		now := crd.DeepCopy()
		without(crd.Object)
		Expect(k8s.Update(ctx, crd)).To(Succeed())
		probe := func(fits bool) {
			Eventually(func() bool {
				post := validPost()
				captionsOf(262_145)(&post.Spec)
				return k8s.Create(ctx, post, client.DryRunAll) == nil
			}).WithTimeout(30 * time.Second).Should(Equal(fits))
		}
		probe(true)
		store()
		now.SetResourceVersion(crd.GetResourceVersion())
		Expect(k8s.Update(ctx, now)).To(Succeed())
		probe(false)
	}

	It("can be updated, cancelled, published and deleted", func(ctx SpecContext) {
		var posts []*v1alpha1.Post
		older(ctx, func() {
			for _, change := range []func(*v1alpha1.PostSpec){
				func(s *v1alpha1.PostSpec) { captionsOf(840_000)(s); s.Draft = true },
				func(s *v1alpha1.PostSpec) { captionsOf(840_000)(s); s.Draft = true },
				func(s *v1alpha1.PostSpec) { asTree(s); s.Tree.Cards = longCards(840_000); s.ScheduledAt = future },
			} {
				post := validPost()
				change(&post.Spec)
				Expect(k8s.Create(ctx, post)).To(Succeed())
				posts = append(posts, post)
			}
		})
		for _, post := range posts {
			post.Status.Phase = v1alpha1.PhaseDraft
			Expect(k8s.Status().Update(ctx, post)).To(Succeed(), "the status records the outcome")
		}
		change := func(post *v1alpha1.Post, edit func()) error {
			base := post.DeepCopy()
			edit()
			return k8s.Patch(ctx, post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		}
		draft, other, tree := posts[0], posts[1], posts[2]
		Expect(change(draft, func() { draft.Spec.Draft = false })).To(Succeed(), "the post is published")
		Expect(change(other, func() { other.Spec.Cancelled = true })).To(Succeed(), "the post is cancelled")
		Expect(change(tree, func() { tree.Spec.Cancelled = true })).To(Succeed(), "a tree")
		Expect(change(tree, func() { tree.Labels = map[string]string{"a": "b"} })).To(Succeed())
		grown := draft.DeepCopy()
		refused(change(grown, func() { grown.Spec.Targets[0].Caption = "b" + grown.Spec.Targets[0].Caption[1:] }), "total more than 256 KiB")
		for _, post := range posts {
			Expect(k8s.Delete(ctx, post)).To(Succeed())
		}
	})
})

// without removes the rules about the total text size from a definition.
func without(value any) {
	switch v := value.(type) {
	case map[string]any:
		if rules, ok := v["x-kubernetes-validations"].([]any); ok {
			var kept []any
			for _, rule := range rules {
				if of, ok := rule.(map[string]any); !ok || !strings.Contains(fmt.Sprint(of["rule"]), "262144") {
					kept = append(kept, rule)
				}
			}
			if v["x-kubernetes-validations"] = kept; len(kept) == 0 {
				delete(v, "x-kubernetes-validations")
			}
		}
		for _, inner := range v {
			without(inner)
		}
	case []any:
		for _, inner := range v {
			without(inner)
		}
	}
}

// onceInEachPost is the size that docs/plans.md adds to postBytes for each post: conditions, names, times and managed
// fields.
const onceInEachPost = 2 << 10

// postedTo returns the status of a posted target, with ids and URLs longer than those of any platform, and with all the
// times of an attempt.
func postedTo(index int32, cards int) v1alpha1.TargetStatus {
	now := v1alpha1.NewTime(time.Now())
	of := strings.Repeat
	t := v1alpha1.TargetStatus{
		Index: index, Platform: v1alpha1.PlatformInstagram, State: v1alpha1.TargetPosted, Phase: v1alpha1.PhasePosted,
		Reason: v1alpha1.ReasonPosted, ExternalID: of("e", 40), ExternalURL: of("u", 120), PostedAt: &now,
		Attempt: &v1alpha1.Attempt{
			Number: 1, ID: of("i", 26), StartedAt: now, SendBefore: now, ContentHash: of("h", 64), Checkpoint: of("c", 64),
			AccountID: of("a", 40), OperationID: of("o", 40), SearchFrom: &now, EndedAt: &now, Lookups: 2, Outcome: v1alpha1.OutcomePosted,
		},
	}
	for card := range cards {
		t.Attempt.Card = int32(card)
		t.Cards = append(t.Cards, v1alpha1.CardStatus{Index: int32(card), ExternalID: of("e", 40), PostedAt: &now})
	}
	return t
}

var _ = DescribeTable("the budget footprint covers the stored size of a fully published post",
	func(ctx SpecContext, post *v1alpha1.Post, cards int) {
		Expect(k8s.Create(ctx, post, client.FieldOwner("herald-apiserver"))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8s.Delete(ctx, post)).To(Succeed()) })
		for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionReady} {
			post.Status.Conditions = append(post.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPosted, Message: strings.Repeat("c", 100), LastTransitionTime: metav1.Now(),
			})
		}
		post.Status.Phase, post.Status.Platforms, post.Status.Finished, post.Status.ObservedGeneration = v1alpha1.PhasePosted, strings.Repeat("p", 60), true, 1
		for i := range post.Spec.Targets {
			post.Status.Targets = append(post.Status.Targets, postedTo(int32(i), cards))
		}
		Expect(k8s.Status().Update(ctx, post, client.FieldOwner("herald"))).To(Succeed())
		stored := suite.Must(json.Marshal(post))
		AddReportEntry("bytes", fmt.Sprintf("stored %d, written by people %d, counted %d", len(stored), posting.Of(post).Size(), posting.Of(post).Footprint()))
		Expect(int64(len(stored))).To(BeNumerically("<=", posting.Of(post).Footprint()+onceInEachPost))
		Expect(post.ManagedFields).NotTo(BeEmpty(), "ownership is stored as well")
	},
	Entry("text to one account", validPost(), 0),
	Entry("text to a hundred accounts", filledText(100), 0),
	Entry("a tree of a hundred cards to one account", filledTree(1, 100), 100),
	Entry("a tree of 26 cards to a hundred accounts", filledTree(100, 26), 26),
)
