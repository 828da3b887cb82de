// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// ClosedUntil returns the time until which an attempt closes its account for the process that holds a version of the
// account's shard: another process has claimed the attempt, and may call the platform until that time. It returns zero if
// the attempt does not close the account. A process without shards stores no version. The account opens earlier if a
// process records the end of the call. It does not wait for a lookup, which may fail for an hour.
func ClosedUntil(a *v1alpha1.Attempt, version string, timing Timing) time.Time {
	switch {
	case !IsOpen(a), a.Shard == version:
		return time.Time{}
	case a.EndedAt != nil, a.OperationID != "", a.Refusal != nil: // the platform has responded, or the call has failed
		return time.Time{}
	}
	return callFinishedAt(a, timing)
}
