// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/ratelimit"
)

const (
	// prepareWithin bounds one preparation, and slowest is how many bytes of its
	// files a second are waited for beside that.
	prepareWithin = time.Minute
	slowest       = 128 << 10
	// preparePatience is how long the other targets of a post wait for a
	// preparation, so that all are claimed by one write. One that takes longer
	// goes on alone.
	preparePatience = 3 * time.Second
	// progressEvery is how often it is written down how far an upload has come.
	progressEvery = 15 * time.Second
)

// prepare has everything made that precedes the visible calls, side by side,
// and returns the shipments that can go out: none while something that was begun
// a moment ago may end soon. It does not wait; the end of a preparation wakes
// the post. changed tells that the ledger notes what the platform said.
func (s *scope) prepare(ctx context.Context, shipments []*shipment) (ready []*shipment, changed bool) {
	running := map[*shipment]*preparation{}
	for _, sh := range shipments {
		preparer, ok := sh.publisher.(platforms.Preparer)
		if !ok || !preparer.Prepares(s.content(s.post, sh.index)) {
			ready = append(ready, sh)
			continue
		}
		// One that finds no place free is woken when one is.
		if p := s.preparing(ctx, preparer, sh); p != nil {
			running[sh] = p
		}
	}
	if s.endSoon(running) {
		return nil, false
	}
	for _, sh := range shipments {
		p := running[sh]
		switch {
		case p == nil:
		case !p.finished():
			changed = s.noteProgress(sh.index, p) || changed
			changed = s.waitForPreparation(sh) || changed
		case p.err == nil:
			sh.made, sh.unasked = p.result, p.ahead
			ready = append(ready, sh)
			s.Failpoint(PointAfterPrepare)
		case p.err.Class == platforms.ClassDuplicate && p.result.checkpoint != "":
			// The claim is made for the look that follows; see send.
			sh.made, sh.doubt = p.result, p.err
			ready = append(ready, sh)
		default:
			s.noteProgress(sh.index, p)
			s.notPrepared(ctx, sh, p.err)
			changed = true
		}
	}
	return ready, changed
}

// waitForPreparation notes what a target is about whose preparation takes longer
// than a moment, unless the ledger tells already what went wrong before.
func (s *scope) waitForPreparation(sh *shipment) (changed bool) {
	t := posting.Target(s.post, sh.index)
	if t.Reason != "" && t.Reason != v1alpha1.ReasonProcessing {
		return false
	}
	return s.waitFor(sh.index, t, v1alpha1.ReasonPreparing, fmt.Sprintf(
		"what the post shows is being uploaded to %s, or worked on there; it goes out when that is done", sh.conn.Spec.Platform))
}

// preparing returns the preparation of a shipment whose time has come: the one
// that is under way or good, or else one that begins now. It is nil if the
// account, or the team, has as many under way as it may.
func (s *scope) preparing(ctx context.Context, preparer platforms.Preparer, sh *shipment) *preparation {
	hash := s.contentHash(s.post, sh.index, sh.conn)
	s.preparations.outdate(s.key, sh.index, s.post.UID, hash)
	known := s.prepared(ctx, sh, hash)
	if known != nil && (!known.finished() || known.err == nil || !known.ahead) {
		return known
	}
	return s.startPreparing(ctx, preparer, sh, hash, known)
}

// prepared returns what this process, or the post, remembers of the preparation
// of a shipment; nil if that is nothing, or the platform does not keep it for
// long enough to go without asking.
func (s *scope) prepared(ctx context.Context, sh *shipment, hash string) *preparation {
	fresh := keptFor(sh.publisher.Capabilities())
	if known := s.preparations.known(s.key, sh.index, s.post.UID, hash); known != nil {
		if known.ready() && s.Clock.Since(known.endedAt) >= fresh {
			return nil
		}
		return known
	}
	noted := posting.Target(s.post, sh.index).Prepared
	if noted == nil || !noted.Complete || noted.ContentHash != hash || s.Clock.Since(noted.MadeAt.Time) >= fresh {
		return nil
	}
	result := made{checkpoint: noted.Checkpoint}
	if noted.Secret {
		kept, err := s.session(ctx, sh.index)
		if err != nil || kept.Checkpoint != noted.Checkpoint {
			return nil
		}
		result.secret = kept.Secret
	}
	p := adopted(s.post.UID, hash, result, noted.MadeAt.Time)
	s.preparations.put(s.key, sh.index, p)
	return p
}

