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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// RegisterName is the Secret that lists a namespace's working copies. Herald cannot list Secrets, yet must find a copy
// that outlives its Connection in order to remove it.
const RegisterName = "herald-credentials"

// RegisterEntry is a working copy that exists, or may exist, in a namespace.
type RegisterEntry struct {
	Platform  v1alpha1.Platform `json:"platform"`
	AccountID string            `json:"accountID"`
	// GoneSince is when the account lost its last Connection, or zero while it has one.
	GoneSince time.Time `json:"goneSince,omitzero"`
}

// Matches reports whether a Connection is for the entry's account.
func (e RegisterEntry) Matches(conn *v1alpha1.Connection) bool {
	return e.Platform == conn.Spec.Platform && e.AccountID == conn.Spec.AccountID
}

// Name returns the name of the working copy.
func (e RegisterEntry) Name() string { return workingNameOf(e.Platform, e.AccountID) }

// RegisterEntryOf returns the entry for a Connection's account.
func RegisterEntryOf(conn *v1alpha1.Connection) RegisterEntry {
	return RegisterEntry{Platform: conn.Spec.Platform, AccountID: conn.Spec.AccountID}
}

func registerKey(name string) string { return strings.TrimPrefix(name, workingPrefix) }

// Register adds an entry to a namespace's register, unless it already exists. Errors are *Error.
func (s *Store) Register(ctx context.Context, namespace string, entry RegisterEntry) error {
	known, err := s.Entries(ctx, namespace)
	if err != nil {
		return err
	}
	for _, e := range known {
		if e.Name() == entry.Name() && e.GoneSince.Equal(entry.GoneSince) {
			return nil
		}
	}
	content, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("cannot write the register of working copies: %w", err)
	}
	key := registerKey(entry.Name())
	err = s.patchRegister(ctx, namespace, key, content)
	if ReasonOf(err) != NotFound {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: RegisterName, Labels: map[string]string{WorkingLabel: "register"}},
		Type:       WorkingType, Data: map[string][]byte{key: content},
	}
	if err := s.writer.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return s.patchRegister(ctx, namespace, key, content)
	} else if err != nil {
		return fromAPI(err, RegisterName, "create")
	}
	return nil
}

// patchRegister writes one key of the register, or removes it if content is nil. Writers of other keys do not conflict.
func (s *Store) patchRegister(ctx context.Context, namespace, key string, content any) error {
	body, err := json.Marshal(map[string]any{"data": map[string]any{key: content}})
	if err != nil {
		return fmt.Errorf("cannot write the register of working copies: %w", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: RegisterName}}
	if err := s.writer.Patch(ctx, secret, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fromAPI(err, RegisterName, "update")
	}
	return nil
}

// Entries returns a namespace's register, or nil if there is none. It skips keys that Herald did not write. The error
// has reason Invalid if a user created a Secret with that name.
func (s *Store) Entries(ctx context.Context, namespace string) ([]RegisterEntry, error) {
	var secret corev1.Secret
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: RegisterName}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fromAPI(err, RegisterName, "read")
	}
	if secret.Type != WorkingType {
		return nil, &Error{Reason: Invalid, Message: fmt.Sprintf(
			"Secret %q has the name of Herald's own register of tokens in this namespace, but Herald did not create it; "+
				"rename it, and update spec.credentialsSecretRef of the Connections that use it", RegisterName)}
	}
	var found []RegisterEntry
	for key, content := range secret.Data {
		var e RegisterEntry
		if json.Unmarshal(content, &e) == nil && registerKey(e.Name()) == key {
			found = append(found, e)
		}
	}
	return found, nil
}

// Remove deletes an entry's working copy, then the entry. It does not delete a user's Secret that happens to have such
// a name.
func (s *Store) Remove(ctx context.Context, namespace string, entry RegisterEntry) error {
	var secret corev1.Secret
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: entry.Name()}, &secret)
	if err == nil && secret.Type == WorkingType {
		err = s.writer.Delete(ctx, &secret, client.Preconditions{UID: &secret.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fromAPI(err, entry.Name(), "delete")
	}
	switch _, err := s.Entries(ctx, namespace); ReasonOf(err) {
	case "":
	case Invalid:
		return nil
	case NotFound, Conflict, Unavailable, Unverified:
		return err
	}
	if err := s.patchRegister(ctx, namespace, registerKey(entry.Name()), nil); err != nil && ReasonOf(err) != NotFound {
		return err
	}
	return nil
}
