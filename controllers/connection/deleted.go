// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
)

const (
	// tokenRetention is how long an account's tokens are kept after its last connection was deleted. A tool that deletes
	// and re-applies does so within minutes; a prune caused by a wrong path is noticed within a day.
	tokenRetention = 24 * time.Hour
	// disconnectWindow is the longest time between the timestamp of a disconnect and the deletion of the connection. The
	// apiserver sends the delete as its next request; the rest allows for two clocks that are each off by at most half a
	// minute while their process is ready.
	disconnectWindow = 2 * time.Minute
	// sweepEvery is the interval between sweeps for copies without a connection. firstSweep delays the first sweep,
	// because the manager is busy after startup.
	sweepEvery = time.Hour
	firstSweep = 5 * time.Minute
)

// copyRegister registers the working copies in the store, so that the sweep finds them.
type copyRegister struct {
	store *credentials.Store
	// registered holds the copies that are in the register, so that each is written once per process.
	registered sync.Map
}

// add records an account's working copy: before the copy is created, and once per process for an existing one.
func (r *copyRegister) add(ctx context.Context, conn *v1alpha1.Connection) error {
	key := workingKey(conn)
	if _, known := r.registered.Load(key); known {
		return nil
	}
	if err := r.store.Register(ctx, conn.Namespace, credentials.RegisterEntryOf(conn)); err != nil {
		return err
	}
	r.registered.Store(key, true)
	return nil
}

// remove drops a working copy that was deleted. If the account is connected again, its copy is registered again.
func (r *copyRegister) remove(key types.NamespacedName) { r.registered.Delete(key) }

// garbageCollector removes the tokens of accounts that no longer have a connection.
type garbageCollector struct {
	client, apiReader client.Reader
	store             *credentials.Store
	clock             clock.PassiveClock
	owned             func(ctx context.Context, namespace string) (bool, error)
	namespaces        configv1alpha1.Namespaces
	locks             *keyedLock
	register          *copyRegister
	tokens            *tokenSaver
	revoker           *tokenRevoker

	// deleted holds recently deleted connections, by name.
	deleted sync.Map
}

// deletedConnection is a deleted connection. grace is how long an otherwise unused account's tokens are kept.
type deletedConnection struct {
	conn  *v1alpha1.Connection
	grace time.Duration
}

// gracePeriodOf returns the grace period for a deleted connection's tokens: zero if a user disconnected the account. A
// failed disconnect leaves its annotation on the object, without effect after disconnectWindow.
func gracePeriodOf(conn *v1alpha1.Connection, now time.Time) time.Duration {
	if conn.DeletionTimestamp != nil {
		now = conn.DeletionTimestamp.Time // a finalizer kept the object until now
	}
	at, err := time.Parse(time.RFC3339, conn.Annotations[v1alpha1.DisconnectedAnnotation])
	if err == nil && now.Sub(at).Abs() <= disconnectWindow {
		return 0
	}
	return tokenRetention
}

// recordDeleted stores a copy of a deleted connection for the reconciliation that the deletion triggers.
func (c *garbageCollector) recordDeleted() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if conn, ok := e.Object.(*v1alpha1.Connection); ok {
			key := client.ObjectKeyFromObject(conn)
			c.deleted.Store(key, deletedConnection{conn.DeepCopy(), gracePeriodOf(conn, c.clock.Now())})
			queue.Add(reconcile.Request{NamespacedName: key})
		}
	}}
}

// cancel discards the record of a deleted connection that exists again.
func (c *garbageCollector) cancel(key types.NamespacedName) { c.deleted.Delete(key) }

// forget removes a deleted connection's tokens: immediately if a user disconnected the account, otherwise after
// tokenRetention unless it is applied again. It returns a requeue delay while the account is being examined.
func (c *garbageCollector) forget(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	recorded, _ := c.deleted.Load(key)
	was, ok := recorded.(deletedConnection)
	if !ok {
		return 0, nil
	}
	conn := was.conn
	// Deleting the namespace deletes its Secrets too.
	if owned, err := c.owned(ctx, conn.Namespace); err != nil {
		return 0, err
	} else if !owned {
		c.deleted.Delete(key)
		return 0, nil
	}
	done, again := c.locks.tryAcquire(workingKey(conn))
	if again > 0 {
		return again, nil
	}
	defer done()
	if was.grace == 0 {
		c.revoker.schedule(ctx, conn)
	}
	err = c.settle(ctx, conn.Namespace, credentials.RegisterEntryOf(conn), was.grace)
	lost, unread := isNamespaceTerminating(ctx, c.apiReader, conn.Namespace, err)
	if err != nil && !lost {
		return 0, fmt.Errorf("cannot clean up the tokens of the deleted connection %q: %w", conn.Name, errors.Join(err, unread))
	}
	c.deleted.Delete(key)
	return 0, nil
}

// settle removes the working copy of an account that has had no connection for the grace period. Otherwise it records
// when the last connection was deleted, or that there is one. The caller must hold the copy's lock.
func (c *garbageCollector) settle(ctx context.Context, namespace string, entry credentials.RegisterEntry, grace time.Duration) error {
	// The cache may lack a connection that was just created.
	var live v1alpha1.ConnectionList
	if err := c.apiReader.List(ctx, &live, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list the connections of namespace %q: %w", namespace, err)
	}
	for i := range live.Items {
		if entry.Matches(&live.Items[i]) {
			entry.GoneSince = time.Time{}
			return c.store.Register(ctx, namespace, entry)
		}
	}
	now := c.clock.Now()
	if entry.GoneSince.IsZero() {
		entry.GoneSince = now.UTC().Truncate(time.Second)
	}
	if now.Sub(entry.GoneSince) < grace {
		return c.store.Register(ctx, namespace, entry)
	}
	if err := c.store.Remove(ctx, namespace, entry); err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: namespace, Name: entry.Name()}
	c.register.remove(key)
	c.tokens.discard(ctx, key, credentials.SpoolAccount{Namespace: namespace, Platform: entry.Platform, AccountID: entry.AccountID})
	ctrl.LoggerFrom(ctx).Info("the tokens of an account without a connection were removed",
		"namespace", namespace, "platform", entry.Platform, "account", entry.AccountID)
	return nil
}

// sweep looks for working copies without a connection in the namespaces of all teams. An error does not stop it.
func (c *garbageCollector) sweep(ctx context.Context) error {
	var teams v1alpha1.TeamList
	if err := c.client.List(ctx, &teams); err != nil {
		return fmt.Errorf("cannot list teams: %w", err)
	}
	var problems []error
	for i := range teams.Items {
		if namespace := teams.Items[i].Spec.Namespace; c.namespaces.Include(namespace) {
			problems = append(problems, c.sweepNamespace(ctx, namespace))
		}
	}
	return errors.Join(problems...)
}

func (c *garbageCollector) sweepNamespace(ctx context.Context, namespace string) error {
	if owned, err := c.owned(ctx, namespace); err != nil || !owned {
		return err
	}
	entries, err := c.store.Entries(ctx, namespace)
	if err != nil || len(entries) == 0 {
		return err
	}
	all, err := connectionsOf(ctx, c.client, namespace)
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
			problems = append(problems, c.settleLocked(ctx, namespace, entry))
		}
	}
	return errors.Join(problems...)
}

func (c *garbageCollector) settleLocked(ctx context.Context, namespace string, entry credentials.RegisterEntry) error {
	done, err := c.locks.acquire(ctx, types.NamespacedName{Namespace: namespace, Name: entry.Name()})
	if err != nil {
		return err
	}
	defer done()
	return c.settle(ctx, namespace, entry, tokenRetention)
}
