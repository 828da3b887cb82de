// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// ClosedUntil returns the time until which an attempt closes its account for the process that holds a version of the
// account's shard, or zero if the attempt does not close it: another process has claimed it, and may be calling the
// platform until then. Attempts without a version are those of a process without shards. The account opens earlier if
// the end of the call is recorded. It does not wait for a lookup, which may fail for an hour.
func ClosedUntil(a *v1alpha1.Attempt, version string, timing Timing) time.Time {
	switch {
	case !IsOpen(a), a.Shard == version:
		return time.Time{}
	case a.EndedAt != nil, a.OperationID != "", a.Refusal != nil: // the platform has responded, or the call has failed
		return time.Time{}
	}
	return callFinishedAt(a, timing)
}
