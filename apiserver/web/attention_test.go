// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/platforms"
)

// TestNeedsAPerson verifies which posts and accounts count as needing a user, in the navigation and in the titles of
// all pages.
func TestNeedsAPerson(t *testing.T) {
	t.Parallel()
	notReady := func(reason string) func(*world) {
		return func(w *world) {
			c := &w.connections[acme][0].Status.Conditions[0]
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, "it does not work"
		}
	}
	undecided := func(n int) func(*world) {
		return func(w *world) {
			for i := range n {
				w.index.Upsert(acme, postindex.Summary{
					ID: fmt.Sprint("p-", i), Status: v1alpha1.PhaseFailed, Category: v1alpha1.CategoryText, DisplayAt: now,
					Platforms: []postindex.PlatformStatus{{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhaseFailed, Mark: v1alpha1.MarkUndecided}},
				}, uint64(i+1))
			}
		}
	}
	failed := func(age time.Duration, edits ...func(*postindex.Summary)) func(*world) {
		return func(w *world) {
			s := postindex.Summary{
				ID: "p-failed", Title: "Launch", Status: v1alpha1.PhaseFailed, Category: v1alpha1.CategoryText, DisplayAt: now.Add(-age),
				Platforms: []postindex.PlatformStatus{{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhaseFailed}},
			}
			for _, edit := range edits {
				edit(&s)
			}
			w.index.Upsert(acme, s, 1000)
		}
	}
	handled := func(s *postindex.Summary) { s.Handled = true }
	partly := func(s *postindex.Summary) {
		s.Platforms = append(s.Platforms, postindex.PlatformStatus{Platform: v1alpha1.PlatformThreads, Status: v1alpha1.PhasePosted})
	}
	for name, tc := range map[string]struct {
		reason      string
		edit        func(*world)
		title, says string
	}{
		"Failed":      {"a user sends it again, or dismisses it", failed(time.Hour), "(1) Posts", "Overview1 needs attention"},
		"Partly":      {"one account lacks the post", failed(time.Hour, partly), "(1) Posts", "Overview1 needs attention"},
		"Handled":     {"a user has dismissed the post, or sent it again", failed(time.Hour, handled), "Posts", "Overview"},
		"Week":        {"the week includes its first moment", failed(unhandledFor), "(1) Posts", "Overview1 needs attention"},
		"Old":         {"the failure is more than a week old", failed(unhandledFor + time.Millisecond), "Posts", "Overview"},
		"All":         {"each problem counts once", func(w *world) { undecided(1)(w); failed(time.Hour)(w); notReady(v1alpha1.ReasonRevoked)(w) }, "(3) Posts", "Overview3 need attention"},
		"Nothing":     {"no post has a problem", func(*world) {}, "Posts", "Overview"},
		"Revoked":     {"a user has to reconnect the account", notReady(v1alpha1.ReasonRevoked), "(1) Posts", "Overview1 needs attention"},
		"Restricted":  {"the account's owner has to act", notReady(v1alpha1.ReasonAccountRestricted), "(1) Posts", "Overview1 needs attention"},
		"PlatformOut": {"the platform recovers by itself", notReady(v1alpha1.ReasonPlatformUnavailable), "Posts", "Overview"},
		"Limited": {"a limit expires", func(w *world) {
			w.connections[acme][0].Status.RateLimitedUntil = v1alpha1.NewTimePtr(now.Add(time.Hour))
		}, "Posts", "Overview"},
		"EndsSoon": {"a user has to reconnect the account before its token expires", func(w *world) {
			w.connections[acme][0].Status.ReconnectBy = v1alpha1.NewTimePtr(now.Add(24 * time.Hour))
		}, "(1) Posts", "Overview1 needs attention"},
		"Disabled": {"a user disabled the account", func(w *world) {
			notReady(v1alpha1.ReasonRevoked)(w)
			w.connections[acme][0].Spec.Disabled = true
		}, "Posts", "Overview"},
		"Undecided": {"a user has to answer", undecided(2), "(2) Posts", "Overview2 need attention"},
		"Both":      {"problems add up", func(w *world) { undecided(1)(w); notReady(v1alpha1.ReasonRevoked)(w) }, "(2) Posts", "Overview2 need attention"},
		"Many":      {"large numbers are capped", undecided(100), "(99+) Posts", "Overview99+ need attention"},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		tc.edit(w)
		page := w.get(t, viewer, "/teams/"+acme+"/posts")
		if got := textOf(elements(page, "title")[0]); got != tc.title+" · team-acme · Herald" {
			t.Errorf("%s: %s: the title is %q", name, tc.reason, got)
		}
		if got := strings.TrimSpace(textOf(elements(elements(page, "nav")[0], "a")[0])); got != tc.says {
			t.Errorf("%s: %s: the navigation contains %q, want %q", name, tc.reason, got, tc.says)
		}
		overview := w.get(t, viewer, "/teams/"+acme+"/")
		if got := textOf(elements(overview, "title")[0]); got != strings.Replace(tc.title, "Posts", "Overview", 1)+" · team-acme · Herald" {
			t.Errorf("%s: %s: the overview's title is %q", name, tc.reason, got)
		}
		listed, list := strings.Contains(textOf(overview), "Failed in the last 7 days"), textOf(elements(w.get(t, viewer, "/teams/"+acme+"/posts?status=unhandled"), "main")[0])
		if want := name == "Failed" || name == "Partly" || name == "Week" || name == "All"; listed != want || strings.Contains(list, "Launch") != want {
			t.Errorf("%s: %s: the overview and the list of failed posts differ from the count", name, tc.reason)
		}
	}
}

