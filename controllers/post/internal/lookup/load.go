// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

// The post fields that the API server can select by.
const (
	fieldFinished   = "status.finished"
	fieldFinishedOn = "status.finishedOn"
)

const (
	// loadTimeout limits one read of a namespace's posts: a hundred thousand take ten seconds.
	loadTimeout = 5 * time.Minute
	// maxDays limits the days that are selected by status.finishedOn. A longer search, after no manager was running for a
	// while, reads all finished posts.
	maxDays = 7
	// maxConcurrentLoads limits a lookup's concurrent reads. Nearly every account is connected by one or two teams.
	maxConcurrentLoads = 4
)

// flight is the current read of a namespace's posts, and the next one. A caller joins a read that starts after its
// call, since the current one may miss posts recorded in the meantime: even a hundred lookups wait for only two reads.
type flight struct{ current, next *reading }

// loaded describes a completed read of the posts published since a time. The read started at the second time.
type loaded struct{ since, at time.Time }

type reading struct {
	since time.Time
	done  chan struct{}
	err   error
}

// load ensures that all publications recorded since the given time are known, including those by other processes.
// arrived is the time when the namespace's team arrived in the shard, or zero if there is only one shard: this process
// has not recorded what the team published before.
func (o *Owners) load(ctx context.Context, namespace string, since, arrived time.Time) error {
	own := o.Start()
	if arrived.After(own) {
		own = arrived
	}
	own = own.Add(successionTime) // until then, the previous process may write results
	oldest := o.clock.Now().Add(-ownershipTTL)
	if own.After(oldest) {
		oldest = own
	}
	o.mu.Lock()
	known, ok := o.loaded[namespace]
	settled := !known.at.Before(own)
	if since.After(oldest) || (ok && settled && !since.Before(known.since)) {
		o.mu.Unlock()
		return nil
	}
	mine := o.join(ctx, namespace, since)
	o.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return fmt.Errorf("stopped while the posts of namespace %s were read: %w", namespace, ctx.Err())
	}
}

// join returns a read that has not started yet, or starts one. The caller must hold the lock.
func (o *Owners) join(ctx context.Context, namespace string, since time.Time) *reading {
	under := o.flights[namespace]
	switch {
	case under == nil:
		under = &flight{current: &reading{since: since, done: make(chan struct{})}}
		o.flights[namespace] = under
		// Other callers wait for the read even if this one is cancelled.
		go o.runFlight(context.WithoutCancel(ctx), namespace, under)
		return under.current
	case under.next == nil:
		under.next = &reading{since: since, done: make(chan struct{})}
	case since.Before(under.next.since):
		under.next.since = since
	}
	return under.next
}

func (o *Owners) runFlight(ctx context.Context, namespace string, under *flight) {
	for current := under.current; current != nil; {
		at := o.clock.Now()
		current.err = o.read(ctx, namespace, current.since)
		o.mu.Lock()
		if current.err == nil {
			o.loaded[namespace] = loaded{current.since, at}
		}
		close(current.done)
		current, under.current, under.next = under.next, under.next, nil
		if current == nil {
			delete(o.flights, namespace)
		}
		o.mu.Unlock()
	}
}

