// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// A post with spec.retryOf retries targets of a failed post. Before the first call for a target, the manager reserves
// the failed target for the retry: it writes the retry's name into that target's retriedBy, at the resourceVersion at
// which it read that no part of that target is public. See docs/adr/0030-retry.md.

// Original is the failed post that a post retries, as read from the API server for this decision.
type Original struct {
	// Post is nil if it does not exist.
	Post *v1alpha1.Post
}

// originalPause is the pause before an original that is not finished is read again.
const originalPause = 15 * time.Second

// nothingToRetry is the entry in status.retry of a target for which there is nothing to retry.
const nothingToRetry = int32(-1)

// retryMatch maps a target to the failed post's target that it retries.
type retryMatch struct {
	// target is the index in the failed post, or nothingToRetry.
	target int32
	// reserved is true if the failed target names this post.
	reserved bool
	// refused is the reason why the target is never sent; waits is the reason why it cannot be sent yet.
	refused, waits string
}

// requiresOriginal reports whether the failed post must be read before the decision, because a target has no attempt
// yet.
func (f *Facts) requiresOriginal() bool {
	if f.Post.Spec.RetryOf == nil || f.Original != nil {
		return false
	}
	for i := range f.Post.Spec.Targets {
		if t := f.Target(i); t.Attempt == nil && !attempt.Settled(t) {
			return true
		}
	}
	return false
}

// matchRetry returns a match for each target, or nil if the post is not a retry. Targets match by connection, and by
// order within a connection; targets that are already reserved for this post come first.
func (f *Facts) matchRetry() []retryMatch {
	if f.Post.Spec.RetryOf == nil || f.Original == nil {
		return nil
	}
	matches := make([]retryMatch, len(f.Post.Spec.Targets))
	original, name := f.Original.Post, f.Post.Spec.RetryOf.Name
	reserved := f.Post.Status.Retry
	switch {
	case original == nil && reserved != nil && len(reserved.Targets) == len(matches) && !slices.Contains(reserved.Targets, nothingToRetry):
		for i := range matches {
			matches[i] = retryMatch{target: reserved.Targets[i], reserved: true}
		}
		return matches
	case original == nil:
		return allMatches(matches, retryMatch{target: nothingToRetry, refused: fmt.Sprintf(
			"the post %q, which this one retries, no longer exists: it was deleted or archived", name)})
	case !original.Status.Finished:
		return allMatches(matches, retryMatch{target: nothingToRetry, waits: unfinishedOriginal(original)})
	}
	taken := map[int]bool{}
	for i := range matches {
		matches[i] = f.matchTarget(i, original, taken)
	}
	return matches
}

func allMatches(matches []retryMatch, m retryMatch) []retryMatch {
	for i := range matches {
		matches[i] = m
	}
	return matches
}

func unfinishedOriginal(original *v1alpha1.Post) string {
	targets := undecided(original)
	if len(targets) == 0 {
		return fmt.Sprintf("the post %q, which this one retries, is not finished", original.Name)
	}
	return fmt.Sprintf("it is unknown for %s whether the post %q, which this one retries, was published; check the account, then answer as described in its %s condition",
		nameOf(original, targets[0]), original.Name, v1alpha1.ConditionOutcomeUnknown)
}

// RetryCheck describes what the manager would decide about a post with spec.retryOf.
type RetryCheck struct {
	// Undecided and Waits are the reasons why no target can be sent yet: a user must answer a question about the failed
	// post, or it is not finished.
	Undecided, Waits string
	// Refused holds the reason why each target would never be sent, or "".
	Refused []string
}

// CheckRetry checks a post that is about to be created or changed against the post that it retries.
func CheckRetry(post, original *v1alpha1.Post, connections map[string]*v1alpha1.Connection) (check RetryCheck) {
	f := &Facts{View: posting.Of(post), Connections: connections, Original: &Original{Post: original}}
	for _, m := range f.matchRetry() {
		check.Waits = m.waits
		check.Refused = append(check.Refused, m.refused)
	}
	if check.Waits != "" && len(undecided(original)) > 0 {
		check.Undecided, check.Waits = check.Waits, ""
	}
	return check
}

// matchTarget matches one target with a finished original. taken are the matched targets of the original.
func (f *Facts) matchTarget(i int, original *v1alpha1.Post, taken map[int]bool) retryMatch {
	connection := f.Post.Spec.Targets[i].ConnectionRef.Name
	view, best := posting.Of(original), -1
	var problem string
	for j := range original.Spec.Targets {
		if original.Spec.Targets[j].ConnectionRef.Name != connection || taken[j] {
			continue
		}
		why := f.notRetriable(i, view, j)
		if problem == "" {
			problem = why
		}
		if why == "" && (best < 0 || view.Target(j).RetriedBy != "" && view.Target(best).RetriedBy == "") {
			best = j
		}
	}
	switch {
	case best >= 0:
		taken[best] = true
		return retryMatch{target: int32(best), reserved: view.Target(best).RetriedBy != ""}
	case problem == "":
		problem = fmt.Sprintf("the post %q, which this one retries, has no other target with the connection %q", original.Name, connection)
	}
	return retryMatch{target: nothingToRetry, refused: problem}
}

