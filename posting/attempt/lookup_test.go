// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// TestNextLookupAfterFailure checks that the next lookup respects the platform's RetryAt and is never earlier than
// usual.
func TestNextLookupAfterFailure(t *testing.T) {
	quiet := callFinishedAt(claimed(t).Attempt, timing).Sub(t0)
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

// TestLookUpAgainSays checks that lookups keep an earlier blocking reason.
func TestLookUpAgainSays(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		result       platforms.Result
		want         string
	}{
		{"no answer", "that is all that is known", platforms.Result{Outcome: platforms.Unknown}, "the answer was lost"},
		{"an unclear answer", "it tells more", platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "error 500")}, "error 500"},
		{"taken", "no answer was lost", platforms.Result{Outcome: platforms.Accepted, OperationID: "p~v2.1"}, ""},
	} {
		target := claimed(t)
		must.Succeed(t, Record(target, "a1", tt.result, 1, at(time.Second)))
		must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, timing, v1alpha1.OnUnknownFail, 1, at(2*time.Second)))
		if got := problemOf(target); got != tt.want {
			t.Errorf("%s: got %q, want %q (%s)", tt.name, got, tt.want, tt.reason)
		}
	}
}
