// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sweeps repeats what one manager, the one that leads, does by the clock: looking for
// what no event tells of.
package sweeps

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Sweep is what is repeated while its manager leads.
type Sweep struct {
	// Name is that of its log.
	Name string
	// Do makes one sweep. An error goes into the log, and the next sweep tries again.
	Do func(context.Context) error
	// First is the pause before the first sweep: at its start a manager has posts to send.
	// Every is the pause after each.
	First, Every time.Duration
	// Within bounds one sweep, so that a server which accepts a request and then says
	// nothing does not hold the others up for ever.
	Within time.Duration
	Clock  clock.Clock
}

var _ manager.LeaderElectionRunnable = Sweep{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (Sweep) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (s Sweep) Start(ctx context.Context) error {
	log := ctrl.Log.WithName(s.Name)
	timer := s.Clock.NewTimer(s.First)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
		}
		if err := s.once(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "a sweep could not do everything; the next one tries again", "in", s.Every.String())
		}
		timer.Reset(s.Every)
	}
}

func (s Sweep) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	return s.Do(ctx)
}
