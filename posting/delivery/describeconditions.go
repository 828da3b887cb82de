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
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// maxQuestions is the maximum number of targets whose commands a condition shows.
const maxQuestions = 5

// setAccepted sets the Accepted condition. It is True if the reason is Accepted, and False for all other reasons.
func setAccepted(post *v1alpha1.Post, now time.Time, reason, message string) {
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonAccepted {
		status = metav1.ConditionTrue
	}
	setCondition(post, now, v1alpha1.ConditionAccepted, status, reason, text.Truncate(message, maxConditionMessage))
}

func setCondition(post *v1alpha1.Post, now time.Time, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&post.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: post.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// describePrepared derives the Prepared condition, which is absent until an early preparation has started.
func describePrepared(post *v1alpha1.Post, now time.Time) {
	var begun bool
	var waits, problems []string
	if post.Status.Phase == v1alpha1.PhaseScheduled {
		for i := range post.Status.Targets {
			t := &post.Status.Targets[i]
			target := fmt.Sprintf("target %d (%s)", t.Index, t.Platform)
			switch p := t.Prepared; {
			case p == nil, !p.Complete && p.Checkpoint == "" && p.Problem == "" && p.By == nil:
				continue
			case p.Problem != "":
				problems = append(problems, target+": "+p.Problem)
			case !p.Complete:
				waits = append(waits, target)
			}
			begun = true
		}
	}
	switch {
	case !begun:
		meta.RemoveStatusCondition(&post.Status.Conditions, v1alpha1.ConditionPrepared)
	case len(problems) > 0:
		message := "it is retried at the scheduled time at the latest: " + strings.Join(problems, "\n")
		setCondition(post, now, v1alpha1.ConditionPrepared, metav1.ConditionFalse, v1alpha1.ReasonPreparationFailed, text.Truncate(message, maxConditionMessage))
	case len(waits) > 0:
		message := "under way: " + strings.Join(waits, "\n")
		setCondition(post, now, v1alpha1.ConditionPrepared, metav1.ConditionFalse, v1alpha1.ReasonPreparing, text.Truncate(message, maxConditionMessage))
	default:
		setCondition(post, now, v1alpha1.ConditionPrepared, metav1.ConditionTrue, v1alpha1.ReasonPrepared, "everything before the visible calls is done")
	}
}

func describePublished(post *v1alpha1.Post, now time.Time, reason, message string) {
	status := metav1.ConditionFalse
	if post.Status.Phase == v1alpha1.PhasePosted {
		status = metav1.ConditionTrue
	}
	if len(message) > maxPublishedMessage {
		message = "see the condition Ready" // avoids a second copy of a long message in the object
	}
	setCondition(post, now, v1alpha1.ConditionPublished, status, reason, message)
}

// maxPublishedMessage is the length of the longest message that Published copies from Ready, in bytes.
const maxPublishedMessage = 256

func undecided(post *v1alpha1.Post) (targets []*v1alpha1.TargetStatus) {
	for i := range post.Status.Targets {
		if t := &post.Status.Targets[i]; posting.StateOf(t) == v1alpha1.TargetUndecided {
			targets = append(targets, t)
		}
	}
	return targets
}

// describeUndecided derives the OutcomeUnknown condition, which is absent if no target is undecided.
func describeUndecided(post *v1alpha1.Post, now time.Time) {
	targets := undecided(post)
	if len(targets) == 0 {
		meta.RemoveStatusCondition(&post.Status.Conditions, v1alpha1.ConditionOutcomeUnknown)
		return
	}
	setCondition(post, now, v1alpha1.ConditionOutcomeUnknown, metav1.ConditionTrue, v1alpha1.ReasonOutcomeUnknown, questions(post, targets))
}

// questions returns the condition's message: where to look, and one command for each answer.
func questions(post *v1alpha1.Post, targets []*v1alpha1.TargetStatus) string {
	var b strings.Builder
	b.WriteString("check the account, then run one of these two commands; replace ID with the id of the post that you found; " +
		"one command can contain the answers for several targets, separated by commas")
	for n, t := range targets {
		if n == maxQuestions {
			fmt.Fprintf(&b, "\n%d more targets wait for an answer; they are shown once others are answered", len(targets)-n)
			break
		}
		fmt.Fprintf(&b, "\n%s was published:\n  %s\n%[1]s was not published and should be sent now:\n  %[3]s",
			nameOf(post, t), settleCommand(post, t, "posted:ID"), settleCommand(post, t, "not-sent"))
	}
	return b.String()
}

func nameOf(post *v1alpha1.Post, t *v1alpha1.TargetStatus) string {
	name := fmt.Sprintf("target %d (%s", t.Index, t.Platform)
	if t.Attempt != nil && t.Attempt.AccountID != "" {
		name += " account " + t.Attempt.AccountID
	}
	if cards := posting.Of(post).Cards(); cards > 1 {
		name += fmt.Sprintf(", card %d of %d", len(t.Cards)+1, cards)
	}
	if since := attempt.AmbiguousSince(t); since != nil {
		name += fmt.Sprintf(", sent after %s", since)
	}
	return name + ")"
}

// settleCommand returns the command that sets a resolution. It replaces one that Herald has not read yet.
func settleCommand(post *v1alpha1.Post, t *v1alpha1.TargetStatus, resolution string) string {
	return fmt.Sprintf("kubectl annotate --overwrite -n %s posts.%s/%s '%s=%d=%s'",
		post.Namespace, v1alpha1.GroupVersion.Group, post.Name, v1alpha1.SettleAnnotation, t.Index, resolution)
}
