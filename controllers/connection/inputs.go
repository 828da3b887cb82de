// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/text"
)

const (
	msgCopyGone   = "Herald's own copy of the account's tokens was removed a moment ago; it is recreated from the Connection's Secret"
	msgSuperseded = "Secret %q holds tokens that were replaced by newer ones; they are ignored, and the account keeps the newer ones. " +
		"To use them again, delete Secret %q"
	msgIgnored   = "Secret %q holds new tokens that are not used: %s. The account keeps its current tokens"
	msgContested = "Secret %q is also used by Connection %q for another account; create a separate Secret for each account"
	msgLeft      = "%s. The tokens that an earlier Connection of the account has left still work, and are kept: " +
		"give this Connection tokens whose access token has not expired, or delete Secret %q to use its refresh token"
	msgLater = "; they are tried once the current ones stop working"
)

const (
	// verdictTTL is the cache lifetime of a platform's response about an input that was not adopted.
	verdictTTL  = time.Hour
	maxVerdicts = 10_000
	// longestMessage keeps a condition's message readable and within the schema's limit of 32,768 bytes.
	longestMessage = 2048
)

// ignored is the reason why an input is not in use, or the zero value if it is in use.
type ignored struct{ condition, reason, message string }

func refusedInput(in *credentials.Input, reason, message string) ignored {
	return ignored{v1alpha1.ConditionCredentialsRefused, reason, fmt.Sprintf(msgIgnored, in.Secret, message)}
}

