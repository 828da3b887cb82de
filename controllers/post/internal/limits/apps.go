// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

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
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

// appLimits holds the rate limits that platforms place on the installation's own apps. A limit is stored in the
// Connection whose account received it. A limit on an app that a team supplied applies only to the accounts that use
// it: see ratelimit.Sanitize.
//
// A limit may outlast its announced end. Then one post probes the platform, and the others wait for its result: a
// thousand waiting posts cost one call instead of a thousand. If the probe has no response within probeTimeout, twice
// as many posts may probe, so that posts with large uploads cannot delay the others for long, however many they are.
//
// An app-wide limit may in fact apply to one account only, or not exist: the meaning of a platform's error code may be
// wrong, and a response may come from a proxy. So while only one account has received the limit, a post for another
// account probes immediately. If that post succeeds, the limit applies to the first account only; if it receives the
// limit too, all posts wait.
type appLimits struct {
	client client.Reader
	apps   credentials.Apps

	mu     sync.Mutex
	limits map[v1alpha1.Platform]*appLimit
}

// probeTimeout limits how long an app's posts wait for a probing post, which may have to wait for its gate, upload its
// files and get a response. After the timeout twice as many posts may probe, up to maxProbes.
const (
	probeTimeout = 2 * time.Minute
	maxProbes    = 1 << 20
)

func newAppLimits(o *Options) *appLimits {
	return &appLimits{client: o.Client, apps: o.Apps, limits: map[v1alpha1.Platform]*appLimit{}}
}

const appBlockedField = "status.appRateLimitedUntil"

// Index adds the index of connections with an app-wide rate limit, which Limits.Read uses.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
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

func (l *appLimits) isInstallationApp(conn *v1alpha1.Connection) bool {
	return conn.Status.App != "" && conn.Status.App == l.apps.ID(conn.Spec.Platform)
}

// read returns the end of the app-wide rate limit on each of the connections' platforms: the latest end that any
// connection has received, which may have passed, or zero for none.
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

func (l *appLimits) recorded(ctx context.Context, platform v1alpha1.Platform, now time.Time) (map[string]time.Time, error) {
	var limited v1alpha1.ConnectionList
	// The list of limited connections is nearly always empty.
	if err := l.client.List(ctx, &limited, client.MatchingFields{appBlockedField: string(platform)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot read whether %s limits the whole app: %w", platform, err)
	}
	var ends map[string]time.Time
	for i := range limited.Items {
		conn := &limited.Items[i]
		until := conn.Status.AppRateLimitedUntil.Time
		// An implausibly distant end is ignored.
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

// mergeEnds merges the stored ends with those that the cache does not show yet, and returns the latest.
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
		// The limit has passed, and the probe of the connection removed it.
		return limit.latest
	}
	// If the limit disappears before its end, a user has removed it, or it was refuted.
	limit.latest = end
	return end
}

// isCached reports whether the cache is authoritative: it shows the recorded limit, or the connection is gone.
func (l *appLimits) isCached(ctx context.Context, t *pendingLimit) bool {
	if t.version == "" {
		return false
	}
	var conn v1alpha1.Connection
	err := l.client.Get(ctx, t.connection, &conn)
	return err != nil || conn.UID != t.uid || notOlder(conn.ResourceVersion, t.version)
}

// blockedUntil returns the end of the app's rate limit on a connection's platform, or of the wait for a probing post.
// It returns zero if the post may call the platform. end is the result of read.
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

// needsProbe reports whether a post would have to find out whether the app's limit on a connection's platform is over.
func (l *appLimits) needsProbe(conn *v1alpha1.Connection, end, now time.Time) bool {
	if !l.isInstallationApp(conn) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[conn.Spec.Platform]
	return limit != nil && limit.needsProbe(limit.currentEnd(end, now))
}

// acquireProbe reports whether a post may call a connection's platform: the app is unlimited, or the post may probe.
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
			// None of the probing posts got a response, so slow posts hold all places.
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

// The numbers of posts that are woken after a response. The end of a wait wakes all posts. A free probe place wakes a
// few, since the first one may not need it; waking thousands whenever a platform does not respond would cost more than
// the probes. The other posts are requeued by time.
const (
	wakeNone = 0
	wakeSome = 8
	wakeAll  = math.MaxInt
)

// observe applies a response to the app's limit. It returns the number of posts to wake, which then proceed or wait
// again.
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
		// The limit has already ended, since the response was recorded late.
		return limit.releaseProbe(post)
	case result.Outcome == platforms.Refused && limit.latest.After(now):
		// The platform may check the post or the account before the app's limit.
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

func (l *appLimits) cancelProbes(post types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, limit := range l.limits {
		limit.cancelProbe(post)
	}
}

func (l *appLimits) limitedPlatforms(connections func(func(*v1alpha1.Connection)), now time.Time) map[v1alpha1.Platform]bool {
	limits := map[v1alpha1.Platform]bool{}
	for platform := range l.apps {
		limits[platform] = false
	}
	connections(func(conn *v1alpha1.Connection) {
		if until := ratelimit.AppBlockedUntil(&conn.Status, now); l.isInstallationApp(conn) && !until.IsZero() && !l.refutes(conn, until) {
			limits[conn.Spec.Platform] = true
		}
	})
	return limits
}

func (l *appLimits) refutes(conn *v1alpha1.Connection, until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[conn.Spec.Platform]
	return limit != nil && !until.After(limit.refuted[conn.Spec.AccountID])
}
