// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
)

const atNotifiers = "/teams/" + acme + "/" + pageNotifiers

type notifiersOf struct{ *cluster }

func (c notifiersOf) List(_ context.Context, namespace string) (all []v1alpha1.Notifier, err error) {
	for _, n := range within(c.cluster, c.notifiers, namespace+"/") {
		all = append(all, *n)
	}
	return all, nil
}

func (c notifiersOf) Get(_ context.Context, namespace, name string) (*v1alpha1.Notifier, error) {
	return read(c.cluster, c.notifiers, ofNotifiers, namespace, name)
}

func (c notifiersOf) Create(ctx context.Context, n *v1alpha1.Notifier) (*v1alpha1.Notifier, error) {
	if _, err := c.Get(ctx, n.Namespace, n.Name); err == nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: ofNotifiers}, n.Name)
	}
	n = n.DeepCopy()
	n.CreationTimestamp, n.Generation = metav1.NewTime(now), 1
	return write(c.cluster, c.notifiers, n)
}

func (c notifiersOf) Update(_ context.Context, before, after *v1alpha1.Notifier) (*v1alpha1.Notifier, error) {
	after = after.DeepCopy()
	if !v1alpha1.SemanticEqual(before.Spec, after.Spec) {
		after.Generation++
	}
	return write(c.cluster, c.notifiers, after)
}

func (c notifiersOf) Delete(_ context.Context, n *v1alpha1.Notifier) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	delete(c.notifiers, n.Namespace+"/"+n.Name)
	return nil
}

type secretsOf struct{ *cluster }

func (c secretsOf) Create(_ context.Context, secret *corev1.Secret) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	c.secrets = append(c.secrets, secret.DeepCopy())
	return nil
}

// notifierOf returns a notifier that sends signed requests, with the edits.
func notifierOf(name string, edits ...func(*v1alpha1.Notifier)) *v1alpha1.Notifier {
	n := &v1alpha1.Notifier{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: name, UID: types.UID(acme + "-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(now.AddDate(0, 0, -1))},
		Spec: v1alpha1.NotifierSpec{
			Format: v1alpha1.FormatStandardWebhooks, URL: "https://hooks.example.com/herald", SecretRef: &v1alpha1.LocalReference{Name: "ours"},
			Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed},
		},
		Status: v1alpha1.NotifierStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDelivering}}},
	}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func withNotifier(n *v1alpha1.Notifier) *world {
	w := newWorld(clocktesting.NewFakeClock(now))
	w.notifiers[n.Namespace+"/"+n.Name] = n
	return w
}

// stoppedFor makes a notifier report a reason for sending nothing.
func stoppedFor(reason string) func(*v1alpha1.Notifier) {
	return func(n *v1alpha1.Notifier) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].Reason = metav1.ConditionFalse, reason
	}
}

