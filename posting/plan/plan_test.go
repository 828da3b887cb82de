// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/usage"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestLimitsOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		team   *v1alpha1.Team
		want   Limits
	}{
		"No team":   {"a namespace that no team owns", nil, Limits{}},
		"Unlimited": {"the Team names the plan", &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited}}}, Limits{}},
		"Starter":   {"the contract's figures", &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter}}}, Limits{XPosts: 30, Accounts: 10}},
	} {
		if got := LimitsOf(tc.team); got != tc.want {
			t.Errorf("%s: %s: %+v, want %+v", name, tc.reason, got, tc.want)
		}
	}
}

func TestTrialEnd(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	for name, tc := range map[string]struct {
		reason string
		end    *v1alpha1.Time
		want   time.Time
	}{
		"Unset":   {"the contract's seven days, from the creation of the Team", nil, noon.Add(week)},
		"Shorter": {"the Team's value applies", v1alpha1.NewTimePtr(noon.Add(time.Millisecond)), noon.Add(time.Millisecond)},
		"Longer":  {"also beyond a week", v1alpha1.NewTimePtr(noon.Add(2 * week)), noon.Add(2 * week)},
		"Before":  {"a trial may be over from the start", v1alpha1.NewTimePtr(noon.Add(-week)), noon.Add(-week)},
	} {
		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
		team.Spec.Subscription.TrialEndsAt = tc.end
		if got := TrialEnd(team); !got.Equal(tc.want) {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

func TestUsable(t *testing.T) {
	t.Parallel()
	made := func(name string, seconds int, edits ...func(*v1alpha1.Connection)) *v1alpha1.Connection {
		c := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))}}
		for _, edit := range edits {
			edit(c)
		}
		return c
	}
	disabled := func(c *v1alpha1.Connection) { c.Spec.Disabled = true }
	leaving := func(c *v1alpha1.Connection) { c.DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, tc := range map[string]struct {
		reason string
		all    []*v1alpha1.Connection
		most   int
		beyond []string
	}{
		"NoLimit":  {"the plan allows any number", []*v1alpha1.Connection{made("a", 0), made("b", 1)}, 0, nil},
		"Enough":   {"exactly as many as allowed", []*v1alpha1.Connection{made("a", 0), made("b", 1)}, 2, nil},
		"Youngest": {"the oldest are covered", []*v1alpha1.Connection{made("a", 3), made("b", 1), made("c", 2)}, 2, []string{"a"}},
		"SameTime": {"the first by name is covered, of two in the same second", []*v1alpha1.Connection{made("c", 1), made("a", 1), made("b", 1)}, 2, []string{"c"}},
		"Disabled": {"a disabled connection is not counted", []*v1alpha1.Connection{made("a", 0, disabled), made("b", 1), made("c", 2)}, 2, nil},
		"Leaving":  {"a connection that is being deleted is not counted", []*v1alpha1.Connection{made("a", 0, leaving), made("b", 1), made("c", 2)}, 2, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The result does not depend on the order of the input.
			for range 2 {
				var beyond []string
				usable := Usable(tc.all, tc.most)
				for _, c := range tc.all {
					if !Covers(usable, c) {
						beyond = append(beyond, c.Name)
					}
				}
				if diff := cmp.Diff(tc.beyond, beyond); diff != "" {
					t.Errorf("%s:\n%s", tc.reason, diff)
				}
				slices.Reverse(tc.all)
			}
		})
	}
}

func text(edits ...func(*v1alpha1.Post)) *v1alpha1.Post {
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec:       v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{}, {}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func cards(n int) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Spec.Tree = &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, n)} }
}

// entry adds an entry for the first target.
func entry(t v1alpha1.TargetStatus) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Status.Targets = []v1alpha1.TargetStatus{t} }
}

