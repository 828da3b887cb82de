// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
)

// Notifiers reads and writes notifiers in the Kubernetes API.
type Notifiers interface {
	List(ctx context.Context, namespace string) ([]v1alpha1.Notifier, error)
	Get(ctx context.Context, namespace, name string) (*v1alpha1.Notifier, error)
	Create(ctx context.Context, notifier *v1alpha1.Notifier) (*v1alpha1.Notifier, error)
	// Update stores the difference between two states of a notifier, with optimistic concurrency.
	Update(ctx context.Context, before, after *v1alpha1.Notifier) (*v1alpha1.Notifier, error)
	// Delete deletes a notifier, but not a later one of the same name.
	Delete(ctx context.Context, notifier *v1alpha1.Notifier) error
}

// Notifier is a notifier for display. The resource must not be modified.
type Notifier struct {
	*v1alpha1.Notifier

	// Version identifies the content, like a post's Version.
	Version string
	// SigningSecret is the secret that signs webhooks; empty unless this request created it. It must not be logged.
	SigningSecret string
	// Replayed is true if an earlier request created the notifier.
	Replayed bool
}

func viewNotifier(n *v1alpha1.Notifier) Notifier {
	return Notifier{Notifier: n, Version: string(n.UID) + "." + strconv.FormatInt(n.Generation, 10)}
}

// IsRequested reports whether a request to send a notification again is pending in the manager.
func (n *Notifier) IsRequested(delivery string) bool {
	request := n.Annotations[v1alpha1.ResendAnnotation]
	id, _, _ := strings.Cut(request, " ")
	return id == delivery && request != n.Status.LastHandledResend
}

// NotifierContent is the part of a notifier that clients set.
type NotifierContent struct {
	Format v1alpha1.NotifierFormat
	// URL is the receiver's address. For format slack, it is stored in a Secret; an empty URL then stands for the stored
	// address.
	URL string
	// To are the recipients of format email.
	To      []string
	Events  []v1alpha1.NotifierEvent
	Suspend bool
}

// ContentOf returns a notifier's content, without an address that is a secret.
func ContentOf(n *v1alpha1.Notifier) NotifierContent {
	c := NotifierContent{Format: n.Spec.Format, URL: n.Spec.URL, Events: n.Spec.Events, Suspend: n.Spec.Suspend}
	if c.Format == v1alpha1.FormatSlack {
		c.URL = ""
	}
	if n.Spec.Email != nil {
		c.To = n.Spec.Email.To
	}
	return c
}

// apply copies the content into a notifier's spec.
func (c *NotifierContent) apply(spec *v1alpha1.NotifierSpec) {
	spec.Format, spec.Events, spec.Suspend = c.Format, c.Events, c.Suspend
	switch c.Format {
	case v1alpha1.FormatStandardWebhooks:
		spec.URL = c.URL
	case v1alpha1.FormatEmail:
		spec.Email = &v1alpha1.NotifierEmail{To: c.To}
	case v1alpha1.FormatSlack: // the address is in the Secret
	}
}

// ListNotifiers returns the notifiers of the caller's team, by name.
func (s *Service) ListNotifiers(ctx context.Context, caller Caller) ([]Notifier, error) {
	if err := require(caller, ScopeRead); err != nil {
		return nil, err
	}
	found, err := s.Notifiers.List(ctx, caller.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list the notifiers: %w", err)
	}
	limits.MeterFrom(ctx).Parts(len(found))
	found = slices.DeleteFunc(found, func(n v1alpha1.Notifier) bool { return !n.DeletionTimestamp.IsZero() })
	slices.SortFunc(found, func(a, b v1alpha1.Notifier) int { return cmp.Compare(a.Name, b.Name) })
	notifiers := make([]Notifier, len(found))
	for i := range found {
		notifiers[i] = viewNotifier(&found[i])
	}
	return notifiers, nil
}

