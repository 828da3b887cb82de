// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/platforms"
)

var (
	schedulesResource = schema.GroupResource{Group: "social.herald.dev", Resource: "postschedules"}
	errLost           = errors.New("read: connection reset by peer")
)

// schedules is a fake Kubernetes API with schedules. Each write consumes the next of faults, if there is one.
type schedules struct {
	stored  map[string]*v1alpha1.PostSchedule
	faults  []fault
	reading error
	writes  int
}

func (s *schedules) fault() (f fault) {
	s.writes++
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	return f
}

func (s *schedules) List(context.Context, string) (all []v1alpha1.PostSchedule, err error) {
	for _, of := range s.stored {
		all = append(all, *of.DeepCopy())
	}
	return all, s.reading
}

func (s *schedules) Get(_ context.Context, _, name string) (*v1alpha1.PostSchedule, error) {
	if of, ok := s.stored[name]; ok && s.reading == nil {
		return of.DeepCopy(), nil
	}
	if s.reading != nil {
		return nil, s.reading
	}
	return nil, apierrors.NewNotFound(schedulesResource, name)
}

func (s *schedules) Create(_ context.Context, of *v1alpha1.PostSchedule) (*v1alpha1.PostSchedule, error) {
	f := s.fault()
	if s.stored[of.Name] != nil {
		return nil, apierrors.NewAlreadyExists(schedulesResource, of.Name)
	}
	if f.err == nil || f.lands {
		stored := of.DeepCopy()
		stored.Spec.Template.OnUnknownOutcome = v1alpha1.OnUnknownFail // the schema's default
		s.stored[of.Name] = stored
	}
	return s.stored[of.Name], f.err
}

func (s *schedules) Update(_ context.Context, _, after *v1alpha1.PostSchedule) (*v1alpha1.PostSchedule, error) {
	f := s.fault()
	if f.err == nil || f.lands {
		s.stored[after.Name] = after.DeepCopy()
	}
	return after.DeepCopy(), f.err
}

func (s *schedules) Delete(_ context.Context, of *v1alpha1.PostSchedule) error {
	f := s.fault()
	if f.err == nil || f.lands {
		delete(s.stored, of.Name)
	}
	return f.err
}

// mondays is the content of a schedule with two texts for X.
func mondays(edits ...func(*v1alpha1.PostScheduleSpec)) v1alpha1.PostScheduleSpec {
	spec := v1alpha1.PostScheduleSpec{
		Schedule: "0 9 * * 1", TimeZone: "Europe/Berlin", Texts: []string{"Good morning", "A new week"},
		Template: v1alpha1.PostTemplate{
			Category: v1alpha1.CategoryText, OnUnknownOutcome: v1alpha1.OnUnknownFail, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}}},
		},
	}
	for _, edit := range edits {
		edit(&spec)
	}
	return spec
}

// withSchedules returns a service of a team with the schedule "monday".
func withSchedules(edits ...func(*v1alpha1.PostSchedule)) (*bridge.Service, *schedules, *events) {
	of := &v1alpha1.PostSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "monday", UID: "u", Generation: 3, CreationTimestamp: metav1.NewTime(now.AddDate(0, -1, 0))}, Spec: mondays(),
	}
	for _, edit := range edits {
		edit(of)
	}
	s, stored, written := service(&posts{}, inMemory("acme")), &schedules{stored: map[string]*v1alpha1.PostSchedule{of.Name: of}}, &events{}
	s.Schedules, s.Events = stored, written
	return s, stored, written
}

func terminating(of *v1alpha1.PostSchedule) { of.DeletionTimestamp = &metav1.Time{Time: now} }

// inEdit converts an edit of a schedule's content to an edit of the schedule.
func inEdit(edit func(*v1alpha1.PostScheduleSpec)) func(*v1alpha1.PostSchedule) {
	return func(of *v1alpha1.PostSchedule) { edit(&of.Spec) }
}

