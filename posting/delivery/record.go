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

// Unsent is the error of an attempt whose claim was stored but got no response, so nothing was sent.
var Unsent = platforms.Errorf(platforms.ClassTransient, "the claim was stored, but the response was lost, so the post was not sent")

// Unrecorded holds the facts about a post's attempts that a process could not record.
type Unrecorded struct {
	// Results holds the results, by attempt ID.
	Results map[string]Result
	// Unsent holds the failure times of attempts whose claim was not confirmed, so nothing was sent.
	Unsent map[string]time.Time
}

// unsentTTL is the lifetime of an entry in Unsent. An open attempt that is found after that is looked up.
const unsentTTL = time.Hour

// AddResult remembers a result that could not be recorded.
func (m *Unrecorded) AddResult(r Result) {
	if m.Results == nil {
		m.Results = map[string]Result{}
	}
	m.Results[r.Attempt] = r
}

// AddUnsent remembers that an attempt's call was not sent.
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

// Drain returns and removes a post's results: of open attempts, and of attempts closed as unknown that they resolve.
func (m *Unrecorded) Drain(post *v1alpha1.Post) (known []Result) {
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if t.Attempt == nil {
			continue
		}
		id, open := t.Attempt.ID, attempt.IsOpen(t.Attempt)
		if r, ok := m.Results[id]; ok {
			delete(m.Results, id)
			if open || attempt.ResolvesUnknown(t.Attempt, r.Result, posting.Of(post).Cards()) {
				known = append(known, r)
			}
		} else if _, ok := m.Unsent[id]; ok && open {
			delete(m.Unsent, id)
			known = append(known, Result{Target: int(t.Index), Attempt: id, Result: platforms.Result{Outcome: platforms.NotSent, Err: Unsent}})
		}
	}
	return known
}

// TargetClaim is the claim of one target.
type TargetClaim struct {
	// Target is the index in spec.targets.
	Target int
	attempt.Claim
	// Secret is true if the checkpoint's upload session, which a lookup needs, is in a Secret.
	Secret bool
	// SecretHash identifies the content of the Secret.
	SecretHash string
}

