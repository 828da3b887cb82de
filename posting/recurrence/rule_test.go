// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/test/must"
)

// occurrences returns the next n occurrences after the given time.
func occurrences(r *Rule, after string, n int) (times []string) {
	at := instant(after)
	for range n {
		at = r.Next(at)
		times = append(times, at.Format(time.RFC3339))
	}
	return times
}

func instant(s string) time.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return at
}

func TestNext(t *testing.T) {
	for name, tc := range map[string]struct {
		expression, zone, after string
		want                    []string
	}{
		"Mondays at nine keep local time in autumn": {
			"0 9 * * 1", "Europe/Berlin", "2026-10-18T00:00:00Z",
			[]string{"2026-10-19T07:00:00Z", "2026-10-26T08:00:00Z"},
		},
		"Mondays at nine keep local time in spring": {
			"0 9 * * 1", "Europe/Berlin", "2027-03-21T00:00:00Z",
			[]string{"2027-03-22T08:00:00Z", "2027-03-29T07:00:00Z"},
		},
		"Berlin, spring: 02:30 does not exist and becomes 03:30, so the day is not skipped": {
			"30 2 * * *", "Europe/Berlin", "2027-03-27T00:00:00Z",
			[]string{"2027-03-27T01:30:00Z", "2027-03-28T01:30:00Z", "2027-03-29T00:30:00Z"},
		},
		"Berlin, spring: 02:00 becomes 03:00, which is one occurrence if that is selected too": {
			"0 2,3 * * *", "Europe/Berlin", "2027-03-28T00:00:00Z",
			[]string{"2027-03-28T01:00:00Z", "2027-03-29T00:00:00Z"},
		},
		"Berlin, spring: a skipped 02:30 is after 03:00": {
			"0,30 2,3 28 3 *", "Europe/Berlin", "2027-03-27T00:00:00Z",
			[]string{"2027-03-28T01:00:00Z", "2027-03-28T01:30:00Z"},
		},
		"Berlin, autumn: 02:30 exists twice and counts once, the first time": {
			"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		"Berlin, autumn: a time within the second hour": {
			"30 2 * * *", "Europe/Berlin", "2026-10-25T01:15:00Z",
			[]string{"2026-10-26T01:30:00Z"},
		},
		"Berlin, autumn: every half hour pauses for the hour that is shown again": {
			"*/30 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"},
		},
		"New York, spring: 02:30 becomes 03:30": {
			"30 2 * * *", "America/New_York", "2027-03-14T00:00:00Z",
			[]string{"2027-03-14T07:30:00Z", "2027-03-15T06:30:00Z"},
		},
		"New York, autumn: 01:30 exists twice and counts once": {
			"30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		},
		"Lord Howe, spring: the clock skips half an hour, and 02:15 becomes 02:45": {
			"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"},
		},
		"Lord Howe, autumn: 01:45 exists twice and counts once": {
			"45 1 * * *", "Australia/Lord_Howe", "2027-04-03T00:00:00Z",
			[]string{"2027-04-03T14:45:00Z", "2027-04-04T15:15:00Z"},
		},
		"Apia skipped the 30th of December 2011: its post moves to the next day, which also has its own": {
			"0 9 * * *", "Pacific/Apia", "2011-12-28T20:00:00Z",
			[]string{"2011-12-29T19:00:00Z", "2011-12-30T19:00:00Z"},
		},
		"a zone without changes": {
			"0 0 1 * *", "Asia/Kolkata", "2026-12-15T00:00:00Z",
			[]string{"2026-12-31T18:30:00Z", "2027-01-31T18:30:00Z"},
		},
		"an occurrence is not its own successor": {
			"@daily", "UTC", "2026-12-01T00:00:00Z",
			[]string{"2026-12-02T00:00:00Z"},
		},
		"a leap day is four years away": {
			"0 12 29 2 *", "UTC", "2024-03-01T00:00:00Z",
			[]string{"2028-02-29T12:00:00Z"},
		},
		"a day of the month or of the week, as in cron": {
			"0 9 13 * 5", "UTC", "2026-11-10T00:00:00Z",
			[]string{"2026-11-13T09:00:00Z", "2026-11-20T09:00:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rule, err := Parse(tc.expression, tc.zone)
			must.Succeed(t, err)
			if diff := cmp.Diff(tc.want, occurrences(rule, tc.after, len(tc.want))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryDayHasOnePost covers two years in zones with every kind of clock change.
func TestEveryDayHasOnePost(t *testing.T) {
	day := func(at time.Time) string { return at.Format(time.DateOnly) }
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Beirut", "Africa/Casablanca"} {
		for _, expression := range []string{"30 2 * * *", "0 0 * * *", "45 1 * * *", "59 23 * * *"} {
			rule, err := Parse(expression, zone)
			must.Succeed(t, err)
			last := rule.Next(instant("2026-01-01T00:00:00Z"))
			for range 730 {
				next := rule.Next(last)
				if want := day(rule.wall(last).AddDate(0, 0, 1)); day(rule.wall(next)) != want {
					t.Errorf("%s in %s: %s follows %s; want one a day", expression, zone, next, last)
				}
				last = next
			}
		}
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ expression, zone, want string }{
		"every five minutes is the most":            {"*/5 * * * *", "UTC", ""},
		"an hourly descriptor":                      {"@hourly", "UTC", ""},
		"days by name":                              {"0 9 * * MON-FRI", "Europe/Berlin", ""},
		"close minutes of hours that do not meet":   {"0,58 9 * * *", "UTC", ""},
		"minutes that meet over the hour":           {"0,58 9,10 * * *", "UTC", "2m0s apart"},
		"minutes that meet over midnight":           {"0,58 0,23 * * *", "UTC", "2m0s apart"},
		"every minute":                              {"* * * * *", "UTC", "1m0s apart"},
		"a list of close minutes":                   {"10,12 9 * * *", "UTC", "2m0s apart"},
		"an interval does not have a time of day":   {"@every 6h", "UTC", "is an interval"},
		"a zone in the schedule would rule another": {"CRON_TZ=UTC 0 9 * * *", "Europe/Berlin", "write it into timeZone"},
		"only a zone":                               {"TZ=0", "UTC", "write it into timeZone"},
		"too few fields":                            {"0 9 * *", "UTC", "five fields"},
		"seconds":                                   {"0 0 9 * * *", "UTC", "five fields"},
		"a minute that does not exist":              {"61 9 * * *", "UTC", "five fields"},
		"a day that does not exist":                 {"0 9 30 2 *", "UTC", "no such day"},
		"empty":                                     {"", "UTC", "five fields"},
		"an unknown zone":                           {"0 9 * * *", "Europe/Atlantis", "IANA name"},
		"the machine's own zone":                    {"0 9 * * *", "Local", "depends on the machine"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.expression, tc.zone)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "spec.schedule: ") && !strings.HasPrefix(err.Error(), "spec.timeZone: ") {
				t.Errorf("error %v does not start with the field", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0 9 * * 1", "Europe/Berlin", int64(1_800_000_000))
	f.Add("*/5 2 * 3,10 0", "Australia/Lord_Howe", int64(1_790_000_000))
	f.Fuzz(func(t *testing.T, expression, zone string, after int64) {
		rule, err := Parse(expression, zone)
		if err != nil {
			return
		}
		from := time.Unix(after%4_000_000_000, 0)
		if next := rule.Next(from); !next.IsZero() && !next.After(from) {
			t.Errorf("%q in %s: %s follows %s", expression, zone, next, from)
		}
	})
}
