// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/appid"
)

// Pauses between two tries of a write that must not be lost.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// Store reads the Secrets that Connections refer to, and keeps the working copies of their
// tokens.
type Store struct {
	reader client.Reader
	writer client.Writer
	clock  clock.Clock
	holder string
	apps   appid.Apps
	claims *claims
}

// NewStore returns a Store. The reader must ask the API server each time (a
// manager's GetAPIReader): Secrets are never cached, and a token that was renewed a
// moment ago must be seen. The holder names this process in claims; two processes
// that run at once must not share it. A holder that survives a restart lets the new
// process continue its own claims at once. The apps are those of the installation, by
// whose marks it is known which tokens are theirs.
func NewStore(reader client.Reader, writer client.Writer, c clock.Clock, holder string, apps appid.Apps) *Store {
	return &Store{reader: reader, writer: writer, clock: c, holder: strings.Join(strings.Fields(holder), "_"), apps: apps, claims: newClaims(c)}
}

// App returns the client id of the installation's app on a platform, as Token.App holds
// it; "" if there is none.
func (s *Store) App(platform v1alpha1.Platform) string { return s.apps.ID(platform) }

// Found is what there is of a Connection's credentials.
type Found struct {
	// Input is what the Secret holds that the Connection refers to.
	Input Input
	// Working is the working copy of the account; nil if there is none.
	Working *Credentials
	// Known is true if the working copy is for this Connection: one of its name has used it,
	// or it was made from this input.
	Known bool
}

// Find reads the input of a Connection and the working copy of its account. Errors are
// *Error: NotFound if there is no input, whether or not there is a working copy, since
// people withdraw an account by deleting what they gave; Invalid if the working copy is
// damaged; Unavailable.
func (s *Store) Find(ctx context.Context, conn *v1alpha1.Connection) (Found, error) {
	name := conn.Spec.CredentialsSecretRef.Name
	var input, working corev1.Secret
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: name}, &input); err != nil {
		return Found{}, fromAPI(err, name, "read")
	}
	found := Found{Input: s.inputOf(&input, conn.Spec.Platform)}
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: WorkingName(conn)}, &working)
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return Found{}, fromAPI(err, WorkingName(conn), "read")
	}
	read, err := s.workingOf(&working, conn.Spec.Platform)
	if err != nil {
		return Found{}, err
	}
	found.Working = &read
	found.Input.Freshness = read.provenance.freshness(found.Input.Hash)
	found.Known = found.Input.Freshness != New || slices.Contains(read.provenance.users, conn.Name)
	return found, nil
}

// workingOf reads a working copy.
func (s *Store) workingOf(secret *corev1.Secret, platform v1alpha1.Platform) (Credentials, error) {
	damaged := func(problem string) error {
		return &Error{Reason: Invalid, Message: fmt.Sprintf(
			"Secret %q, in which Herald keeps the account's tokens, %s; delete it, and Herald makes it again from the Connection's Secret", secret.Name, problem)}
	}
	switch {
	case secret.Type != WorkingType:
		return Credentials{}, damaged(fmt.Sprintf("is of type %q instead of %q", secret.Type, WorkingType))
	case secret.Immutable != nil && *secret.Immutable:
		return Credentials{}, damaged("is immutable")
	}
	read, err := decode(secret, platform, s.apps)
	if err != nil {
		return Credentials{}, damaged("is damaged")
	}
	read.provenance = provenanceOf(secret)
	return read, nil
}

// Load reads the token that a Connection works with: that of the working copy, or, as long
// as there is none for it, the input's. Errors are those of Find, and Invalid if there is
// none but the input and that cannot be used.
func (s *Store) Load(ctx context.Context, conn *v1alpha1.Connection) (Credentials, error) {
	found, err := s.Find(ctx, conn)
	if err != nil {
		return Credentials{}, err
	}
	if found.Working != nil && found.Known {
		read := *found.Working
		if found.Input.Freshness != Current {
			read.Other = found.Input.Hash
		}
		return read, nil
	}
	if found.Input.Err != nil {
		return Credentials{}, found.Input.Err
	}
	return Credentials{Token: found.Input.Token, Version: found.Input.Version}, nil
}

// Seed makes the working copy of an account from an input. The error is Conflict if there
// is one by now.
//
// Where the input is one into which a version of Herald before this one wrote renewed tokens,
// the copy is claimed by that version: it may be renewing at this moment.
func (s *Store) Seed(ctx context.Context, conn *v1alpha1.Connection, in Input) (Credentials, error) {
	secret := s.newWorking(conn, in.Token, provenance{}.with(in.Hash, conn.Name), in.renewedAt)
	switch {
	case in.claimedBy != "":
		secret.Annotations[ClaimAnnotation] = claimText(in.claimedBy, in.claimedAt)
	case !in.renewedAt.IsZero():
		secret.Annotations[ClaimAnnotation] = claimText(versionBefore, s.clock.Now())
	}
	return s.createWorking(ctx, conn, secret)
}

