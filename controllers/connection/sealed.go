// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/pacing"
)

// Recover stores the renewed tokens that an earlier process left behind, and retries until all are stored or ctx is
// done. It waits neither for the lease nor for the cache. This is safe: while the renewal's claim is valid, another
// leader does not spend the previous token, and the write requires a working copy that still holds that token.
func (r *Reconciler) Recover(ctx context.Context) { r.tokens.recoverSpooled(ctx) }

// loadSpooled loads the tokens that an earlier process left behind, so that no examination renews with a spent refresh
// token. It returns the tokens that are new to this process, and whether all could be read; see Spool.HasUnreadable.
func (s *tokenSaver) loadSpooled() (found []unsaved, all bool) {
	entries, all := s.spool.Entries()
	for _, e := range entries {
		conn := &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Account.Namespace, Name: e.Account.Connection, UID: e.Account.UID},
			Spec:       v1alpha1.ConnectionSpec{Platform: e.Account.Platform, AccountID: e.Account.AccountID},
		}
		pending := unsaved{conn: conn, renewal: credentials.Renewal{Token: e.Token}, from: e.From, inherited: true}
		if _, known := s.unsaved.LoadOrStore(workingKey(conn), pending); !known {
			found = append(found, pending)
		}
	}
	return found, all
}

// recoverSpooled stores the tokens of earlier processes; see Reconciler.Recover. The tokens are stored concurrently, because their claims expire at the
// same time. A request's timeout is a fraction of that time.
func (s *tokenSaver) recoverSpooled(ctx context.Context) {
	var storing sync.WaitGroup
	defer storing.Wait()
	found, all := s.inherited, s.inheritedAll
	s.inherited = nil
	for pause := pacing.FirstRetry; ; pause = min(2*pause, pacing.MaxRetry) {
		for _, pending := range found {
			storing.Go(func() { s.storeInherited(ctx, pending) })
		}
		if all || !sleep(ctx, s.clock, pause) {
			return
		}
		found, all = s.loadSpooled()
	}
}

// storeInherited stores one token and retries until it is stored or ctx is done.
func (s *tokenSaver) storeInherited(ctx context.Context, pending unsaved) {
	for pause := pacing.FirstRetry; !s.tryRecover(ctx, pending) && sleep(ctx, s.clock, pause); {
		pause = min(2*pause, pacing.MaxRetry)
	}
}

func (s *tokenSaver) tryRecover(ctx context.Context, pending unsaved) bool {
	key := workingKey(pending.conn)
	log := ctrl.LoggerFrom(ctx).WithValues("connection", pending.conn.Namespace+"/"+pending.conn.Name, "copy", key)
	done, err := s.locks.acquire(ctx, key)
	if err != nil {
		return false
	}
	defer done()
	if now, _ := s.unsaved.Load(key); now == nil {
		return true // an examination has stored it
	}
	version, err := s.rescue(ctx, pending.conn)
	switch {
	case credentials.ReasonOf(err) == credentials.Unavailable:
		return s.dropIfNamespaceGone(ctx, pending, err)
	case err != nil:
		// save has logged the error.
	case version != "":
		log.Info("stored a renewed token from before the restart")
	default:
		log.Info("dropped a renewed token from before the restart: the account has another one or was disconnected")
	}
	return true
}

func sleep(ctx context.Context, c clock.Clock, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.After(pause):
		return true
	}
}
