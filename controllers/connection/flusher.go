// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/herald-social/herald/internal/credentials"
)

// flusher stores the remaining renewed tokens during shutdown. Examinations have finished by then, and the Kubernetes
// API may recover before the process is killed.
type flusher struct{ *tokenSaver }

// Flusher returns the Runnable that stores unsaved tokens during shutdown. SetupWithManager adds it.
func (r *Reconciler) Flusher() manager.Runnable { return flusher{r.tokens} }

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader renews tokens.
func (flusher) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. The manager waits for it until the shutdown timeout.
func (k flusher) Start(ctx context.Context) error {
	<-ctx.Done()
	k.stopping.Store(true)
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.grace)
	defer cancel()
	k.flush(saving)
	return nil
}

// flush stores the unsaved tokens until ctx is done. An examination that is still finishing may store the same one.
func (k flusher) flush(ctx context.Context) {
	var saving sync.WaitGroup
	k.unsaved.Range(func(key, value any) bool {
		pending, ok := value.(unsaved)
		if !ok {
			return true
		}
		saving.Go(func() {
			if _, err := k.write(ctx, pending); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "a renewed token could not be stored during shutdown; the account may need to be reconnected", "copy", key)
				return
			}
			k.discard(ctx, workingKey(pending.conn), credentials.SpoolAccountOf(pending.conn))
		})
		return true
	})
	saving.Wait()
}