func TestNewNotifier(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		form   url.Values
		// stored describes the stored notifier and its Secret, as "format url to secret".
		stored, wrong string
	}{
		"Webhook":     {reason: "the secret is created", form: url.Values{"format": {"standard-webhooks"}, "webhook": {" https://hooks.example.com/a "}, "slack": {"https://left.example.com"}}, stored: "standard-webhooks https://hooks.example.com/a [] secret"},
		"Slack":       {reason: "its address is stored in a Secret", form: url.Values{"format": {"slack"}, "slack": {"https://hooks.slack.com/services/T"}}, stored: "slack  [] url"},
		"Email":       {reason: "users separate recipients in different ways", form: url.Values{"format": {"email"}, "recipients": {"a@example.com\r\nb@example.com, c@example.com"}}, stored: "email  [a@example.com b@example.com c@example.com] "},
		"NoName":      {reason: "the page cannot guess a name", form: url.Values{"format": {"slack"}, "name": {"…"}}, wrong: "Give the notification a name"},
		"NoFormat":    {reason: "a browser sends none if none is chosen", form: url.Values{}, wrong: "Choose where the notifications go."},
		"NoEvent":     {reason: "the notifier would not report any event", form: url.Values{"format": {"email"}, "recipients": {"a@example.com"}, "event": {}}, wrong: "Choose at least one event."},
		"NoAddress":   {reason: "the error names the field", form: url.Values{"format": {"standard-webhooks"}}, wrong: "Address: Is missing."},
		"NoRecipient": {reason: "the error names the field", form: url.Values{"format": {"email"}, "recipients": {" "}}, wrong: "Recipients: Must have at least 1 item."},
		"BadEmail":    {reason: "the error shows an example", form: url.Values{"format": {"email"}, "recipients": {"ada"}}, wrong: "Recipients: Is not an email address such as social@example.com."},
		"Private":     {reason: "Herald does not send into networks", form: url.Values{"format": {"standard-webhooks"}, "webhook": {"https://192.168.1.1/"}}, wrong: "Address: Must resolve to a public address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			form := url.Values{"name": {"Our failures"}, "event": {"post.failed", "made.up"}}
			maps.Copy(form, tc.form)
			answer := w.serve(newRequest(&administrator, atNotifiers+"/new", form))
			stored := w.notifiers[acme+"/our-failures"]
			if tc.wrong != "" {
				says(t, tc.reason, textOf(withID(t, parsed(t, answer.Body.String()), "problems")), []string{tc.wrong}, nil)
				if answer.Code != http.StatusBadRequest || stored != nil || len(w.secrets) > 0 {
					t.Errorf("%s: %d, stored %v", tc.reason, answer.Code, stored)
				}
				return
			}
			if stored == nil {
				t.Fatalf("%s: %d\n%s", tc.reason, answer.Code, answer.Body)
			}
			to, key, value := []string{}, "", ""
			if stored.Spec.Email != nil {
				to = stored.Spec.Email.To
			}
			for _, secret := range w.secrets {
				for k, v := range secret.Data {
					key, value = k, string(v)
				}
			}
			if got := string(stored.Spec.Format) + " " + stored.Spec.URL + " [" + strings.Join(to, " ") + "] " + key; got != tc.stored {
				t.Errorf("%s: stored %q, want %q", tc.reason, got, tc.stored)
			}
			// A signing secret is shown, but a Slack address is not.
			if shown := strings.Contains(answer.Body.String(), value) && value != ""; shown != (key == v1alpha1.NotifierSecretKey) {
				t.Errorf("%s: the secret is shown: %t", tc.reason, shown)
			}
			if key == v1alpha1.NotifierSecretKey && strings.Contains(w.serve(newRequest(&administrator, atNotifiers+"/our-failures", nil)).Body.String(), value) {
				t.Error("the secret is shown twice")
			}
		})
	}
}

func TestEditNotifier(t *testing.T) {
	t.Parallel()
	toSlack := func(n *v1alpha1.Notifier) { n.Spec.Format, n.Spec.URL = v1alpha1.FormatSlack, "" }
	w := withNotifier(notifierOf("n", toSlack))
	form := sent(withID(t, w.get(t, administrator, atNotifiers+"/n/edit"), "edit"))
	if answer := w.serve(newRequest(&administrator, atNotifiers+"/n/edit", form)); answer.Code != http.StatusSeeOther || w.written() != 0 {
		t.Errorf("a form that is sent unchanged: %d, %d writes\n%s", answer.Code, w.written(), answer.Body)
	}
	form.Set("slack", "https://hooks.slack.com/services/other")
	form["event"] = append(form["event"], "post.posted")
	if answer := w.serve(newRequest(&administrator, atNotifiers+"/n/edit", form)); answer.Code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", answer.Code, answer.Body)
	}
	n := w.notifiers[acme+"/n"]
	if len(n.Spec.Events) != 2 || len(w.secrets) != 1 || n.Spec.SecretRef.Name != w.secrets[0].Name || string(w.secrets[0].Data["url"]) != form.Get("slack") {
		t.Errorf("stored %v and %v", n.Spec, w.secrets)
	}
	answer := w.serve(newRequest(&administrator, atNotifiers+"/n/edit", form))
	says(t, "a form that was opened before the change", answer.Body.String(), []string{"has changed since you opened it"}, nil)
	if len(w.secrets) != 1 {
		t.Error("a refused change stored an address")
	}
}

