// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestSuspended verifies that an agent that sees a post waiting learns that only a user can end the suspension.
func TestSuspended(t *testing.T) {
	t.Parallel()
	const says = "Publishing is suspended for this team"
	began := v1alpha1.NewTime(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))
	lasts, over := []v1alpha1.Suspension{{From: began}}, []v1alpha1.Suspension{{From: began, Until: &began}}
	scheduled := text("Hello", `,"scheduled_at":"2999-12-01T08:00:00Z"`)
	for name, tc := range map[string]struct {
		reason          string
		spec            bool
		times           []v1alpha1.Suspension
		tool, arguments string
		isError         bool
		want            string
	}{
		"Never":        {reason: "the team is not suspended", tool: "list_posts", arguments: `{}`},
		"Over":         {reason: "the suspension has ended", times: over, tool: "list_posts", arguments: `{}`},
		"JustAsked":    {"the manager has not recorded the start yet", true, nil, "list_posts", `{}`, false, says + ", by"},
		"Since":        {"users ask for the duration", true, lasts, "list_posts", `{}`, false, says + " since 2026-12-01T08:00:00Z, by"},
		"ByTheBrake":   {"the suspension of all teams is only in the status", false, lasts, "list_posts", `{}`, false, says + " since"},
		"Connections":  {"agents start with list_connections", false, lasts, "list_connections", `{}`, false, says},
		"Created":      {"the post would be requested repeatedly", false, lasts, "create_post", scheduled, false, says},
		"Refused":      {"no post exists; only the error is reported", false, lasts, "create_post", `{}`, true, ""},
		"Read":         {"the post is processing until the end", false, lasts, "get_post", `{"id":"p1"}`, false, says},
		"ReadUnknown":  {"no such post", false, lasts, "get_post", `{"id":"p2"}`, true, ""},
		"CancelledNow": {"the post would not be published anyway", false, lasts, "cancel_post", `{"id":"p1"}`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.team.Spec.Suspend, w.team.Status.Suspensions = tc.spec, tc.times
			p1 := &v1alpha1.Post{}
			p1.Namespace, p1.Name, p1.Spec.Category, p1.Spec.Draft = namespace, "p1", v1alpha1.CategoryText, true
			p1.Spec.Targets = []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "Hello"}}
			w.posts["p1"] = p1
			structured, texts, isError := resultOf(t, send(t, "POST", w.serve(t), "key", callTool(tc.tool, tc.arguments)))
			if isError != tc.isError || strings.Contains(structured, says) {
				t.Fatalf("%s: got %s", tc.reason, structured)
			}
			if said := strings.Join(texts[1:], "\n"); !strings.HasPrefix(said, tc.want) || tc.want == "" && said != "" {
				t.Errorf("%s: got %q", tc.reason, said)
			}
		})
	}
}

// TestSuspendedAccounts verifies the same for an agent that reads the resource.
func TestSuspendedAccounts(t *testing.T) {
	t.Parallel()
	for _, suspended := range []bool{false, true} {
		w := newWorld()
		w.team.Spec.Suspend = suspended
		session := connect(t, w.serve(t), "key", "")
		found, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: accountsURI})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(found.Contents[0].Text, `"suspended":"Publishing is suspended for this team, by`); got != suspended {
			t.Errorf("suspended %t: %s", suspended, found.Contents[0].Text)
		}
	}
}
