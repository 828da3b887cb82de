// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestBeingChecked(t *testing.T) {
	t.Parallel()
	noSecret := []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCredentialsNotFound, Message: "the Secret does not exist",
	}}
	for name, tc := range map[string]struct {
		reason     string
		age        time.Duration
		conditions []metav1.Condition
		want       bool
	}{
		"New":      {"the manager has not looked at it", time.Second, nil, true},
		"NoSecret": {"the manager has looked before the Secret was there", time.Second, noSecret, true},
		"Lost":     {"by then it should be there: a person has to know", storing, noSecret, false},
		"Revoked": {"any other trouble is real", time.Second, []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRevoked,
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := account(acme, "one", v1alpha1.PlatformThreads)
			c.CreationTimestamp, c.Status.Conditions = metav1.NewTime(now.Add(-tc.age)), tc.conditions
			if got := stateOf(c, now).label == "Being checked"; got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
			v := &visit{now: now, namespace: acme}
			w := newWorld(clocktesting.NewFakeClock(now))
			var page strings.Builder
			if err := h.Ul(w.site.watch(v, []*v1alpha1.Connection{c})).Render(&page); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(page.String(), "hx-get"); got != tc.want {
				t.Errorf("%s: the list loads itself again: %t", tc.reason, got)
			}
		})
	}
}