// RecordClaims opens an attempt for each target. Store the post with its original resourceVersion before the calls.
func RecordClaims(post *v1alpha1.Post, claims []TargetClaim, now time.Time) error {
	for i := range claims {
		c := &claims[i]
		t := posting.Of(post).Target(c.Target)
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

// sentEarlier returns the time when the first call for an earlier object of the post was claimed, unless that call is
// known to have published. Otherwise it returns zero.
func sentEarlier(post *v1alpha1.Post) time.Time {
	if earlier := post.Status.Earlier; earlier != nil && earlier.SentAt != nil {
		return earlier.SentAt.Time
	}
	return time.Time{}
}

// RecordResults records call results. deadlines shifts the deadlines of the targets. The error joins results that came
// too late.
func RecordResults(post *v1alpha1.Post, results []Result, deadlines *Deadlines, now time.Time) error {
	var late []error
	view := posting.Of(post)
	for i := range results {
		r := &results[i]
		t := view.Target(r.Target)
		if t == nil {
			continue
		}
		if err := deadlines.apply(t, r.Err, now, func() error { return attempt.Record(t, r.Attempt, r.Result, view.Cards(), now) }); err != nil {
			late = append(late, fmt.Errorf("target %d: the result %q (%s) of attempt %s came too late to be recorded: %w",
				r.Target, r.Outcome, r.ExternalID, r.Attempt, err))
		}
		if r.Withheld && view.UntilDue(now) > 0 {
			// Its deadline is set again by the next claim. Until then, the post is scheduled like any other.
			t.TryUntil, t.SuspendedUntil, t.InitialDeadline = nil, nil, nil
		}
	}
	Describe(post, now)
	return errors.Join(late...)
}

// RecordIDs records only facts that no other process can find out: IDs of published posts, and operation IDs of posts
// in processing. It is the fallback when the API server rejects the full status. It returns the other targets.
func RecordIDs(post *v1alpha1.Post, results []Result, now time.Time) (left []int) {
	view := posting.Of(post)
	for i := range results {
		r := &results[i]
		if t := view.Target(r.Target); t != nil && !attempt.RecordIDs(t, r.Attempt, r.Result, view.Cards(), now) {
			left = append(left, r.Target)
		}
	}
	return left
}

// LookupAnswer is the platform's response about an open attempt.
type LookupAnswer struct {
	// Target is the index in spec.targets.
	Target int
	// AskedAt is the time when the platform was asked. The response is about that time.
	AskedAt time.Time
	platforms.LookupResult
	// App is the platforms.Token.App of the token used.
	App string
	// Err is the reason why there is no response.
	Err *platforms.Error
	// Last is true if there will be no other response, because the connection or the namespace is being deleted.
	Last bool
}

// RecordLookup records the platform's response about an open attempt. timing is the platform's timing, and deadlines
// shifts the deadlines of the targets. If the post is being deleted, the last response closes the attempt (as unknown
// if the response is inconclusive), because nothing is sent for such a post again.
func RecordLookup(post *v1alpha1.Post, a *LookupAnswer, timing attempt.Timing, deadlines *Deadlines, now time.Time) error {
	view := posting.Of(post)
	t := view.Target(a.Target)
	err := deadlines.apply(t, cmp.Or(a.Refused, a.Err), now, func() error {
		if a.Err != nil {
			return attempt.RecordLookupFailure(t, a.Err, timing, post.Spec.OnUnknownOutcome, now)
		}
		return attempt.RecordLookup(t, a.LookupResult, timing, post.Spec.OnUnknownOutcome, view.Cards(), a.AskedAt)
	})
	if err == nil && a.Last && !post.DeletionTimestamp.IsZero() && attempt.IsOpen(t.Attempt) {
		err = attempt.Abandon(t, now)
	}
	if err != nil {
		return fmt.Errorf("target %d: %w", a.Target, err)
	}
	return nil
}

// Confirmation is the platform's response about a post that a user has named.
type Confirmation struct {
	// AccountID is the post's account if that is the target's account, and empty otherwise.
	AccountID string
	// ExternalID and ExternalURL identify the post on the platform, as far as is known beyond the user's answer.
	ExternalID, ExternalURL string
	// Refused is the reason why this is not the target's post, with a remedy: it belongs to another account, or does not
	// exist.
	Refused string
}

// maxAnswerProblem is the schema's maximum length for TargetStatus.AnswerProblem, in characters.
const maxAnswerProblem = 1024

// RecordResolutions records a user's answers for undecided targets. It returns an error for each answer that it rejects
// and records the others. confirm, unless it is nil, asks the platform about a named post, once per target.
func RecordResolutions(
	post *v1alpha1.Post, value string, confirm func(t *v1alpha1.TargetStatus, r attempt.Resolution) Confirmation, settings *Settings, now time.Time,
) (problems []error) {
	resolutions, err := attempt.ParseResolutions(value)
	if err != nil {
		return []error{err}
	}
	// An annotation can contain thousands of answers. Once the platform has refuted one, the other answers for that
	// target are ignored and the platform is not asked again.
	view, refused := posting.Of(post), map[int32]bool{}
	refuse := func(t *v1alpha1.TargetStatus, err error) {
		if problems = append(problems, err); attempt.Undecided(t) {
			t.AnswerProblem = text.Truncate(err.Error(), maxAnswerProblem)
		}
	}
	for _, r := range resolutions {
		t := view.Target(int(r.Index))
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
		if err := attempt.Resolve(t, r, view.Cards(), now.Add(settings.StartingDeadline), now); err != nil {
			refuse(t, err)
		}
	}
	return problems
}
