// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/pacing"
)

// seal writes a renewed token to the spool before the first attempt to store it, in case the process exits in between.
// Only a renewal that spent a refresh token needs this; other tokens can be renewed again.
func (r *Reconciler) seal(ctx context.Context, pending unsaved) {
	before, renewed := pending.renewal.Before.Token, pending.renewal.Token
	if pending.inherited || before.Refresh == "" || before.Refresh == renewed.Refresh {
		return
	}
	if err := r.Spool.Save(credentials.UnsavedToken{Account: credentials.SpoolAccountOf(pending.conn), Token: renewed, From: pending.from}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token is only in memory until it is stored; check the folder credentials.unsaved.directory")
	}
}

func (r *Reconciler) discardSaved(ctx context.Context, key types.NamespacedName, account credentials.SpoolAccount) {
	r.unsaved.Delete(key)
	if err := r.Spool.Remove(account); err != nil {
		// The next start sees that the working copy holds the same token or a newer one.
		ctrl.LoggerFrom(ctx).Error(err, "cannot remove the spooled copy of a token; nothing is lost", "copy", key)
	}
}

// loadSpooled loads the tokens that an earlier process left behind, so that no examination renews with a spent refresh
// token. It returns the tokens that are new to this process, and whether all could be read; see Spool.HasUnreadable.
func (r *Reconciler) loadSpooled() (found []unsaved, all bool) {
	entries, all := r.Spool.Entries()
	for _, e := range entries {
		conn := &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Account.Namespace, Name: e.Account.Connection, UID: e.Account.UID},
			Spec:       v1alpha1.ConnectionSpec{Platform: e.Account.Platform, AccountID: e.Account.AccountID},
		}
		pending := unsaved{conn: conn, renewal: credentials.Renewal{Token: e.Token}, from: e.From, inherited: true}
		if _, known := r.unsaved.LoadOrStore(workingKey(conn), pending); !known {
			found = append(found, pending)
		}
	}
	return found, all
}

// Recover stores the renewed tokens that an earlier process left behind, and retries until all are stored or ctx is
// done. It waits neither for the lease nor for the cache. This is safe: while the renewal's claim is valid, another
// leader does not spend the previous token, and the write requires a working copy that still holds that token.
//
// The tokens are stored concurrently, because their claims expire at the same time. A request's timeout is a fraction
// of that time.
func (r *Reconciler) Recover(ctx context.Context) {
	var storing sync.WaitGroup
	defer storing.Wait()
	found, all := r.inherited, r.inheritedAll
	r.inherited = nil
	for pause := pacing.FirstRetry; ; pause = min(2*pause, pacing.MaxRetry) {
		for _, pending := range found {
			storing.Go(func() { r.storeInherited(ctx, pending) })
		}
		if all || !r.sleep(ctx, pause) {
			return
		}
		found, all = r.loadSpooled()
	}
}

// storeInherited stores one token and retries until it is stored or ctx is done.
func (r *Reconciler) storeInherited(ctx context.Context, pending unsaved) {
	for pause := pacing.FirstRetry; !r.tryRecover(ctx, pending) && r.sleep(ctx, pause); {
		pause = min(2*pause, pacing.MaxRetry)
	}
}

func (r *Reconciler) sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.Clock.After(pause):
		return true
	}
}

func (r *Reconciler) tryRecover(ctx context.Context, pending unsaved) bool {
	key := workingKey(pending.conn)
	log := ctrl.LoggerFrom(ctx).WithValues("connection", pending.conn.Namespace+"/"+pending.conn.Name, "copy", key)
	done, err := r.locks.acquire(ctx, key)
	if err != nil {
		return false
	}
	defer done()
	if now, _ := r.unsaved.Load(key); now == nil {
		return true // an examination has stored it
	}
	version, err := r.rescue(ctx, pending.conn)
	switch {
	case credentials.ReasonOf(err) == credentials.Unavailable:
		return r.dropIfNamespaceGone(ctx, pending, err)
	case err != nil:
		// save has logged the error.
	case version != "":
		log.Info("stored a renewed token from before the restart")
	default:
		log.Info("dropped a renewed token from before the restart: the account has another one or was disconnected")
	}
	return true
}