func (o *Owners) read(ctx context.Context, namespace string, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	for _, selected := range selectors(since, o.clock.Now()) {
		err := kubeclient.EachPage(ctx, func(ctx context.Context, of kubeclient.Page) (string, error) {
			var page v1alpha1.PostList
			err := o.reader.List(ctx, &page, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: selected},
				client.Limit(of.Limit), client.Continue(of.Continue))
			if err != nil {
				return "", fmt.Errorf("cannot list the posts of namespace %s: %w", namespace, err)
			}
			o.addPublishedSince(page.Items, since)
			return page.Continue, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *Owners) addPublishedSince(posts []v1alpha1.Post, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range posts {
		if slices.ContainsFunc(posts[i].Status.Targets, func(t v1alpha1.TargetStatus) bool {
			return t.PostedAt != nil && !t.PostedAt.Before(since)
		}) {
			o.add(&posts[i])
		}
	}
}

// selectors returns selectors for posts that may have been published since the given time: first unfinished ones, so
// that a post that finishes in between is found by the later selectors, then those finished since then. The last
// selector finds posts from a version without status.finishedOn that the sweep has not updated yet.
func selectors(since, now time.Time) []fields.Selector {
	finished := fields.OneTermEqualSelector(fieldFinished, "true")
	all := []fields.Selector{fields.OneTermNotEqualSelector(fieldFinished, "true")}
	// Clocks differ, so the last record may be from tomorrow.
	first, last := since.UTC().Truncate(24*time.Hour), now.UTC().Add(time.Hour)
	if last.Sub(first) > maxDays*24*time.Hour {
		return append(all, finished)
	}
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		all = append(all, fields.OneTermEqualSelector(fieldFinishedOn, day.Format(time.DateOnly)))
	}
	return append(all, fields.AndSelectors(finished, fields.OneTermEqualSelector(fieldFinishedOn, "")))
}

const (
	// openIndex indexes the cached posts by the accounts of their open attempts.
	openIndex = "openAttempts"
	// accountIndex indexes the cached connections by their accounts.
	accountIndex = "account"
)

// IndexPosts adds the index of posts that Lookups needs.
func IndexPosts(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.Post{}, openIndex, openAccounts); err != nil {
		return fmt.Errorf("cannot index posts by their open attempts: %w", err)
	}
	return nil
}

// IndexConnections adds the index of connections that Lookups needs.
func IndexConnections(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.Connection{}, accountIndex, connectedAccount); err != nil {
		return fmt.Errorf("cannot index connections by their accounts: %w", err)
	}
	return nil
}

// OpenOn returns the cached posts with an open attempt on an account. They belong to the cache and must not be modified.
func OpenOn(ctx context.Context, cache client.Reader, platform v1alpha1.Platform, account string) ([]v1alpha1.Post, error) {
	var posts v1alpha1.PostList
	if err := cache.List(ctx, &posts, client.MatchingFields{openIndex: accountName(platform, account)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the account's open attempts: %w", err)
	}
	return posts.Items, nil
}

func connectedAccount(obj client.Object) []string {
	conn, ok := obj.(*v1alpha1.Connection)
	if !ok {
		return nil
	}
	return []string{accountName(conn.Spec.Platform, conn.Spec.AccountID)}
}

// load ensures that all posts published on the account since the given time are known, of any team that connected it.
func (l *Lookups) load(ctx context.Context, conn *v1alpha1.Connection, since time.Time) error {
	namespaces, err := NamespacesOf(ctx, l.Client, conn.Spec.Platform, conn.Spec.AccountID)
	if err != nil {
		return err
	}
	namespaces = append(namespaces, conn.Namespace)
	slices.Sort(namespaces)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentLoads)
	for _, namespace := range slices.Compact(namespaces) {
		var arrived time.Time
		if l.ArrivedAt != nil {
			if arrived, err = l.ArrivedAt(ctx, namespace); err != nil {
				return errors.Join(err, group.Wait())
			}
		}
		group.Go(func() error { return l.Owners.load(ctx, namespace, since, arrived) })
	}
	return group.Wait() //nolint:wrapcheck // the error names the namespace
}

// NamespacesOf returns the namespaces of the cached connections to an account that its platform has ever confirmed.
func NamespacesOf(ctx context.Context, cache client.Reader, platform v1alpha1.Platform, account string) (namespaces []string, err error) {
	var all v1alpha1.ConnectionList
	if err := cache.List(ctx, &all, client.MatchingFields{accountIndex: accountName(platform, account)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the connections of the account: %w", err)
	}
	for i := range all.Items {
		if wasVerified(&all.Items[i]) {
			namespaces = append(namespaces, all.Items[i].Namespace)
		}
	}
	return namespaces, nil
}

// wasVerified reports whether the platform has ever confirmed a connection's account. Anyone may name any account in a
// Connection. Nothing was published through a connection with an unconfirmed account, and its namespace must not delay
// lookups by the account's owner. A connection that was refused later may have published before that.
func wasVerified(conn *v1alpha1.Connection) bool {
	return conn.Status.ConnectedAt != nil || conn.Status.Confirmed()
}
