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
	"github.com/herald-social/herald/internal/appseal"
)

// Pauses between two tries of a write that must not be lost.
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
	apps   appseal.Apps
}

// NewStore returns a Store. The reader must ask the API server each time (a
// manager's GetAPIReader): Secrets are never cached, and a token that was renewed a
// moment ago must be seen. The holder names this process in claims; two processes
// that run at once must not share it. A holder that survives a restart lets the new
// process continue its own claims at once. The apps are those of the installation, by
// whose marks it is known which tokens are theirs.
func NewStore(reader client.Reader, writer client.Writer, c clock.Clock, holder string, apps appseal.Apps) *Store {
	return &Store{reader: reader, writer: writer, clock: c, holder: strings.Join(strings.Fields(holder), "_"), apps: apps}
}

// App returns the client id of the installation's app on a platform, as Token.App holds
// it; "" if there is none.
func (s *Store) App(platform v1alpha1.Platform) string { return s.apps.ID(platform) }

// Load reads the token of a Connection. Errors are *Error with NotFound,
// Invalid or Unavailable.
func (s *Store) Load(ctx context.Context, conn *v1alpha1.Connection) (Credentials, error) {
	name := conn.Spec.CredentialsSecretRef.Name
	var secret corev1.Secret
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: name}, &secret); err != nil {
		return Credentials{}, fromAPI(err, name, "read")
	}
	return decode(&secret, conn.Spec.Platform, s.apps)
}

// MayClaim reports whether this process may begin to renew a token: there is no
// claim, the claim is its own, or the claim is older than patience. Otherwise it
// returns how long to wait.
func (s *Store) MayClaim(c Credentials, patience time.Duration) (bool, time.Duration) {
	if c.ClaimedBy == "" || c.ClaimedBy == s.holder {
		return true, 0
	}
	left := c.ClaimedAt.Add(patience).Sub(s.clock.Now())
	return left <= 0, max(left, 0)
}

// Claim records in the Secret that this process is about to renew the token, on the
// condition that the Secret still has the given version, and returns the new
// version. It tries once: after an error, the token must not be renewed. The error
// is Conflict if the Secret was changed.
//
// A claim also shows that the Secret can be written before a refresh token is spent.
func (s *Store) Claim(ctx context.Context, conn *v1alpha1.Connection, version string) (string, error) {
	return s.patch(ctx, conn, map[string]any{
		"metadata": map[string]any{
			"resourceVersion": version,
			"annotations":     map[string]any{ClaimAnnotation: claimText(s.holder, s.clock.Now())},
		},
	})
}

// Save stores a renewed token, on the condition that the Secret still has the given
// version, and returns the new version. It retries until ctx ends, since the token
// that it replaces may be worthless by now; so give it a context that outlives the
// caller's.
//
// After Conflict, Invalid or NotFound nothing was stored, and Save does not retry.
// An empty refresh token leaves the stored one in place. A token with an App is marked
// as the app's, together with its refresh token.
func (s *Store) Save(ctx context.Context, conn *v1alpha1.Connection, token Token, version string) (string, error) {
	if token.Access == "" {
		return "", &Error{Reason: Invalid, Key: v1alpha1.CredentialsAccessToken, Message: "a renewed token without an access token is not stored"}
	}
	var mark any // nil removes the one of the token before
	if token.App != "" && token.App == s.App(conn.Spec.Platform) {
		if made := s.apps.Seal(conn.Spec.Platform, token.Access, token.Refresh); made != "" {
			mark = made
		}
	}
	content := map[string]any{
		"metadata": map[string]any{
			"resourceVersion": version,
			"annotations": map[string]any{
				ClaimAnnotation: nil, RenewedAnnotation: s.clock.Now().UTC().Format(time.RFC3339), appseal.Annotation: mark,
			},
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
		case Unavailable, Unverified:
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

// patch changes the named parts of a Connection's Secret and returns its new
// version. The Secret may hold other data.
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