func TestNotifierPages(t *testing.T) {
	t.Parallel()
	failing := func(n *v1alpha1.Notifier) {
		n.Status.Conditions = append(n.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionFailing, Status: metav1.ConditionTrue, Message: "the receiver does not accept notifications: it answers 503", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		})
	}
	delivery := func(d v1alpha1.NotifierDelivery) func(*v1alpha1.Notifier) {
		d.ID, d.OccurredAt = "msg_1", v1alpha1.NewTime(now.Add(-time.Hour))
		return func(n *v1alpha1.Notifier) { n.Status.Deliveries = []v1alpha1.NotifierDelivery{d} }
	}
	failed := v1alpha1.NotifierDelivery{Event: v1alpha1.EventPostFailed, Kind: "Post", Name: "launch", State: v1alpha1.DeliveryFailed, Attempts: 41, Message: "it answers 503"}
	for name, tc := range map[string]struct {
		reason     string
		who        access.Person
		edits      []func(*v1alpha1.Notifier)
		want, lack []string
	}{
		"Active":      {"the notifier has no problem", administrator, nil, []string{"Active", "Webhook to hooks.example.com", "A post failed", "never", "Suspend", "Edit", "Delete…"}, []string{"Failing", "Resume"}},
		"Viewer":      {"a viewer does not change notifiers", viewer, nil, []string{"Active"}, []string{"Suspend", "Edit", "Delete", "Create a new secret"}},
		"Failing":     {"the error and its beginning are shown", administrator, []func(*v1alpha1.Notifier){failing}, []string{"Failing", "The last attempt failed: it answers 503.", "It has failed since"}, []string{"Active"}},
		"Gone":        {"the notifier does not send", administrator, []func(*v1alpha1.Notifier){stoppedFor(v1alpha1.ReasonReceiverGone)}, []string{"Stopped", "Change the address"}, nil},
		"NoSecret":    {"the remedy is on the page", administrator, []func(*v1alpha1.Notifier){stoppedFor(v1alpha1.ReasonSecretNotFound)}, []string{"Cannot send", "Create a new one"}, nil},
		"NewSecret":   {"the secret is stored after the notifier", administrator, []func(*v1alpha1.Notifier){stoppedFor(v1alpha1.ReasonSecretNotFound), func(n *v1alpha1.Notifier) { n.CreationTimestamp = metav1.NewTime(now) }}, []string{"Being checked"}, []string{"Cannot send"}},
		"NoMail":      {"the page names who can change the notifier", administrator, []func(*v1alpha1.Notifier){stoppedFor(v1alpha1.ReasonEmailNotConfigured)}, []string{"no mail server", "smtp in the values of the Helm chart"}, nil},
		"Suspended":   {"a user suspended the notifier", administrator, []func(*v1alpha1.Notifier){func(n *v1alpha1.Notifier) { n.Spec.Suspend = true }, failing}, []string{"Suspended", "Resume"}, []string{"Failing"}},
		"Changed":     {"the manager has not seen the change", administrator, []func(*v1alpha1.Notifier){func(n *v1alpha1.Notifier) { n.Generation = 2 }}, []string{"Being checked"}, nil},
		"Undelivered": {"the notification can be sent again", administrator, []func(*v1alpha1.Notifier){delivery(failed)}, []string{"Not delivered after 41 attempts", "It answers 503.", "Send again", "launch"}, nil},
		"Resent": {"the request is not handled yet", administrator, []func(*v1alpha1.Notifier){delivery(failed), func(n *v1alpha1.Notifier) {
			n.Annotations = map[string]string{v1alpha1.ResendAnnotation: "msg_1 a"}
		}}, []string{"Being sent again"}, []string{"Not delivered", "Send again"}},
		"ByViewer": {"a viewer does not send notifications", viewer, []func(*v1alpha1.Notifier){delivery(failed)}, []string{"Not delivered"}, []string{"Send again"}},
		"OfAccount": {
			"the page shows the team's name", administrator,
			[]func(*v1alpha1.Notifier){delivery(v1alpha1.NotifierDelivery{Event: v1alpha1.EventConnectionBroken, Kind: "Connection", Name: "our-x", State: v1alpha1.DeliveryDelivered, Attempts: 1})},
			[]string{"An account stopped working", "Account our-x on X", "Delivered"},
			[]string{"attempt"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withNotifier(notifierOf("n", tc.edits...))
			says(t, tc.reason, textOf(withID(t, w.get(t, tc.who, atNotifiers+"/n"), "content")), tc.want, tc.lack)
			if len(w.notifiers[acme+"/n"].Status.Deliveries) == 0 {
				says(t, tc.reason+", in the list", textOf(withID(t, w.get(t, tc.who, atNotifiers), "content")), tc.want, tc.lack)
			}
		})
	}
}

