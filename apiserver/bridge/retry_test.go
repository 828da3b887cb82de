// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// retriedPost returns a post to the connections a and b, whose targets have these states. It is finished if they are.
func retriedPost(states ...v1alpha1.TargetState) *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "p1", ResourceVersion: "7", Generation: 1, CreationTimestamp: metav1.NewTime(now)},
		Spec:       v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{target("a"), target("b")}},
	}
	post.Status.Finished = true
	for i, state := range states {
		post.Status.Targets = append(post.Status.Targets, v1alpha1.TargetStatus{Index: int32(i), Platform: v1alpha1.PlatformX, State: state})
		post.Status.Finished = post.Status.Finished && state != v1alpha1.TargetPending && state != v1alpha1.TargetUndecided
	}
	return post
}

// withRetry returns a service with a post to retry.
func withRetry(post *v1alpha1.Post) (*bridge.Service, *posts) {
	p := &posts{stored: map[string]*v1alpha1.Post{post.Name: post}}
	return service(p, &connections{memory: map[string]*v1alpha1.Connection{"a": onX("a"), "b": onX("b")}}), p
}

// TestRetryPost verifies that a retry covers exactly the targets that provably published nothing.
func TestRetryPost(t *testing.T) {
	t.Parallel()
	const failed, posted, undecided, pending = v1alpha1.TargetFailed, v1alpha1.TargetPosted, v1alpha1.TargetUndecided, v1alpha1.TargetPending
	retried := func(targets ...int) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			for _, i := range targets {
				p.Status.Targets[i].RetriedBy = "p2"
			}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		states []v1alpha1.TargetState
		edit   func(*v1alpha1.Post)
		// want are the connections of the new post, or else the error.
		want          []string
		code, message string
	}{
		"Failed":           {"no target is public", []v1alpha1.TargetState{failed, failed}, nil, []string{"a", "b"}, "", ""},
		"PartlyPosted":     {"one target is public", []v1alpha1.TargetState{posted, failed}, nil, []string{"b"}, "", ""},
		"PartlyRetried":    {"another post may publish one target", []v1alpha1.TargetState{failed, failed}, retried(0), []string{"b"}, "", ""},
		"Retried":          {"the other post may publish the target", []v1alpha1.TargetState{failed, failed}, retried(0, 1), nil, "CONFLICT", "target 0: post p2 sends it there again; target 1: post p2 sends it there again"},
		"Posted":           {"every target is public", []v1alpha1.TargetState{posted, posted}, nil, nil, "CONFLICT", "target 0: already posted there"},
		"InProgress":       {"a target may be published within seconds", []v1alpha1.TargetState{failed, pending}, nil, nil, "CONFLICT", "only a failed post can be retried"},
		"Undecided":        {"a user has to answer, for the retry would wait", []v1alpha1.TargetState{undecided, failed}, nil, nil, "CONFLICT", "cannot be retried: target 0: "},
		"Withdrawn":        {"a removed target does not hinder the others", []v1alpha1.TargetState{v1alpha1.TargetWithdrawn, failed}, nil, []string{"b"}, "", ""},
		"Archived":         {"its targets cannot be reserved", []v1alpha1.TargetState{failed, failed}, func(p *v1alpha1.Post) { p.ResourceVersion = "" }, nil, "CONFLICT", "is archived"},
		"Disconnected":     {"the retry would be incomplete", []v1alpha1.TargetState{failed, failed}, func(p *v1alpha1.Post) { p.Spec.Targets[1] = target("gone") }, nil, "CONFLICT", `account "gone" is no longer connected`},
		"AnotherPost":      {"the post does not exist", []v1alpha1.TargetState{failed, failed}, func(p *v1alpha1.Post) { p.Name = "p3" }, nil, "NOT_FOUND", ""},
		"PostedElsewhere":  {"a public target may lack its connection", []v1alpha1.TargetState{failed, posted}, func(p *v1alpha1.Post) { p.Spec.Targets[1] = target("gone") }, []string{"a"}, "", ""},
		"ScheduledForPast": {"the retry is published at once", []v1alpha1.TargetState{failed, failed}, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(now.AddDate(0, -1, 0)) }, []string{"a", "b"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := retriedPost(tc.states...)
			if tc.edit != nil {
				tc.edit(post)
			}
			s, p := withRetry(post)
			made, err := s.RetryPost(t.Context(), caller, bridge.RetryPost{ID: "p1"})
			if code(err) != tc.code || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Fatalf("%s: error %v, want %q with %q", tc.reason, err, tc.code, tc.message)
			}
			if tc.code != "" {
				if len(p.stored) != 1 {
					t.Errorf("%s: a post was created", tc.reason)
				}
				return
			}
			stored := p.stored[made.ID]
			var got []string
			for _, t := range stored.Spec.Targets {
				got = append(got, t.ConnectionRef.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if of := stored.Spec.RetryOf; of == nil || of.Name != "p1" || stored.Spec.ScheduledAt != nil || stored.Spec.Draft {
				t.Errorf("%+v is not published at once as a retry of p1", stored.Spec)
			}
		})
	}
}

