// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package clockcondition

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/herald-social/herald/internal/apiclock"
)

func TestOf(t *testing.T) {
	for name, tt := range map[string]struct {
		why    string
		state  apiclock.Measurement
		status corev1.ConditionStatus
		reason string
		says   []string
	}{
		"nothing measured": {
			"who has no time says so, and not that it is right",
			apiclock.Measurement{},
			corev1.ConditionUnknown, ReasonNotMeasured,
			[]string{"header Date", "not ready", "proxy"},
		},
		"a right clock": {
			"that is the rule", apiclock.Measurement{Measured: true}, corev1.ConditionTrue, ReasonAgrees, []string{"500ms"},
		},
		"a minute behind": {
			"a correction that is ahead is for a clock that is behind",
			apiclock.Measurement{Measured: true, Correction: 61*time.Second + 240*time.Millisecond},
			corev1.ConditionFalse, ReasonCorrected,
			[]string{"is 1m1.2s behind that of the Kubernetes API", "goes by the latter", "chronyc"},
		},
		"a minute ahead": {
			"and the other way round",
			apiclock.Measurement{Measured: true, Correction: -61 * time.Second},
			corev1.ConditionFalse, ReasonCorrected,
			[]string{"is 1m1s ahead of that of the Kubernetes API", "goes by the latter", "chronyc"},
		},
		"another time a moment ago": {
			"which is right is not known, whatever was corrected before",
			apiclock.Measurement{Measured: true, Correction: time.Minute, Unsettled: true},
			corev1.ConditionUnknown, ReasonNotSettled,
			[]string{"500ms", "once the next one agrees", "control plane"},
		},
		"servers an hour apart": {
			"it keeps a process from being ready, and goes before what is only unsettled",
			apiclock.Measurement{Measured: true, Unsettled: true, Inconsistent: true},
			corev1.ConditionUnknown, ReasonServersDisagree,
			[]string{"30s apart", "not ready", "control plane"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(tt.state)
			if got.Type != Type || got.Status != tt.status || got.Reason != tt.reason {
				t.Errorf("%s: %s is %s, %s; want %s, %s", tt.why, got.Type, got.Status, got.Reason, tt.status, tt.reason)
			}
			for _, words := range tt.says {
				if !strings.Contains(got.Message, words) {
					t.Errorf("the message lacks %q: %s", words, got.Message)
				}
			}
		})
	}
}