func applyIgnored(conn *v1alpha1.Connection, o outcome, now time.Time) {
	if o.input == nil && o.reason != v1alpha1.ReasonCredentialsNotFound {
		return
	}
	for _, condition := range []string{v1alpha1.ConditionCredentialsSuperseded, v1alpha1.ConditionCredentialsRefused} {
		if condition != o.ignored.condition {
			meta.RemoveStatusCondition(&conn.Status.Conditions, condition)
		}
	}
	if o.ignored.condition == "" {
		return
	}
	meta.SetStatusCondition(&conn.Status.Conditions, metav1.Condition{
		Type: o.ignored.condition, Status: metav1.ConditionTrue, Reason: o.ignored.reason, Message: text.First(o.ignored.message, longestMessage),
		ObservedGeneration: conn.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

func (e *examination) examineFound(ctx context.Context, found credentials.Found) outcome {
	if err := e.register.add(ctx, e.conn); err != nil {
		return workingCopyOutcome(err)
	}
	switch {
	case found.Working == nil:
		return e.adoptAndProbe(ctx, e.store.Seed)
	case !found.Known:
		return e.join(ctx)
	}
	var err error
	if e.read, err = e.store.RecordUse(ctx, e.conn, e.read); err != nil {
		return workingCopyOutcome(err)
	}
	switch e.input.Freshness {
	case credentials.New:
		return e.replace(ctx)
	case credentials.Superseded:
		o := e.probe(ctx)
		o.ignored = ignored{
			v1alpha1.ConditionCredentialsSuperseded, v1alpha1.ReasonCredentialsReplaced,
			fmt.Sprintf(msgSuperseded, e.input.Secret, credentials.WorkingName(e.conn)),
		}
		return o
	case credentials.Current:
	}
	return e.probe(ctx)
}

func (e *examination) adoptAndProbe(ctx context.Context, how func(context.Context, *v1alpha1.Connection, credentials.Input) (credentials.Credentials, error)) outcome {
	if e.input.Err != nil {
		return credentialsOutcome(e.input.Err)
	}
	if failed := e.adoptWith(ctx, how); failed != nil {
		return *failed
	}
	return e.probe(ctx)
}

func (e *examination) adoptWith(ctx context.Context, how func(context.Context, *v1alpha1.Connection, credentials.Input) (credentials.Credentials, error)) *outcome {
	first := e.read.Version == ""
	taken, err := how(ctx, e.conn, e.input)
	if err != nil {
		return new(workingCopyOutcome(err))
	}
	e.read, e.adopted, e.input.Freshness = taken, !first, credentials.Current
	return nil
}

func (e *examination) adopt(ctx context.Context, conn *v1alpha1.Connection, in credentials.Input) (credentials.Credentials, error) {
	return e.store.Adopt(ctx, conn, e.read, in)
}

// join examines a connection that does not use the account's working copy yet. Its input must contain valid tokens,
// because a deleted connection's working copy must not give access to the account. That copy is kept for a tool that
// applies the same connection again.
//
// A refresh token in the input is spent only if no other connection uses the copy and the copy's tokens no longer work;
// see replace.
func (e *examination) join(ctx context.Context) outcome {
	copied := e.read
	o := e.verdict(ctx)
	e.read = copied
	if o.reason == v1alpha1.ReasonConnected {
		if failed := e.adoptWith(ctx, e.adopt); failed != nil {
			return *failed
		}
		return e.addInspection(ctx, o)
	}
	if e.renewable(o) {
		shared, err := e.shared(ctx)
		if err != nil {
			return outcome{reason: v1alpha1.ReasonCredentialsUnavailable, message: err.Error()}
		}
		if !shared {
			left := e.reprobe(ctx)
			switch {
			case needsReconnect(left.reason):
				return e.adoptRefused(ctx)
			case left.reason == v1alpha1.ReasonConnected:
				o.message = fmt.Sprintf(msgLeft, o.message, credentials.WorkingName(e.conn))
			default:
				o = left
			}
		}
	}
	// The working copy belongs to another connection.
	e.read, e.loaded = credentials.Credentials{}, ""
	return o
}

// renewable reports whether, after a verdict, there is still a refresh token to try.
func (e *examination) renewable(verdict outcome) bool {
	return verdict.reason == v1alpha1.ReasonTokenExpired && e.input.Token.Refresh != ""
}

func (e *examination) reprobe(ctx context.Context) outcome {
	e.started = e.clock.Now()
	return e.probe(ctx)
}

// adoptRefused adopts an input for its refresh token even though the platform refuses its access token. It is used when
// the working copy's tokens do not work either.
func (e *examination) adoptRefused(ctx context.Context) outcome {
	e.started, e.renewed = e.clock.Now(), false
	return e.adoptAndProbe(ctx, e.adopt)
}

// contested returns the name of a connection for another account that refers to the same input by mistake, or "". The
// only way to find out whose refresh token it is would be to spend it, which would leave a spent token in the other
// account's copy.
func (e *examination) contested(ctx context.Context) (string, error) {
	all, err := connectionsOf(ctx, e.reader, e.conn.Namespace)
	if err != nil {
		return "", err
	}
	for _, other := range all {
		if other.Spec.CredentialsSecretRef == e.conn.Spec.CredentialsSecretRef && other.Spec.Platform == e.conn.Spec.Platform &&
			other.Spec.AccountID != e.conn.Spec.AccountID && other.DeletionTimestamp.IsZero() {
			return other.Name, nil
		}
	}
	return "", nil
}

// proven reports whether the platform has confirmed the working copy's tokens.
func (e *examination) proven() bool {
	return e.conn.Status.Confirmed() && e.loaded == e.conn.Status.CredentialsVersion && !e.adopted && !e.replaced
}

func (e *examination) shared(ctx context.Context) (bool, error) {
	all, err := connectionsOf(ctx, e.reader, e.conn.Namespace)
	if err != nil {
		return false, err
	}
	for _, other := range all {
		if other.Name != e.conn.Name && other.DeletionTimestamp.IsZero() &&
			other.Spec.Platform == e.conn.Spec.Platform && other.Spec.AccountID == e.conn.Spec.AccountID {
			return true, nil
		}
	}
	return false, nil
}

// replace examines an account that was given new tokens. They are adopted once the platform confirms that they belong
// to the account; until then, the account keeps using its old tokens. This check does not spend the new refresh token:
// Herald may have spent it before it kept a copy, and a platform that sees a refresh token twice may revoke all access
// to the account.
//
// If the old tokens do not work either, the status reports the problem with the new ones, and a refresh token among
// them is tried as a last resort.
func (e *examination) replace(ctx context.Context) outcome {
	copied := e.read
	verdict := e.verdict(ctx)
	e.read = copied
	if verdict.reason == v1alpha1.ReasonConnected {
		if failed := e.adoptWith(ctx, e.adopt); failed != nil {
			return *failed
		}
		return e.addInspection(ctx, verdict)
	}
	o, renewable := e.reprobe(ctx), e.renewable(verdict)
	if !needsReconnect(o.reason) {
		message := verdict.message
		if renewable {
			message += msgLater
		}
		o.ignored = refusedInput(&e.input, verdict.reason, message)
		return o
	}
	if renewable {
		return e.adoptRefused(ctx)
	}
	if needsReconnect(verdict.reason) || verdict.reason == v1alpha1.ReasonCredentialsInvalid {
		return verdict
	}
	return o
}

func verdictKey(conn *v1alpha1.Connection, hash string) string {
	return workingKey(conn).String() + " " + hash
}

// hasVerdict reports whether a recent probe refused the input with this hash.
func (r *examiner) hasVerdict(conn *v1alpha1.Connection, hash string) bool {
	_, ok := r.verdicts.Get(verdictKey(conn, hash))
	return ok
}

// verdict probes the input's access token, unless a recent probe refused it. It never renews the token.
func (e *examination) verdict(ctx context.Context) outcome {
	if e.input.Err != nil {
		return credentialsOutcome(e.input.Err)
	}
	key := verdictKey(e.conn, e.input.Hash)
	if known, _ := e.verdicts.Get(key); known != nil {
		if o, ok := known.(outcome); ok {
			o.probed = false
			return o
		}
	}
	e.read = credentials.Credentials{Token: e.input.Token}
	identity, failure := e.identify(ctx)
	var o outcome
	if failure == nil {
		o = identityOutcome(e.conn, identity)
	} else {
		ctrl.LoggerFrom(ctx).Info("the platform did not confirm new credentials", "class", failure.Class, "answer", failure.Error(), "cause", failure.Err)
		o = failureOutcome(failure)
	}
	if needsReconnect(o.reason) {
		e.verdicts.Add(key, o, verdictTTL)
	}
	return o
}

// copyEarly creates the missing working copy for an account that is not due and that an older version of Herald
// confirmed. Otherwise a tool could restore old tokens until the next examination. The platform is not called, because
// the tokens are confirmed. It returns a retry delay while the account is being examined.
func (r *Reconciler) copyEarly(ctx context.Context, conn *v1alpha1.Connection) (again time.Duration, err error) {
	if conn.Status.WorkingSecret != "" || !conn.Status.Confirmed() || withheldBy(conn) != "" || conn.Spec.Disabled {
		return 0, nil
	}
	done, again := r.locks.tryAcquire(workingKey(conn))
	if again > 0 {
		return again, nil
	}
	defer done()
	found, err := r.Store.Find(ctx, conn)
	if err != nil || found.Working != nil || found.Input.Err != nil || found.Input.Version != conn.Status.CredentialsVersion {
		// The next examination handles it.
		return 0, nil
	}
	err = r.register.add(ctx, conn)
	var created credentials.Credentials
	if err == nil {
		created, err = r.Store.Seed(ctx, conn, found.Input)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot copy the credentials of connection %q: %w", conn.Name, err)
	}
	before := conn.Status.DeepCopy()
	status := &conn.Status
	status.CredentialsVersion, status.VerifiedVersion, status.WorkingSecret = created.Version, created.Version, credentials.WorkingName(conn)
	return 0, r.status.Report(ctx, conn, before, status)
}
