// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// notifiers is a fake Kubernetes API with notifiers and their Secrets. Each create of a kind consumes the next of its
// faults, if there is one, and each update the next of faultsOfUpdates.
type notifiers struct {
	stored                                   map[string]*v1alpha1.Notifier
	secrets                                  map[string]*corev1.Secret
	faults, faultsOfSecrets, faultsOfUpdates []fault
	conflicts, createSecrets                 int
	// reading is the error for lists and reads, and deleting is the error for deletions.
	reading, deleting error
}

var resourceNotifiers = schema.GroupResource{Resource: "notifiers"}

func (n *notifiers) List(context.Context, string) (all []v1alpha1.Notifier, err error) {
	for _, of := range n.stored {
		all = append(all, *of.DeepCopy())
	}
	return all, n.reading
}

func (n *notifiers) Get(_ context.Context, _, name string) (*v1alpha1.Notifier, error) {
	if n.reading != nil {
		return nil, n.reading
	}
	if found, ok := n.stored[name]; ok {
		return found.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resourceNotifiers, name)
}

func (n *notifiers) Create(_ context.Context, of *v1alpha1.Notifier) (*v1alpha1.Notifier, error) {
	if _, ok := n.stored[of.Name]; ok {
		return nil, apierrors.NewAlreadyExists(resourceNotifiers, of.Name)
	}
	var f fault
	if len(n.faults) > 0 {
		f, n.faults = n.faults[0], n.faults[1:]
	}
	if f.err == nil || f.lands {
		stored := of.DeepCopy()
		stored.UID, stored.Generation, stored.CreationTimestamp = "u", 1, metav1.NewTime(now)
		n.stored[of.Name] = stored
	}
	return n.stored[of.Name].DeepCopy(), f.err
}

func (n *notifiers) Update(_ context.Context, before, after *v1alpha1.Notifier) (*v1alpha1.Notifier, error) {
	if n.conflicts > 0 {
		n.conflicts--
		return nil, apierrors.NewConflict(resourceNotifiers, after.Name, nil)
	}
	var f fault
	if len(n.faultsOfUpdates) > 0 {
		f, n.faultsOfUpdates = n.faultsOfUpdates[0], n.faultsOfUpdates[1:]
	}
	if f.err != nil && !f.lands {
		return nil, f.err
	}
	stored := after.DeepCopy()
	if !v1alpha1.SemanticEqual(before.Spec, after.Spec) {
		stored.Generation++
	}
	n.stored[after.Name] = stored
	return stored.DeepCopy(), f.err
}

func (n *notifiers) Delete(_ context.Context, of *v1alpha1.Notifier) error {
	if n.deleting == nil {
		delete(n.stored, of.Name)
	}
	return n.deleting
}

// secretsOf implements bridge.SecretCreator.
type secretsOf struct{ *notifiers }

func (n secretsOf) Create(_ context.Context, secret *corev1.Secret) error {
	n.createSecrets++
	if _, ok := n.secrets[secret.Name]; ok {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, secret.Name)
	}
	var f fault
	if len(n.faultsOfSecrets) > 0 {
		f, n.faultsOfSecrets = n.faultsOfSecrets[0], n.faultsOfSecrets[1:]
	}
	if f.err == nil || f.lands {
		n.secrets[secret.Name] = secret
	}
	return f.err
}

func newNotifiers() (*notifiers, *bridge.Service) {
	n := &notifiers{stored: map[string]*v1alpha1.Notifier{}, secrets: map[string]*corev1.Secret{}}
	return n, bridge.New(bridge.Config{
		Owner: func(string) *v1alpha1.Team {
			return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive}}}
		},
		Notifiers: n, Secrets: secretsOf{n}, Clock: clocktesting.NewFakeClock(now), Log: slog.New(slog.DiscardHandler),
	})
}

func hooks() *bridge.NotifierContent {
	return &bridge.NotifierContent{Format: v1alpha1.FormatStandardWebhooks, URL: "https://hooks.example.com/", Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed}}
}

