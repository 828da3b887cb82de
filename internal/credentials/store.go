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
)

// The backoff for a write that must not be lost.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// Store reads the Secrets that Connections refer to, and manages the working copies of their tokens.
type Store struct {
	reader client.Reader
	writer client.Writer
	clock  clock.Clock
	holder string
	apps   Apps
	claims *claims
}

// NewStore returns a Store. The reader must read from the API server (a manager's GetAPIReader): Secrets are never
// cached, and a token that was just renewed must be visible. The holder names this process in claims. Two processes
// that run at the same time must not share it; if it survives a restart, the new process continues its own claims
// immediately. The apps are those of the installation; their marks identify the tokens that belong to them.
func NewStore(reader client.Reader, writer client.Writer, c clock.Clock, holder string, apps Apps) *Store {
	return &Store{reader: reader, writer: writer, clock: c, holder: strings.Join(strings.Fields(holder), "_"), apps: apps, claims: newClaims(c)}
}

// App returns the client id of the installation's app on a platform, as in Token.App, or "" if there is none.
func (s *Store) App(platform v1alpha1.Platform) string { return s.apps.ID(platform) }

// Found is the result of Find.
type Found struct {
	// Input is the content of the Secret that the Connection refers to.
	Input Input
	// Working is the account's working copy, or nil if there is none.
	Working *Credentials
	// Known is true if the working copy belongs to this Connection: a Connection with its name used the copy, or the copy
	// was made from this input.
	Known bool
}

// Find reads a Connection's input and its account's working copy. Errors are *Error. The reason is NotFound if there is
// no input, even if there is a working copy (users withdraw an account by deleting their Secret); Invalid if the
// working copy is damaged; or Unavailable.
func (s *Store) Find(ctx context.Context, conn *v1alpha1.Connection) (Found, error) {
	name := conn.Spec.CredentialsSecretRef.Name
	var input, working corev1.Secret
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: name}, &input); err != nil {
		return Found{}, fromAPI(err, name, "read")
	}
	found := Found{Input: s.inputOf(&input, conn)}
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: WorkingName(conn)}, &working)
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return Found{}, fromAPI(err, WorkingName(conn), "read")
	}
	read, err := s.workingOf(&working, conn)
	if err != nil {
		return Found{}, err
	}
	found.Working = &read
	found.Input.Freshness = read.provenance.freshness(found.Input)
	found.Known = found.Input.Freshness != New || slices.Contains(read.provenance.users, conn.Name)
	return found, nil
}

func (s *Store) workingOf(secret *corev1.Secret, conn *v1alpha1.Connection) (Credentials, error) {
	damaged := func(problem string) error {
		return &Error{Reason: Invalid, Message: fmt.Sprintf(
			"Secret %q, in which Herald keeps the account's tokens, %s; delete it, and Herald recreates it from the Connection's Secret", secret.Name, problem)}
	}
	switch {
	case secret.Type != WorkingType:
		return Credentials{}, damaged(fmt.Sprintf("is of type %q instead of %q", secret.Type, WorkingType))
	case secret.Immutable != nil && *secret.Immutable:
		return Credentials{}, damaged("is immutable")
	}
	read, err := decode(secret, conn, s.apps)
	if err != nil {
		return Credentials{}, damaged("is damaged")
	}
	read.provenance = provenanceOf(secret)
	return read, nil
}

// Load reads the token that a Connection uses: the token of the working copy, or of the input if the Connection has no
// working copy yet. Errors are those of Find, and Invalid if there is only an input and it is invalid.
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

// Seed creates an account's working copy from an input. The error has reason Conflict if it exists already.
//
// If an earlier version of Herald wrote renewed tokens to the input, Seed claims the copy on that version's behalf,
// since it may be renewing right now.
func (s *Store) Seed(ctx context.Context, conn *v1alpha1.Connection, in Input) (Credentials, error) {
	secret := s.newWorking(conn, in.Token, provenance{}.with(in, conn.Name), in.renewedAt)
	switch {
	case in.claimedBy != "":
		secret.Annotations[ClaimAnnotation] = claimText(in.claimedBy, in.claimedAt)
	case !in.renewedAt.IsZero():
		secret.Annotations[ClaimAnnotation] = claimText(versionBefore, s.clock.Now())
	}
	return s.createWorking(ctx, conn, secret)
}

// versionBefore is the claim holder for a process that may still renew tokens in the input.
const versionBefore = "the-version-before"

func (s *Store) createWorking(ctx context.Context, conn *v1alpha1.Connection, secret *corev1.Secret) (Credentials, error) {
	if err := s.writer.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return Credentials{}, &Error{Reason: Conflict, Message: fmt.Sprintf("Secret %q was created by another process at the same time", secret.Name), Err: err}
	} else if err != nil {
		return Credentials{}, fromAPI(err, secret.Name, "create")
	}
	return s.workingOf(secret, conn)
}

// Adopt replaces the tokens of a working copy with those of the input. The error has reason Conflict if the copy has
// changed.
func (s *Store) Adopt(ctx context.Context, conn *v1alpha1.Connection, working Credentials, in Input) (Credentials, error) {
	next := s.newWorking(conn, in.Token, working.provenance.with(in, conn.Name), in.renewedAt)
	annotations := map[string]any{ClaimAnnotation: nil, RenewedAnnotation: nil, AppMarkAnnotation: nil}
	for key, value := range next.Annotations {
		annotations[key] = value
	}
	data := map[string]any{}
	for _, key := range slices.Concat(tokenKeys, clientKeys) {
		data[key] = nil
		if value, ok := next.Data[key]; ok {
			data[key] = value
		}
	}
	return s.rewrite(ctx, conn, map[string]any{
		"metadata": map[string]any{"resourceVersion": working.Version, "annotations": annotations}, "data": data,
	})
}