// TestNeedsAPersonWithoutAccounts verifies that the number reveals nothing about accounts to those who may not see them.
func TestNeedsAPersonWithoutAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), without("list connections"))
	c := &w.connections[acme][0].Status.Conditions[0]
	c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonRevoked
	if got := textOf(elements(w.get(t, viewer, "/teams/"+acme+"/posts"), "title")[0]); strings.HasPrefix(got, "(") {
		t.Errorf("the title is %q", got)
	}
}

// connectable is a platform with an app.
type connectable struct{ platforms.Connector }

func (connectable) ConsentURL(platforms.Consent) (string, error) {
	return "https://consent.example/", nil
}

// TestReconnect verifies who can connect an account again from the overview.
func TestReconnect(t *testing.T) {
	t.Parallel()
	withApp := func(c *Config) {
		c.Connect.Platforms = platforms.Registry{v1alpha1.PlatformX: connectable{}}
	}
	for name, tc := range map[string]struct {
		reason, cause string
		who           access.Person
		edits         []func(*Config)
		want          bool
	}{
		"Revoked":    {"one click leads to the platform", v1alpha1.ReasonRevoked, administrator, []func(*Config){withApp}, true},
		"Restricted": {"its owner has to act on the platform", v1alpha1.ReasonAccountRestricted, administrator, []func(*Config){withApp}, false},
		"Editor":     {"only administrators can reconnect an account", v1alpha1.ReasonRevoked, editor, []func(*Config){withApp}, false},
		"NoApp":      {"accounts of this platform are connected elsewhere", v1alpha1.ReasonRevoked, administrator, nil, false},
	} {
		w := newWorld(clocktesting.NewFakeClock(now), tc.edits...)
		c := &w.connections[acme][0].Status.Conditions[0]
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, tc.cause, "it does not work"
		page := w.get(t, tc.who, "/teams/"+acme+"/")
		var forms []string
		for _, f := range elements(page, "form") {
			if action, _ := attribute(f, "action"); strings.HasSuffix(action, "/connections/connect") {
				forms = append(forms, sent(f).Get("connection")+" "+textOf(f))
			}
		}
		if got := len(forms) == 1 && strings.HasPrefix(forms[0], "our-x Connect again: "); got != tc.want || len(forms) > 1 {
			t.Errorf("%s: %s: %q", name, tc.reason, forms)
		}
	}
}

// TestDismiss verifies that a user dismisses a failed post on the overview or on its page, and only with permission to
// change posts.
func TestDismiss(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, page string
		who          access.Person
		target       string
	}{
		"Overview": {"the user returns to the overview, where others may wait", "", editor, "/teams/" + acme + "/?said=dismissed"},
		"Post":     {"the user returns to the post", "posts/p-1", editor, "/teams/" + acme + "/posts/p-1?said=dismissed"},
		"Viewer":   {"a viewer cannot change posts", "", viewer, ""},
		"Seen":     {"a viewer cannot change the post either", "posts/p-1", viewer, ""},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		w.put(textPost("p-1", "Launch", func(p *v1alpha1.Post) {
			p.Status.Targets = []v1alpha1.TargetStatus{{State: v1alpha1.TargetFailed, Platform: v1alpha1.PlatformX}}
		}))
		var buttons []*html.Node
		for _, f := range elements(w.get(t, tc.who, "/teams/"+acme+"/"+tc.page), "form") {
			if action, _ := attribute(f, "action"); action == "/teams/"+acme+"/posts/p-1/dismiss" {
				buttons = append(buttons, f)
			}
		}
		if tc.target == "" {
			if len(buttons) > 0 || w.serve(newRequest(&tc.who, "/teams/"+acme+"/posts/p-1/dismiss", url.Values{})).Code == http.StatusSeeOther {
				t.Errorf("%s: %s: the post can be dismissed", name, tc.reason)
			}
			continue
		}
		if len(buttons) != 1 {
			t.Fatalf("%s: %s: %d forms to dismiss it", name, tc.reason, len(buttons))
		}
		answer := w.serve(newRequest(&tc.who, "/teams/"+acme+"/posts/p-1/dismiss", sent(buttons[0])))
		if got := answer.Header().Get("Location"); got != tc.target {
			t.Errorf("%s: %s: the user gets %q with %d, want %q", name, tc.reason, got, answer.Code, tc.target)
		}
		after := w.get(t, tc.who, answer.Header().Get("Location"))
		if text := textOf(after); strings.HasPrefix(textOf(elements(after, "title")[0]), "(") || strings.Contains(text, "Failed in the last 7 days") || !strings.Contains(text, "Dismissed. ") {
			t.Errorf("%s: %s: the post still needs a user", name, tc.reason)
		}
	}
}
