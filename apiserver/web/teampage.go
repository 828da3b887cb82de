// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/posting/plan"
)

var subscriptions = map[v1alpha1.SubscriptionState]string{
	v1alpha1.SubscriptionActive: "Active", v1alpha1.SubscriptionTrialing: "Trial",
	v1alpha1.SubscriptionPastDue: "Past due", v1alpha1.SubscriptionCancelled: "Cancelled",
}

var plans = map[v1alpha1.Plan]string{v1alpha1.PlanStarter: "Starter", v1alpha1.PlanUnlimited: "Unlimited"}

// publishing are the descriptions of what happens to agents' posts.
var publishing = map[v1alpha1.AgentPublishing]string{
	"": "Goes out like any other post", v1alpha1.AgentsMayPublish: "Goes out like any other post", v1alpha1.AgentsDraft: "Waits as a draft until a user publishes it",
}

func (s *Site) teamPage(w http.ResponseWriter, v *visit) error {
	t, err := s.Service.ViewTeam(v.Context(), v.caller)
	if err != nil {
		return err
	}
	actions := []g.Node{
		g.If(v.may.seeNotifiers, link(v.path(pageNotifiers), "Notifications", "")),
		g.If(v.may.seeMembers, link(v.path("members"), "Members", "")),
	}
	s.render(w, v, http.StatusOK, view{title: "Team", place: placeTeam, actions: actions, content: []g.Node{
		s.trial(v),
		h.Section(h.Class("card"), h.H2(g.Text("Plan")), h.Dl(
			fact("Team", g.Text(v.teamName())),
			s.zoneFact(v),
			v.undoFact(),
			g.If(v.may.seeMembers, fact("Namespace", h.Code(g.Text(v.namespace)))),
			fact("Plan", g.Text(plans[t.Plan])),
			fact("Subscription", g.Text(subscriptions[t.State])),
			g.If(!t.TrialEndsAt.IsZero(), fact("The trial ends", v.moment(t.TrialEndsAt))),
		)),
		h.Section(h.Class("card"), h.H2(g.Text("Agents")), h.Dl(fact("What they want to publish", g.Text(publishing[t.Agents.Publishing]))),
			h.P(h.Class("soft"), g.Text("Agents use MCP, with an API key or a user's permission. Administrators decide this."))),
		g.Iff(v.may.seeUsage, func() g.Node {
			return h.Section(h.Class("card"), h.H2(g.Text("Usage")),
				used("Connected accounts", t.Accounts),
				used("Posts to X this month (UTC)", t.XPosts),
				g.Map(t.TikTokDrafts, func(of bridge.AccountMeter) g.Node {
					return used("Drafts in TikTok's inbox of "+v.called(of.Connection, of.Connection.Name)+" within 24 hours", of.Meter)
				}),
				used("Posts in the lists", bridge.Meter{Used: t.Posts}),
			)
		}),
		g.Iff(v.may.seeUsage && len(t.Budget) > 0, func() g.Node {
			return h.Section(h.Class("card"), h.H2(g.Text("Budget")),
				h.P(h.Class("soft"), g.Text("How much the team may store and have in progress. Beyond a limit, posts, files and keys are rejected. Administrators decide this.")),
				g.Map(t.Budget, budgeted),
			)
		}),
		h.Section(h.Class("card"), h.H2(g.Text("You")), h.Dl(h.Class("you"),
			fact("Signed in as", h.Span(h.Title(v.person.Name), g.Text(v.person.Shown()))),
			g.If(v.may.seeMembers, fact("Name in role bindings", h.Code(g.Text(v.person.Name)))),
			g.If(v.may.seeMembers && len(v.person.Groups) > 0, fact("Groups", g.Text(strings.Join(v.person.Groups, ", ")))),
			fact("You may", g.Text(strings.Join(v.abilities(), ", "))),
		),
			g.If(!v.may.seeMembers, h.P(h.Class("soft"), g.Text("An administrator of your team gives and changes roles."))),
			form("/signout", "Sign out in all browsers? You will have to sign in again everywhere.", hidden("everywhere", "true"), submit("Sign out everywhere", "small danger")),
		),
	}})
	return nil
}

// zoneFact shows the team's time zone, or why there is none.
func (s *Site) zoneFact(v *visit) g.Node {
	switch name := v.team.Spec.TimeZone; {
	case v.teamZone != nil:
		return fact("Time zone", g.Text(v.teamZone.String()))
	case name != "":
		return fact("Time zone", g.Text("each person's own ("+quoted(name)+" is not a known time zone)"))
	default:
		return fact("Time zone", g.Text("each person's own"))
	}
}

