// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// maxMessage is the schema's maximum length for a target's message, in characters.
const maxMessage = 2048

// describeTarget derives a target's phase, reason and message. If a failed target has no Blocked, an older version of
// Herald wrote it, and it keeps its message.
func describeTarget(post *v1alpha1.Post, t *v1alpha1.TargetStatus) {
	if !attempt.Undecided(t) {
		t.Candidates, t.AnswerProblem = nil, "" // the target is resolved
	}
	t.Phase = targetPhase(post, t)
	if t.Phase == v1alpha1.PhaseFailed && t.Blocked == nil {
		return
	}
	var message string
	t.Reason, message = targetMessage(post, t)
	t.Message = text.Truncate(message, maxMessage)
}

func targetPhase(post *v1alpha1.Post, t *v1alpha1.TargetStatus) v1alpha1.PostPhase {
	if posting.StateOf(t) == v1alpha1.TargetWithdrawn {
		return v1alpha1.PhaseCancelled
	}
	return posting.Of(post).TargetPhase(int(t.Index))
}

func targetMessage(post *v1alpha1.Post, t *v1alpha1.TargetStatus) (reason, message string) {
	switch posting.StateOf(t) {
	case v1alpha1.TargetPosted:
		return v1alpha1.ReasonPosted, ""
	case v1alpha1.TargetWithdrawn:
		return v1alpha1.ReasonCancelled, ""
	case v1alpha1.TargetUndecided:
		return v1alpha1.ReasonOutcomeUnknown, undecidedMessage(t)
	case v1alpha1.TargetFailed:
		return t.Blocked.Reason, failedMessage(t)
	case v1alpha1.TargetPending:
		return pendingMessage(post, t)
	default:
		return pendingMessage(post, t)
	}
}

// pendingMessage returns the reason and message of a waiting target. This is the only message that promises further
// action by Herald.
func pendingMessage(post *v1alpha1.Post, t *v1alpha1.TargetStatus) (reason, message string) {
	b, open := t.Blocked, attempt.IsOpen(t.Attempt)
	switch {
	case b != nil && attempt.IsRefused(t.Attempt):
		return refusedMessage(t)
	case b != nil && open && t.Attempt.OperationID == "":
		return b.Reason, blockedMessage(b) + "; asking the platform whether it published"
	case b != nil && !open && (t.NextTryAt != nil || b.Reason == v1alpha1.ReasonUsageUnavailable):
		return b.Reason, blockedMessage(b) + "; Herald tries again"
	case b != nil:
		return b.Reason, blockedMessage(b)
	case attempt.WillResend(t):
		return v1alpha1.ReasonPlatformBusy, "it is unknown whether the post was published; sending it again, as onUnknownOutcome asks"
	case open && t.Attempt.OperationID != "":
		return v1alpha1.ReasonProcessing, "the platform accepted the post and is processing it"
	case !open && len(t.Cards) > 0:
		return v1alpha1.ReasonProcessing, fmt.Sprintf("%d of %d cards are published", len(t.Cards), posting.Of(post).Cards())
	case t.Attempt != nil:
		return v1alpha1.ReasonProcessing, ""
	default:
		return "", ""
	}
}

func refusedMessage(t *v1alpha1.TargetStatus) (reason, message string) {
	if t.Attempt.Refusal.RetryAt == nil {
		return v1alpha1.ReasonSettling, blockedMessage(t.Blocked) + "; Herald checks whether the platform published the post anyway"
	}
	return t.Blocked.Reason, blockedMessage(t.Blocked) + "; Herald checks whether the platform published the post anyway, and tries again if not"
}

func failedMessage(t *v1alpha1.TargetStatus) string {
	if n := len(t.Cards); n > 0 {
		return fmt.Sprintf("card %d was not published: %s; the cards before it are online, beginning at %s", n+1, blockedMessage(t.Blocked), online(t))
	}
	return blockedMessage(t.Blocked)
}

func undecidedMessage(t *v1alpha1.TargetStatus) string {
	answer := fmt.Sprintf("then say so with the annotation %s: \"%d=posted:<id>\" or \"%[2]d=not-sent\"", v1alpha1.SettleAnnotation, t.Index)
	since := attempt.AmbiguousSince(t)
	if since == nil {
		return fmt.Sprintf("%s. Check the account, %s", t.Blocked.Problem, answer)
	}
	what, rest := "the post", ""
	if n := len(t.Cards); n > 0 {
		what = fmt.Sprintf("card %d", n+1)
		rest = "; the cards before it are online, beginning at " + online(t)
	}
	return fmt.Sprintf("it is unknown whether %s was published (%s). Check the account for a post made after %s, %s%s", what, t.Blocked.Problem, since, answer, rest)
}

// online returns the URL of a tree's first published card or, if it has none, the ID.
func online(t *v1alpha1.TargetStatus) string {
	if t.ExternalURL != "" {
		return t.ExternalURL
	}
	return t.ExternalID
}

func blockedMessage(b *v1alpha1.Blocked) string {
	if b.Remedy == "" {
		return b.Problem
	}
	return b.Problem + "; " + b.Remedy
}
