// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"slices"

	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/delivery"
)

func (r *Reconciler) startPreparations(ctx context.Context, p *reconciliation, f *delivery.Facts, a delivery.Prepare) error {
	r.readTokens(ctx, p, slices.Concat(a.Targets, a.Hold))
	for _, i := range a.Targets {
		if p.credentials[p.conn(i).Name] == nil {
			p.calledPlatform = true
			r.preparer.Start(ctx, &p.state.prepare, *r.deliveries.target(p, i), p.now)
		}
	}
	if err := r.startHeld(ctx, p, f, a.Hold); err != nil || p.wrote {
		return err
	}
	f.SlotsRequested = true
	return r.decideAgain(ctx, p, f)
}

// startHeld starts preparations that other processes may start as well: for those that get a slot, it records that this
// process holds them. If the write fails or has no response, none start.
func (r *Reconciler) startHeld(ctx context.Context, p *reconciliation, f *delivery.Facts, targets []int) error {
	var reserved []int
	for _, i := range targets {
		if p.credentials[p.conn(i).Name] == nil && r.preparer.Reserve(r.deliveries.target(p, i)) {
			reserved = append(reserved, i)
		}
	}
	if len(reserved) == 0 {
		return nil
	}
	f.RecordHolds(reserved)
	err := r.write(ctx, p, &delivery.Write{})
	for _, i := range reserved {
		if err != nil {
			r.preparer.ReleaseReserved(r.deliveries.target(p, i))
			continue
		}
		r.o.Failpoint(PointAfterHold)
		p.calledPlatform = true
		r.preparer.StartHeld(ctx, &p.state.prepare, *r.deliveries.target(p, i), p.now)
	}
	return err
}

// endPreparations stops the preparations of a delivery.StopPreparing, or reports that of a delivery.ReportPreparation.
func (r *Reconciler) endPreparations(ctx context.Context, p *reconciliation, f *delivery.Facts, action delivery.Action) {
	if stop, ok := action.(delivery.StopPreparing); ok {
		for _, target := range stop.Targets {
			p.state.prepare.Drop(target)
		}
	}
	if report, ok := action.(delivery.ReportPreparation); ok {
		r.reportPreparation(ctx, p, f, report)
	}
}

// reportPreparation reports a failed preparation, and drops it if the post was due, so that the retry starts fresh.
func (r *Reconciler) reportPreparation(ctx context.Context, p *reconciliation, f *delivery.Facts, a delivery.ReportPreparation) {
	d := &publish.Delivery{
		Target: a.Target, Conn: p.conn(a.Target), Token: p.tokens[p.conn(a.Target).Name], Attempt: r.o.NewID(),
		Result: platforms.Result{Outcome: platforms.NotSent, Err: f.Preparation(a.Target).Err},
	}
	if !a.Ahead {
		p.state.prepare.Drop(a.Target)
	}
	r.reporter.preparation(ctx, p, d, a.Ahead)
}
