// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pager"
)

// The fields of posts by which the API server selects.
const (
	fieldFinished   = "status.finished"
	fieldFinishedOn = "status.finishedOn"
)

const (
	// loadWithin bounds one reading of a namespace's posts: a hundred thousand take ten seconds.
	loadWithin = 5 * time.Minute
	// mostDays is for how many days posts are selected by the day on which they were finished. Who looks further back,
	// since no manager ran meanwhile, reads all of them.
	mostDays = 7
	// loadAtOnce is of how many namespaces one lookup has the posts read at a time. Nearly every account is connected
	// by one or two teams.
	loadAtOnce = 4
)

// flight is the reading of a namespace's posts that is under way, and the one that follows
// it. Whoever needs a reading takes part in one that begins after that, since what is
// recorded while one goes on may be missing in it: a hundred lookups at once wait for two.
type flight struct{ current, next *reading }

// reading is one reading of the posts that were published since a time.
type reading struct {
	since time.Time
	done  chan struct{}
	err   error
}

// load makes sure that publications recorded since a time, also by earlier
// processes, are known.
func (o *Owners) load(ctx context.Context, namespace string, since time.Time) error {
	oldest := o.Start()
	if horizon := o.clock.Now().Add(-ownershipTTL); horizon.After(oldest) {
		oldest = horizon
	}
	o.mu.Lock()
	from, ok := o.loaded[namespace]
	// For a while the process before this one may still write results.
	settled := o.clock.Since(o.startedAt) > successionTime
	if since.After(oldest) || (ok && settled && !since.Before(from)) {
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

// join returns a reading that has not begun, or begins one. The lock is held.
func (o *Owners) join(ctx context.Context, namespace string, since time.Time) *reading {
	under := o.flights[namespace]
	switch {
	case under == nil:
		under = &flight{current: &reading{since: since, done: make(chan struct{})}}
		o.flights[namespace] = under
		// Others wait for it, whatever becomes of the one that began it.
		go o.runFlight(context.WithoutCancel(ctx), namespace, under)
		return under.current
	case under.next == nil:
		under.next = &reading{since: since, done: make(chan struct{})}
	case since.Before(under.next.since):
		under.next.since = since
	}
	return under.next
}

// runFlight carries out readings of a namespace until nobody waits for another one.
func (o *Owners) runFlight(ctx context.Context, namespace string, under *flight) {
	for current := under.current; current != nil; {
		current.err = o.read(ctx, namespace, current.since)
		o.mu.Lock()
		if current.err == nil {
			o.loaded[namespace] = current.since
		}
		close(current.done)
		current, under.current, under.next = under.next, under.next, nil
		if current == nil {
			delete(o.flights, namespace)
		}
		o.mu.Unlock()
	}
}

// read reads the posts that may have been published since a time.
func (o *Owners) read(ctx context.Context, namespace string, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	for _, selected := range selectors(since, o.clock.Now()) {
		err := pager.EachPage(ctx, func(ctx context.Context, of pager.Page) (string, error) {
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

// addPublishedSince remembers the ids of posts that were published since a time.
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

// selectors select the posts that may have been published since a time: those that are not
// finished, and those that were finished since. Unfinished ones come first: one that is
// finished in between is found among the others then. Those that a version finished which
// noted no day have none, until the sweep has noted it.
func selectors(since, now time.Time) []fields.Selector {
	finished := fields.OneTermEqualSelector(fieldFinished, "true")
	all := []fields.Selector{fields.OneTermNotEqualSelector(fieldFinished, "true")}
	// Clocks differ: the last record may be of tomorrow.
	first, last := since.UTC().Truncate(24*time.Hour), now.UTC().Add(time.Hour)
	if last.Sub(first) > mostDays*24*time.Hour {
		return append(all, finished)
	}
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		all = append(all, fields.OneTermEqualSelector(fieldFinishedOn, day.Format(time.DateOnly)))
	}
	return append(all, fields.AndSelectors(finished, fields.OneTermEqualSelector(fieldFinishedOn, "")))
}

const (
	// openIndex is the index of the cached posts by the accounts that open attempts called.
	openIndex = "openAttempts"
	// accountIndex is that of the cached connections by their accounts.
	accountIndex = "account"
)

// Index sets up the indexes of posts and connections that Lookups need.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.Post{}, openIndex, openAccounts); err != nil {
		return fmt.Errorf("cannot index posts by their open attempts: %w", err)
	}
	if err := indexer.IndexField(ctx, &v1alpha1.Connection{}, accountIndex, connectedAccount); err != nil {
		return fmt.Errorf("cannot index connections by their accounts: %w", err)
	}
	return nil
}

// connectedAccount is the account of a connection, for accountIndex.
func connectedAccount(obj client.Object) []string {
	conn, ok := obj.(*v1alpha1.Connection)
	if !ok {
		return nil
	}
	return []string{accountName(conn.Spec.Platform, conn.Spec.AccountID)}
}

// load makes sure that what was published on the account of a connection since a time is known,
// by whichever team: an account may be connected by several.
func (l *Lookups) load(ctx context.Context, conn *v1alpha1.Connection, since time.Time) error {
	var all v1alpha1.ConnectionList
	of := client.MatchingFields{accountIndex: accountName(conn.Spec.Platform, conn.Spec.AccountID)}
	if err := l.Client.List(ctx, &all, of, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list the connections of the account: %w", err)
	}
	namespaces := []string{conn.Namespace}
	for i := range all.Items {
		if wasVerified(&all.Items[i]) {
			namespaces = append(namespaces, all.Items[i].Namespace)
		}
	}
	slices.Sort(namespaces)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loadAtOnce)
	for _, namespace := range slices.Compact(namespaces) {
		group.Go(func() error { return l.Owners.load(ctx, namespace, since) })
	}
	return group.Wait() //nolint:wrapcheck // it says which namespace
}

// wasVerified reports whether the platform ever confirmed the account of a connection to be that of its
// credentials. Anybody may name an account; nothing was published through a connection that names
// another one's, and its namespace must not hold up that one's lookups. One that was refused later
// may have published before.
func wasVerified(conn *v1alpha1.Connection) bool {
	return conn.Status.ConnectedAt != nil || conn.Status.Confirmed()
}
