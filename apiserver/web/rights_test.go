// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
)

// TestShippedRolesSuffice verifies that each permission that the pages require is part of a shipped role, and that each
// page is accessible to the lowest role that docs/people.md assigns it to.
func TestShippedRolesSuffice(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	asked := map[right]bool{}
	for _, page := range w.site.pages() {
		for _, need := range page.requires {
			asked[need] = true
		}
	}
	for need := range new(rights).byRight() {
		asked[need] = true
	}
	for need := range asked {
		if may, _ := (roles{}).May(t.Context(), administrator, acme, need.verb, need.resource); !may {
			t.Errorf("pages need %s %s, which the admin role lacks", need.verb, need.resource)
		}
	}
	for who, wants := range map[string][]right{
		viewer.Name: {seePosts, seeConnections, seeUsages}, editor.Name: {createPosts, updatePosts, createMedia, seeMedia, seeKeys},
	} {
		for _, need := range wants {
			if may, _ := (roles{}).May(t.Context(), access.Person{Name: who}, acme, need.verb, need.resource); !may {
				t.Errorf("%s may not %s %s", who, need.verb, need.resource)
			}
		}
	}
}

// TestEachActionChecksItsPermission removes one permission: actions that need it are rejected, and others with a
// related permission are not.
func TestEachActionChecksItsPermission(t *testing.T) {
	t.Parallel()
	const upload = `{"name":"a.png","mime_type":"image/png","size_bytes":1000}`
	for name, tc := range map[string]struct {
		reason, lacks, request string
		form                   url.Values
		refused                bool
	}{
		"Upload":           {"a file is not a post", "create media", "POST media", nil, true},
		"UploadAlone":      {"a user without the permission to create posts may upload", "create posts", "POST media", nil, false},
		"Connect":          {"a new account", "create connections", "POST connections/connect", url.Values{"platform": {"x"}}, true},
		"ConnectAlone":     {"no permission to write Secrets", "patch connections", "POST connections/connect", url.Values{"platform": {"x"}}, false},
		"Reconnect":        {"an existing connection is changed", "patch connections", "POST connections/connect", url.Values{"connection": {"our-x"}}, true},
		"ReconnectAlone":   {"no connection is created", "create connections", "POST connections/connect", url.Values{"connection": {"our-x"}}, false},
		"Disconnect":       {"the connection is deleted", "delete connections", "POST connections/our-x/disconnect", url.Values{}, true},
		"Accounts":         {"the page is about keys", "list connections", "GET connections", nil, true},
		"Composer":         {"users select accounts", "list connections", "GET posts/new", nil, true},
		"ComposerSent":     {"the form shows accounts as well", "list connections", "POST posts/new", url.Values{}, true},
		"Editor":           {"the edit form shows accounts as well", "list connections", "GET posts/p-1/edit", nil, true},
		"Preview":          {"the preview shows accounts", "list connections", "POST compose/check", url.Values{}, true},
		"Overview":         {"the overview shows posts", "list connections", "GET ", nil, false},
		"Team":             {"the team's plan is shown", "list usages", "GET team", nil, false},
		"PostWithAccounts": {"a post is shown", "list connections", "GET posts/p-1", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now), without(tc.lacks))
			w.put(textPost("p-1", "text", asDraft))
			method, page, _ := strings.Cut(tc.request, " ")
			r := newRequest(&administrator, "/teams/"+acme+"/"+page, tc.form)
			if method == http.MethodPost && tc.form == nil {
				r = httptest.NewRequest(method, "/teams/"+acme+"/"+page, strings.NewReader(upload)).WithContext(r.Context())
				r.Header.Set("Accept", "application/json")
			}
			before := w.written()
			answer := w.serve(r)
			if refused := answer.Code == http.StatusForbidden; refused != tc.refused || answer.Code >= http.StatusInternalServerError {
				t.Errorf("%s: %d", tc.reason, answer.Code)
			}
			if tc.refused && w.written() != before {
				t.Errorf("%s: the request changed an object", tc.reason)
			}
		})
	}
}

// TestWithoutAccounts verifies that a user with access to posts but not to accounts sees only the account data that
// posts contain.
func TestWithoutAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), without("list connections"))
	w.put(textPost("p-1", "text", asDraft))
	ready := &w.connections[acme][0].Status.Conditions[0]
	ready.Status, ready.Message = metav1.ConditionFalse, "the token was withdrawn"
	for _, page := range []string{"", "posts", "posts/p-1", "calendar", "team"} {
		text := w.serve(newRequest(&administrator, "/teams/"+acme+"/"+page, nil)).Body.String()
		says(t, page, text, nil, []string{
			"Account our-x", "@our-x", "withdrawn", "(disconnected)", acme + "/connections\"", "posts/new", "/edit\"", "Connect an account",
		})
	}
	if text := w.serve(newRequest(&administrator, "/teams/"+acme+"/posts/p-1", nil)).Body.String(); !strings.Contains(text, "our-x") || !strings.Contains(text, ">X<") {
		t.Error("the target's own caption is missing")
	}
}

// TestUsageOnTheTeamsPage verifies the counts on the team's page, each with its limit.
func TestUsageOnTheTeamsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", asDraft))
	w.teams[0].Spec.Subscription.Plan = v1alpha1.PlanStarter
	w.connections[acme][0].Spec.Disabled = true
	text := textOf(w.get(t, viewer, "/teams/"+acme+"/team"))
	says(t, "the team's page", text, []string{
		"Connected accounts: 7 of 10", "Posts to X this month (UTC): 0 of 30",
		"Stored posts, including finished and cancelled ones: 1 of 2,000", "Their size: ", " of 128 MiB", "Drafts, and posts that are scheduled or being delivered: 1 of 500",
		"Files waiting to be uploaded: 7 of 100", "Their declared size: 1.5 GiB of 20 GiB", "API keys, including revoked and expired ones: 4 of 20",
		"Drafts in TikTok's inbox of Account our-tiktok within 24 hours: 0 of 5", "Posts in the lists: 1, without a limit",
	}, nil)
	says(t, "the accounts' page", textOf(w.get(t, viewer, "/teams/"+acme+"/connections")), []string{
		"The plan has room for 10 accounts; 7 accounts in use, not counting 1 disabled.",
	}, nil)
}
