// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
)

const (
	// sweepEvery is how often the counters of a team are swept, and showEvery how
	// often the status of a team with limits shows them.
	sweepEvery = 10 * time.Minute
	showEvery  = time.Minute
	// reservedFor is how long a reservation lasts for a post that is never created:
	// longer than any request may take.
	reservedFor = 10 * time.Minute
	// keepMonths is how long the counter of a month is kept after its end, for
	// people who want to look something up.
	keepMonths = 62 * 24 * time.Hour
)

// counts reports whether anything is counted.
func (r *Reconciler) counts() bool { return r.Owner != nil && r.Quota != nil }

// teamOf finds the team of a connection.
func (r *Reconciler) teamOf(ctx context.Context, obj client.Object) []reconcile.Request {
	team, err := r.Owner(ctx, obj.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the team of a connection that changed", "namespace", obj.GetNamespace())
		return nil
	}
	if team == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(team)}}
}

// count sweeps the team's counters if it is time to, and returns what the team uses
// and when to count again. What cannot be read now stays as it was.
func (r *Reconciler) count(ctx context.Context, team *v1alpha1.Team) (*v1alpha1.TeamUsage, time.Duration) {
	log := ctrl.LoggerFrom(ctx)
	usage := &v1alpha1.TeamUsage{}
	if team.Status.Usage != nil {
		usage = team.Status.Usage.DeepCopy()
	}
	var connections v1alpha1.ConnectionList
	if err := r.Client.List(ctx, &connections, client.InNamespace(team.Spec.Namespace)); err != nil {
		log.Error(err, "cannot count the team's connections")
	} else {
		usage.ConnectedAccounts = 0
		for i := range connections.Items {
			if c := &connections.Items[i]; !c.Spec.Disabled && c.DeletionTimestamp.IsZero() {
				usage.ConnectedAccounts++
			}
		}
	}
	limited := plan.LimitsOf(team).XPosts > 0
	if !limited {
		usage.XPostsThisMonth = nil
	}
	now := r.Clock.Now()
	if r.sweepDue(team.Name, now) {
		if err := r.sweep(ctx, team.Spec.Namespace, now); err != nil {
			log.Error(err, "cannot sweep the counters of the team; trying again later")
		}
		r.swept.Store(team.Name, now)
	}
	if !limited {
		return usage, sweepEvery
	}
	entries, err := r.Quota.Entries(ctx, quota.XPosts(team.Spec.Namespace, now))
	if err != nil {
		log.Error(err, "cannot count the posts to X of the team; trying again later")
	} else {
		usage.XPostsThisMonth = new(int32(min(entries.Used(), math.MaxInt32))) //nolint:gosec // it fits
	}
	return usage, showEvery
}

// sweepDue reports whether it is time to sweep a team's counters.
func (r *Reconciler) sweepDue(team string, now time.Time) bool {
	last, ok := r.swept.Load(team)
	at, isTime := last.(time.Time)
	return !ok || !isTime || now.Sub(at) >= sweepEvery
}

// sweep gives back what posts took and did not use, and deletes counters that are
// over. A counter that cannot be read does not stop the others.
func (r *Reconciler) sweep(ctx context.Context, namespace string, now time.Time) error {
	counters, err := r.Quota.Counters(ctx, namespace)
	if err != nil {
		return err
	}
	var connections v1alpha1.ConnectionList
	if err := r.Client.List(ctx, &connections, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list the team's connections: %w", err)
	}
	known := make(map[string]*v1alpha1.Connection, len(connections.Items))
	for i := range connections.Items {
		known[connections.Items[i].Name] = &connections.Items[i]
	}
	var errs []error
	for _, counter := range counters {
		errs = append(errs, r.sweepCounter(ctx, namespace, usage{counter, known}, now))
	}
	return errors.Join(errs...)
}

// usage is a counter, and the team's connections by name.
type usage struct {
	quota.Counter

	connections map[string]*v1alpha1.Connection
}

