// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Describe derives what people and tools read of a post from its recorded
// facts: phase, conditions, and whether anything is left to do. It is pure.
func Describe(post *v1alpha1.Post, now time.Time) {
	s := &post.Status
	withdrawExtra(post)
	describeTargets(post)
	s.ObservedGeneration = post.Generation
	s.Phase = posting.PhaseOf(post)
	s.Platforms = platformList(post)
	s.Finished = finished(post)

	describePrepared(post, now)
	conditions.Apply(&s.Conditions, summary(post), post.Generation, now)
	describeQuestions(post, now)
}

// withdrawExtra marks the entries of targets that an edit, made before
// delivery began, took out of the spec: entries are never removed.
func withdrawExtra(post *v1alpha1.Post) {
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if int(t.Index) >= len(post.Spec.Targets) {
			*t = v1alpha1.TargetStatus{Index: t.Index, Phase: v1alpha1.PhaseCancelled, Reason: v1alpha1.ReasonCancelled}
		}
	}
}

// describeTargets derives the phase of the targets that are not settled.
func describeTargets(post *v1alpha1.Post) {
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if int(t.Index) >= len(post.Spec.Targets) || attempt.Settled(t) {
			continue
		}
		if t.Phase = posting.TargetPhaseOf(post, int(t.Index)); t.Phase == v1alpha1.PhaseFailed {
			// The post is refused as it stands, which settles nothing.
			t.Phase = v1alpha1.PhaseProcessing
		}
	}
}

// finished reports whether the manager may stop watching the post: nothing is
// left to do, and nothing that a person may still do needs it.
func finished(post *v1alpha1.Post) bool {
	switch posting.PhaseOf(post) {
	case v1alpha1.PhasePosted, v1alpha1.PhaseCancelled:
		return true
	case v1alpha1.PhaseFailed:
		// A refused spec may still be mended, and an unknown outcome may be
		// settled by a person.
		if !posting.AllSettled(post) {
			return false
		}
		for i := range post.Status.Targets {
			if post.Status.Targets[i].Reason == v1alpha1.ReasonOutcomeUnknown {
				return false
			}
		}
		return true
	case v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing:
		return false
	default:
		return false
	}
}

// summary puts the state of a post into the words of its conditions.
func summary(post *v1alpha1.Post) conditions.Summary {
	switch post.Status.Phase {
	case v1alpha1.PhasePosted:
		return settled(v1alpha1.ReasonPosted, fmt.Sprintf("published to %s", counted(len(post.Spec.Targets))))
	case v1alpha1.PhaseDraft:
		return settled(v1alpha1.ReasonDraft, "kept as a draft; remove spec.draft to publish it")
	case v1alpha1.PhaseCancelled:
		return settled(v1alpha1.ReasonCancelled, "cancelled; nothing was published")
	case v1alpha1.PhaseFailed:
		s := conditions.Summary{Progress: conditions.Stuck}
		s.Reason, s.Message = failure(post)
		if Mendable(s.Reason) && !post.Status.Finished {
			s.Progress = conditions.Underway
		}
		return s
	case v1alpha1.PhaseScheduled:
		return underway(post, v1alpha1.ReasonScheduled, "will be published at "+post.Spec.ScheduledAt.String())
	case v1alpha1.PhaseProcessing:
		return underway(post, v1alpha1.ReasonProcessing, "being published")
	default:
		return underway(post, v1alpha1.ReasonProcessing, "being published")
	}
}

func settled(reason, message string) conditions.Summary {
	return conditions.Summary{Ready: true, Reason: reason, Message: message, Progress: conditions.Settled}
}

// underway says what the post does, or what its first target waits for.
func underway(post *v1alpha1.Post, reason, message string) conditions.Summary {
	if r, m := firstWait(post); r != "" {
		reason, message = r, m
	}
	return conditions.Summary{Reason: reason, Message: message, Progress: conditions.Underway}
}

// firstWait returns what the first target that is not settled waits for.
func firstWait(post *v1alpha1.Post) (reason, message string) {
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if !posting.Settled(post, int(t.Index)) && t.Message != "" {
			return t.Reason, fmt.Sprintf("target %d: %s", t.Index, t.Message)
		}
	}
	return "", ""
}

func failure(post *v1alpha1.Post) (reason, message string) {
	if refusal := meta.FindStatusCondition(post.Status.Conditions, v1alpha1.ConditionAccepted); refusal != nil && posting.Refusal(post) != "" && !posting.AllSettled(post) {
		return refusal.Reason, refusal.Message
	}
	var failed []string
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if t.Phase != v1alpha1.PhaseFailed {
			continue
		}
		if reason == "" {
			reason = t.Reason
		} else if reason != t.Reason {
			reason = v1alpha1.ReasonTargetsFailed
		}
		failed = append(failed, fmt.Sprintf("target %d (%s): %s", t.Index, t.Platform, t.Message))
	}
	if reason == "" {
		reason = v1alpha1.ReasonTargetsFailed
	}
	return reason, truncate(strings.Join(failed, "; "), maxConditionMessage)
}

// maxConditionMessage keeps conditions well below the 32,768 characters that
// metav1.Condition allows, and an object small.
const maxConditionMessage = 2000

// truncate cuts a text to at most n bytes, between two characters.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func counted(targets int) string {
	if targets == 1 {
		return "1 target"
	}
	return fmt.Sprintf("%d targets", targets)
}

func platformList(post *v1alpha1.Post) string {
	var names []string
	seen := map[v1alpha1.Platform]bool{}
	for i := range post.Status.Targets {
		p := post.Status.Targets[i].Platform
		if p != "" && !seen[p] {
			seen[p] = true
			names = append(names, string(p))
		}
	}
	return strings.Join(names, ",")
}

// describePrepared derives the condition that tells whether what can be done
// ahead of a post's time is done.
func describePrepared(post *v1alpha1.Post, now time.Time) {
	var waits, problems []error
	some := false
	if post.Status.Phase == v1alpha1.PhaseScheduled {
		for i := range post.Status.Targets {
			t := &post.Status.Targets[i]
			switch p := t.Prepared; {
			case p == nil, !p.Complete && p.Checkpoint == "" && p.Message == "":
				continue
			case p.Message != "":
				problems = append(problems, fmt.Errorf("target %d (%s): %s", t.Index, t.Platform, p.Message))
			case !p.Complete:
				waits = append(waits, fmt.Errorf("target %d (%s)", t.Index, t.Platform))
			}
			some = true
		}
	}
	if !some {
		meta.RemoveStatusCondition(&post.Status.Conditions, v1alpha1.ConditionPrepared)
		return
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionPrepared, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPrepared,
		Message:            "what precedes the visible calls is done",
		ObservedGeneration: post.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case len(problems) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonPreparationFailed
		c.Message = "it is tried again at the post's time at the latest: " + errors.Join(problems...).Error()
	case len(waits) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonPreparing
		c.Message = "under way: " + errors.Join(waits...).Error()
	}
	c.Message = truncate(c.Message, maxConditionMessage)
	meta.SetStatusCondition(&post.Status.Conditions, c)
}
