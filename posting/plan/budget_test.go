// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestBudgetOf(t *testing.T) {
	t.Parallel()
	starter, unlimited := starterBudget, unlimitedBudget
	with := func(b Budget, change func(*Budget)) Budget {
		change(&b)
		return b
	}
	of := func(plan v1alpha1.Plan, state v1alpha1.SubscriptionState, own v1alpha1.TeamBudget) *v1alpha1.Team {
		return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{Plan: plan, State: state}, Budget: own}}
	}
	for name, tc := range map[string]struct {
		reason string
		team   *v1alpha1.Team
		want   Budget
	}{
		"No team":   {"objects without a team have a limit too", nil, starter},
		"Starter":   {"the plan's", of(v1alpha1.PlanStarter, v1alpha1.SubscriptionActive, v1alpha1.TeamBudget{}), starter},
		"Unlimited": {"its name speaks of posts to X; a cluster is finite", of(v1alpha1.PlanUnlimited, v1alpha1.SubscriptionActive, v1alpha1.TeamBudget{}), unlimited},
		"PastDue":   {"stored objects remain", of(v1alpha1.PlanUnlimited, v1alpha1.SubscriptionPastDue, v1alpha1.TeamBudget{}), unlimited},
		"Trial":     {"a trial is available to everyone", of(v1alpha1.PlanUnlimited, v1alpha1.SubscriptionTrialing, v1alpha1.TeamBudget{}), starter},
		"Own": {
			"the Team's overrides apply, and the plan's limits otherwise",
			of(v1alpha1.PlanStarter, v1alpha1.SubscriptionActive, v1alpha1.TeamBudget{UnfinishedPosts: new(int32(7)), PostBytes: new(resource.MustParse("1Gi")), PendingFileBytes: new(resource.MustParse("1000"))}),
			with(starter, func(b *Budget) { b.UnfinishedPosts, b.PostBytes, b.PendingFileBytes = 7, 1<<30, 1000 }),
		},
		"Nothing": {
			"zero is a limit too",
			of(v1alpha1.PlanStarter, v1alpha1.SubscriptionActive, v1alpha1.TeamBudget{Keys: new(int32), PostBytes: new(resource.MustParse("0"))}),
			with(starter, func(b *Budget) { b.Keys, b.PostBytes = 0, 0 }),
		},
		"Files": {
			"files follow the posts that may name them",
			of(v1alpha1.PlanStarter, v1alpha1.SubscriptionActive, v1alpha1.TeamBudget{Posts: new(int32(100_000)), PendingFiles: new(int32(50))}),
			with(starter, func(b *Budget) { b.Posts, b.PendingFiles, b.Files = 100_000, 50, 200_050 }),
		},
	} {
		if got := BudgetOf(tc.team); got != tc.want {
			t.Errorf("%s: %s: %+v, want %+v", name, tc.reason, got, tc.want)
		}
	}
	for _, b := range []Budget{starter, unlimited} {
		if b.Files != filesPerPost*b.Posts+b.PendingFiles {
			t.Errorf("%+v: a Team with an explicit limit of posts must have the same limit of files", b)
		}
	}
}

func TestShortage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason     string
		used, more int64
		want       string
	}{
		{"a budget may be used up", 499, 1, ""},
		{"one post more exceeds it", 500, 1, "500 are used and this needs 1 more"},
		{"drafts cannot be published until posts are deleted", 501, 0, "501 are used, so no draft can be published"},
	} {
		got := starterBudget.Shortage("acme", Demand{Item: v1alpha1.BudgetUnfinishedPosts, Used: tc.used, More: tc.more})
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func TestFileBytes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		media  v1alpha1.MediaSpec
		want   int64
	}{
		{"the announced size counts", v1alpha1.MediaSpec{MimeType: v1alpha1.MimeMP4, SizeBytes: 7}, 7},
		{"a video may be as large as any", v1alpha1.MediaSpec{MimeType: v1alpha1.MimeMP4}, v1alpha1.MaxVideoBytes},
		{"an image may have the maximum size", v1alpha1.MediaSpec{MimeType: v1alpha1.MimeJPEG}, v1alpha1.MaxImageBytes},
	} {
		if got := FileBytes(&tc.media); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
		}
	}
	if got := grouped(-123); got != "-123" {
		t.Errorf("a negative number reads %s", got)
	}
}

func TestRefuseNamesTheLimit(t *testing.T) {
	t.Parallel()
	b := starterBudget
	for item, want := range map[v1alpha1.BudgetItem]string{
		v1alpha1.BudgetPosts: "the team's budget allows 2,000 stored posts, including finished and cancelled ones; 1,234,567 are used and this needs 1 more. " +
			`Delete posts that are no longer needed (kubectl delete post), or have an administrator raise spec.budget.posts of Team "acme".`,
		v1alpha1.BudgetPendingFileBytes: "the team's budget allows 21,474,836,480 bytes of pending files; 1,234,567 are used and this needs 1 more. " +
			`Upload the registered files, or wait until their upload URLs expire, or have an administrator raise spec.budget.pendingFileBytes of Team "acme".`,
	} {
		if got := b.RefusalMessage(item, "acme", 1_234_567, 1); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", item, got, want)
		}
	}
	for item := range refusals {
		if b.Limit(item) == 0 {
			t.Errorf("%s: the starter plan has no limit", item)
		}
	}
}