// keptFor is how long a preparation is taken for good without asking again: what
// is left then suffices for the tries that follow.
func keptFor(limits platforms.Capabilities) time.Duration { return limits.PreparedLasts * 3 / 4 }

// startPreparing begins the preparation of a shipment; before is what failed, or
// is too old, of it.
func (s *scope) startPreparing(ctx context.Context, preparer platforms.Preparer, sh *shipment, hash string, before *preparation) *preparation {
	j := s.job(s.post, sh.index, sh.conn, sh.token)
	done := s.place(sh, len(j.Content.Media) > 0)
	if done == nil {
		return nil
	}
	begun := &preparation{uid: s.post.UID, hash: hash, ahead: posting.Wait(s.post, s.Clock.Now()) > 0, part: s.begunBefore(sh.index, hash)}
	if before != nil && before.finished() && before.err != nil {
		begun.failures = before.failures + 1
	}
	owner := s.ownerOf(sh.index, hash)
	secret := sh.publisher.Capabilities().SecretUploads
	within := patience(&j.Content)
	if s.Thumbnails != nil && wantsPicture(sh.publisher.Capabilities(), &j.Content) {
		within += thumbnailWithin
	}
	s.preparations.start(ctx, within, begun, func(ctx context.Context, p *preparation) (made, *platforms.Error) {
		defer done()
		return s.make(ctx, preparer, j, p, owner, secret)
	}, func() { s.enqueue(s.key) })
	s.preparations.put(s.key, sh.index, begun)
	return begun
}

// make does the work of a preparation, going on from where an earlier one stood.
func (s *scope) make(ctx context.Context, preparer platforms.Preparer, j platforms.Job, p *preparation, owner sessionOwner, secret bool) (made, *platforms.Error) {
	part := p.progress()
	if secret {
		kept, err := s.sessions.load(ctx, owner)
		if err != nil {
			return made{}, &platforms.Error{Class: platforms.ClassTransient, Message: "the Secret of the post's uploads cannot be read; Herald tries again", Err: err}
		}
		if kept.ContentHash == owner.hash {
			part = made{kept.Checkpoint, kept.Secret}
		}
		owner.found = kept.Checkpoint
	}
	j.Checkpoint, j.Secret = part.checkpoint, part.secret
	j.Keep = func(ctx context.Context, checkpoint, secret string) error {
		now := made{checkpoint, secret}
		if secret != "" && now != part {
			if err := s.sessions.store(ctx, owner, now); err != nil {
				return err
			}
			owner.found = checkpoint
			s.Failpoint(PointAfterSecret)
		}
		part = now
		s.Failpoint(PointAfterPart)
		if p.note(now, s.Clock.Now()) {
			s.enqueue(s.key)
		}
		return nil
	}
	checkpoint, err := preparer.Prepare(ctx, j)
	err = ratelimit.WithRetryAt(err, s.Clock.Now())
	if checkpoint == part.checkpoint {
		return part, err
	}
	return made{checkpoint: checkpoint}, err
}

// begunBefore is what is known to be there of a target's preparation.
func (s *scope) begunBefore(i int, hash string) made {
	if known := s.preparations.known(s.key, i, s.post.UID, hash); known != nil && known.progress().checkpoint != "" {
		return known.progress()
	}
	t := posting.Target(s.post, i)
	if t.Prepared != nil && t.Prepared.ContentHash == hash && t.Prepared.Checkpoint != "" {
		return made{checkpoint: t.Prepared.Checkpoint}
	}
	return made{checkpoint: attempt.Checkpoint(t.Attempt, hash)}
}

