// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

func TestUpcoming(t *testing.T) {
	posted := func(s *v1alpha1.PostSchedule) { s.Status.Posts = 1 }
	recorded := func(s *v1alpha1.PostSchedule) {
		s.Status.LastScheduledTime = v1alpha1.NewTimePtr(instant("2026-12-03T09:00:00Z"))
	}
	for name, tc := range map[string]struct {
		schedule *v1alpha1.PostSchedule
		want     []string
	}{
		"each day":                     {applied(), []string{"2026-12-02T09:00:00Z", "2026-12-03T09:00:00Z", "2026-12-04T09:00:00Z"}},
		"no time that has passed":      {applied(every("30 12 * * *")), []string{"2026-12-02T12:30:00Z", "2026-12-03T12:30:00Z", "2026-12-04T12:30:00Z"}},
		"the remaining ones of count":  {applied(withCount(2), posted), []string{"2026-12-02T09:00:00Z"}},
		"no more times than count":     {applied(withCount(1), posted), nil},
		"from startAt, until endAt":    {applied(between("2027-01-01T09:00:00Z", "2027-01-02T08:00:00Z")), []string{"2027-01-01T09:00:00Z"}},
		"an existing post counts once": {applied(recorded), []string{"2026-12-04T09:00:00Z", "2026-12-05T09:00:00Z", "2026-12-06T09:00:00Z"}},
	} {
		rule, err := Parse(tc.schedule.Spec.Schedule, tc.schedule.Spec.TimeZone)
		must.Succeed(t, err)
		var got []string
		for _, at := range Upcoming(rule, tc.schedule, instant("2026-12-01T13:00:00Z"), 3) {
			got = append(got, at.Format(time.RFC3339))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSelected(t *testing.T) {
	for name, tc := range map[string]struct{ expression, zone, after, at, selected string }{
		"on other days, the local time":  {"30 2 * * *", "Europe/Berlin", "2027-03-26T12:00:00Z", "2027-03-27T01:30:00Z", "2027-03-27T02:30:00Z"},
		"clocks skip it in spring":       {"30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T01:30:00Z", "2027-03-28T02:30:00Z"},
		"an hour later is not skipped":   {"30 3 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T01:30:00Z", "2027-03-28T03:30:00Z"},
		"clocks show it twice in autumn": {"30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00Z", "2027-10-31T00:30:00Z", "2027-10-31T02:30:00Z"},
		"by half an hour, on Lord Howe":  {"15 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00:00Z", "2027-10-02T15:45:00Z", "2027-10-03T02:15:00Z"},
		"a skipped day on Samoa":         {"0 9 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T09:00:00Z"},
	} {
		rule, err := Parse(tc.expression, tc.zone)
		must.Succeed(t, err)
		at := rule.Next(instant(tc.after))
		if got := []string{at.UTC().Format(time.RFC3339), rule.Selected(at).Format(time.RFC3339)}; !cmp.Equal(got, []string{tc.at, tc.selected}) {
			t.Errorf("%s: %v, want %s for %s", name, got, tc.at, tc.selected)
		}
	}
}
