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

// rateLimits knows until when platforms take no calls. The limits stand in the
// Connection that learned of them, so that a restart does not stampede and a
// thousand posts that wait need no write of their own. From the moment of an answer
// until that is read back from the cache, the process remembers it; from then on the
// Connection alone counts, so that a person may lift a limit there.
type rateLimits struct {
	o    *Options
	apps *appLimits

	mu       sync.Mutex
	accounts map[types.UID]*accountLimit
}

// accountLimit is what this process knows of an account, by the UID of its Connection.
type accountLimit struct {
	// until is what an answer told, and version the resourceVersion of the Connection
	// that holds it; empty until it is stored.
	until   time.Time
	version string
	// published counts what was published since a platform last told how much is
	// left.
	published publications
	// refused is set if the latest answer did not let the account publish.
	refused bool
}

// publications is how many posts were made since a platform's answer of that time.
type publications struct {
	since time.Time
	n     int
}

func newRateLimits(o *Options) *rateLimits {
	return &rateLimits{o: o, apps: newAppLimits(o), accounts: map[types.UID]*accountLimit{}}
}

// notOlder reports whether a resourceVersion is that of the same state, or of a later one.
func notOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order >= 0
}

// account returns what is known of an account, made empty if nothing is. The lock is held.
func (l *rateLimits) account(conn *v1alpha1.Connection) *accountLimit {
	known := l.accounts[conn.UID]
	if known == nil {
		known = &accountLimit{}
		l.accounts[conn.UID] = known
	}
	return known
}

// prune drops what says nothing any more. The lock is held.
func (l *rateLimits) prune(uid types.UID) {
	if known := l.accounts[uid]; known != nil && *known == (accountLimit{}) {
		delete(l.accounts, uid)
	}
}

// forget drops what is known of the account of a connection that was deleted.
func (l *rateLimits) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, uid)
}

// accountBlockedUntil is until when a connection's platform takes no calls for its
// account, as the connection and this process know.
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

// blockedUntil is until when a connection's platform takes no calls for a post: neither
// for the account, nor of the app. end is that of the app's limit, as appLimits.read
// found it.
func (l *rateLimits) blockedUntil(conn *v1alpha1.Connection, end time.Time, post types.NamespacedName, now time.Time) time.Time {
	latest := l.accountBlockedUntil(conn, now)
	if app := l.apps.blockedUntil(conn, end, post, now); app.After(latest) {
		latest = app
	}
	return latest
}

// observe takes what an answer to a post told, before another post has the account's
// turn. It returns how many of the posts that wait for the app are to be woken.
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

// markStored is told that a connection, in this version, holds what was remembered.
func (l *rateLimits) markStored(conn *v1alpha1.Connection) {
	l.apps.markStored(conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := conn.Status.RateLimitedUntil
	if known := l.accounts[conn.UID]; known != nil && !known.until.IsZero() && shown != nil && !known.until.After(shown.Time) {
		known.version = conn.ResourceVersion
	}
}

// allowedAgain reports whether a connection publishes again that was not allowed to
// a moment ago, which the cache may not tell yet.
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

// countLow counts a post to an account, and reports whether by now little is left of a
// limit that the platform told a while ago.
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

// maxRefusal bounds the message of a refusal, in bytes: it keeps the object small.
const maxRefusal = 2000

// record writes into a delivery's connection what its platform told of it: if it
// takes no calls, the other posts of the connection wait until then without trying,
// and those of the whole app if the limit is the app's. Nothing is written as
// long as there is room. limited is the connection if another limit holds it than
// before, or none any more, as change says; else nil.
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
		applyRateLimits(&conn.Status, &d.Result, now)
		if app := d.Token.App; app != "" && conn.Status.AppRateLimitedUntil != nil {
			conn.Status.App = app
		}
		applyRefusal(conn, &d.Result, now)
		describeLimit(base, conn, &d.Result, now)
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

// read returns a connection as it stands now.
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

// applyRateLimits enters what a result tells of limits into a status.
func applyRateLimits(status *v1alpha1.ConnectionStatus, result *platforms.Result, now time.Time) {
	told := slices.DeleteFunc(slices.Clone(result.RateLimits), func(r platforms.RateLimit) bool { return !r.Low() && r.BlockedUntil.IsZero() })
	ratelimit.Apply(status, told, now)
	if err := result.Err; err != nil && !err.PostOnly && blocksAccount(err.Class) {
		ratelimit.Block(status, err.RetryAt, err.AppWide, err.Error(), now)
	}
}

// describeLimit describes the limit of a connection if a result has changed what is known of
// it. Of a limit that has ended the connection controller takes the condition away: a post
// that goes out writes nothing.
func describeLimit(base, conn *v1alpha1.Connection, result *platforms.Result, now time.Time) {
	if v1alpha1.SemanticEqual(base.Status, conn.Status) {
		return
	}
	reason := ""
	if err := result.Err; err != nil && err.Class == platforms.ClassQuota && !err.PostOnly && !err.AppWide {
		reason = v1alpha1.ReasonQuotaUsedUp
	}
	ratelimit.Describe(conn, reason, now)
}

// blocksAccount reports whether an error of a class keeps the account from posting
// for a while.
func blocksAccount(class platforms.Class) bool {
	return class == platforms.ClassRateLimited || class == platforms.ClassQuota || class == platforms.ClassRestricted
}

// applyRefusal enters into a connection that its platform does not let it publish,
// until it does again.
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
