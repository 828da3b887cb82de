// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
)

// storedNotifier returns a notifier of the first generation, as hooks describes it.
func storedNotifier(name string) *v1alpha1.Notifier {
	return &v1alpha1.Notifier{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Generation: 1, Annotations: map[string]string{v1alpha1.LastAuthorAnnotation: "ada"}},
		Spec:       v1alpha1.NotifierSpec{Format: v1alpha1.FormatStandardWebhooks, URL: hooks().URL, Events: hooks().Events, SecretRef: &v1alpha1.LocalReference{Name: "s"}},
	}
}

// unreadableCaller has no scope.
var unreadableCaller = bridge.Caller{Namespace: caller.Namespace, Scopes: []bridge.Scope{"none"}}

// TestListNotifiers verifies which notifiers are listed, in which order, and what the list costs.
func TestListNotifiers(t *testing.T) {
	t.Parallel()
	n, service := newNotifiers()
	want := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for _, name := range append(slices.Clone(want), "gone") {
		n.stored[name] = storedNotifier(name)
	}
	n.stored["gone"].DeletionTimestamp = &metav1.Time{Time: now}
	ctx, meter := limits.WithMeter(t.Context())
	found, err := service.ListNotifiers(ctx, caller)
	var names []string
	for i := range found {
		names = append(names, found[i].Name)
	}
	if err != nil || !slices.Equal(names, want) || meter.Requests() != 1 {
		t.Errorf("%v, %v; want %v, without the deleted one; it costs %d requests, want 1", names, err, want, meter.Requests())
	}
	if _, err := service.ListNotifiers(t.Context(), unreadableCaller); code(err) != "INSUFFICIENT_SCOPE" {
		t.Errorf("a caller without the scope: %v", err)
	}
	n.reading = errLost
	if _, err := service.ListNotifiers(t.Context(), caller); !errors.Is(err, errLost) {
		t.Errorf("the Kubernetes API's error is lost: %v", err)
	}
}

// TestGetNotifier verifies which notifiers exist for a client.
func TestGetNotifier(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, id string
		caller     bridge.Caller
		deleted    bool
		reading    error
		want       string
	}{
		"Found":   {"the notifier exists", "n", caller, false, nil, ""},
		"Unknown": {"no notifier has the name", "m", caller, false, nil, "NOT_FOUND"},
		"NoName":  {"no notifier can have it", "n/m", caller, false, errLost, "NOT_FOUND"},
		"Deleted": {"its last notifications are being sent", "n", caller, true, nil, "NOT_FOUND"},
		"Failed":  {"the Kubernetes API did not respond", "n", caller, false, errLost, "internal"},
		"Scope":   {"the agent is not allowed to read", "n", unreadableCaller, false, nil, "INSUFFICIENT_SCOPE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, service := newNotifiers()
			n.stored["n"], n.reading = storedNotifier("n"), tc.reading
			if tc.deleted {
				n.stored["n"].DeletionTimestamp = &metav1.Time{Time: now}
			}
			found, err := service.GetNotifier(t.Context(), tc.caller, tc.id)
			if code(err) != tc.want || err == nil && found.Version != "u.1" {
				t.Errorf("%s: version %q, error %v, want %q", tc.reason, found.Version, err, tc.want)
			}
		})
	}
}

// TestUpdateNotifier verifies which changes are stored.
func TestUpdateNotifier(t *testing.T) {
	t.Parallel()
	plain := func(n *v1alpha1.Notifier) { n.Spec.URL = "http://plain.example.com/" }
	slack := func(n *v1alpha1.Notifier) { n.Spec.Format, n.Spec.URL = v1alpha1.FormatSlack, "" }
	another := func(c *bridge.NotifierContent) { c.URL = "https://other.example.com/" }
	conflict := apierrors.NewConflict(resourceNotifiers, "n", nil)
	for name, tc := range map[string]struct {
		reason  string
		stored  func(*v1alpha1.Notifier)
		change  func(*bridge.NotifierContent)
		version string
		faults  []fault
		// want is the error, says a part of its text, and generation the stored generation afterwards.
		want, says string
		generation int64
	}{
		"Stored":    {"the client has read the present version", nil, another, "u.1", nil, "", "", 2},
		"Stale":     {"the change would overwrite another", nil, another, "u.0", nil, "CONFLICT", "since you opened it, last by ada", 1},
		"Equal":     {"nothing changes, so nothing can be lost", nil, func(*bridge.NotifierContent) {}, "u.0", nil, "", "", 1},
		"Format":    {"the format of a notifier cannot be changed", nil, func(c *bridge.NotifierContent) { c.Format = v1alpha1.FormatEmail }, "u.1", nil, "", "", 1},
		"Invalid":   {"no notification would arrive", nil, func(c *bridge.NotifierContent) { c.URL = "http://plain.example.com/" }, "u.1", nil, "VALIDATION_ERROR", "url", 1},
		"Suspended": {"a notifier with problems can be suspended", plain, func(c *bridge.NotifierContent) { c.URL, c.Suspend = "http://plain.example.com/", true }, "u.1", nil, "", "", 2},
		"Slack": {"an empty URL stands for the stored one", slack, func(c *bridge.NotifierContent) {
			c.Format, c.URL, c.Events = v1alpha1.FormatSlack, "", []v1alpha1.NotifierEvent{v1alpha1.EventPostPosted}
		}, "u.1", nil, "", "", 2},
		"Conflict":  {"the manager has written the status", nil, another, "u.1", []fault{{err: conflict}}, "", "", 2},
		"Contended": {"each attempt conflicts", nil, another, "u.1", slices.Repeat([]fault{{err: conflict}}, 5), "CONFLICT", "at the same time", 1},
		"Lost":      {"the change may not have been stored, and is repeated", nil, another, "u.1", []fault{{err: errLost}}, "", "", 2},
		"Late":      {"the change was stored, but the response was lost", nil, another, "u.1", []fault{{lands: true, err: errLost}}, "", "", 2},
		"Silent":    {"no attempt got a response", nil, another, "u.1", slices.Repeat([]fault{{err: errLost}}, 5), "internal", "may have been stored", 1},
		"Refused":   {"the Kubernetes API rejects the change", nil, another, "u.1", []fault{{err: apierrors.NewBadRequest("no")}}, "internal", "change a notifier", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, service := newNotifiers()
			trail := &events{}
			service.Events = trail
			n.stored["n"], n.faultsOfUpdates = storedNotifier("n"), tc.faults
			if tc.stored != nil {
				tc.stored(n.stored["n"])
			}
			content := hooks()
			tc.change(content)
			_, err := service.UpdateNotifier(t.Context(), person, "n", tc.version, content)
			if got := code(err); got != tc.want || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%s: error %v (%s), want %q: %s", tc.reason, err, got, tc.want, tc.says)
			}
			verifyUpdate(t, tc.reason, n.stored["n"], trail, tc.generation)
			if known, ok := errors.AsType[*bridge.Error](err); ok && tc.version == "u.0" && (!known.Stale || known.ChangedBy != "ada") {
				t.Errorf("%s: stale %v, changed by %q", tc.reason, known.Stale, known.ChangedBy)
			}
		})
	}
}

