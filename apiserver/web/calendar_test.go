// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
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
		"Plain":     {"December 2026 starts on a Tuesday", "2026-12", "UTC", "2026-11-30", "2027-01-03"},
		"FourWeeks": {"a February that starts on a Monday", "2027-02", "UTC", "2027-02-01", "2027-02-28"},
		"SixWeeks":  {"a month that touches six weeks", "2027-08", "Europe/Berlin", "2027-07-26", "2027-09-05"},
		"Summer":    {"the skipped hour is at night", "2027-03", "Europe/Berlin", "2027-03-01", "2027-04-04"},
		"Midnight":  {"in Chile the skipped hour is at midnight", "2026-09", "America/Santiago", "2026-08-31", "2026-10-04"},
		"Cairo":     {"Egypt's skipped hour is at midnight, too", "2027-04", "Africa/Cairo", "2027-03-29", "2027-05-02"},
		"FirstDay":  {"Paraguay skipped midnight on a first of October", "2017-10", "America/Asuncion", "2017-09-25", "2017-11-05"},
		"Monday":    {"Lebanon's skipped hour may start a page", "2002-04", "Asia/Beirut", "2002-04-01", "2002-05-05"},
		"NoSuchDay": {"Samoa had no 30 December 2011; the calendar has it anyway", "2011-12", "Pacific/Apia", "2011-11-28", "2012-01-01"},
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
		t.Errorf("an invalid month must select the present one, got one from %s", days[0])
	}
}

// TestFullDay verifies that a day with many posts shows the first ones, says exactly how many more there are, and leads
// to all of them.
func TestFullDay(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	day := time.Date(2026, 12, 17, 0, 0, 0, 0, time.UTC)
	for i := range 93 {
		w.put(textPost(fmt.Sprintf("p-%02d", i), fmt.Sprintf("Number %02d", i), at(day.Add(time.Duration(i)*time.Minute))))
	}
	w.put(textPost("p-next", "Another day", at(day.AddDate(0, 0, 1)), asDraft))
	for _, tc := range []struct {
		reason, path string
		cap          int
	}{
		{"a month has little room", "calendar?date=2026-12-01", perDay[spanMonth]},
		{"a week has more room", "calendar?view=week&date=2026-12-15", perDay[spanWeek]},
		{"a filter keeps the limit", "calendar?date=2026-12-01&status=scheduled&q=number", perDay[spanMonth]},
	} {
		page := w.get(t, editor, "/teams/"+acme+"/"+tc.path)
		for _, cell := range elements(page, "td") {
			if date, _ := attribute(cell, "data-day"); date != "2026-12-17" {
				continue
			}
			text := textOf(cell)
			says(t, tc.reason, text, []string{"Number 00", fmt.Sprintf("Number %02d", tc.cap-1), fmt.Sprintf("+%d more", 93-tc.cap), "93 on 17 December"}, []string{fmt.Sprintf("Number %02d", tc.cap)})
			links := elements(cell, "a")
			href, _ := attribute(links[len(links)-1], "href")
			agenda := textOf(elements(w.get(t, editor, href), "main")[0])
			says(t, tc.reason+", and its agenda has them all", agenda, []string{"Thursday, 17 December 2026", "Number 00", "Number 49", "Posts 1 to 50 of 9", "Later"}, []string{"Number 50", "Earlier"})
		}
	}
}

// TestAgendaPages verifies that the agenda's pages link to the next page, and back.
func TestAgendaPages(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-early", "The day before", at(now.AddDate(0, 0, -1))))
	for i := range 2*agendaSize + 5 {
		w.put(textPost(fmt.Sprintf("p-%03d", i), fmt.Sprintf("Number %03d", i), at(now.Add(time.Duration(i+1)*time.Hour))))
	}
	follow := func(page *html.Node, label string) *html.Node { return w.followLink(t, page, label) }
	page := w.get(t, editor, "/teams/"+acme+"/calendar?view=agenda&status=scheduled")
	says(t, "the first page", textOf(page), []string{"Today, 1 December 2026", "Number 000", "Number 049", "Posts 1 to 50 of 105"}, []string{"The day before", "Number 050"})
	page = follow(page, "Later")
	says(t, "the second page", textOf(page), []string{"Number 050", "Number 099", "Posts 51 to 100 of 105"}, []string{"Number 049", "Number 100"})
	page = follow(page, "Later")
	says(t, "the last page", textOf(page), []string{"Number 100", "Number 104"}, []string{"Number 099"})
	page = follow(page, "Earlier")
	says(t, "and back", textOf(page), []string{"Number 050", "Number 099"}, []string{"Number 049", "Number 100"})
	page = follow(page, "Next day")
	says(t, "from the next day on", textOf(page), []string{"From 2 December 2026"}, []string{"Number 000", "Today, 1"})
}

