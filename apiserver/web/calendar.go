// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Time layouts in the calendar's addresses and fields.
const (
	monthForm = "2006-01"
	dateForm  = "2006-01-02"
)

// longDateForm is the layout of a date in a heading.
const longDateForm = "2 January 2006"

// span is one of the calendar's views.
type span string

const (
	spanMonth  span = "month"
	spanWeek   span = "week"
	spanAgenda span = "agenda"
)

var spans = []span{spanMonth, spanWeek, spanAgenda}

var spanNames = map[span]string{spanMonth: "Month", spanWeek: "Week", spanAgenda: "Agenda"}

// calendar is a request for the calendar.
type calendar struct {
	filters

	span span
	// day is the anchor, a midnight in UTC: days are counted in UTC, because in some time zones the clocks skip a midnight.
	day time.Time
	// firstDay is the first day of the viewer's week.
	firstDay time.Weekday
}

// weekCookie is the cookie with the first day of the viewer's week, from 1 for Monday to 7, which the page's script sets.
const weekCookie = "week"

// firstDayOf returns the first day of the viewer's week: Monday while it is unknown.
func firstDayOf(r *http.Request) time.Weekday {
	cookie, err := r.Cookie(weekCookie)
	if err != nil {
		return time.Monday
	}
	day, err := strconv.ParseUint(cookie.Value, 10, 8)
	if err != nil || day < 1 || day > 7 {
		return time.Monday
	}
	return time.Weekday(day % 7)
}

// calendarOf parses a calendar's address. An older kind of address has a month instead of a date.
func (v *visit) calendarOf() calendar {
	query := v.URL.Query()
	c := calendar{filters: filtersOf(query), span: spanMonth, firstDay: firstDayOf(v.Request)}
	c.from, c.to = "", "" // the span sets them
	if of := span(query.Get("view")); spanNames[of] != "" {
		c.span = of
	}
	if day, ok := dayIn(query.Get("date")); ok {
		c.day = day
	} else if day, ok := dayIn(query.Get("month") + "-01"); ok {
		c.day = day
	} else {
		c.day = v.today()
	}
	return c
}

// today returns the date in the page's time zone, as a midnight in UTC.
func (v *visit) today() time.Time { return v.dateAt(v.now) }

// dateAt returns a time's date in the page's time zone, as a midnight in UTC.
func (v *visit) dateAt(at time.Time) time.Time {
	at = at.In(v.zone)
	return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
}

// midnight returns the start of a calendar day in the viewer's time zone.
func (v *visit) midnight(day time.Time) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, v.zone)
}

// params returns the parameters of a calendar's address, besides the filters.
func (c calendar) params() []string {
	return []string{"view", string(c.span), "date", c.day.Format(dateForm)}
}

// at returns the address of a view with the same filters.
func (c calendar) at(v *visit, of span, day time.Time) string {
	c.span, c.day = of, day
	return v.path(string(placeCalendar)) + c.query(c.params()...)
}

// title names the days that are shown.
func (c calendar) title() string {
	switch c.span {
	case spanWeek:
		first, last := c.week()
		return first.Format("2 January") + " to " + last.Format("2 January 2006")
	case spanAgenda:
		return "From " + c.day.Format("2 January 2006")
	case spanMonth:
		return c.day.Format("January 2006")
	default:
		return ""
	}
}

// heading is the title with dates that the page's script shows in the viewer's language.
func (c calendar) heading() g.Node {
	switch c.span {
	case spanWeek:
		first, last := c.week()
		return g.Group{dateIn(first, "day", "2 January"), g.Text(" to "), dateIn(last, "long", longDateForm)}
	case spanAgenda:
		return g.Group{g.Text("From "), dateIn(c.day, "long", longDateForm)}
	case spanMonth:
		return dateIn(c.day, "month", "January 2006")
	default:
		return nil
	}
}

// dateIn shows a date. The page's script shows it in the viewer's language, in a style that times.js names.
func dateIn(day time.Time, style, layout string) g.Node {
	return h.Time(h.DateTime(day.Format(dateForm)), h.Data("show", style), g.Text(day.Format(layout)))
}