// TestListSchedules verifies which schedules are listed, in which order, and what the list costs.
func TestListSchedules(t *testing.T) {
	t.Parallel()
	s, stored, _ := withSchedules()
	for _, name := range []string{"tuesday", "friday", "gone"} {
		of := stored.stored["monday"].DeepCopy()
		of.Name = name
		stored.stored[name] = of
	}
	terminating(stored.stored["gone"])
	ctx, meter := limits.WithMeter(t.Context())
	meter.Parts(6) // ten cost a request
	found, err := s.ListSchedules(ctx, caller)
	var names []string
	for _, of := range found {
		names = append(names, of.Name)
	}
	if want := []string{"friday", "monday", "tuesday"}; err != nil || !slices.Equal(names, want) || meter.Requests() != 1 {
		t.Errorf("%v, %v; want %v, without the deleted schedule; it costs %d requests, want 1", names, err, want, meter.Requests())
	}
	drafts := bridge.Caller{Namespace: caller.Namespace, Scopes: []bridge.Scope{"none"}}
	if _, err := s.ListSchedules(t.Context(), drafts); code(err) != "INSUFFICIENT_SCOPE" {
		t.Errorf("a caller who may not read: %v", err)
	}
	if _, err := s.GetSchedule(t.Context(), drafts, "monday"); code(err) != "INSUFFICIENT_SCOPE" {
		t.Errorf("a caller who may not read: %v", err)
	}
	stored.reading = errLost
	if _, err := s.ListSchedules(t.Context(), caller); !errors.Is(err, errLost) {
		t.Errorf("the Kubernetes API's error is lost: %v", err)
	}
}

// TestGetSchedule verifies which schedules exist for a client.
func TestGetSchedule(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, id string
		edit       func(*v1alpha1.PostSchedule)
		reading    error
		want       string
	}{
		"Found":   {"the schedule exists", "monday", nil, nil, ""},
		"Unknown": {"no schedule has the name", "tuesday", nil, nil, "NOT_FOUND"},
		"NoName":  {"no schedule can have it", "Mon/day", nil, errLost, "NOT_FOUND"},
		"Leaving": {"its posts are being deleted", "monday", terminating, nil, "NOT_FOUND"},
		"Failed":  {"the Kubernetes API did not respond", "monday", nil, errLost, "internal"},
	} {
		edits := []func(*v1alpha1.PostSchedule){}
		if tc.edit != nil {
			edits = append(edits, tc.edit)
		}
		s, stored, _ := withSchedules(edits...)
		stored.reading = tc.reading
		if got, err := s.GetSchedule(t.Context(), caller, tc.id); code(err) != tc.want || err == nil && got.Name != tc.id {
			t.Errorf("%s: %v, want %q (%s)", name, err, tc.want, tc.reason)
		}
	}
}

// TestViewSchedule verifies a schedule's computed state.
func TestViewSchedule(t *testing.T) {
	t.Parallel()
	zoned := func(zone string) func(*v1alpha1.PostSchedule) {
		return inEdit(func(spec *v1alpha1.PostScheduleSpec) { spec.TimeZone = zone })
	}
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.PostSchedule)
		// team is the team's zone; "-" means that there is no team.
		team     string
		zone     string
		next     time.Time
		warns    bool
		upcoming int
	}{
		"Own":      {"the schedule's own zone takes precedence", zoned("Europe/Berlin"), "Asia/Tokyo", "Europe/Berlin", time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC), false, bridge.UpcomingTimes},
		"Team":     {"the team's zone is the default", zoned(""), "Asia/Tokyo", "Asia/Tokyo", time.Date(2026, 12, 7, 0, 0, 0, 0, time.UTC), false, bridge.UpcomingTimes},
		"NoZone":   {"neither has a zone", zoned(""), "", "UTC", time.Date(2026, 12, 7, 9, 0, 0, 0, time.UTC), false, bridge.UpcomingTimes},
		"NoTeam":   {"the team was deleted", zoned(""), "-", "UTC", time.Date(2026, 12, 7, 9, 0, 0, 0, time.UTC), false, bridge.UpcomingTimes},
		"Invalid":  {"its times are unknown, and its page exists", zoned("Europe/Atlantis"), "", "UTC", time.Time{}, false, 0},
		"Repeated": {"X may reject the same text", inEdit(func(spec *v1alpha1.PostScheduleSpec) { spec.Texts = spec.Texts[:1] }), "", "Europe/Berlin", time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC), true, bridge.UpcomingTimes},
		"Elsewhere": {"the connection was deleted", inEdit(func(spec *v1alpha1.PostScheduleSpec) {
			spec.Texts, spec.Template.Targets[0].ConnectionRef.Name = spec.Texts[:1], "gone"
		}), "", "Europe/Berlin", time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC), false, bridge.UpcomingTimes},
	} {
		s, stored, _ := withSchedules(tc.edit)
		s.Owner = func(string) *v1alpha1.Team {
			if tc.team == "-" {
				return nil
			}
			team := owner{}.Owner("")
			team.Spec.TimeZone = tc.team
			return team
		}
		got := s.ViewSchedule(stored.stored["monday"])
		if got.Version != "u.3" || got.Zone.String() != tc.zone || (got.Warning != "") != tc.warns || len(got.Upcoming) != tc.upcoming || (got.Rule != nil) != (tc.upcoming > 0) {
			t.Errorf("%s: version %s, zone %s, %q, %d times (%s)", name, got.Version, got.Zone, got.Warning, len(got.Upcoming), tc.reason)
		}
		if tc.upcoming > 0 && !got.Upcoming[0].Equal(tc.next) {
			t.Errorf("%s: first %s, want %s (%s)", name, got.Upcoming[0], tc.next, tc.reason)
		}
	}
}

