// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestRequiresReview(t *testing.T) {
	t.Parallel()
	reviewed := &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Agents: v1alpha1.Agents{Publishing: v1alpha1.AgentsDraft}}}
	for _, tc := range []struct {
		reason string
		caller Caller
		team   *v1alpha1.Team
		want   bool
	}{
		{"the client is not an agent", Caller{Author: "ada"}, reviewed, false},
		{"the team requires a review", Caller{Agent: "Claude"}, reviewed, true},
		{"the team does not require a review", Caller{Agent: "Claude"}, &v1alpha1.Team{}, false},
		{"another check rejects a namespace without a team", Caller{Agent: "Claude"}, nil, false},
		{"the scope allows drafts only", Caller{Agent: "Claude", Scopes: []Scope{ScopeDraft}}, &v1alpha1.Team{}, true},
		{"the scope allows publishing", Caller{Agent: "Claude", Scopes: []Scope{ScopePublish}}, &v1alpha1.Team{}, false},
	} {
		s := &Service{Config: Config{Owner: func(string) *v1alpha1.Team { return tc.team }}}
		if got := s.requiresReview(tc.caller); got != tc.want {
			t.Errorf("%s: review %t, want %t", tc.reason, got, tc.want)
		}
	}
}

// TestTeamSettings checks the effect of a team's settings on its posts.
func TestTeamSettings(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	suspended := &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Suspend: true}, Status: v1alpha1.TeamStatus{Suspensions: []v1alpha1.Suspension{{From: v1alpha1.NewTime(since)}}}}
	for _, tc := range []struct {
		reason              string
		team                *v1alpha1.Team
		converts, suspended bool
		since               time.Time
	}{
		{"a namespace without a team has no settings", nil, false, false, time.Time{}},
		{"videos are converted on request", &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Media: v1alpha1.TeamMedia{Convert: true}}}, true, false, time.Time{}},
		{"the page shows when the suspension started", suspended, false, true, since},
	} {
		s := &Service{Config: Config{Owner: func(string) *v1alpha1.Team { return tc.team }}}
		at, is := s.Suspended(Caller{})
		if converts := s.converts("acme"); converts != tc.converts || is != tc.suspended || !at.Equal(tc.since) {
			t.Errorf("%s: converts %t, suspended %t since %s", tc.reason, converts, is, at)
		}
	}
}

// TestManyProblems checks the number of problems in a response.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	errs := make(field.ErrorList, maxFieldProblems+1)
	for i := range errs {
		errs[i] = field.Invalid(field.NewPath("spec"), "", "bad")
	}
	if got := invalid(errs); !strings.HasSuffix(got.Message, "; and 81 more") || len(got.Problems) != maxFieldProblems {
		t.Errorf("%d problems: %s", len(got.Problems), got.Message)
	}
}

func TestConvertToDraft(t *testing.T) {
	t.Parallel()
	at := v1alpha1.NewTimePtr(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	for _, tc := range []struct {
		reason string
		spec   v1alpha1.PostSpec
		wanted string
	}{
		{"a draft stays unchanged", v1alpha1.PostSpec{Draft: true}, ""},
		{"a user decides when it is published", v1alpha1.PostSpec{ScheduledAt: at}, at.String()},
		{"the post would have been published immediately", v1alpha1.PostSpec{}, v1alpha1.WantedNow},
	} {
		post := &v1alpha1.Post{Spec: tc.spec}
		before := convertToDraft(post)
		if !post.Spec.Draft || post.Spec.ScheduledAt != nil || post.Annotations[v1alpha1.WantedAtAnnotation] != tc.wanted {
			t.Errorf("%s: %+v, %v", tc.reason, post.Spec, post.Annotations)
		}
		if (before == nil) != tc.spec.Draft || before != nil && !v1alpha1.SemanticEqual(before.Spec, tc.spec) {
			t.Errorf("%s: the original is %+v", tc.reason, before)
		}
	}
}

// TestReadable checks which problems are dropped because a part of the request could not be parsed.
func TestReadable(t *testing.T) {
	t.Parallel()
	target := field.NewPath("spec", "targets").Index(1)
	for _, tc := range []struct {
		reason string
		unread []string
		err    *field.Error
		left   int
	}{
		{"every field was parsed", nil, field.Invalid(target, "", "bad"), 1},
		{"the unparsed part itself", []string{"other: x", "targets[1]: x"}, field.Invalid(target, "", "bad"), 0},
		{"a field of the unparsed part", []string{"targets[1]: x"}, field.Invalid(target.Child("caption"), "", "bad"), 0},
		{"an element of the unparsed part", []string{"targets: x"}, field.Invalid(target, "", "bad"), 0},
		{"another field with the same prefix", []string{"targets[1].cap: x"}, field.Invalid(target.Child("caption"), "", "bad"), 1},
		{"the parent of the unparsed part", []string{"targets[1].caption: x"}, field.Required(target, ""), 0},
		{"another problem of the parent", []string{"targets[1].caption: x"}, field.Invalid(target, "", "bad"), 1},
		{"another part that is missing", []string{"targets[1].caption: x"}, field.Required(field.NewPath("spec", "image"), ""), 1},
	} {
		j := &postValidation{unread: tc.unread}
		if left := j.readable(field.ErrorList{tc.err}); len(left) != tc.left {
			t.Errorf("%s: got %v, want %d errors", tc.reason, left, tc.left)
		}
	}
}
