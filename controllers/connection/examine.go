// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
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
	read     credentials.Credentials
	renewed  bool
}

// examine finds out whether the account can be published to, and renews its token if
// needed.
func (r *Reconciler) examine(ctx context.Context, conn *v1alpha1.Connection) outcome {
	platform, supported := r.Platforms[conn.Spec.Platform]
	switch {
	case conn.Spec.Disabled:
		return outcome{reason: v1alpha1.ReasonDisabled, message: msgDisabled}
	case !supported:
		return outcome{reason: v1alpha1.ReasonPlatformNotSupported, message: msgUnsupported}
	}
	e := &examination{Reconciler: r, conn: conn, platform: platform, started: r.Clock.Now()}
	if err := r.rescue(ctx, conn); err != nil {
		return ofCredentials(err)
	}
	var err error
	if e.read, err = r.Store.Load(ctx, conn); err != nil {
		return ofCredentials(err)
	}
	loaded := e.read.Version
	o := e.ask(ctx)
	read := renewable(e.read, platform.Capabilities())
	o.loaded, o.read = loaded, &read
	return o
}

// ask asks the platform whose token it is. It renews the token before if its end is
// near, and afterwards if the platform does not accept it. It renews at most once:
// the first answer may have been lost.
func (e *examination) ask(ctx context.Context) outcome {
	var early *outcome
	limits := e.platform.Capabilities()
	if renewalDue(limits.RefreshLead, renewable(e.read, limits), e.conn.UID, e.Clock.Now()) {
		if failed, ok := e.renew(ctx); !ok {
			early = &failed
		}
		// As long as the old token works, a renewal that failed for the moment
		// does no harm.
		if early != nil && (!passes(early.reason) || !e.Clock.Now().Before(e.read.Token.ExpiresAt)) {
			return *early
		}
	}
	identity, failure := e.identify(ctx)
	if refused(failure) && early != nil {
		return *early
	}
	if refused(failure) && !e.renewed && e.read.Token.Refresh != "" {
		if failed, ok := e.renew(ctx); !ok {
			return failed
		}
		identity, failure = e.identify(ctx)
	}
	switch {
	case failure == nil:
		return e.inspected(ctx, ofIdentity(e.conn, identity))
	case refused(failure) && e.renewed:
		return outcome{asked: true, reason: v1alpha1.ReasonPlatformUnavailable, message: msgStillRefused}
	default:
		ctrl.LoggerFrom(ctx).Info("the platform did not confirm the account", "class", failure.Class, "answer", failure.Error(), "cause", failure.Err)
		return ofFailure(failure)
	}
}

// inspected adds what else the platform tells about a good account. The platform may
// refuse that although it answered whose account it is.
func (e *examination) inspected(ctx context.Context, o outcome) outcome {
	if o.reason != v1alpha1.ReasonConnected {
		return o
	}
	found, failure := e.inspect(ctx)
	switch {
	case refused(failure):
		// The token was good a moment ago; the next examination asks again.
		return outcome{asked: true, reason: v1alpha1.ReasonPlatformUnavailable, message: failure.Error() + triesAgain}
	case failure != nil:
		return ofFailure(failure)
	}
	o.account = found
	return o
}

// passes reports whether a reason says nothing about the account.
func passes(reason string) bool {
	return reason == v1alpha1.ReasonPlatformUnavailable || reason == v1alpha1.ReasonCredentialsUnavailable
}

// refused reports whether the platform does not accept the access token.
func refused(failure *platforms.Error) bool {
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
		return platforms.Identity{}, platformError(err)
	}
	return identity, nil
}

// platformError makes a *platforms.Error of any error.
func platformError(err error) *platforms.Error {
	if failure, ok := errors.AsType[*platforms.Error](err); ok {
		return failure
	}
	return &platforms.Error{Class: platforms.ClassUnknown, Problem: "the platform gave no usable answer", Err: err}
}
