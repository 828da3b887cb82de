// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/appid"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

// appLimits knows until when platforms take no calls of the installation's own app. That
// stands in the Connection whose account was told so. Another app, whose tokens people
// brought along, limits only the accounts that use it: see ratelimit.Believe.
//
// When the time is over, the limit need not be: one post asks, and the others wait for
// what it is told. A thousand posts that wait cost one call, not a thousand. Nobody waits
// for long for one that is not answered: then twice as many ask, so that posts with much
// to upload, however many they are, do not keep the others waiting.
//
// One account may be told of a limit that is its own, or of none: a platform's code says what its
// programmers meant, and an answer may come from a proxy. So a post of another account asks at once
// while one account alone was told. If it goes through, the first answer holds that account
// and no other; if it is told the same, all wait.
type appLimits struct {
	client client.Reader
	apps   appid.Apps

	mu     sync.Mutex
	limits map[v1alpha1.Platform]*appLimit
}

// probeTimeout is how long the posts of an app wait for the one that asks. It may have to
// wait for its turn, upload its files, and be answered; longer than this, and others ask
// as well: twice as many each time, up to maxProbes.
const (
	probeTimeout = 2 * time.Minute
	maxProbes    = 1 << 20
)

func newAppLimits(o *Options) *appLimits {
	return &appLimits{client: o.Client, apps: o.Apps, limits: map[v1alpha1.Platform]*appLimit{}}
}

// appBlockedField indexes the connections to which a platform said that it limits
// the whole app, by the platform.
const appBlockedField = "status.appRateLimitedUntil"

