// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	texts "github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting/recurrence"
)

// pageSchedules is the path of the schedules' page.
const pageSchedules = "schedules"

// schedules lists the team's schedules.
func (s *Site) schedules(w http.ResponseWriter, v *visit) error {
	all, err := s.Service.ListSchedules(v.Context(), v.caller)
	if err != nil {
		return err
	}
	writes := v.may.createSchedules && v.may.seeAccounts
	toNew := g.If(writes, link(v.path(pageSchedules+"/new"), "New schedule", "primary"))
	content := []g.Node{empty("No schedule yet", "A schedule creates a post again and again, such as every Monday at nine. Its texts can alternate.", toNew)}
	if len(all) > 0 {
		content = []g.Node{
			h.P(h.Class("soft"), g.Text("Each post is created an hour before its time. From then on, it is in the calendar, and is changed or cancelled like any other.")),
			h.Ul(h.Class("accounts"), g.Map(all, func(of bridge.Schedule) g.Node { return s.scheduleCard(v, &of) })),
		}
	}
	s.render(w, v, http.StatusOK, view{title: "Recurring posts", place: placeCalendar, content: content, actions: []g.Node{g.If(len(all) > 0, toNew)}})
	return nil
}

// scheduleState is a schedule's displayed state.
type scheduleState struct {
	tone  tone
	label string
	// problem explains why no post is created; empty if there is no problem.
	problem string
}

func stateOfSchedule(of *bridge.Schedule) scheduleState {
	ready := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case of.Spec.Suspend:
		return scheduleState{neutral, "Suspended", ""}
	case ready == nil || of.Status.ObservedGeneration != of.Generation:
		return scheduleState{neutral, "Being checked", ""}
	case ready.Reason == v1alpha1.ReasonScheduled:
		return scheduleState{good, "Active", ""}
	case ready.Reason == v1alpha1.ReasonComplete:
		return scheduleState{neutral, "Complete", ""}
	case ready.Reason == v1alpha1.ReasonSuspended:
		return scheduleState{neutral, "Waits for the team", ""}
	case ready.Reason == v1alpha1.ReasonInvalid:
		return scheduleState{bad, "Needs a change", ready.Message}
	default:
		return scheduleState{caution, "Waits", ready.Message}
	}
}

func (s *Site) scheduleCard(v *visit, of *bridge.Schedule) g.Node {
	state, at := stateOfSchedule(of), v.path(pageSchedules+"/"+of.Name)
	ask := "Suspend this schedule? No posts are created until you resume it. Posts that exist already are published."
	return h.Li(h.Class("card account"), h.ID(of.Name),
		h.Div(h.Class("target-head"), h.Span(h.Class("account"), h.H2(g.Text(of.Name)), h.Span(h.Class("soft"), g.Text(inWordsOfRule(of.Spec.Schedule)+", "+placeOf(of.Zone)))),
			h.Span(h.Class("badge kind-"+string(state.tone)), g.Text(state.label))),
		g.If(state.problem != "", notice(state.tone, paragraph(sentence(state.problem)))),
		g.If(of.Warning != "", notice(caution, paragraph(xRepeats))),
		h.Dl(h.Class("small"),
			fact("Text", textsOf(&of.Spec)),
			fact("Goes to", g.Map(of.Spec.Template.Targets, func(t v1alpha1.PostTarget) g.Node { return chipOf(s.account(v, t.ConnectionRef.Name)) })),
			nextFact(v, of, state),
			g.Iff(of.Status.LastScheduledTime != nil, func() g.Node { return fact("Last post", lastPost(v, of)) }),
			g.If(of.Spec.Count != nil, fact("Posts", g.Text(strconv.Itoa(int(of.Status.Posts))+postsLimit(of.Spec.Count)))),
		),
		h.Div(h.Class("actions"),
			g.If(v.may.changeSchedules && v.may.seeAccounts, link(at, "Edit", "small")),
			g.If(v.may.changeSchedules && !of.Spec.Suspend, form(at+"/suspend", ask, h.Button(h.Type("submit"), h.Class("button small"), h.Aria("label", "Suspend "+of.Name), g.Text("Suspend")))),
			g.If(v.may.changeSchedules && of.Spec.Suspend, form(at+"/resume", "", h.Button(h.Type("submit"), h.Class("button small primary"), h.Aria("label", "Resume "+of.Name), g.Text("Resume")))),
			g.If(v.may.deleteSchedules, link(at+"/delete", "Delete…", "small danger")),
		),
	)
}

func postsLimit(count *int32) string {
	if count == nil {
		return ""
	}
	return " of " + strconv.Itoa(int(*count))
}

func chipOf(account *v1alpha1.Connection) g.Node {
	if account == nil {
		return h.Span(h.Class("soft"), g.Text("an account that is not connected "))
	}
	return g.Group{chip(account.Spec.Platform), g.Text(" ")}
}

// longestText limits the length of a text in a list, in characters.
const longestText = 120

