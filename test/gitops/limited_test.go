// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting/ratelimit"
	"github.com/herald-social/herald/test/must"
)

// TestLimitedConnection checks the health of a rate-limited Connection: the limit is temporary, and not a mistake in
// the manifest.
func TestLimitedConnection(t *testing.T) {
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: "acme", Namespace: "team", Generation: 1}}
	conn.Status.ObservedGeneration, conn.Status.RateLimitedUntil = 1, v1alpha1.NewTimePtr(now.Add(time.Hour))
	conditions.Apply(&conn.Status.Conditions, conditions.Summary{Ready: true, Reason: v1alpha1.ReasonConnected, Progress: conditions.Settled}, 1, now)
	ratelimit.Describe(conn, "", now)
	if !meta.IsStatusConditionTrue(conn.Status.Conditions, v1alpha1.ConditionRateLimited) {
		t.Fatal("the connection is not limited")
	}
	conn.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Connection"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conn)
	must.Succeed(t, err)
	judged, err := kstatus.Compute(&unstructured.Unstructured{Object: content})
	if err != nil || judged.Status != kstatus.CurrentStatus {
		t.Errorf("kstatus says %v, error %v", judged, err)
	}
}
