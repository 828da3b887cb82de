// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
)

// Limits of a renewal. A started renewal is not cancelled, because the refresh token may already be spent.
const (
	refreshTimeout = 15 * time.Second
	// saveTimeout bounds how long one examination keeps trying to store a renewed token. Later examinations retry, as does
	// the flusher for up to Grace during shutdown.
	saveTimeout = 60 * time.Second
	// claimTimeout is how long to wait for another manager's renewal: longer than both timeouts together.
	claimTimeout = 90 * time.Second
	// maxConflicts limits the retries after conflicts with clients that change something else in the Secret.
	maxConflicts = 5
)

const (
	msgClaimed = "another manager is renewing the token; Herald retries afterwards"
	msgUnread  = "a renewed token in the manager pod's folder for unsaved tokens cannot be read; Herald tries again, " +
		"and the manager's log has the file and the error. If this persists, connect the account again"
	msgContended = "another client keeps changing the Secret, so its token cannot be renewed; find that client and stop it"
)

// renew exchanges the refresh token for a new token and stores it. It returns the outcome of a failure, or nil.
func (e *examination) renew(ctx context.Context) *outcome {
	before := e.read.Token
	if !e.proven() {
		other, err := e.contested(ctx)
		if err != nil {
			return &outcome{reason: v1alpha1.ReasonCredentialsUnavailable, message: err.Error()}
		}
		if other != "" {
			return &outcome{reason: v1alpha1.ReasonCredentialsInvalid, message: fmt.Sprintf(msgContested, e.input.Secret, other)}
		}
	}
	if e.store.Inherited(e.conn, e.read) && e.spool.HasUnreadable(credentials.SpoolAccountOf(e.conn)) {
		return &outcome{reason: v1alpha1.ReasonCredentialsUnavailable, message: msgUnread}
	}
	if failed := e.claim(ctx); failed != nil {
		return failed
	}
	if e.read.Token.Access != before.Access {
		// Another manager or a user has just stored another token.
		return nil
	}
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	renewed, err := e.platform.Refresh(calling, platforms.Token(e.read.Token))
	if err != nil {
		failure := e.recordError(unlisted.Refresh, err)
		ctrl.LoggerFrom(ctx).Info("the token was not renewed", "class", failure.Class, "answer", failure.Error(), "cause", failure.Err)
		return new(failureOutcome(failure))
	}
	pending := unsaved{
		conn: e.conn, from: e.read.Token.Fingerprint(),
		renewal: credentials.Renewal{Token: e.withApp(credentials.Token(renewed)), Before: e.read},
	}
	stored, err := e.tokens.save(ctx, pending)
	if err != nil {
		return new(credentialsOutcome(err))
	}
	e.replaced = e.replaced || stored.Token.Access != pending.renewal.Token.Access
	e.read, e.renewed = stored, true
	return nil
}

// withApp completes a renewed token with its app and refresh token. A platform with refresh tokens renews a token only
// for the token's own app, which authenticates with its secret. A platform that renews access tokens directly requires
// no app; the new token belongs to the same app as the old one.
func (e *examination) withApp(renewed credentials.Token) credentials.Token {
	renewed.App = e.store.App(e.conn.Spec.Platform)
	if e.platform.Capabilities().RenewsItself {
		renewed.App = e.read.Token.App
	}
	if renewed.Refresh == "" {
		renewed.Refresh = e.read.Token.Refresh
	}
	return renewed
}

// claim records in the working copy that its current token is about to be renewed. It retries after conflicts.
func (e *examination) claim(ctx context.Context) *outcome {
	for range maxConflicts {
		if may, wait := e.store.MayClaim(e.conn, e.read, e.input, claimTimeout); !may {
			return &outcome{reason: v1alpha1.ReasonPlatformUnavailable, message: msgClaimed, retryAt: e.clock.Now().Add(wait)}
		}
		version, err := e.store.Claim(ctx, e.conn, e.read.Version)
		if err == nil {
			e.read.Version = version
			return nil
		}
		if credentials.ReasonOf(err) != credentials.Conflict {
			return new(workingCopyOutcome(err))
		}
		found, err := e.store.Working(ctx, e.conn)
		if err != nil {
			return new(workingCopyOutcome(err))
		}
		changed := found.Token.Access != e.read.Token.Access
		e.read, e.replaced = found, e.replaced || changed
		if changed {
			return nil
		}
	}
	return &outcome{reason: v1alpha1.ReasonCredentialsUnavailable, message: msgContended}
}