// noteProgress puts down how far the upload of a target has come, so that another
// process can go on from there. It reports whether that is news worth a write.
func (s *scope) noteProgress(i int, p *preparation) (changed bool) {
	t, part := posting.Target(s.post, i), p.progress()
	if part.checkpoint == "" || t.Prepared != nil && t.Prepared.ContentHash == p.hash && t.Prepared.Checkpoint == part.checkpoint {
		return false
	}
	t.Prepared = &v1alpha1.Prepared{
		ContentHash: p.hash, Checkpoint: part.checkpoint, Secret: part.secret != "", MadeAt: v1alpha1.NewTime(s.Clock.Now()),
	}
	return true
}

// patience is how long a preparation may take.
func patience(c *platforms.Content) time.Duration {
	var bytes int64
	for i := range c.Media {
		bytes += c.Media[i].Size
	}
	return prepareWithin + time.Duration(bytes/slowest)*time.Second
}

// lanesPerAccount is how many texts are prepared for one account at once. The calls go
// out one after another, so that more would only run ahead of them.
const lanesPerAccount = 4

// uploads is how many targets with files are prepared at once. Each holds some
// kilobytes of a file at a time. Teams share them as they share the workers.
const uploads = 32

// place takes a place for a preparation, and returns what gives it back: in one of
// its account's lanes for a text, among the uploads for files, which take longer
// and more of the network. It returns nil if none is free; then the post is woken
// when one is.
func (s *scope) place(sh *shipment, files bool) (done func()) {
	if files {
		w := s.waiter()
		w.ID = uploadID(w.ID, sh.index)
		if len(s.uploads.Enter(w, []string{w.ID})) == 0 {
			return nil
		}
		return func() { s.uploads.Done(w.ID) }
	}
	first := int(s.spread(lanesPerAccount))
	for i := range lanesPerAccount {
		lane := fmt.Sprintf("%s/prepare/%d", sh.conn.UID, (first+i)%lanesPerAccount)
		if s.lanes.TryAcquire(lane, s.waiter()) {
			return func() { s.lanes.Release(lane) }
		}
	}
	return nil
}

// uploadID names the waiter of a target of a post.
func uploadID(post string, target int) string { return fmt.Sprintf("%s#%d", post, target) }

// maxTargets is how many targets a post has at most, by its schema.
const maxTargets = 100

// passUploads lets others have the places that were kept for a post and that it
// did not take in a pass.
func (r *Reconciler) passUploads(post string, targets int) {
	for i := range targets {
		r.uploads.Pass(uploadID(post, i))
	}
}

// endSoon reports whether a preparation is under way for which the post is
// patient, and has the post come back when it is no longer.
func (s *scope) endSoon(running map[*shipment]*preparation) (patient bool) {
	now := s.Clock.Now()
	for _, p := range running {
		if end := p.begunAt.Add(preparePatience); !p.finished() && end.After(now) {
			patient = true
			if s.patientUntil.IsZero() || end.Before(s.patientUntil) {
				s.patientUntil = end
			}
		}
	}
	return patient
}

// notPrepared notes that a target cannot be sent yet, or at all, and lets those
// know who can do something about it.
func (s *scope) notPrepared(ctx context.Context, sh *shipment, err *platforms.Error) {
	s.preparations.drop(s.key, sh.index)
	t := posting.Target(s.post, sh.index)
	now := s.Clock.Now()
	since := now
	if t.TryUntil != nil {
		since = t.TryUntil.Add(-s.StartingDeadline)
	}
	if e := attempt.NotPrepared(t, err, since, now); e != nil {
		s.log.Error(e, "cannot note that a target was not prepared", "target", sh.index)
		return
	}
	if t.Phase != v1alpha1.PhaseFailed {
		t.Phase = posting.TargetPhaseOf(s.post, sh.index)
	}
	s.log.Info("not prepared", "uid", s.post.UID, "target", sh.index, "platform", sh.conn.Spec.Platform, "class", err.Class, "problem", err.Message, "cause", err.Err)
	sh.attempt = s.NewID()
	sh.result = platforms.Result{Outcome: platforms.NotSent, Err: err}
	s.tell(ctx, sh)
}
