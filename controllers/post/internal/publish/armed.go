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

// openPollInterval is the interval at which the clock is read again while a group waits to be due, since the clock may
// be corrected in the meantime.
const openPollInterval = time.Second

// ArmedHooks connects an armed post to the controller. Its reconciliation has ended.
type ArmedHooks interface {
	Hooks
	// Calls is called just before an armed call. It returns the reason not to make the call now, or nil, and updates the
	// delivery's connection and token. post is the post as returned by the claim.
	Calls(ctx context.Context, post *v1alpha1.Post, d *Delivery) *platforms.Error
	// Ended is called after the last call was recorded, with the results that could not be recorded.
	Ended(ctx context.Context, unrecorded map[string]delivery.Result)
}

// Arm claims deliveries before they are due, in one write and as part of a group, and returns when the claim is stored.
// Each is sent exactly once when its group is open, or immediately if the claim is stored after that, and its result is
// recorded. after returns the hooks for everything after the claim, given the post as returned by the claim. bytes is
// the post's size.
func (p *Publisher) Arm(ctx context.Context, pass Hooks, post *v1alpha1.Post, memory *WriteCache, deliveries []*Delivery, bytes int,
	after func(post *v1alpha1.Post) ArmedHooks,
) error {
	r := &run{Publisher: p, hooks: pass, post: post, cache: memory}
	if err := r.secure(ctx); err != nil {
		return err
	}
	due := posting.Of(post).Due()
	place := place{bytes: bytes}
	for _, d := range deliveries {
		place.accounts = append(place.accounts, armedAccount{d.Gate(), d.Conn.Spec.Platform})
	}
	var err error
	if r.group, err = p.Groups.join(ctx, due, place); err != nil {
		return err
	}
	if err := r.claim(ctx, deliveries); err != nil {
		p.Groups.release(r.group, place)
		return err
	}
	r.Failpoint(PointAfterArm)
	stored := post.DeepCopy()
	hooks := after(stored)
	armed := &run{Publisher: p, hooks: hooks, post: stored, cache: &WriteCache{}, group: r.group, armed: hooks, deliveries: deliveries, bytes: bytes}
	for _, d := range deliveries {
		// Its ticket keeps the account's later posts behind it.
		waiter := dispatch.Waiter{ID: d.Attempt, Team: post.Namespace, Platform: string(d.Conn.Spec.Platform), Due: due}
		armed.calls = append(armed.calls, p.Scheduler.QueueArmed(waiter, d.Gate()))
	}
	p.Groups.add(r.group, armed) //nolint:contextcheck // its calls are made after the reconciliation has ended
	return nil
}

// openInTime opens a group when it is due and makes its calls. If this process stops before that, another one closes
// the group.
func (g *Groups) openInTime(ctx context.Context, gr *group) {
	for left := gr.due.Sub(g.o.Clock.Now()); left > 0; left = gr.due.Sub(g.o.Clock.Now()) {
		select {
		case <-g.o.Clock.After(min(left, openPollInterval)):
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
// before that, another one closes the group.
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

// open opens a group in one write, which is never retried: whatever the error, none of its calls are made. Calls of
// posts whose team is suspended are not made either.
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

// queue lets the calls of an armed post get their turns. If the group was not opened, they are not made.
func (r *run) queue(notOpened error) {
	if r.withheld && notOpened == nil {
		notOpened = ErrWithheld
	}
	for i, d := range r.deliveries {
		call := r.calls[i]
		if notOpened != nil {
			call.Done()
			d.refused = platforms.Errorf(platforms.ClassTransient, "%v", notOpened)
			d.turn = func(context.Context, *v1alpha1.Post) (done func()) { return func() {} }
			continue
		}
		call.Open()
		d.turn = func(ctx context.Context, post *v1alpha1.Post) (done func()) {
			expired := r.Clock.NewTimer(delivery.ArmedWindow(r.group.due.Sub(r.Clock.Now()), r.SendWindow))
			defer expired.Stop()
			if !call.Wait(expired.C()) {
				d.refused = platforms.Errorf(platforms.ClassTransient, "other calls for the account took until the time to send had passed")
				return func() {}
			}
			if d.refused = r.armed.Calls(ctx, post, d); d.refused == nil {
				r.ClaimStarted(d, r.group.due)
			}
			return call.Done
		}
	}
}

// deliver makes the calls of an armed post and records their results.
func (r *run) deliver(ctx context.Context) {
	defer r.Groups.forget(r.bytes)
	if err := r.sendAndRecord(ctx, r.deliveries); err != nil {
		r.log(ctx, r.post).Error(err, "the results of an armed post are recorded later", "name", client.ObjectKeyFromObject(r.post).String())
	}
	r.armed.Ended(context.WithoutCancel(ctx), r.cache.Results)
}

// ticket returns the id of a call in the scheduler. Each armed call has a different one.
func (r *run) ticket(d *Delivery) string {
	if d.turn != nil {
		return d.Attempt
	}
	return r.key()
}