// notRetriable returns the reason why target i cannot retry target j of the original, or "".
func (f *Facts) notRetriable(i int, original posting.View, j int) string {
	t, name := original.Target(j), original.Post.Name
	if t == nil {
		return fmt.Sprintf("target %d of post %q did not fail", j, name)
	}
	switch state := posting.StateOf(t); {
	case attempt.Posted(t):
		return fmt.Sprintf("%s of post %q is published", nameOf(original.Post, t), name)
	case state != v1alpha1.TargetFailed:
		return fmt.Sprintf("%s of post %q did not fail, but is %s", nameOf(original.Post, t), name, state)
	case len(t.Cards) > 0 || t.ExternalID != "":
		return fmt.Sprintf("a part of %s of post %q is published", nameOf(original.Post, t), name)
	case !original.ProvenAbsent(j):
		return fmt.Sprintf("it is not proven that %s of post %q was not published; check the account, and create a post without spec.retryOf if it is not there",
			nameOf(original.Post, t), name)
	case t.RetriedBy != "" && t.RetriedBy != f.Post.Name:
		return fmt.Sprintf("%s of post %q is already retried by post %q", nameOf(original.Post, t), name, t.RetriedBy)
	}
	conn := f.connection(i)
	if a := t.Attempt; conn != nil && a != nil && a.AccountID != "" && a.AccountID != conn.Spec.AccountID {
		return fmt.Sprintf("the connection %q belongs to another account than when post %q failed", conn.Name, name)
	}
	return ""
}

// decideRetry fails or defers a target that cannot be retried, and reports whether it did.
func (f *Facts) decideRetry(d *targets, i int, t *v1alpha1.TargetStatus) bool {
	if d.retry == nil || t.Attempt != nil {
		return false
	}
	switch m := &d.retry[i]; {
	case m.refused != "":
		fail(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonRetryRefused, Problem: "not sent: " + m.refused})
		d.changed = true
		return true
	case m.waits != "":
		d.changed = attempt.Block(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonRetryRefused, Problem: m.waits}) || d.changed
		t.NextTryAt = v1alpha1.NewTimePtr(f.Now.Add(originalPause))
		return true
	}
	return false
}

// unreserved returns the original's targets to reserve before the ready ones are claimed.
func (d *targets) unreserved() (targets []int) {
	if d.retry == nil {
		return nil
	}
	for _, i := range d.ready {
		if m := &d.retry[i]; m.target != nothingToRetry && !m.reserved {
			targets = append(targets, int(m.target))
		}
	}
	return targets
}

// recordRetry stores the retried post and its targets in the status, which outlives the original.
func (f *Facts) recordRetry(d *targets) {
	if d.retry == nil || f.Original.Post == nil {
		return
	}
	next := &v1alpha1.RetryStatus{Object: string(f.Original.Post.UID)}
	reserved := false
	for i := range d.retry {
		target := nothingToRetry
		if d.retry[i].reserved {
			target, reserved = d.retry[i].target, true
		}
		next.Targets = append(next.Targets, target)
	}
	known := f.Post.Status.Retry
	if !reserved || known != nil && known.Object == next.Object && slices.Equal(known.Targets, next.Targets) {
		return
	}
	f.Post.Status.Retry, d.changed = next, true
}

// Reserve reserves failed targets of the original for the post with the given name. The caller stores it at the
// resourceVersion that the decision was made from.
func Reserve(original *v1alpha1.Post, targets []int, by string, now time.Time) {
	for _, j := range targets {
		posting.Of(original).Target(j).RetriedBy = by
	}
	describeRetried(original, now)
}

// describeRetried derives the Retried condition of a failed post.
func describeRetried(post *v1alpha1.Post, now time.Time) {
	var lines []string
	for i := range post.Status.Targets {
		if t := &post.Status.Targets[i]; t.RetriedBy != "" {
			lines = append(lines, fmt.Sprintf("target %d (%s) is retried by post %q", t.Index, t.Platform, t.RetriedBy))
		}
	}
	if len(lines) == 0 {
		meta.RemoveStatusCondition(&post.Status.Conditions, v1alpha1.ConditionRetried)
		return
	}
	setCondition(post, now, v1alpha1.ConditionRetried, metav1.ConditionTrue, v1alpha1.ReasonRetried, text.Truncate(strings.Join(lines, "; "), maxConditionMessage))
}

// describeRetryOf derives the RetryOf condition of a retry.
func describeRetryOf(post *v1alpha1.Post, now time.Time) {
	of, retry := post.Spec.RetryOf, post.Status.Retry
	if of == nil || retry == nil {
		meta.RemoveStatusCondition(&post.Status.Conditions, v1alpha1.ConditionRetryOf)
		return
	}
	var targets []string
	for _, j := range retry.Targets {
		if j != nothingToRetry {
			targets = append(targets, fmt.Sprintf("target %d", j))
		}
	}
	setCondition(post, now, v1alpha1.ConditionRetryOf, metav1.ConditionTrue, v1alpha1.ReasonRetry,
		text.Truncate(fmt.Sprintf("retries %s of post %q", strings.Join(targets, ", "), of.Name), maxConditionMessage))
}
