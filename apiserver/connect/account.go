// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
)

// maxConflicts limits the attempts at a removal while others, such as the manager, are writing the connection.
const maxConflicts = 5

// managedByLabel is the standard Kubernetes label for the program that manages an object.
const managedByLabel = "app.kubernetes.io/managed-by"

// ConnectionName returns the name of an account's connection. The name is deterministic, so two replicas or two tabs
// create only one connection.
func ConnectionName(namespace string, platform v1alpha1.Platform, accountID string) string {
	sum := sha256.Sum256([]byte(namespace + "\x00" + string(platform) + "\x00" + accountID))
	return string(platform) + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// connect stores the account that the user agreed to: the account of the connection to renew, or the only choice.
// renewed reports that the account already had a connection, which requires permission to patch it.
func (s *Service) connect(ctx context.Context, v Visitor, f *flow, choices []platforms.Choice) (connection *v1alpha1.Connection, renewed bool, err error) {
	if f.Reconnect != "" {
		existing, err := s.find(ctx, f.Space, f.Reconnect)
		if err != nil {
			return nil, false, err
		}
		choice, err := sameAccount(existing, choices)
		if err != nil {
			return nil, false, err
		}
		connection, err = s.renew(ctx, f, existing, choice)
		return connection, true, err
	}
	choice := &choices[0]
	existing, err := s.existing(ctx, f, choice.Identity.AccountID)
	if err != nil {
		return nil, false, err
	}
	if existing == nil {
		if err := s.requireRoom(f.Space); err != nil {
			return nil, false, err
		}
		connection, err = s.create(ctx, f, choice)
		if !apierrors.IsAlreadyExists(err) {
			return connection, false, err
		}
		// Another replica or tab has created the connection.
		if existing, err = s.existing(ctx, f, choice.Identity.AccountID); err != nil {
			return nil, false, err
		}
		if existing == nil {
			return nil, false, refusef(bridge.CodeConflict, "nothing was connected: the account was disconnected at the same time; connect it again")
		}
	}
	if err := v.May(ctx, f.Space, Patch); err != nil {
		return nil, false, err
	}
	connection, err = s.renew(ctx, f, existing, choice)
	return connection, true, err
}

func sameAccount(existing *v1alpha1.Connection, choices []platforms.Choice) (*platforms.Choice, error) {
	names := make([]string, len(choices))
	for i := range choices {
		if choices[i].Identity.AccountID == existing.Spec.AccountID {
			return &choices[i], nil
		}
		identity := &choices[i].Identity
		names[i] = account(cmp.Or(identity.Username, identity.DisplayName), identity.AccountID)
	}
	return nil, refusef(bridge.CodeConflict, "nothing was changed: connection %q is the account %s, but access was allowed to %s; "+
		"sign in to %s with the right account and connect it again, or connect the other one as a separate account",
		existing.Name, account(cmp.Or(existing.Status.Username, existing.Status.AccountName), existing.Spec.AccountID),
		strings.Join(names, ", "), existing.Spec.Platform.Title())
}

func account(name, id string) string {
	if name == "" {
		return id
	}
	return fmt.Sprintf("%q (%s)", name, id)
}

// existing returns an account's connection, or nil if there is none. The connection may have any name, because users
// can apply connections themselves.
func (s *Service) existing(ctx context.Context, f *flow, accountID string) (*v1alpha1.Connection, error) {
	names := []string{ConnectionName(f.Space, f.Platform, accountID)}
	others := s.Connections.List(f.Space)
	slices.SortFunc(others, func(a, b *v1alpha1.Connection) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range others {
		if c.Spec.Platform == f.Platform && c.Spec.AccountID == accountID && c.DeletionTimestamp.IsZero() && c.Name != names[0] {
			names = append(names, c.Name)
		}
	}
	for i, name := range names {
		found, err := s.Connections.Live(ctx, f.Space, name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read connection %q: %w", name, err)
		case found.DeletionTimestamp != nil && i == 0:
			return nil, refusef(bridge.CodeConflict, "nothing was connected: the account's connection %q is still being removed; try again in a moment", name)
		case found.Spec.Platform == f.Platform && found.Spec.AccountID == accountID && found.DeletionTimestamp == nil:
			return found, nil
		case i == 0:
			return nil, refusef(bridge.CodeConflict, "nothing was connected: connection %q belongs to another account; delete it", name)
		}
	}
	return nil, nil //nolint:nilnil // the account has no connection
}

// create creates an account's connection, and then its Secret. This order survives a crash between the two: the
// connection's status reports the missing Secret, and connecting the account again completes it. A Secret without a
// connection would remain forever: Herald does not list Secrets, and without an owner the Secret is not
// garbage-collected.
func (s *Service) create(ctx context.Context, f *flow, choice *platforms.Choice) (*v1alpha1.Connection, error) {
	base := ConnectionName(f.Space, f.Platform, choice.Identity.AccountID)
	secret := secretName(base)
	created, err := s.Connections.Create(ctx, &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Space, Name: base, Labels: labels(),
			Annotations: map[string]string{v1alpha1.AuthorAnnotation: f.Person, v1alpha1.MadeSecretPrefix + secret: s.stamp()},
		},
		Spec: v1alpha1.ConnectionSpec{
			Platform: f.Platform, AccountID: choice.Identity.AccountID, Server: f.Server,
			CredentialsSecretRef: v1alpha1.LocalReference{Name: secret},
		},
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, err
	case err != nil:
		if refused := bridge.Bounded(s.Owner(f.Space), err); refused != nil {
			return nil, refused
		}
		return nil, fmt.Errorf("create the connection of an account: %w", err)
	}
	if err := s.createSecret(ctx, created, secret, choice.Token); err != nil {
		s.abandon(ctx, f.Person, created, secret)
		return nil, err
	}
	// The manager may have looked for the Secret before it existed, and would retry only at its next interval.
	if err := s.Connections.Annotate(ctx, created, map[string]string{v1alpha1.ProbeAnnotation: rand.Text()}); err != nil {
		s.Log.WarnContext(ctx, "A new connection could not be checked immediately", "namespace", f.Space, "connection", base, "error", err)
	}
	s.Log.InfoContext(ctx, "An account was connected", describe(f, created)...)
	return created, nil
}

// abandon removes a connection whose Secret could not be created, so that the account can be connected again. A
// connection that another tab has given a different Secret is not removed.
func (s *Service) abandon(ctx context.Context, person string, created *v1alpha1.Connection, secret string) {
	without := func(live *v1alpha1.Connection) bool { return live.Spec.CredentialsSecretRef.Name == secret }
	if _, err := s.remove(ctx, person, created, without); err != nil {
		s.Log.WarnContext(ctx, "A connection without credentials could not be removed",
			"namespace", created.Namespace, "connection", created.Name, "error", err)
	}
}

// renew gives a connection new credentials. It records the Secret's name on the connection, creates the Secret, and
// then refers to it. The old credentials remain in use until the last step, so the account is never without any. If the
// process dies before that, the manager finds the recorded name and removes the Secret. It also removes the old Secret,
// if Herald created it, once the new one works.
func (s *Service) renew(ctx context.Context, f *flow, existing *v1alpha1.Connection, choice *platforms.Choice) (*v1alpha1.Connection, error) {
	secret := secretName(ConnectionName(f.Space, existing.Spec.Platform, existing.Spec.AccountID))
	if err := s.Connections.Annotate(ctx, existing, map[string]string{v1alpha1.MadeSecretPrefix + secret: s.stamp()}); err != nil {
		return nil, fmt.Errorf("record the new credentials of connection %q: %w", existing.Name, err)
	}
	if err := s.createSecret(ctx, existing, secret, choice.Token); err != nil {
		return nil, err
	}
	renewed, err := s.Connections.UseSecret(ctx, existing, secret, map[string]string{
		v1alpha1.AuthorAnnotation: f.Person, v1alpha1.ProbeAnnotation: rand.Text(),
	})
	if err != nil {
		return nil, fmt.Errorf("give connection %q new credentials: %w", existing.Name, err)
	}
	s.Log.InfoContext(ctx, "An account was connected again", describe(f, renewed)...)
	return renewed, nil
}

func describe(f *flow, connection *v1alpha1.Connection) []any {
	return []any{
		"person", f.Person, "namespace", f.Space, "connection", connection.Name, "platform", f.Platform, "account", connection.Spec.AccountID,
	}
}

// createSecret creates a connection's Secret, owned by the connection. The Secret carries the mark of the
// installation's app, which obtained the token.
func (s *Service) createSecret(ctx context.Context, connection *v1alpha1.Connection, name string, token platforms.Token) error {
	var annotations map[string]string
	if mark := s.Apps.Sign(connection.Spec.Platform, token.Access, token.Refresh); mark != "" {
		annotations = map[string]string{credentials.AppMarkAnnotation: mark}
	}
	err := s.Secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: connection.Namespace, Name: name, Labels: labels(), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Connection", Name: connection.Name, UID: connection.UID, Controller: new(true),
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: s.secretData(token),
	})
	if apierrors.IsForbidden(err) {
		s.Log.ErrorContext(ctx, "The apiserver may not create Secrets in a team's namespace", "namespace", connection.Namespace, "error", err)
		return refusef(bridge.CodeReadinessUnavailable, "nothing was connected: Herald is not allowed to store credentials in the namespace %q; "+
			"for a new team, try again in a moment; otherwise the administrator must check the Team's conditions", connection.Namespace)
	}
	if err != nil {
		return fmt.Errorf("store the credentials of connection %q: %w", connection.Name, err)
	}
	return nil
}

