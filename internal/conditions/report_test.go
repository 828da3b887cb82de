// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/logtest"
	"github.com/herald-social/herald/test/must"
)

func TestReport(t *testing.T) {
	long := strings.Repeat("é", 2000)
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		reason  string
		summary Summary
		gone    bool
		fails   error
		writes  int
		event   string
	}{
		"no Team yet":      {"a Team that is applied together gets its namespace in a moment", Summary{Reason: "NoTeam"}, false, nil, 1, ""},
		"unchanged":        {"an unnecessary write wakes every watcher", Summary{Reason: "Waiting", Message: "a"}, false, nil, 0, ""},
		"a longer message": {"the reason is the same, so there is no event", Summary{Reason: "Waiting", Message: "b"}, false, nil, 1, ""},
		"trouble":          {"a user has to act", Summary{Reason: "Broken", Message: "mend it"}, false, nil, 1, "Warning Broken mend it"},
		"done":             {"no action is necessary", Summary{Reason: "Done", Message: "x", Ready: true}, false, nil, 1, "Normal Done x"},
		"a long story":     {"the Kubernetes API would refuse the event", Summary{Reason: "Broken", Message: long}, false, nil, 1, "Warning Broken é"},
		"gone":             {"the object was deleted, so there is neither a write nor an event", Summary{Reason: "Broken"}, true, nil, 1, ""},
		"not written":      {"the next reconciliation reports it", Summary{Reason: "Broken"}, false, broken, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			must.Succeed(t, v1alpha1.AddToScheme(scheme))
			team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "u-1", CreationTimestamp: metav1.NewTime(noon)}}
			Apply(&team.Status.Conditions, Summary{Reason: "Waiting", Message: "a"}, 1, noon)
			builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(team)
			if !tc.gone {
				builder = builder.WithObjects(team.DeepCopy())
			}
			writes := 0
			c := builder.WithInterceptorFuncs(interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
					writes++
					if tc.fails != nil {
						return tc.fails
					}
					return c.SubResource(name).Update(ctx, obj, opts...)
				},
			}).Build()
			if !tc.gone {
				must.Succeed(t, c.Get(t.Context(), client.ObjectKeyFromObject(team), team))
			}
			recorder := events.NewFakeRecorder(1)
			reporter := &Reporter{Client: c, Events: recorder, Action: "Reconcile", Normal: []string{"Done"}, Clock: clocktesting.NewFakePassiveClock(noon)}
			before := team.Status.DeepCopy()
			Apply(&team.Status.Conditions, tc.summary, 1, noon.Add(time.Minute))
			if err := reporter.Report(t.Context(), team, before, &team.Status); !errors.Is(err, tc.fails) || (err == nil) != (tc.fails == nil) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got := ""
			select {
			case got = <-recorder.Events:
			default:
			}
			if writes != tc.writes || !strings.HasPrefix(got, tc.event) || (got == "") != (tc.event == "") {
				t.Errorf("%s: %d writes and the event %q", tc.reason, writes, got)
			}
			if len(got) > 1024+len("Warning Broken ") || !utf8.ValidString(got) {
				t.Errorf("the event has %d bytes: %q", len(got), got)
			}
			if tc.summary.Message == long && len(got) < 900 {
				t.Errorf("the event of a long message has %d bytes", len(got))
			}
		})
	}
}

func TestReportWithoutRecorder(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(team).WithObjects(team).Build()
	Apply(&team.Status.Conditions, Summary{Reason: "Done"}, 1, noon)
	if err := (&Reporter{Client: c}).Report(t.Context(), team, &v1alpha1.TeamStatus{}, &team.Status); err != nil {
		t.Error(err)
	}
}

// TestWake defers a warning, and checks when the object is reported again.
func TestWake(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(noon.Add(20 * time.Second))
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: "ci", UID: "u-1", CreationTimestamp: metav1.NewTime(noon)}}
	recorder := events.NewFakeRecorder(5)
	r := &Reporter{Events: recorder, Clock: now}
	report := func(reason string) {
		t.Helper()
		Apply(&key.Status.Conditions, Summary{Reason: reason}, 1, now.Now())
		must.Succeed(t, r.Report(t.Context(), key, &key.Status, &key.Status))
	}
	was := r.shouldReport(key, v1alpha1.ReasonNoTeam, "")
	if was || r.RequeueAfter(key, 0) != 10*time.Second || r.RequeueAfter(key, time.Second) != time.Second || r.RequeueAfter(key, time.Minute) != 10*time.Second {
		t.Errorf("the wake-up comes after %s, news: %v", r.RequeueAfter(key, 0), was)
	}
	other := key.DeepCopy()
	other.UID = "u-2"
	if r.RequeueAfter(other, 0) != 0 || r.RequeueAfter(other, time.Minute) != time.Minute {
		t.Error("another object waits for it")
	}
	now.SetTime(noon.Add(NoTeamGrace))
	report(v1alpha1.ReasonNoTeam)
	if len(recorder.Events) != 1 || r.RequeueAfter(key, 0) != 0 {
		t.Errorf("%d events at the end of the time, next report after %s", len(recorder.Events), r.RequeueAfter(key, 0))
	}
	report(v1alpha1.ReasonNoTeam)
	if len(recorder.Events) != 1 {
		t.Errorf("the event is emitted %d times", len(recorder.Events))
	}
	// A process that starts within that time cannot see whether the previous one deferred the warning.
	now.SetTime(noon.Add(20 * time.Second))
	next := &Reporter{Events: recorder, Clock: now}
	if next.shouldReport(key, v1alpha1.ReasonNoTeam, v1alpha1.ReasonNoTeam) || next.RequeueAfter(key, 0) != 10*time.Second {
		t.Errorf("the warning of the process before is reported after %s", next.RequeueAfter(key, 0))
	}
	now.SetTime(noon.Add(NoTeamGrace))
	if !next.shouldReport(key, v1alpha1.ReasonNoTeam, v1alpha1.ReasonNoTeam) {
		t.Error("the warning of the process before is lost")
	}
	// A Team arrived in time, so no warning is emitted.
	now.SetTime(noon)
	r.shouldReport(key, v1alpha1.ReasonNoTeam, "")
	if !r.shouldReport(key, "Active", v1alpha1.ReasonNoTeam) || r.RequeueAfter(key, 0) != 0 {
		t.Error("a recovery was not reported immediately")
	}
}

// TestReportLogs checks the log lines for reasons that require user action, and for recoveries from them.
func TestReportLogs(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, was, is string
		want            string
	}{
		"trouble":               {"a user has to act", "", "Broken", "not ready"},
		"another trouble":       {"a user has to act", "Broken", "Lost", "not ready"},
		"repaired":              {"the recovery is logged", "Broken", "Done", "ready"},
		"all is well":           {"usual states are not logged", "", "Done", ""},
		"another healthy state": {"usual states are not logged", "Made", "Done", ""},
	} {
		var out logtest.Log
		r := &Reporter{Normal: []string{"Made", "Done"}}
		r.log(ctrl.LoggerInto(t.Context(), logr.FromSlogHandler(slog.NewJSONHandler(&out, nil))), &metav1.Condition{
			Reason: tc.is, Status: map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[tc.is == "Done"],
		}, tc.was)
		lines, err := out.Lines()
		got := ""
		for _, line := range lines {
			got += line.Message()
		}
		if got != tc.want || err != nil {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}
