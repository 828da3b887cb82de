// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Unsent is the error of an attempt whose claim was stored without a response, so nothing was sent.
var Unsent = platforms.Errorf(platforms.ClassTransient, "the claim was stored but its answer was lost, so nothing was sent")

// Unrecorded holds a post's attempt facts that a process could not record.
type Unrecorded struct {
	// Results holds results by attempt ID.
	Results map[string]Result
	// Unsent holds attempts that sent nothing because the claim's write failed, although it may have been stored. The values are the
	// failure times.
	Unsent map[string]time.Time
}

// unsentTTL is the lifetime of an Unsent entry. An open attempt found later is looked up.
const unsentTTL = time.Hour

// AddResult keeps an unrecorded result.
func (m *Unrecorded) AddResult(r Result) {
	if m.Results == nil {
		m.Results = map[string]Result{}
	}
	m.Results[r.Attempt] = r
}

// AddUnsent keeps the fact that an attempt sent nothing.
func (m *Unrecorded) AddUnsent(attempt string, now time.Time) {
	if m.Unsent == nil {
		m.Unsent = map[string]time.Time{}
	}
	for id, at := range m.Unsent {
		if now.Sub(at) > unsentTTL {
			delete(m.Unsent, id)
		}
	}
	m.Unsent[attempt] = now
}

// Drain returns and removes the unrecorded facts about a post's attempts: results of open attempts, and results that resolve an attempt
// closed as unknown.
func (m *Unrecorded) Drain(post *v1alpha1.Post) (known []Result) {
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if t.Attempt == nil {
			continue
		}
		id, open := t.Attempt.ID, attempt.IsOpen(t.Attempt)
		if r, ok := m.Results[id]; ok {
			delete(m.Results, id)
			if open || attempt.ResolvesUnknown(t.Attempt, r.Result, posting.Cards(&post.Spec)) {
				known = append(known, r)
			}
		} else if _, ok := m.Unsent[id]; ok && open {
			delete(m.Unsent, id)
			known = append(known, Result{Target: int(t.Index), Attempt: id, Result: platforms.Result{Outcome: platforms.NotSent, Err: Unsent}})
		}
	}
	return known
}

// TargetClaim is a target's claim.
type TargetClaim struct {
	// Target is the index in spec.targets.
	Target int
	attempt.Claim
	// Secret is true if a Secret holds the checkpoint's upload session, which a lookup needs.
	Secret bool
	// SecretHash identifies the Secret's contents.
	SecretHash string
}

// RecordClaims opens an attempt for each target. The caller must store the post with the original resourceVersion before the call.
func RecordClaims(post *v1alpha1.Post, claims []TargetClaim, now time.Time) error {
	for i := range claims {
		c := &claims[i]
		t := posting.Target(post, c.Target)
		if t == nil {
			return fmt.Errorf("cannot claim target %d: the post has no such target", c.Target)
		}
		c.Card, c.SentBefore = attempt.NextCard(t), sentEarlier(post)
		if err := attempt.Open(t, c.Claim, now); err != nil {
			return fmt.Errorf("cannot claim target %d: %w", c.Target, err)
		}
		t.Prepared = nil
		if c.Secret {
			t.Prepared = &v1alpha1.Prepared{
				ContentHash: c.ContentHash, Checkpoint: c.Checkpoint, Secret: true, SecretHash: c.SecretHash, MadeAt: v1alpha1.NewTime(now),
			}
		}
	}
	Describe(post, now)
	return nil
}

// sentEarlier returns the claim time of the first call for an earlier object of the post, if that call is not known to have published.
// Otherwise it returns zero.
func sentEarlier(post *v1alpha1.Post) time.Time {
	if earlier := post.Status.Earlier; earlier != nil && earlier.SentAt != nil {
		return earlier.SentAt.Time
	}
	return time.Time{}
}

// RecordResults records call results. held shifts the targets' deadlines. The returned error joins the results that arrived too late; the
// others are recorded.
func RecordResults(post *v1alpha1.Post, results []Result, held *Deadlines, now time.Time) error {
	var late []error
	for i := range results {
		r := &results[i]
		t := posting.Target(post, r.Target)
		if t == nil {
			continue
		}
		if err := held.apply(t, r.Err, now, func() error { return attempt.Record(t, r.Attempt, r.Result, posting.Cards(&post.Spec), now) }); err != nil {
			late = append(late, fmt.Errorf("target %d: the result %q (%s) of attempt %s came too late to be recorded: %w",
				r.Target, r.Outcome, r.ExternalID, r.Attempt, err))
		}
	}
	Describe(post, now)
	return errors.Join(late...)
}