func (s *Service) secretData(token platforms.Token) map[string][]byte {
	data := map[string][]byte{v1alpha1.CredentialsAccessToken: []byte(token.Access), v1alpha1.CredentialsGrantedAt: []byte(s.stamp())}
	for key, text := range map[string]string{
		v1alpha1.CredentialsRefreshToken: token.Refresh, v1alpha1.CredentialsScopes: token.Scopes,
		v1alpha1.CredentialsClientID: token.ClientID, v1alpha1.CredentialsClientSecret: token.ClientSecret,
	} {
		if text != "" {
			data[key] = []byte(text)
		}
	}
	for key, at := range map[string]time.Time{
		v1alpha1.CredentialsExpiresAt: token.ExpiresAt, v1alpha1.CredentialsRefreshExpiresAt: token.RefreshExpiresAt,
	} {
		if !at.IsZero() {
			data[key] = []byte(at.UTC().Format(time.RFC3339))
		}
	}
	return data
}

func labels() map[string]string {
	return map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb, managedByLabel: "herald"}
}

func (s *Service) stamp() string { return s.Clock.Now().UTC().Format(time.RFC3339) }

// secretName returns a unique name for a Secret. With an annotation prefix it remains below the 63-character limit.
func secretName(base string) string { return base + "-" + strings.ToLower(rand.Text()[:10]) }
