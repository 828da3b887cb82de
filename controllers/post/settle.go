// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/ratelimit"
)

// look is one question to a platform about an open attempt, and its answer.
type look struct {
	target *v1alpha1.TargetStatus
	timing attempt.Timing
	// askedAt is when the question was put: what the platform knew by then is
	// what its answer tells.
	askedAt time.Time
	result  platforms.LookupResult
	err     *platforms.Error
}

// settle looks for every open attempt whose call is certainly over, and writes
// what it found. It never publishes.
func (s *scope) settle(ctx context.Context) error {
	var looks []*look
	now := s.Clock.Now()
	for i := range s.post.Status.Targets {
		t := &s.post.Status.Targets[i]
		if !attempt.IsOpen(t.Attempt) {
			continue
		}
		timing, ok := s.timing(t)
		if !ok {
			looks = append(looks, &look{
				target: t, timing: attempt.Timing{GiveUpAfter: s.StartingDeadline},
				err: platforms.Errorf(platforms.ClassUnknown, "this installation knows no platform %q", t.Platform),
			})
			continue
		}
		if !attempt.NextLookup(t, timing).After(now) {
			looks = append(looks, &look{target: t, timing: timing})
		}
	}
	if len(looks) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopping before looking: %w", err)
	}
	var asked sync.WaitGroup
	for _, l := range looks {
		if l.err == nil {
			l.askedAt = now
			asked.Go(func() { l.result, l.err = s.ask(ctx, l) })
		}
	}
	asked.Wait()
	s.Failpoint(PointAfterLook)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped while looking: %w", err)
	}
	return s.enterLooks(ctx, looks)
}

// ask puts the question of one look to the platform.
func (s *scope) ask(ctx context.Context, l *look) (platforms.LookupResult, *platforms.Error) {
	i := int(l.target.Index)
	conn := s.connection(i)
	switch {
	case conn == nil:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassReconnect,
			"connection %q does not exist any more", s.post.Spec.Targets[i].ConnectionRef.Name)
	case conn.Spec.Platform != l.target.Platform || !attempt.SameAccount(l.target.Attempt, conn.Spec.AccountID):
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassReconnect,
			"connection %q is another account now; the call was made to account %s on %s", conn.Name, l.target.Attempt.AccountID, l.target.Platform)
	}
	token, err := s.Tokens.Token(ctx, conn)
	if err != nil {
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassReconnect, "the credentials of connection %q cannot be used: %v", conn.Name, err)
	}
	j := s.job(s.post, i, conn, token)
	j.Checkpoint, j.OperationID = l.target.Attempt.Checkpoint, l.target.Attempt.OperationID
	j.SearchFrom = attempt.SearchFrom(l.target.Attempt)
	if p, ok := s.publisher(conn.Spec.Platform); ok && p.Capabilities().SecretUploads && j.Checkpoint != "" {
		kept, err := s.session(ctx, i)
		if err != nil {
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, "%v", err)
		}
		if kept.Checkpoint == j.Checkpoint {
			j.Secret = kept.Secret
		}
	}
	if err := s.taken.load(ctx, s.key.Namespace, j.SearchFrom); err != nil {
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, "the other posts of the team cannot be read: %v", err)
	}
	j.Taken = func(externalID string) bool {
		return s.taken.byOther(conn.Spec.Platform, externalID, owner{s.post.UID, l.target.Index})
	}
	p, _ := s.publisher(conn.Spec.Platform)
	ctx, cancel := context.WithTimeout(ctx, l.timing.CallTimeout)
	defer cancel()
	result, err := p.Lookup(ctx, j)
	if err == nil && result.Matches == 1 && !result.Certain {
		if err := s.unnamed(ctx, l.target); err != nil {
			return platforms.LookupResult{}, err
		}
	}
	if err == nil {
		result.Refused = ratelimit.WithRetryAt(result.Refused, s.Clock.Now())
		return result, nil
	}
	var perr *platforms.Error
	if !errors.As(err, &perr) {
		perr = platforms.Errorf(platforms.ClassTransient, "%v", err)
	}
	if perr.Class == platforms.ClassRefresh || perr.Class == platforms.ClassReconnect {
		s.Tokens.Forget(conn)
		s.requestProbe(ctx, &shipment{conn: conn, attempt: fmt.Sprintf("%s-%d", l.target.Attempt.ID, s.Clock.Now().Unix())})
	}
	return platforms.LookupResult{}, ratelimit.WithRetryAt(perr, s.Clock.Now())
}

