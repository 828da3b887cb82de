// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestOddHours verifies that a time is never guessed in an hour that a clock change skips or repeats.
func TestOddHours(t *testing.T) {
	t.Parallel()
	const skipped, repeated = "2027-03-28T02:30", "2027-10-31T02:30"
	for name, tc := range map[string]struct {
		reason                string
		local, at, fold, zone string
		want, says            string
	}{
		"Skipped": {
			"the time does not exist", skipped, "", "", "Europe/Berlin", "",
			"there is no 02:30 in Berlin on 28 March 2027, because clocks go forward from 02:00 to 03:00; choose another time",
		},
		"SkippedByScript": {"the script cannot decide", skipped, "2027-03-28T01:30:00Z", "", "Europe/Berlin", "", "there is no 02:30 in Berlin"},
		"SkippedElsewhere": {
			"some clocks change by half an hour", "2026-10-04T02:15", "", "", "Australia/Lord_Howe", "",
			"there is no 02:15 in Lord Howe on 4 October 2026, because clocks go forward from 02:00 to 02:30; choose another time",
		},
		"Midnight": {
			"the clocks change at midnight", "2026-09-06T00:10", "", "", "America/Santiago", "",
			"there is no 00:10 in Santiago on 6 September 2026, because clocks go forward from 00:00 to 01:00; choose another time",
		},
		"Exists":  {"the change was on another day", skipped, "", "", "America/New_York", "2027-03-28T06:30:00Z", ""},
		"HasDone": {"the following hour exists", "2027-03-28T03:00", "", "", "Europe/Berlin", "2027-03-28T01:00:00Z", ""},
		"Repeated": {
			"the user has not chosen", repeated, "", "", "Europe/Berlin", "",
			"02:30 comes twice in Berlin on 31 October 2027, because clocks go back from 03:00 to 02:00; choose one of the two",
		},
		"First":        {"the user chose the first", repeated, "", foldFirst, "Europe/Berlin", "2027-10-31T00:30:00Z", ""},
		"Second":       {"the user chose the second", repeated, "", foldSecond, "Europe/Berlin", "2027-10-31T01:30:00Z", ""},
		"ByScript":     {"the script sends one of the two", repeated, "2027-10-31T01:30:00.000Z", "", "Europe/Berlin", "2027-10-31T01:30:00Z", ""},
		"StaleScript":  {"the script's value belongs to another time", repeated, "2027-10-30T01:30:00Z", "", "Europe/Berlin", "", "comes twice"},
		"ChangedMind":  {"the choice is newer than the form's time", repeated, "2027-10-31T01:30:00Z", foldFirst, "Europe/Berlin", "2027-10-31T00:30:00Z", ""},
		"OtherChoice":  {"the time has two candidates", repeated, "", "third", "Europe/Berlin", "", "comes twice"},
		"NoLongerOdd":  {"a choice for another time has no effect", "2027-10-31T04:30", "", foldSecond, "Europe/Berlin", "2027-10-31T03:30:00Z", ""},
		"WithSeconds":  {"a stored time has seconds, too", repeated, "2027-10-31T01:30:07Z", foldSecond, "Europe/Berlin", "2027-10-31T01:30:07Z", ""},
		"WholeDayGone": {"Samoa skipped a day", "2011-12-30T12:00", "", "", "Pacific/Apia", "", "there is no 12:00 in Apia on 30 December 2011"},
	} {
		w := readWriting(url.Values{"when": {whenLater}, "at": {tc.local}, "scheduled_at": {tc.at}, "fold": {tc.fold}, "zone": {tc.zone}})
		got, err := w.time()
		switch {
		case tc.says != "":
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %s: %v, %v, want %q", name, tc.reason, got, err, tc.says)
			}
		case err != nil || got.UTC().Format(time.RFC3339) != tc.want:
			t.Errorf("%s: %s: got %v, %v, want %s", name, tc.reason, got, err, tc.want)
		}
	}
}

