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
	"github.com/herald-social/herald/internal/credentials/spool"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
)

// Bounds of a renewal, which the caller's context does not end: once begun, it is
// finished, because the refresh token may be spent.
const (
	// refreshWithin bounds the call to the platform.
	refreshWithin = 15 * time.Second
	// saveWithin is how long one examination tries to store a renewed token; the
	// next examinations continue, and while the manager stops the keeper, for as long as
	// that may take.
	saveWithin = 60 * time.Second
	// claimPatience is how long to wait for another manager's renewal: more than
	// both together.
	claimPatience = 90 * time.Second
	// mostConflicts is how often a write gives way to clients that change something
	// else in the Secret.
	mostConflicts = 5
)

const (
	msgClaimed = "another manager is renewing the token; Herald looks again when it is done"
	msgUnread  = "a renewed token of the account lies in the folder of the manager's pod for tokens that are not stored yet, and cannot be read there; Herald tries again, " +
		"and the log of the manager names the file and the error. If it stays so, connect the account again"
	msgContended = "another client changes the Secret all the time, so that its token cannot be renewed; find out which one does"
)

// unsaved is a renewed token that could not be stored yet, and the account that it is of.
type unsaved struct {
	conn    *v1alpha1.Connection
	renewal credentials.Renewal
	// from is the fingerprint of the token that it was obtained with.
	from string
	// inherited is true if an earlier process renewed it, of which the sealed token is all that is
	// known.
	inherited bool
}

