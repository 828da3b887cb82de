// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

func TestKeyExpiresAt(t *testing.T) {
	made := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for reason, tc := range map[string]struct {
		annotations map[string]string
		want        time.Time
	}{
		"created under a key: a day from then on": {map[string]string{v1alpha1.RequestAnnotation: "v1:abc"}, made.Add(24 * time.Hour)},
		"created without a key":                   {map[string]string{v1alpha1.AuthorAnnotation: "ada"}, time.Time{}},
	} {
		m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made), Annotations: tc.annotations}}
		if got := posting.KeyExpiresAt(m); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", reason, got, tc.want)
		}
	}
}
