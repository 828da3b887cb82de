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
// thousand posts that wait need no write of their own; those of a whole app stand in
// the Connection that was told. From the moment of an answer until that is read back
// from the cache, the process remembers it.
type rateLimits struct {
	o *Options

	mu      sync.Mutex
	blocked map[string]time.Time
	// published counts what was published since a platform last told how much is
	// left.
	published map[string]publications
	// refused holds the connections that were not allowed to publish by the latest
	// answer.
	refused map[string]bool
}

// publications is how many posts were made since a platform's answer of that time.
type publications struct {
	since time.Time
	n     int
}

func newRateLimits(o *Options) *rateLimits {
	return &rateLimits{
		o: o, blocked: map[string]time.Time{}, published: map[string]publications{}, refused: map[string]bool{},
	}
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

// ofApps reads until when the platforms of connections take no calls of Herald's
// app, as they said to any account.
func (l *rateLimits) ofApps(ctx context.Context, connections map[string]*v1alpha1.Connection, now time.Time) (map[v1alpha1.Platform]time.Time, error) {
	until := map[v1alpha1.Platform]time.Time{}
	for _, conn := range connections {
		platform := conn.Spec.Platform
		if _, read := until[platform]; read {
			continue
		}
		until[platform] = time.Time{}
		var limited v1alpha1.ConnectionList
		// Nearly always there is none.
		if err := l.o.Client.List(ctx, &limited, client.MatchingFields{appBlockedField: string(platform)}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("cannot tell whether %s limits the whole app: %w", platform, err)
		}
		for i := range limited.Items {
			if at := ratelimit.AppBlockedUntil(&limited.Items[i].Status, now); at.After(until[platform]) {
				until[platform] = at
			}
		}
	}
	return until, nil
}

// blockedUntil is until when a connection's platform takes no calls, as the
// connection and this process know.
func (l *rateLimits) blockedUntil(conn *v1alpha1.Connection, now time.Time) time.Time {
	latest := ratelimit.BlockedUntil(&conn.Status, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range []string{string(conn.UID), appKey(conn.Spec.Platform)} {
		until, ok := l.blocked[key]
		switch {
		case ok && !until.After(now):
			delete(l.blocked, key)
		case until.After(latest):
			latest = until
		}
	}
	return latest
}

func appKey(platform v1alpha1.Platform) string { return "app/" + string(platform) }

// remember takes what an answer told, before another post has the account's turn.
func (l *rateLimits) remember(d *publish.Delivery) {
	now := l.o.Clock.Now()
	var told v1alpha1.ConnectionStatus
	applyRateLimits(&told, &d.Result, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, until := range map[string]time.Time{
		string(d.Conn.UID): ratelimit.BlockedUntil(&told, now), appKey(d.Conn.Spec.Platform): ratelimit.AppBlockedUntil(&told, now),
	} {
		if until.After(l.blocked[key]) {
			l.blocked[key] = until
		}
	}
	if err := d.Result.Err; err != nil && err.Class == platforms.ClassReconnect {
		l.refused[string(d.Conn.UID)] = true
	}
}

// allowedAgain reports whether a connection publishes again that was not allowed to
// a moment ago, which the cache may not tell yet.
func (l *rateLimits) allowedAgain(d *publish.Delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.Result.Outcome != platforms.Posted || !l.refused[string(d.Conn.UID)] {
		return false
	}
	delete(l.refused, string(d.Conn.UID))
	return true
}

// low counts a post to an account, and reports whether by now little is left of a
// limit that the platform told a while ago.
func (l *rateLimits) low(conn *v1alpha1.Connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(conn.Status.RateLimits) == 0 {
		delete(l.published, string(conn.UID))
		return false
	}
	count := l.published[string(conn.UID)]
	if at := conn.Status.RateLimits[0].ObservedAt.Time; !at.Equal(count.since) {
		count = publications{since: at}
	}
	count.n++
	l.published[string(conn.UID)] = count
	return slices.ContainsFunc(conn.Status.RateLimits, func(limit v1alpha1.RateLimit) bool { return ratelimit.Low(&limit, count.n) })
}

// maxRefusal bounds the message of a refusal, in bytes: it keeps the object small.
const maxRefusal = 2000

// record writes into a delivery's connection what its platform told of it: if it
// takes no calls, the other posts of the connection wait until then without trying,
// and those of the whole platform if the limit is the app's. Nothing is written as
// long as there is room. limited is the connection if calls are blocked for longer
// now; else nil.
func (l *rateLimits) record(ctx context.Context, d *publish.Delivery) (limited *v1alpha1.Connection, err error) {
	l.remember(d)
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
		longer := applyRateLimits(&conn.Status, &d.Result, l.o.Clock.Now())
		applyRefusal(conn, &d.Result, l.o.Clock.Now())
		if v1alpha1.SemanticEqual(base.Status, conn.Status) {
			return nil
		}
		err = l.o.Client.Status().Patch(ctx, conn, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err == nil && longer {
			limited = conn
		}
		return err
	})
	return limited, err
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

// applyRateLimits enters what a result tells of limits into a status, and reports
// whether calls are blocked for longer now.
func applyRateLimits(status *v1alpha1.ConnectionStatus, result *platforms.Result, now time.Time) (longer bool) {
	told := slices.DeleteFunc(slices.Clone(result.RateLimits), func(r platforms.RateLimit) bool { return !r.Low() && r.BlockedUntil.IsZero() })
	longer = ratelimit.Apply(status, told, now)
	if err := result.Err; err != nil && !err.PostOnly && (err.Class == platforms.ClassRateLimited || err.Class == platforms.ClassQuota) {
		longer = ratelimit.Block(status, err.RetryAt, err.AppWide, err.Error(), now) || longer
	}
	return longer
}

// applyRefusal enters into a connection that its platform does not let it publish,
// until it does again.
func applyRefusal(conn *v1alpha1.Connection, result *platforms.Result, now time.Time) {
	switch {
	case result.Outcome == platforms.Posted:
		meta.RemoveStatusCondition(&conn.Status.Conditions, v1alpha1.ConditionPublishingRefused)
	case result.Err != nil && result.Err.Class == platforms.ClassReconnect:
		meta.SetStatusCondition(&conn.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionPublishingRefused, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRefused,
			Message: text.TruncateBytes(result.Err.Error(), maxRefusal), ObservedGeneration: conn.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}
