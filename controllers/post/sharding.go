// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"math"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/controllers/post/internal/lookup"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// Shard is the shard whose posts a Reconciler delivers; see package internal/publish.
type Shard = publish.Shard

// sharding keeps the gates of accounts closed while the holder of another version of the shard may be calling them. If
// there is only one shard, the gates are never closed.
type sharding struct {
	o         *Options
	scheduler *dispatch.Scheduler

	mu sync.Mutex
	// gates holds the closed gates of each closed account.
	gates map[account]map[string]struct{}
	// rolledBackAt is the time when the last rollback of the cluster was detected, or zero.
	rolledBackAt time.Time
}

// account is an account that posts are published on.
type account struct {
	platform v1alpha1.Platform
	id       string
}

func accountOf(conn *v1alpha1.Connection) account {
	return account{conn.Spec.Platform, conn.Spec.AccountID}
}

func newSharding(o *Options, scheduler *dispatch.Scheduler) *sharding {
	return &sharding{o: o, scheduler: scheduler, gates: map[account]map[string]struct{}{}}
}

// setGate closes the gate of a delivery's account if necessary. It must be called before the gate is requested. The gate
// is opened for its first waiter when the other process's call must be over, or its end is recorded. rolledBackAt is the
// time when a rollback of the cluster was detected, or zero.
func (s *sharding) setGate(ctx context.Context, d *publish.Delivery, rolledBackAt time.Time) error {
	if s.o.Shard == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	on := accountOf(d.Conn)
	s.rolledBackAt = rolledBackAt
	until, err := s.closedUntil(ctx, on, rolledBackAt)
	if err != nil || !s.o.Clock.Now().Before(until) {
		return err
	}
	if s.gates[on] == nil {
		go s.openAt(context.WithoutCancel(ctx), on, until)
	}
	insert(s.gates, on, d.Gate())
	s.scheduler.SetClosed(d.Gate(), true)
	return nil
}

// closed returns the time when all of the deliveries' accounts are open, or zero if they are.
func (s *sharding) closed(ctx context.Context, deliveries []*publish.Delivery, rolledBackAt time.Time) (until time.Time, err error) {
	for _, d := range deliveries {
		at, err := s.closedUntil(ctx, accountOf(d.Conn), rolledBackAt)
		if err != nil {
			return time.Time{}, err
		}
		if s.o.Clock.Now().Before(at) && at.After(until) {
			until = at
		}
	}
	return until, nil
}

// closedUntil returns the end of the last call that another holder may be making on an account, or zero. A snapshot of
// the cluster may lack the claims of running calls: after a rollback, all accounts stay closed until such calls must be
// over.
func (s *sharding) closedUntil(ctx context.Context, on account, rolledBackAt time.Time) (until time.Time, err error) {
	if s.o.Shard == nil {
		return time.Time{}, nil
	}
	if _, others, err := s.shardsOf(ctx, on); err != nil {
		return time.Time{}, err
	} else if others {
		return s.o.Clock.Now().Add(linkedPause), nil
	}
	timing := s.timing(on.platform)
	if !rolledBackAt.IsZero() {
		window := delivery.ArmedWindow(delivery.ArmAhead(math.MaxInt32), timing.SendWindow)
		until = rolledBackAt.Add(window + timing.CallTimeout + 2*timing.ClockMargin)
	}
	posts, err := lookup.OpenOn(ctx, s.o.Client, on.platform, on.id)
	if err != nil {
		return time.Time{}, err //nolint:wrapcheck // the error names the operation
	}
	for i := range posts {
		for n := range posts[i].Status.Targets {
			t := &posts[i].Status.Targets[n]
			if t.Platform != on.platform || t.Attempt == nil || t.Attempt.AccountID != on.id {
				continue
			}
			if at := attempt.ClosedUntil(t.Attempt, s.o.Shard.Version, timing); at.After(until) {
				until = at
			}
		}
	}
	return until, nil
}

// linkedPause is the time between two checks of an account whose teams have different shards.
const linkedPause = time.Second

// shardsOf reports whether an account belongs to teams of this shard, and whether it belongs to teams of others. The
// leader moves them to one of these. Until then, nothing is claimed: lookups tell the posts of an account apart in the
// memory of one process.
func (s *sharding) shardsOf(ctx context.Context, on account) (this, others bool, err error) {
	namespaces, err := lookup.NamespacesOf(ctx, s.o.Client, on.platform, on.id)
	if err != nil {
		return false, false, err //nolint:wrapcheck // the error names the operation
	}
	for _, namespace := range namespaces {
		team, err := s.o.Team(ctx, namespace)
		if err != nil {
			return false, false, err
		}
		if team == nil || team.Status.Shard == "" {
			continue
		}
		is := team.Status.Shard == s.o.Shard.Name
		this, others = this || is, others || !is || team.Moving()
	}
	return this, others, nil
}

// timing returns the times that determine when a call is over.
func (s *sharding) timing(platform v1alpha1.Platform) attempt.Timing {
	timing := attempt.Timing{SendWindow: s.o.SendWindow, ClockMargin: s.o.ClockMargin}
	if to, ok := s.o.Platforms[platform].(platforms.Publisher); ok {
		timing.CallTimeout = to.Capabilities().CallTimeout
	}
	return timing
}

// openAt opens an account's gates at the given time, or later if the account is closed for longer by then.
func (s *sharding) openAt(ctx context.Context, on account, until time.Time) {
	for {
		<-s.o.Clock.After(until.Sub(s.o.Clock.Now()))
		if until = s.open(ctx, on); until.IsZero() {
			return
		}
	}
}

// open opens an account's gates unless the account is still closed, and returns the time until which it is. It also opens
// those that are of no use to this process anymore, instead of checking them for ever: each claim closes its gate again
// if necessary, and is refused if its team has another shard or the shard is no longer held.
func (s *sharding) open(ctx context.Context, on account) (until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[on] == nil {
		return time.Time{}
	}
	until, err := s.closedUntil(ctx, on, s.rolledBackAt)
	if err != nil && s.o.Shard.IsHeld() {
		return s.o.Clock.Now().Add(time.Second) // the cache is not filled
	}
	if s.o.Clock.Now().Before(until) && s.awaits(ctx, on) {
		return until
	}
	for gate := range s.gates[on] {
		s.scheduler.SetClosed(gate, false)
	}
	delete(s.gates, on)
	return time.Time{}
}

// awaits reports whether this process may publish on an account once it is open.
func (s *sharding) awaits(ctx context.Context, on account) bool {
	if !s.o.Shard.IsHeld() {
		return false
	}
	this, others, err := s.shardsOf(ctx, on)
	return this || !others || err != nil
}

// openAfterCalls opens accounts' gates when a change to a post shows that another holder's call has ended.
func (s *sharding) openAfterCalls() handler.EventHandler {
	ended := func(ctx context.Context, before client.Object) {
		post, ok := before.(*v1alpha1.Post)
		if !ok {
			return
		}
		for i := range post.Status.Targets {
			t := &post.Status.Targets[i]
			if !attempt.ClosedUntil(t.Attempt, s.o.Shard.Version, s.timing(t.Platform)).IsZero() {
				s.open(ctx, account{t.Platform, t.Attempt.AccountID})
			}
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ workqueue) { ended(ctx, e.ObjectOld) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ workqueue) { ended(ctx, e.Object) },
	}
}