// trial shows a trial in progress, or why the team may not create anything.
func (s *Site) trial(v *visit) g.Node {
	if err := s.Service.RequireSubscription(v.caller); err != nil {
		return notice(bad, paragraph(sentence(err.Error())))
	}
	if v.team.Spec.Subscription.State != v1alpha1.SubscriptionTrialing {
		return nil
	}
	return notice(neutral, h.P(g.Text("The team's trial ends "), v.about(plan.TrialEnd(v.team)), g.Text(".")))
}

// suspended returns the notice for the pages of a suspended team, with the start of the suspension, or nil.
func (v *visit) suspended() g.Node {
	if !v.team.Suspended() {
		return nil
	}
	since := g.Text("")
	if last := len(v.team.Status.Suspensions) - 1; last >= 0 && v.team.Status.Suspensions[last].Until == nil {
		since = g.Group{g.Text(" since "), v.moment(v.team.Status.Suspensions[last].From.Time)}
	}
	return notice(caution, h.P(h.Strong(g.Text("Publishing is suspended")), since, g.Text(".")),
		paragraph("Posts are accepted and prepared, but not sent. They are published once the suspension ends, and do not expire until then. Administrators decide this."))
}

// used shows a number and its share of a limit. Unlimited use is not always counted, so a zero is omitted.
func used(what string, m bridge.Meter) g.Node {
	if m.Limit == 0 {
		return h.P(h.Class("usage"), g.Text(what+": "), g.If(m.Used > 0, g.Group{h.Strong(g.Text(grouped(int64(m.Used)))), g.Text(", ")}), g.Text("without a limit"))
	}
	return h.P(h.Class("usage"), g.Text(what+": "), h.Strong(g.Text(grouped(int64(m.Used)))), g.Text(" of "+grouped(int64(m.Limit))),
		h.Meter(h.Min("0"), h.Max(strconv.Itoa(m.Limit)), h.Value(strconv.Itoa(min(m.Used, m.Limit))), h.Aria("label", what)))
}

var budgetWords = map[v1alpha1.BudgetItem]string{
	v1alpha1.BudgetPosts: "Stored posts, including finished and cancelled ones", v1alpha1.BudgetPostBytes: "Their size",
	v1alpha1.BudgetUnfinishedPosts: "Drafts, and posts that are scheduled or being delivered",
	v1alpha1.BudgetPendingFiles:    "Files waiting to be uploaded", v1alpha1.BudgetPendingFileBytes: "Their declared size",
	v1alpha1.BudgetKeys: "API keys, including revoked and expired ones",
}

// budgeted shows one of a budget's fields and how much of it is used. A limit of zero is a limit.
func budgeted(u v1alpha1.BudgetUse) g.Node {
	what, amount := budgetWords[u.Item], grouped
	if u.Item == v1alpha1.BudgetPostBytes || u.Item == v1alpha1.BudgetPendingFileBytes {
		amount = inBytes
	}
	return h.P(h.Class("usage"), g.Text(what+": "), h.Strong(g.Text(amount(u.Used))), g.Text(" of "+amount(u.Limit)),
		h.Meter(h.Min("0"), h.Max(strconv.FormatInt(max(u.Limit, 1), 10)), h.Value(strconv.FormatInt(min(u.Used, u.Limit), 10)), h.Aria("label", what)))
}

// inBytes formats a number of bytes, with one decimal place below ten.
func inBytes(n int64) string {
	value, unit := float64(n), "bytes"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	if unit == "bytes" || value >= 10 || value == math.Trunc(value) {
		return strconv.FormatFloat(math.Trunc(value), 'f', -1, 64) + " " + unit
	}
	return strconv.FormatFloat(math.Trunc(value*10)/10, 'f', 1, 64) + " " + unit
}

// abilities returns the display names of a user's permissions.
func (v *visit) abilities() []string {
	out := []string{"see posts"}
	for _, ability := range []struct {
		may  bool
		what string
	}{
		{v.may.seeAccounts, "see accounts"},
		{v.may.compose(), "write posts"},
		{v.may.upload, "upload files"},
		{v.may.update, "change and cancel posts"},
		{v.may.createSchedules && v.may.seeAccounts, "create schedules"},
		{v.may.changeSchedules, "change and suspend schedules"},
		{v.may.createNotifiers, "create notifications"},
		{v.may.changeNotifiers, "change and suspend notifications"},
		{v.may.connect, "connect accounts"},
		{v.may.reconnect, "connect accounts again"},
		{v.may.disconnect, "disconnect accounts"},
		{v.may.createKeys, "create API keys"},
		{v.may.changeKeys, "replace and revoke API keys"},
	} {
		if ability.may {
			out = append(out, ability.what)
		}
	}
	return out
}
