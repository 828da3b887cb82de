// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/platforms"
)

// deliveryBuilder builds the preparations and the deliveries of a post's targets.
type deliveryBuilder struct {
	o           *Options
	preparer    *prepare.Preparer
	suspensions *suspensionReader
	reporter    *reporter
	queue       *postQueue
}

// target returns a target in the form that its preparation requires.
func (b *deliveryBuilder) target(p *reconciliation, i int) *prepare.Target {
	conn := p.conn(i)
	return &prepare.Target{
		Post: p.Post, Index: i, Conn: conn, Media: p.media, Token: p.tokens[conn.Name], Converts: p.converts,
		Wake: func() { b.queue.enqueue(p.key) },
	}
}

// delivery returns the delivery of a target, with the result of its preparation.
func (b *deliveryBuilder) delivery(p *reconciliation, i int) *publish.Delivery {
	conn := p.conn(i)
	to, _ := b.o.Platforms[conn.Spec.Platform].(platforms.Publisher)
	d := &publish.Delivery{Target: i, Conn: conn, To: to, Token: p.tokens[conn.Name]}
	if ready := b.preparer.Result(&p.state.prepare, b.target(p, i)); ready != nil {
		b.o.Failpoint(prepare.PointAfterPrepare)
		d.Checkpoint, d.Secret, d.SecretHash = ready.Checkpoint, ready.Secret, ready.SecretHash
		d.Unverified, d.Ambiguous = ready.Unverified, ready.Ambiguous
	}
	return d
}

// hooks returns the hooks of a reconciliation's deliveries.
func (b *deliveryBuilder) hooks(p *reconciliation) *publishHooks { return &publishHooks{b, p} }
