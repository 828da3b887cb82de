// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits holds the rate limits that platforms place on accounts and on the installation's own apps. A
// reconciliation reads the limits that apply to a post (Limits.Read), and a Recorder applies the platforms' responses.
// Limits are stored in the status of the Connections; the package neither publishes nor wakes posts.
package limits

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/posting/ratelimit"
)

// Options configures the limits. Client, APIReader and Clock are required.
type Options struct {
	// Client reads Connections from the cache, which needs the index that the function Index adds, and writes their
	// status.
	Client client.Client
	// APIReader reads Connections without the cache.
	APIReader client.Reader
	// Apps holds the ids of the installation's own apps. App-wide limits are accepted only for these apps.
	Apps credentials.Apps
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Limits holds the rate limits of platforms. A limit is stored in the Connection that received it, so a restart does
// not cause a burst of calls, and a thousand waiting posts do not need a write each. The process keeps a limit in
// memory only until the cache contains it. From then on, a user can remove it from the Connection.
type Limits struct {
	apps *appLimits

	mu       sync.Mutex
	accounts map[types.UID]*accountLimit
}

// accountLimit is the state of one account in this process, by the UID of its Connection.
type accountLimit struct {
	// until is the end of the last response's limit. version is the resourceVersion that stores it, or empty.
	until   time.Time
	version string
	// published counts the posts since the platform last reported the remaining quota.
	published publications
	// refused is set if the platform refused to publish for the account in its latest response.
	refused bool
}

type publications struct {
	since time.Time
	n     int
}

// New returns an empty Limits, which reads the limits from the Connections.
func New(o *Options) *Limits {
	return &Limits{apps: newAppLimits(o), accounts: map[types.UID]*accountLimit{}}
}

func notOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order >= 0
}

// account returns an account's state, and creates it if necessary. The caller must hold the lock.
func (l *Limits) account(conn *v1alpha1.Connection) *accountLimit {
	known := l.accounts[conn.UID]
	if known == nil {
		known = &accountLimit{}
		l.accounts[conn.UID] = known
	}
	return known
}

// prune drops an empty state. The caller must hold the lock.
func (l *Limits) prune(uid types.UID) {
	if known := l.accounts[uid]; known != nil && *known == (accountLimit{}) {
		delete(l.accounts, uid)
	}
}

// Forget drops a deleted connection's state.
func (l *Limits) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, uid)
}

// accountBlockedUntil returns the end of the account's rate limit, in the connection or this process, or zero.
func (l *Limits) accountBlockedUntil(conn *v1alpha1.Connection, now time.Time) time.Time {
	latest := ratelimit.BlockedUntil(&conn.Status, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.accounts[conn.UID]
	switch {
	case known == nil || known.until.IsZero():
	case !known.until.After(now), known.version != "" && notOlder(conn.ResourceVersion, known.version):
		known.until, known.version = time.Time{}, ""
		l.prune(conn.UID)
	case known.until.After(latest):
		latest = known.until
	}
	return latest
}

func (l *Limits) markStored(conn *v1alpha1.Connection) {
	l.apps.markStored(conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := conn.Status.RateLimitedUntil
	if known := l.accounts[conn.UID]; known != nil && !known.until.IsZero() && shown != nil && !known.until.After(shown.Time) {
		known.version = conn.ResourceVersion
	}
}

// CancelProbes frees the probe slots of a post that needs no more calls.
func (l *Limits) CancelProbes(post types.NamespacedName) { l.apps.cancelProbes(post) }

// LimitedApps reports, for each platform with an app, whether the connections show an app-wide rate limit.
func (l *Limits) LimitedApps(connections func(func(*v1alpha1.Connection)), now time.Time) map[v1alpha1.Platform]bool {
	return l.apps.limitedPlatforms(connections, now)
}

// Read reads the rate limits of the apps that the connections of a post use.
func (l *Limits) Read(ctx context.Context, post types.NamespacedName, connections map[string]*v1alpha1.Connection, now time.Time) (*View, error) {
	ends, err := l.apps.read(ctx, connections, now)
	if err != nil {
		return nil, err
	}
	return &View{limits: l, post: post, appEnds: ends}, nil
}

// View holds the limits that apply to one post, as read by one reconciliation.
type View struct {
	limits *Limits
	post   types.NamespacedName
	// appEnds holds the end of each app's last known rate limit, which may have passed.
	appEnds map[v1alpha1.Platform]time.Time
}

// LimitedPlatforms returns the platforms whose rate limit on the app the post may have to wait for.
func (v *View) LimitedPlatforms() (platforms []v1alpha1.Platform) {
	for platform, end := range v.appEnds {
		if !end.IsZero() {
			platforms = append(platforms, platform)
		}
	}
	return platforms
}

// BlockedUntil returns the later end of the account's and the app's rate limits on a connection, or zero for none.
func (v *View) BlockedUntil(conn *v1alpha1.Connection, now time.Time) time.Time {
	latest := v.limits.accountBlockedUntil(conn, now)
	if app := v.limits.apps.blockedUntil(conn, v.appEnds[conn.Spec.Platform], v.post, now); app.After(latest) {
		latest = app
	}
	return latest
}

// NeedsProbe reports whether a call to a connection's platform would find out whether the app's limit is over.
func (v *View) NeedsProbe(conn *v1alpha1.Connection, now time.Time) bool {
	return v.limits.apps.needsProbe(conn, v.appEnds[conn.Spec.Platform], now)
}

// AcquireProbe reports whether the post may call a connection's platform: the app is not rate-limited, or this post
// takes its probe.
func (v *View) AcquireProbe(conn *v1alpha1.Connection, now time.Time) bool {
	return v.limits.apps.acquireProbe(conn, v.appEnds[conn.Spec.Platform], v.post, now)
}
