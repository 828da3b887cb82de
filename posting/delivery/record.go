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

// Unsent says why nothing was sent for a claim whose write got no answer.
var Unsent = platforms.Errorf(platforms.ClassTransient, "the claim was stored but its answer was lost, so nothing was sent")

// Unrecorded is what a process knows of the attempts of one post and could not
// record.
type Unrecorded struct {
	// Results holds results by the id of their attempt.
	Results map[string]Result
	// Unsent holds the attempts whose claim may have landed although its write
	// failed, and when that was: this process knows that nothing was sent.
	Unsent map[string]time.Time
}

// unsentTTL is how long it is remembered that nothing was sent for a claim that may
// have landed. An attempt that is found open later is looked up.
const unsentTTL = time.Hour

// AddResult remembers a result that could not be recorded.
func (m *Unrecorded) AddResult(r Result) {
	if m.Results == nil {
		m.Results = map[string]Result{}
	}
	m.Results[r.Attempt] = r
}

// AddUnsent remembers that nothing was sent for an attempt.
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

// Drain returns, and forgets, what is known of the attempts in a post and not
// recorded there: results of open ones, and what tells the outcome of one that was
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

// TargetClaim is one target that is about to be sent.
type TargetClaim struct {
	// Target is the index in spec.targets.
	Target int
	attempt.Claim
	// Secret is set if what carries authority over the checkpoint is kept in a
	// Secret, which a lookup needs.
	Secret bool
	// SecretHash identifies what is kept there.
	SecretHash string
}

// RecordClaims opens an attempt for each target. The caller stores the post under
// the resourceVersion that was read before any byte is sent.
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

// sentEarlier returns when the first call for an earlier object of a post was claimed that is
// not known to have published; zero if there was none.
func sentEarlier(post *v1alpha1.Post) time.Time {
	if earlier := post.Status.Earlier; earlier != nil && earlier.SentAt != nil {
		return earlier.SentAt.Time
	}
	return time.Time{}
}

// RecordResults enters what came of calls. held moves the deadlines of the post's targets.
// The error joins those that came too late to be entered; the others are entered all the
// same.
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

// RecordIDs enters only what no other process can find out: the ids of what was
// published, and the names of what platforms work on. It is the last resort when
// the API server refuses the full status. It returns the targets whose result is
// not among these.
func RecordIDs(post *v1alpha1.Post, results []Result, now time.Time) (left []int) {
	for i := range results {
		r := &results[i]
		if t := posting.Target(post, r.Target); t != nil && !attempt.RecordIDs(t, r.Attempt, r.Result, posting.Cards(&post.Spec), now) {
			left = append(left, r.Target)
		}
	}
	return left
}

// LookupAnswer is what a platform answered about an open attempt.
type LookupAnswer struct {
	// Target is the index in spec.targets.
	Target int
	// AskedAt is when the question was put: the answer tells what the platform
	// knew by then.
	AskedAt time.Time
	platforms.LookupResult
	// App is the platforms.Token.App of the token with which the platform was asked.
	App string
	// Err is why there is no answer.
	Err *platforms.Error
	// Last is set if there will be no other answer: what could be asked is gone, or goes.
	Last bool
}

// RecordLookup enters an answer about an open attempt. timing is that of its
// platform, and held moves the deadlines of the post's targets. Of a post that is being
// deleted, the last answer closes the attempt, as unknown if it does not tell: nothing is
// sent for such a post again.
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

// Confirmation is what a platform says about a post that a person named.
type Confirmation struct {
	// AccountID is the account whose post it is, if that is the target's; else empty.
	AccountID string
	// ExternalID and ExternalURL are what the platform calls the post, as far as it is known
	// beside what the person named it by.
	ExternalID, ExternalURL string
	// Refused says in words why this cannot be the target's post: it is of another account,
	// or the address names no post that could be found. It goes on with what to do.
	Refused string
}

// maxAnswerProblem is the schema's bound on why an answer was not entered, in characters.
const maxAnswerProblem = 1024

// RecordResolutions enters what a person found out about targets whose outcome is
// unknown. What cannot be entered is returned for that person; the rest is entered.
// confirm asks the platform about the post that was named for a target, once for each; nil
// confirms nothing.
func RecordResolutions(
	post *v1alpha1.Post, value string, confirm func(t *v1alpha1.TargetStatus, r attempt.Resolution) Confirmation, settings *Settings, now time.Time,
) (problems []error) {
	resolutions, err := attempt.ParseResolutions(value)
	if err != nil {
		return []error{err}
	}
	// One annotation has room for thousands of answers: the first one for a target counts,
	// and the platform is not asked about more.
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