// TestMayWriteSchedule verifies who may create, change, suspend and delete schedules, which publish without review.
func TestMayWriteSchedule(t *testing.T) {
	t.Parallel()
	acts := map[string]func(context.Context, *bridge.Service, bridge.Caller) error{
		"create": func(ctx context.Context, s *bridge.Service, who bridge.Caller) error {
			_, err := s.CreateSchedule(ctx, who, "tuesday", mondays())
			return err
		},
		"update": func(ctx context.Context, s *bridge.Service, who bridge.Caller) error {
			_, err := s.UpdateSchedule(ctx, who, "monday", "u.3", mondays(func(spec *v1alpha1.PostScheduleSpec) { spec.Schedule = "0 8 * * 1" }))
			return err
		},
		"suspend": func(ctx context.Context, s *bridge.Service, who bridge.Caller) error {
			_, err := s.SuspendSchedule(ctx, who, "monday", true)
			return err
		},
		"resume": func(ctx context.Context, s *bridge.Service, who bridge.Caller) error {
			_, err := s.SuspendSchedule(ctx, who, "monday", false)
			return err
		},
		"delete": func(ctx context.Context, s *bridge.Service, who bridge.Caller) error {
			return s.DeleteSchedule(ctx, who, "monday")
		},
	}
	agent := bridge.Caller{Namespace: caller.Namespace, Key: "k", Agent: "scout"}
	drafts := bridge.Caller{Namespace: caller.Namespace, Key: "k", Scopes: []bridge.Scope{bridge.ScopeDraft}}
	for name, tc := range map[string]struct {
		reason string
		caller bridge.Caller
		edit   func(*v1alpha1.TeamSpec)
		refuse map[string]string
	}{
		"Person":   {"an editor may publish", person, nil, nil},
		"Agent":    {"the team trusts its agents", agent, nil, nil},
		"Reviewed": {"the team reviews its agents' posts", agent, func(s *v1alpha1.TeamSpec) { s.Agents.Publishing = v1alpha1.AgentsDraft }, map[string]string{"create": "INSUFFICIENT_SCOPE", "update": "INSUFFICIENT_SCOPE", "suspend": "INSUFFICIENT_SCOPE", "resume": "INSUFFICIENT_SCOPE", "delete": "INSUFFICIENT_SCOPE"}},
		"Drafts":   {"its scope covers drafts only", drafts, nil, map[string]string{"create": "INSUFFICIENT_SCOPE", "update": "INSUFFICIENT_SCOPE", "suspend": "INSUFFICIENT_SCOPE", "resume": "INSUFFICIENT_SCOPE", "delete": "INSUFFICIENT_SCOPE"}},
		"Unpaid":   {"a team without a subscription may stop its posts only", person, func(s *v1alpha1.TeamSpec) { s.Subscription.State = v1alpha1.SubscriptionCancelled }, map[string]string{"create": "SUBSCRIPTION_REQUIRED", "update": "SUBSCRIPTION_REQUIRED", "resume": "SUBSCRIPTION_REQUIRED"}},
	} {
		for act, do := range acts {
			s, stored, _ := withSchedules(inEdit(func(spec *v1alpha1.PostScheduleSpec) { spec.Suspend = act == "resume" }))
			s.Owner = func(string) *v1alpha1.Team {
				team := owner{}.Owner("")
				if tc.edit != nil {
					tc.edit(&team.Spec)
				}
				return team
			}
			if err := do(t.Context(), s, tc.caller); code(err) != tc.refuse[act] || (stored.writes == 1) != (err == nil) {
				t.Errorf("%s: %s: %v after %d writes, want %q (%s)", name, act, err, stored.writes, tc.refuse[act], tc.reason)
			}
		}
	}
}

