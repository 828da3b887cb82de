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
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting"
)

// maxConditionMessage keeps objects small. metav1.Condition allows 32,768 characters.
const maxConditionMessage = 2000

// maxURLs limits the total length of the URLs in the status, in bytes.
const maxURLs = 1024

// Describe derives the fields that users see from a post's recorded facts: phases, reasons, messages, conditions and
// completion. No decision reads these fields (fields_test.go).
func Describe(post *v1alpha1.Post, now time.Time) {
	s := &post.Status
	for i := range s.Targets {
		withdraw(post, &s.Targets[i])
	}
	for i := range s.Targets {
		describeTarget(post, &s.Targets[i])
	}
	s.ObservedGeneration = post.Generation
	s.Phase = posting.Of(post).Phase()
	s.Platforms = platformList(post)
	s.Posted, s.URLs = postedOf(post)
	describeFinished(post, now)
	latchCancel(post)

	describePrepared(post, now)
	summary := summarize(post)
	conditions.Apply(&s.Conditions, summary, post.Generation, now)
	describeAdopted(post, now)
	describeRetried(post, now)
	describeRetryOf(post, now)
	describePublished(post, now, summary.Reason, summary.Message)
	describeUndecided(post, now)
}

// withdraw records which targets the spec no longer wants to publish, because the post was cancelled before delivery or
// an edit removed them. Entries are never removed.
func withdraw(post *v1alpha1.Post, t *v1alpha1.TargetStatus) {
	t.State = posting.StateOf(t)
	switch view := posting.Of(post); {
	case int(t.Index) >= len(post.Spec.Targets):
		*t = v1alpha1.TargetStatus{Index: t.Index, State: v1alpha1.TargetWithdrawn}
	case t.State == v1alpha1.TargetPending && view.Cancelled() && view.Unsent():
		t.State, t.Blocked = v1alpha1.TargetWithdrawn, nil
	case t.State == v1alpha1.TargetWithdrawn && !view.Cancelled():
		t.State = v1alpha1.TargetPending
	}
}

// describeFinished works out whether the post is finished. FinishedAt is the time of the first write after that.
func describeFinished(post *v1alpha1.Post, now time.Time) {
	s := &post.Status
	s.Finished = Finished(post)
	switch {
	case !s.Finished:
		s.FinishedAt, s.FinishedOn = nil, ""
	case s.FinishedAt == nil:
		s.FinishedAt = v1alpha1.NewTimePtr(now)
		s.FinishedOn = s.FinishedAt.UTC().Format(time.DateOnly)
	}
}

// latchCancel records a cancellation, which from then on applies regardless of the spec.
func latchCancel(post *v1alpha1.Post) {
	if s := &post.Status; s.CancelledAt == nil && s.Finished && posting.Of(post).Phase() == v1alpha1.PhaseCancelled {
		s.CancelledAt = s.FinishedAt
	}
}

// Finished reports whether the manager may stop watching the post: there is no work left and no answer is awaited.
func Finished(post *v1alpha1.Post) bool {
	switch posting.Of(post).Phase() {
	case v1alpha1.PhasePosted:
		return true
	case v1alpha1.PhaseCancelled, v1alpha1.PhaseFailed:
		return len(undecided(post)) == 0
	case v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing:
	}
	return false
}

func summarize(post *v1alpha1.Post) conditions.Summary {
	accepted := meta.FindStatusCondition(post.Status.Conditions, v1alpha1.ConditionAccepted)
	switch phase := posting.Of(post).Phase(); {
	case phase == v1alpha1.PhasePosted:
		return settled(v1alpha1.ReasonPosted, "published to "+pluralizeTargets(len(post.Spec.Targets)))
	case phase == v1alpha1.PhaseCancelled:
		return settled(v1alpha1.ReasonCancelled, cancelled(post))
	case phase == v1alpha1.PhaseFailed:
		return failure(post)
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		return notAccepted(accepted)
	case phase == v1alpha1.PhaseDraft:
		return settled(v1alpha1.ReasonDraft, "kept as a draft; remove spec.draft to publish it")
	case phase == v1alpha1.PhaseScheduled:
		return settled(v1alpha1.ReasonScheduled, "will be published at "+post.Spec.ScheduledAt.String())
	default:
		return underway(post, v1alpha1.ReasonProcessing, "being published")
	}
}

// cancelled returns the message of a cancelled post. If the spec requests publication, the message contains the remedy.
func cancelled(post *v1alpha1.Post) string {
	if post.Spec.Cancelled {
		return "cancelled; nothing was published"
	}
	return "cancelled on " + post.Status.CancelledAt.String() + "; later changes have no effect. To publish it, apply it under another name"
}

func settled(reason, message string) conditions.Summary {
	return conditions.Summary{Ready: true, Reason: reason, Message: message, Progress: conditions.Settled}
}

// underway returns the summary of a post in progress, with the reason and message of its first waiting target.
func underway(post *v1alpha1.Post, reason, message string) conditions.Summary {
	for i := range post.Status.Targets {
		if t := &post.Status.Targets[i]; posting.StateOf(t) == v1alpha1.TargetPending && t.Message != "" {
			reason, message = t.Reason, fmt.Sprintf("target %d: %s", t.Index, t.Message)
			break
		}
	}
	return conditions.Summary{Reason: reason, Message: message, Progress: conditions.Underway}
}

// notAccepted summarizes a post that is not accepted. It is stalled if a user must act, so that tools stop waiting.
func notAccepted(accepted *metav1.Condition) conditions.Summary {
	s := conditions.Summary{Reason: accepted.Reason, Message: accepted.Message, Progress: conditions.Stuck}
	if isRecoverable(accepted.Reason) {
		s.Progress = conditions.Underway
	}
	return s
}

func failure(post *v1alpha1.Post) conditions.Summary {
	s := conditions.Summary{Progress: conditions.Stuck}
	var failed []string
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if t.Phase != v1alpha1.PhaseFailed {
			continue
		}
		switch s.Reason {
		case "", t.Reason:
			s.Reason = t.Reason
		default:
			s.Reason = v1alpha1.ReasonTargetsFailed
		}
		failed = append(failed, fmt.Sprintf("target %d (%s): %s", t.Index, t.Platform, t.Message))
	}
	if s.Reason == "" {
		s.Reason = v1alpha1.ReasonTargetsFailed
	}
	s.Message = text.Truncate(strings.Join(failed, "; "), maxConditionMessage)
	return s
}

func pluralizeTargets(targets int) string {
	if targets == 1 {
		return "1 target"
	}
	return fmt.Sprintf("%d targets", targets)
}

func postedOf(post *v1alpha1.Post) (count, urls string) {
	posted := 0
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if posting.StateOf(t) != v1alpha1.TargetPosted {
			continue
		}
		posted++
		if address := t.ExternalURL; address != "" && len(urls)+1+len(address) <= maxURLs {
			urls = strings.TrimPrefix(urls+" "+address, " ")
		}
	}
	return fmt.Sprintf("%d/%d", posted, len(post.Spec.Targets)), urls
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