// versionBefore holds the claim of a process that may still renew tokens in the input.
const versionBefore = "the-version-before"

// createWorking creates a working copy.
func (s *Store) createWorking(ctx context.Context, conn *v1alpha1.Connection, secret *corev1.Secret) (Credentials, error) {
	if err := s.writer.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return Credentials{}, &Error{Reason: Conflict, Message: fmt.Sprintf("Secret %q was made by another process at the same time", secret.Name), Err: err}
	} else if err != nil {
		return Credentials{}, fromAPI(err, secret.Name, "create")
	}
	return s.workingOf(secret, conn.Spec.Platform)
}

// Adopt replaces the tokens of a working copy by those of an input, on the condition that
// the copy is as it was read. The error is Conflict if it is not.
func (s *Store) Adopt(ctx context.Context, conn *v1alpha1.Connection, working Credentials, in Input) (Credentials, error) {
	next := s.newWorking(conn, in.Token, working.provenance.with(in.Hash, conn.Name), in.renewedAt)
	annotations := map[string]any{ClaimAnnotation: nil, RenewedAnnotation: nil, appid.Annotation: nil}
	for key, value := range next.Annotations {
		annotations[key] = value
	}
	data := map[string]any{}
	for _, key := range tokenKeys {
		data[key] = nil
		if value, ok := next.Data[key]; ok {
			data[key] = value
		}
	}
	return s.rewrite(ctx, conn, map[string]any{
		"metadata": map[string]any{"resourceVersion": working.Version, "annotations": annotations}, "data": data,
	})
}

// RecordUse notes in a working copy that a Connection uses it, unless that stands there, on the
// condition that the copy is as it was read. It notes no more than there is room for: in turn
// they would have each other forgotten, each with a write of a version that nobody confirmed.
func (s *Store) RecordUse(ctx context.Context, conn *v1alpha1.Connection, working Credentials) (Credentials, error) {
	if slices.Contains(working.provenance.users, conn.Name) || len(working.provenance.users) >= mostUsers {
		return working, nil
	}
	return s.rewrite(ctx, conn, map[string]any{"metadata": map[string]any{
		"resourceVersion": working.Version, "annotations": map[string]any{UsersAnnotation: working.provenance.usedBy(conn.Name).annotations()[UsersAnnotation]},
	}})
}

// rewrite changes the named parts of a working copy, and reads what came of it.
func (s *Store) rewrite(ctx context.Context, conn *v1alpha1.Connection, content map[string]any) (Credentials, error) {
	secret, err := s.patch(ctx, conn, content)
	if err != nil {
		return Credentials{}, err
	}
	return s.workingOf(secret, conn.Spec.Platform)
}

// MayClaim reports whether this process may begin to renew a token: there is no
// claim, the claim is its own, or patience is over since this process first saw it.
// Otherwise it returns how long to wait.
//
// It counts from the first sight, and not from the claim: whoever claimed may hold the renewed
// token, and have waited as this process did for the Kubernetes API to come back.
//
// A claim in the input is one of the version of Herald before this one, which renewed tokens
// there.
func (s *Store) MayClaim(conn *v1alpha1.Connection, c Credentials, in Input, patience time.Duration) (bool, time.Duration) {
	if in.claimedBy != "" && in.Freshness == Current {
		if left := min(in.claimedAt.Add(patience).Sub(s.clock.Now()), patience); left > 0 {
			return false, left
		}
	}
	if c.ClaimedBy == "" || c.ClaimedBy == s.holder {
		return true, 0
	}
	left := s.claims.firstSeen(conn, c, s.clock.Now()).Add(patience).Sub(s.clock.Now())
	return left <= 0, max(left, 0)
}

// Claim records in the working copy that this process is about to renew the token, on the
// condition that the copy still has the given version, and returns the new
// version. It tries once: after an error, the token must not be renewed. The error
// is Conflict if the copy was changed.
//
// A claim also shows that the Secret can be written before a refresh token is spent.
func (s *Store) Claim(ctx context.Context, conn *v1alpha1.Connection, version string) (string, error) {
	text := claimText(s.holder, s.clock.Now())
	// The write may arrive although its answer does not.
	s.claims.own.Add(claimKey(conn, text), true, rememberClaims)
	claimed, err := s.patch(ctx, conn, map[string]any{
		"metadata": map[string]any{"resourceVersion": version, "annotations": map[string]any{ClaimAnnotation: text}},
	})
	if err != nil {
		return "", err
	}
	return claimed.ResourceVersion, nil
}

