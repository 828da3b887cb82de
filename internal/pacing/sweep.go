// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Sweep is periodic work by the leader that no event triggers.
type Sweep struct {
	// Name is the name of the sweep's logger.
	Name string
	// Do makes one sweep. An error is logged, and the next sweep tries again.
	Do func(context.Context) error
	// First is the pause before the first sweep: a new manager first has posts to send. Every is the pause after a
	// sweep.
	First, Every time.Duration
	// Within is the timeout for one sweep, so that a request without a response cannot block the following sweeps.
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