// RecordIDs records only facts that no other process can determine: published post IDs and operation IDs in processing. It is the fallback
// when the API server rejects the full status. It returns the targets without such a fact.
func RecordIDs(post *v1alpha1.Post, results []Result, now time.Time) (left []int) {
	for i := range results {
		r := &results[i]
		if t := posting.Target(post, r.Target); t != nil && !attempt.RecordIDs(t, r.Attempt, r.Result, posting.Cards(&post.Spec), now) {
			left = append(left, r.Target)
		}
	}
	return left
}

// LookupAnswer is the platform's response about an open attempt.
type LookupAnswer struct {
	// Target is the index in spec.targets.
	Target int
	// AskedAt is the query time. The response reflects the platform's state at that time.
	AskedAt time.Time
	platforms.LookupResult
	// App is the platforms.Token.App of the query's token.
	App string
	// Err explains a missing response.
	Err *platforms.Error
	// Last is true if no other response will follow, because the connection or the namespace is being deleted.
	Last bool
}

// RecordLookup records a response about an open attempt. timing is the platform's timing, and held shifts the targets' deadlines. If the
// post is being deleted, the last response closes the attempt, as unknown if it is inconclusive, because nothing is sent for such a post
// again.
func RecordLookup(post *v1alpha1.Post, a *LookupAnswer, timing attempt.Timing, held *Deadlines, now time.Time) error {
	t := posting.Target(post, a.Target)
	err := held.apply(t, cmp.Or(a.Refused, a.Err), now, func() error {
		if a.Err != nil {
			return attempt.RecordLookupFailure(t, a.Err, timing, post.Spec.OnUnknownOutcome, now)
		}
		return attempt.RecordLookup(t, a.LookupResult, timing, post.Spec.OnUnknownOutcome, posting.Cards(&post.Spec), a.AskedAt)
	})
	if err == nil && a.Last && !post.DeletionTimestamp.IsZero() && attempt.IsOpen(t.Attempt) {
		err = attempt.Abandon(t, now)
	}
	if err != nil {
		return fmt.Errorf("target %d: %w", a.Target, err)
	}
	return nil
}

// Confirmation is the platform's response about a post named by a user.
type Confirmation struct {
	// AccountID is the post's account if it is the target's account, and empty otherwise.
	AccountID string
	// ExternalID and ExternalURL identify the post on the platform, as far as known in addition to the user's answer.
	ExternalID, ExternalURL string
	// Refused explains why this cannot be the target's post, followed by a remedy: it belongs to another account, or does not exist at the
	// address.
	Refused string
}

// maxAnswerProblem is the schema's maximum length of TargetStatus.AnswerProblem, in characters.
const maxAnswerProblem = 1024

// RecordResolutions records a user's resolutions of undecided targets. It returns an error for each rejected resolution and records the
// others. confirm queries the platform for the post named for a target, once per target. A nil confirm confirms nothing.
func RecordResolutions(
	post *v1alpha1.Post, value string, confirm func(t *v1alpha1.TargetStatus, r attempt.Resolution) Confirmation, settings *Settings, now time.Time,
) (problems []error) {
	resolutions, err := attempt.ParseResolutions(value)
	if err != nil {
		return []error{err}
	}
	// An annotation can hold thousands of answers. After the platform refutes one of them, the target's remaining answers are ignored
	// without another query.
	refused := map[int32]bool{}
	refuse := func(t *v1alpha1.TargetStatus, err error) {
		if problems = append(problems, err); attempt.Undecided(t) {
			t.AnswerProblem = text.Truncate(err.Error(), maxAnswerProblem)
		}
	}
	for _, r := range resolutions {
		t := posting.Target(post, int(r.Index))
		if t == nil {
			problems = append(problems, fmt.Errorf("there is no target %d; targets are counted from 0", r.Index))
			continue
		}
		if refused[r.Index] {
			continue
		}
		if confirm != nil && (r.ExternalID != "" || r.ExternalURL != "") && attempt.Undecided(t) {
			found := confirm(t, r)
			if found.Refused != "" {
				refused[r.Index] = true
				refuse(t, fmt.Errorf("target %d: %s", r.Index, found.Refused))
				continue
			}
			r.AccountID = found.AccountID
			r.ExternalID, r.ExternalURL = cmp.Or(found.ExternalID, r.ExternalID), cmp.Or(found.ExternalURL, r.ExternalURL)
		}
		if err := attempt.Resolve(t, r, posting.Cards(&post.Spec), now.Add(settings.StartingDeadline), now); err != nil {
			refuse(t, err)
		}
	}
	return problems
}
