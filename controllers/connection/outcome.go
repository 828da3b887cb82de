// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

// The schema's limits for account details from a platform, and for the echo of a probe request.
const (
	longestName  = 512
	longestURL   = 2048
	longestProbe = 256
)

type outcome struct {
	reason  string
	message string
	probed  bool
	// loaded is the version of the working copy at the start of the examination. read is its content at the end, after
	// claims and renewals. If the copy could not be read, they are empty and nil, respectively.
	loaded string
	read   *credentials.Credentials
	// input is the content of the connection's Secret, or nil if it could not be read. ignored explains why the account
	// does not use it. adopted is true if the account has started to use it.
	input   *credentials.Input
	ignored ignored
	adopted bool
	// known is true if only Herald's own renewals have changed the credentials since the previous examination.
	known bool
	// identity is the account that the token belongs to, or nil if unknown.
	identity *platforms.Identity
	// account holds more details from the platform, or nil if there is nothing new.
	account *platforms.AccountInfo
	// retryAt is when the platform allows the next call, if it reported that.
	retryAt time.Time
}

func progressOf(reason string) conditions.Progress {
	switch reason {
	case v1alpha1.ReasonConnected:
		return conditions.Settled
	case v1alpha1.ReasonPlatformUnavailable, v1alpha1.ReasonCredentialsNotFound, v1alpha1.ReasonCredentialsUnavailable, v1alpha1.ReasonNoTeam:
		return conditions.Underway
	default:
		return conditions.Stuck
	}
}

func needsReconnect(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonRevoked, v1alpha1.ReasonTokenExpired, v1alpha1.ReasonAccountMismatch}, reason)
}

func credentialsOutcome(err error) outcome {
	o := outcome{message: err.Error()}
	switch credentials.ReasonOf(err) {
	case credentials.NotFound:
		o.reason = v1alpha1.ReasonCredentialsNotFound
	case credentials.Invalid:
		o.reason = v1alpha1.ReasonCredentialsInvalid
	case credentials.Conflict, credentials.Unavailable, credentials.Unverified:
		o.reason = v1alpha1.ReasonCredentialsUnavailable
	}
	return o
}

// workingCopyOutcome maps an error about the working copy to an outcome. A missing copy is created again.
func workingCopyOutcome(err error) outcome {
	o := credentialsOutcome(err)
	if o.reason == v1alpha1.ReasonCredentialsNotFound {
		o.reason, o.message = v1alpha1.ReasonCredentialsUnavailable, msgCopyGone
	}
	return o
}

func identityOutcome(conn *v1alpha1.Connection, identity platforms.Identity) outcome {
	if identity.AccountID != conn.Spec.AccountID {
		return outcome{
			probed: true,
			reason: v1alpha1.ReasonAccountMismatch,
			message: fmt.Sprintf("the token belongs to account %q, but spec.accountID is %q; connect the right account, or create another Connection for this one",
				identity.AccountID, conn.Spec.AccountID),
		}
	}
	return outcome{
		probed: true, identity: &identity, reason: v1alpha1.ReasonConnected,
		message: fmt.Sprintf("connected as %s", nameOf(identity)),
	}
}

func nameOf(identity platforms.Identity) string {
	switch {
	case identity.Username != "":
		return "@" + identity.Username
	case identity.DisplayName != "":
		return identity.DisplayName
	default:
		return identity.AccountID
	}
}

const triesAgain = "; Herald tries again"

// failureOutcome maps a platform's error to an outcome. Only a fault that a user can fix disconnects the account; all
// others are transient. An unlisted code does not indicate a problem with the account.
func failureOutcome(failure *platforms.Error) outcome {
	o := outcome{probed: true, message: failure.Error()}
	class := failure.Class
	if failure.Unlisted {
		class = platforms.ClassUnknown
	}
	switch class {
	case platforms.ClassReconnect, platforms.ClassPermanent:
		o.reason = v1alpha1.ReasonRevoked
	case platforms.ClassRestricted:
		o.reason = v1alpha1.ReasonAccountRestricted
		o.message += "; Herald asks again once an hour"
	case platforms.ClassRefresh:
		o.reason = v1alpha1.ReasonTokenExpired
		o.message += "; connect the account again"
	case platforms.ClassRateLimited, platforms.ClassQuota, platforms.ClassTransient, platforms.ClassDuplicate, platforms.ClassUnknown:
		o.reason = v1alpha1.ReasonPlatformUnavailable
		o.message += triesAgain
		o.retryAt = failure.RetryAt
	}
	return o
}