// of returns what a target of a post takes of the counter.
func (u usage) of(post *v1alpha1.Post, target int) plan.Use {
	var conn *v1alpha1.Connection
	if target < len(post.Spec.Targets) {
		conn = u.connections[post.Spec.Targets[target].ConnectionRef.Name]
	}
	if u.Kind == quota.KindXPosts {
		return plan.XUse(post, target, conn)
	}
	use := plan.InboxUse(post, target, conn)
	if conn != nil && quota.TikTokDrafts(conn).Name != u.Name {
		use.Count = 0
	}
	return use
}

func (r *Reconciler) sweepCounter(ctx context.Context, namespace string, count usage, now time.Time) error {
	month, ofX := count.Month()
	if ofX && now.Sub(month.AddDate(0, 1, 0)) > keepMonths {
		return r.Quota.Drop(ctx, count.Counter, nil)
	}
	err := r.Quota.Amend(ctx, count.Counter, func(entries quota.Entries) (bool, error) {
		changed, err := r.tidy(ctx, namespace, count, entries, now)
		// No new draft can share a day with what is two days old.
		return count.Kind == quota.KindTikTokDrafts && entries.Forget(now.Add(-2*plan.TikTokDraftsFor)) || changed, err
	})
	if err != nil {
		return err
	}
	return r.Quota.Drop(ctx, count.Counter, func(entries quota.Entries) bool { return len(entries) == 0 })
}

// tidy compares entries with their posts. The entries were read before any post: if
// something is counted meanwhile, writing the entries fails.
func (r *Reconciler) tidy(ctx context.Context, namespace string, count usage, entries quota.Entries, now time.Time) (changed bool, err error) {
	for name, entry := range entries {
		if entry.Settled {
			continue
		}
		post, err := r.post(ctx, types.NamespacedName{Namespace: namespace, Name: name}, entry, count)
		switch {
		case apierrors.IsNotFound(err):
			changed = tidyOrphan(entry, now) || changed
		case err != nil:
			return false, fmt.Errorf("cannot read post %q: %w", name, err)
		default:
			changed = tidyEntry(entry, post, count) || changed
		}
	}
	return changed, nil
}

// post reads the post of an entry: from the cache if that leads to no change, else
// from the API server.
func (r *Reconciler) post(ctx context.Context, key types.NamespacedName, entry *quota.Entry, count usage) (*v1alpha1.Post, error) {
	var post v1alpha1.Post
	if err := r.Client.Get(ctx, key, &post); err == nil {
		trial := *entry
		if !tidyEntry(&trial, &post, count) {
			return &post, nil
		}
	}
	var live v1alpha1.Post
	return &live, r.APIReader.Get(ctx, key, &live)
}

// tidyOrphan handles an entry whose post does not exist: a reservation is given back
// once no request can still create the post, and what was delivered stays counted.
func tidyOrphan(entry *quota.Entry, now time.Time) (changed bool) {
	if entry.UID != "" {
		entry.Settled = true
		return true
	}
	if now.Sub(entry.Since) < reservedFor {
		return false
	}
	return entry.Reduce(func(int) int { return 0 })
}

// tidyEntry reduces an entry to what its post takes.
func tidyEntry(entry *quota.Entry, post *v1alpha1.Post, count usage) (changed bool) {
	started := posting.Started(post)
	if entry.UID != "" && entry.UID != post.UID {
		// The post that took it is gone, and another has its name.
		entry.Settled = true
		return true
	}
	month, ofX := count.Month()
	elsewhere := entry.UID == "" && started
	if at := post.Spec.ScheduledAt; ofX && !started && at != nil {
		y, m, _ := at.UTC().Date()
		elsewhere = elsewhere || y != month.Year() || m != month.Month()
	}
	final := true
	changed = entry.Reduce(func(target int) int {
		use := count.of(post, target)
		final = final && use.Final
		if elsewhere {
			return 0
		}
		return use.Count
	})
	if final && !entry.Settled && entry.UID != "" {
		entry.Settled = true
		changed = true
	}
	return changed
}
