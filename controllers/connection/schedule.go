// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

// Intervals of examinations.
const (
	// probeEvery is the interval between probes of an account, give or take a tenth.
	probeEvery = time.Hour

	// Backoff while a platform is unavailable: each pause equals the outage so far, within these bounds, and so doubles.
	minBackoff = 10 * time.Second
	maxBackoff = 10 * time.Minute

	// Secrets are not watched. A missing or invalid Secret is read again after secretMinBackoff, with a backoff up to
	// secretMaxBackoff. The Secret of an account that needs other credentials is read every secretMaxBackoff.
	secretMinBackoff = 2 * time.Second
	secretMaxBackoff = time.Minute

	// renewRetryPause is the minimum delay after a failed renewal, minRenewPause the minimum before a new token's renewal.
	renewRetryPause = 15 * time.Second
	minRenewPause   = 2 * time.Second

	// minRequestedPause is the minimum pause between a failed examination and the next one that a client requests. A
	// failed result is not reused, so each post to a broken account requests an examination; requests during the pause
	// share the next result. The pause fits within a request's timeout of five seconds.
	minRequestedPause = 2 * time.Second
)

// spreadLead returns the time between a token's renewal and its expiry: the platform's lead plus up to a quarter.
func spreadLead(declared time.Duration, uid types.UID) time.Duration {
	return declared + pacing.Spread(declared/4, uid)
}

// lead is like spreadLead, but at most a quarter of the token's lifetime.
func lead(declared time.Duration, read credentials.Credentials, uid types.UID) time.Duration {
	d := spreadLead(declared, uid)
	if life := read.Lifetime(); life > 0 {
		d = min(d, life/4)
	}
	return d
}

// renewable returns the credentials for scheduling a renewal: on a platform that renews access tokens directly, the
// access token stands in for the refresh token.
func renewable(read credentials.Credentials, limits platforms.Capabilities) credentials.Credentials {
	if limits.RenewsItself && read.Token.Refresh == "" {
		read.Token.Refresh = read.Token.Access
	}
	return read
}

func renewalDue(declared time.Duration, read credentials.Credentials, uid types.UID, now time.Time) bool {
	token := read.Token
	return token.Refresh != "" && !token.ExpiresAt.IsZero() && !now.Before(token.ExpiresAt.Add(-lead(declared, read, uid)))
}

// due reports whether to examine a connection now: it is new or changed, a client requested it, or its time has come.
func due(conn *v1alpha1.Connection, declaredLead time.Duration, now time.Time) bool {
	status := &conn.Status
	switch {
	case conditions.Reason(status.Conditions) == "", status.ObservedGeneration != conn.Generation:
		return true
	case isProbeRequested(conn) && untilRequested(status, now) <= 0:
		return true
	default:
		return !now.Before(dueAt(conn, declaredLead))
	}
}

func isProbeRequested(conn *v1alpha1.Connection) bool {
	asked := conn.Annotations[v1alpha1.ProbeAnnotation]
	return asked != "" && text.First(asked, longestProbe) != conn.Status.LastHandledProbe
}

// untilRequested returns the delay before an examination that a client requested. Zero or less means now. A
// LastProbedAt in the future, from a process whose clock is ahead, causes no delay.
func untilRequested(status *v1alpha1.ConnectionStatus, now time.Time) time.Duration {
	if status.LastProbedAt == nil || status.LastProbedAt.After(now) || conditions.Reason(status.Conditions) == v1alpha1.ReasonConnected {
		return 0
	}
	return status.LastProbedAt.Add(minRequestedPause).Sub(now)
}

var never = time.Unix(1<<40, 0)