// GetNotifier returns a notifier with its deliveries.
func (s *Service) GetNotifier(ctx context.Context, caller Caller, id string) (Notifier, error) {
	if err := require(caller, ScopeRead); err != nil {
		return Notifier{}, err
	}
	found, err := s.readNotifier(ctx, caller, id)
	if err != nil {
		return Notifier{}, err
	}
	return viewNotifier(found), nil
}

// mayWriteNotifier rejects a caller that is not allowed to write notifiers, or whose team is not allowed to create
// objects.
func (s *Service) mayWriteNotifier(caller Caller) error {
	if err := s.RequireSubscription(caller); err != nil {
		return err
	}
	return mayEndNotifier(caller)
}

// mayEndNotifier rejects agents, and API keys without the permission: a notifier sends the team's data to others, even
// after the key is revoked. The web application checks users' permissions itself.
func mayEndNotifier(caller Caller) error {
	switch {
	case caller.Key == "", slices.Contains(caller.Permissions, v1alpha1.PermissionNotifiers):
		return nil
	case caller.Author != "":
		return errorf(CodeInsufficientScope, "an agent that acts for a user is not allowed to change notifiers, which send the team's data to others: an administrator of the team changes them in Herald")
	default:
		return errorf(CodeInsufficientScope, "this API key is not allowed to change notifiers, which send the team's data to others: an administrator of the team creates a key with the permission notifiers, or changes them in Herald")
	}
}

// UpdateNotifier replaces the content of a notifier. version is the Version that the client read; if the notifier has
// changed since, UpdateNotifier returns a CONFLICT and does not store the change.
func (s *Service) UpdateNotifier(ctx context.Context, caller Caller, id, version string, content *NotifierContent) (Notifier, error) {
	if err := s.mayWriteNotifier(caller); err != nil {
		return Notifier{}, err
	}
	stored, err := s.readNotifier(ctx, caller, id)
	if err != nil {
		return Notifier{}, err
	}
	check := func(n *v1alpha1.Notifier) error {
		if viewNotifier(n).Version != version {
			return notifierChanged(n)
		}
		return nil
	}
	before := ContentOf(stored)
	before.Suspend, content.Format = content.Suspend, stored.Spec.Format
	if !v1alpha1.SemanticEqual(before, *content) { // a notifier with problems can be suspended
		if errs := content.validate(true); len(errs) > 0 {
			return Notifier{}, invalid(errs)
		}
	}
	secret := ""
	if content.Format == v1alpha1.FormatSlack && content.URL != "" {
		if secret, err = s.addSecret(ctx, caller, stored, v1alpha1.NotifierURLKey, content.URL, check); err != nil {
			return Notifier{}, err
		}
	}
	return s.changeNotifier(ctx, caller, id, ActNotifierEdited, func(n *v1alpha1.Notifier) error {
		current := *n.Spec.DeepCopy()
		content.apply(&n.Spec)
		if secret != "" {
			n.Spec.URL, n.Spec.SecretRef = "", &v1alpha1.LocalReference{Name: secret}
		}
		if v1alpha1.SemanticEqual(current, n.Spec) {
			return nil
		}
		return check(n)
	})
}

// SuspendNotifier suspends or resumes a notifier. Other changes in the meantime do not conflict.
func (s *Service) SuspendNotifier(ctx context.Context, caller Caller, id string, suspend bool) (Notifier, error) {
	err, act := s.mayWriteNotifier(caller), ActNotifierResumed
	if suspend {
		err, act = mayEndNotifier(caller), ActNotifierSuspended
	}
	if err != nil {
		return Notifier{}, err
	}
	return s.changeNotifier(ctx, caller, id, act, func(n *v1alpha1.Notifier) error {
		n.Spec.Suspend = suspend
		return nil
	})
}

