// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/receiver"
	"github.com/herald-social/herald/posting/notify"
)

// state is the state of a Notifier. send is nil while notifications cannot be sent.
type state struct {
	conditions.Summary

	send func(ctx context.Context, id string, p *notify.Payload) error
}

// examine returns the Notifier's state.
func (w *worker) examine(ctx context.Context) (state, error) {
	w.mu.Lock()
	n, gone := w.notifier, w.goneIn
	w.mu.Unlock()
	owned, err := w.reconciler.Owned(ctx, n.Namespace)
	switch {
	case err != nil:
		return state{}, err
	case !owned:
		return state{Summary: conditions.NoTeam(n.Namespace)}, nil
	case n.Spec.Suspend:
		return state{Summary: conditions.Summary{
			Ready: true, Reason: v1alpha1.ReasonSuspended, Progress: conditions.Settled,
			Message: "suspended by spec.suspend; notifications wait for at most a day",
		}}, nil
	case gone == n.Generation:
		return stuck(v1alpha1.ReasonReceiverGone, "the receiver reported that it no longer exists (410); change spec.url, or request to resend a notification"), nil
	}
	switch n.Spec.Format {
	case v1alpha1.FormatEmail:
		if w.reconciler.Mailer == nil {
			return stuck(v1alpha1.ReasonEmailNotConfigured, "the installation has no mail server; ask its administrator to set notifications.smtp"), nil
		}
		return ready(w.byEmail(n.Spec.Email.To)), nil
	case v1alpha1.FormatSlack:
		if n.Spec.SecretRef == nil {
			return ready(w.bySlack(n.Spec.URL)), nil
		}
	case v1alpha1.FormatStandardWebhooks:
	}
	return w.withSecret(ctx, n)
}

func ready(send func(context.Context, string, *notify.Payload) error) state {
	return state{send: send, Summary: conditions.Summary{
		Ready: true, Reason: v1alpha1.ReasonDelivering, Progress: conditions.Settled, Message: "notifications are sent as events occur",
	}}
}

func stuck(reason, message string) state {
	return state{Summary: conditions.Summary{Reason: reason, Message: message, Progress: conditions.Stuck}}
}

// withSecret returns the state of a Notifier with a Secret.
func (w *worker) withSecret(ctx context.Context, n *v1alpha1.Notifier) (state, error) {
	var secret corev1.Secret
	name := n.Spec.SecretRef.Name
	err := w.reconciler.Client.Get(ctx, types.NamespacedName{Namespace: n.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return state{Summary: conditions.Summary{
			Reason: v1alpha1.ReasonSecretNotFound, Message: fmt.Sprintf("Secret %q does not exist", name), Progress: conditions.Underway,
		}}, nil
	}
	if err != nil {
		return state{}, fmt.Errorf("cannot read Secret %q: %w", name, err)
	}
	key := v1alpha1.NotifierSecretKey
	if n.Spec.Format == v1alpha1.FormatSlack {
		key = v1alpha1.NotifierURLKey
	}
	value := string(secret.Data[key])
	if value == "" {
		return stuck(v1alpha1.ReasonSecretInvalid, fmt.Sprintf("Secret %q has no key %q", name, key)), nil
	}
	if n.Spec.Format == v1alpha1.FormatSlack {
		return ready(w.bySlack(value)), nil
	}
	secrets, err := receiver.ParseSecrets(value)
	if err != nil {
		return stuck(v1alpha1.ReasonSecretInvalid, fmt.Sprintf("key %q of Secret %q is invalid: %v", key, name, err)), nil
	}
	return ready(w.byWebhook(n.Spec.URL, secrets)), nil
}

func (w *worker) byWebhook(address string, secrets receiver.Secrets) func(context.Context, string, *notify.Payload) error {
	return func(ctx context.Context, id string, p *notify.Payload) error {
		body, err := p.JSON()
		if err != nil {
			return err
		}
		return w.reconciler.Sender.Post(ctx, address, secrets.Sign(id, w.reconciler.Clock.Now(), body), body)
	}
}

func (w *worker) bySlack(address string) func(context.Context, string, *notify.Payload) error {
	return func(ctx context.Context, _ string, p *notify.Payload) error {
		text := p.Text()
		body, err := text.Slack()
		if err != nil {
			return err
		}
		return w.reconciler.Sender.Post(ctx, address, nil, body)
	}
}

func (w *worker) byEmail(to []string) func(context.Context, string, *notify.Payload) error {
	return func(ctx context.Context, id string, p *notify.Payload) error {
		text := p.Text()
		return w.reconciler.Mailer.Send(ctx, id, to, text.Subject, text.Body())
	}
}

// deliver sends a notification. An error means that the request was not sent.
func (w *worker) deliver(ctx context.Context, item *notify.Notification) (notify.Result, error) {
	payload, err := w.payload(ctx, item)
	if err != nil {
		return notify.Result{}, err
	}
	err = w.state.send(ctx, item.ID, payload)
	var refused *receiver.Error
	switch {
	case err == nil:
		return notify.Result{}, nil
	case errors.As(err, &refused):
		return notify.Result{Problem: refused.Message, Gone: refused.Gone, RetryAfter: refused.RetryAfter}, nil
	default:
		return notify.Result{}, err
	}
}

// payload returns the content of a notification, from the current state of its object.
func (w *worker) payload(ctx context.Context, item *notify.Notification) (*notify.Payload, error) {
	site := &notify.Site{URL: w.reconciler.SiteURL, Namespace: w.key.Namespace}
	get := func(object client.Object) (found bool, err error) {
		// Finished posts are not in the cache.
		err = w.reconciler.APIReader.Get(ctx, types.NamespacedName{Namespace: w.key.Namespace, Name: item.Name}, object)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("cannot read the object of a notification: %w", err)
		}
		return err == nil && object.GetUID() == item.UID, nil
	}
	var (
		post       v1alpha1.Post
		connection v1alpha1.Connection
		file       v1alpha1.Media
	)
	switch item.Kind {
	case notify.KindPost:
		if found, err := get(&post); err != nil || found {
			return notify.AboutPost(&item.Event, site, &post), err
		}
	case notify.KindConnection:
		if found, err := get(&connection); err != nil || found {
			return notify.AboutConnection(&item.Event, site, &connection), err
		}
	case notify.KindMedia:
		if found, err := get(&file); err != nil || found {
			return notify.AboutMedia(&item.Event, site, &file), err
		}
	}
	return notify.Deleted(&item.Event, site), nil
}
