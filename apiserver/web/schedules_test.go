// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/posting/recurrence"
)

const atSchedules = "/teams/" + acme + "/schedules"

// mondays is a complete form for a schedule to X and Threads.
func mondays(edits url.Values) url.Values {
	form := url.Values{
		"name": {"Monday greeting"}, "category": {"text"}, "target": {"our-x", "our-threads"}, "text": {"Good morning", "", "A new week"},
		"repeat": {"week"}, "weekday": {"1"}, "time": {"09:00"}, "time_zone": {"Europe/Berlin"},
	}
	maps.Copy(form, edits)
	return form
}

// schedule returns a stored schedule.
func schedule(edits ...func(*v1alpha1.PostSchedule)) *v1alpha1.PostSchedule {
	of := &v1alpha1.PostSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: "monday", Generation: 1, CreationTimestamp: metav1.NewTime(now.AddDate(0, -1, 0))},
		Spec: v1alpha1.PostScheduleSpec{Schedule: "0 9 * * 1", TimeZone: "Europe/Berlin", Texts: []string{"Good morning", "A new week"}, Template: v1alpha1.PostTemplate{
			Category: v1alpha1.CategoryText, OnUnknownOutcome: v1alpha1.OnUnknownFail, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "our-x"}}},
		}},
		Status: v1alpha1.PostScheduleStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonScheduled}}},
	}
	for _, edit := range edits {
		edit(of)
	}
	return of
}

func withSchedule(of *v1alpha1.PostSchedule) *world {
	w := newWorld(clocktesting.NewFakeClock(now))
	w.stamp(of)
	w.schedules[of.Namespace+"/"+of.Name] = of
	w.writes = 0
	return w
}

func TestNewSchedule(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		edits      url.Values
		schedule   string
		start, end string
		texts      []string
		wrong      string
	}{
		"Week":       {reason: "empty texts are omitted, and the name becomes a valid object name", schedule: "0 9 * * 1", texts: []string{"Good morning", "A new week"}},
		"Days":       {reason: "a schedule on several days of the week", edits: url.Values{"weekday": {"5", "0", "1"}}, schedule: "0 9 * * 0,1,5"},
		"Day":        {reason: "a schedule at a time of day", edits: url.Values{"repeat": {"day"}, "time": {"18:05"}}, schedule: "5 18 * * *"},
		"Month":      {reason: "a schedule on a day of each month", edits: url.Values{"repeat": {"month"}, "monthday": {"31"}}, schedule: "0 9 31 * *"},
		"Cron":       {reason: "an expression without simple controls", edits: url.Values{"repeat": {"cron"}, "cron": {"30 8 * * 1-5"}}, schedule: "30 8 * * 1-5"},
		"Between":    {reason: "whole days of the schedule's zone", edits: url.Values{"from": {"2026-12-24"}, "until": {"2027-01-06"}}, schedule: "0 9 * * 1", start: "2026-12-23T23:00:00Z", end: "2027-01-06T22:59:59.999Z"},
		"NoName":     {reason: "the page cannot guess a name", edits: url.Values{"name": {"…"}}, wrong: "Give the schedule a name"},
		"NoText":     {reason: "posts need a text", edits: url.Values{"text": {" "}}, wrong: "Write at least one text"},
		"NoWeekday":  {reason: "the schedule would not create posts", edits: url.Values{"weekday": {}}, wrong: "Choose at least one day of the week"},
		"NoTime":     {reason: "a browser without the control sends any text", edits: url.Values{"time": {"nine"}}, wrong: "Choose the time of day"},
		"NoAccount":  {reason: "posts need an account", edits: url.Values{"target": {}}, wrong: "Where it goes: Name at least one account to post to."},
		"BadCron":    {reason: "the error names the field", edits: url.Values{"repeat": {"cron"}, "cron": {"at nine"}}, wrong: "Repeat: Is not a cron expression of five fields"},
		"TooOften":   {reason: "the error names the reason and the limit", edits: url.Values{"repeat": {"cron"}, "cron": {"* * * * *"}}, wrong: "at least 5m0s are required"},
		"BadZone":    {reason: "the error names the field", edits: url.Values{"time_zone": {"Berlin"}}, wrong: "Time zone: Is not the IANA name"},
		"Backwards":  {reason: "the schedule would end before it starts", edits: url.Values{"from": {"2027-01-06"}, "until": {"2026-12-24"}}, wrong: "Last day: Is before the start"},
		"BadCount":   {reason: "the error names the limit", edits: url.Values{"count": {"0"}}, wrong: "from 1 to 1,000,000"},
		"TooLong":    {reason: "the message names the text that X does not accept", edits: url.Values{"text": {"a", strings.Repeat("b", 300)}}, wrong: "Text 2: "},
		"NotForText": {reason: "the error names the account", edits: url.Values{"target": {"our-youtube"}}, wrong: "Account our-youtube: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			answer := w.serve(newRequest(&editor, atSchedules+"/new", mondays(tc.edits)))
			stored := w.schedules[acme+"/monday-greeting"]
			if tc.wrong != "" {
				page := parsed(t, answer.Body.String())
				says(t, tc.reason, textOf(withID(t, page, "problems")), []string{tc.wrong}, nil)
				if answer.Code != http.StatusBadRequest || len(w.schedules) != 0 {
					t.Errorf("%s: %d, %d stored", tc.reason, answer.Code, len(w.schedules))
				}
				return
			}
			if answer.Code != http.StatusSeeOther || stored == nil {
				t.Fatalf("%s: %d\n%s", tc.reason, answer.Code, answer.Body)
			}
			want := stored.Spec.DeepCopy()
			want.Schedule, want.TimeZone, want.StartAt, want.EndAt = tc.schedule, "Europe/Berlin", instantOf(t, tc.start), instantOf(t, tc.end)
			if tc.texts != nil {
				want.Texts = tc.texts
			}
			if diff := cmp.Diff(want, &stored.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			before := w.written()
			if again := w.serve(newRequest(&editor, atSchedules+"/new", mondays(tc.edits))); again.Code != http.StatusSeeOther || w.written() != before {
				t.Errorf("the repeated form: %d, %d writes", again.Code, w.written()-before)
			}
		})
	}
}