// TestCreateSchedule verifies that a request that is repeated, or whose response was lost, creates one schedule.
func TestCreateSchedule(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, id string
		edit       func(*v1alpha1.PostSchedule)
		faults     []fault
		spec       v1alpha1.PostScheduleSpec
		want       string
		replayed   bool
		acts       int
	}{
		"New":          {"no schedule has the name", "tuesday", nil, nil, mondays(), "", false, 1},
		"Again":        {"the request was repeated", "monday", nil, nil, mondays(), "", true, 0},
		"Defaults":     {"the defaults come from the stored schedule", "monday", nil, nil, mondays(func(spec *v1alpha1.PostScheduleSpec) { spec.Template.OnUnknownOutcome = "" }), "", true, 0},
		"SameName":     {"another schedule has the name", "monday", nil, nil, mondays(func(spec *v1alpha1.PostScheduleSpec) { spec.Schedule = "0 8 * * 1" }), "CONFLICT", false, 0},
		"Leaving":      {"the other one is being deleted", "monday", terminating, nil, mondays(), "CONFLICT", false, 0},
		"Lost":         {"the response was lost, and the schedule stored", "tuesday", nil, []fault{{lands: true, err: errLost}}, mondays(), "", false, 1},
		"LostBefore":   {"the request was lost", "tuesday", nil, []fault{{err: errLost}}, mondays(), "", false, 1},
		"Full":         {"the team has as many as its plan allows", "tuesday", nil, []fault{{err: exceeded("postschedules", 3)}}, mondays(), "SUBSCRIPTION_REQUIRED", false, 0},
		"Unavailable":  {"the Kubernetes API does not respond", "tuesday", nil, []fault{{err: errLost}, {err: errLost}, {err: errLost}}, mondays(), "internal", false, 0},
		"BreaksARule":  {"its posts would fail", "tuesday", nil, nil, mondays(func(spec *v1alpha1.PostScheduleSpec) { spec.Texts = nil }), "VALIDATION_ERROR", false, 0},
		"InvalidTimes": {"the schedule has no times", "tuesday", nil, nil, mondays(func(spec *v1alpha1.PostScheduleSpec) { spec.Schedule = "0 9 30 2 *" }), "VALIDATION_ERROR", false, 0},
		"InvalidName":  {"its posts could not be named", "Tuesday", nil, nil, mondays(), "VALIDATION_ERROR", false, 0},
	} {
		edits := []func(*v1alpha1.PostSchedule){}
		if tc.edit != nil {
			edits = append(edits, tc.edit)
		}
		s, stored, written := withSchedules(edits...)
		stored.faults = tc.faults
		got, err := s.CreateSchedule(t.Context(), person, tc.id, tc.spec)
		if code(err) != tc.want || got.Replayed != tc.replayed || len(written.written) != tc.acts {
			t.Errorf("%s: %v, replayed %t, %q; want %q, %t, %d acts (%s)", name, err, got.Replayed, written.written, tc.want, tc.replayed, tc.acts, tc.reason)
		}
		if made := stored.stored["tuesday"]; err == nil && tc.id == "tuesday" && (made == nil || made.Annotations[v1alpha1.LastAuthorAnnotation] != person.Author) {
			t.Errorf("%s: stored is %+v, want a schedule by %s", name, made, person.Author)
		}
	}
}

