// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// pass is one decision of a schedule's controller.
type pass struct {
	at string
	// held: the schedule or its team is suspended.
	held bool
	// crash: the process ends after creating the posts and before writing the status.
	crash bool
	// want lists the created posts, as "time#number".
	want []string
}

// applied returns a schedule of daily posts at nine, which was created at noon on December 1, 2026.
func applied(edits ...func(*v1alpha1.PostSchedule)) *v1alpha1.PostSchedule {
	s := &v1alpha1.PostSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "daily", UID: "u", CreationTimestamp: metav1.NewTime(instant("2026-12-01T12:00:00Z"))},
		Spec:       v1alpha1.PostScheduleSpec{Schedule: "0 9 * * *", TimeZone: "UTC"},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func every(expression string) func(*v1alpha1.PostSchedule) {
	return func(s *v1alpha1.PostSchedule) { s.Spec.Schedule = expression }
}

func between(start, end string) func(*v1alpha1.PostSchedule) {
	return func(s *v1alpha1.PostSchedule) {
		if start != "" {
			s.Spec.StartAt = v1alpha1.NewTimePtr(instant(start))
		}
		if end != "" {
			s.Spec.EndAt = v1alpha1.NewTimePtr(instant(end))
		}
	}
}

func withCount(n int32) func(*v1alpha1.PostSchedule) {
	return func(s *v1alpha1.PostSchedule) { s.Spec.Count = &n }
}

func in(zone string) func(*v1alpha1.PostSchedule) {
	return func(s *v1alpha1.PostSchedule) { s.Spec.TimeZone = zone }
}