// verifyUpdate verifies a notifier's generation and Secret, and what was recorded about its change.
func verifyUpdate(t *testing.T, reason string, after *v1alpha1.Notifier, trail *events, generation int64) {
	t.Helper()
	if after.Generation != generation || after.Spec.SecretRef == nil || after.Spec.SecretRef.Name != "s" {
		t.Errorf("%s: generation %d and Secret %v, want %d and the same Secret", reason, after.Generation, after.Spec.SecretRef, generation)
	}
	var recorded []string
	if generation > 1 {
		recorded = []string{"NotifierEditedByPerson"}
	}
	if got := reasonsOf(trail); !slices.Equal(got, recorded) || generation > 1 && after.Annotations[v1alpha1.LastAuthorAnnotation] != person.Author {
		t.Errorf("%s: recorded %q, want %q, with the author %v", reason, got, recorded, after.Annotations)
	}
}

// reasonsOf returns the reasons of the events that were written.
func reasonsOf(trail *events) (reasons []string) {
	for _, event := range trail.written {
		reason, _, _ := strings.Cut(event, " ")
		reasons = append(reasons, reason)
	}
	return reasons
}

// TestSuspendNotifier verifies that a suspension and its end are stored and recorded, and that an unchanged one is not.
func TestSuspendNotifier(t *testing.T) {
	t.Parallel()
	n, service := newNotifiers()
	trail := &events{}
	service.Events = trail
	n.stored["n"] = storedNotifier("n")
	for _, suspend := range []bool{true, true, false} {
		if changed, err := service.SuspendNotifier(t.Context(), person, "n", suspend); err != nil || changed.Spec.Suspend != suspend {
			t.Fatalf("suspend %v: %v", suspend, err)
		}
	}
	if got, want := reasonsOf(trail), []string{"NotifierSuspendedByPerson", "NotifierResumedByPerson"}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// TestResendNotification verifies which notifications can be requested again.
func TestResendNotification(t *testing.T) {
	t.Parallel()
	n, service := newNotifiers()
	n.stored["n"] = storedNotifier("n")
	n.stored["n"].Status.Deliveries = []v1alpha1.NotifierDelivery{{ID: "msg_1"}, {ID: "msg_2"}}
	changed, known, err := service.Resend(t.Context(), person, "n", "msg_2")
	if err != nil || known == nil || known.ID != "msg_2" || !changed.IsRequested("msg_2") || changed.IsRequested("msg_1") {
		t.Fatalf("%+v, %v", known, err)
	}
	first := n.stored["n"].Annotations[v1alpha1.ResendAnnotation]
	if _, _, err := service.Resend(t.Context(), person, "n", "msg_2"); err != nil || n.stored["n"].Annotations[v1alpha1.ResendAnnotation] == first {
		t.Errorf("a second request equals the first: %v", err)
	}
	if _, _, err := service.Resend(t.Context(), person, "n", "msg_3"); code(err) != "NOT_FOUND" {
		t.Errorf("an unknown notification: %v", err)
	}
}

// TestDeleteNotifier verifies that deletions are recorded, and that errors are returned.
func TestDeleteNotifier(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		deleting error
		want     string
	}{
		"Deleted": {"the notifier exists", nil, ""},
		"Gone":    {"somebody else has just deleted it", apierrors.NewNotFound(resourceNotifiers, "n"), ""},
		"Failed":  {"the Kubernetes API did not respond", errLost, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, service := newNotifiers()
			trail := &events{}
			service.Events = trail
			n.stored["n"], n.deleting = storedNotifier("n"), tc.deleting
			if err := service.DeleteNotifier(t.Context(), person, "n"); code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if len(trail.written) > 0 != (tc.want == "") {
				t.Errorf("%s: recorded as %q", tc.reason, trail.written)
			}
		})
	}
}
