// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/herald-social/herald/internal/credentials/spool"
)

// flusher stores, while the manager stops, the renewed tokens that are not stored yet: examinations
// have ended by then, and the Kubernetes API may come back before the process has to go.
type flusher struct{ *Reconciler }

// Flusher returns what stores, when the manager stops, the renewed tokens that are not stored yet.
// SetupWithManager adds it.
func (r *Reconciler) Flusher() manager.Runnable { return flusher{r} }

// NeedLeaderElection implements manager.LeaderElectionRunnable: who leads has renewed them.
func (flusher) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. The manager waits for it until its time to stop is over.
func (k flusher) Start(ctx context.Context) error {
	<-ctx.Done()
	k.stopping.Store(true)
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.Grace)
	defer cancel()
	k.flush(saving)
	return nil
}

// flush stores what is not stored yet, until ctx ends. An examination that is being finished may
// store the same, which is no conflict.
func (k flusher) flush(ctx context.Context) {
	var saving sync.WaitGroup
	k.unsaved.Range(func(key, value any) bool {
		pending, ok := value.(unsaved)
		if !ok {
			return true
		}
		saving.Go(func() {
			if _, err := k.store(ctx, pending); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "a renewed token could not be stored while the manager stopped; the account may have to be connected again", "copy", key)
				return
			}
			k.discardSaved(ctx, workingKey(pending.conn), spool.AccountOf(pending.conn))
		})
		return true
	})
	saving.Wait()
}
