// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	clocktesting "k8s.io/utils/clock/testing"
)

// month returns a month's calendar, by day.
func (w *world) month(t *testing.T, month, zone string) (days []string, entries map[string][]string) {
	t.Helper()
	r := newRequest(&editor, "/teams/"+acme+"/calendar?month="+month, nil)
	r.AddCookie(&http.Cookie{Name: zoneCookie, Value: strings.ReplaceAll(zone, "/", "%2F")})
	answer := w.serve(r)
	if answer.Code != http.StatusOK {
		t.Fatal(answer.Code, answer.Body)
	}
	entries = map[string][]string{}
	for _, cell := range elements(parsed(t, answer.Body.String()), "td") {
		day, _ := attribute(cell, "data-day")
		days = append(days, day)
		for n := range cell.Descendants() {
			if class, _ := attribute(n, "class"); n.Type == html.ElementNode && class == "entry-title" {
				entries[day] = append(entries[day], textOf(n))
			}
		}
	}
	return days, entries
}

// TestDaysOfAMonth verifies that a calendar has every day of its month once, in whole weeks starting on Monday, even in
// time zones whose clocks skip a midnight or a whole day.
func TestDaysOfAMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for name, tc := range map[string]struct {
		reason, month, zone, first, last string
	}{
		"Plain":     {"December 2026 begins on a Tuesday", "2026-12", "UTC", "2026-11-30", "2027-01-03"},
		"FourWeeks": {"a February that begins on a Monday", "2027-02", "UTC", "2027-02-01", "2027-02-28"},
		"SixWeeks":  {"a month that touches six weeks", "2027-08", "Europe/Berlin", "2027-07-26", "2027-09-05"},
		"Summer":    {"the hour that is skipped at night", "2027-03", "Europe/Berlin", "2027-03-01", "2027-04-04"},
		"Midnight":  {"in Chile the clocks skip a midnight", "2026-09", "America/Santiago", "2026-08-31", "2026-10-04"},
		"Cairo":     {"in Egypt too", "2027-04", "Africa/Cairo", "2027-03-29", "2027-05-02"},
		"FirstDay":  {"Paraguay skipped the midnight of a first of October", "2017-10", "America/Asuncion", "2017-09-25", "2017-11-05"},
		"Monday":    {"Lebanon's skipped one may be the first of a page", "2002-04", "Asia/Beirut", "2002-04-01", "2002-05-05"},
		"NoSuchDay": {"Samoa had no 30 December 2011; the calendar has it all the same", "2011-12", "Pacific/Apia", "2011-11-28", "2012-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, _ := time.Parse(dateForm, tc.first)
			var want []string
			for day := first; day.Format(dateForm) <= tc.last; day = day.AddDate(0, 0, 1) {
				want = append(want, day.Format(dateForm))
			}
			if days, _ := w.month(t, tc.month, tc.zone); !slices.Equal(days, want) {
				t.Errorf("%s: got %v, want %v", tc.reason, days, want)
			}
		})
	}
}

func TestPostsOfDays(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for name, when := range map[string]string{
		"new year": "2026-12-31T23:30:00Z", "late": "2026-12-24T23:30:00Z", "early": "2026-12-24T05:00:00Z", "before": "2026-11-29T22:59:59Z",
		"edge": "2026-11-29T23:00:00Z", "end": "2027-01-03T22:59:59Z", "after": "2027-01-03T23:00:00Z",
	} {
		moment, _ := time.Parse(time.RFC3339, when)
		w.put(textPost("p-"+strings.ReplaceAll(name, " ", "-"), name, at(moment)))
	}
	_, got := w.month(t, "2026-12", "Europe/Berlin")
	for day, want := range map[string][]string{
		"2026-12-24": {"early"}, "2026-12-25": {"late"}, "2027-01-01": {"new year"}, "2026-11-30": {"edge"}, "2027-01-03": {"end"},
	} {
		if !slices.Equal(got[day], want) {
			t.Errorf("%s in Berlin has %v, want %v", day, got[day], want)
		}
	}
	if len(got) != 5 {
		t.Errorf("the month has posts on %d days, want 5: %v", len(got), got)
	}
	if _, got = w.month(t, "2026-12", "America/Los_Angeles"); !slices.Equal(got["2026-12-24"], []string{"late"}) || !slices.Equal(got["2026-12-23"], []string{"early"}) {
		t.Errorf("in Los Angeles both are a day earlier: %v", got)
	}
	if days, _ := w.month(t, "99999-99", "UTC"); days[0] != "2026-11-30" {
		t.Errorf("what is no month is this one, got one from %s on", days[0])
	}
}
