// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"log/slog"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/test/logtest"
)

// logged returns the log lines of a function, without the times and the fields that identify the target.
func logged(t *testing.T, act func(log logr.Logger)) []logtest.Line {
	t.Helper()
	var out logtest.Log
	inWords := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}}
	act(logr.FromSlogHandler(slog.NewJSONHandler(&out, inWords)))
	lines, err := out.Lines()
	if err != nil {
		t.Error(err)
	}
	for _, line := range lines {
		if line.Text("uid") != "u-1" || line.Text("target") != "0" || line.Text("platform") != "x" || line.Text("connection") != "acme-x" {
			t.Errorf("a line does not name its target: %v", line)
		}
		for _, field := range []string{slog.TimeKey, slog.LevelKey, "uid", "target", "platform", "connection"} {
			delete(line, field)
		}
	}
	return lines
}

func TestLogTargets(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	entry := func(reason, message string, change ...func(*v1alpha1.TargetStatus)) v1alpha1.PostStatus {
		target := v1alpha1.TargetStatus{Platform: "x", Reason: reason, Message: message}
		if reason != "" {
			target.Blocked = &v1alpha1.Blocked{Reason: reason, Problem: message}
		}
		for _, c := range change {
			c(&target)
		}
		return v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{target}}
	}
	failed := func(target *v1alpha1.TargetStatus) { target.State = v1alpha1.TargetFailed }
	for name, tc := range map[string]struct {
		reason        string
		due           time.Duration
		before, after v1alpha1.PostStatus
		want          []logtest.Line
	}{
		"continued": {"the target is not blocked", 0, v1alpha1.PostStatus{}, entry("", ""), nil},
		"waits": {"operators search for the reason and the duration", 0, v1alpha1.PostStatus{}, entry(v1alpha1.ReasonRateLimited, "busy", func(target *v1alpha1.TargetStatus) {
			target.NextTryAt, target.TryUntil = v1alpha1.NewTimePtr(now.Add(5*time.Minute)), v1alpha1.NewTimePtr(now.Add(time.Hour))
		}), []logtest.Line{{"msg": logWaits, "reason": "RateLimited", "problem": "busy", "triedAgainIn": "5m0s", "givenUpIn": "1h0m0s"}}},
		"waits on":            {"the reason was logged before", 0, entry(v1alpha1.ReasonRateLimited, "busy"), entry(v1alpha1.ReasonRateLimited, "busy, tried twice"), nil},
		"waits for another":   {"the reason is new", -5 * time.Minute, entry(v1alpha1.ReasonRateLimited, "busy"), entry(v1alpha1.ReasonMediaNotReady, "no file"), []logtest.Line{{"msg": logWaits, "reason": "MediaNotReady", "problem": "no file", "late": "5m0s"}}},
		"no longer waits":     {"the line about its outcome follows", 0, entry(v1alpha1.ReasonRateLimited, "busy"), entry("", ""), nil},
		"breaks a rule":       {"the post continues when it is corrected", time.Hour, v1alpha1.PostStatus{}, entry(v1alpha1.ReasonInvalid, "too long"), []logtest.Line{{"msg": logMend, "reason": "Invalid", "problem": "too long"}}},
		"is refused":          {"the target is not retried", 0, entry("", ""), entry(v1alpha1.ReasonRefused, "spam", failed), []logtest.Line{{"msg": logRefused, "reason": "Refused", "problem": "spam"}}},
		"missed its deadline": {"its deadline has passed", -time.Hour, entry(v1alpha1.ReasonRateLimited, "busy"), entry(v1alpha1.ReasonMissedSchedule, "busy", failed), []logtest.Line{{"msg": logGivenUp, "reason": "MissedSchedule", "problem": "busy", "late": "1h0m0s"}}},
		"is cancelled":        {"the platform did not refuse it", 0, entry("", ""), entry(v1alpha1.ReasonCancelled, "cancelled", failed), []logtest.Line{{"msg": logCancelled, "reason": "Cancelled", "problem": "cancelled"}}},
		"is beyond the plan":  {"the platform did not refuse it", 0, entry("", ""), entry(v1alpha1.ReasonPlanLimit, "30 a month", failed), []logtest.Line{{"msg": logFailed, "reason": "PlanLimit", "problem": "30 a month"}}},
		"was refused":         {"the refusal was logged before", 0, entry(v1alpha1.ReasonRefused, "spam", failed), entry(v1alpha1.ReasonRefused, "spam", failed), nil},
		"may be published":    {"a user has to decide", 0, entry("", ""), entry(v1alpha1.ReasonOutcomeUnknown, "no answer", func(target *v1alpha1.TargetStatus) { target.State = v1alpha1.TargetUndecided }), []logtest.Line{{"msg": logUnknown, "reason": "OutcomeUnknown", "problem": "no answer"}}},
		"is out":              {"the platform's response has its own line", 0, entry("", ""), entry("", "", func(target *v1alpha1.TargetStatus) { target.State = v1alpha1.TargetPosted }), nil},
	} {
		post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}, Status: tc.after}
		post.Spec.ScheduledAt = v1alpha1.NewTimePtr(now.Add(tc.due))
		post.Spec.Targets = []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}}}
		got := logged(t, func(log logr.Logger) { logTargets(log, post, &tc.before, now) })
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s:\n%s", name, tc.reason, diff)
		}
	}
}

