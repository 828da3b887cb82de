// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

const (
	// inspectEvery is how long known rate limits are good enough while much of them
	// remains: an account that is posted to all the time is probed each minute.
	inspectEvery = 10 * time.Minute
	// inspectWithin is how long an inspection may take at least, however long the
	// rest of the examination took.
	inspectWithin = time.Second
	// beforeBlockEnds is how long before the end of a block the account is
	// inspected: if nothing remains, it stays blocked and no call fails.
	beforeBlockEnds = 10 * time.Second
)

// inspect asks the platform what the account may choose and what remains of its rate
// limits, if the platform tells and it is time to; nil if nothing new is known.
func (e *examination) inspect(ctx context.Context) (*platforms.AccountInfo, *platforms.Error) {
	inspector, ok := e.platform.(platforms.AccountInspector)
	if !ok || !inspectDue(&e.conn.Status, e.Clock.Now()) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(probeWithin-e.Clock.Since(e.started), inspectWithin))
	defer cancel()
	found, err := inspector.Inspect(ctx, platforms.Account{
		ID: e.conn.Spec.AccountID, Username: e.conn.Status.Username, Token: platforms.Token(e.read.Token),
	})
	if err == nil {
		return &found, nil
	}
	failure := platformError(err)
	ctrl.LoggerFrom(ctx).Info("the platform did not say what the account may do", "class", failure.Class, "answer", failure.Error(), "cause", failure.Err)
	if failure.Class == platforms.ClassRateLimited && e.conn.Status.TikTok != nil {
		// Asked too often: the previous answer is good enough.
		return nil, nil
	}
	return nil, failure
}

// inspectDue reports whether an inspection may tell something new.
func inspectDue(status *v1alpha1.ConnectionStatus, now time.Time) bool {
	if status.TikTok != nil || len(status.RateLimits) == 0 || !ratelimit.BlockedUntil(status, now).IsZero() {
		return true
	}
	return slices.ContainsFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool {
		return ratelimit.Low(&l, 0) || now.Sub(l.ObservedAt.Time) >= inspectEvery
	})
}

// inspectAt returns when to inspect a connection that is blocked because nothing
// remains of a limit; never if it is not blocked, or was inspected since.
func inspectAt(status *v1alpha1.ConnectionStatus) time.Time {
	if status.RateLimitedUntil == nil || status.LastProbedAt == nil || !ratelimit.Exhausted(status) {
		return never
	}
	at := status.RateLimitedUntil.Add(-beforeBlockEnds)
	if !at.After(status.LastProbedAt.Time) {
		return never
	}
	return at
}
