// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

const (
	// probeTimeout limits how long an examination waits for the platform. The apiserver waits five seconds for the result
	// of its request, including the write and the watch event.
	probeTimeout = 4 * time.Second

	// afterRenewal is the time that is left for the probe after a renewal that used up most of probeTimeout.
	afterRenewal = 2 * time.Second
)

const (
	msgUnsupported  = "this Herald has no access to the platform; the administrator has to configure it, or the Connection can be deleted"
	msgDisabled     = "the connection is disabled; set spec.disabled to false to use it again"
	msgStillRefused = "the platform rejected a token that it had just renewed" + triesAgain
)

// examiner checks with the platforms that accounts can be published to, and renews their tokens.
type examiner struct {
	reader    client.Reader
	platforms platforms.Registry
	store     *credentials.Store
	spool     *credentials.Spool
	clock     clock.PassiveClock
	unlisted  *unlisted.Counter
	tokens    *tokenSaver
	register  *copyRegister
	// verdicts caches the platform's responses about unadopted inputs.
	verdicts *cache.LRUExpireCache
}

// examination is the examination of one account.
type examination struct {
	*examiner

	conn     *v1alpha1.Connection
	platform platforms.Platform
	started  time.Time
	// input is the content of the connection's Secret. loaded is the version of the working copy at the start of the
	// examination, or that of the input if there was no copy.
	input   credentials.Input
	loaded  string
	read    credentials.Credentials
	renewed bool
	// adopted is set once the working copy was made from a different input.
	adopted bool
	// replaced is set once someone other than Herald has changed the credentials since the start of the examination.
	replaced bool
}

// examineLocked examines an account, or returns a retry delay if another connection of the account is being examined.
func (r *Reconciler) examineLocked(ctx context.Context, conn *v1alpha1.Connection) (o outcome, again time.Duration) {
	done, again := r.locks.tryAcquire(workingKey(conn))
	if again > 0 {
		return outcome{}, again
	}
	defer done()
	return r.examiner.examine(ctx, conn), 0
}

// examine checks whether the account can publish, and renews its token if needed. The caller must hold the copy's lock.
func (r *examiner) examine(ctx context.Context, conn *v1alpha1.Connection) outcome {
	if conn.Spec.Disabled {
		return outcome{reason: v1alpha1.ReasonDisabled, message: msgDisabled}
	}
	platform := r.platforms[conn.Spec.Platform] // withheld has checked that it exists
	e := &examination{examiner: r, conn: conn, platform: platform, started: r.clock.Now()}
	rescued, err := r.tokens.rescue(ctx, conn)
	if err != nil {
		return credentialsOutcome(err)
	}
	found, err := r.store.Find(ctx, conn)
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

// probe requests the token's account from the platform. It renews a token beforehand if it is about to expire, and
// afterwards if the platform has refused it. It renews at most once per examination.
func (e *examination) probe(ctx context.Context) outcome {
	var early *outcome
	limits := e.platform.Capabilities()
	if renewalDue(limits.RefreshLead, renewable(e.read, limits), e.conn.UID, e.clock.Now()) {
		early = e.renew(ctx)
		// A transient failure of the renewal is harmless while the old token is valid.
		if early != nil && (!isTransient(early.reason) || !e.clock.Now().Before(e.read.Token.ExpiresAt)) {
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

// addInspection adds a working account's details. The platform may refuse this call although it identified the account.
func (e *examination) addInspection(ctx context.Context, o outcome) outcome {
	if o.reason != v1alpha1.ReasonConnected {
		return o
	}
	found, failure := e.inspect(ctx)
	switch {
	case isTokenRefused(failure):
		// The token was valid a moment ago; the next examination retries.
		return outcome{probed: true, reason: v1alpha1.ReasonPlatformUnavailable, message: failure.Error() + triesAgain}
	case failure != nil:
		return failureOutcome(failure)
	}
	o.account = found
	return o
}

func isTransient(reason string) bool {
	return reason == v1alpha1.ReasonPlatformUnavailable || reason == v1alpha1.ReasonCredentialsUnavailable
}

func isTokenRefused(failure *platforms.Error) bool {
	return failure != nil && failure.Class == platforms.ClassRefresh
}

func (e *examination) identify(ctx context.Context) (platforms.Identity, *platforms.Error) {
	left := probeTimeout - e.clock.Since(e.started)
	if e.renewed {
		left = max(left, afterRenewal)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	identity, err := e.platform.Identify(ctx, platforms.Token(e.read.Token))
	if err != nil {
		return platforms.Identity{}, e.recordError(unlisted.Identify, err)
	}
	return identity, nil
}

func (e *examination) recordError(operation string, err error) *platforms.Error {
	failure := platformError(err)
	if failure.Unlisted {
		e.unlisted.Inc(string(e.conn.Spec.Platform), operation, failure.Code)
	}
	return failure
}

func platformError(err error) *platforms.Error {
	if failure, ok := errors.AsType[*platforms.Error](err); ok {
		return failure
	}
	return &platforms.Error{Class: platforms.ClassUnknown, Problem: "the platform's response is unusable", Err: err}
}

const (
	// inspectEvery is how long known rate limits are relied on while plenty remains: a busy account is probed every
	// minute.
	inspectEvery = 10 * time.Minute
	// minInspectTimeout is the minimum timeout for an inspection, however long the rest of the examination took.
	minInspectTimeout = time.Second
	// beforeBlockEnds is how long before the end of a block the account is inspected. If the limit is still exhausted, the
	// account remains blocked and no call fails.
	beforeBlockEnds = 10 * time.Second
)

// inspect returns the account's options and remaining rate limits. It returns nil if the platform does not report them,
// the inspection is not due, or there is nothing new.
func (e *examination) inspect(ctx context.Context) (*platforms.AccountInfo, *platforms.Error) {
	inspector, ok := e.platform.(platforms.AccountInspector)
	if !ok || !inspectDue(&e.conn.Status, e.clock.Now()) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(probeTimeout-e.clock.Since(e.started), minInspectTimeout))
	defer cancel()
	found, err := inspector.Inspect(ctx, platforms.Account{
		ID: e.conn.Spec.AccountID, Username: e.conn.Status.Username, Token: platforms.Token(e.read.Token),
	})
	if err == nil {
		found.RateLimits = ratelimit.SanitizeLimits(found.RateLimits, platforms.Token(e.read.Token))
		return &found, nil
	}
	failure := e.recordError(unlisted.Inspect, err)
	ctrl.LoggerFrom(ctx).Info("the platform did not report the account's options and limits", "class", failure.Class, "answer", failure.Error(), "cause", failure.Err)
	if failure.Class == platforms.ClassRateLimited && e.conn.Status.TikTok != nil {
		// The platform rate-limits this call, and its previous response is recent enough.
		return nil, nil
	}
	return nil, failure
}

func inspectDue(status *v1alpha1.ConnectionStatus, now time.Time) bool {
	if status.TikTok != nil || len(status.RateLimits) == 0 || !ratelimit.BlockedUntil(status, now).IsZero() {
		return true
	}
	return slices.ContainsFunc(status.RateLimits, func(l v1alpha1.RateLimit) bool {
		return ratelimit.Low(&l, 0) || now.Sub(l.ObservedAt.Time) >= inspectEvery
	})
}

// inspectAt returns the time of the next inspection of a connection that is blocked by an exhausted limit. It returns
// never if the connection is not blocked or has been inspected since.
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