// Inherited reports whether a process before this one, under the same name, began to renew
// the token, and has not stored the new one.
func (s *Store) Inherited(conn *v1alpha1.Connection, c Credentials) bool {
	if c.ClaimedBy != s.holder {
		return false
	}
	_, own := s.claims.own.Get(claimKey(conn, claimText(c.ClaimedBy, c.ClaimedAt)))
	return !own
}

// Renewal is a renewed token, and the working copy that it belongs into as it was read when
// the renewal was claimed: with the token before, and where that came from.
type Renewal struct {
	Token  Token
	Before Credentials
}

// Save stores a renewed token, on the condition that the working copy still has the version
// of Before, and returns the new version. It retries until ctx ends, since the token
// that it replaces may be worthless by now; so give it a context that outlives the
// caller's. If the working copy is gone it makes it anew.
//
// After Conflict or Invalid nothing was stored, and Save does not retry.
// An empty refresh token leaves the stored one in place. A token with an App is marked
// as the app's, together with its refresh token.
func (s *Store) Save(ctx context.Context, conn *v1alpha1.Connection, renewal Renewal) (string, error) {
	if renewal.Token.Access == "" {
		return "", &Error{Reason: Invalid, Key: v1alpha1.CredentialsAccessToken, Message: "a renewed token without an access token is not stored"}
	}
	pause := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 1 << 30, Cap: longestPause}
	for {
		stored, err := s.saveOnce(ctx, conn, renewal)
		switch ReasonOf(err) {
		case "":
			return stored, nil
		case Conflict:
			// An earlier try may have arrived although its answer did not.
			return s.alreadySaved(ctx, conn, renewal.Token, err)
		case Invalid:
			return "", err
		case NotFound, Unavailable, Unverified:
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-s.clock.After(pause.Step()):
		}
	}
}

// saveOnce writes a renewed token once.
func (s *Store) saveOnce(ctx context.Context, conn *v1alpha1.Connection, renewal Renewal) (string, error) {
	var mark any // nil removes the one of the token before
	if made := s.mark(conn.Spec.Platform, renewal.Token); made != "" {
		mark = made
	}
	now := s.clock.Now()
	stored, err := s.patch(ctx, conn, map[string]any{
		"metadata": map[string]any{
			"resourceVersion": renewal.Before.Version,
			"annotations": map[string]any{
				ClaimAnnotation: nil, RenewedAnnotation: now.UTC().Format(time.RFC3339), appid.Annotation: mark,
			},
		},
		"data": encode(renewal.Token),
	})
	if err == nil {
		return stored.ResourceVersion, nil
	}
	if ReasonOf(err) != NotFound {
		return "", err
	}
	made, err := s.createWorking(ctx, conn, s.newWorking(conn, renewal.Token, renewal.Before.provenance, now))
	return made.Version, err
}

// alreadySaved turns a conflict into a success if the working copy holds the token.
func (s *Store) alreadySaved(ctx context.Context, conn *v1alpha1.Connection, token Token, conflict error) (string, error) {
	found, err := s.Working(ctx, conn)
	if err == nil && found.Token.Access == token.Access && (token.Refresh == "" || found.Token.Refresh == token.Refresh) {
		return found.Version, nil
	}
	return "", conflict
}

// Working reads the working copy alone. Errors are *Error with NotFound, Invalid or
// Unavailable.
func (s *Store) Working(ctx context.Context, conn *v1alpha1.Connection) (Credentials, error) {
	var secret corev1.Secret
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: WorkingName(conn)}, &secret); err != nil {
		return Credentials{}, fromAPI(err, WorkingName(conn), "read")
	}
	return s.workingOf(&secret, conn.Spec.Platform)
}

// patch changes the named parts of a Connection's working copy. What people keep there
// besides stays.
func (s *Store) patch(ctx context.Context, conn *v1alpha1.Connection, content map[string]any) (*corev1.Secret, error) {
	name := WorkingName(conn)
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("cannot write the change of Secret %q: %w", name, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: conn.Namespace, Name: name}}
	if err := s.writer.Patch(ctx, secret, client.RawPatch(types.MergePatchType, body)); err != nil {
		return nil, fromAPI(err, name, "update")
	}
	return secret, nil
}

// DeleteControlled deletes the Secret of this name in the owner's namespace, if the
// owner controls it; no other Secret, and none is no error. The reader must ask the
// API server. Errors are those of the Kubernetes API, wrapped.
func DeleteControlled(ctx context.Context, reader client.Reader, writer client.Writer, owner client.Object, name string) error {
	var secret corev1.Secret
	err := reader.Get(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name}, &secret)
	if err == nil && metav1.IsControlledBy(&secret, owner) {
		err = writer.Delete(ctx, &secret, client.Preconditions{UID: &secret.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete Secret %q: %w", name, err)
	}
	return nil
}
