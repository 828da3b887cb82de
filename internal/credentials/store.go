// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Pauses between the tries of a write that must not be lost.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// Store reads and writes the Secrets of Connections.
type Store struct {
	reader client.Reader
	writer client.Writer
	clock  clock.Clock
	holder string
}

// NewStore makes a Store. The reader must ask the API server each time (a
// manager's GetAPIReader): Secrets are never cached, and a token that was
// renewed a moment ago must be seen. The holder names this process in claims.
// No two processes that live at once share it; one that
// a restart keeps lets the new process go on at once.
func NewStore(reader client.Reader, writer client.Writer, c clock.Clock, holder string) *Store {
	return &Store{reader: reader, writer: writer, clock: c, holder: strings.Join(strings.Fields(holder), "_")}
}

// Load reads the token of a Connection. Errors are *Error with NotFound,
// Invalid or Unavailable.
func (s *Store) Load(ctx context.Context, conn *v1alpha1.Connection) (Credentials, error) {
	name := conn.Spec.CredentialsSecretRef.Name
	var secret corev1.Secret
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: name}, &secret); err != nil {
		return Credentials{}, fromAPI(err, name, "read")
	}
	return decode(&secret)
}

// MayClaim tells whether this process may begin to renew a token: nobody
// claimed it, this process did, or the claim is older than a renewal takes.
// Otherwise it returns how long to wait.
func (s *Store) MayClaim(c Credentials, patience time.Duration) (bool, time.Duration) {
	if c.ClaimedBy == "" || c.ClaimedBy == s.holder {
		return true, 0
	}
	left := c.ClaimedAt.Add(patience).Sub(s.clock.Now())
	return left <= 0, max(left, 0)
}

// Claim notes in the Secret that its token is about to be renewed by this
// process, on the condition that it is still as it was read. It is tried once:
// with an error, the token must not be renewed. The error is Conflict if
// somebody else has changed the Secret.
//
// It also shows, before a refresh token is spent, that the Secret can be
// written.
func (s *Store) Claim(ctx context.Context, conn *v1alpha1.Connection, version string) (string, error) {
	return s.patch(ctx, conn, map[string]any{
		"metadata": map[string]any{
			"resourceVersion": version,
			"annotations":     map[string]any{ClaimAnnotation: claimText(s.holder, s.clock.Now())},
		},
	})
}

// Save stores a renewed token, on the condition that the Secret is still as it
// was read, and returns its new version. It tries again until ctx ends, since
// the token that it replaces may be worth nothing any more; so give it a
// context that outlives the one who asked.
//
// With Conflict, Invalid or NotFound nothing was stored, and it is not tried
// again. An empty refresh token leaves the stored one in place.
func (s *Store) Save(ctx context.Context, conn *v1alpha1.Connection, token Token, version string) (string, error) {
	if token.Access == "" {
		return "", &Error{Reason: Invalid, Key: v1alpha1.CredentialsAccessToken, Message: "a renewed token without an access token is not stored"}
	}
	content := map[string]any{
		"metadata": map[string]any{
			"resourceVersion": version,
			"annotations":     map[string]any{ClaimAnnotation: nil, RenewedAnnotation: s.clock.Now().UTC().Format(time.RFC3339)},
		},
		"data": encode(token),
	}
	pause := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 1 << 30, Cap: longestPause}
	for {
		stored, err := s.patch(ctx, conn, content)
		switch ReasonOf(err) {
		case "":
			return stored, nil
		case Conflict:
			// An earlier try may have arrived although its answer did not.
			return s.alreadySaved(ctx, conn, token, err)
		case NotFound, Invalid:
			return "", err
		case Unavailable:
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-s.clock.After(pause.Step()):
		}
	}
}

// alreadySaved turns a conflict into a success if the Secret holds the token.
func (s *Store) alreadySaved(ctx context.Context, conn *v1alpha1.Connection, token Token, conflict error) (string, error) {
	found, err := s.Load(ctx, conn)
	if err == nil && found.Token.Access == token.Access && (token.Refresh == "" || found.Token.Refresh == token.Refresh) {
		return found.Version, nil
	}
	return "", conflict
}

// patch changes the Secret of a Connection and returns its new version. Only
// what is named is changed: a Secret may hold more than Herald knows of.
func (s *Store) patch(ctx context.Context, conn *v1alpha1.Connection, content map[string]any) (string, error) {
	name := conn.Spec.CredentialsSecretRef.Name
	body, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("cannot write the change of Secret %q: %w", name, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: conn.Namespace, Name: name}}
	if err := s.writer.Patch(ctx, secret, client.RawPatch(types.MergePatchType, body)); err != nil {
		return "", fromAPI(err, name, "update")
	}
	return secret.ResourceVersion, nil
}