func TestWhoWritesNotifiers(t *testing.T) {
	t.Parallel()
	permitted := []v1alpha1.KeyPermission{v1alpha1.PermissionNotifiers}
	for name, tc := range map[string]struct {
		reason string
		caller bridge.Caller
		may    bool
	}{
		"person":    {"the web application has checked the rights", person, true},
		"key":       {"most keys are for posts", caller, false},
		"permitted": {"an administrator gave the permission", bridge.Caller{Namespace: "team-a", Key: "k", Permissions: permitted}, true},
		"agent":     {"a grant does not include notifiers, whatever the user may do", bridge.Caller{Namespace: "team-a", Key: "grant", Author: "ada", Scopes: []bridge.Scope{bridge.ScopePublish}}, false},
		"by key":    {"an agent with a key has the key's permission", bridge.Caller{Namespace: "team-a", Key: "k", Agent: "scout", Permissions: permitted}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, service := newNotifiers()
			trail := &events{}
			service.Events = trail
			ctx := t.Context()
			_, err := service.CreateNotifier(ctx, tc.caller, "n", hooks())
			if (err == nil) != tc.may || len(n.stored) > 0 != tc.may {
				t.Fatalf("%s: %v, %d stored", tc.reason, err, len(n.stored))
			}
			if recorded := tc.may && (tc.caller.Author != "" || tc.caller.Agent != ""); len(trail.written) > 0 != recorded ||
				recorded && !strings.Contains(trail.written[0], " Notifier/n: ") {
				t.Errorf("%s: recorded as %q", tc.reason, trail.written)
			}
			n.stored["n"] = &v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Generation: 1}, Spec: v1alpha1.NotifierSpec{Format: v1alpha1.FormatStandardWebhooks}}
			changed := hooks()
			changed.URL = "https://other.example.com/"
			_, updated := service.UpdateNotifier(ctx, tc.caller, "n", "u.1", changed)
			_, suspended := service.SuspendNotifier(ctx, tc.caller, "n", true)
			_, replaced := service.ReplaceSecret(ctx, tc.caller, "n")
			_, _, resent := service.Resend(ctx, tc.caller, "n", "msg_1")
			for i, err := range []error{updated, suspended, replaced, resent, service.DeleteNotifier(ctx, tc.caller, "n")} {
				refused, _ := errors.AsType[*bridge.Error](err)
				if denied := refused != nil && refused.Code == bridge.CodeInsufficientScope; denied == tc.may {
					t.Errorf("%s: operation %d: %v", tc.reason, i, err)
				}
			}
		})
	}
}

// TestNotifierWithoutSecret creates a notifier while writes of the notifier or of its Secret fail.
func TestNotifierWithoutSecret(t *testing.T) {
	t.Parallel()
	lost := apierrors.NewTimeoutError("no answer", 0)
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", nil)
	for name, tc := range map[string]struct {
		reason           string
		notifier, secret []fault
		notifiers        int
		secrets          int
		wrong            string
	}{
		"stored":       {reason: "the usual case", notifiers: 1, secrets: 1},
		"lost":         {reason: "a response without effect is repeated", notifier: []fault{{err: lost}}, secret: []fault{{err: lost}}, notifiers: 1, secrets: 1},
		"late":         {reason: "the notifier and the Secret of a lost response are this request's", notifier: []fault{{lands: true, err: lost}}, secret: []fault{{lands: true, err: lost}}, notifiers: 1, secrets: 1},
		"denied":       {reason: "a notifier without a Secret would block its name", secret: []fault{{err: denied}}, wrong: "is not allowed to store secrets"},
		"unavailable":  {reason: "the same", secret: []fault{{err: apierrors.NewBadRequest("no")}}, wrong: "create the Secret of a notifier"},
		"not notifier": {reason: "no Secret is stored without an owner", notifier: []fault{{err: apierrors.NewBadRequest("no")}}, wrong: "create a notifier"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, service := newNotifiers()
			n.faults, n.faultsOfSecrets = tc.notifier, tc.secret
			made, err := service.CreateNotifier(t.Context(), person, "n", hooks())
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if len(n.stored) != tc.notifiers || len(n.secrets) != tc.secrets {
				t.Errorf("%s: %d notifiers and %d Secrets", tc.reason, len(n.stored), len(n.secrets))
			}
			for _, secret := range n.secrets {
				if string(secret.Data["secret"]) != made.SigningSecret || secret.Name != n.stored["n"].Spec.SecretRef.Name || !metav1.IsControlledBy(secret, n.stored["n"]) {
					t.Errorf("%s: the Secret is %v", tc.reason, secret)
				}
			}
		})
	}
}

// TestSecretsAreCounted replaces a secret while the manager writes the status.
func TestSecretsAreCounted(t *testing.T) {
	t.Parallel()
	n, service := newNotifiers()
	if _, err := service.CreateNotifier(t.Context(), person, "n", hooks()); err != nil {
		t.Fatal(err)
	}
	n.conflicts = 2
	replaced, err := service.ReplaceSecret(t.Context(), person, "n")
	if err != nil || len(n.secrets) != 2 || n.stored["n"].Annotations[v1alpha1.SecretsMadeAnnotation] != "2" {
		t.Fatalf("%v, %d Secrets, %v", err, len(n.secrets), n.stored["n"].Annotations)
	}
	if current := n.secrets[n.stored["n"].Spec.SecretRef.Name]; string(current.Data["secret"]) != replaced.SigningSecret {
		t.Error("the notifier does not use the secret that is shown")
	}
	n.conflicts = 100
	if _, err := service.ReplaceSecret(t.Context(), person, "n"); err == nil || len(n.secrets) != 2 {
		t.Errorf("a Secret was created that is not counted: %v", err)
	}
}
