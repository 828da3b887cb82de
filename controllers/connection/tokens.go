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

type unsaved struct {
	conn    *v1alpha1.Connection
	renewal credentials.Renewal
	// from is the fingerprint of the token that was exchanged.
	from string
	// inherited is true for a token from an earlier process. Only its sealed form is known.
	inherited bool
}

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
	if e.Store.Inherited(e.conn, e.read) && e.Spool.HasUnreadable(credentials.SpoolAccountOf(e.conn)) {
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
	stored, err := e.save(ctx, pending)
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
	renewed.App = e.Store.App(e.conn.Spec.Platform)
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
		if may, wait := e.Store.MayClaim(e.conn, e.read, e.input, claimTimeout); !may {
			return &outcome{reason: v1alpha1.ReasonPlatformUnavailable, message: msgClaimed, retryAt: e.Clock.Now().Add(wait)}
		}
		version, err := e.Store.Claim(ctx, e.conn, e.read.Version)
		if err == nil {
			e.read.Version = version
			return nil
		}
		if credentials.ReasonOf(err) != credentials.Conflict {
			return new(workingCopyOutcome(err))
		}
		found, err := e.Store.Working(ctx, e.conn)
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

func workingKey(conn *v1alpha1.Connection) types.NamespacedName {
	return types.NamespacedName{Namespace: conn.Namespace, Name: credentials.WorkingName(conn)}
}

// save stores a renewed token before its use. While the API server is unavailable, it keeps the token in memory.
func (r *Reconciler) save(ctx context.Context, pending unsaved) (credentials.Credentials, error) {
	r.unsaved.Store(workingKey(pending.conn), pending)
	r.seal(ctx, pending)
	within := saveTimeout
	if r.stopping.Load() {
		within = max(within, r.Grace) // there is no next examination
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	stored, err := r.store(saving, pending)
	if err != nil && credentials.ReasonOf(err) == credentials.Unavailable {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token is not stored yet; if this process exits before then without a copy in the spool, the account must be reconnected")
		return credentials.Credentials{}, err
	}
	r.discardSaved(ctx, workingKey(pending.conn), credentials.SpoolAccountOf(pending.conn))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token cannot be stored; the account may need to be reconnected")
	}
	return stored, err
}

// store writes a renewed token. After a conflict it writes again, unless the working copy now holds another token,
// which then takes precedence. A token from an earlier process is not stored if the copy is gone.
func (r *Reconciler) store(ctx context.Context, pending unsaved) (credentials.Credentials, error) {
	renewal := pending.renewal
	var err error
	if pending.inherited {
		renewal.Before, err = r.Store.Working(ctx, pending.conn)
		if credentials.ReasonOf(err) == credentials.NotFound {
			return credentials.Credentials{}, nil // the account was disconnected
		}
		if err != nil || renewal.Before.Token.Fingerprint() != pending.from {
			return renewal.Before, err
		}
	}
	old := renewal.Before.Token
	for range maxConflicts {
		var version string
		if version, err = r.Store.Save(ctx, pending.conn, renewal); err == nil {
			if r.Renewed != nil {
				r.Renewed(old, renewal.Token)
			}
			return r.asStored(ctx, pending.conn, renewal.Token, version), nil
		}
		if credentials.ReasonOf(err) != credentials.Conflict {
			return credentials.Credentials{}, err
		}
		found, loadErr := r.Store.Working(ctx, pending.conn)
		if loadErr != nil {
			return credentials.Credentials{}, loadErr
		}
		if found.Token.Fingerprint() != pending.from {
			return found, nil
		}
		renewal.Before = found
	}
	return credentials.Credentials{}, &credentials.Error{Reason: credentials.Unavailable, Message: err.Error(), Err: err}
}

// asStored reads the stored token back, with its renewal time. If that fails, it returns the token as written.
func (r *Reconciler) asStored(ctx context.Context, conn *v1alpha1.Connection, token credentials.Token, version string) credentials.Credentials {
	if found, err := r.Store.Working(ctx, conn); err == nil && found.Token.Access == token.Access {
		return found
	}
	return credentials.Credentials{Token: token, Version: version, RenewedAt: r.Clock.Now()}
}

// rescue stores a token that could not be stored earlier, whether by an examination of one of the account's connections
// or by an earlier process. It returns the version of the working copy that holds the token, or "" if there was none or
// the copy holds another one.
func (r *Reconciler) rescue(ctx context.Context, conn *v1alpha1.Connection) (version string, err error) {
	v, ok := r.unsaved.Load(workingKey(conn))
	pending, isOne := v.(unsaved)
	if !ok || !isOne {
		return "", nil
	}
	stored, err := r.save(ctx, pending)
	if err != nil || stored.Token.Access != pending.renewal.Token.Access {
		return "", err
	}
	return stored.Version, nil
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

// Forget drops a connection's token after the platform refused it.
func (t Tokens) Forget(conn *v1alpha1.Connection) { t.Cache.Forget(conn) }
