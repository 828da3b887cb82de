// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
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

// receivers resolves the receivers of Notifiers from their specs and Secrets.
type receivers struct {
	client client.Reader
	clock  clock.PassiveClock
	sender Sender
	mailer Mailer
}

// resolve returns the state of a Notifier that is not suspended, with the function that sends to its receiver.
func (r receivers) resolve(ctx context.Context, n *v1alpha1.Notifier) (state, error) {
	switch n.Spec.Format {
	case v1alpha1.FormatEmail:
		if r.mailer == nil {
			return stuck(v1alpha1.ReasonEmailNotConfigured, "the installation has no mail server; ask its administrator to set notifications.smtp"), nil
		}
		return ready(r.byEmail(n.Spec.Email.To)), nil
	case v1alpha1.FormatSlack:
		if n.Spec.SecretRef == nil {
			return ready(r.bySlack(n.Spec.URL)), nil
		}
	case v1alpha1.FormatStandardWebhooks:
	}
	return r.withSecret(ctx, n)
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
func (r receivers) withSecret(ctx context.Context, n *v1alpha1.Notifier) (state, error) {
	var secret corev1.Secret
	name := n.Spec.SecretRef.Name
	err := r.client.Get(ctx, types.NamespacedName{Namespace: n.Namespace, Name: name}, &secret)
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
		return ready(r.bySlack(value)), nil
	}
	secrets, err := receiver.ParseSecrets(value)
	if err != nil {
		return stuck(v1alpha1.ReasonSecretInvalid, fmt.Sprintf("key %q of Secret %q is invalid: %v", key, name, err)), nil
	}
	return ready(r.byWebhook(n.Spec.URL, secrets)), nil
}

func (r receivers) byWebhook(address string, secrets receiver.Secrets) func(context.Context, string, *notify.Payload) error {
	return func(ctx context.Context, id string, p *notify.Payload) error {
		body, err := p.JSON()
		if err != nil {
			return err
		}
		return r.sender.Post(ctx, address, secrets.Sign(id, r.clock.Now(), body), body)
	}
}

func (r receivers) bySlack(address string) func(context.Context, string, *notify.Payload) error {
	return func(ctx context.Context, _ string, p *notify.Payload) error {
		text := p.Text()
		body, err := text.Slack()
		if err != nil {
			return err
		}
		return r.sender.Post(ctx, address, nil, body)
	}
}

func (r receivers) byEmail(to []string) func(context.Context, string, *notify.Payload) error {
	return func(ctx context.Context, id string, p *notify.Payload) error {
		text := p.Text()
		return r.mailer.Send(ctx, id, to, text.Subject, text.Body())
	}
}