// TestValidateSchedule verifies the problems of a schedule and their paths in REST.
func TestValidateSchedule(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 300)
	both := func(spec *v1alpha1.PostScheduleSpec) {
		spec.Template.Targets = append(spec.Template.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}, Caption: long})
	}
	bounds := func(start, end time.Time) func(*v1alpha1.PostScheduleSpec) {
		return func(spec *v1alpha1.PostScheduleSpec) {
			spec.StartAt, spec.EndAt = v1alpha1.NewTimePtr(start), v1alpha1.NewTimePtr(end)
		}
	}
	for name, tc := range map[string]struct {
		reason, id string
		edit       func(*v1alpha1.PostScheduleSpec)
		want       []string
	}{
		"Valid":        {"the schedule has no problems", "monday", nil, nil},
		"LongestName":  {"its posts add their time", strings.Repeat("a", 48), nil, nil},
		"LongName":     {"its posts could not be named", strings.Repeat("a", 49), nil, []string{"name"}},
		"NoName":       {"the schedule needs a name", "", nil, []string{"name"}},
		"WrongName":    {"the name is part of an address", "Monday", nil, []string{"name"}},
		"Expression":   {"the expression is not cron syntax", "monday", func(spec *v1alpha1.PostScheduleSpec) { spec.Schedule = "mondays" }, []string{"schedule"}},
		"Zone":         {"the time zone does not exist", "monday", func(spec *v1alpha1.PostScheduleSpec) { spec.TimeZone = "Europe/Atlantis" }, []string{"time_zone"}},
		"NoPosts":      {"its end is before its start", "monday", bounds(tomorrow, tomorrow.Add(-time.Second)), []string{"end_at"}},
		"OneMoment":    {"a post may be due at that time", "monday", bounds(tomorrow, tomorrow), nil},
		"StartOnly":    {"the schedule does not end", "monday", func(spec *v1alpha1.PostScheduleSpec) { spec.StartAt = v1alpha1.NewTimePtr(tomorrow) }, nil},
		"EndOnly":      {"the schedule starts immediately", "monday", func(spec *v1alpha1.PostScheduleSpec) { spec.EndAt = v1alpha1.NewTimePtr(tomorrow) }, nil},
		"FirstText":    {"X rejects it", "monday", func(spec *v1alpha1.PostScheduleSpec) { spec.Texts[0] = long }, []string{"texts[0]"}},
		"SecondText":   {"X rejects it a week later", "monday", func(spec *v1alpha1.PostScheduleSpec) { spec.Texts[1] = long }, []string{"texts[1]"}},
		"Caption":      {"the caption is the same for each post, so its problem is reported once", "monday", both, []string{"targets[1].caption"}},
		"NoText":       {"X needs a text", "monday", func(spec *v1alpha1.PostScheduleSpec) { spec.Texts = nil }, []string{"targets[0].caption"}},
		"NoConnection": {"no account can publish the post", "monday", func(spec *v1alpha1.PostScheduleSpec) { spec.Template.Targets[0].ConnectionRef.Name = "gone" }, []string{"targets[0].connection_id"}},
		"Audience": {"X would show it to everyone", "monday", func(spec *v1alpha1.PostScheduleSpec) {
			spec.Template.Targets[0].Mastodon = &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonDirect}
		}, []string{"targets[0].visibility"}},
		"SeveralAtOnce": {"a user corrects all at once", "", func(spec *v1alpha1.PostScheduleSpec) { spec.Schedule, spec.Texts[1] = "mondays", long }, []string{"name", "schedule", "texts[1]"}},
	} {
		s, stored, _ := withSchedules()
		s.Capabilities = limited
		spec := mondays()
		if tc.edit != nil {
			tc.edit(&spec)
		}
		view, refused, err := s.CheckSchedule(t.Context(), person, tc.id, spec)
		if err != nil || view.PostSchedule == nil || stored.writes != 0 {
			t.Fatalf("%s: %v after %d writes", name, err, stored.writes)
		}
		var paths []string
		if refused != nil {
			for _, p := range refused.Problems {
				paths = append(paths, p.Path)
			}
		}
		if diff := cmp.Diff(tc.want, paths); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s%v", name, tc.reason, diff, refused)
		}
	}
}

