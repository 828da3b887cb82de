// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

const (
	// probeWithin bounds how long one examination waits for the platform. The
	// apiserver waits five seconds for the answer to its request, and the answer
	// has to be written and watched as well.
	probeWithin = 4 * time.Second

	// afterRenewal is how long it waits after a renewal that used up most of that.
	afterRenewal = 2 * time.Second
)

const (
	msgUnsupported  = "this Herald has no access to the platform; the administrator has to configure it, or the Connection can be deleted"
	msgDisabled     = "the connection is disabled; set spec.disabled to false to use it again"
	msgStillRefused = "the platform does not accept a token that it has only just renewed" + triesAgain
)

// examination is one examination of one connection.
type examination struct {
	*Reconciler

	conn     *v1alpha1.Connection
	platform platforms.Platform
	started  time.Time
	// input is what the connection's Secret holds, and loaded the version of the working copy
	// when the examination began; of the input, if there was no copy.
	input  credentials.Input
	loaded string
	// read is what the working copy holds.
	read    credentials.Credentials
	renewed bool
	// adopted is set once the working copy has been made from another input than before.
	adopted bool
	// replaced is set once other credentials were found than the examination began
	// with, which Herald did not make.
	replaced bool
}

// examineLocked examines an account, or returns after how long to try again if it is being
// examined for another connection.
func (r *Reconciler) examineLocked(ctx context.Context, conn *v1alpha1.Connection) (o outcome, again time.Duration) {
	done, again := r.locks.tryAcquire(workingKey(conn))
	if again > 0 {
		return outcome{}, again
	}
	defer done()
	return r.examine(ctx, conn), 0
}

// examine finds out whether the account can be published to, and renews its token if
// needed. It has the turn of the working copy.
func (r *Reconciler) examine(ctx context.Context, conn *v1alpha1.Connection) outcome {
	if conn.Spec.Disabled {
		return outcome{reason: v1alpha1.ReasonDisabled, message: msgDisabled}
	}
	platform := r.Platforms[conn.Spec.Platform] // see withheld
	e := &examination{Reconciler: r, conn: conn, platform: platform, started: r.Clock.Now()}
	rescued, err := r.rescue(ctx, conn)
	if err != nil {
		return credentialsOutcome(err)
	}
	found, err := r.Store.Find(ctx, conn)
	if err != nil {
		return credentialsOutcome(err)
	}
	e.input, e.loaded = found.Input, found.Input.Version
	if found.Working != nil {
		e.read, e.loaded = *found.Working, found.Working.Version
	}
	o := e.examineFound(ctx, found)
	o.loaded, o.input, o.adopted = e.loaded, &e.input, e.adopted
	if e.read.Version != "" {
		read := renewable(e.read, platform.Capabilities())
		o.read = &read
	}
	o.known = !e.replaced && !e.adopted && (e.loaded == conn.Status.CredentialsVersion || rescued != "" && e.loaded == rescued)
	return o
}

// probe asks the platform whose token it is. It renews the token before if its end is
// near, and afterwards if the platform does not accept it. It renews at most once:
// the first answer may have been lost.
func (e *examination) probe(ctx context.Context) outcome {
	var early *outcome
	limits := e.platform.Capabilities()
	if renewalDue(limits.RefreshLead, renewable(e.read, limits), e.conn.UID, e.Clock.Now()) {
		early = e.renew(ctx)
		// As long as the old token works, a renewal that failed for the moment
		// does no harm.
		if early != nil && (!isTransient(early.reason) || !e.Clock.Now().Before(e.read.Token.ExpiresAt)) {
			return *early
		}
	}
	identity, failure := e.identify(ctx)
	if isTokenRefused(failure) && early != nil {
		return *early
	}
	if isTokenRefused(failure) && !e.renewed && e.read.Token.Refresh != "" {
		if failed := e.renew(ctx); failed != nil {
			return *failed
		}
		identity, failure = e.identify(ctx)
	}
	switch {
	case failure == nil:
		return e.addInspection(ctx, identityOutcome(e.conn, identity))
	case isTokenRefused(failure) && e.renewed:
		return outcome{probed: true, reason: v1alpha1.ReasonPlatformUnavailable, message: msgStillRefused}
	default:
		ctrl.LoggerFrom(ctx).Info("the platform did not confirm the account", "class", failure.Class, "answer", failure.Error(), "cause", failure.Err)
		return failureOutcome(failure)
	}
}

// addInspection adds what else the platform tells about a good account. The platform may
// refuse that although it answered whose account it is.
func (e *examination) addInspection(ctx context.Context, o outcome) outcome {
	if o.reason != v1alpha1.ReasonConnected {
		return o
	}
	found, failure := e.inspect(ctx)
	switch {
	case isTokenRefused(failure):
		// The token was good a moment ago; the next examination asks again.
		return outcome{probed: true, reason: v1alpha1.ReasonPlatformUnavailable, message: failure.Error() + triesAgain}
	case failure != nil:
		return failureOutcome(failure)
	}
	o.account = found
	return o
}

// isTransient reports whether a reason says nothing about the account.
func isTransient(reason string) bool {
	return reason == v1alpha1.ReasonPlatformUnavailable || reason == v1alpha1.ReasonCredentialsUnavailable
}

// isTokenRefused reports whether the platform does not accept the access token.
func isTokenRefused(failure *platforms.Error) bool {
	return failure != nil && failure.Class == platforms.ClassRefresh
}

// identify asks the platform, within the time that is left.
func (e *examination) identify(ctx context.Context) (platforms.Identity, *platforms.Error) {
	left := probeWithin - e.Clock.Since(e.started)
	if e.renewed {
		left = max(left, afterRenewal)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	identity, err := e.platform.Identify(ctx, platforms.Token(e.read.Token))
	if err != nil {
		return platforms.Identity{}, e.countError(unlisted.Identify, err)
	}
	return identity, nil
}

// countError returns the error of a call as a *platforms.Error, and counts one whose code
// is in no table.
func (e *examination) countError(operation string, err error) *platforms.Error {
	failure := platformError(err)
	if failure.Unlisted {
		e.Unlisted.Count(string(e.conn.Spec.Platform), operation, failure.Code)
	}
	return failure
}

// platformError makes a *platforms.Error of any error.
func platformError(err error) *platforms.Error {
	if failure, ok := errors.AsType[*platforms.Error](err); ok {
		return failure
	}
	return &platforms.Error{Class: platforms.ClassUnknown, Problem: "the platform gave no usable answer", Err: err}
}

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
		found.RateLimits = ratelimit.SanitizeLimits(found.RateLimits, platforms.Token(e.read.Token))
		return &found, nil
	}
	failure := e.countError(unlisted.Inspect, err)
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
