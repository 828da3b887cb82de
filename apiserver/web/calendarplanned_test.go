// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// announced returns the posts of schedules in a calendar, by day, such as "7: 08:00 monday".
func announced(calendar *html.Node) (found []string) {
	for _, cell := range elements(calendar, "td") {
		day, _ := attribute(cell, "data-day")
		for _, item := range elements(cell, "li") {
			if class, _ := attribute(item, "class"); strings.Contains(class, "is-planned") {
				found = append(found, strings.TrimPrefix(day, "2026-12-")+": "+strings.TrimSuffix(textOf(item), ", not created yet"))
			}
		}
	}
	return found
}

// TestCalendarAnnouncesSchedules verifies which of the posts that do not exist yet appear in a month. Now is 1 December
// 2026, 09:00.
func TestCalendarAnnouncesSchedules(t *testing.T) {
	t.Parallel()
	at := func(text string) *v1alpha1.Time { return instantOf(t, text) }
	for name, tc := range map[string]struct {
		reason, query string
		edit          func(*v1alpha1.PostSchedule)
		want          []string
	}{
		"Month": {"the rest of the month, and the days around it", "", func(*v1alpha1.PostSchedule) {}, []string{"07: 08:00 monday", "14: 08:00 monday", "21: 08:00 monday", "28: 08:00 monday"}},
		"Week":  {"a week announces the same times", "view=week&date=2026-12-09", func(*v1alpha1.PostSchedule) {}, []string{"07: 08:00 monday"}},
		"Created": {"an existing post is not announced", "", func(of *v1alpha1.PostSchedule) {
			of.Status.LastScheduledTime = at("2026-12-14T08:00:00Z")
		}, []string{"21: 08:00 monday", "28: 08:00 monday"}},
		"Count": {"the schedule announces no more posts than it creates", "", func(of *v1alpha1.PostSchedule) { of.Spec.Count, of.Status.Posts = new(int32(3)), 1 }, []string{"07: 08:00 monday", "14: 08:00 monday"}},
		"Often": {"a day shows two announcements", "view=week&date=2026-12-02", func(of *v1alpha1.PostSchedule) {
			of.Spec.Schedule, of.Spec.EndAt = "0 * * * *", at("2026-12-01T20:00:00Z")
		}, []string{"01: 10:00 monday", "01: 11:00 monday"}},
		"Suspended": {"a suspended schedule creates no posts", "", func(of *v1alpha1.PostSchedule) { of.Spec.Suspend = true }, nil},
		"Invalid":   {"an invalid schedule creates no posts", "", func(of *v1alpha1.PostSchedule) { of.Status.Conditions[0].Reason = v1alpha1.ReasonInvalid }, nil},
		"Filtered":  {"filters apply to existing posts", "status=posted", func(*v1alpha1.PostSchedule) {}, nil},
		"Past":      {"past times have no planned posts", "date=2026-11-15", func(*v1alpha1.PostSchedule) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withSchedule(schedule(tc.edit))
			page := w.get(t, viewer, "/teams/"+acme+"/calendar?"+tc.query)
			if diff := cmp.Diff(tc.want, announced(page)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if legend := strings.Contains(textOf(page), "Dashed entries"); legend != (len(tc.want) > 0) {
				t.Errorf("%s: the legend is shown: %t", tc.reason, legend)
			}
		})
	}
}
