// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// byClaude marks a post as created by an agent, as the bridge does.
func byClaude(author, wanted string) func(*v1alpha1.Post) {
	return func(post *v1alpha1.Post) {
		post.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
		post.Annotations = map[string]string{v1alpha1.AgentAnnotation: "Claude <b>"}
		if author != "" {
			post.Annotations[v1alpha1.AuthorAnnotation] = author
		}
		if wanted != "" {
			post.Annotations[v1alpha1.WantedAtAnnotation] = wanted
			post.Spec.Draft = true
		}
	}
}

// TestAgentsPosts verifies that pages with posts name the agent that created a post, and its person, and that a waiting
// post shows the agent's request.
func TestAgentsPosts(t *testing.T) {
	t.Parallel()
	const note = "This post waits for a user."
	made := "p" + strings.Repeat("a", 25)
	for name, tc := range map[string]struct {
		reason string
		post   *v1alpha1.Post
		// The post's page contains the text in says, and does not contain the text in not.
		says, not string
	}{
		"ForAPerson":  {"the user who granted the permission is shown", textPost(made, "text", byClaude("oidc:ada@example.com", "")), "by <strong>Claude &lt;b&gt;</strong> for oidc:ada@example.com", note},
		"WithAKey":    {"no user is known", textPost(made, "text", byClaude("", "")), "by <strong>Claude &lt;b&gt;</strong>, an agent", note},
		"ByAPerson":   {"an agent did not create it", textPost("p-1", "text", func(p *v1alpha1.Post) { p.Annotations = map[string]string{v1alpha1.AuthorAnnotation: "oidc:ada"} }), "by oidc:ada", "an agent"},
		"Waits":       {"a user decides", textPost("p-1", "text", byClaude("", "2026-12-24T18:00:00.000Z")), `datetime="2026-12-24T18:00:00Z"`, "at once"},
		"WaitsAtOnce": {"a user decides", textPost(made, "text", byClaude("", v1alpha1.WantedNow)), "The agent <strong>Claude &lt;b&gt;</strong> wanted to publish it at once", "nothing"},
		"Garbled":     {"annotations can be forged", textPost("p-1", "text", byClaude("", "soon")), "by <strong>Claude", note},
		"Claimed": {
			"the apiserver did not create it, so its annotation may be forged", textPost("p-1", "text", func(p *v1alpha1.Post) { p.Annotations = map[string]string{v1alpha1.AuthorAnnotation: "oidc:ceo"} }),
			"claims to be by oidc:ceo", "an agent",
		},
		"ClaimsToWait": {"the agent's request is unknown", textPost("p-1", "text", byClaude("", v1alpha1.WantedNow)), "It claims that the agent", "nothing"},
		"MadeHere":     {"only the apiserver can have created it", textPost(made, "text", byClaude("oidc:ada", "")), "by <strong>Claude", "claims"},
		"Published":    {"the post is no longer a draft", textPost("p-1", "text", byClaude("", v1alpha1.WantedNow), func(p *v1alpha1.Post) { p.Spec.Draft = false }), "by <strong>Claude", note},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(tc.post)
			page := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/"+tc.post.Name, nil)).Body.String()
			if !strings.Contains(page, tc.says) || strings.Contains(page, tc.not) {
				t.Errorf("%s: %s", tc.reason, page)
			}
			list := w.serve(newRequest(&viewer, "/teams/"+acme+"/posts", nil)).Body.String()
			if agents := tc.post.Annotations[v1alpha1.AgentAnnotation] != ""; strings.Contains(list, "by “Claude &lt;b&gt;”") != agents {
				t.Errorf("%s: the list: %s", tc.reason, list)
			}
		})
	}
}

// TestPromote verifies that the form proposes the time that the agent requested, in the user's time zone, and that
// opening or saving the form does not publish it.
func TestPromote(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, wanted, utc, local string }{
		"ToCome": {"the requested time is offered", "2026-12-24T18:00:00.500Z", "2026-12-24T18:00:00.5Z", "2026-12-24T18:00"},
		"Past":   {"a past time cannot be offered", "2026-11-01T00:00:00.000Z", "", ""},
		"AtOnce": {"no time was requested", v1alpha1.WantedNow, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", byClaude("", tc.wanted)))
			form := sent(withID(t, w.get(t, editor, "/teams/"+acme+"/posts/p-1/edit"), "compose"))
			if form.Get("when") != whenDraft || form.Get("scheduled_at") != tc.utc || form.Get("at") != tc.local {
				t.Errorf("%s: the form has %q, %q and %q", tc.reason, form.Get("when"), form.Get("scheduled_at"), form.Get("at"))
			}
			if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form)); answer.Code != http.StatusSeeOther || !w.posts[acme+"/p-1"].Spec.Draft {
				t.Errorf("%s: saved as it is: %d, %+v", tc.reason, answer.Code, w.posts[acme+"/p-1"].Spec)
			}
			if tc.utc == "" {
				return
			}
			form.Set("when", whenLater)
			answer, spec := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form)), w.posts[acme+"/p-1"].Spec
			want, _ := time.Parse(time.RFC3339, tc.wanted)
			if answer.Code != http.StatusSeeOther || spec.Draft || spec.ScheduledAt == nil || !spec.ScheduledAt.Equal(v1alpha1.NewTimePtr(want)) {
				t.Errorf("%s: scheduled: %d, %+v", tc.reason, answer.Code, spec)
			}
		})
	}
}
