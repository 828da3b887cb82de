// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// SecretCreator creates Secrets in teams' namespaces. It cannot read, change or delete them.
type SecretCreator interface {
	Create(ctx context.Context, secret *corev1.Secret) error
}

const (
	// signingBytes is the length of a new secret; Standard Webhooks requires 24 to 64 bytes.
	signingBytes = 32
	// maxSecrets limits the number of a notifier's Secrets. The API cannot delete Secrets; Kubernetes deletes them with the
	// notifier.
	maxSecrets = 20
	// notifierSecretPrefix begins the names of notifiers' Secrets. The policy herald-apiserver-secrets requires this prefix
	// and two random parts, so the apiserver cannot create a Secret under a name that another program reads.
	notifierSecretPrefix = "notifier-"
)

func newSecretName() string { return notifierSecretPrefix + randomName(16) + "-" + randomName(10) }

func newSigningSecret() string {
	secret := make([]byte, signingBytes)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	return "whsec_" + base64.StdEncoding.EncodeToString(secret)
}

// CreateNotifier creates a notifier and its Secret, and returns it with the new secret. The name makes the request
// idempotent: a notifier of this name with the same content is returned, without its secret. The notifier is created
// first, because Kubernetes deletes a Secret with its owner; until the Secret exists, notifications wait.
func (s *Service) CreateNotifier(ctx context.Context, caller Caller, name string, content *NotifierContent) (Notifier, error) {
	if err := s.mayWriteNotifier(caller); err != nil {
		return Notifier{}, err
	}
	if errs := append(checkNotifierName(name), content.validate(false)...); len(errs) > 0 {
		return Notifier{}, invalid(errs)
	}
	wanted := &v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: name}}
	content.apply(&wanted.Spec)
	key, value := "", ""
	switch content.Format {
	case v1alpha1.FormatStandardWebhooks:
		key, value = v1alpha1.NotifierSecretKey, newSigningSecret()
	case v1alpha1.FormatSlack:
		key, value = v1alpha1.NotifierURLKey, content.URL
	case v1alpha1.FormatEmail:
	}
	if key != "" {
		wanted.Spec.SecretRef = &v1alpha1.LocalReference{Name: newSecretName()}
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, v1alpha1.SecretsMadeAnnotation, "1")
	}
	signedByAny(&wanted.ObjectMeta, caller)
	found := false
	stored, err := createOnce(ctx,
		func() (*v1alpha1.Notifier, error) { return s.Notifiers.Create(ctx, wanted) },
		func() (*v1alpha1.Notifier, error) {
			found = true
			return s.Notifiers.Get(ctx, wanted.Namespace, wanted.Name)
		})
	if refused := s.refused(caller.Namespace, err); refused != nil {
		return Notifier{}, refused
	}
	if err != nil {
		return Notifier{}, fmt.Errorf("create a notifier: %w", err)
	}
	if found && (key == "" || stored.Spec.SecretRef == nil || *stored.Spec.SecretRef != *wanted.Spec.SecretRef) {
		return replayedNotifier(stored, content)
	}
	if key != "" {
		if err := s.createSecret(ctx, stored, wanted.Spec.SecretRef.Name, key, value); err != nil {
			s.abandonNotifier(ctx, stored)
			return Notifier{}, err
		}
	}
	s.Acted(ctx, caller, ActNotifierCreated, stored)
	view := viewNotifier(stored)
	if key == v1alpha1.NotifierSecretKey {
		view.SigningSecret = value
	}
	return view, nil
}

// replayedNotifier returns a notifier that an earlier request created with the same content. A Slack address cannot be
// compared, because the API cannot read it.
func replayedNotifier(stored *v1alpha1.Notifier, content *NotifierContent) (Notifier, error) {
	if content.Format == v1alpha1.FormatSlack || !stored.DeletionTimestamp.IsZero() || !v1alpha1.SemanticEqual(ContentOf(stored), *content) {
		return Notifier{}, errorf(CodeConflict, "there is already a notifier %q; change it, or choose another name", stored.Name)
	}
	view := viewNotifier(stored)
	view.Replayed = true
	return view, nil
}