// indexAppBlocked fills that index.
func indexAppBlocked(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.Connection{}, appBlockedField, func(obj client.Object) []string {
		if conn, ok := obj.(*v1alpha1.Connection); ok && conn.Status.AppRateLimitedUntil != nil {
			return []string{string(conn.Spec.Platform)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot index connections by the limits of their apps: %w", err)
	}
	return nil
}

// isInstallationApp reports whether a connection's credentials are of the installation's app.
func (l *appLimits) isInstallationApp(conn *v1alpha1.Connection) bool {
	return conn.Status.App != "" && conn.Status.App == l.apps.ID(conn.Spec.Platform)
}

// read finds out when the limits of the apps end that connections are of: the latest end
// that a connection was told, which may have passed; zero for none.
func (l *appLimits) read(ctx context.Context, connections map[string]*v1alpha1.Connection, now time.Time) (map[v1alpha1.Platform]time.Time, error) {
	ends := map[v1alpha1.Platform]time.Time{}
	for _, conn := range connections {
		platform := conn.Spec.Platform
		if _, done := ends[platform]; done || !l.isInstallationApp(conn) {
			continue
		}
		end, err := l.recorded(ctx, platform, now)
		if err != nil {
			return nil, err
		}
		ends[platform] = l.mergeEnds(ctx, platform, end, now)
	}
	return ends, nil
}

// recorded are the ends of the limit of an app that stand in connections, by account.
func (l *appLimits) recorded(ctx context.Context, platform v1alpha1.Platform, now time.Time) (map[string]time.Time, error) {
	var limited v1alpha1.ConnectionList
	// Nearly always there is none.
	if err := l.client.List(ctx, &limited, client.MatchingFields{appBlockedField: string(platform)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot tell whether %s limits the whole app: %w", platform, err)
	}
	var ends map[string]time.Time
	for i := range limited.Items {
		conn := &limited.Items[i]
		until := conn.Status.AppRateLimitedUntil.Time
		// An end that is further ahead than is believed is none.
		believed := !until.After(now) || !ratelimit.AppBlockedUntil(&conn.Status, now).IsZero()
		if account := conn.Spec.AccountID; believed && l.isInstallationApp(conn) && until.After(ends[account]) {
			if ends == nil {
				ends = map[string]time.Time{}
			}
			ends[account] = until
		}
	}
	return ends, nil
}

// mergeEnds completes what stands in connections by what this process knows and the cache does
// not show yet, or any more.
func (l *appLimits) mergeEnds(ctx context.Context, platform v1alpha1.Platform, recorded map[string]time.Time, now time.Time) (end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[platform]
	if limit == nil && len(recorded) == 0 {
		return end
	}
	if limit == nil {
		limit = newAppLimit()
		l.limits[platform] = limit
	}
	maps.DeleteFunc(limit.pending, func(_ string, t pendingLimit) bool { return !t.until.After(now) || l.isCached(ctx, &t) })
	maps.DeleteFunc(limit.refuted, func(account string, until time.Time) bool {
		_, stands := recorded[account]
		return !stands && !until.After(now)
	})
	limit.endByAccount = map[string]time.Time{}
	for account, until := range recorded {
		limit.observe(account, until, now)
	}
	for account, t := range limit.pending {
		limit.observe(account, t.until, now)
	}
	end = limit.latestEnd()
	if end.IsZero() && !limit.latest.After(now) {
		// It passed, and the examination of the connection removed it.
		return limit.latest
	}
	// If there is none before its time, a person has lifted it, or it was refuted.
	limit.latest = end
	return end
}

// isCached reports whether the cache shows what was recorded in a connection, or that the
// connection is gone: from then on the cache is right.
func (l *appLimits) isCached(ctx context.Context, t *pendingLimit) bool {
	if t.version == "" {
		return false
	}
	var conn v1alpha1.Connection
	err := l.client.Get(ctx, t.connection, &conn)
	return err != nil || conn.UID != t.uid || notOlder(conn.ResourceVersion, t.version)
}

// blockedUntil is until when a connection's platform takes no calls of its app, or none
// but those of the post that asks. end is what read found.
func (l *appLimits) blockedUntil(conn *v1alpha1.Connection, end time.Time, post types.NamespacedName, now time.Time) (until time.Time) {
	if !l.isInstallationApp(conn) {
		return until
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[conn.Spec.Platform]
	end = limit.currentEnd(end, now)
	switch {
	case end.After(now) && (limit == nil || !limit.verifies(conn.Spec.AccountID, now)):
		return end
	case limit != nil && limit.needsProbe(end) && limit.isProbing(now) && !limit.mayProbe(post):
		return limit.probingUntil
	}
	return until
}

// acquireProbe reports whether a post may call the platform of a connection: there is no doubt
// whether its app is limited, or this post is one of those that ask.
func (l *appLimits) acquireProbe(conn *v1alpha1.Connection, end time.Time, post types.NamespacedName, now time.Time) bool {
	if !l.isInstallationApp(conn) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[conn.Spec.Platform]
	end = limit.currentEnd(end, now)
	if limit == nil || !limit.needsProbe(end) {
		return true
	}
	if end.After(now) && !limit.verifies(conn.Spec.AccountID, now) {
		return false
	}
	if !limit.isProbing(now) {
		if len(limit.probing) == 0 {
			limit.maxProbing = 1
		} else {
			// None of them was answered: those who take long have no place for themselves.
			limit.maxProbing = min(2*limit.maxProbing, maxProbes)
		}
		limit.probing, limit.probingUntil = map[types.NamespacedName]struct{}{}, now.Add(probeTimeout)
	}
	if !limit.mayProbe(post) {
		return false
	}
	limit.probing[post] = struct{}{}
	return true
}

// How many of the posts that wait for an app's limit an answer wakes. What ends the waiting
// wakes all. Where a place has become free some are enough: another one may not need it,
// and if thousands were woken each time a platform does not answer, looking at them would
// take longer than asking. The others come by the clock.
const (
	wakeNone = 0
	wakeSome = 8
	wakeAll  = math.MaxInt
)

// observe takes what an answer to a post told of the app. It returns how many of the posts
// that wait for that are to be woken: they may go on, or wait anew.
func (l *appLimits) observe(conn *v1alpha1.Connection, post types.NamespacedName, result *platforms.Result, until, now time.Time) (wake int) {
	platform := conn.Spec.Platform
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[platform]
	switch {
	case !until.IsZero():
		if limit == nil {
			limit = newAppLimit()
			l.limits[platform] = limit
		}
		limit.record(conn, until, now)
	case limit == nil:
		return wakeNone
	case result.Err != nil && result.Err.AppWide:
		// A limit that is over by now, since the answer was recorded late.
		return limit.releaseProbe(post)
	case result.Outcome == platforms.Refused && limit.latest.After(now):
		// What is wrong with one post or account may be found before the app's limit is.
		return limit.releaseProbe(post)
	case result.Outcome == platforms.Posted, result.Outcome == platforms.Accepted, result.Outcome == platforms.Refused:
		if _, asks := limit.probing[post]; asks {
			limit.refute()
		} else if limit.latest.After(now) {
			return wakeNone // The call may have been made before the limit was reached.
		}
		limit.clearedAt = now
	default:
		return limit.releaseProbe(post)
	}
	if limit.finishProbes() {
		return wakeAll
	}
	return wakeNone
}

// markStored is told that a connection holds what it was told, in this version.
func (l *appLimits) markStored(conn *v1alpha1.Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := conn.Status.AppRateLimitedUntil
	limit := l.limits[conn.Spec.Platform]
	if limit == nil || shown == nil {
		return
	}
	if t, ok := limit.pending[conn.Spec.AccountID]; ok && t.uid == conn.UID && !t.until.After(shown.Time) {
		t.version = conn.ResourceVersion
		limit.pending[conn.Spec.AccountID] = t
	}
}

// cancelProbes is told that a post needs nothing more: another one may ask.
func (l *appLimits) cancelProbes(post types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, limit := range l.limits {
		limit.cancelProbe(post)
	}
}

// limitedPlatforms tells, of each platform with an app, whether it takes no calls of it now, as connections tell.
func (l *appLimits) limitedPlatforms(connections func(func(*v1alpha1.Connection)), now time.Time) map[v1alpha1.Platform]bool {
	held := map[v1alpha1.Platform]bool{}
	for platform := range l.apps {
		held[platform] = false
	}
	connections(func(conn *v1alpha1.Connection) {
		if until := ratelimit.AppBlockedUntil(&conn.Status, now); l.isInstallationApp(conn) && !until.IsZero() && !l.refutes(conn, until) {
			held[conn.Spec.Platform] = true
		}
	})
	return held
}

// refutes reports whether a post of another account has disproved what stands in a connection.
func (l *appLimits) refutes(conn *v1alpha1.Connection, until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[conn.Spec.Platform]
	return limit != nil && !until.After(limit.refuted[conn.Spec.AccountID])
}