// step returns the anchor of the previous (-1) or next (1) view.
func (c calendar) step(by int) time.Time {
	switch c.span {
	case spanWeek:
		return c.day.AddDate(0, 0, 7*by)
	case spanAgenda:
		return c.day.AddDate(0, 0, by)
	case spanMonth:
		return time.Date(c.day.Year(), c.day.Month()+time.Month(by), 1, 0, 0, 0, 0, time.UTC)
	default:
		return c.day
	}
}

// weekStart returns the first day of a day's week.
func (c calendar) weekStart(day time.Time) time.Time {
	return day.AddDate(0, 0, -(int(day.Weekday())-int(c.firstDay)+7)%7)
}

// week returns the first and the last day of the anchor's week.
func (c calendar) week() (first, last time.Time) {
	first = c.weekStart(c.day)
	return first, first.AddDate(0, 0, 6)
}

// calendar shows the posts of a month, a week or the agenda, by day, in the viewer's time zone.
func (s *Site) calendar(w http.ResponseWriter, v *visit) error {
	c := v.calendarOf()
	narrow, err := s.narrow(v, string(placeCalendar), c.filters, c.params()...)
	if err != nil {
		return err
	}
	show := s.grid
	if c.span == spanAgenda {
		show = s.agenda
	}
	content, err := show(v, &c)
	if err != nil {
		return err
	}
	s.render(w, v, http.StatusOK, view{
		title: c.title(), heading: c.heading(), place: placeCalendar, wide: true, lists: true,
		actions: []g.Node{v.calendarMenu(&c)},
		content: []g.Node{
			h.Div(h.Data("in-zone", v.zone.String()), h.Data("week", strconv.Itoa((int(c.firstDay)+6)%7+1))),
			narrow,
			content,
			h.P(h.Class("soft"), g.Text("Days and times are in "+v.zone.String()+". "), s.reach(v, c.filters),
				g.If(v.may.update && c.span != spanAgenda, h.Span(h.Class("by-mouse"), g.Text(" Drag a scheduled post to another day, or open it to choose a time.")))),
		},
	})
	return nil
}

// calendarMenu is the menu for choosing the view and the days.
func (v *visit) calendarMenu(c *calendar) g.Node {
	step := func(by int, icon, label string) g.Node {
		return h.A(h.Class("button square"), h.Href(c.at(v, c.span, c.step(by))), h.Aria("label", label), drawing(icon))
	}
	unit := map[span]string{spanMonth: "month", spanWeek: "week", spanAgenda: "day"}[c.span]
	return g.Group{
		g.If(v.may.seeSchedules, link(v.path(pageSchedules), "Recurring posts", "")),
		h.Nav(h.Aria("label", "View"), h.Ul(h.Class("tabs"), g.Map(spans, func(of span) g.Node {
			return h.Li(h.A(h.Href(c.at(v, of, c.day)), g.If(of == c.span, h.Aria("current", "true")), g.Text(spanNames[of])))
		}))),
		h.Nav(h.Class("months"), h.Aria("label", "Days"),
			step(-1, paramBefore, "Previous "+unit),
			link(c.at(v, c.span, v.today()), "Today", ""),
			step(1, paramAfter, "Next "+unit),
		),
	}
}

// dayName is a day in a link's hidden text.
func dayName(day time.Time) string { return day.Format("2 January") }

// newOn links to the form for a post on a day, unless the day is over.
func (v *visit) newOn(day time.Time) g.Node {
	return g.If(v.may.compose() && !v.isOver(day), h.A(h.Class("on-day"), h.Href(v.path("posts/new")+"?day="+day.Format(dateForm)), h.Aria("label", "New post on "+dayName(day)), g.Text("+")))
}

// isOver reports whether a calendar day has ended in the page's time zone.
func (v *visit) isOver(day time.Time) bool { return !v.midnight(day.AddDate(0, 0, 1)).After(v.now) }

func dayOfMonth(day time.Time) string { return strconv.Itoa(day.Day()) }