// Resend requests that a notification be sent again. It returns the record of the notification.
func (s *Service) Resend(ctx context.Context, caller Caller, id, delivery string) (Notifier, *v1alpha1.NotifierDelivery, error) {
	if err := s.mayWriteNotifier(caller); err != nil {
		return Notifier{}, nil, err
	}
	request := delivery + " " + randomName(tokenNameLength) // so that a repeated request differs
	var known *v1alpha1.NotifierDelivery
	changed, err := s.changeNotifier(ctx, caller, id, ActResent, func(n *v1alpha1.Notifier) error {
		i := slices.IndexFunc(n.Status.Deliveries, func(d v1alpha1.NotifierDelivery) bool { return d.ID == delivery })
		if i < 0 {
			return errorf(CodeNotFound, "notifier %s no longer has notification %q; it keeps the latest %d", id, truncateID(delivery), v1alpha1.MaxFinishedDeliveries)
		}
		known = &n.Status.Deliveries[i]
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.ResendAnnotation, request)
		return nil
	})
	return changed, known, err
}

// DeleteNotifier deletes a notifier. Kubernetes then deletes the Secrets that Herald created for it.
func (s *Service) DeleteNotifier(ctx context.Context, caller Caller, id string) error {
	if err := mayEndNotifier(caller); err != nil {
		return err
	}
	stored, err := s.readNotifier(ctx, caller, id)
	if err != nil {
		return err
	}
	if err := s.Notifiers.Delete(ctx, stored); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete a notifier: %w", err)
	}
	s.Acted(ctx, caller, ActNotifierDeleted, stored)
	return nil
}

// notifierChanged returns the error for a change to a notifier that has changed since the client read it.
func notifierChanged(stored *v1alpha1.Notifier) *Error {
	by, author := "", stored.Annotations[v1alpha1.LastAuthorAnnotation]
	if author != "" {
		by = LastBy + author
	}
	refused := errorf(CodeConflict, "notifier %s has changed since you opened it%s; your change was not stored. Reload the notifier and make your change again.", stored.Name, by)
	refused.ChangedBy, refused.Stale = author, true
	return refused
}

// changeNotifier applies change to a copy of a notifier's current state, writes any difference, and retries conflicts
// with the manager, which writes the status. A non-empty act is recorded.
func (s *Service) changeNotifier(ctx context.Context, caller Caller, id string, act Act, change func(*v1alpha1.Notifier) error) (Notifier, error) {
	lost := false
	var last error
	for range changeTries {
		stored, err := s.readNotifier(ctx, caller, id)
		if err != nil {
			return Notifier{}, err
		}
		wanted := stored.DeepCopy()
		if err := change(wanted); err != nil {
			return Notifier{}, err
		}
		if v1alpha1.SemanticEqual(stored.Spec, wanted.Spec) && maps.Equal(stored.Annotations, wanted.Annotations) {
			if lost && act != "" {
				s.Acted(ctx, caller, act, stored)
			}
			return viewNotifier(stored), nil
		}
		signedByAny(&wanted.ObjectMeta, caller)
		written, err := s.Notifiers.Update(ctx, stored, wanted)
		switch refused := s.refused(caller.Namespace, err); {
		case err == nil:
			if act != "" {
				s.Acted(ctx, caller, act, written)
			}
			return viewNotifier(written), nil
		case apierrors.IsConflict(err):
			last = errorf(CodeConflict, "notifier %s is being changed at the same time; try again", id)
		case refused != nil:
			return Notifier{}, refused
		case answerLost(err) && ctx.Err() == nil:
			lost, last = true, fmt.Errorf("change a notifier; the change may have been stored: %w", err)
		default:
			return Notifier{}, fmt.Errorf("change a notifier: %w", err)
		}
	}
	return Notifier{}, last
}

func (s *Service) readNotifier(ctx context.Context, caller Caller, id string) (*v1alpha1.Notifier, error) {
	unknown := errorf(CodeNotFound, "this team has no notifier %q", truncateID(id))
	if !validName(id) {
		return nil, unknown
	}
	found, err := s.Notifiers.Get(ctx, caller.Namespace, id)
	switch {
	case apierrors.IsNotFound(err), err == nil && !found.DeletionTimestamp.IsZero():
		return nil, unknown
	case err != nil:
		return nil, fmt.Errorf("read a notifier: %w", err)
	}
	return found, nil
}