// TestRetryRepeated verifies that a repeated request returns the first one's post, although that post has reserved the
// targets.
func TestRetryRepeated(t *testing.T) {
	t.Parallel()
	s, p := withRetry(retriedPost(v1alpha1.TargetFailed, v1alpha1.TargetFailed))
	in := bridge.RetryPost{ID: "p1", IdempotencyKey: "again"}
	first, err := s.RetryPost(t.Context(), caller, in)
	if err != nil || first.Replayed {
		t.Fatalf("the first request: %v, replayed %t", err, first.Replayed)
	}
	for i := range p.stored["p1"].Status.Targets {
		p.stored["p1"].Status.Targets[i].RetriedBy = first.ID
	}
	second, err := s.RetryPost(t.Context(), caller, in)
	if err != nil || second.ID != first.ID || !second.Replayed || len(p.stored) != 2 {
		t.Errorf("the second request: %v, post %s, replayed %t; want post %s", err, second.ID, second.Replayed, first.ID)
	}
	other := retriedPost(v1alpha1.TargetFailed, v1alpha1.TargetFailed)
	other.Name = "p9"
	p.stored[other.Name] = other
	if _, err := s.RetryPost(t.Context(), caller, bridge.RetryPost{ID: "p9", IdempotencyKey: "again"}); code(err) != "CONFLICT" || len(p.stored) != 3 {
		t.Errorf("a retry of another post under the same key: %v", err)
	}
}

// TestMayRetry verifies who may retry a post.
func TestMayRetry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		caller bridge.Caller
		state  v1alpha1.SubscriptionState
		want   string
	}{
		"Reads":    {"its scope is read-only", bridge.Caller{Namespace: caller.Namespace, Scopes: []bridge.Scope{bridge.ScopeRead}}, v1alpha1.SubscriptionActive, "INSUFFICIENT_SCOPE"},
		"Drafts":   {"a user publishes the draft", bridge.Caller{Namespace: caller.Namespace, Scopes: []bridge.Scope{bridge.ScopeDraft}}, v1alpha1.SubscriptionActive, ""},
		"Inactive": {"the team has no subscription", caller, v1alpha1.SubscriptionCancelled, "SUBSCRIPTION_REQUIRED"},
	} {
		s, p := withRetry(retriedPost(v1alpha1.TargetFailed, v1alpha1.TargetFailed))
		s.Owner = func(string) *v1alpha1.Team {
			team := owner{}.Owner("")
			team.Spec.Subscription.State = tc.state
			return team
		}
		if _, err := s.RetryPost(t.Context(), tc.caller, bridge.RetryPost{ID: "p1"}); code(err) != tc.want || (len(p.stored) == 2) != (tc.want == "") {
			t.Errorf("%s: %v, want %q (%s)", name, err, tc.want, tc.reason)
		}
	}
}