// secretAnnotation holds the name of the Secret that was used last, if the Connection controls it. Once the Connection
// uses another Secret, the old one is deleted. Herald does not delete Secrets that users created.
const secretAnnotation = "social.herald.dev/credentials-secret"

// deleteOldSecret deletes the Secret that an earlier connection to the account left behind. It runs once the new
// credentials are known to work and the connection refers to them. The next examination retries failures.
func (r *Reconciler) deleteOldSecret(ctx context.Context, conn *v1alpha1.Connection, input *credentials.Input) {
	if input == nil || input.Freshness != credentials.Current {
		return
	}
	used, wanted := conn.Annotations[secretAnnotation], ""
	if input.Controller == conn.UID {
		wanted = conn.Spec.CredentialsSecretRef.Name
	}
	if used == wanted {
		return
	}
	if used != "" && used != conn.Spec.CredentialsSecretRef.Name {
		// The annotation may name any Secret.
		if err := credentials.DeleteControlled(ctx, r.APIReader, r.Client, conn, used); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot delete the credentials of an earlier connection to the account")
			return
		}
	}
	if err := r.recordSecret(ctx, conn, wanted); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot record the connection's Secret")
	}
}

func (r *Reconciler) recordSecret(ctx context.Context, conn *v1alpha1.Connection, name string) error {
	var value any
	if name != "" {
		value = name
	}
	return annotate(ctx, r.Client, conn, secretAnnotation, value)
}

// annotate sets an annotation, or removes it if value is nil. It ignores a deleted or re-created connection.
func annotate(ctx context.Context, writer client.Writer, conn *v1alpha1.Connection, key string, value any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": conn.UID, "annotations": map[string]any{key: value}},
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(writer.Patch(ctx, conn.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

// Tokens returns a cache's tokens as platforms.Token.
type Tokens struct {
	Cache *credentials.Cache
}

// NewTokens returns the Tokens of a manager. It reads credentials from the store, and requests an examination when they
// differ from those that the platform confirmed.
func NewTokens(store *credentials.Store, writer client.Writer, c clock.PassiveClock) Tokens {
	return Tokens{Cache: credentials.NewCache(store, c, newProbeRequester(writer))}
}

// newProbeRequester returns a function that requests an examination by annotation, as clients do.
func newProbeRequester(writer client.Writer) credentials.ExaminationRequester {
	return func(ctx context.Context, conn *v1alpha1.Connection, version string) error {
		log := ctrl.LoggerFrom(ctx).WithValues("connection", client.ObjectKeyFromObject(conn), "secret", conn.Spec.CredentialsSecretRef.Name)
		if err := annotate(ctx, writer, conn, v1alpha1.ProbeAnnotation, "credentials-"+version+"-"+rand.Text()); err != nil {
			log.Error(err, "cannot request a check of a connection's changed credentials; its posts wait")
			return err
		}
		log.Info("the credentials of a connection changed; its posts wait until the platform has confirmed the account")
		return nil
	}
}

// Token returns a connection's confirmed current token. Errors are *credentials.Error or ctx.Err().
func (t Tokens) Token(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error) {
	token, err := t.Cache.Token(ctx, conn)
	return platforms.Token(token), err
}

// Prefetch reads a connection's token unless the cached one can be used until the given time.
func (t Tokens) Prefetch(ctx context.Context, conn *v1alpha1.Connection, until time.Time) error {
	return t.Cache.Prefetch(ctx, conn, until)
}

// Forget drops a connection's token after the platform refused it.
func (t Tokens) Forget(conn *v1alpha1.Connection) { t.Cache.Forget(conn) }