// dueAt returns the time of a connection's next examination. It uses only the status: a new process has nothing else.
func dueAt(conn *v1alpha1.Connection, declaredLead time.Duration) time.Time {
	status := &conn.Status
	reason := conditions.Reason(status.Conditions)
	switch {
	case reason == v1alpha1.ReasonDisabled, withheldBy(conn) != "":
		return never
	case status.LastProbedAt == nil:
		return time.Time{}
	case reason == v1alpha1.ReasonConnected:
		at := status.LastProbedAt.Add(pacing.Jitter(probeEvery, conn.UID))
		if inspection := inspectAt(status); inspection.Before(at) {
			at = inspection
		}
		if ends := status.TokenExpiresAt; ends != nil && ends.After(status.LastProbedAt.Time) {
			if renewal := ends.Add(-spreadLead(declaredLead, conn.UID)); renewal.Before(at) {
				return renewal
			}
		}
		return at
	case reason == v1alpha1.ReasonPlatformUnavailable:
		return status.LastProbedAt.Add(backoff(conditions.Since(status.Conditions), status.LastProbedAt.Time, minBackoff, maxBackoff))
	case needsReconnect(reason), reason == v1alpha1.ReasonAccountRestricted:
		return status.LastProbedAt.Add(pacing.Jitter(probeEvery, conn.UID))
	default:
		return time.Time{}
	}
}

func requeueAfter(conn *v1alpha1.Connection, declaredLead time.Duration, now time.Time) time.Duration {
	at := dueAt(conn, declaredLead)
	switch {
	case isProbeRequested(conn):
		return untilRequested(&conn.Status, now)
	case at.Equal(never):
		return 0
	case needsReconnect(conditions.Reason(conn.Status.Conditions)):
		return min(at.Sub(now), pacing.Jitter(secretMaxBackoff, conn.UID))
	default:
		return at.Sub(now)
	}
}

// backoff returns the pause after a failure at now, if the first failure was at since.
func backoff(since, now time.Time, shortest, longest time.Duration) time.Duration {
	return min(max(now.Sub(since), shortest), longest)
}

func requeueAfterOutcome(conn *v1alpha1.Connection, o outcome, declaredLead time.Duration, now time.Time) time.Duration {
	since := conditions.Since(conn.Status.Conditions)
	switch reason := conditions.Reason(conn.Status.Conditions); {
	case reason == v1alpha1.ReasonDisabled, withheldBy(conn) != "":
		return 0
	case reason == v1alpha1.ReasonConnected:
		return min(pacing.Jitter(probeEvery, conn.UID), untilRenewal(conn, o, declaredLead, now), inspectAt(&conn.Status).Sub(now))
	case reason == v1alpha1.ReasonPlatformUnavailable:
		// LongestBlock caps the delay that a platform may request.
		return max(pacing.Jitter(backoff(since, now, minBackoff, maxBackoff), conn.UID), min(o.retryAt.Sub(now), ratelimit.LongestBlock))
	case needsReconnect(reason):
		return pacing.Jitter(secretMaxBackoff, conn.UID)
	case reason == v1alpha1.ReasonAccountRestricted:
		return pacing.Jitter(probeEvery, conn.UID)
	default:
		return pacing.Jitter(backoff(since, now, secretMinBackoff, secretMaxBackoff), conn.UID)
	}
}

// untilRenewal returns the time until a token's renewal. A failed renewal is retried soon; a token that cannot be
// renewed is examined when it expires.
func untilRenewal(conn *v1alpha1.Connection, o outcome, declaredLead time.Duration, now time.Time) time.Duration {
	switch {
	case o.read == nil || !o.read.Token.ExpiresAt.After(now):
		return probeEvery
	case o.read.Token.Refresh == "":
		return max(o.read.Token.ExpiresAt.Sub(now), minRenewPause)
	case renewalDue(declaredLead, *o.read, conn.UID, now):
		return max(o.read.Token.ExpiresAt.Sub(now)/4, renewRetryPause)
	default:
		return max(o.read.Token.ExpiresAt.Add(-lead(declaredLead, *o.read, conn.UID)).Sub(now), minRenewPause)
	}
}
