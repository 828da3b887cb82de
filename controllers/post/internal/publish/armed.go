// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

// Failpoints of a group.
const (
	PointAfterArm   = "after-arm"
	PointBeforeOpen = "before-open"
	PointAfterOpen  = "after-open"
)

// openStep is how long the wait for a group's time is at most before the clock is read again: it may be corrected.
const openStep = time.Second

// ArmedHooks connects an armed post to the controller. Its reconciliation has ended.
type ArmedHooks interface {
	Hooks
	// Calls is called just before an armed call. It returns why the account must not be called now, or nil.
	Calls(d *Delivery) *platforms.Error
	// Ended is called after the last call was recorded, with the results that could not be recorded.
	Ended(ctx context.Context, unrecorded map[string]delivery.Result)
}

// Arm claims deliveries ahead of their time, in one write and in a group, and returns when the claim is stored. Each is
// sent exactly once when its group is open, or immediately if the claim is stored after that, and its result is
// recorded. after returns the hooks for the rest, given the post as the claim returned it.
func (p *Publisher) Arm(ctx context.Context, pass Hooks, post *v1alpha1.Post, memory *WriteCache, deliveries []*Delivery,
	after func(post *v1alpha1.Post) ArmedHooks,
) error {
	r := &run{Publisher: p, hooks: pass, post: post, cache: memory}
	if err := r.secure(ctx); err != nil {
		return err
	}
	due := posting.Of(post).Due()
	accounts := make([]string, len(deliveries))
	for i, d := range deliveries {
		accounts[i] = d.Gate()
	}
	var err error
	if r.group, err = p.Groups.join(ctx, due, accounts); err != nil {
		return err
	}
	if err := r.claim(ctx, deliveries); err != nil {
		return err
	}
	r.Failpoint(PointAfterArm)
	stored := post.DeepCopy()
	hooks := after(stored)
	armed := &run{Publisher: p, hooks: hooks, post: stored, cache: &WriteCache{}, group: r.group, armed: hooks, deliveries: deliveries}
	p.Groups.add(r.group, armed)
	return nil
}

// openInTime opens a group when it is due and makes its calls. If this process stops before, another one closes the
// group.
func (g *Groups) openInTime(ctx context.Context, gr *group) {
	for left := gr.due.Sub(g.o.Clock.Now()); left > 0; left = gr.due.Sub(g.o.Clock.Now()) {
		select {
		case <-g.o.Clock.After(min(left, openStep)):
		case <-ctx.Done():
			return
		}
	}
	gr.mu.Lock()
	gr.over = true
	members := slices.Clone(gr.members)
	gr.mu.Unlock()
	err := g.open(ctx, gr, members)
	gr.mu.Lock()
	gr.ended, gr.err = true, err
	g.send(ctx, gr.members, err)
	gr.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used[gr.slot] = false
	delete(g.filling, gr.due.UnixMilli())
}

// send makes the calls of posts whose group was opened, or records that they are not made. If this process stopped
// before, another one closes the group.
func (g *Groups) send(ctx context.Context, posts []*run, notOpened error) {
	if errors.Is(notOpened, context.Canceled) {
		return
	}
	for _, r := range posts {
		r.queue(notOpened)
	}
	for _, r := range posts {
		g.calls.Go(func() { r.deliver(ctx) })
	}
}

// open opens a group in one write, which is never retried: whatever the error, none of its calls are made. Posts whose
// team is suspended are left out first.
func (g *Groups) open(ctx context.Context, gr *group, members []*run) error {
	for _, r := range members {
		r.withheld = r.hooks.Withheld(ctx)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped before opening the group: %w", err)
	}
	g.o.Failpoint(PointBeforeOpen)
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.o.Within)
	defer cancel()
	g.describe(gr.lease, "open")
	if err := g.o.Client.Update(writing, gr.lease); err != nil {
		g.o.Log.Error(err, "cannot open a group; its posts are claimed again", "group", gr.ref, "posts", len(members))
		return fmt.Errorf("%w: %w", errNotOpened, err)
	}
	g.o.Failpoint(PointAfterOpen)
	return nil
}

// queue queues the calls of an armed post for the gates of their accounts, in the order in which they were armed. If
// the group was not opened, the calls are not made.
func (r *run) queue(notOpened error) {
	for _, d := range r.deliveries {
		if r.withheld && notOpened == nil {
			notOpened = ErrWithheld
		}
		if notOpened != nil {
			d.refused = platforms.Errorf(platforms.ClassTransient, "%v", notOpened)
			d.turn = func() (done func()) { return func() {} }
			continue
		}
		id := fmt.Sprintf("%s#%d", r.key(), d.Target)
		wait := r.Scheduler.QueueArmed(dispatch.Waiter{ID: id, Team: r.post.Namespace, Due: r.group.due}, d.Gate())
		d.turn = func() (done func()) {
			expired := r.Clock.NewTimer(delivery.ArmedWindow(r.group.due.Sub(r.Clock.Now()), r.SendWindow))
			defer expired.Stop()
			if !wait(expired.C()) {
				d.refused = platforms.Errorf(platforms.ClassTransient, "other calls for the account took until the time to send had passed")
				return func() {}
			}
			if d.refused = r.armed.Calls(d); d.refused == nil {
				r.ClaimStarted(d, r.group.due)
			}
			return func() { r.Scheduler.Done(id) }
		}
	}
}

// deliver makes the calls of an armed post and records their results.
func (r *run) deliver(ctx context.Context) {
	if err := r.sendAndRecord(ctx, r.deliveries); err != nil {
		r.log(ctx, r.post).Error(err, "the results of an armed post are recorded later", "name", client.ObjectKeyFromObject(r.post).String())
	}
	r.armed.Ended(context.WithoutCancel(ctx), r.cache.Results)
}