// limited are the capabilities of a platform whose captions have at most 280 characters.
func limited(v1alpha1.Platform) (platforms.Capabilities, bool) {
	return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryText}, MaxCaption: 280, CaptionLength: utf8.RuneCountInString}, true
}

// TestUpdateSchedule verifies that no change overwrites another one, and which changes are validated.
func TestUpdateSchedule(t *testing.T) {
	t.Parallel()
	earlier := func(spec *v1alpha1.PostScheduleSpec) { spec.Schedule = "0 8 * * 1" }
	invalid := func(spec *v1alpha1.PostScheduleSpec) { spec.Schedule = "mondays" }
	suspended := func(spec *v1alpha1.PostScheduleSpec) { spec.Suspend = true }
	signedBy := func(author string) func(*v1alpha1.PostSchedule) {
		return func(of *v1alpha1.PostSchedule) {
			of.Annotations = map[string]string{v1alpha1.LastAuthorAnnotation: author}
		}
	}
	nothing := func(*v1alpha1.PostSchedule) {}
	for name, tc := range map[string]struct {
		reason        string
		stored        func(*v1alpha1.PostSchedule)
		id, version   string
		spec          v1alpha1.PostScheduleSpec
		code, message string
		writes        int
	}{
		"Changed":          {"the client has read this version", nothing, "monday", "u.3", mondays(earlier), "", "", 1},
		"Unchanged":        {"the spec is unchanged", nothing, "monday", "u.3", mondays(), "", "", 0},
		"Repeated":         {"the first request has stored it", inEdit(earlier), "monday", "u.2", mondays(earlier), "", "", 0},
		"Defaults":         {"the defaults come from the stored schedule", nothing, "monday", "u.2", mondays(func(spec *v1alpha1.PostScheduleSpec) { spec.Template.OnUnknownOutcome = "" }), "", "", 0},
		"Stale":            {"another user has changed it", signedBy("oidc:ada"), "monday", "u.2", mondays(earlier), "CONFLICT", "since you opened it" + bridge.LastBy + "oidc:ada;", 0},
		"StaleOfATool":     {"another tool has changed it", nothing, "monday", "u.2", mondays(earlier), "CONFLICT", "since you opened it; your change", 0},
		"Invalid":          {"its posts would fail", nothing, "monday", "u.3", mondays(invalid), "VALIDATION_ERROR", "schedule: ", 0},
		"InvalidSuspended": {"a schedule with problems may be suspended", inEdit(invalid), "monday", "u.3", mondays(invalid, suspended), "", "", 1},
		"InvalidBoth":      {"an invalid schedule must not get another problem", inEdit(invalid), "monday", "u.3", mondays(invalid, suspended, func(spec *v1alpha1.PostScheduleSpec) { spec.Texts = nil }), "VALIDATION_ERROR", "", 0},
		"Unknown":          {"the schedule was deleted", nothing, "tuesday", "u.3", mondays(), "NOT_FOUND", `no schedule "tuesday"`, 0},
	} {
		s, stored, written := withSchedules(tc.stored)
		got, err := s.UpdateSchedule(t.Context(), person, tc.id, tc.version, tc.spec)
		if code(err) != tc.code || err != nil && !strings.Contains(err.Error(), tc.message) || stored.writes != tc.writes || len(written.written) != tc.writes {
			t.Errorf("%s: %v after %d writes, %q; want %q with %q, %d (%s)", name, err, stored.writes, written.written, tc.code, tc.message, tc.writes, tc.reason)
		}
		if known, _ := errors.AsType[*bridge.Error](err); known != nil && known.Stale != (tc.code == "CONFLICT") {
			t.Errorf("%s: stale %t (%s)", name, known.Stale, tc.reason)
		}
		if of := stored.stored["monday"]; tc.writes > 0 && (!v1alpha1.SemanticEqual(of.Spec, tc.spec) || of.Annotations[v1alpha1.LastAuthorAnnotation] != person.Author || !v1alpha1.SemanticEqual(got.Spec, tc.spec)) {
			t.Errorf("%s: stored is %+v (%s)", name, of, tc.reason)
		}
	}
}

