// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/usage"
)

// today is the date of the tests.
var today = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestStored compares a November count with the post.
func TestStored(t *testing.T) {
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
		"Waiting":          {"the post will be published", "", post(), 2, false},
		"Scheduled":        {"a scheduled post counts in its month", "", post(scheduled(today.AddDate(0, 0, 9))), 2, false},
		"Rescheduled":      {"the post counts in the new month", "", post(scheduled(today.AddDate(0, 0, 10))), 0, false},
		"Cancelled":        {"the apiserver could not release it", "", post(cancelled), 0, false},
		"Draft":            {"a draft has no reservation", "", post(draft), 0, false},
		"CountedElsewhere": {"a started delivery has moved the entry to another Usage", "", post(entry(v1alpha1.PhaseProcessing, v1alpha1.PhaseProcessing)), 0, false},
		"Sending":          {"the post may be published", "1", post(entry(v1alpha1.PhaseProcessing, v1alpha1.PhaseProcessing)), 2, false},
		"Posted":           {"a publication is permanent", "1", post(entry(v1alpha1.PhasePosted, v1alpha1.PhasePosted)), 2, true},
		"PostedLate":       {"the post counts in the month for which it was scheduled", "1", post(scheduled(today.AddDate(0, 0, 10)), entry(v1alpha1.PhasePosted, v1alpha1.PhasePosted)), 2, true},
		"HalfFailed":       {"one of two was rejected", "1", post(entry(v1alpha1.PhasePosted, v1alpha1.PhaseFailed)), 1, true},
		"HalfUnknown":      {"one of two may be published, and a user may declare it not published", "1", post(entry(v1alpha1.PhaseFailed, v1alpha1.PhasePosted), unknown), 2, false},
		"Claimless":        {"the post was counted, its claim failed, and it was cancelled", "1", post(cancelled), 0, false},
		"Moved":            {"an edit moved one of two to Threads", "", post(second("threads")), 1, false},
		"MovedAndSent":     {"both targets were counted before the edit was seen", "1", post(second("threads"), entry(v1alpha1.PhasePosted, v1alpha1.PhasePosted), onThreads), 1, true},
		"Forgotten":        {"the connection was deleted, so it may have been on X", "", post(second("gone")), 2, false},
		"OtherPost":        {"the counted post was deleted and its name reused", "0", post(draft), 2, true},
	}
	known := map[string]*v1alpha1.Connection{
		"x": {Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX}}, "threads": {Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformThreads}},
	}
	find := func(name string) *v1alpha1.Connection { return known[name] }
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &v1alpha1.Usage{Spec: XPosts(today)}
			for target := range 2 {
				u.Status.Entries = append(u.Status.Entries, v1alpha1.UsageEntry{
					Post: "p", UID: tc.uid, Target: int32(target), Count: 1, At: v1alpha1.NewTime(today), Since: v1alpha1.NewTime(today),
				})
			}
			for range 2 {
				usage.Settle(u, UsesOfStored(&u.Spec, tc.post, find, 0))
				settled := len(u.Status.Entries) > 0 && len(usage.OpenPosts(u)) == 0
				if int(u.Status.Used) != tc.used || settled != tc.settled {
					t.Errorf("%s: %d are used and settled is %v, want %d and %v", tc.reason, u.Status.Used, settled, tc.used, tc.settled)
				}
			}
		})
	}
}

