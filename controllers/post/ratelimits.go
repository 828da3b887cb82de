// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

// rateLimits holds the rate limits of platforms. A limit is stored in the Connection that received it, so a restart
// causes no burst of calls, and a thousand waiting posts need no write of their own. The process keeps a limit in
// memory only until the cache shows it. After that the Connection is authoritative, so a person can remove the limit
// there.
type rateLimits struct {
	o    *Options
	apps *appLimits

	mu       sync.Mutex
	accounts map[types.UID]*accountLimit
}

// accountLimit is the state of one account in this process, by the UID of its Connection.
type accountLimit struct {
	// until is the end of the limit from the last answer. version is the resourceVersion of the Connection that holds
	// it; empty until it is stored.
	until   time.Time
	version string
	// published counts the posts since the platform last reported the remaining quota.
	published publications
	// refused is set if the platform refused to publish for the account in its latest answer.
	refused bool
}

// publications is the number of posts since a platform reported a quota, and the time of that report.
type publications struct {
	since time.Time
	n     int
}

func newRateLimits(o *Options) *rateLimits {
	return &rateLimits{o: o, apps: newAppLimits(o), accounts: map[types.UID]*accountLimit{}}
}

// notOlder reports whether a resourceVersion is equal to or later than another one.
func notOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order >= 0
}

// account returns the state of an account, and creates it if necessary. The caller holds the lock.
func (l *rateLimits) account(conn *v1alpha1.Connection) *accountLimit {
	known := l.accounts[conn.UID]
	if known == nil {
		known = &accountLimit{}
		l.accounts[conn.UID] = known
	}
	return known
}

// prune drops an empty state. The caller holds the lock.
func (l *rateLimits) prune(uid types.UID) {
	if known := l.accounts[uid]; known != nil && *known == (accountLimit{}) {
		delete(l.accounts, uid)
	}
}

// forget drops the state of a deleted connection.
func (l *rateLimits) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, uid)
}

// accountBlockedUntil returns the end of the rate limit of a connection's account: the later one of the connection's
// and of the process's, or zero.
func (l *rateLimits) accountBlockedUntil(conn *v1alpha1.Connection, now time.Time) time.Time {
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

// blockedUntil returns the end of the rate limits that apply to a post: the later one of the account's and the app's.
// end is the end of the app's limit from appLimits.read.
func (l *rateLimits) blockedUntil(conn *v1alpha1.Connection, end time.Time, post types.NamespacedName, now time.Time) time.Time {
	latest := l.accountBlockedUntil(conn, now)
	if app := l.apps.blockedUntil(conn, end, post, now); app.After(latest) {
		latest = app
	}
	return latest
}

// observe applies the rate limits of an answer before another post gets the account's gate. It returns the number of
// posts to wake that wait for the app.
func (l *rateLimits) observe(post types.NamespacedName, d *publish.Delivery) (wake int) {
	now := l.o.Clock.Now()
	var told v1alpha1.ConnectionStatus
	applyRateLimits(&told, &d.Result, now)
	l.mu.Lock()
	if until := ratelimit.BlockedUntil(&told, now); !until.IsZero() {
		if known := l.account(d.Conn); until.After(known.until) {
			known.until, known.version = until, ""
		}
	}
	if err := d.Result.Err; err != nil && (err.Class == platforms.ClassReconnect || err.Class == platforms.ClassRestricted) {
		l.account(d.Conn).refused = true
	}
	l.mu.Unlock()
	if d.Token.App == "" {
		return wakeNone
	}
	return l.apps.observe(d.Conn, post, &d.Result, ratelimit.AppBlockedUntil(&told, now), now)
}

// markStored notes the resourceVersion of a connection that holds the limit in memory.
func (l *rateLimits) markStored(conn *v1alpha1.Connection) {
	l.apps.markStored(conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := conn.Status.RateLimitedUntil
	if known := l.accounts[conn.UID]; known != nil && !known.until.IsZero() && shown != nil && !known.until.After(shown.Time) {
		known.version = conn.ResourceVersion
	}
}

// allowedAgain reports whether a delivery has published for an account that was refused before. The cached connection
// may not show the refusal yet.
func (l *rateLimits) allowedAgain(d *publish.Delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.accounts[d.Conn.UID]
	if d.Result.Outcome != platforms.Posted || known == nil || !known.refused {
		return false
	}
	known.refused = false
	l.prune(d.Conn.UID)
	return true
}

// countLow counts a post to an account. It reports whether the remaining quota, as last reported by the platform, is
// now low.
func (l *rateLimits) countLow(conn *v1alpha1.Connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(conn.Status.RateLimits) == 0 {
		if known := l.accounts[conn.UID]; known != nil {
			known.published = publications{}
			l.prune(conn.UID)
		}
		return false
	}
	count := &l.account(conn).published
	if at := conn.Status.RateLimits[0].ObservedAt.Time; !at.Equal(count.since) {
		*count = publications{since: at}
	}
	count.n++
	return slices.ContainsFunc(conn.Status.RateLimits, func(limit v1alpha1.RateLimit) bool { return ratelimit.Low(&limit, count.n) })
}

// maxRefusal limits the message of a refusal, in bytes, to keep the object small.
const maxRefusal = 2000

// record stores the rate limits of an answer in the delivery's connection. The other posts of the connection then wait
// without a call, and all posts of the app if the limit is app-wide. It writes nothing while the quota is not low.
// limited is the connection if its limit has changed, as described by change; otherwise nil.
func (l *rateLimits) record(ctx context.Context, d *publish.Delivery) (limited *v1alpha1.Connection, change ratelimit.Change, err error) {
	again := l.allowedAgain(d)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		conn := d.Conn.DeepCopy()
		if again {
			if conn, err = l.read(ctx, d.Conn); err != nil {
				return err
			}
		}
		again = true
		base := conn.DeepCopy()
		now := l.o.Clock.Now()
		longer := applyRateLimits(&conn.Status, &d.Result, now)
		if app := d.Token.App; app != "" && conn.Status.AppRateLimitedUntil != nil {
			conn.Status.App = app
		}
		applyRefusal(conn, &d.Result, now)
		describeLimit(base, conn, &d.Result, longer, now)
		if v1alpha1.SemanticEqual(base.Status, conn.Status) {
			l.markStored(conn)
			return nil
		}
		err = l.o.Client.Status().Patch(ctx, conn, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return err
		}
		l.markStored(conn)
		if found, changed := ratelimit.Changed(base.Status.Conditions, conn.Status.Conditions); changed {
			limited, change = conn, found
		}
		return nil
	})
	return limited, change, err
}

