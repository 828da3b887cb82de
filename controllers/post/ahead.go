// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

const (
	// textAhead is how long before its time a text is prepared: that takes a
	// moment, and is not written down.
	textAhead = time.Minute
	// aheadRate is how many bytes of its files a second a platform is expected to
	// take; big files are begun with earlier.
	aheadRate = 1 << 20
	// firstAheadPause and longestAheadPause bound the pauses between two tries
	// before the post's time.
	firstAheadPause   = 10 * time.Second
	longestAheadPause = 5 * time.Minute
	// maxPreparedMessage is the schema's bound on what is said of a preparation.
	maxPreparedMessage = 1000
)

// prepareAhead has made, ahead of the post's time, what precedes its visible
// calls, and notes in the ledger what came of it. It does not wait. It returns
// when to come back for it; zero if there is nothing to come back for. Nothing
// of it keeps a post from being cancelled or edited.
func (s *scope) prepareAhead(ctx context.Context) time.Time {
	var next time.Time
	for i := range s.post.Spec.Targets {
		at := s.prepareTargetAhead(ctx, i)
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

func (s *scope) prepareTargetAhead(ctx context.Context, i int) (next time.Time) {
	conn := s.connection(i)
	if conn == nil || s.undeliverable(i) != "" {
		return time.Time{}
	}
	publisher, _ := s.publisher(conn.Spec.Platform)
	preparer, ok := publisher.(platforms.Preparer)
	if !ok {
		return time.Time{}
	}
	content := s.content(s.post, i)
	now := s.Clock.Now()
	if !preparer.Prepares(content) {
		return time.Time{}
	}
	hash := s.contentHash(s.post, i, conn)
	s.outdate(i, hash)
	if from := s.aheadFrom(&content, publisher.Capabilities()); from.After(now) {
		return from
	}
	if s.connectionProblem(i) != "" || s.beyondPlan(i) != "" || s.fileProblem(i) != "" || !s.heldUntil(i, now).IsZero() {
		// A change wakes the post; it is not asked for what cannot be told now.
		s.waitForConnections()
		return s.heldUntil(i, now)
	}
	sh := &shipment{index: i, conn: conn, publisher: publisher}
	p := s.prepared(ctx, sh, hash)
	if p == nil || p.finished() && p.err != nil && !s.retryAhead(p).After(now) {
		var err error
		if sh.token, err = s.Tokens.Token(ctx, conn); err != nil {
			s.waitForConnections()
			return now.Add(credentialsPause)
		}
		if p = s.startPreparing(ctx, preparer, sh, hash, p); p == nil {
			return time.Time{} // woken when a place is free
		}
	}
	return s.noteAhead(ctx, sh, p, len(content.Media) > 0)
}

// outdate forgets what was prepared of a target, or is being prepared, for what
// the post said before an edit. What a Secret keeps of it is known still, so that
// it goes with the rest.
func (s *scope) outdate(i int, hash string) {
	s.preparations.outdate(s.key, i, s.post.UID, hash)
	t := posting.Target(s.post, i)
	switch {
	case t.Prepared == nil || t.Prepared.ContentHash == hash:
	case t.Prepared.Secret:
		t.Prepared = &v1alpha1.Prepared{ContentHash: hash, Secret: true, MadeAt: t.Prepared.MadeAt}
	default:
		t.Prepared = nil
	}
}

// aheadFrom is from when on a target may be prepared: as long before the post's
// time as is configured, and earlier for big files, but not so early that the
// platform would have forgotten it again. Posts of one time do not all begin at
// once.
func (s *scope) aheadFrom(c *platforms.Content, limits platforms.Capabilities) time.Time {
	var bytes int64
	for i := range c.Media {
		bytes += c.Media[i].Size
	}
	lead := s.PrepareAhead + time.Duration(bytes/aheadRate)*time.Second
	if len(c.Media) == 0 {
		lead = min(lead, textAhead)
	}
	lead = min(lead, limits.PreparedLasts/2)
	return s.post.Spec.ScheduledAt.Add(-lead + s.spread(lead/2))
}

// retryAhead is when a preparation that failed ahead of time is tried again; far
// away if that is left to the post's time, because the platform will not change
// its mind.
func (s *scope) retryAhead(p *preparation) time.Time {
	if p.err.Class == platforms.ClassPermanent || p.err.Class == platforms.ClassDuplicate {
		return p.endedAt.Add(24 * 365 * time.Hour)
	}
	pause := firstAheadPause
	for n := p.failures; n > 0 && pause < longestAheadPause; n-- {
		pause *= 2
	}
	at := p.endedAt.Add(min(pause, longestAheadPause))
	if p.err.RetryAt.After(at) {
		at = p.err.RetryAt
	}
	return at
}

// noteAhead puts into the ledger what is known of a preparation ahead of time,
// and returns when to come back for it.
func (s *scope) noteAhead(ctx context.Context, sh *shipment, p *preparation, files bool) (next time.Time) {
	t := posting.Target(s.post, sh.index)
	switch {
	case !p.finished():
		if files {
			s.noteProgress(sh.index, p)
		}
		return time.Time{} // its end wakes the post
	case p.err == nil:
		s.Failpoint(PointAfterAhead)
		if known := t.Prepared; files && (known == nil || !known.Complete || known.ContentHash != p.hash || known.Checkpoint != p.result.checkpoint) {
			t.Prepared = &v1alpha1.Prepared{
				ContentHash: p.hash, Checkpoint: p.result.checkpoint, Secret: p.result.secret != "",
				MadeAt: v1alpha1.NewTime(p.endedAt), Complete: true,
			}
		} else if !files {
			t.Prepared = nil // a text is made again in a moment
		}
		return time.Time{}
	}
	message := truncate(p.err.Message, maxPreparedMessage)
	if t.Prepared == nil || t.Prepared.ContentHash != p.hash || t.Prepared.Message != message {
		part := p.progress()
		t.Prepared = &v1alpha1.Prepared{
			ContentHash: p.hash, Checkpoint: part.checkpoint, Secret: part.secret != "", MadeAt: v1alpha1.NewTime(p.endedAt), Message: message,
		}
		s.log.Info("not prepared ahead of time", "uid", s.post.UID, "target", sh.index, "platform", sh.conn.Spec.Platform,
			"class", p.err.Class, "problem", p.err.Message, "cause", p.err.Err)
		s.warn(v1alpha1.ReasonPreparationFailed, fmt.Sprintf("target %d (%s): %s", sh.index, sh.conn.Spec.Platform, message))
		sh.attempt, sh.result = s.NewID(), platforms.Result{Outcome: platforms.NotSent, Err: p.err}
		s.alert(ctx, sh)
	}
	return s.retryAhead(p)
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
	c.Message = truncate(c.Message, maxMessage)
	meta.SetStatusCondition(&post.Status.Conditions, c)
}
