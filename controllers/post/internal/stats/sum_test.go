// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
)

// TestSumOfMovingTeam adds the snapshots of two shards that both have posts of a team.
func TestSumOfMovingTeam(t *testing.T) {
	on, of := account{"a", "x"}, prepare.OutlookKey{Namespace: "a", Platform: v1alpha1.PlatformX}
	snapshotWith := func(age time.Duration, attempts, late int) *snapshot {
		return &snapshot{
			overdue: map[string]time.Duration{"a": age}, attempts: map[account]map[string]int{on: {"within": attempts}},
			uploads: map[prepare.OutlookKey]prepare.Outlook{of: {Bytes: int64(late) * 10, Late: late}},
		}
	}
	got := &snapshot{overdue: map[string]time.Duration{}, attempts: map[account]map[string]int{}, uploads: map[prepare.OutlookKey]prepare.Outlook{}}
	got.add(snapshotWith(time.Hour, 2, 1))
	got.add(snapshotWith(time.Minute, 3, 4))
	if diff := cmp.Diff(snapshotWith(time.Hour, 5, 5), got, cmp.AllowUnexported(snapshot{}, account{})); diff != "" {
		t.Errorf("the oldest post counts, and the numbers are sums (-want +got):\n%s", diff)
	}
}