// RecordUse adds a Connection to a working copy's users, if the copy has not changed since it was read. It does nothing
// if the Connection is already listed or the list is full: otherwise Connections would take turns displacing each
// other, and each write would make a version that the platform has not confirmed.
func (s *Store) RecordUse(ctx context.Context, conn *v1alpha1.Connection, working Credentials) (Credentials, error) {
	if slices.Contains(working.provenance.users, conn.Name) || len(working.provenance.users) >= maxUsers {
		return working, nil
	}
	return s.rewrite(ctx, conn, map[string]any{"metadata": map[string]any{
		"resourceVersion": working.Version, "annotations": map[string]any{UsersAnnotation: working.provenance.usedBy(conn.Name).annotations()[UsersAnnotation]},
	}})
}

func (s *Store) rewrite(ctx context.Context, conn *v1alpha1.Connection, content map[string]any) (Credentials, error) {
	secret, err := s.patch(ctx, conn, content)
	if err != nil {
		return Credentials{}, err
	}
	return s.workingOf(secret, conn)
}

// MayClaim reports whether this process may start to renew a token: there is no claim, this process holds the claim, or
// claimTimeout has passed since it first saw the claim. Otherwise it returns how long to wait.
//
// The wait starts when this process first saw the claim, not at the time in the claim: the claim's holder may have the
// renewed token and, like this process, have been waiting for the Kubernetes API to recover.
//
// A claim in the input belongs to an earlier version of Herald, which renewed tokens there.
func (s *Store) MayClaim(conn *v1alpha1.Connection, c Credentials, in Input, claimTimeout time.Duration) (bool, time.Duration) {
	if in.claimedBy != "" && in.Freshness == Current {
		if left := min(in.claimedAt.Add(claimTimeout).Sub(s.clock.Now()), claimTimeout); left > 0 {
			return false, left
		}
	}
	if c.ClaimedBy == "" || c.ClaimedBy == s.holder {
		return true, 0
	}
	left := s.claims.firstSeen(conn, c, s.clock.Now()).Add(claimTimeout).Sub(s.clock.Now())
	return left <= 0, max(left, 0)
}

// Claim records in the working copy that this process is about to renew the token, if the copy still has the given
// version, and returns the new version. It tries only once: after an error, the token must not be renewed. The error
// has reason Conflict if the copy was changed.
//
// A claim also proves that the Secret is writable before a refresh token is spent.
func (s *Store) Claim(ctx context.Context, conn *v1alpha1.Connection, version string) (string, error) {
	text := claimText(s.holder, s.clock.Now())
	// The write may succeed even if its response is lost.
	s.claims.own.Add(claimKey(conn, text), true, rememberClaims)
	claimed, err := s.patch(ctx, conn, map[string]any{
		"metadata": map[string]any{"resourceVersion": version, "annotations": map[string]any{ClaimAnnotation: text}},
	})
	if err != nil {
		return "", err
	}
	return claimed.ResourceVersion, nil
}

// Inherited reports whether an earlier process with this holder started to renew the token without storing a new one.
func (s *Store) Inherited(conn *v1alpha1.Connection, c Credentials) bool {
	if c.ClaimedBy != s.holder {
		return false
	}
	_, own := s.claims.own.Get(claimKey(conn, claimText(c.ClaimedBy, c.ClaimedAt)))
	return !own
}

// Renewal is a renewed token, together with the claimed working copy, which contains the previous token and its
// provenance.
type Renewal struct {
	Token  Token
	Before Credentials
}

// Save stores a renewed token, if the working copy still has the version of Before, and returns the new version. The
// previous token may already be invalid, so Save retries until ctx is done: pass a context that outlives the caller's
// context. If the working copy is gone, Save recreates it.
//
// On Conflict or Invalid, nothing was stored and Save does not retry. An empty refresh token leaves the stored one in
// place. A token with an App is marked as belonging to that app, and so is its refresh token.
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
			// An earlier attempt may have succeeded even though its response was lost.
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

func (s *Store) saveOnce(ctx context.Context, conn *v1alpha1.Connection, renewal Renewal) (string, error) {
	var mark any // nil removes the previous token's mark
	if created := s.mark(conn.Spec.Platform, renewal.Token); created != "" {
		mark = created
	}
	now := s.clock.Now()
	stored, err := s.patch(ctx, conn, map[string]any{
		"metadata": map[string]any{
			"resourceVersion": renewal.Before.Version,
			"annotations": map[string]any{
				ClaimAnnotation: nil, RenewedAnnotation: now.UTC().Format(time.RFC3339), AppMarkAnnotation: mark,
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

// alreadySaved turns a conflict into a success if the working copy already has the token.
func (s *Store) alreadySaved(ctx context.Context, conn *v1alpha1.Connection, token Token, conflict error) (string, error) {
	found, err := s.Working(ctx, conn)
	if err == nil && found.Token.Access == token.Access && (token.Refresh == "" || found.Token.Refresh == token.Refresh) {
		return found.Version, nil
	}
	return "", conflict
}

// Working reads only the working copy. Errors are *Error with reason NotFound, Invalid or Unavailable.
func (s *Store) Working(ctx context.Context, conn *v1alpha1.Connection) (Credentials, error) {
	var secret corev1.Secret
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: WorkingName(conn)}, &secret); err != nil {
		return Credentials{}, fromAPI(err, WorkingName(conn), "read")
	}
	return s.workingOf(&secret, conn)
}

// patch changes the given parts of a Connection's working copy. Other content, such as user annotations, is not
// changed.
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

// DeleteControlled deletes the named Secret in the owner's namespace if the owner controls it, and leaves any other
// Secret alone. It ignores a missing Secret. The reader must read from the API server. Errors wrap an error of the API.
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
