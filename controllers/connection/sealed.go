// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/credentials/safe"
	"github.com/herald-social/herald/internal/retries"
)

// seal keeps a renewed token for the next start of this container, before it is stored for the
// first time: the process may end in the middle of that. It is of use only where the refresh
// token was spent; elsewhere the token is renewed once more.
func (r *Reconciler) seal(ctx context.Context, pending unsaved) {
	before, renewed := pending.renewal.Before.Token, pending.renewal.Token
	if pending.left || before.Refresh == "" || before.Refresh == renewed.Refresh {
		return
	}
	if err := r.Safe.Put(safe.Entry{Account: safe.AccountOf(pending.conn), Token: renewed, From: pending.from}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token is in memory alone until it is stored; see to the folder credentials.unsaved.directory")
	}
}

// settled forgets a renewed token, which is stored, or of no use any more.
func (r *Reconciler) settled(ctx context.Context, key types.NamespacedName, account safe.Account) {
	r.unsaved.Delete(key)
	if err := r.Safe.Remove(account); err != nil {
		// The next start finds that the working copy holds it, or a newer one.
		ctrl.LoggerFrom(ctx).Error(err, "nothing is lost", "copy", key)
	}
}

// takeOut takes over the tokens that a process before this one left, so that no examination
// renews with a token that was spent for one of them.
func (r *Reconciler) takeOut() {
	for _, e := range r.Safe.Entries() {
		conn := &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Account.Namespace, Name: e.Account.Connection, UID: e.Account.UID},
			Spec:       v1alpha1.ConnectionSpec{Platform: e.Account.Platform, AccountID: e.Account.AccountID},
		}
		r.unsaved.Store(workingKey(conn), unsaved{conn: conn, renewal: credentials.Renewal{Token: e.Token}, from: e.From, left: true})
	}
}

// Recover stores the renewed tokens that a process before this one left, and tries again until
// all are stored or ctx ends. It waits neither for the lease nor for the cache: while the claim
// of the renewal holds, another manager that leads by now does not spend the token before, and
// the write is one of the working copy as it was read, if that holds this token before still.
func (r *Reconciler) Recover(ctx context.Context) {
	for pause := retries.First; ; pause = min(2*pause, retries.Most) {
		left := 0
		r.unsaved.Range(func(_, value any) bool {
			if pending, ok := value.(unsaved); ok && pending.left && !r.recovered(ctx, pending) {
				left++
			}
			return ctx.Err() == nil
		})
		if left == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.Clock.After(pause):
		}
	}
}

// recoverWithin bounds how long one account keeps the others waiting.
const recoverWithin = 10 * time.Second

// recovered stores one token, and reports whether nothing is left to do.
func (r *Reconciler) recovered(ctx context.Context, pending unsaved) bool {
	log := ctrl.LoggerFrom(ctx).WithValues("connection", pending.conn.Namespace+"/"+pending.conn.Name, "copy", workingKey(pending.conn))
	trying, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	done, err := r.turns.take(trying, workingKey(pending.conn))
	if err != nil {
		return false
	}
	defer done()
	version, err := r.rescue(ctx, pending.conn)
	switch {
	case credentials.ReasonOf(err) == credentials.Unavailable:
		return false
	case err != nil:
		// save has said so.
	case version != "":
		log.Info("a renewed token was stored that this container could not store before it ended")
	default:
		log.Info("a renewed token was dropped that this container could not store before it ended: the account has another one by now, or was disconnected")
	}
	return true
}
