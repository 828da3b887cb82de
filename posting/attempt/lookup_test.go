// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"strings"
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
		{"without a time from the platform: a second later at first", quiet, 0, quiet + time.Second},
		{"the longer it has been, the later", quiet + 10*time.Second, 0, quiet + 20*time.Second},
		{"the next lookup follows within five minutes", quiet + 10*time.Minute, 0, quiet + 15*time.Minute},
		{"the platform requests a longer pause", quiet, quiet + time.Hour/2, quiet + time.Hour/2},
		{"the platform allows an earlier lookup than Herald's own pause", quiet + 10*time.Second, quiet + 11*time.Second, quiet + 20*time.Second},
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

// TestNextLookupMessage checks that lookups keep an earlier blocking reason.
func TestNextLookupMessage(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		result       platforms.Result
		want         string
	}{
		{"no answer", "the result has no other information", platforms.Result{Outcome: platforms.Unknown}, "the response was lost"},
		{"an unclear response", "its message is more precise", platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "error 500")}, "error 500"},
		{"accepted", "no response was lost", platforms.Result{Outcome: platforms.Accepted, OperationID: "p~v2.1"}, ""},
	} {
		target := claimed(t)
		must.Succeed(t, Record(target, "a1", tt.result, 1, at(time.Second)))
		must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, timing, v1alpha1.OnUnknownFail, 1, at(2*time.Second)))
		if got := problemOf(target); got != tt.want {
			t.Errorf("%s: got %q, want %q (%s)", tt.name, got, tt.want, tt.reason)
		}
	}
}

// TestLookupFindsProcessing checks a lookup that finds a call in processing after the response with its operation ID
// was lost.
func TestLookupFindsProcessing(t *testing.T) {
	for _, tt := range []struct {
		reason string
		seen   bool
		id     string
		taken  bool
	}{
		{"the calling process has ended", false, "video-1", true},
		{"the post is published, and the response was lost", true, "video-1", true},
		{"an id that cannot be stored is of no use", true, strings.Repeat("1", maxOperationID+1), false},
	} {
		target := claimed(t)
		if tt.seen {
			must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.Unknown}, 1, at(time.Second)))
		}
		asked := timing.SendWindow + timing.CallTimeout + timing.ClockMargin
		must.Succeed(t, RecordLookup(target, platforms.LookupResult{OperationID: tt.id}, timing, v1alpha1.OnUnknownFail, 1, at(asked)))
		if !IsOpen(target.Attempt) || (target.Attempt.OperationID == tt.id) != tt.taken {
			t.Fatalf("%s: %+v", tt.reason, target.Attempt)
		}
		if !tt.taken {
			if target.Attempt.Lookups != 0 || target.NextTryAt == nil {
				t.Errorf("%s: it is no miss: %+v", tt.reason, target)
			}
			continue
		}
		if target.Attempt.EndedAt == nil || target.Blocked != nil || !target.NextTryAt.Equal(timePtr(asked+firstRetry)) {
			t.Errorf("%s: it must be looked up by its id: %+v", tt.reason, target)
		}
		if err := RecordLookup(target, platforms.LookupResult{OperationID: "another"}, timing, v1alpha1.OnUnknownFail, 1, at(asked)); err != nil || target.Attempt.OperationID != tt.id {
			t.Errorf("%s: the id stays: %v %+v", tt.reason, err, target.Attempt)
		}
		if tt.seen {
			late := platforms.Result{Outcome: platforms.Accepted, OperationID: "another"}
			if err := Record(target, "a1", late, 1, at(asked)); err != nil || target.Attempt.OperationID != tt.id {
				t.Errorf("%s: a late response must not change the id: %v %+v", tt.reason, err, target.Attempt)
			}
		}
		late := asked + timing.LookupTimeout + time.Hour
		if err := RecordLookupFailure(target, platforms.Errorf(platforms.ClassTransient, "it is processed"), timing, v1alpha1.OnUnknownFail, at(late)); err != nil {
			t.Fatal(err)
		}
		if !IsOpen(target.Attempt) || reasonOf(target) != v1alpha1.ReasonProcessing {
			t.Errorf("%s: processing must be awaited: %+v", tt.reason, target)
		}
	}
}

// TestRefusedWhileProcessing checks a lookup that finds a refused call in processing: the target neither fails nor is
// sent again.
func TestRefusedWhileProcessing(t *testing.T) {
	for _, class := range []platforms.Class{platforms.ClassPermanent, platforms.ClassTransient, platforms.ClassRateLimited} {
		target := claimed(t)
		refusal := platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(class, "no")}
		must.Succeed(t, Record(target, "a1", refusal, 1, at(time.Second)))
		asked := confirmFrom(target.Attempt, timing).Add(time.Minute)
		must.Succeed(t, RecordLookup(target, platforms.LookupResult{OperationID: "video-1"}, timing, v1alpha1.OnUnknownFail, 1, asked))
		if !IsOpen(target.Attempt) || IsRefused(target.Attempt) || target.Attempt.OperationID != "video-1" || target.Blocked != nil {
			t.Errorf("refused as %s: %+v", class, target)
		}
		if err := RecordLookup(target, platforms.LookupResult{Matches: 1, ExternalID: "video-1", Certain: true}, timing, v1alpha1.OnUnknownFail, 1, asked.Add(time.Minute)); err != nil || !Posted(target) {
			t.Errorf("refused as %s: %v %+v", class, err, target)
		}
	}
}