// apply writes an outcome to the connection's status. probe is the probe request at the start of the examination.
func apply(conn *v1alpha1.Connection, o outcome, probe string, now time.Time) {
	status := &conn.Status
	o = preserveDisconnected(status, o)
	newCredentials := o.loaded != status.CredentialsVersion && status.ObservedGeneration != conn.Generation
	reconnected := newCredentials || o.adopted || needsReconnect(conditions.Reason(status.Conditions))
	if o.probed {
		status.LastProbedAt = v1alpha1.NewTimePtr(now)
	}
	if probe != "" {
		status.LastHandledProbe = text.First(probe, longestProbe)
	}
	if o.read != nil {
		if verified := o.known && status.Confirmed() && o.reason != v1alpha1.ReasonAccountMismatch; verified || o.identity != nil {
			status.VerifiedVersion = o.read.Version
		} else {
			status.VerifiedVersion = ""
		}
		setApp(status, o.read.Token.App)
		status.CredentialsVersion, status.WorkingSecret = o.read.Version, credentials.WorkingName(conn)
		status.TokenExpiresAt = writable(o.read.Token.ExpiresAt)
		status.ReconnectBy = writable(reconnectBy(o.read.Token))
	}
	if o.reason == v1alpha1.ReasonCredentialsNotFound {
		status.CredentialsVersion, status.TokenExpiresAt, status.ReconnectBy = "", nil, nil
		status.VerifiedVersion = ""
		setApp(status, "")
	}
	applyIgnored(conn, o, now)
	if o.reason == v1alpha1.ReasonConnected && reconnected {
		// The refusal concerned the earlier credentials.
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionPublishingRefused)
	}
	if o.identity != nil {
		status.AccountName = text.First(o.identity.DisplayName, longestName)
		status.Username = text.First(o.identity.Username, longestName)
		status.IconURL = platforms.PictureURL(o.identity.IconURL)
		if len(status.IconURL) > longestURL {
			status.IconURL = ""
		}
		if status.ConnectedAt == nil || reconnected {
			status.ConnectedAt = v1alpha1.NewTimePtr(now)
		}
	}
	ratelimit.DropExpired(status, now)
	if o.account != nil {
		ratelimit.ApplyAccountInfo(status, *o.account, now)
	}
	ratelimit.Describe(conn, "", now)
	status.ObservedGeneration = conn.Generation
	conditions.Apply(&status.Conditions, conditions.Summary{
		Ready: o.reason == v1alpha1.ReasonConnected, Reason: o.reason, Message: o.message, Progress: progressOf(o.reason),
	}, conn.Generation, now)
}

// longestApp is the schema's limit.
const longestApp = 256

// setApp records the app that the credentials belong to. Another app's rate limit no longer applies.
func setApp(status *v1alpha1.ConnectionStatus, app string) {
	if app = text.First(app, longestApp); status.App != app {
		status.App, status.AppRateLimitedUntil = app, nil
	}
}

// reconnectBy returns the time from which a token can no longer be renewed: the expiry of the refresh token, or of the
// access token on a platform without refresh tokens. It returns zero if the time is not known.
func reconnectBy(token credentials.Token) time.Time {
	if token.Refresh == "" || token.Refresh == token.Access {
		return token.ExpiresAt
	}
	return token.RefreshExpiresAt
}

// preserveDisconnected keeps a disconnected connection disconnected while its platform is unavailable.
func preserveDisconnected(status *v1alpha1.ConnectionStatus, o outcome) outcome {
	known := conditions.Reason(status.Conditions)
	if o.reason != v1alpha1.ReasonPlatformUnavailable || !needsReconnect(known) || o.adopted || o.loaded == "" || o.loaded != status.CredentialsVersion {
		return o
	}
	o.reason = known
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			o.message = c.Message
		}
	}
	return o
}

// writable returns a time that the schema accepts, or nil.
func writable(t time.Time) *v1alpha1.Time {
	if t.IsZero() || t.Year() < 1000 || t.Year() > 2999 {
		return nil
	}
	return v1alpha1.NewTimePtr(t)
}
