// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
)

// TestSuspended verifies that every page of a suspended team shows that nothing is published, which explains why a post
// is not sent.
func TestSuspended(t *testing.T) {
	t.Parallel()
	const says = "Publishing is suspended"
	began := v1alpha1.NewTime(now.Add(-time.Hour))
	for name, tc := range map[string]struct {
		reason string
		spec   bool
		times  []v1alpha1.Suspension
		want   string
	}{
		"Never":     {reason: "the team is not suspended"},
		"JustAsked": {"the manager has not recorded the start yet", true, nil, says + "</strong>."},
		"Since":     {"users see the duration", true, []v1alpha1.Suspension{{From: began}}, says + `</strong> since <time datetime="2026-12-01T08:00:00Z"`},
		"ByTheBrake": {
			"the suspension of all teams is only in the status", false,
			[]v1alpha1.Suspension{{From: began}},
			says + `</strong> since <time datetime="2026-12-01T08:00:00Z"`,
		},
		"Over": {reason: "the suspension has ended", times: []v1alpha1.Suspension{{From: began, Until: &began}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.teams[0].Spec.Suspend, w.teams[0].Status.Suspensions = tc.spec, tc.times
			w.put(textPost("p-1", "text"))
			for _, path := range []string{"", "posts", "posts/p-1", "calendar", "connections", "team"} {
				page := w.serve(newRequest(&viewer, "/teams/"+acme+"/"+path, nil)).Body.String()
				if !strings.Contains(page, tc.want) || tc.want == "" && strings.Contains(page, says) {
					t.Errorf("%s: /%s: %s", tc.reason, path, page)
				}
			}
		})
	}
}

// TestPagesShowSuspension verifies the wording that depends on the installation, the user's permissions or the team's
// settings.
func TestPagesShowSuspension(t *testing.T) {
	t.Parallel()
	as := func(prefix string) func(*Config) { return func(c *Config) { c.RolePrefix = prefix } }
	publishing := func(p v1alpha1.AgentPublishing) func(*v1alpha1.Team) {
		return func(team *v1alpha1.Team) { team.Spec.Agents.Publishing = p }
	}
	places := func(keeps bool) func(*v1alpha1.Team) {
		return func(team *v1alpha1.Team) { team.Spec.Media.KeepLocation = keeps }
	}
	const goesOut, waits = "Goes out like any other post", "Waits as a draft until a user publishes it"
	const roleNames = "outreach-viewer, outreach-editor or outreach-admin"
	for name, tc := range map[string]struct {
		reason     string
		edit       func(*Config)
		team       func(*v1alpha1.Team)
		who        access.Person
		path       string
		want, lack []string
	}{
		"no uploads": {
			"users read it before they select a file", without("create media"), nil, editor, "posts/new",
			[]string{"You are not allowed to upload files"},
			[]string{"drop them anywhere"},
		},
		"uploads":           {"other permissions do not matter", without("delete posts"), nil, editor, "posts/new", []string{"drop them anywhere"}, []string{"You are not allowed to upload"}},
		"no usage":          {"counts require the permission to list Usages", without("list usages"), nil, viewer, "team", nil, []string{"Posts to X"}},
		"role names":        {"role names start with the release's name", as("outreach"), nil, administrator, "members", []string{roleNames}, []string{"herald-"}},
		"no terms":          {"a user without permissions for role bindings cannot set up a namespace", nil, nil, editor, "team", []string{"An administrator of your team gives and changes roles."}, []string{"Namespace", "RoleBinding", "role binding", "herald-editor"}},
		"terms":             {"a user with these permissions can", nil, nil, administrator, "team", []string{"Namespace", `href="/teams/team-acme/members"`}, nil},
		"agents unset":      {"the default allows agents to publish", nil, publishing(""), viewer, "team", []string{goesOut}, nil},
		"agents publish":    {"the team allows agents to publish", nil, publishing(v1alpha1.AgentsMayPublish), viewer, "team", []string{goesOut}, nil},
		"agents wait":       {"the team requires a review", nil, publishing(v1alpha1.AgentsDraft), viewer, "team", []string{waits}, nil},
		"locations removed": {"location metadata is removed", nil, places(false), editor, "posts/new", []string{"without the location where they were taken"}, nil},
		"locations kept":    {"location metadata is published", nil, places(true), editor, "posts/new", []string{"with the location where they were taken"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now), func(c *Config) {
				if tc.edit != nil {
					tc.edit(c)
				}
			})
			if tc.team != nil {
				tc.team(w.teams[0])
			}
			says(t, tc.reason, w.serve(newRequest(&tc.who, "/teams/"+acme+"/"+tc.path, nil)).Body.String(), tc.want, tc.lack)
		})
	}
	w := newWorld(clocktesting.NewFakeClock(now), as("outreach"))
	says(t, "a user without a team", w.serve(newRequest(&access.Person{Name: "oidc:nobody"}, "/", nil)).Body.String(), []string{"give them this name", "oidc:nobody"}, []string{"herald-", "namespace"})
}