// read reads a connection from the API server. It fails if the connection was replaced.
func (l *rateLimits) read(ctx context.Context, known *v1alpha1.Connection) (*v1alpha1.Connection, error) {
	var conn v1alpha1.Connection
	if err := l.o.APIReader.Get(ctx, client.ObjectKeyFromObject(known), &conn); err != nil {
		return nil, fmt.Errorf("cannot read the connection again: %w", err)
	}
	if conn.UID != known.UID {
		return nil, fmt.Errorf("connection %q was made anew", known.Name)
	}
	return &conn, nil
}

// applyRateLimits records the limits of a result in a status. It reports whether an error of the result blocks the account
// for longer than was known.
func applyRateLimits(status *v1alpha1.ConnectionStatus, result *platforms.Result, now time.Time) (longer bool) {
	told := slices.DeleteFunc(slices.Clone(result.RateLimits), func(r platforms.RateLimit) bool { return !r.Low() && r.BlockedUntil.IsZero() })
	ratelimit.Apply(status, told, now)
	if err := result.Err; err != nil && !err.PostOnly && blocksAccount(err.Class) {
		return ratelimit.Block(status, err.RetryAt, err.AppWide, err.Error(), now)
	}
	return false
}

// describeLimit updates the condition of a connection if a result has changed its limits; longer is the result of
// applyRateLimits. The connection controller removes the condition when the limit ends, so that a published post needs no write.
func describeLimit(base, conn *v1alpha1.Connection, result *platforms.Result, longer bool, now time.Time) {
	if v1alpha1.SemanticEqual(base.Status, conn.Status) {
		return
	}
	reason := ""
	if err := result.Err; longer && err != nil && err.Class == platforms.ClassQuota && !err.PostOnly && !err.AppWide {
		reason = v1alpha1.ReasonQuotaUsedUp
	}
	ratelimit.Describe(conn, reason, now)
}

// blocksAccount reports whether errors of a class stop the account from posting for a while.
func blocksAccount(class platforms.Class) bool {
	return class == platforms.ClassRateLimited || class == platforms.ClassQuota || class == platforms.ClassRestricted
}

// applyRefusal sets the condition PublishingRefused after a refusal, and removes it after a published post.
func applyRefusal(conn *v1alpha1.Connection, result *platforms.Result, now time.Time) {
	switch {
	case result.Outcome == platforms.Posted:
		meta.RemoveStatusCondition(&conn.Status.Conditions, v1alpha1.ConditionPublishingRefused)
	case result.Err != nil && (result.Err.Class == platforms.ClassReconnect || result.Err.Class == platforms.ClassRestricted):
		reason := v1alpha1.ReasonRefused
		if result.Err.Class == platforms.ClassRestricted {
			reason = v1alpha1.ReasonAccountRestricted
		}
		meta.SetStatusCondition(&conn.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionPublishingRefused, Status: metav1.ConditionTrue, Reason: reason,
			Message: text.TruncateBytes(result.Err.Error(), maxRefusal), ObservedGeneration: conn.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}
