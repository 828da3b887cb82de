// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/bridge"
)

// every is a choice in the schedule form for how to repeat a post.
type every string

const (
	everyDay   every = "day"
	everyWeek  every = "week"
	everyMonth every = "month"
	// byExpression repeats according to a cron expression.
	byExpression every = "cron"
)

var everyNames = map[every]string{everyDay: "Every day", everyWeek: "Every week", everyMonth: "Every month", byExpression: "Advanced"}

// weekdays are the days of the week in cron expressions, in the order of the form.
var weekdays = []string{"1", "2", "3", "4", "5", "6", "0"}

// repeat is a cron expression as the schedule form represents it: with the simple controls, or as an expression.
type repeat struct {
	every every
	// clock is the time of day, as browsers write it (HTML, "valid time string").
	clock string
	// weekdays are numbers from 0 for Sunday; monthday is from 1 to 31.
	weekdays   []string
	monthday   string
	expression string
}

var simple = regexp.MustCompile(`^([0-5]?\d) ([01]?\d|2[0-3]) (\*|[1-9]|[12]\d|3[01]) \* (\*|[0-6](?:,[0-6])*)$`)

// repeatOf returns the controls for a cron expression.
func repeatOf(expression string) repeat {
	r := repeat{every: byExpression, clock: "09:00", weekdays: []string{"1"}, monthday: "1", expression: expression}
	parts := simple.FindStringSubmatch(expression)
	if len(parts) == 0 || parts[3] != "*" && parts[4] != "*" { // cron matches if either day does
		return r
	}
	minute, _ := strconv.Atoi(parts[1])
	hour, _ := strconv.Atoi(parts[2])
	r.clock = time.Date(0, 1, 1, hour, minute, 0, 0, time.UTC).Format(clockForm)
	switch {
	case parts[4] != "*":
		r.every, r.weekdays = everyWeek, strings.Split(parts[4], ",")
	case parts[3] != "*":
		r.every, r.monthday = everyMonth, parts[3]
	default:
		r.every = everyDay
	}
	return r
}

func readRepeat(form url.Values) repeat {
	r := repeat{
		every: every(form.Get("repeat")), clock: form.Get("time"), weekdays: form["weekday"], monthday: form.Get("monthday"), expression: strings.TrimSpace(form.Get("cron")),
	}
	if everyNames[r.every] == "" {
		r.every = everyDay
	}
	return r
}

// Errors of the simple controls.
var (
	errNoClock   = errors.New("choose the time of day")
	errNoWeekday = errors.New("choose at least one day of the week")
	errNoDay     = errors.New("choose a day of the month, from 1 to 31")
)

// cron returns the cron expression that the controls select.
func (r *repeat) cron() (string, error) {
	if r.every == byExpression {
		return r.expression, nil
	}
	at, err := time.Parse(clockForm, r.clock)
	if err != nil {
		return "", errNoClock
	}
	clock := strconv.Itoa(at.Minute()) + " " + strconv.Itoa(at.Hour())
	switch r.every {
	case everyWeek:
		var days []string
		for _, day := range weekdays {
			if slices.Contains(r.weekdays, day) {
				days = append(days, day)
			}
		}
		if len(days) == 0 {
			return "", errNoWeekday
		}
		slices.Sort(days)
		return clock + " * * " + strings.Join(days, ","), nil
	case everyMonth:
		day, err := strconv.Atoi(r.monthday)
		if err != nil || day < 1 || day > 31 {
			return "", errNoDay
		}
		return clock + " " + strconv.Itoa(day) + " * *", nil
	case everyDay, byExpression:
	}
	return clock + " * * *", nil
}

// repeatFields are the controls for when a schedule repeats.
func repeatFields(r *repeat) g.Node {
	return g.Group{
		h.FieldSet(h.Class("kinds"), h.Legend(g.Text("Repeat")), g.Map([]every{everyDay, everyWeek, everyMonth, byExpression}, func(e every) g.Node {
			return choice("repeat", string(e), everyNames[e], r.every == e)
		})),
		h.FieldSet(h.Class("boxes on-week"), h.Legend(g.Text("On")), g.Map(weekdays, func(day string) g.Node {
			id := "weekday-" + day
			return h.Span(h.Class("box"), h.Input(h.Type("checkbox"), h.ID(id), h.Name("weekday"), h.Value(day), g.If(slices.Contains(r.weekdays, day), h.Checked())),
				h.Label(h.For(id), g.Text(dayOfWeek(day).String())))
		})),
		h.P(h.Class("field on-month"), h.Label(h.For("monthday"), g.Text("Day of the month")),
			h.Input(h.Type("number"), h.ID("monthday"), h.Name("monthday"), h.Min("1"), h.Max("31"), h.Value(r.monthday), h.Aria("describedby", "monthday-help")),
			h.Span(h.ID("monthday-help"), h.Class("soft"), g.Text("Months that do not have this day are left out."))),
		h.P(h.Class("field on-clock"), h.Label(h.For("time"), g.Text("Time of day")), h.Input(h.Type("time"), h.ID("time"), h.Name("time"), h.Value(r.clock))),
		h.P(h.Class("field on-cron"), h.Label(h.For("cron"), g.Text("Cron expression")),
			h.Input(h.ID("cron"), h.Name("cron"), h.Value(r.expression), h.MaxLength("128"), h.AutoComplete("off"), g.Attr("spellcheck", "false"), h.Placeholder("0 9 * * 1"), h.Aria("describedby", "cron-help")),
			h.Span(h.ID("cron-help"), h.Class("soft"), g.Text("Minute, hour, day of the month, the month, day of the week. 30 8 * * 1-5 is half past eight from Monday to Friday."))),
	}
}

// upcoming lists the next times of a schedule, with an explanation where a clock change affects one.
func (v *visit) upcoming(of *bridge.Schedule) g.Node {
	if of.Rule == nil {
		return nil
	}
	if len(of.Upcoming) == 0 {
		return notice(caution, paragraph("There is no such time before the end, so no post is created."))
	}
	inZone := *v
	inZone.zone = of.Zone
	return h.Ol(h.Class("list upcoming"), g.Map(of.Upcoming, func(at time.Time) g.Node {
		note := clockNote(of, at)
		// This does not use moment, whose times the page's script shows in the page's time zone.
		return h.Li(h.Time(h.DateTime(at.UTC().Format(time.RFC3339)), g.Text(at.In(of.Zone).Format("Monday")+", "+inZone.momentText(at))),
			g.If(note != "", h.P(h.Class("soft"), g.Text(note))))
	}))
}

// clockNote explains an occurrence in an hour that clocks skip or repeat.
func clockNote(of *bridge.Schedule, at time.Time) string {
	local, place := at.In(of.Zone), placeOf(of.Zone)
	before, after := changeIn(local, of.Zone)
	if selected := of.Rule.Selected(at); selected.Format(localForm) != local.Format(localForm) {
		return "There is no " + selected.Format(clockForm) + " in " + place + " on this day, because clocks go forward from " + before.Format(clockForm) + " to " + after.Format(clockForm) +
			": this post moves by as much."
	}
	if len(instants(local, of.Zone)) > 1 {
		return local.Format(clockForm) + " comes twice in " + place + " on this day, because clocks go back from " + before.Format(clockForm) + " to " + after.Format(clockForm) +
			": the post is published once, the first time."
	}
	return ""
}
