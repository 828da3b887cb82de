// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"fmt"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// sendingAgain is what is noted of a target whose call may have published and
// is to be made again all the same.
const sendingAgain = "it is unknown whether the post was published; sending it again, as onUnknownOutcome asks"

// promises are what a message says of a target that waits, and does not hold of
// one that has failed.
var promises = []string{"; sending it again", "; trying again"}

// AmbiguousSince is when the earliest call of a target was claimed of which nobody
// can tell whether it published what the latest attempt was to publish; nil if
// there is none, or a person has told. An attempt that is open is not among
// them.
func AmbiguousSince(t *v1alpha1.TargetStatus) *v1alpha1.Time {
	a := t.Attempt
	switch {
	case a == nil || a.Outcome == v1alpha1.OutcomePosted:
		return nil
	case a.UnknownSince != nil:
		return a.UnknownSince
	case a.Outcome == v1alpha1.OutcomeUnknown:
		return v1alpha1.NewTimePtr(a.StartedAt.Time)
	}
	return nil
}

// SendsAgain reports whether all that is noted of a target is that its call is
// to be made again although it may have published.
func SendsAgain(t *v1alpha1.TargetStatus) bool {
	return AmbiguousSince(t) != nil && t.Message == sendingAgain
}

// unknown closes an attempt about which nobody can tell.
func unknown(t *v1alpha1.TargetStatus, policy v1alpha1.UnknownOutcomePolicy, now time.Time, why string) {
	t.Attempt.Outcome = v1alpha1.OutcomeUnknown
	at := now.Add(pause(tries(t)))
	// What the platform is known to have taken may be published at any time.
	if policy == v1alpha1.OnUnknownRetry && t.Attempt.OperationID == "" && inTime(t, at) {
		waitUntil(t, at, v1alpha1.ReasonPlatformBusy, sendingAgain)
		return
	}
	askPerson(t, why)
}

// longestWhy leaves room in a message for what a person is to do.
const longestWhy = 1200

// askPerson fails a target of which only a person can tell whether it is
// published.
func askPerson(t *v1alpha1.TargetStatus, why string) {
	what, rest := "the post", ""
	if n := len(t.Cards); n > 0 {
		what = fmt.Sprintf("card %d", n+1)
		rest = "; the cards before it are online, beginning at " + online(t)
	}
	settleFailed(t, v1alpha1.ReasonOutcomeUnknown, fmt.Sprintf(
		"it is unknown whether %s was published (%s). Look at the account for a post made after %s, then say so with the annotation %s: %q or %q%s",
		what, clipTo(why, longestWhy), AmbiguousSince(t), v1alpha1.SettleAnnotation,
		fmt.Sprintf("%d=posted:<id>", t.Index), fmt.Sprintf("%d=not-sent", t.Index), rest))
}

// fail settles a target that is not published, as far as the latest attempt
// tells. If an earlier one may have published, only a person can say so.
func fail(t *v1alpha1.TargetStatus, reason, message string) {
	for _, promise := range promises {
		message, _, _ = strings.Cut(message, promise)
	}
	if AmbiguousSince(t) != nil {
		askPerson(t, "a call got no clear answer, and nothing that followed published it: "+message)
		return
	}
	if n := len(t.Cards); n > 0 {
		message = fmt.Sprintf("card %d was not published: %s; the cards before it are online, beginning at %s", n+1, message, online(t))
	}
	settleFailed(t, reason, message)
}

func settleFailed(t *v1alpha1.TargetStatus, reason, message string) {
	t.Phase = v1alpha1.PhaseFailed
	t.Reason, t.Message = reason, clip(message)
	t.NextTryAt, t.TryUntil = nil, nil
}

// online is where the published part of a tree begins.
func online(t *v1alpha1.TargetStatus) string {
	if t.ExternalURL != "" {
		return t.ExternalURL
	}
	return t.ExternalID
}