func TestLogResult(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	waited := func(reason string) *v1alpha1.TargetStatus {
		target := &v1alpha1.TargetStatus{}
		attempt.Block(target, v1alpha1.Blocked{Reason: reason})
		return target
	}
	posted := platforms.Result{Outcome: platforms.Posted, ExternalID: "p1"}
	for name, tc := range map[string]struct {
		reason string
		// late is the lateness of a scheduled post or, if negative, of an immediate one.
		late   time.Duration
		before *v1alpha1.TargetStatus
		result platforms.Result
		want   []logtest.Line
	}{
		"in time":                         {"the post was not delayed", time.Second, nil, posted, []logtest.Line{{"msg": logPublished, "attempt": "a1", "externalID": "p1"}}},
		"behind a limit":                  {"the line gives the reason for the delay", 30 * time.Minute, waited(v1alpha1.ReasonRateLimited), posted, []logtest.Line{{"msg": logLate, "attempt": "a1", "externalID": "p1", "late": "30m0s", "reason": "RateLimited"}}},
		"an immediate one behind a limit": {"the post was due at its creation", -time.Minute, waited(v1alpha1.ReasonRateLimited), posted, []logtest.Line{{"msg": logLate, "attempt": "a1", "externalID": "p1", "late": "1m0s", "reason": "RateLimited"}}},
		"after others":                    {"only its turn delayed it", time.Minute, &v1alpha1.TargetStatus{}, posted, []logtest.Line{{"msg": logLate, "attempt": "a1", "externalID": "p1", "late": "1m0s", "reason": "Turn"}}},
		"after its upload":                {"the post was due when its files were uploaded", -time.Minute, waited(v1alpha1.ReasonPreparing), posted, []logtest.Line{{"msg": logPublished, "attempt": "a1", "externalID": "p1"}}},
		"a later card":                    {"the card follows the first", time.Hour, &v1alpha1.TargetStatus{Cards: make([]v1alpha1.CardStatus, 2)}, posted, []logtest.Line{{"msg": logPublished, "attempt": "a1", "externalID": "p1"}}},
		"worked on":                       {"the platform is processing it", time.Hour, nil, platforms.Result{Outcome: platforms.Accepted, OperationID: "o1"}, []logtest.Line{{"msg": logAccepted, "attempt": "a1", "operationID": "o1"}}},
		"refused":                         {"the target's reason has its own line", 0, nil, platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{Problem: "spam"}}, nil},
		"unknown":                         {"a lookup follows", 0, nil, platforms.Result{Outcome: platforms.Unknown, Err: &platforms.Error{Problem: "no answer"}}, []logtest.Line{{"msg": "the outcome of a call is unknown; looking it up", "attempt": "a1", "problem": "no answer"}}},
	} {
		post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}
		if post.CreationTimestamp.Time = now.Add(tc.late); tc.late >= 0 {
			post.Spec.ScheduledAt = v1alpha1.NewTimePtr(now.Add(-tc.late))
		}
		p := &reconciliation{View: posting.Of(post)}
		if tc.before != nil {
			p.stored.Targets = []v1alpha1.TargetStatus{*tc.before}
			post.Status = p.stored
		}
		conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: "acme-x"}, Spec: v1alpha1.ConnectionSpec{Platform: "x"}}
		got := logged(t, func(log logr.Logger) {
			p.log = log
			logResult(p, &publish.Delivery{Conn: conn, Attempt: "a1", Result: tc.result}, now)
		})
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s:\n%s", name, tc.reason, diff)
		}
	}
}