func instantOf(tb testing.TB, text string) *v1alpha1.Time {
	tb.Helper()
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		tb.Fatal(err)
	}
	return v1alpha1.NewTimePtr(at)
}

// TestEditedScheduleIsUnchanged verifies that saving a schedule's form does not change the schedule, even if another
// tool created it.
func TestEditedScheduleIsUnchanged(t *testing.T) {
	t.Parallel()
	own := func(of *v1alpha1.PostSchedule) {
		of.Spec.Template.Targets = append(of.Spec.Template.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "our-threads"}, Caption: "For Threads"})
	}
	for name, edit := range map[string]func(*v1alpha1.PostSchedule){
		"weekly":              func(*v1alpha1.PostSchedule) {},
		"a caption and texts": own,
		"captions alone": func(of *v1alpha1.PostSchedule) {
			own(of)
			of.Spec.Texts, of.Spec.Template.Targets = nil, of.Spec.Template.Targets[1:]
		},
		"captions that no text needs": func(of *v1alpha1.PostSchedule) { own(of); of.Spec.Template.Targets = of.Spec.Template.Targets[1:] },
		"the team's zone":             func(of *v1alpha1.PostSchedule) { of.Spec.TimeZone = "" },
		"a bound within a day":        func(of *v1alpha1.PostSchedule) { of.Spec.EndAt = v1alpha1.NewTimePtr(now.AddDate(0, 1, 0)) },
		"an expression":               func(of *v1alpha1.PostSchedule) { of.Spec.Schedule = "*/30 9-17 * 1,2 MON-FRI" },
		"a count":                     func(of *v1alpha1.PostSchedule) { of.Spec.Count = new(int32(7)) },
		"retries":                     func(of *v1alpha1.PostSchedule) { of.Spec.Template.OnUnknownOutcome = v1alpha1.OnUnknownRetry },
	} {
		w := withSchedule(schedule(edit))
		before := w.schedules[acme+"/monday"].Spec.DeepCopy()
		form := sent(withID(t, w.get(t, editor, atSchedules+"/monday/edit"), "compose"))
		answer := w.serve(newRequest(&editor, atSchedules+"/monday/edit", form))
		after := w.schedules[acme+"/monday"].Spec
		if name == "captions alone" { // the same for each post, but written as its text
			before.Texts, before.Template.Targets[0].Caption = []string{"For Threads"}, ""
		}
		if diff := cmp.Diff(*before, after); diff != "" || answer.Code != http.StatusSeeOther {
			t.Errorf("%s: %d (-want +got):\n%s", name, answer.Code, diff)
		}
	}
}

// TestStaleSchedule verifies that an edit does not overwrite another one.
func TestStaleSchedule(t *testing.T) {
	t.Parallel()
	w := withSchedule(schedule())
	form := sent(withID(t, w.get(t, editor, atSchedules+"/monday/edit"), "compose"))
	form.Set("time", "10:00")
	w.schedules[acme+"/monday"].Generation++
	answer := w.serve(newRequest(&editor, atSchedules+"/monday/edit", form))
	if answer.Code != http.StatusConflict || w.schedules[acme+"/monday"].Spec.Schedule != "0 9 * * 1" {
		t.Errorf("%d, %s", answer.Code, w.schedules[acme+"/monday"].Spec.Schedule)
	}
	says(t, "the page names the conflict", answer.Body.String(), []string{"has changed since you opened it", `value="10:00"`}, nil)
}

