// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"time"

	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/ratelimit"
)

const (
	// baseTimeout limits a preparation without files. minBytesPerSecond is the slowest acceptable upload rate, and extends
	// the limit according to the size of the files.
	baseTimeout       = time.Minute
	minBytesPerSecond = 128 << 10
)

// Start adopts a target's preparation from the post's status, or starts one. It does not wait: a preparation wakes the
// post when it finishes. If the account or team has no free slot, the post is woken when one becomes free.
func (p *Preparer) Start(ctx context.Context, m *Preparations, t Target, now time.Time) {
	c, needed := p.converterFor(&t)
	if !needed {
		return
	}
	hash := delivery.ContentHash(t.Post, t.Index, t.Conn, t.Media)
	if m.get(&t, hash) == nil {
		if known := p.adopt(ctx, &t, hash, now, c.reusableFor()); known != nil {
			m.set(t.Index, known)
			return
		}
	}
	if leave := p.acquireSlot(&t, len(delivery.Files(t.Post, t.Index)) > 0); leave != nil {
		p.start(ctx, m, t, now, leave)
	}
}

// StartHeld starts the preparation of a target that was reserved and is held by this process. The others are released.
func (p *Preparer) StartHeld(ctx context.Context, m *Preparations, t Target, now time.Time) {
	p.start(ctx, m, t, now, func() { p.ReleaseReserved(&t) })
}

func (p *Preparer) start(ctx context.Context, m *Preparations, t Target, now time.Time, leave func()) {
	c, _ := p.converterFor(&t)
	job, hash := p.Job(&t), delivery.ContentHash(t.Post, t.Index, t.Conn, t.Media)
	before := m.get(&t, hash)
	started := &preparation{
		uid: t.Post.UID, hash: hash, startedAt: now, savedAt: now, ahead: posting.Of(t.Post).UntilDue(now) > 0, part: previousProgress(before, &t, hash),
		done: make(chan struct{}),
	}
	if before != nil && before.finished() && before.err != nil {
		started.failures = before.failures + 1
	}
	started.upload = uploadOf(&t, &job.Content, started)
	owner := ownerOf(t.Post, t.Index, hash)
	limit := timeoutFor(&job.Content)
	if p.o.Thumbnails != nil && usesThumbnail(c.rules, &job.Content) {
		limit += thumbnailTimeout
	}
	limit += c.conversionTime(&job.Content)
	ctx, started.stop = context.WithTimeout(context.WithoutCancel(ctx), limit)
	m.set(t.Index, started)
	p.trackUpload(&t, started.upload)
	go func() {
		defer started.stop()
		ctx, span := tracing.Child(ctx, "prepare")
		started.result, started.err = p.runPreparation(ctx, c, job, started, owner, t.Wake)
		trace(span, &t, started.err)
		started.endedAt = p.o.Clock.Now()
		p.finishUpload(&t, started.upload, started.err == nil, started.endedAt)
		close(started.done)
		leave()
		if started.ahead && started.err == nil {
			p.o.Failpoint(PointAfterAhead)
		}
		t.Wake()
	}()
}

func trace(span tracing.Span, t *Target, err *platforms.Error) {
	defer span.End()
	span.Number(tracing.Target, t.Index)
	span.Text(tracing.Platform, string(t.Conn.Spec.Platform))
	if err != nil {
		span.Fail(string(err.Class))
	}
}

// adopt returns the preparation from the post's status. It returns nil if there is none, or if it is too old to be used
// without the platform checking it.
func (p *Preparer) adopt(ctx context.Context, t *Target, hash string, now time.Time, fresh time.Duration) *preparation {
	recorded := posting.Of(t.Post).Target(t.Index).Prepared
	if recorded == nil || !recorded.Complete || recorded.ContentHash != hash || now.Sub(recorded.MadeAt.Time) >= fresh {
		return nil
	}
	result := Prepared{Checkpoint: recorded.Checkpoint}
	if recorded.Secret {
		kept, err := p.Session(ctx, t.Post, t.Index)
		if err != nil || kept.Checkpoint != recorded.Checkpoint {
			return nil
		}
		result.Secret = kept.Secret
	}
	return adopted(t.Post.UID, hash, result, recorded.MadeAt.Time)
}

func previousProgress(before *preparation, t *Target, hash string) Prepared {
	if before != nil && before.progress().Checkpoint != "" {
		return before.progress()
	}
	status := posting.Of(t.Post).Target(t.Index)
	if recorded := status.Prepared; recorded != nil && recorded.ContentHash == hash && recorded.Checkpoint != "" {
		return Prepared{Checkpoint: recorded.Checkpoint}
	}
	return Prepared{Checkpoint: attempt.Checkpoint(status.Attempt, hash)}
}

func (p *Preparer) runPreparation(ctx context.Context, c converter, job platforms.Job, started *preparation, owner sessionOwner, wake func()) (Prepared, *platforms.Error) {
	c.converting = func(share float64) {
		if started.converted.update(share) {
			wake()
		}
	}
	part := started.progress()
	if c.rules.SecretUploads {
		kept, err := p.sessions.load(ctx, owner)
		if err != nil {
			return Prepared{}, &platforms.Error{Class: platforms.ClassTransient, Problem: "the Secret of the post's uploads cannot be read", Err: err}
		}
		switch {
		case kept.ContentHash != owner.hash:
		case owner.matches(&kept):
			part = Prepared{kept.Checkpoint, kept.Secret}
			started.restore(part)
		case part != (Prepared{kept.Checkpoint, kept.Secret}):
			// The session has not published anything: its claim would have stored its hash, or finds it as the replaced
			// session.
			ctrllog.FromContext(ctx).Info("the Secret of the post's uploads does not match the post's status; ignoring it",
				"secret", sessionsName(owner.post.UID), "target", owner.target)
		}
		owner.foundCheckpoint = kept.Checkpoint
	}
	job.Checkpoint, job.Secret = part.Checkpoint, part.Secret
	job.StoreCheckpoint = func(ctx context.Context, checkpoint, secret string) error {
		now := Prepared{checkpoint, secret}
		fresh := secret != "" && now != part
		if fresh {
			if err := p.sessions.store(ctx, owner, now); err != nil {
				return err
			}
			owner.foundCheckpoint = checkpoint
			p.o.Failpoint(PointAfterSecret)
		}
		part = now
		p.o.Failpoint(PointAfterPart)
		// The stored session is not used again until the post's status has its hash.
		if started.recordProgress(now, p.o.Clock.Now()) || fresh {
			wake()
		}
		return nil
	}
	checkpoint, err := c.Prepare(ctx, job)
	err = ratelimit.Sanitize(err, job.Account.Token, p.o.Clock.Now())
	if checkpoint == part.Checkpoint {
		return part, err
	}
	return Prepared{Checkpoint: checkpoint}, err
}

func timeoutFor(c *platforms.Content) time.Duration {
	var bytes int64
	for i := range c.Media {
		bytes += c.Media[i].Size
	}
	return baseTimeout + time.Duration(bytes/minBytesPerSecond)*time.Second
}
