// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
	texts "github.com/herald-social/herald/internal/text"
)

// perDay limits the posts that are shown for a day, to keep the page below 100 KB. The day links to its agenda, which
// lists all of them.
var perDay = map[span]int{spanMonth: 3, spanWeek: 18}

// shortHeading is the maximum length of a heading in a calendar, where only two lines in a narrow column are visible.
const shortHeading = 44

// grid is a month or a week as a table with a row for each week.
type grid struct {
	*calendar

	s *Site
	v *visit
	// first is the first day of the table. It may belong to the previous month.
	first time.Time
	weeks int
	days  []postindex.Day
	// planned are the posts that schedules are going to create, by day.
	planned [][]planned
}

func (s *Site) grid(v *visit, c *calendar) (g.Node, error) {
	t := grid{calendar: c, s: s, v: v, first: c.weekStart(c.day), weeks: 1}
	if c.span == spanMonth {
		month := c.step(0)
		t.first, t.weeks = c.weekStart(month), 0
		for day := t.first; day.Before(month.AddDate(0, 1, 0)); day = day.AddDate(0, 0, 7) {
			t.weeks++
		}
	}
	bounds := make([]time.Time, 7*t.weeks+1)
	for i := range bounds {
		bounds[i] = v.midnight(t.first.AddDate(0, 0, i))
	}
	q := c.search(v)
	q.Limit = perDay[c.span]
	var err error
	t.days, err = s.Service.PostsByDay(v.Context(), v.caller, q, bounds)
	if err != nil {
		return nil, err
	}
	t.planned = make([][]planned, len(t.days))
	if len(c.pairs()) == 0 { // filters are about posts that exist
		if t.planned, err = s.plannedPosts(v, bounds); err != nil {
			return nil, err
		}
	}
	legend := slices.ContainsFunc(t.planned, func(day []planned) bool { return len(day) > 0 })
	return g.Group{
		t.table(), g.If(v.may.update, v.dragForm()),
		g.If(legend, h.P(h.Class("soft legend"), g.Text("Dashed entries are posts of schedules. They do not exist yet: each is created an hour before its time."))),
	}, nil
}

func (t *grid) table() g.Node {
	return h.Table(h.Class("month of-"+string(t.span)),
		h.Caption(h.Class("hidden"), g.Text("Posts of "+t.title())),
		h.THead(h.Tr(g.Map(indexes(7), func(i int) g.Node {
			day := t.first.AddDate(0, 0, i)
			return h.Th(h.Scope("col"), dateIn(day, "weekday", "Mon"))
		}))),
		h.TBody(g.Map(indexes(t.weeks), func(week int) g.Node {
			return h.Tr(g.Map(indexes(7), func(i int) g.Node { return t.cell(7*week + i) }))
		})),
	)
}

func (t *grid) cell(i int) g.Node {
	day, of := t.first.AddDate(0, 0, i), &t.days[i]
	class := "day"
	if t.span == spanMonth && day.Month() != t.day.Month() {
		class += " outside"
	}
	today := day.Equal(t.v.today())
	if today {
		class += " today"
	}
	date := day.Format(dateForm)
	return h.Td(h.Class(class), h.Data("day", date), g.If(t.v.isOver(day), h.Data("past", "")),
		h.Time(h.DateTime(date), g.If(today, h.Aria("current", "date")), h.Span(h.Class("hidden narrow-day"), g.Text(day.Format("Mon "))), g.Text(dayOfMonth(day))),
		t.v.newOn(day),
		g.If(of.Total > 0, g.Group{
			h.Ul(g.Map(of.Posts, func(p postindex.Summary) g.Node { return t.entry(&p) })),
			t.allOf(day, of),
		}),
		t.v.plannedEntries(t.planned[i]),
	)
}

// allOf links to a day's agenda, with the number of posts that are not shown or, on a phone, of all posts.
func (t *grid) allOf(day time.Time, of *postindex.Day) g.Node {
	left := of.Total - len(of.Posts)
	return h.A(h.Class(classes("all", left == 0, "complete")), h.Href(t.at(t.v, spanAgenda, day)),
		g.If(left > 0, h.Span(h.Class("left"), g.Text("+"+strconv.Itoa(left)+" more"))), h.Span(h.Class("count"), g.Text(strconv.Itoa(of.Total))),
		h.Span(h.Class("hidden"), g.Text(" on "+dayName(day))))
}

// entry is a post on its day. The page's script submits the page's form for a dragged post.
func (t *grid) entry(p *postindex.Summary) g.Node {
	moves := t.v.may.update && p.Status == v1alpha1.PhaseScheduled
	at, stands := p.DisplayAt.In(t.v.zone), displayStatusOf(p)
	return h.Li(h.Class("entry is-"+stands.class), g.If(moves, g.Attr("data-post")),
		h.A(h.Href(t.v.path("posts/"+p.ID)),
			h.Time(h.DateTime(p.DisplayAt.UTC().Format(time.RFC3339Nano)), h.Data("show", "time"), g.Text(at.Format("15:04"))),
			g.Text(" "), h.Span(h.Class("entry-title"), h.Dir("auto"), g.Text(texts.Truncate(headingOf(p), shortHeading))), g.Text(" "),
			h.Span(h.Class("hidden"), g.Text(stands.word+", ")), chipsWith(p, false)),
	)
}

// dragForm is the form for a dragged post: the page's script fills in the post's address and times.
func (v *visit) dragForm() g.Node {
	return h.Form(h.ID("drag"), h.Method("post"), h.Action(v.path(string(placeCalendar))), g.Attr("hidden"),
		hidden("scheduled_at", ""), hidden("at", ""), hidden("from", ""), hidden("zone", v.zone.String()), hidden("back", v.here()))
}

// moveForm is the form that moves a scheduled post.
func (v *visit) moveForm(id string, from time.Time) g.Node {
	has := from.UTC().Format(time.RFC3339Nano)
	return form(v.path("posts/"+id+"/reschedule"), "", h.Class("inline"),
		hidden("scheduled_at", has), hidden("from", has), hidden("zone", v.zone.String()),
		h.Label(h.For("move-to"), g.Text("New time")), h.Input(h.ID("move-to"), h.Type("datetime-local"), h.Name("at"), h.Data("utc", "scheduled_at"), h.Value(from.In(v.zone).Format(localForm)), h.Required()),
		submit("Move", "small"))
}
