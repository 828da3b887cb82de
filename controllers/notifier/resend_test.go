// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestResendRequests sends requests while the worker waits for a receiver.
func TestResendRequests(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	delivered := func(id string) v1alpha1.NotifierDelivery {
		return v1alpha1.NotifierDelivery{
			ID: id, Event: v1alpha1.EventPostPosted, Kind: "Post", Name: id, UID: id, OccurredAt: v1alpha1.NewTime(now), State: v1alpha1.DeliveryDelivered, Attempts: 1,
		}
	}
	for name, tc := range map[string]struct {
		reason   string
		requests []string
		pending  int
		handled  string
	}{
		"two":     {"the second request does not replace the first", []string{"msg_a", "msg_b"}, 2, "msg_b"},
		"same":    {"an annotation that stays is one request", []string{"msg_a", "msg_a"}, 1, "msg_a"},
		"again":   {"other text after the id is another request for the same notification", []string{"msg_a", "msg_a 2"}, 1, "msg_a 2"},
		"unknown": {"an unknown id is handled, and not requested forever", []string{"msg_c"}, 0, "msg_c"},
		"none":    {"a removed annotation is not a request", []string{""}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &v1alpha1.Notifier{Status: v1alpha1.NotifierStatus{Deliveries: []v1alpha1.NotifierDelivery{delivered("msg_a"), delivered("msg_b")}}}
			w := newWorker(&Reconciler{Options: Options{Clock: clocktesting.NewFakeClock(now)}}, nil, n)
			for _, request := range tc.requests {
				w.update(&v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ResendAnnotation: request}}})
			}
			w.resend()
			if pending, _ := w.queue.Pending(); pending != tc.pending || w.handled != tc.handled {
				t.Errorf("%s: %d are pending after %q, want %d after %q", tc.reason, pending, w.handled, tc.pending, tc.handled)
			}
		})
	}
}