func TestSchedulesPage(t *testing.T) {
	t.Parallel()
	condition := func(reason, message string) func(*v1alpha1.PostSchedule) {
		return func(of *v1alpha1.PostSchedule) {
			of.Status.Conditions[0].Reason, of.Status.Conditions[0].Message = reason, message
		}
	}
	for name, tc := range map[string]struct {
		reason     string
		edit       func(*v1alpha1.PostSchedule)
		want, lack []string
	}{
		"Active":    {"the next time is in the page's zone", func(*v1alpha1.PostSchedule) {}, []string{"Mondays at 09:00, Berlin", "Active", "7 Dec 2026, 08:00 UTC", "Good morning and 1 other, in turn"}, []string{"X rejects a post", "Resume"}},
		"Suspended": {"the next time would be wrong", func(of *v1alpha1.PostSchedule) { of.Spec.Suspend = true }, []string{"Suspended", "none while it is suspended", "Resume"}, []string{"7 Dec 2026"}},
		"Invalid":   {"the manager's message contains the remedy", condition(v1alpha1.ReasonInvalid, "spec.template.targets[0]: gone"), []string{"Needs a change", "Spec.template.targets[0]: gone."}, []string{"7 Dec 2026"}},
		"Waits":     {"the schedule continues without a user", condition(v1alpha1.ReasonBudgetLimit, "the budget is used up"), []string{"Waits", "The budget is used up."}, nil},
		"Fresh":     {"the manager has not seen the change yet", func(of *v1alpha1.PostSchedule) { of.Generation = 2 }, []string{"Being checked"}, []string{"Active"}},
		"Repeats":   {"X may reject it", func(of *v1alpha1.PostSchedule) { of.Spec.Texts = of.Spec.Texts[:1] }, []string{"X rejects a post whose text repeats"}, []string{"in turn"}},
		"Last": {"the last post has a page", func(of *v1alpha1.PostSchedule) {
			of.Status.LastScheduledTime = v1alpha1.NewTimePtr(now.AddDate(0, 0, -1))
			of.Status.Posts = 3
		}, []string{"Last post", "30 Nov 2026, 09:00 UTC"}, nil},
	} {
		w := withSchedule(schedule(tc.edit))
		page := withID(t, w.get(t, editor, atSchedules), "content")
		says(t, name+": "+tc.reason, textOf(page), tc.want, tc.lack)
	}
}

// TestScheduleActions verifies what each role may do with a schedule.
func TestScheduleActions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, path string
		who          access.Person
		code         int
		suspended    bool
		gone         bool
	}{
		"Suspend":       {"an editor may suspend schedules", "/monday/suspend", editor, http.StatusSeeOther, true, false},
		"Resume":        {"an active schedule stays active", "/monday/resume", editor, http.StatusSeeOther, false, false},
		"Delete":        {"an editor may delete schedules", "/monday/delete", editor, http.StatusSeeOther, false, true},
		"ViewerDeletes": {"viewers may not delete, as with kubectl", "/monday/delete", viewer, http.StatusForbidden, false, false},
		"ViewerStops":   {"kubectl needs the same right", "/monday/suspend", viewer, http.StatusForbidden, false, false},
		"ViewerWrites":  {"kubectl needs the same right", "/new", viewer, http.StatusForbidden, false, false},
		"Stranger":      {"the response does not reveal the team", "/monday/delete", stranger, http.StatusNotFound, false, false},
		"Unknown":       {"the schedule has another name", "/tuesday/suspend", editor, http.StatusNotFound, false, false},
	} {
		w := withSchedule(schedule())
		answer := w.serve(newRequest(&tc.who, atSchedules+tc.path, url.Values{}))
		stored := w.schedules[acme+"/monday"]
		if answer.Code != tc.code || (stored == nil) != tc.gone || stored != nil && stored.Spec.Suspend != tc.suspended {
			t.Errorf("%s: %s: %d, %+v", name, tc.reason, answer.Code, stored)
		}
	}
}