// run decides at each pass, and records the decisions as the controller does.
func run(t *testing.T, s *v1alpha1.PostSchedule, passes []pass) {
	t.Helper()
	for _, p := range passes {
		rule, err := Parse(s.Spec.Schedule, s.Spec.TimeZone)
		must.Succeed(t, err)
		d := Decide(rule, Facts{Schedule: s, Held: p.held, StartingDeadline: time.Hour, Now: instant(p.at)})
		var got []string
		for _, o := range d.Create {
			got = append(got, fmt.Sprintf("%s#%d", o.At.Format("02T15:04"), o.Number))
		}
		if diff := cmp.Diff(p.want, got); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", p.at, diff)
		}
		if !d.Wake.IsZero() && !d.Wake.After(instant(p.at)) {
			t.Errorf("at %s: decides again at %s, without an end", p.at, d.Wake)
		}
		if p.crash {
			continue
		}
		if n := len(d.Create); n > 0 {
			s.Status.Posts += int32(n)
			s.Status.LastScheduledTime = v1alpha1.NewTimePtr(d.Create[n-1].At)
		}
		if !d.SkipThrough.IsZero() {
			s.Status.SkippedThrough = v1alpha1.NewTimePtr(d.SkipThrough)
		}
	}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule *v1alpha1.PostSchedule
		passes   []pass
	}{
		"a post is created an hour before its time, so that changes apply until then": {applied(), []pass{
			{at: "2026-12-02T07:59:59Z"},
			{at: "2026-12-02T08:00:00Z", want: []string{"02T09:00#0"}},
			{at: "2026-12-02T08:00:01Z"},
			{at: "2026-12-02T09:00:00Z"},
			{at: "2026-12-03T08:30:00Z", want: []string{"03T09:00#1"}},
		}},
		"a schedule applied within the hour still posts": {applied(every("5 12 * * *")), []pass{
			{at: "2026-12-01T12:00:00Z", want: []string{"01T12:05#0"}},
		}},
		"a schedule applied seconds before the time posts late rather than a day later": {applied(every("1 12 * * *")), []pass{
			{at: "2026-12-01T12:01:05Z", want: []string{"01T12:01#0"}},
		}},
		"the time of its creation has passed, perhaps with a post of a schedule that was deleted": {applied(every("0 12 * * *")), []pass{
			{at: "2026-12-01T12:00:00Z"},
			{at: "2026-12-01T12:30:00Z"},
		}},
		"a pass that is repeated before its status is written creates the same posts, with equal names and texts": {applied(every("*/20 * * * *")), []pass{
			{at: "2026-12-01T12:00:00Z", crash: true, want: []string{"01T12:20#0", "01T12:40#1", "01T13:00#2"}},
			{at: "2026-12-01T12:00:10Z", want: []string{"01T12:20#0", "01T12:40#1", "01T13:00#2"}},
			{at: "2026-12-01T12:00:20Z"},
		}},
		"an outage within the lead is not noticed": {applied(), []pass{
			{at: "2026-12-02T08:55:00Z", want: []string{"02T09:00#0"}},
		}},
		"a post that was delayed by an outage is created within the starting deadline": {applied(), []pass{
			{at: "2026-12-02T10:00:00Z", want: []string{"02T09:00#0"}},
			{at: "2026-12-02T10:00:05Z"},
		}},
		"a late post is skipped, and the next one is not affected": {applied(), []pass{
			{at: "2026-12-02T10:00:01Z"},
			{at: "2026-12-03T08:00:00Z", want: []string{"03T09:00#0"}},
		}},
		"an outage of a month publishes no burst": {applied(every("*/15 * * * *")), []pass{
			{at: "2027-01-01T00:07:00Z", want: []string{"01T00:00#0", "01T00:15#1", "01T00:30#2", "01T00:45#3", "01T01:00#4"}},
		}},
		"posts during a suspension are skipped, not published late": {applied(), []pass{
			{at: "2026-12-02T08:10:00Z", held: true},
			{at: "2026-12-02T09:00:00Z", held: true},
			{at: "2026-12-02T09:05:00Z"},
			{at: "2026-12-03T08:00:00Z", want: []string{"03T09:00#0"}},
		}},
		"a suspension that ends before the time has no effect": {applied(), []pass{
			{at: "2026-12-02T08:10:00Z", held: true},
			{at: "2026-12-02T08:50:00Z", want: []string{"02T09:00#0"}},
		}},
		"a post that was delayed by a clock jump of minutes is created": {applied(), []pass{
			{at: "2026-12-02T07:59:00Z"},
			{at: "2026-12-02T09:20:00Z", want: []string{"02T09:00#0"}},
		}},
		"a clock that is set back does not repeat a post": {applied(), []pass{
			{at: "2026-12-02T08:00:00Z", want: []string{"02T09:00#0"}},
			{at: "2026-12-01T08:00:00Z"},
			{at: "2026-12-02T08:30:00Z"},
			{at: "2026-12-03T08:00:00Z", want: []string{"03T09:00#1"}},
		}},
		"a clock that is temporarily fast does not repeat posts": {applied(), []pass{
			{at: "2026-12-05T08:30:00Z", want: []string{"05T09:00#0"}},
			{at: "2026-12-02T08:30:00Z"},
			{at: "2026-12-05T08:30:00Z"},
			{at: "2026-12-06T08:30:00Z", want: []string{"06T09:00#1"}},
		}},
		"the schedule ends by count": {applied(withCount(2)), []pass{
			{at: "2026-12-02T08:00:00Z", want: []string{"02T09:00#0"}},
			{at: "2026-12-03T08:00:00Z", want: []string{"03T09:00#1"}},
			{at: "2026-12-04T08:00:00Z"},
			{at: "2026-12-04T09:30:00Z"},
		}},
		"a count is not exceeded by a late post": {applied(every("*/20 * * * *"), withCount(2)), []pass{
			{at: "2026-12-01T12:45:00Z", want: []string{"01T12:40#0", "01T13:00#1"}},
		}},
		"endAt is inclusive": {applied(between("", "2026-12-02T09:00:00Z")), []pass{
			{at: "2026-12-02T08:00:00Z", want: []string{"02T09:00#0"}},
			{at: "2026-12-03T08:00:00Z"},
		}},
		"a post that is late does not outlast endAt": {applied(between("", "2026-12-02T08:59:00Z")), []pass{
			{at: "2026-12-02T09:01:00Z"},
		}},
		"startAt is inclusive": {applied(between("2026-12-04T09:00:00Z", "")), []pass{
			{at: "2026-12-02T08:30:00Z"},
			{at: "2026-12-03T08:30:00Z"},
			{at: "2026-12-04T08:00:00Z", want: []string{"04T09:00#0"}},
		}},
		"a startAt in the past does not create earlier posts": {applied(between("2026-11-01T09:00:00Z", "")), []pass{
			{at: "2026-12-01T12:00:10Z"},
		}},
		"Berlin, spring: the skipped hour has its post": {applied(every("30 2 28 3 *"), in("Europe/Berlin")), []pass{
			{at: "2027-03-28T01:00:00Z", want: []string{"28T01:30#0"}},
		}},
		"Berlin, autumn: the repeated hour has one post, in either of its hours": {applied(every("30 2 * * *"), in("Europe/Berlin")), []pass{
			{at: "2027-10-31T00:00:00Z", want: []string{"31T00:30#0"}},
			{at: "2027-10-31T01:00:00Z"},
			{at: "2027-10-31T01:30:00Z"},
			{at: "2027-11-01T01:00:00Z", want: []string{"01T01:30#1"}},
		}},
	} {
		t.Run(name, func(t *testing.T) { run(t, tc.schedule, tc.passes) })
	}
}

