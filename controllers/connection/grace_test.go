// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestGraceOf(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for reason, tc := range map[string]struct {
		noted   string
		deleted time.Duration
		want    time.Duration
	}{
		"a tool deletes it":                                  {"", 0, tokenRetention},
		"a person disconnects it":                            {"2026-12-01T08:59:59Z", 0, 0},
		"the apiserver's clock is ahead":                     {"2026-12-01T09:00:30Z", 0, 0},
		"the disconnect was long before, and failed":         {"2026-12-01T08:57:59Z", 0, tokenRetention},
		"somebody wrote a time that is not yet":              {"2026-12-01T09:02:01Z", 0, tokenRetention},
		"somebody wrote something else":                      {"yes", 0, tokenRetention},
		"a finalizer of others held what was disconnected":   {"2026-12-01T08:00:00Z", time.Hour - time.Second, 0},
		"a finalizer held what a tool deleted an hour later": {"2026-12-01T07:00:00Z", time.Hour, tokenRetention},
	} {
		conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.DisconnectedAnnotation: tc.noted}}}
		if tc.deleted > 0 {
			conn.DeletionTimestamp = &metav1.Time{Time: now.Add(-tc.deleted)}
		}
		if got := gracePeriodOf(conn, now); got != tc.want {
			t.Errorf("%s: kept for %s, want %s", reason, got, tc.want)
		}
	}
}
