// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images from scratch have no time zone database

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// zoneCookie is the cookie with the viewer's time zone, which the page's script sets.
const zoneCookie = "zone"

// zoneOf returns the viewer's time zone, or nil while it is unknown.
func zoneOf(r *http.Request) *time.Location {
	cookie, err := r.Cookie(zoneCookie)
	if err != nil || len(cookie.Value) > 64 {
		return nil
	}
	name, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		return nil
	}
	return loadZone(name)
}

// zoneNamed returns a time zone from the IANA database, or UTC for an unknown name.
func zoneNamed(name string) *time.Location {
	if zone := loadZone(name); zone != nil {
		return zone
	}
	return time.UTC
}

// loadZone returns a time zone from the IANA database, or nil for an unknown name.
func loadZone(name string) *time.Location {
	if name == "" || name == "Local" {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}

// useZone selects the time zone of a page: the team's, or else the viewer's, or else UTC. own remains the viewer's.
func (v *visit) useZone(team *v1alpha1.Team) {
	v.teamZone = loadZone(team.Spec.TimeZone)
	switch {
	case v.teamZone != nil:
		v.zone = v.teamZone
	case v.own != nil:
		v.zone = v.own
	default:
		v.zone = time.UTC
	}
}

// placeOf returns a time zone's short name: the city in its IANA name.
func placeOf(zone *time.Location) string {
	name := zone.String()
	return strings.ReplaceAll(name[strings.LastIndexByte(name, '/')+1:], "_", " ")
}

// Layouts of displayed times.
const (
	dayForm    = "2 Jan 2006"
	clockForm  = "15:04"
	momentForm = dayForm + ", " + clockForm
	// nearForm is the format of a time next to another one that is at most a day away.
	nearForm = "2 Jan, " + clockForm
	longForm = "Monday, 2 January 2006, 15:04:05 MST"
)

// moment shows a time with its zone. The page's script shows it in the viewer's language.
func (v *visit) moment(at time.Time) g.Node {
	return h.Time(h.DateTime(at.UTC().Format(time.RFC3339)), h.Data("show", "both"), h.Title(at.In(v.zone).Format(longForm)), g.Text(v.momentText(at)))
}

func (v *visit) momentText(at time.Time) string {
	text := at.In(v.zone).Format(momentForm) + " " + placeOf(v.zone)
	if mine := v.forViewer(at); mine != "" {
		text += " (" + mine + " for you)"
	}
	return text
}

// forViewer returns a time on the viewer's own clock, with the day if it differs, or "" if the clock shows the same
// time or its zone is unknown.
func (v *visit) forViewer(at time.Time) string {
	if v.own == nil {
		return ""
	}
	shown, mine := at.In(v.zone), at.In(v.own)
	switch {
	case mine.Format(localForm) == shown.Format(localForm):
		return ""
	case mine.Format(dateForm) == shown.Format(dateForm):
		return mine.Format(clockForm)
	default:
		return mine.Format(nearForm)
	}
}

// about shows how far away a time is, in one unit.
func (v *visit) about(at time.Time) g.Node {
	return h.Time(h.DateTime(at.UTC().Format(time.RFC3339)), h.Title(at.In(v.zone).Format(longForm)), g.Text(distance(at.Sub(v.now))))
}

// instants returns the times at which clocks in a zone show a local time, earliest first. There are none in an hour
// that a clock change skips, and two in an hour that it repeats. Only the local time's fields matter, not its zone.
func instants(local time.Time, zone *time.Location) []time.Time {
	local = time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), time.UTC)
	var found []time.Time
	for _, beside := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := local.Add(beside).In(zone).Zone()
		at := local.Add(-time.Duration(offset) * time.Second)
		if at.In(zone).Format(localForm) == local.Format(localForm) && !slices.ContainsFunc(found, at.Equal) {
			found = append(found, at)
		}
	}
	return found
}

// changeIn returns the times that clocks in a zone show right before and after the clock change on, or in the night
// before, the day of a local time.
func changeIn(local time.Time, zone *time.Location) (before, after time.Time) {
	_, change := local.Add(-24 * time.Hour).In(zone).ZoneBounds()
	_, offset := change.Add(-time.Nanosecond).In(zone).Zone()
	return change.UTC().Add(time.Duration(offset) * time.Second), change.In(zone)
}
