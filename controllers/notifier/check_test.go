// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

func TestCheckInterval(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason, state string
		age, want     time.Duration
	}{
		"new":     {"the API creates the Secret after the Notifier", v1alpha1.ReasonSecretNotFound, time.Second, checkMissing},
		"old":     {"a missing Secret costs few requests", v1alpha1.ReasonSecretNotFound, time.Hour, checkEvery},
		"sending": {"no event is expected", v1alpha1.ReasonDelivering, time.Second, checkEvery},
	} {
		t.Run(name, func(t *testing.T) {
			w := &worker{
				notifier: &v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-tc.age))}},
				state:    state{Summary: conditions.Summary{Reason: tc.state}},
			}
			if got := w.checkInterval(now); got != tc.want {
				t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
