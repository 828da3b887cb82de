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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

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
		stored, err := json.Marshal(post)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("bytes", fmt.Sprintf("stored %d, written by people %d, counted %d", len(stored), posting.Size(post), posting.Footprint(post)))
		Expect(int64(len(stored))).To(BeNumerically("<=", posting.Footprint(post)+onceInEachPost))
		Expect(post.ManagedFields).NotTo(BeEmpty(), "ownership is stored as well")
	},
	Entry("text to one account", validPost(), 0),
	Entry("text to a hundred accounts", filledText(100), 0),
	Entry("a tree of a hundred cards to one account", filledTree(1, 100), 100),
	Entry("a tree of 26 cards to a hundred accounts", filledTree(100, 26), 26),
)