// TestDecision checks the problems and times that a decision reports with its posts.
func TestDecision(t *testing.T) {
	now := "2026-12-02T08:30:00Z"
	full := func(s *v1alpha1.PostSchedule) { s.Status.Posts = 1 }
	for name, tc := range map[string]struct {
		schedule                      *v1alpha1.PostSchedule
		held                          bool
		now                           string
		next, missed, skipped, wakeAt string
		complete                      bool
	}{
		"waiting":                                 {applied(), false, "2026-12-01T13:00:00Z", "2026-12-02T09:00:00Z", "", "", "2026-12-02T08:00:00Z", false},
		"the post of today is created":            {applied(), false, now, "2026-12-03T09:00:00Z", "", "", "2026-12-03T08:00:00Z", false},
		"before startAt":                          {applied(between("2027-01-01T00:00:00Z", "")), false, now, "2027-01-01T09:00:00Z", "", "", "2027-01-01T08:00:00Z", false},
		"suspended: the next is unknown":          {applied(), true, now, "", "", "", "2026-12-02T09:00:00Z", false},
		"suspended: past occurrences are skipped": {applied(), true, "2026-12-02T09:00:00Z", "", "", "2026-12-02T09:00:00Z", "2026-12-03T09:00:00Z", false},
		"the last of two":                         {applied(withCount(1)), false, now, "", "", "", "", true},
		"past the last, and suspended":            {applied(withCount(1), full), true, "2026-12-04T09:30:00Z", "", "", "", "", true},
		"past endAt":                              {applied(between("", "2026-12-01T18:00:00Z")), false, now, "", "", "", "", true},
		"past endAt and suspended":                {applied(between("", "2026-12-01T18:00:00Z")), true, now, "", "", "", "", true},
		"missed, including the first":             {applied(), false, "2026-12-05T12:00:00Z", "2026-12-06T09:00:00Z", "2026-12-02T09:00:00Z", "2026-12-05T12:00:00Z", "2026-12-06T08:00:00Z", false},
		"created late, but not for the first":     {applied(), false, "2026-12-03T09:30:00Z", "2026-12-04T09:00:00Z", "2026-12-02T09:00:00Z", "", "2026-12-04T08:00:00Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			rule, err := Parse(tc.schedule.Spec.Schedule, tc.schedule.Spec.TimeZone)
			must.Succeed(t, err)
			d := Decide(rule, Facts{Schedule: tc.schedule, Held: tc.held, StartingDeadline: time.Hour, Now: instant(tc.now)})
			format := func(at time.Time) string {
				if at.IsZero() {
					return ""
				}
				return at.Format(time.RFC3339)
			}
			want := []string{tc.next, tc.missed, tc.skipped, tc.wakeAt, fmt.Sprint(tc.complete)}
			if diff := cmp.Diff(want, []string{format(d.Next), format(d.Missed), format(d.SkipThrough), format(d.Wake), fmt.Sprint(d.Complete)}); diff != "" {
				t.Errorf("next, missed, skipped, wake, complete (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryOccurrenceHasOnePost runs a schedule through both clock changes, with a process that repeatedly ends before
// it writes the status. Each post is created once under its name, and none is skipped.
func TestEveryOccurrenceHasOnePost(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		s := applied(every("15,45 * * * *"), in(zone))
		rule, err := Parse(s.Spec.Schedule, zone)
		must.Succeed(t, err)
		posts := map[string]bool{}
		end := instant("2027-12-01T12:00:00Z")
		step := 0
		for now := s.CreationTimestamp.Time; now.Before(end); now = now.Add(17 * time.Minute) {
			step++
			d := Decide(rule, Facts{Schedule: s, StartingDeadline: time.Hour, Now: now})
			for i, o := range d.Create {
				posts[PostOf(s, o).Name] = true
				if step%3 == 0 && i == 0 {
					break // the process ends after the first of them
				}
				s.Status.Posts++
				s.Status.LastScheduledTime = v1alpha1.NewTimePtr(o.At)
			}
		}
		want := 0
		for at := rule.Next(s.CreationTimestamp.Time); !at.After(s.Status.LastScheduledTime.Time); at = rule.Next(at) {
			want++
			if name := PostOf(s, Occurrence{At: at}).Name; !posts[name] {
				t.Errorf("%s: %s has no post", zone, name)
			}
		}
		if len(posts) < want || len(posts) > want+2 || int(s.Status.Posts) != want {
			t.Errorf("%s: %d posts, %d counted; want one for each of %d occurrences", zone, len(posts), s.Status.Posts, want)
		}
	}
}

func TestPostOf(t *testing.T) {
	s := applied(func(s *v1alpha1.PostSchedule) {
		s.Spec.Texts = []string{"one", "two"}
		s.Spec.Template = v1alpha1.PostTemplate{
			Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "logo"}}},
			Targets: []v1alpha1.PostTarget{
				{ConnectionRef: v1alpha1.LocalReference{Name: "x"}},
				{ConnectionRef: v1alpha1.LocalReference{Name: "page"}, Caption: "always"},
			},
		}
	})
	var captions []string
	for n := range int32(3) {
		p := PostOf(s, Occurrence{At: instant("2026-12-02T09:00:00+01:00"), Number: n})
		captions = append(captions, p.Spec.Targets[0].Caption+", "+p.Spec.Targets[1].Caption)
		if p.Name != "daily-20261202-0800" || !p.Spec.ScheduledAt.Equal(v1alpha1.NewTimePtr(instant("2026-12-02T08:00:00Z"))) {
			t.Errorf("post %s at %s; want the occurrence's name and time, in UTC", p.Name, p.Spec.ScheduledAt)
		}
		if !metav1.IsControlledBy(p, s) || p.Labels[v1alpha1.ScheduleLabel] != "daily" || p.Namespace != "team" {
			t.Errorf("the post is not of its schedule: %+v", p.ObjectMeta)
		}
	}
	if want := []string{"one, always", "two, always", "one, always"}; !slices.Equal(captions, want) {
		t.Errorf("captions %q, want %q", captions, want)
	}
	if s.Spec.Template.Targets[0].Caption != "" {
		t.Error("the template was changed")
	}
	s.Spec.Texts = nil
	if p := PostOf(s, Occurrence{At: instant("2026-12-02T09:00:00Z")}); p.Spec.Targets[0].Caption != "" {
		t.Errorf("an image may be posted without a text, not with %q", p.Spec.Targets[0].Caption)
	}
}

func TestRepeatedText(t *testing.T) {
	platform := func(connection string) v1alpha1.Platform {
		return map[string]v1alpha1.Platform{"x": v1alpha1.PlatformX, "page": v1alpha1.PlatformFacebook}[connection]
	}
	posting := func(caption string, to ...string) func(*v1alpha1.PostSchedule) {
		return func(s *v1alpha1.PostSchedule) {
			for _, name := range to {
				s.Spec.Template.Targets = append(s.Spec.Template.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: caption})
			}
		}
	}
	texts := func(all ...string) func(*v1alpha1.PostSchedule) {
		return func(s *v1alpha1.PostSchedule) { s.Spec.Texts = all }
	}
	for name, tc := range map[string]struct {
		schedule *v1alpha1.PostSchedule
		want     bool
	}{
		"the same caption each time":                       {applied(posting("a", "page", "x")), true},
		"one text in turn is the same text":                {applied(posting("", "x"), texts("a")), true},
		"a target with its own caption does not alternate": {applied(posting("a", "x"), texts("b", "c")), true},
		"texts alternate":                                  {applied(posting("", "x"), texts("a", "b")), false},
		"other platforms accept it":                        {applied(posting("a", "page")), false},
		"a connection that does not exist is unknown":      {applied(posting("a", "later")), false},
		"a single post is not a repetition":                {applied(posting("a", "x"), withCount(1)), false},
	} {
		if got := RepeatedText(tc.schedule, platform); (got != "") != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