// abandonNotifier deletes a new notifier whose Secret could not be created, so that the request can be repeated.
func (s *Service) abandonNotifier(ctx context.Context, created *v1alpha1.Notifier) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	if err := s.Notifiers.Delete(ctx, created); err != nil && !apierrors.IsNotFound(err) {
		s.Log.WarnContext(ctx, "A notifier without a Secret could not be deleted", "namespace", created.Namespace, "name", created.Name, "error", err)
	}
}

// ReplaceSecret gives a notifier of format standard-webhooks a new secret, which signs all further notifications, and
// returns it.
func (s *Service) ReplaceSecret(ctx context.Context, caller Caller, id string) (Notifier, error) {
	if err := s.mayWriteNotifier(caller); err != nil {
		return Notifier{}, err
	}
	stored, err := s.readNotifier(ctx, caller, id)
	if err != nil {
		return Notifier{}, err
	}
	if stored.Spec.Format != v1alpha1.FormatStandardWebhooks {
		return Notifier{}, errorf(CodeConflict, "notifier %s has the format %s, which is not signed", id, stored.Spec.Format)
	}
	value := newSigningSecret()
	name, err := s.addSecret(ctx, caller, stored, v1alpha1.NotifierSecretKey, value, func(*v1alpha1.Notifier) error { return nil })
	if err != nil {
		return Notifier{}, err
	}
	changed, err := s.changeNotifier(ctx, caller, id, ActSecretReplaced, func(n *v1alpha1.Notifier) error {
		if n.UID != stored.UID {
			return notifierChanged(n)
		}
		n.Spec.SecretRef = &v1alpha1.LocalReference{Name: name}
		return nil
	})
	changed.SigningSecret = value
	return changed, err
}

// addSecret creates another Secret for a notifier and returns its name. The Secret is first counted in an annotation of
// the notifier, so the limit holds even if a later step fails.
func (s *Service) addSecret(ctx context.Context, caller Caller, of *v1alpha1.Notifier, key, value string, check func(*v1alpha1.Notifier) error) (name string, err error) {
	counted, err := s.changeNotifier(ctx, caller, of.Name, "", func(n *v1alpha1.Notifier) error {
		if err := check(n); err != nil {
			return err
		}
		made, _ := strconv.Atoi(n.Annotations[v1alpha1.SecretsMadeAnnotation]) // none for a notifier that was applied
		if made >= maxSecrets {
			return errorf(CodeConflict, "notifier %s has had %d secrets, which is the limit; delete it, and create it again", n.Name, made)
		}
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.SecretsMadeAnnotation, strconv.Itoa(made+1))
		return nil
	})
	if err != nil {
		return "", err
	}
	name = newSecretName()
	return name, s.createSecret(ctx, counted.Notifier, name, key, value)
}

// createSecret creates a Secret that a notifier owns. The name is random, so an existing Secret of this name is from an
// earlier attempt whose response was lost.
func (s *Service) createSecret(ctx context.Context, of *v1alpha1.Notifier, name, key, value string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: name, Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Notifier", Name: of.Name, UID: of.UID, Controller: new(true)}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{key: []byte(value)},
	}
	_, err := createOnce(ctx, func() (struct{}, error) { return struct{}{}, s.Secrets.Create(ctx, secret) }, func() (struct{}, error) { return struct{}{}, nil })
	switch {
	case apierrors.IsForbidden(err):
		s.Log.ErrorContext(ctx, "The apiserver may not create Secrets in a team's namespace", "namespace", of.Namespace, "error", err)
		return errorf(CodeConflict, "nothing was stored: Herald is not allowed to store secrets in the namespace %q; for a new team, try again in a moment; "+
			"otherwise the administrator of Herald must check the Team's conditions", of.Namespace)
	case err != nil:
		return fmt.Errorf("create the Secret of a notifier: %w", err)
	}
	return nil
}
