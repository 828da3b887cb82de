// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestResult(t *testing.T) {
	matches := Matches{}
	for _, post := range []Match{{"3", "c", noon.Add(time.Second)}, {"2", "b", noon}, {"1", "a", noon}, {"2", "b", noon}} {
		matches.Add(post)
	}
	want := platforms.LookupResult{Matches: 3, ExternalID: "1", ExternalURL: "a", PostedAt: noon}
	if diff := cmp.Diff(want, matches.Result()); diff != "" {
		t.Errorf("the earliest of three is 1 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(platforms.LookupResult{}, Matches{}.Result()); diff != "" {
		t.Errorf("no matches must be an empty result (-want +got):\n%s", diff)
	}
}

func TestIsOld(t *testing.T) {
	job := platforms.Job{SearchFrom: noon.Add(700 * time.Millisecond)}
	for at, want := range map[time.Time]bool{noon: false, noon.Add(-time.Millisecond): true, {}: false} {
		if got := IsOld(&job, at, time.Second); got != want {
			t.Errorf("a post from %v is old: %v", at, got)
		}
	}
}