func TestUseOf(t *testing.T) {
	t.Parallel()
	attempt := &v1alpha1.Attempt{Number: 1}
	cancelled := func(p *v1alpha1.Post) { p.Spec.Cancelled = true }
	draft := func(p *v1alpha1.Post) { p.Spec.Draft = true }
	deleting := func(p *v1alpha1.Post) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	failed := func(reason string, cards ...v1alpha1.CardStatus) func(*v1alpha1.Post) {
		return entry(v1alpha1.TargetStatus{Phase: v1alpha1.PhaseFailed, Reason: reason, Attempt: attempt, Cards: cards})
	}
	for name, tc := range map[string]struct {
		reason string
		post   *v1alpha1.Post
		want   usage.Use
	}{
		"New":            {"the post will be published", text(), usage.Use{Count: 1, Final: false}},
		"Tree":           {"each card is a post", text(cards(7)), usage.Use{Count: 7, Final: false}},
		"Draft":          {"drafts do not count", text(draft), usage.Use{Count: 0, Final: false}},
		"Cancelled":      {"a cancellation releases", text(cancelled), usage.Use{Count: 0, Final: true}},
		"Deleting":       {"the post will not be sent", text(deleting), usage.Use{Count: 0, Final: false}},
		"Sending":        {"the post may be published already", text(entry(v1alpha1.TargetStatus{Phase: v1alpha1.PhaseProcessing, Attempt: attempt})), usage.Use{Count: 1, Final: false}},
		"SendingDeleted": {"the post may be published already, despite the deletion", text(deleting, entry(v1alpha1.TargetStatus{Phase: v1alpha1.PhaseProcessing, Attempt: attempt})), usage.Use{Count: 1, Final: false}},
		"Posted":         {"the post is published", text(entry(v1alpha1.TargetStatus{Phase: v1alpha1.PhasePosted, Attempt: attempt})), usage.Use{Count: 1, Final: true}},
		"PostedDeleted":  {"the post remains published", text(deleting, entry(v1alpha1.TargetStatus{Phase: v1alpha1.PhasePosted, Attempt: attempt})), usage.Use{Count: 1, Final: true}},
		"Refused":        {"the platform rejected it", text(failed(v1alpha1.ReasonRefused)), usage.Use{Count: 0, Final: true}},
		"Missed":         {"its deadline passed", text(entry(v1alpha1.TargetStatus{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonMissedSchedule})), usage.Use{Count: 0, Final: true}},
		"Unknown":        {"the post may be published, and a user may declare it not published", text(failed(v1alpha1.ReasonOutcomeUnknown)), usage.Use{Count: 1, Final: false}},
		"PartOfTree":     {"two of four cards are published", text(cards(4), failed(v1alpha1.ReasonRefused, v1alpha1.CardStatus{Index: 0}, v1alpha1.CardStatus{Index: 1})), usage.Use{Count: 2, Final: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := UseOf(tc.post, 0); got != tc.want {
				t.Errorf("%s: %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestIntendedAt(t *testing.T) {
	t.Parallel()
	const deadline = time.Hour
	scheduled := noon.Add(48 * time.Hour)
	born := noon.Add(-300 * time.Millisecond)
	bornAt := func(p *v1alpha1.Post) {
		p.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(born).String()}
	}
	tried := entry(v1alpha1.TargetStatus{TryUntil: v1alpha1.NewTimePtr(scheduled.Add(deadline))})
	for name, tc := range map[string]struct {
		reason string
		post   *v1alpha1.Post
		want   time.Time
	}{
		"Scheduled": {"the scheduled time, whenever it was created", text(func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(scheduled) }), scheduled},
		"Immediate": {"its creation", text(), noon},
		"ThroughTheAPI": {
			"K:a new post counts in the apiserver's annotated month", text(bornAt), born,
		},
		"Forged": {
			"K:an applied post's annotations must not select another month",
			text(func(p *v1alpha1.Post) {
				p.Annotations = map[string]string{v1alpha1.BornAnnotation: "2031-01-01T00:00:00.000Z"}
			}),
			noon,
		},
		"ForgedPast": {
			"the month has ended",
			text(func(p *v1alpha1.Post) {
				p.Annotations = map[string]string{v1alpha1.BornAnnotation: "2026-10-01T00:00:00.000Z"}
			}),
			noon,
		},
		"Tried":    {"the recorded time of a post without edits is also its creation", text(bornAt, tried), born},
		"Promoted": {"a promoted draft is published at its promotion", text(bornAt, tried, func(p *v1alpha1.Post) { p.Generation = 2 }), scheduled},
	} {
		if got := IntendedAt(tc.post, 0, deadline); !got.Equal(tc.want) {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

func TestIsTikTokDraft(t *testing.T) {
	t.Parallel()
	for _, platform := range []v1alpha1.Platform{v1alpha1.PlatformTikTok, v1alpha1.PlatformX} {
		for _, asked := range []bool{true, false} {
			p := text(func(p *v1alpha1.Post) { p.Spec.Targets[0].TikTok = &v1alpha1.TikTokOptions{Draft: asked} })
			want := asked && platform == v1alpha1.PlatformTikTok
			if got := IsTikTokDraft(p, 0, platform); got != want {
				t.Errorf("%s: on %s it is a draft: %v, want %v", fmt.Sprint(asked), platform, got, want)
			}
			if IsTikTokDraft(p, 1, platform) {
				t.Errorf("a target without options counts as a draft on %s", platform)
			}
		}
	}
}