// TestTimeNote verifies the note below an entered time, before and after a choice between two times.
func TestTimeNote(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason      string
		local, fold string
		team, own   string
		want        []string
		chosen      string
	}{
		"Plain":    {"the field itself shows its zone", "2027-01-15T09:00", "", "", "Europe/Berlin", nil, ""},
		"Same":     {"the viewer's local time is equal", "2027-01-15T09:00", "", "Europe/Berlin", "Europe/Paris", nil, ""},
		"Other":    {"the viewer's clock shows another time", "2027-01-15T09:00", "", "Europe/Berlin", "America/Los_Angeles", []string{"09:00 Berlin is 00:00 for you (Los Angeles)."}, ""},
		"OtherDay": {"the viewer's calendar shows another day", "2027-01-15T08:00", "", "Europe/Berlin", "America/Los_Angeles", []string{"08:00 Berlin is 14 Jan, 23:00 for you"}, ""},
		"Skipped":  {"the time does not exist", "2027-03-28T02:30", "", "", "Europe/Berlin", []string{"There is no 02:30 in Berlin on 28 March 2027"}, ""},
		"Repeated": {
			"the page offers both times", "2027-10-31T02:30", "", "", "Europe/Berlin",
			[]string{"02:30 comes twice in Berlin that day: clocks go back from 03:00 to 02:00. Which one?", "The first (UTC+02:00)", "The second (UTC+01:00)"},
			"",
		},
		"RepeatedElsewhere": {
			"the viewer's own time distinguishes them", "2027-10-31T02:30", foldSecond, "Europe/Berlin", "Asia/Tokyo",
			[]string{"The first (UTC+02:00), 09:30 for you", "The second (UTC+01:00), 10:30 for you"},
			foldSecond,
		},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		w.teams[0].Spec.TimeZone = tc.team
		zone := tc.team
		if zone == "" {
			zone = tc.own
		}
		form := url.Values{"when": {whenLater}, "at": {tc.local}, "zone": {zone}, "fold": {tc.fold}, "category": {"text"}, "target": {"our-x"}, "caption": {"Hello"}}
		r := newRequest(&editor, "/teams/"+acme+"/compose/check", form)
		r.AddCookie(&http.Cookie{Name: zoneCookie, Value: url.QueryEscape(tc.own)})
		note := withID(t, parsed(t, w.serve(r).Body.String()), timeNoteID)
		said := strings.TrimSpace(textOf(note))
		for _, want := range tc.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %s: got %q, want %q", name, tc.reason, said, want)
			}
		}
		if tc.want == nil && said != "" {
			t.Errorf("%s: %s: got %q", name, tc.reason, said)
		}
		chosen := ""
		for _, radio := range elements(note, "input") {
			if _, is := attribute(radio, "checked"); is {
				chosen, _ = attribute(radio, "value")
			}
		}
		if chosen != tc.chosen {
			t.Errorf("%s: %s: %q is chosen, want %q", name, tc.reason, chosen, tc.chosen)
		}
	}
}

// TestOddHourRefused verifies that a browser without scripts gets the form back with the choice, and that the choice
// counts.
func TestOddHourRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	form := w.compose(t, "posts/new", url.Values{"when": {whenLater}, "at": {"2027-10-31T02:30"}, "zone": {"Europe/Berlin"}, "target": {"our-x"}, "caption": {"Hello"}})
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form))
	page := parsed(t, answer.Body.String())
	if answer.Code != http.StatusBadRequest || w.written() != 0 || !strings.Contains(textOf(withID(t, page, "problems")), "02:30 comes twice in Berlin") {
		t.Fatalf("got %d, and %d writes", answer.Code, w.written())
	}
	again := sent(withID(t, page, "compose"))
	again.Set("fold", foldSecond)
	to(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", again)))
	for _, post := range w.posts {
		if got := post.Spec.ScheduledAt; got == nil || got.UTC().Format(time.RFC3339) != "2027-10-31T01:30:00Z" {
			t.Errorf("the post is at %v", got)
		}
	}
}
