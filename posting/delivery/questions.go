// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// mostQuestions is how many targets one condition gives the commands for.
const mostQuestions = 5

// describeQuestions sets the condition that asks a person what became of targets of which
// nobody can tell, with the commands that answer, or takes it away.
func describeQuestions(post *v1alpha1.Post, now time.Time) {
	var unknown []*v1alpha1.TargetStatus
	for i := range post.Status.Targets {
		if t := &post.Status.Targets[i]; t.Phase == v1alpha1.PhaseFailed && t.Reason == v1alpha1.ReasonOutcomeUnknown {
			unknown = append(unknown, t)
		}
	}
	if len(unknown) == 0 {
		meta.RemoveStatusCondition(&post.Status.Conditions, v1alpha1.ConditionOutcomeUnknown)
		return
	}
	meta.SetStatusCondition(&post.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionOutcomeUnknown, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOutcomeUnknown,
		Message: questions(post, unknown), ObservedGeneration: post.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// questions words the condition: where to look, and a line to copy for each
// answer.
func questions(post *v1alpha1.Post, unknown []*v1alpha1.TargetStatus) string {
	var b strings.Builder
	b.WriteString("look at the account, then answer with one of the two commands; ID stands for the id of the post that was found, " +
		"and answers for several targets may stand in one command, with a comma between them")
	for n, t := range unknown {
		if n == mostQuestions {
			fmt.Fprintf(&b, "\n%d more targets wait for an answer, which are shown as others are answered", len(unknown)-n)
			break
		}
		fmt.Fprintf(&b, "\n%s was published:\n  %s\n%s was not, and is to be sent now:\n  %s",
			whatOf(post, t), settleCommand(post, t, "posted:ID"), whatOf(post, t), settleCommand(post, t, "not-sent"))
	}
	return b.String()
}

// whatOf names what is in doubt of a target: of a tree that is one card.
func whatOf(post *v1alpha1.Post, t *v1alpha1.TargetStatus) string {
	name := fmt.Sprintf("target %d (%s", t.Index, t.Platform)
	if t.Attempt != nil && t.Attempt.AccountID != "" {
		name += " account " + t.Attempt.AccountID
	}
	if cards := posting.Cards(&post.Spec); cards > 1 {
		name += fmt.Sprintf(", card %d of %d", len(t.Cards)+1, cards)
	}
	if since := attempt.AmbiguousSince(t); since != nil {
		name += fmt.Sprintf(", sent after %s", since)
	}
	return name + ")"
}

// settleCommand is the command that enters a verdict. A verdict that is there
// already, and was not read yet, is replaced.
func settleCommand(post *v1alpha1.Post, t *v1alpha1.TargetStatus, resolution string) string {
	return fmt.Sprintf("kubectl annotate --overwrite -n %s posts.%s/%s '%s=%d=%s'",
		post.Namespace, v1alpha1.GroupVersion.Group, post.Name, v1alpha1.SettleAnnotation, t.Index, resolution)
}
