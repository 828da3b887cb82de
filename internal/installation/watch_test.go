// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package installation_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// TestWatch checks the metric while a bucket passes from one cluster to another.
func TestWatch(t *testing.T) {
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	clock := clocktesting.NewFakeClock(now)
	watch := func(own, from string) (*installation.Watch, *prometheus.Registry) {
		registry := prometheus.NewRegistry()
		return installation.NewWatch(installation.New(files, cluster(own), from, clock), clock, registry), registry
	}
	value := func(registry *prometheus.Registry) float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "herald_bucket_foreign" {
			t.Fatalf("%v, %v", families, err)
		}
		if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	one, seenByOne := watch("one", "")
	two, seenByTwo := watch("two", "")
	three, seenByThree := watch("three", "one")
	for _, step := range []struct {
		name     string
		look     *installation.Watch
		registry *prometheus.Registry
		want     float64
	}{
		{"the first has the bucket", one, seenByOne, 0},
		{"the second has not", two, seenByTwo, 1},
		{"a minute later, the second installation still waits", two, seenByTwo, 1},
		{"a third cluster replaces the first", three, seenByThree, 0},
		{"the first installation learns of the second", one, seenByOne, 1},
	} {
		step.look.Check(t.Context())
		if got := value(step.registry); got != step.want {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
}
