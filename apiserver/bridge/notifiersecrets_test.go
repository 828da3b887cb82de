// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// contents returns a valid content of each format.
func contents() map[v1alpha1.NotifierFormat]*bridge.NotifierContent {
	at := []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed}
	return map[v1alpha1.NotifierFormat]*bridge.NotifierContent{
		v1alpha1.FormatStandardWebhooks: hooks(),
		v1alpha1.FormatSlack:            {Format: v1alpha1.FormatSlack, URL: "https://hooks.slack.com/services/T0/B0/x", Events: at},
		v1alpha1.FormatEmail:            {Format: v1alpha1.FormatEmail, To: []string{"team@example.com"}, Events: at},
	}
}

// TestSecretOfEachFormat verifies what each format stores in a Secret and shows.
func TestSecretOfEachFormat(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for format, tc := range map[v1alpha1.NotifierFormat]struct {
		reason, key string
		shown       bool
	}{
		v1alpha1.FormatStandardWebhooks: {"the receiver needs the secret", v1alpha1.NotifierSecretKey, true},
		v1alpha1.FormatSlack:            {"whoever knows Slack's URL can send messages", v1alpha1.NotifierURLKey, false},
		v1alpha1.FormatEmail:            {"the installation's mail server signs", "", false},
	} {
		for range 2 {
			n, service := newNotifiers()
			trail := &events{}
			service.Events = trail
			made, err := service.CreateNotifier(t.Context(), person, "n", contents()[format])
			if err != nil || made.Replayed || n.stored["n"].Annotations[v1alpha1.LastAuthorAnnotation] != person.Author {
				t.Fatalf("%s: %v, replayed %v, annotations %v", tc.reason, err, made.Replayed, n.stored["n"].Annotations)
			}
			if got := reasonsOf(trail); !slices.Equal(got, []string{"NotifierCreatedByPerson"}) {
				t.Errorf("%s: recorded %q", tc.reason, got)
			}
			if (len(n.secrets) == 1) != (tc.key != "") || (made.SigningSecret != "") != tc.shown {
				t.Errorf("%s: %d Secrets, shown %q", tc.reason, len(n.secrets), made.SigningSecret)
			}
			for _, secret := range n.secrets {
				if len(secret.Data[tc.key]) == 0 || n.stored["n"].Annotations[v1alpha1.SecretsMadeAnnotation] != "1" {
					t.Errorf("%s: the Secret is %v, annotations %v", tc.reason, secret.Data, n.stored["n"].Annotations)
				}
			}
			if !tc.shown {
				continue
			}
			key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(made.SigningSecret, "whsec_"))
			if err != nil || len(key) != 32 || shown[made.SigningSecret] {
				t.Errorf("%s: %q of %d bytes, %v, want 32 random bytes", tc.reason, made.SigningSecret, len(key), err)
			}
			shown[made.SigningSecret] = true
		}
	}
}

// withNotifier returns a service of a team with the notifier "n". edit may be nil.
func withNotifier(t *testing.T, format v1alpha1.NotifierFormat, edit func(*v1alpha1.Notifier)) (*notifiers, *bridge.Service) {
	t.Helper()
	n, service := newNotifiers()
	if _, err := service.CreateNotifier(t.Context(), person, "n", contents()[format]); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(n.stored["n"])
	}
	return n, service
}

// TestNotifierCreatedAgain repeats the creation of a notifier.
func TestNotifierCreatedAgain(t *testing.T) {
	t.Parallel()
	other := func(c *bridge.NotifierContent) { c.Events = []v1alpha1.NotifierEvent{v1alpha1.EventPostPosted} }
	deleted := func(n *v1alpha1.Notifier) { n.DeletionTimestamp = &metav1.Time{Time: now} }
	for name, tc := range map[string]struct {
		reason string
		format v1alpha1.NotifierFormat
		change func(*bridge.NotifierContent)
		stored func(*v1alpha1.Notifier)
		want   string
	}{
		"Same":    {"the request is repeated", v1alpha1.FormatStandardWebhooks, nil, nil, ""},
		"Email":   {"the request is repeated", v1alpha1.FormatEmail, nil, nil, ""},
		"Slack":   {"the stored URL cannot be compared", v1alpha1.FormatSlack, nil, nil, "CONFLICT"},
		"Other":   {"the name is taken", v1alpha1.FormatStandardWebhooks, other, nil, "CONFLICT"},
		"Mail":    {"the name is taken", v1alpha1.FormatEmail, other, nil, "CONFLICT"},
		"Signed":  {"a notifier without a Secret has the name", v1alpha1.FormatEmail, func(c *bridge.NotifierContent) { *c = *hooks() }, nil, "CONFLICT"},
		"Deleted": {"the notifier is about to disappear", v1alpha1.FormatStandardWebhooks, nil, deleted, "CONFLICT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, service := withNotifier(t, tc.format, tc.stored)
			again := contents()[tc.format]
			if tc.change != nil {
				tc.change(again)
			}
			secrets, trail := len(n.secrets), &events{}
			service.Events = trail
			made, err := service.CreateNotifier(t.Context(), person, "n", again)
			if code(err) != tc.want || made.Replayed != (tc.want == "") || made.SigningSecret != "" {
				t.Errorf("%s: error %v, want %q; replayed %v, shown %q", tc.reason, err, tc.want, made.Replayed, made.SigningSecret)
			}
			if len(n.secrets) != secrets || len(trail.written) > 0 {
				t.Errorf("%s: %d more Secrets, recorded as %q", tc.reason, len(n.secrets)-secrets, trail.written)
			}
		})
	}
}