// renew exchanges the refresh token for a new token and stores that. If it fails, the
// outcome says why; else it is nil.
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
	if e.Store.Inherited(e.conn, e.read) && e.Spool.HasUnreadable(spool.AccountOf(e.conn)) {
		return &outcome{reason: v1alpha1.ReasonCredentialsUnavailable, message: msgUnread}
	}
	if failed := e.claim(ctx); failed != nil {
		return failed
	}
	if e.read.Token.Access != before.Access {
		// Another manager has just stored another token, or a person has.
		return nil
	}
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshWithin)
	defer cancel()
	renewed, err := e.platform.Refresh(calling, platforms.Token(e.read.Token))
	if err != nil {
		failure := e.countError(unlisted.Refresh, err)
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

// withApp completes a renewed token, and says which app it is of. A platform with refresh
// tokens renews one only for the app that it is of, which names itself and shows its
// secret. Where a token is renewed by itself the platform asks for no app: the new one
// is of the app of the old one.
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

// claim records in the working copy that its token is about to be renewed. It gives way to
// clients that change the Secret at the same time: if the token is another one
// afterwards, nothing is claimed.
func (e *examination) claim(ctx context.Context) *outcome {
	for range mostConflicts {
		if may, wait := e.Store.MayClaim(e.conn, e.read, e.input, claimPatience); !may {
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

// workingKey names the working copy of a connection's account.
func workingKey(conn *v1alpha1.Connection) types.NamespacedName {
	return types.NamespacedName{Namespace: conn.Namespace, Name: credentials.WorkingName(conn)}
}

// save stores a renewed token before it is used, and keeps it in memory for the next
// examination if the API server does not answer.
func (r *Reconciler) save(ctx context.Context, pending unsaved) (credentials.Credentials, error) {
	r.unsaved.Store(workingKey(pending.conn), pending)
	r.seal(ctx, pending)
	within := saveWithin
	if r.stopping.Load() {
		within = max(within, r.Grace) // there is no next examination
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	stored, err := r.store(saving, pending)
	if err != nil && credentials.ReasonOf(err) == credentials.Unavailable {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token is not stored yet; if this process ends before, and has kept it nowhere, the account has to be connected again")
		return credentials.Credentials{}, err
	}
	r.discardSaved(ctx, workingKey(pending.conn), spool.AccountOf(pending.conn))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token cannot be stored; the account may have to be connected again")
	}
	return stored, err
}

// store writes a renewed token. If the working copy was changed meanwhile, it writes the
// token all the same, unless the copy holds another token: then that one counts. A token that
// an earlier process left is not stored if the copy is gone.
func (r *Reconciler) store(ctx context.Context, pending unsaved) (credentials.Credentials, error) {
	renewal := pending.renewal
	var err error
	if pending.inherited {
		renewal.Before, err = r.Store.Working(ctx, pending.conn)
		if credentials.ReasonOf(err) == credentials.NotFound {
			return credentials.Credentials{}, nil // the account was disconnected meanwhile
		}
		if err != nil || renewal.Before.Token.Fingerprint() != pending.from {
			return renewal.Before, err
		}
	}
	old := renewal.Before.Token
	for range mostConflicts {
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

// asStored reads back the stored token with its time of renewal; if it cannot, it
// returns the token as it is.
func (r *Reconciler) asStored(ctx context.Context, conn *v1alpha1.Connection, token credentials.Token, version string) credentials.Credentials {
	if found, err := r.Store.Working(ctx, conn); err == nil && found.Token.Access == token.Access {
		return found
	}
	return credentials.Credentials{Token: token, Version: version, RenewedAt: r.Clock.Now()}
}

// rescue stores a token that an earlier examination could not store, of this connection or
// of another one of the account, or by a process before this one. It returns the version of the working copy that holds it;
// "" if there was none, or the copy holds another one.
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

// secretAnnotation names the Secret that a Connection used last, if the Connection
// controls it: once it uses another one, the old one is deleted. Secrets that people
// created are theirs to delete.
const secretAnnotation = "social.herald.dev/credentials-secret"

// deleteOldSecret deletes the Secret that an earlier connection of the account has left. It runs
// once the new credentials are known to work, and are those that the connection refers to. If
// it fails, the next examination tries again.
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
			ctrl.LoggerFrom(ctx).Error(err, "the credentials of an earlier connection of the account are still there")
			return
		}
	}
	if err := r.recordSecret(ctx, conn, wanted); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot note which Secret the connection uses")
	}
}

func (r *Reconciler) recordSecret(ctx context.Context, conn *v1alpha1.Connection, name string) error {
	var value any
	if name != "" {
		value = name
	}
	return annotate(ctx, r.Client, conn, secretAnnotation, value)
}

// annotate sets an annotation of a connection, or removes it for nil; of one that is gone
// or has been made anew, nothing.
func annotate(ctx context.Context, writer client.Writer, conn *v1alpha1.Connection, key string, value any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": conn.UID, "annotations": map[string]any{key: value}},
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(writer.Patch(ctx, conn.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

// Tokens hands out the tokens of a cache in the form that platforms take.
type Tokens struct {
	Cache *credentials.Cache
}

// NewTokens returns the Tokens of a manager: it reads credentials from the store, and asks
// for an examination when it finds others than the platform confirmed.
func NewTokens(store *credentials.Store, writer client.Writer, c clock.PassiveClock) Tokens {
	return Tokens{Cache: credentials.NewCache(store, c, newProbeRequester(writer))}
}

// newProbeRequester asks the controller of this package for an examination, as clients do.
func newProbeRequester(writer client.Writer) credentials.ExaminationRequester {
	return func(ctx context.Context, conn *v1alpha1.Connection, version string) error {
		log := ctrl.LoggerFrom(ctx).WithValues("connection", client.ObjectKeyFromObject(conn), "secret", conn.Spec.CredentialsSecretRef.Name)
		if err := annotate(ctx, writer, conn, v1alpha1.ProbeAnnotation, "credentials-"+version+"-"+rand.Text()); err != nil {
			log.Error(err, "cannot ask whose the changed credentials of a connection are; posts over it wait")
			return err
		}
		log.Info("the credentials of a connection changed; posts over it wait until the platform has said whose they are")
		return nil
	}
}

// Token returns the connection's current token, if the platform confirmed it. Errors are
// *credentials.Error, or those of ctx.
func (t Tokens) Token(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error) {
	token, err := t.Cache.Token(ctx, conn)
	return platforms.Token(token), err
}

// Forget drops the token of a connection, after the platform refused it.
func (t Tokens) Forget(conn *v1alpha1.Connection) { t.Cache.Forget(conn) }
