// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

// Recorder applies the rate limits in platforms' responses, and stores them in the Connections.
type Recorder struct {
	o      *Options
	limits *Limits
}

// NewRecorder returns a Recorder that applies responses to limits.
func NewRecorder(o *Options, limits *Limits) *Recorder { return &Recorder{o: o, limits: limits} }

// Observe applies a response's rate limits before another post gets the gate. It returns the number of app waiters to
// wake.
func (r *Recorder) Observe(post types.NamespacedName, d *publish.Delivery) (wake int) {
	now := r.o.Clock.Now()
	var received v1alpha1.ConnectionStatus
	applyRateLimits(&received, &d.Result, now)
	r.limits.mu.Lock()
	if until := ratelimit.BlockedUntil(&received, now); !until.IsZero() {
		if known := r.limits.account(d.Conn); until.After(known.until) {
			known.until, known.version = until, ""
		}
	}
	if err := d.Result.Err; err != nil && (err.Class == platforms.ClassReconnect || err.Class == platforms.ClassRestricted) {
		r.limits.account(d.Conn).refused = true
	}
	r.limits.mu.Unlock()
	if d.Token.App == "" {
		return wakeNone
	}
	return r.limits.apps.observe(d.Conn, post, &d.Result, ratelimit.AppBlockedUntil(&received, now), now)
}

// allowedAgain reports whether a delivery ended a refusal of its account, which the cache may not show yet.
func (r *Recorder) allowedAgain(d *publish.Delivery) bool {
	r.limits.mu.Lock()
	defer r.limits.mu.Unlock()
	known := r.limits.accounts[d.Conn.UID]
	if d.Result.Outcome != platforms.Posted || known == nil || !known.refused {
		return false
	}
	known.refused = false
	r.limits.prune(d.Conn.UID)
	return true
}

// RecordPublication counts a publication on an account. It reports whether the quota last reported by the platform is
// now low.
func (r *Recorder) RecordPublication(conn *v1alpha1.Connection) bool {
	r.limits.mu.Lock()
	defer r.limits.mu.Unlock()
	if len(conn.Status.RateLimits) == 0 {
		if known := r.limits.accounts[conn.UID]; known != nil {
			known.published = publications{}
			r.limits.prune(conn.UID)
		}
		return false
	}
	count := &r.limits.account(conn).published
	if at := conn.Status.RateLimits[0].ObservedAt.Time; !at.Equal(count.since) {
		*count = publications{since: at}
	}
	count.n++
	return slices.ContainsFunc(conn.Status.RateLimits, func(limit v1alpha1.RateLimit) bool { return ratelimit.Low(&limit, count.n) })
}

// maxRefusal limits the message of a refusal, in bytes, to keep the object small.
const maxRefusal = 2000

// Record stores the rate limits from a response in the delivery's connection. The other posts for the connection then
// wait without a call, as do all of the app's posts if the limit is app-wide. It does not write a quota that is not
// low. limited is the connection if its limit has changed, as described by change, and otherwise nil.
func (r *Recorder) Record(ctx context.Context, d *publish.Delivery) (limited *v1alpha1.Connection, change ratelimit.Change, err error) {
	again := r.allowedAgain(d)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		conn := d.Conn.DeepCopy()
		if again {
			if conn, err = r.read(ctx, d.Conn); err != nil {
				return err
			}
		}
		again = true
		base := conn.DeepCopy()
		now := r.o.Clock.Now()
		longer := applyRateLimits(&conn.Status, &d.Result, now)
		if app := d.Token.App; app != "" && conn.Status.AppRateLimitedUntil != nil {
			conn.Status.App = app
		}
		applyRefusal(conn, &d.Result, now)
		describeLimit(base, conn, &d.Result, longer, now)
		if v1alpha1.SemanticEqual(base.Status, conn.Status) {
			r.limits.markStored(conn)
			return nil
		}
		err = r.o.Client.Status().Patch(ctx, conn, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return err
		}
		r.limits.markStored(conn)
		if found, changed := ratelimit.Changed(base.Status.Conditions, conn.Status.Conditions); changed {
			limited, change = conn, found
		}
		return nil
	})
	return limited, change, err
}

// read reads a connection from the API server. It fails if the connection was replaced.
func (r *Recorder) read(ctx context.Context, known *v1alpha1.Connection) (*v1alpha1.Connection, error) {
	var conn v1alpha1.Connection
	if err := r.o.APIReader.Get(ctx, client.ObjectKeyFromObject(known), &conn); err != nil {
		return nil, fmt.Errorf("cannot read the connection again: %w", err)
	}
	if conn.UID != known.UID {
		return nil, fmt.Errorf("connection %q was re-created", known.Name)
	}
	return &conn, nil
}

// applyRateLimits records a result's limits. It reports whether an error blocks the account for longer than before.
func applyRateLimits(status *v1alpha1.ConnectionStatus, result *platforms.Result, now time.Time) (longer bool) {
	limits := slices.DeleteFunc(slices.Clone(result.RateLimits), func(r platforms.RateLimit) bool { return !r.Low() && r.BlockedUntil.IsZero() })
	ratelimit.Apply(status, limits, now)
	if err := result.Err; err != nil && !err.PostOnly && blocksAccount(err.Class) {
		return ratelimit.Block(status, err.RetryAt, err.AppWide, err.Error(), now)
	}
	return false
}

// describeLimit updates a connection's condition if a result has changed its limits; longer is the result of
// applyRateLimits. The connection controller removes the condition when the limit ends, so that a published post does
// not need another write.
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

func blocksAccount(class platforms.Class) bool {
	return class == platforms.ClassRateLimited || class == platforms.ClassQuota || class == platforms.ClassRestricted
}

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