// enterLooks writes the answers into the ledger.
func (s *scope) enterLooks(ctx context.Context, looks []*look) error {
	now := s.Clock.Now()
	for _, l := range looks {
		var err error
		if l.err != nil {
			err = attempt.RecordLookupFailure(l.target, l.err, l.timing, s.post.Spec.OnUnknownOutcome, now)
		} else {
			s.own(l)
			err = attempt.RecordLookup(l.target, l.result, l.timing, s.post.Spec.OnUnknownOutcome, posting.Cards(&s.post.Spec), l.askedAt)
		}
		if err != nil {
			return fmt.Errorf("target %d: %w", l.target.Index, err)
		}
		what := "looked for a call whose answer was lost"
		if l.target.Attempt.OperationID != "" {
			what = "asked what became of a call that the platform took"
		}
		s.log.Info(what, "uid", s.post.UID, "target", l.target.Index, "attempt", l.target.Attempt.ID,
			"matches", l.result.Matches, "problem", problem(l.err), "outcome", l.target.Attempt.Outcome)
	}
	if _, err := s.write(ctx); err != nil {
		return err
	}
	s.taken.note(s.post)
	for _, l := range looks {
		t := posting.Target(s.post, int(l.target.Index))
		s.Metrics.settled(t)
		s.tellLook(ctx, t)
		s.tellConnection(ctx, l, t)
	}
	return nil
}

// own makes what a look found the target's own. What another target took between
// the look and now is that one's, unless the platform itself named it.
func (s *scope) own(l *look) {
	self := owner{s.post.UID, l.target.Index}
	switch f := &l.result; {
	case f.Matches != 1:
	case f.Certain:
		s.taken.assign(l.target.Platform, f.ExternalID, self)
	case !s.taken.reserve(l.target.Platform, f.ExternalID, self):
		*f = platforms.LookupResult{}
	}
}

// problem is an error's message, or "" without one.
func problem(err *platforms.Error) string {
	if err == nil {
		return ""
	}
	return err.Message
}

// applyVerdicts enters what a person found out about targets whose outcome is
// unknown, and then takes the annotation away.
func (s *scope) applyResolutions(ctx context.Context) error {
	value, ok := s.post.Annotations[v1alpha1.SettleAnnotation]
	if !ok {
		return nil
	}
	resolutions, err := attempt.ParseResolutions(value)
	if err != nil {
		s.warn("InvalidResolution", err.Error())
		return s.dropResolutions(ctx)
	}
	now := s.Clock.Now()
	for _, v := range resolutions {
		t := posting.Target(s.post, int(v.Index))
		if t == nil {
			s.warn("InvalidResolution", fmt.Sprintf("there is no target %d; targets are counted from 0", v.Index))
			continue
		}
		if err := attempt.Resolve(t, v, posting.Cards(&s.post.Spec), now.Add(s.StartingDeadline), now); err != nil {
			s.warn("InvalidResolution", err.Error())
		}
	}
	if _, err := s.write(ctx); err != nil {
		return err
	}
	s.taken.note(s.post)
	return s.dropResolutions(ctx)
}

// dropVerdicts removes the annotation. Until that is done nothing is claimed,
// so that a verdict is never taken for one on a later attempt.
func (s *scope) dropResolutions(ctx context.Context) error {
	base := s.post.DeepCopy()
	delete(s.post.Annotations, v1alpha1.SettleAnnotation)
	if err := s.Client.Patch(ctx, s.post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot remove the annotation %s: %w", v1alpha1.SettleAnnotation, err)
	}
	s.ledger.wrote(s.post)
	s.stored = *s.post.Status.DeepCopy()
	return nil
}
