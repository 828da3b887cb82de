// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// Time layouts in the calendar's addresses and fields.
const (
	monthForm = "2006-01"
	dateForm  = "2006-01-02"
)

// perMonth limits the posts in a calendar. With more posts that can all be moved, the page would exceed 50 KB.
const perMonth = 300

// perDay limits the posts shown per day; the others are in a collapsed list.
const perDay = 5

// calendar shows a month's posts, by day in the viewer's time zone.
func (s *Site) calendar(w http.ResponseWriter, v *visit) error {
	f := filtersOf(v.URL.Query())
	// Count days in UTC: in some time zones the clocks skip a midnight.
	month, err := time.Parse(monthForm, v.URL.Query().Get("month"))
	if err != nil || month.Year() < 2000 || month.Year() > 2900 {
		today := v.now.In(v.zone)
		month = time.Date(today.Year(), today.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	first := month.AddDate(0, 0, -(int(month.Weekday())+6)%7) // the Monday before
	weeks := 0
	for day := first; day.Before(month.AddDate(0, 1, 0)); day = day.AddDate(0, 0, 7) {
		weeks++
	}
	end := first.AddDate(0, 0, 7*weeks)
	status, asked := f.states()
	found, err := s.Service.FindPosts(v.Context(), v.caller,
		&postindex.Search{From: v.midnight(first), To: v.midnight(end), Status: status, Undecided: asked, Platform: f.platform, Limit: perMonth})
	if err != nil {
		return err
	}
	narrow, err := s.narrow(v, "calendar", f, "month", month.Format(monthForm))
	if err != nil {
		return err
	}
	byDay := map[string][]postindex.Summary{}
	for _, post := range found.Posts {
		day := post.DisplayAt.In(v.zone).Format(dateForm)
		byDay[day] = append(byDay[day], post)
	}
	s.render(w, v, http.StatusOK, view{
		title: month.Format("January 2006"), place: placeCalendar, wide: true,
		actions: []g.Node{s.months(v, month, f)},
		content: []g.Node{
			h.Div(h.Data("in-zone", v.zone.String())),
			narrow,
			g.If(found.Total > len(found.Posts), notice(neutral, paragraph("This month has more posts than a calendar can show. Choose a state or a platform."))),
			s.month(v, month, first, weeks, byDay),
			h.P(h.Class("soft"), g.Text("Days and times are in "+v.zone.String()+". "), g.If(v.may.update, g.Text("Drag a scheduled post to another day, or open it to choose a time."))),
		},
	})
	return nil
}

// midnight returns the start of a calendar day in the viewer's time zone.
func (v *visit) midnight(day time.Time) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, v.zone)
}

func (s *Site) months(v *visit, month time.Time, f filters) g.Node {
	step := func(to time.Time, icon, label string) g.Node {
		return h.A(h.Class("button square"), h.Href(v.path("calendar")+f.query("month", to.Format(monthForm))), h.Aria("label", label), drawing(icon))
	}
	return h.Nav(h.Class("months"), h.Aria("label", "Months"),
		step(month.AddDate(0, -1, 0), "before", "Previous month"),
		link(v.path("calendar")+f.query(), "Today", ""),
		step(month.AddDate(0, 1, 0), "after", "Next month"),
	)
}

func (s *Site) month(v *visit, month, first time.Time, weeks int, byDay map[string][]postindex.Summary) g.Node {
	return h.Table(h.Class("month"),
		h.Caption(h.Class("hidden"), g.Text("Posts of "+month.Format("January 2006"))),
		h.THead(h.Tr(g.Map(indexes(7), func(i int) g.Node {
			day := first.AddDate(0, 0, i)
			return h.Th(h.Scope("col"), g.El("abbr", h.Title(day.Format("Monday")), g.Text(day.Format("Mon"))))
		}))),
		h.TBody(g.Map(indexes(weeks), func(week int) g.Node {
			return h.Tr(g.Map(indexes(7), func(i int) g.Node {
				return s.day(v, month, first.AddDate(0, 0, 7*week+i), byDay)
			}))
		})),
	)
}

func (s *Site) day(v *visit, month, day time.Time, byDay map[string][]postindex.Summary) g.Node {
	date := day.Format(dateForm)
	posts := byDay[date]
	slices.Reverse(posts) // lists are newest first, days earliest first
	class := "day"
	if day.Month() != month.Month() {
		class += " outside"
	}
	today := date == v.now.In(v.zone).Format(dateForm)
	if today {
		class += " today"
	}
	writable := v.may.compose() && !day.AddDate(0, 0, 1).Before(v.now)
	return h.Td(h.Class(class), h.Data("day", date),
		g.If(writable, h.A(h.Class("on-day"), h.Href(v.path("posts/new")+"?day="+date), h.Aria("label", "New post on "+day.Format("2 January")), drawing("plus"))),
		h.Span(h.Class("date"), h.Time(h.DateTime(date), g.If(today, h.Aria("current", "date")),
			h.Span(h.Class("hidden narrow-day"), g.Text(day.Format("Monday, "))), g.Text(strconv.Itoa(day.Day())), h.Span(h.Class("hidden"), g.Text(day.Format(" January"))))),
		g.If(len(posts) > 0, h.Ul(g.Map(posts[:min(len(posts), perDay)], func(p postindex.Summary) g.Node { return s.entry(v, &p) }))),
		g.If(len(posts) > perDay, h.Details(h.Summary(g.Text(strconv.Itoa(len(posts)-perDay)+" more")),
			h.Ul(g.Map(posts[min(len(posts), perDay):], func(p postindex.Summary) g.Node { return s.entry(v, &p) })))),
	)
}

// entry is a post on its day. The page's script submits a dragged post's form with its new day.
func (s *Site) entry(v *visit, p *postindex.Summary) g.Node {
	moves := v.may.update && p.Status == v1alpha1.PhaseScheduled
	at, stands := p.DisplayAt.In(v.zone), displayStatusOf(p)
	return h.Li(h.Class("entry is-"+stands.class), g.If(moves, h.Data("post", p.ID)),
		h.A(h.Href(v.path("posts/"+p.ID)), h.Draggable("false"),
			h.Time(h.DateTime(p.DisplayAt.UTC().Format(time.RFC3339)), h.Data("show", "time"), g.Text(at.Format("15:04"))),
			g.Text(" "), h.Span(h.Class("entry-title"), g.Text(titleOfPost(p))), g.Text(" "),
			h.Span(h.Class("hidden"), g.Text(stands.word+", ")), chips(p)),
		g.If(moves, h.Details(h.Class("move"), h.Summary(h.Aria("label", "Move "+titleOfPost(p)), g.Text("Move")), s.moveForm(v, p, at))),
	)
}

// moveForm is the form that moves a scheduled post. The page's script submits it when a post is dragged to another day.
func (s *Site) moveForm(v *visit, p *postindex.Summary, at time.Time) g.Node {
	has := p.DisplayAt.UTC().Format(time.RFC3339Nano)
	return form(v.path("posts/"+p.ID+"/reschedule"), "",
		hidden("scheduled_at", has), hidden("from", has), hidden("zone", v.zone.String()), hidden("back", v.URL.RequestURI()),
		h.Label(g.Text("New time "), h.Input(h.Type("datetime-local"), h.Name("at"), h.Data("utc", "scheduled_at"), h.Value(at.Format(localForm)), h.Required())),
		submit("Move", "small"))
}
