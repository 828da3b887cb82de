// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// TestNextLookupAfterFailure asks again when the platform wants to be asked, and never before it would be asked anyway.
func TestNextLookupAfterFailure(t *testing.T) {
	quiet := quietAt(claimed(t).Attempt, timing).Sub(t0)
	for _, tt := range []struct {
		reason                string
		after, retryAt, wants time.Duration
	}{
		{"the platform says nothing: a second later at first", quiet, 0, quiet + time.Second},
		{"the longer it has been, the later", quiet + 10*time.Second, 0, quiet + 20*time.Second},
		{"and never more than five minutes later", quiet + 10*time.Minute, 0, quiet + 15*time.Minute},
		{"the platform wants to be left alone for longer", quiet, quiet + time.Hour/2, quiet + time.Hour/2},
		{"the platform would be asked sooner than Herald asks", quiet + 10*time.Second, quiet + 11*time.Second, quiet + 20*time.Second},
	} {
		target := claimed(t)
		err := platforms.Errorf(platforms.ClassRateLimited, "too many calls")
		if tt.retryAt > 0 {
			err.RetryAt = at(tt.retryAt)
		}
		if e := RecordLookupFailure(target, err, timing, v1alpha1.OnUnknownFail, at(tt.after)); e != nil {
			t.Fatal(e)
		}
		if !target.NextTryAt.Equal(timePtr(tt.wants)) || !NextLookup(target, timing).Equal(at(tt.wants)) {
			t.Errorf("%s: got %v, want %v", tt.reason, target.NextTryAt, at(tt.wants))
		}
	}
}