func TestNotifierActions(t *testing.T) {
	t.Parallel()
	undelivered := notifierOf("n", func(n *v1alpha1.Notifier) {
		n.Status.Deliveries = []v1alpha1.NotifierDelivery{{ID: "msg_1", Event: v1alpha1.EventPostFailed, Kind: "Post", Name: "launch", State: v1alpha1.DeliveryFailed}}
	})
	for name, tc := range map[string]struct {
		reason, page string
		form         url.Values
		done         func(w *world) bool
		status       int
	}{
		"Suspend": {"a button suffices", "suspend", url.Values{}, func(w *world) bool { return w.notifiers[acme+"/n"].Spec.Suspend }, http.StatusSeeOther},
		"Resend": {"the manager gets the request", "resend", url.Values{"delivery": {"msg_1"}}, func(w *world) bool {
			return strings.HasPrefix(w.notifiers[acme+"/n"].Annotations[v1alpha1.ResendAnnotation], "msg_1 ")
		}, http.StatusSeeOther},
		"Secret": {"the secret is shown once", "secret", url.Values{}, func(w *world) bool { return len(w.secrets) == 1 }, http.StatusOK},
		"Delete": {"a page explains the deletion first", "delete", url.Values{}, func(w *world) bool { return len(w.notifiers) == 0 }, http.StatusSeeOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withNotifier(undelivered.DeepCopy())
			for _, who := range []access.Person{viewer, editor} {
				if answer := w.serve(newRequest(&who, atNotifiers+"/n/"+tc.page, tc.form)); answer.Code != http.StatusForbidden || tc.done(w) {
					t.Errorf("%s: %s gets %d", tc.reason, who.Name, answer.Code)
				}
			}
			if answer := w.serve(newRequest(&administrator, atNotifiers+"/n/"+tc.page, tc.form)); answer.Code != tc.status || !tc.done(w) {
				t.Errorf("%s: %d\n%s", tc.reason, answer.Code, answer.Body)
			}
		})
	}
}

func TestKeyForNotifiers(t *testing.T) {
	t.Parallel()
	form := url.Values{"description": {"a script"}, "permission": {"notifiers"}}
	w := newWorld(clocktesting.NewFakeClock(now))
	if answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/keys", form)); answer.Code != http.StatusCreated {
		t.Fatalf("%d\n%s", answer.Code, answer.Body)
	}
	says(t, "the page shows it", textOf(withID(t, w.get(t, administrator, "/teams/"+acme+"/keys"), "content")), []string{"change notifications"}, nil)

	w = newWorld(clocktesting.NewFakeClock(now), without("delete notifiers"))
	says(t, "the form does not offer a right that the user lacks", textOf(withID(t, w.get(t, administrator, "/teams/"+acme+"/keys"), "content")), nil, []string{"change notifications"})
	if answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/keys", form)); answer.Code != http.StatusForbidden || len(w.keys) > 0 {
		t.Errorf("users must not grant rights that they lack: %d, %d keys", answer.Code, len(w.keys))
	}
}
