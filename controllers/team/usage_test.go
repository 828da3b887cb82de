// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
)

// today is when the tests take place.
var today = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestTidyEntry(t *testing.T) {
	t.Parallel()
	to := func(name string) v1alpha1.PostTarget {
		return v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}}
	}
	post := func(edits ...func(*v1alpha1.Post)) *v1alpha1.Post {
		p := &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1", Generation: 1, CreationTimestamp: metav1.NewTime(today)},
			Spec:       v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{to("x"), to("x")}},
		}
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	scheduled := func(at time.Time) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(at) }
	}
	entry := func(phases ...v1alpha1.PostPhase) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			for i, phase := range phases {
				p.Status.Targets = append(p.Status.Targets, v1alpha1.TargetStatus{
					Index: int32(i), Phase: phase, Reason: v1alpha1.ReasonRefused, Attempt: &v1alpha1.Attempt{Number: 1},
				})
			}
		}
	}
	unknown := func(p *v1alpha1.Post) { p.Status.Targets[0].Reason = v1alpha1.ReasonOutcomeUnknown }
	cancelled := func(p *v1alpha1.Post) { p.Spec.Cancelled = true }
	draft := func(p *v1alpha1.Post) { p.Spec.Draft = true }
	second := func(name string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) { p.Spec.Targets[1] = to(name) }
	}
	onThreads := func(p *v1alpha1.Post) { p.Status.Targets[1].Platform = v1alpha1.PlatformThreads }
	tests := map[string]struct {
		reason  string
		uid     types.UID
		post    *v1alpha1.Post
		used    int
		settled bool
	}{
		"Waiting":          {"it is to be published", "", post(), 2, false},
		"Scheduled":        {"so is this, in the month of the book", "", post(scheduled(today.AddDate(0, 0, 9))), 2, false},
		"Rescheduled":      {"it was moved to another month, and will be counted there", "", post(scheduled(today.AddDate(0, 0, 10))), 0, false},
		"Cancelled":        {"the apiserver could not give it back", "", post(cancelled), 0, false},
		"Draft":            {"a draft never takes anything", "", post(draft), 0, false},
		"CountedElsewhere": {"its delivery began, and that always takes the entry over: it did so in another book", "", post(entry(v1alpha1.PhaseProcessing, v1alpha1.PhaseProcessing)), 0, false},
		"Sending":          {"it may be out", "1", post(entry(v1alpha1.PhaseProcessing, v1alpha1.PhaseProcessing)), 2, false},
		"Posted":           {"it is out, for good", "1", post(entry(v1alpha1.PhasePosted, v1alpha1.PhasePosted)), 2, true},
		"PostedLate":       {"it counts in the month in which it was intended", "1", post(scheduled(today.AddDate(0, 0, 10)), entry(v1alpha1.PhasePosted, v1alpha1.PhasePosted)), 2, true},
		"HalfFailed":       {"one of two was refused", "1", post(entry(v1alpha1.PhasePosted, v1alpha1.PhaseFailed)), 1, true},
		"HalfUnknown":      {"one of two may be out, and a person may say that it is not", "1", post(entry(v1alpha1.PhaseFailed, v1alpha1.PhasePosted), unknown), 2, false},
		"Claimless":        {"the manager counted it and its claim failed; then it was cancelled", "1", post(cancelled), 0, true},
		"Moved":            {"one of two goes to Threads since an edit", "", post(second("threads")), 1, false},
		"MovedAndSent":     {"the manager counted both before it saw the edit", "1", post(second("threads"), entry(v1alpha1.PhasePosted, v1alpha1.PhasePosted), onThreads), 1, true},
		"Forgotten":        {"the connection is gone, so nobody knows that it was not on X", "", post(second("gone")), 2, false},
		"OtherPost":        {"the post that took it is gone, and another has its name", "0", post(draft), 2, true},
	}
	on := func(platform v1alpha1.Platform) *v1alpha1.Connection {
		return &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: platform}}
	}
	counter := usage{quota.XPosts("team", today), map[string]*v1alpha1.Connection{"x": on(v1alpha1.PlatformX), "threads": on(v1alpha1.PlatformThreads)}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := &quota.Entry{UID: tc.uid, Since: today, Items: []quota.Item{{Target: 0, Count: 1, At: today}, {Target: 1, Count: 1, At: today}}}
			tidyEntry(entry, tc.post, counter)
			page := quota.Entries{"p": entry}
			if used := page.Used(); used != tc.used || entry.Settled != tc.settled {
				t.Errorf("%s: %d are used and settled is %v, want %d and %v", tc.reason, used, entry.Settled, tc.used, tc.settled)
			}
			if tidyEntry(entry, tc.post, counter) && !tc.settled {
				t.Errorf("%s: a second look changes it again", tc.reason)
			}
		})
	}
}

func TestTidyOrphan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		uid     types.UID
		age     time.Duration
		used    int
		settled bool
	}{
		"JustReserved": {"its request may be about to create the post", "", reservedFor - time.Second, 1, false},
		"Forgotten":    {"no request takes so long: the post never came into being", "", reservedFor, 0, false},
		"Delivered":    {"the post was delivered and deleted; it still counts", "1", 1000 * time.Hour, 1, true},
	}
	for name, tc := range tests {
		entry := &quota.Entry{UID: tc.uid, Since: today.Add(-tc.age), Items: []quota.Item{{Count: 1, At: today}}}
		tidyOrphan(entry, today)
		if used := (quota.Entries{"p": entry}).Used(); used != tc.used || entry.Settled != tc.settled {
			t.Errorf("%s: %s: %d are used and settled is %v, want %d and %v", name, tc.reason, used, entry.Settled, tc.used, tc.settled)
		}
	}
}