// textsOf shows the first of a schedule's texts, and how many others there are.
func textsOf(spec *v1alpha1.PostScheduleSpec) g.Node {
	first := ""
	switch {
	case len(spec.Texts) > 0:
		first = spec.Texts[0]
	case len(spec.Template.Targets) > 0:
		first = spec.Template.Targets[0].Caption
	}
	more := ""
	if n := len(spec.Texts); n > 1 {
		more = " and " + plural(n-1, "other") + ", in turn"
	}
	return g.Group{h.Span(h.Dir("auto"), g.Text(texts.Truncate(first, longestText))), g.If(more != "", h.Span(h.Class("soft"), g.Text(more)))}
}

func nextFact(v *visit, of *bridge.Schedule, state scheduleState) g.Node {
	switch {
	case of.Spec.Suspend:
		return fact("Next post", g.Text("none while it is suspended"))
	case len(of.Upcoming) == 0 || state.tone == bad:
		return fact("Next post", g.Text("none"))
	default:
		return fact("Next post", v.moment(of.Upcoming[0]))
	}
}

// lastPost links to the post of the last occurrence.
func lastPost(v *visit, of *bridge.Schedule) g.Node {
	at := of.Status.LastScheduledTime.Time
	post := recurrence.PostOf(of.PostSchedule, recurrence.Occurrence{At: at})
	return h.A(h.Href(v.path("posts/"+post.Name)), v.moment(at))
}

// xRepeats is the warning about schedules whose posts X may reject.
const xRepeats = "X rejects a post whose text repeats a recent one, and does not say how recent. This schedule sends the same text to X each time. Add more texts, which then take turns."

// suspendSchedule and resumeSchedule change whether a schedule creates posts.
func (s *Site) suspendSchedule(w http.ResponseWriter, v *visit) error {
	if _, err := s.Service.SuspendSchedule(v.Context(), v.caller, v.PathValue("id"), true); err != nil {
		return err
	}
	v.redirect(w, pageSchedules, wordSuspended)
	return nil
}

func (s *Site) resumeSchedule(w http.ResponseWriter, v *visit) error {
	if _, err := s.Service.SuspendSchedule(v.Context(), v.caller, v.PathValue("id"), false); err != nil {
		return err
	}
	v.redirect(w, pageSchedules, wordResumed)
	return nil
}

// confirmDelete asks for confirmation, and states what will be deleted.
func (s *Site) confirmDelete(w http.ResponseWriter, v *visit) error {
	of, err := s.Service.GetSchedule(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	effects := []string{"No further posts are created."}
	if last := of.Status.LastScheduledTime; last != nil && last.After(v.now) {
		effects = append(effects, "The posts that exist and are not published yet are withdrawn: the next is due on "+v.momentText(v.firstWaiting(&of))+".")
	}
	if of.Status.Posts > 0 {
		effects = append(effects, "The posts that it has created are deleted from Herald, also those that are published. What is published stays on the platforms.")
	}
	s.render(w, v, http.StatusOK, view{
		title: "Delete " + of.Name, place: placeCalendar, content: []g.Node{h.Section(h.Class("card"),
			h.H2(g.Text("What happens")), items(effects),
			h.P(h.Class("soft"), g.Text("To keep the posts, suspend the schedule instead.")),
			h.Div(h.Class("actions"),
				form(v.path(pageSchedules+"/"+of.Name+"/delete"), "", submit("Delete the schedule", "danger")),
				g.If(v.may.changeSchedules && !of.Spec.Suspend, form(v.path(pageSchedules+"/"+of.Name+"/suspend"), "", submit("Suspend it", ""))),
				link(v.path(pageSchedules), "Cancel", "quiet")),
		)},
	})
	return nil
}

// firstWaiting returns the time of a schedule's first post that may exist and is not published yet.
func (v *visit) firstWaiting(of *bridge.Schedule) time.Time {
	if of.Rule != nil {
		if next := of.Rule.Next(v.now); !next.IsZero() && next.Before(of.Status.LastScheduledTime.Time) {
			return next
		}
	}
	return of.Status.LastScheduledTime.Time
}

func (s *Site) deleteSchedule(w http.ResponseWriter, v *visit) error {
	if err := s.Service.DeleteSchedule(v.Context(), v.caller, v.PathValue("id")); err != nil {
		return err
	}
	v.redirect(w, pageSchedules, wordScheduleGone)
	return nil
}

// inWordsOfRule describes a cron expression, or returns it if the form has no simple controls for it.
func inWordsOfRule(expression string) string {
	r := repeatOf(expression)
	switch r.every {
	case everyDay:
		return "Every day at " + r.clock
	case everyWeek:
		var days []string
		for _, day := range weekdays {
			if slices.Contains(r.weekdays, day) {
				days = append(days, dayOfWeek(day).String()+"s")
			}
		}
		return strings.Join(days, ", ") + " at " + r.clock
	case everyMonth:
		return "On day " + r.monthday + " of each month at " + r.clock
	case byExpression:
		return expression
	default:
		return expression
	}
}

func dayOfWeek(number string) time.Weekday {
	n, _ := strconv.Atoi(number) // one of weekdays
	return time.Weekday(n)
}