// TestCalendarAddresses verifies that the view, the date and the filters are in the address.
func TestCalendarAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for name, tc := range map[string]struct {
		reason, query, title string
		previous, next       string
	}{
		"Today":      {"the default is the present month", "", "December 2026", "date=2026-11-01&view=month", "date=2027-01-01&view=month"},
		"Older":      {"bookmarks from earlier versions", "month=2027-03", "March 2027", "date=2027-02-01&view=month", "date=2027-04-01&view=month"},
		"EndOfMonth": {"the month after January is February", "date=2027-01-31", "January 2027", "date=2026-12-01&view=month", "date=2027-02-01&view=month"},
		"Week":       {"a week from any of its days", "view=week&date=2027-01-01", "28 December to 3 January 2027", "date=2026-12-25&view=week", "date=2027-01-08&view=week"},
		"Agenda":     {"the list from a day on", "view=agenda&date=2027-02-28", "From 28 February 2027", "date=2027-02-27&view=agenda", "date=2027-03-01&view=agenda"},
		"Filters":    {"the filters stay", "view=week&date=2026-12-03&q=day&platform=x&account=our-x", "30 November to 6 December 2026", "account=our-x&date=2026-11-26&platform=x&q=day&view=week", "account=our-x&date=2026-12-10&platform=x&q=day&view=week"},
		"Nonsense":   {"unknown values are ignored", "view=year&date=31.12.&from=2026-12-24", "December 2026", "date=2026-11-01&view=month", "date=2027-01-01&view=month"},
	} {
		page := w.get(t, editor, "/teams/"+acme+"/calendar?"+tc.query)
		if title := textOf(elements(page, "h1")[0]); title != tc.title {
			t.Errorf("%s: %s: the title is %q, want %q", name, tc.reason, title, tc.title)
		}
		for _, link := range elements(page, "a") {
			label, _ := attribute(link, "aria-label")
			href, _ := attribute(link, "href")
			if strings.HasPrefix(label, "Previous") && !strings.HasSuffix(href, "?"+tc.previous) || strings.HasPrefix(label, "Next") && !strings.HasSuffix(href, "?"+tc.next) {
				t.Errorf("%s: %s: %s leads to %s", name, tc.reason, label, href)
			}
		}
	}
}

// TestFirstDayOfTheWeek verifies that weeks begin on the day that the browser's cookie names.
func TestFirstDayOfTheWeek(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for name, tc := range map[string]struct {
		reason, cookie, query string
		first, title          string
	}{
		"Unknown":  {"a browser without scripts", "", "date=2026-12-01", "2026-11-30", "December 2026"},
		"Monday":   {"a European week starts on Monday", "1", "date=2026-12-01", "2026-11-30", "December 2026"},
		"Sunday":   {"weeks start on Sunday in the United States", "7", "date=2026-12-01", "2026-11-29", "December 2026"},
		"Saturday": {"weeks start on Saturday in Egypt", "6", "view=week&date=2026-12-01", "2026-11-28", "28 November to 4 December 2026"},
		"Itself":   {"a Sunday starts its own week", "7", "view=week&date=2026-11-29", "2026-11-29", "29 November to 5 December 2026"},
		"Eighth":   {"a week has seven days", "8", "view=week&date=2026-12-01", "2026-11-30", "30 November to 6 December 2026"},
		"Nonsense": {"cookies may contain anything", "<b>", "view=week&date=2026-12-01", "2026-11-30", "30 November to 6 December 2026"},
	} {
		r := newRequest(&editor, "/teams/"+acme+"/calendar?"+tc.query, nil)
		if tc.cookie != "" {
			r.AddCookie(&http.Cookie{Name: weekCookie, Value: tc.cookie})
		}
		page := parsed(t, w.serve(r).Body.String())
		if first, _ := attribute(elements(page, "td")[0], "data-day"); first != tc.first {
			t.Errorf("%s: %s: the first day is %s, want %s", name, tc.reason, first, tc.first)
		}
		if title := textOf(elements(page, "h1")[0]); title != tc.title {
			t.Errorf("%s: %s: the title is %q, want %q", name, tc.reason, title, tc.title)
		}
	}
}

// TestPastDays verifies that a day ends at midnight in the page's time zone: after that, it offers no new post and
// accepts no dragged post.
func TestPastDays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, now, zone, day string
		past                   bool
	}{
		"Evening":  {"in Los Angeles, the previous UTC day continues", "2026-12-02T03:00:00Z", "America/Los_Angeles", "2026-12-01", false},
		"Midnight": {"a day ends at its last midnight", "2026-12-02T08:00:00Z", "America/Los_Angeles", "2026-12-01", true},
		"Morning":  {"in Auckland, the UTC day has already ended", "2026-12-01T12:00:00Z", "Pacific/Auckland", "2026-12-01", true},
		"UTC":      {"the page has no zone", "2026-12-01T23:59:59Z", "UTC", "2026-12-01", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, _ := time.Parse(time.RFC3339, tc.now)
			w := newWorld(clocktesting.NewFakeClock(at))
			get := func(query string) *html.Node {
				r := newRequest(&editor, "/teams/"+acme+"/calendar?"+query, nil)
				r.AddCookie(&http.Cookie{Name: zoneCookie, Value: strings.ReplaceAll(tc.zone, "/", "%2F")})
				return parsed(t, w.serve(r).Body.String())
			}
			offers := func(page *html.Node) bool {
				return slices.ContainsFunc(elements(page, "a"), func(a *html.Node) bool {
					href, _ := attribute(a, "href")
					return strings.HasSuffix(href, "posts/new?day="+tc.day)
				})
			}
			month := get("date=" + tc.day)
			for _, cell := range elements(month, "td") {
				if day, _ := attribute(cell, "data-day"); day != tc.day {
					continue
				}
				if _, past := attribute(cell, "data-past"); past != tc.past {
					t.Errorf("%s: the day is marked as past: %t", tc.reason, past)
				}
			}
			if offers(month) == tc.past {
				t.Errorf("%s: the month offers a new post: %t", tc.reason, !tc.past)
			}
			if offers(get("view=agenda&date="+tc.day)) == tc.past {
				t.Errorf("%s: the agenda offers a new post: %t", tc.reason, !tc.past)
			}
		})
	}
}