// TestSuspendSchedule verifies that a change is stored and recorded once, even if responses are lost.
func TestSuspendSchedule(t *testing.T) {
	t.Parallel()
	conflict := fault{err: apierrors.NewConflict(schedulesResource, "monday", nil)}
	lost, landed := fault{err: errLost}, fault{lands: true, err: errLost}
	for name, tc := range map[string]struct {
		reason    string
		suspended bool
		suspend   bool
		faults    []fault
		leaves    bool
		want      string
		writes    int
		act       string
	}{
		"Suspend":     {"a user stops it", false, true, nil, false, "", 1, "ScheduleSuspendedByPerson"},
		"Resume":      {"a user continues it", true, false, nil, false, "", 1, "ScheduleResumedByPerson"},
		"Already":     {"the schedule is already suspended", true, true, nil, false, "", 0, ""},
		"Conflict":    {"the manager has written the status", false, true, []fault{conflict}, false, "", 2, "ScheduleSuspendedByPerson"},
		"Conflicts":   {"another user keeps changing the schedule", false, true, []fault{conflict, conflict, conflict, conflict, conflict}, false, "CONFLICT", 5, ""},
		"Lost":        {"the request was lost", false, true, []fault{lost}, false, "", 2, "ScheduleSuspendedByPerson"},
		"Landed":      {"the response was lost", false, true, []fault{landed}, false, "", 1, "ScheduleSuspendedByPerson"},
		"Unavailable": {"the Kubernetes API does not respond", false, true, []fault{lost, lost, lost, lost, lost}, false, "internal", 5, ""},
		"Left":        {"the client has left", false, true, []fault{lost}, true, "internal", 1, ""},
		"Forbidden":   {"Herald lacks a right", false, true, []fault{{err: apierrors.NewForbidden(schedulesResource, "monday", errors.New("no"))}}, false, "internal", 1, ""},
		"Full":        {"the change exceeds a quota", false, true, []fault{{err: exceeded("postschedules", 3)}}, false, "SUBSCRIPTION_REQUIRED", 1, ""},
	} {
		s, stored, written := withSchedules(inEdit(func(spec *v1alpha1.PostScheduleSpec) { spec.Suspend = tc.suspended }))
		stored.faults = tc.faults
		ctx, leave := context.WithCancel(t.Context())
		if tc.leaves {
			leave()
		}
		_, err := s.SuspendSchedule(ctx, person, "monday", tc.suspend)
		leave()
		act, about, _ := strings.Cut(strings.Join(written.written, "; "), " ")
		if act != "" && !strings.HasPrefix(about, "PostSchedule/monday: ") {
			t.Errorf("%s: the event is about %s", name, about)
		}
		if code(err) != tc.want || stored.writes != tc.writes || act != tc.act || len(written.written) > 1 {
			t.Errorf("%s: %v after %d writes, %q; want %q, %d, %q (%s)", name, err, stored.writes, written.written, tc.want, tc.writes, tc.act, tc.reason)
		}
		if err == nil && stored.stored["monday"].Spec.Suspend != tc.suspend {
			t.Errorf("%s: suspended %t (%s)", name, !tc.suspend, tc.reason)
		}
	}
}

// TestDeleteSchedule verifies which deletions are recorded.
func TestDeleteSchedule(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, id string
		faults     []fault
		want       string
		acts       int
	}{
		"Deleted": {"a user deletes it", "monday", nil, "", 1},
		"Gone":    {"another request has deleted it", "monday", []fault{{err: apierrors.NewNotFound(schedulesResource, "monday")}}, "", 1},
		"Unknown": {"the schedule does not exist", "tuesday", nil, "NOT_FOUND", 0},
		"Failed":  {"the Kubernetes API does not respond", "monday", []fault{{err: errLost}}, "internal", 0},
	} {
		s, stored, written := withSchedules()
		stored.faults = tc.faults
		if err := s.DeleteSchedule(t.Context(), person, tc.id); code(err) != tc.want || len(written.written) != tc.acts {
			t.Errorf("%s: %v, %q; want %q, %d acts (%s)", name, err, written.written, tc.want, tc.acts, tc.reason)
		}
	}
}