// TestDeletionIsExplained verifies that the page before a deletion states its effect.
func TestDeletionIsExplained(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit       func(*v1alpha1.PostSchedule)
		want, lack []string
	}{
		"no post yet": {func(*v1alpha1.PostSchedule) {}, []string{"No further posts are created.", "suspend the schedule instead"}, []string{"withdrawn", "stays on the platforms"}},
		"a post that waits": {func(of *v1alpha1.PostSchedule) {
			of.Status.Posts, of.Status.LastScheduledTime = 1, v1alpha1.NewTimePtr(now.Add(30*time.Minute))
		}, []string{"withdrawn: the next is due on 1 Dec 2026, 09:30 UTC"}, nil},
		"published posts": {func(of *v1alpha1.PostSchedule) {
			of.Status.Posts, of.Status.LastScheduledTime = 4, v1alpha1.NewTimePtr(now.AddDate(0, 0, -1))
		}, []string{"What is published stays on the platforms."}, []string{"withdrawn"}},
	} {
		w := withSchedule(schedule(tc.edit))
		says(t, name, textOf(withID(t, w.get(t, editor, atSchedules+"/monday/delete"), "content")), tc.want, tc.lack)
		if w.written() != 0 {
			t.Errorf("%s: the page itself deletes the schedule", name)
		}
	}
}

// TestNextTimes verifies the times that the form shows before a schedule is stored, and their explanations.
func TestNextTimes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		at         string
		edits      url.Values
		want, lack []string
	}{
		"Five":    {"the times are in the schedule's zone", "2026-12-01T09:00:00Z", nil, []string{"Monday, 7 Dec 2026, 09:00 Berlin", "4 Jan 2027"}, []string{"11 Jan 2027", "clocks", "Before it can be stored"}},
		"Skipped": {"a time that does not exist moves", "2027-03-27T09:00:00Z", url.Values{"repeat": {"day"}, "time": {"02:30"}}, []string{"28 Mar 2027, 03:30 Berlin", "There is no 02:30 in Berlin on this day, because clocks go forward from 02:00 to 03:00", "29 Mar 2027, 02:30 Berlin"}, []string{"comes twice"}},
		"Twice":   {"a repeated local time counts once", "2027-10-30T09:00:00Z", url.Values{"repeat": {"day"}, "time": {"02:30"}}, []string{"31 Oct 2027, 02:30 Berlin", "02:30 comes twice in Berlin on this day, because clocks go back from 03:00 to 02:00", "the post is published once, the first time"}, []string{"There is no"}},
		"Count":   {"the list has no more times than the schedule creates", "2026-12-01T09:00:00Z", url.Values{"count": {"2"}}, []string{"14 Dec 2026"}, []string{"21 Dec 2026"}},
		"Ended":   {"the schedule would have no times", "2026-12-01T09:00:00Z", url.Values{"until": {"2026-12-02"}}, []string{"There is no such time before the end"}, nil},
		"Repeats": {"X may reject it", "2026-12-01T09:00:00Z", url.Values{"text": {"Good morning"}}, []string{"X rejects a post whose text repeats"}, nil},
		"Missing": {"the times are shown nevertheless", "2026-12-01T09:00:00Z", url.Values{"text": {""}}, []string{"7 Dec 2026", "Before it can be stored:", "Write at least one text"}, nil},
		"Wrong":   {"the error names the field", "2026-12-01T09:00:00Z", url.Values{"repeat": {"cron"}, "cron": {"* *"}}, []string{"Repeat: Is not a cron expression"}, []string{"The next posts"}},
	} {
		clk := clocktesting.NewFakeClock(instantOf(t, tc.at).Time)
		w := newWorld(clk)
		answer := w.serve(newRequest(&editor, atSchedules+"/check", mondays(tc.edits)))
		says(t, name+": "+tc.reason, textOf(parsed(t, answer.Body.String())), tc.want, tc.lack)
		form := mondays(tc.edits)
		form.Set("do", "times")
		if page := w.serve(newRequest(&editor, atSchedules+"/new", form)); page.Code != http.StatusOK || len(w.schedules) != 0 {
			t.Errorf("%s: without a script: %d, %d stored", name, page.Code, len(w.schedules))
		} else {
			says(t, name+", without a script", textOf(withID(t, parsed(t, page.Body.String()), "check")), tc.want, tc.lack)
		}
	}
}

// TestScheduleFormGrows verifies that the form gets another text without losing what was entered.
func TestScheduleFormGrows(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	form := mondays(url.Values{"do": {"text"}})
	page := parsed(t, w.serve(newRequest(&editor, atSchedules+"/new", form)).Body.String())
	got := sent(withID(t, page, "compose"))
	if diff := cmp.Diff([]string{"Good morning", "", "A new week", ""}, got["text"]); diff != "" || got.Get("weekday") != "1" || got.Get("name") != "monday-greeting" {
		t.Errorf("%v (-want +got):\n%s", got, diff)
	}
}

// TestPostOfSchedule verifies that a post's page leads to the schedule that created it.
func TestPostOfSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	post := recurrence.PostOf(schedule(), recurrence.Occurrence{At: now.Add(time.Hour)})
	w.put(post)
	page := withID(t, w.get(t, viewer, "/teams/"+acme+"/posts/"+post.Name), "content")
	says(t, "the author is the schedule", textOf(page), []string{", by the schedule monday"}, []string{"claims to be"})
}
