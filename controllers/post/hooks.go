// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// maxCardWait limits how long the recording of a card waits for the next card's preparation, so that one write can
// record the first and claim the second. It is short, because until that write only the platform has a record of the
// published card.
const maxCardWait = time.Second

// publishHooks are the hooks of one reconciliation's deliveries.
type publishHooks struct {
	*deliveryBuilder
	p *reconciliation
}

func (u *publishHooks) Job(post *v1alpha1.Post, d *publish.Delivery) platforms.Job {
	return u.preparer.Job(&prepare.Target{Post: post, Index: d.Target, Conn: d.Conn, Media: u.p.media, Token: d.Token, Converts: u.p.converts})
}

// Withheld implements publish.Hooks. A team may be suspended while a claim waits to be written.
func (u *publishHooks) Withheld(ctx context.Context) bool {
	return u.suspensions.now(ctx, u.p.key.Namespace)
}

func (u *publishHooks) ContentHash(post *v1alpha1.Post, d *publish.Delivery) string {
	return delivery.ContentHash(post, d.Target, d.Conn, u.p.media)
}

func (u *publishHooks) Ready(ctx context.Context, d *publish.Delivery, job *platforms.Job) *platforms.Error {
	return u.preparer.Ready(ctx, d.Conn, job)
}

func (u *publishHooks) Claimed(batch []*publish.Delivery) {
	now := u.o.Clock.Now()
	for _, d := range batch {
		u.p.state.prepare.Drop(d.Target)
		u.p.hasUploadSecret = u.p.hasUploadSecret || d.Secret != ""
		t := u.p.Target(d.Target)
		if t.Attempt.Group != "" {
			continue // its call starts when the group is open
		}
		if at := u.p.Post.Spec.ScheduledAt; at != nil && t.Attempt.Number == 1 {
			due := at.Time
			if t.SuspendedUntil != nil && t.TryUntil != nil {
				due = attempt.Deadline(t).Add(-u.o.StartingDeadline)
			}
			u.o.Metrics.Deliveries.ObserveLateness(d.Conn, due, now)
		}
	}
}

func (u *publishHooks) Answered(d *publish.Delivery) {
	u.reporter.observeLimits(u.p, d)
	u.o.Metrics.Deliveries.Published(d.Conn.Spec.Platform, d.Result.Outcome)
	u.reporter.unlisted(d.Conn.Spec.Platform, unlisted.Publish, d.Result.Err)
}

func (u *publishHooks) Recorded(ctx context.Context, batch []*publish.Delivery) {
	for _, d := range batch {
		u.reporter.result(ctx, u.p, d)
	}
}

func (u *publishHooks) Next(ctx context.Context, recorded *v1alpha1.Post, batch []*publish.Delivery) (next []*publish.Delivery) {
	var started []*prepare.Target
	now := u.o.Clock.Now()
	for _, d := range batch {
		if u.canContinue(ctx, recorded, d, now) {
			t := &prepare.Target{Post: recorded, Index: d.Target, Conn: d.Conn, Media: u.p.media, Token: d.Token, Converts: u.p.converts, Wake: func() { u.queue.enqueue(u.p.key) }}
			started = append(started, t)
			next = append(next, &publish.Delivery{Target: d.Target, Conn: d.Conn, To: d.To, Token: d.Token})
		}
	}
	ready := u.preparer.Cards(ctx, &u.p.state.prepare, started, maxCardWait)
	claimable := next[:0]
	for i, d := range next {
		if ready[i] == nil {
			continue
		}
		d.Checkpoint, d.Secret, d.SecretHash, d.Unverified = ready[i].Checkpoint, ready[i].Secret, ready[i].SecretHash, ready[i].Unverified
		claimable = append(claimable, d)
	}
	return claimable
}

// canContinue reports whether the next card of a target can be claimed in the write that records this one.
func (u *publishHooks) canContinue(ctx context.Context, recorded *v1alpha1.Post, d *publish.Delivery, now time.Time) bool {
	t := posting.Of(recorded).Target(d.Target)
	if t == nil || attempt.Settled(t) || t.Attempt == nil || t.Attempt.Outcome != v1alpha1.OutcomePosted || u.suspensions.now(ctx, u.p.key.Namespace) {
		return false
	}
	// The response to this card may have contained a rate limit.
	return u.p.limits.BlockedUntil(d.Conn, now).IsZero() && delivery.FileProblem(recorded, d.Target, u.p.media) == ""
}