// TestSecretReplaced verifies which notifiers get another secret.
func TestSecretReplaced(t *testing.T) {
	t.Parallel()
	made := func(secrets string) func(*v1alpha1.Notifier) {
		return func(n *v1alpha1.Notifier) { n.Annotations[v1alpha1.SecretsMadeAnnotation] = secrets }
	}
	for name, tc := range map[string]struct {
		reason string
		format v1alpha1.NotifierFormat
		stored func(*v1alpha1.Notifier)
		// want is the error, and counted the number of its Secrets afterwards.
		want, counted string
	}{
		"Replaced": {"the format is signed", v1alpha1.FormatStandardWebhooks, nil, "", "2"},
		"Applied":  {"Secrets that Herald did not create do not count", v1alpha1.FormatStandardWebhooks, func(n *v1alpha1.Notifier) { delete(n.Annotations, v1alpha1.SecretsMadeAnnotation) }, "", "1"},
		"Last":     {"the limit is not yet reached", v1alpha1.FormatStandardWebhooks, made("19"), "", "20"},
		"Limit":    {"the apiserver cannot delete Secrets", v1alpha1.FormatStandardWebhooks, made("20"), "CONFLICT", "20"},
		"Slack":    {"Slack's messages are not signed", v1alpha1.FormatSlack, nil, "CONFLICT", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, service := withNotifier(t, tc.format, tc.stored)
			before, trail := len(n.secrets), &events{}
			service.Events = trail
			replaced, err := service.ReplaceSecret(t.Context(), person, "n")
			if code(err) != tc.want || n.stored["n"].Annotations[v1alpha1.SecretsMadeAnnotation] != tc.counted {
				t.Fatalf("%s: error %v, want %q; annotations %v, want %s Secrets", tc.reason, err, tc.want, n.stored["n"].Annotations, tc.counted)
			}
			if tc.want != "" {
				if len(n.secrets) != before || len(trail.written) > 0 {
					t.Errorf("%s: %d more Secrets, recorded as %q", tc.reason, len(n.secrets)-before, trail.written)
				}
				return
			}
			current := n.secrets[n.stored["n"].Spec.SecretRef.Name]
			if current == nil || string(current.Data[v1alpha1.NotifierSecretKey]) != replaced.SigningSecret || len(n.secrets) != before+1 {
				t.Errorf("%s: the notifier does not use the secret that is shown", tc.reason)
			}
			if got := reasonsOf(trail); !slices.Equal(got, []string{"NotifierSecretReplacedByPerson"}) {
				t.Errorf("%s: recorded %q", tc.reason, got)
			}
		})
	}
}

// TestSlackURLReplaced verifies that a new URL is stored in another Secret, and only for a client that has read the
// present version.
func TestSlackURLReplaced(t *testing.T) {
	t.Parallel()
	n, service := withNotifier(t, v1alpha1.FormatSlack, nil)
	content := contents()[v1alpha1.FormatSlack]
	content.URL = "https://hooks.slack.com/services/T0/B0/y"
	if _, err := service.UpdateNotifier(t.Context(), person, "n", "u.0", content); code(err) != "CONFLICT" || len(n.secrets) != 1 {
		t.Errorf("a stale change: %v, %d Secrets", err, len(n.secrets))
	}
	if _, err := service.UpdateNotifier(t.Context(), person, "n", "u.1", content); err != nil || len(n.secrets) != 2 {
		t.Fatalf("%v, %d Secrets", err, len(n.secrets))
	}
	current := n.secrets[n.stored["n"].Spec.SecretRef.Name]
	if got := string(current.Data[v1alpha1.NotifierURLKey]); got != content.URL || n.stored["n"].Spec.URL != "" {
		t.Errorf("the Secret has %q, and the notifier %q", got, n.stored["n"].Spec.URL)
	}
}

// TestNotifierAbandoned verifies that a notifier whose Secret cannot be stored is deleted, and what an operator learns.
func TestNotifierAbandoned(t *testing.T) {
	t.Parallel()
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", nil)
	const left, forbidden = `namespace=team-a name=n error="read: connection reset by peer"`, `namespace=team-a error="secrets \"s\" is forbidden`
	for name, tc := range map[string]struct {
		reason           string
		secret, deleting error
		want             string
		logged           []string
	}{
		"Deleted":   {"the user can repeat the request", apierrors.NewBadRequest("no"), nil, "internal", nil},
		"Gone":      {"somebody else has just deleted it", apierrors.NewBadRequest("no"), apierrors.NewNotFound(resourceNotifiers, "n"), "internal", nil},
		"Left":      {"an operator may delete it", apierrors.NewBadRequest("no"), errLost, "internal", []string{left}},
		"Forbidden": {"an operator has to grant a right", denied, nil, "CONFLICT", []string{forbidden}},
		"Both":      {"both need an operator", denied, errLost, "CONFLICT", []string{forbidden, left}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, service := newNotifiers()
			var log bytes.Buffer
			service.Log = slog.New(slog.NewTextHandler(&log, nil))
			n.faultsOfSecrets, n.deleting = []fault{{err: tc.secret}}, tc.deleting
			if _, err := service.CreateNotifier(t.Context(), person, "n", hooks()); code(err) != tc.want || (len(n.stored) == 0) != (tc.deleting == nil) {
				t.Errorf("%s: error %v, want %q; %d notifiers are left", tc.reason, err, tc.want, len(n.stored))
			}
			if lines := strings.Count(log.String(), "\n"); lines != len(tc.logged) {
				t.Errorf("%s: %d lines are logged, want %d: %s", tc.reason, lines, len(tc.logged), &log)
			}
			for _, line := range tc.logged {
				if !strings.Contains(log.String(), line) {
					t.Errorf("%s: logged %q, want %s", tc.reason, &log, line)
				}
			}
		})
	}
}