// TestUses checks that a target's use is counted for the target's platform.
func TestUses(t *testing.T) {
	t.Parallel()
	to := func(platform v1alpha1.Platform) *v1alpha1.Connection {
		return &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: platform, AccountID: "acme"}}
	}
	inbox := func(p *v1alpha1.Post) { p.Spec.Targets[0].TikTok = &v1alpha1.TikTokOptions{Draft: true} }
	attempt := &v1alpha1.Attempt{Number: 1}
	postedOn := func(platform v1alpha1.Platform) func(*v1alpha1.Post) {
		return entry(v1alpha1.TargetStatus{Phase: v1alpha1.PhasePosted, Attempt: attempt, Platform: platform})
	}
	waitsFor := entry(v1alpha1.TargetStatus{Phase: v1alpha1.PhaseScheduled, Platform: v1alpha1.PlatformX})
	takes := func(count int) usage.Use { return usage.Use{Count: count, At: noon} }
	final := func(count int) usage.Use { return usage.Use{Count: count, At: noon, Final: true} }
	assumed := func(count int) usage.Use { return usage.Use{Count: count, At: noon, Assumed: true} }
	onTikTok, otherInbox := to(v1alpha1.PlatformTikTok), to(v1alpha1.PlatformTikTok)
	otherInbox.Spec.AccountID = "beta"
	tests := map[string]struct {
		reason     string
		post       *v1alpha1.Post
		connection *v1alpha1.Connection
		x, inbox   usage.Use
	}{
		"X":           {"the target is sent to X", text(), to(v1alpha1.PlatformX), takes(1), takes(0)},
		"Threads":     {"the target is sent elsewhere, perhaps since an edit", text(), to(v1alpha1.PlatformThreads), takes(0), takes(0)},
		"Moved":       {"records from before an edit do not count", text(waitsFor), to(v1alpha1.PlatformThreads), takes(0), takes(0)},
		"Inbox":       {"a draft on TikTok", text(inbox), onTikTok, takes(0), takes(1)},
		"OtherInbox":  {"a draft of another account", text(inbox), otherInbox, takes(0), takes(0)},
		"NotInInbox":  {"published on TikTok", text(), onTikTok, takes(0), takes(0)},
		"Unknown":     {"the connection was deleted, so the count remains", text(inbox), nil, assumed(1), assumed(1)},
		"Replaced":    {"the target was published on X, and another connection has the name now", text(postedOn(v1alpha1.PlatformX)), to(v1alpha1.PlatformThreads), final(1), final(0)},
		"Elsewhere":   {"the target was published on Threads, and its connection was deleted", text(postedOn(v1alpha1.PlatformThreads)), nil, final(0), final(0)},
		"Tree":        {"the cards count", text(cards(7)), to(v1alpha1.PlatformX), takes(7), takes(0)},
		"UnknownTree": {"an inbox draft counts once, whatever its content", text(cards(7)), nil, assumed(7), assumed(1)},
	}
	ofX, ofInbox := XPosts(noon), TikTokDrafts(onTikTok)
	for name, tc := range tests {
		tc.post.Spec.Targets = tc.post.Spec.Targets[:1]
		find := func(string) *v1alpha1.Connection { return tc.connection }
		if diff := cmp.Diff([]usage.Use{tc.x}, Uses(&ofX, tc.post, find, 0)); diff != "" {
			t.Errorf("%s: %s: uses of the X counter (-want +got):\n%s", name, tc.reason, diff)
		}
		if diff := cmp.Diff([]usage.Use{tc.inbox}, Uses(&ofInbox, tc.post, find, 0)); diff != "" {
			t.Errorf("%s: %s: uses of the inbox counter (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestCounters(t *testing.T) {
	t.Parallel()
	known := map[string]*v1alpha1.Connection{}
	for name, platform := range map[string]v1alpha1.Platform{
		"x": v1alpha1.PlatformX, "x2": v1alpha1.PlatformX, "threads": v1alpha1.PlatformThreads, "tok": v1alpha1.PlatformTikTok, "tik": v1alpha1.PlatformTikTok,
	} {
		known[name] = &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: platform, AccountID: "of " + name}}
	}
	find := func(name string) *v1alpha1.Connection { return known[name] }
	to := func(names ...string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			p.Spec.Targets = nil
			for _, name := range names {
				p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{
					ConnectionRef: v1alpha1.LocalReference{Name: name}, TikTok: &v1alpha1.TikTokOptions{Draft: true},
				})
			}
		}
	}
	tik, tok := TikTokDrafts(known["tik"]), TikTokDrafts(known["tok"])
	starter := Limits{XPosts: 30}
	for name, tc := range map[string]struct {
		reason string
		limits Limits
		post   *v1alpha1.Post
		want   []v1alpha1.UsageSpec
	}{
		"Nothing":   {"no limit applies", starter, text(to("threads")), nil},
		"OnX":       {"both accounts have one count", starter, text(to("x", "x2")), []v1alpha1.UsageSpec{XPosts(noon)}},
		"Unlimited": {"the plan does not limit posts to X", Limits{}, text(to("x")), nil},
		"Inboxes":   {"each account has its own count", Limits{}, text(to("tik", "tok", "tik")), []v1alpha1.UsageSpec{tik, tok}},
		"Both":      {"the plan's limits come first", starter, text(to("tik", "x")), []v1alpha1.UsageSpec{XPosts(noon), tik}},
		"Unknown":   {"the target may have been counted with its connection", starter, text(to("gone")), []v1alpha1.UsageSpec{XPosts(noon)}},
	} {
		got := tc.limits.Counters(tc.post, find, 0)
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s:\n%s", name, tc.reason, diff)
		}
		for i := range got {
			want := MaxTikTokDrafts
			if got[i].Resource == v1alpha1.ResourceXPosts {
				want = 30
			}
			if limit := tc.limits.Max(&got[i]); limit != want {
				t.Errorf("%s: %s allows %d, want %d", name, got[i].Resource, limit, want)
			}
		}
	}
	anew := known["tik"].DeepCopy()
	anew.Name, anew.UID = "second", "c2"
	if TikTokDrafts(anew) != tik {
		t.Error("another connection to the same account must not start a new count")
	}
}
