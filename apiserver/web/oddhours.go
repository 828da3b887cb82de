// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"slices"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// The form's choices between the two occurrences of a time in a repeated hour. Empty: not asked yet.
const (
	foldFirst  = "first"
	foldSecond = "second"
)

// oddHour is the error for a local time that a clock change skips or repeats.
type oddHour struct {
	local time.Time
	zone  *time.Location
	// twice reports that the time occurs twice; otherwise it does not occur at all.
	twice bool
}

func (e *oddHour) Error() string {
	before, after := changeIn(e.local, e.zone)
	day, clock, place := e.local.Format("2 January 2006"), e.local.Format(clockForm), placeOf(e.zone)
	if e.twice {
		return clock + " comes twice in " + place + " on " + day + ", because clocks go back from " + before.Format(clockForm) + " to " + after.Format(clockForm) +
			"; choose one of the two"
	}
	return "there is no " + clock + " in " + place + " on " + day + ", because clocks go forward from " + before.Format(clockForm) + " to " + after.Format(clockForm) +
		"; choose another time"
}

// whatToChoose returns the short text for an error about a time that the form already explains.
func whatToChoose(err error) string {
	odd, ok := errors.AsType[*oddHour](err)
	switch {
	case ok && odd.twice:
		return "Choose one of the two times."
	case ok:
		return "Choose another time."
	default:
		return sentence(err.Error())
	}
}

// entered returns the entered date and time, or false if there is none. Its zone has no meaning.
func (w *writing) entered() (time.Time, bool) {
	local, err := time.Parse(localForm, w.local)
	return local, err == nil
}

// time returns the scheduled time, or nil to publish immediately. The script's time applies only if it matches the
// entered time: a form that is sent without the script still contains an earlier one.
func (w *writing) time() (*time.Time, error) {
	if w.when != whenLater {
		return nil, nil //nolint:nilnil // nil means immediately
	}
	byScript, err := time.Parse(time.RFC3339, w.at)
	known := err == nil
	local, ok := w.entered()
	if !ok {
		if !known {
			return nil, errNoTime
		}
		return &byScript, nil
	}
	zone := zoneNamed(w.zone)
	found := instants(local, zone)
	matching := slices.IndexFunc(found, func(at time.Time) bool { return known && at.Equal(byScript.Truncate(time.Minute)) })
	switch {
	case len(found) == 0:
		return nil, &oddHour{local: local, zone: zone}
	case len(found) == 1:
	case w.fold == foldFirst, w.fold == foldSecond:
		if matching != w.chosen() {
			return &found[w.chosen()], nil
		}
	case matching < 0:
		return nil, &oddHour{local: local, zone: zone, twice: true}
	}
	if matching >= 0 {
		return &byScript, nil // with the seconds, which the field does not show
	}
	return &found[0], nil
}

// chosen returns the index of the chosen time in a repeated hour.
func (w *writing) chosen() int {
	if w.fold == foldSecond {
		return 1
	}
	return 0
}

// timeNoteID is the id of the note below the time's field.
const timeNoteID = "at-note"

// timeNote explains an entered time that does not exist or occurs twice, or shows it in the viewer's own time zone.
func (v *visit) timeNote(w *writing) g.Node {
	local, ok := w.entered()
	if !ok || w.when != whenLater {
		return nil
	}
	zone := zoneNamed(w.zone)
	switch found := instants(local, zone); len(found) {
	case 0:
		return notice(caution, paragraph(sentence((&oddHour{local: local, zone: zone}).Error())))
	case 1:
		if mine := v.forViewer(found[0]); mine != "" {
			return h.P(h.Class("soft"), g.Text(local.Format(clockForm)+" "+placeOf(zone)+" is "+mine+" for you ("+placeOf(v.own)+")."))
		}
		return nil
	default:
		before, after := changeIn(local, zone)
		label := func(which string, at time.Time) string {
			text := which + " (UTC" + at.In(zone).Format("-07:00") + ")"
			if mine := v.forViewer(at); mine != "" {
				text += ", " + mine + " for you"
			}
			return text
		}
		at, err := w.time()
		second := err == nil && at != nil && !at.Before(found[1])
		return h.Div(h.Class("note warning"), h.FieldSet(h.Class("fold"),
			h.Legend(g.Text(local.Format(clockForm)+" comes twice in "+placeOf(zone)+" that day: clocks go back from "+before.Format(clockForm)+" to "+after.Format(clockForm)+". Which one?")),
			foldChoice(foldFirst, label("The first", found[0]), !second && err == nil), foldChoice(foldSecond, label("The second", found[1]), second)))
	}
}

func foldChoice(value, label string, chosen bool) g.Node {
	id := "fold-" + value
	return h.P(h.Class("box"), h.Input(h.Type("radio"), h.ID(id), h.Name("fold"), h.Value(value), g.If(chosen, h.Checked())), h.Label(h.For(id), g.Text(label)))
}
