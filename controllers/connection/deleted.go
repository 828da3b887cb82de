// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/credentials/spool"
)

const (
	// tokenRetention is how long the tokens of an account are kept after its last connection went.
	// A tool that deletes and applies again does so within minutes; a wrong path that had
	// it prune everything is noticed within a day.
	tokenRetention = 24 * time.Hour
	// disconnectWindow is how long after the time that is noted on it a connection goes that a person
	// disconnects. The removal is the apiserver's next request; the rest is for two clocks, each of
	// which is off by half a minute at most while its process is ready.
	disconnectWindow = 2 * time.Minute
	// sweepEvery is how often copies without a connection are looked for, and firstSweep how
	// long after the start of the manager, which has other work then.
	sweepEvery = time.Hour
	firstSweep = 5 * time.Minute
)

// register notes the working copy of an account before it is made, and one that was restored,
// once in the life of the process.
func (r *Reconciler) register(ctx context.Context, conn *v1alpha1.Connection) error {
	key := workingKey(conn)
	if _, known := r.registered.Load(key); known {
		return nil
	}
	if err := r.Store.Register(ctx, conn.Namespace, credentials.RegisterEntryOf(conn)); err != nil {
		return err
	}
	r.registered.Store(key, true)
	return nil
}

// deletedConnection is a connection that was deleted, and how long the tokens of its account are kept if no
// other one is of it.
type deletedConnection struct {
	conn  *v1alpha1.Connection
	grace time.Duration
}

// gracePeriodOf tells it of a connection whose deletion was seen now: none if that is how a person
// disconnects the account. What a disconnect notes stays where it fails, and shortens no other
// deletion.
func gracePeriodOf(conn *v1alpha1.Connection, now time.Time) time.Duration {
	if conn.DeletionTimestamp != nil {
		now = conn.DeletionTimestamp.Time // something else held it until now
	}
	at, err := time.Parse(time.RFC3339, conn.Annotations[v1alpha1.DisconnectedAnnotation])
	if err == nil && now.Sub(at).Abs() <= disconnectWindow {
		return 0
	}
	return tokenRetention
}

// recordDeleted keeps what a deleted connection was, for the pass that its deletion causes.
func (r *Reconciler) recordDeleted() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if conn, ok := e.Object.(*v1alpha1.Connection); ok {
			key := client.ObjectKeyFromObject(conn)
			r.deleted.Store(key, deletedConnection{conn.DeepCopy(), gracePeriodOf(conn, r.Clock.Now())})
			queue.Add(reconcile.Request{NamespacedName: key})
		}
	}}
}

// forget sees to the tokens of a connection that was deleted: where a person disconnected the
// account they go at once, and otherwise when nobody has applied it again for a day. If the account
// is being examined for another connection, it returns after how long to try again.
func (r *Reconciler) forget(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	noted, _ := r.deleted.Load(key)
	was, ok := noted.(deletedConnection)
	if !ok {
		return 0, nil
	}
	conn := was.conn
	// With the namespace everything in it goes.
	if owned, err := r.Owned(ctx, conn.Namespace); err != nil {
		return 0, err
	} else if !owned {
		r.deleted.Delete(key)
		return 0, nil
	}
	done, again := r.locks.tryAcquire(workingKey(conn))
	if again > 0 {
		return again, nil
	}
	defer done()
	err = r.settle(ctx, conn.Namespace, credentials.RegisterEntryOf(conn), was.grace)
	lost, unread := r.isNamespaceTerminating(ctx, conn.Namespace, err)
	if err != nil && !lost {
		return 0, fmt.Errorf("cannot see to the tokens of connection %q, which was deleted: %w", conn.Name, errors.Join(err, unread))
	}
	r.deleted.Delete(key)
	return 0, nil
}

// settle removes the working copy of an account if no connection of it was there for a time,
// and otherwise notes since when there is none, or that there is one. The caller has the turn of
// the copy.
func (r *Reconciler) settle(ctx context.Context, namespace string, entry credentials.RegisterEntry, grace time.Duration) error {
	// The cache may not have seen a connection that was made a moment ago.
	var live v1alpha1.ConnectionList
	if err := r.APIReader.List(ctx, &live, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list the connections of namespace %q: %w", namespace, err)
	}
	for i := range live.Items {
		if entry.Matches(&live.Items[i]) {
			entry.GoneSince = time.Time{}
			return r.Store.Register(ctx, namespace, entry)
		}
	}
	now := r.Clock.Now()
	if entry.GoneSince.IsZero() {
		entry.GoneSince = now.UTC().Truncate(time.Second)
	}
	if now.Sub(entry.GoneSince) < grace {
		return r.Store.Register(ctx, namespace, entry)
	}
	if err := r.Store.Remove(ctx, namespace, entry); err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: namespace, Name: entry.Name()}
	r.registered.Delete(key)
	r.discardSaved(ctx, key, spool.Account{Namespace: namespace, Platform: entry.Platform, AccountID: entry.AccountID})
	ctrl.LoggerFrom(ctx).Info("the tokens of an account without a connection were removed",
		"namespace", namespace, "platform", entry.Platform, "account", entry.AccountID)
	return nil
}

// Sweep looks for working copies without a connection in the namespaces of all teams. It
// continues after an error with the next one.
func (r *Reconciler) Sweep(ctx context.Context) error {
	var teams v1alpha1.TeamList
	if err := r.Client.List(ctx, &teams); err != nil {
		return fmt.Errorf("cannot list teams: %w", err)
	}
	var problems []error
	for i := range teams.Items {
		if namespace := teams.Items[i].Spec.Namespace; r.Namespaces.Include(namespace) {
			problems = append(problems, r.sweepNamespace(ctx, namespace))
		}
	}
	return errors.Join(problems...)
}

func (r *Reconciler) sweepNamespace(ctx context.Context, namespace string) error {
	if owned, err := r.Owned(ctx, namespace); err != nil || !owned {
		return err
	}
	entries, err := r.Store.Entries(ctx, namespace)
	if err != nil || len(entries) == 0 {
		return err
	}
	all, err := r.connectionsOf(ctx, namespace)
	if err != nil {
		return err
	}
	var problems []error
	for _, entry := range entries {
		used := false
		for _, conn := range all {
			used = used || entry.Matches(conn)
		}
		if !used || !entry.GoneSince.IsZero() {
			problems = append(problems, r.settleLocked(ctx, namespace, entry))
		}
	}
	return errors.Join(problems...)
}

// settleLocked waits for the turn of a working copy, and settles it.
func (r *Reconciler) settleLocked(ctx context.Context, namespace string, entry credentials.RegisterEntry) error {
	done, err := r.locks.acquire(ctx, types.NamespacedName{Namespace: namespace, Name: entry.Name()})
	if err != nil {
		return err
	}
	defer done()
	return r.settle(ctx, namespace, entry, tokenRetention)
}
