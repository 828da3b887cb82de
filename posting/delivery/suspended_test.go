// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/test/must"
)

// suspensions returns suspensions, given in minutes from t0: pairs of start and end, and a single start for one that is
// ongoing.
func suspensions(minutes ...int) (list []v1alpha1.Suspension) {
	for i := 0; i < len(minutes); i += 2 {
		s := v1alpha1.Suspension{From: v1alpha1.NewTime(t0.Add(time.Duration(minutes[i]) * time.Minute))}
		if i+1 < len(minutes) {
			s.Until = v1alpha1.NewTimePtr(t0.Add(time.Duration(minutes[i+1]) * time.Minute))
		}
		list = append(list, s)
	}
	return list
}

// shown describes the post and formats the entry of its first target.
func shown(f *Facts) string {
	Describe(f.Post, f.Now)
	t := f.Target(0)
	out := string(t.State)
	if t.Blocked != nil {
		out += " " + t.Blocked.Reason
	}
	if t.TryUntil != nil {
		out += fmt.Sprint(" until ", t.TryUntil.Sub(t0))
	}
	if t.SuspendedUntil != nil {
		out += fmt.Sprint(" counted to ", t.SuspendedUntil.Sub(t0))
	}
	if t.InitialDeadline != nil {
		out += fmt.Sprint(" at first until ", t.InitialDeadline.Sub(t0))
	}
	if t.Prepared != nil {
		out += " has " + t.Prepared.Checkpoint
	}
	return out
}

func TestSuspended(t *testing.T) {
	lasting := func(s *situation) { s.Suspended, s.Suspensions = true, suspensions(-5) }
	waiting := func(s *situation) {
		lasting(s)
		b := suspended
		s.target.Blocked, s.target.State, s.target.TryUntil = &b, v1alpha1.TargetPending, v1alpha1.NewTimePtr(t0.Add(time.Minute))
		s.entered()
	}
	done := func(state PreparationState) func(int) Preparation {
		return preparing(Preparation{State: state, Hash: "hash", Checkpoint: "c1", BegunAt: t0.Add(-time.Minute), EndedAt: t0, TTL: time.Hour})
	}
	busy := platforms.Errorf(platforms.ClassTransient, "busy")
	for name, tt := range map[string]struct {
		reason string
		change func(s *situation)
		want   []string
		shows  string
	}{
		"a post that is due": {"the post waits, and reports the reason, in one write", lasting, []string{"write", "wait for inputs"}, "pending Suspended until 59m50s"},
		"a post that waits":  {"a suspension costs a post one write", waiting, []string{"wait for inputs"}, "pending Suspended until 1m0s"},
		"a scheduled post": {"the post is not affected until its time", func(s *situation) {
			lasting(s)
			s.scheduled(2 * time.Minute)
		}, []string{"write", "wait 2m0s in turn"}, "pending"},
		"a suspension that is not recorded yet": {"the deadline waits for the recorded start", func(s *situation) {
			s.Suspended = true
			s.scheduled(-2 * time.Hour)
		}, []string{"write", "wait for inputs"}, "pending Suspended until -1h0m0s"},
		"one whose deadline ended in the suspension": {"the deadline is extended by the suspension", func(s *situation) {
			s.Suspended, s.Suspensions = true, suspensions(-90)
			s.scheduled(-2 * time.Hour)
		}, []string{"write", "wait for inputs"}, "pending Suspended until -1h0m0s"},
		"one whose deadline ended before": {"a suspension does not revive a missed post", func(s *situation) {
			s.Suspended, s.Suspensions = true, suspensions(-50)
			s.scheduled(-2 * time.Hour)
		}, []string{"write", "wait"}, "failed MissedSchedule"},
		"one to be prepared": {"the preparation continues during the suspension", func(s *situation) {
			lasting(s)
			s.Preparation = done(PreparationMissing)
		}, []string{"prepare [0]"}, "pending Suspended until 59m50s"},
		"a prepared target": {"the preparation is stored, since a suspension may be long", func(s *situation) {
			lasting(s)
			s.illustrated(1)
			s.Preparation = done(PreparationReady)
		}, []string{"write", "wait for inputs"}, "pending Suspended until 59m50s has c1"},
		"a target that is still being prepared": {"its end wakes the post", func(s *situation) {
			lasting(s)
			s.Preparation = done(PreparationRunning)
		}, []string{"write", "wait for inputs"}, "pending Suspended until 59m50s has c1"},
		"a waiting, prepared target": {"another process may send the target", func(s *situation) {
			waiting(s)
			s.illustrated(1)
			s.Preparation = done(PreparationReady)
		}, []string{"write", "wait for inputs"}, "pending Suspended until 1m0s has c1"},
		"a wait during a preparation": {"another process can continue it", func(s *situation) {
			waiting(s)
			s.Preparation = done(PreparationRunning)
		}, []string{"write", "wait for inputs"}, "pending Suspended until 1m0s has c1"},
		"a text that is prepared": {"its preparation is repeated in a moment, and not recorded", func(s *situation) {
			lasting(s)
			s.Preparation = done(PreparationReady)
		}, []string{"write", "wait for inputs"}, "pending Suspended until 59m50s"},
		"a target that cannot be prepared now, past its deadline": {"the deadline was extended, so the target is retried", func(s *situation) {
			s.Suspended, s.Suspensions = true, suspensions(-90)
			s.scheduled(-2 * time.Hour)
			s.Preparation = preparing(Preparation{State: PreparationFailed, Hash: "hash", Err: busy})
		}, []string{"report 0", "write", "wait 5m0s for inputs"}, "pending PlatformUnavailable until -1h0m0s"},
		"a call in progress": {"the call completes, and is looked up if necessary", func(s *situation) {
			lasting(s)
			s.claimed(time.Hour)
		}, []string{"lookup [0]"}, ""},
		"one of two published": {"the unclaimed one waits", func(s *situation) {
			lasting(s)
			s.pausedSecond()
			s.Post.Status.Targets[1].NextTryAt = nil
			s.entry(0).State, s.entry(0).ExternalID = v1alpha1.TargetPosted, "1"
		}, []string{"write", "wait for inputs"}, "posted"},
		"a connection that is not ready": {"users can correct that", func(s *situation) {
			lasting(s)
			s.conn.Spec.Disabled = true
		}, []string{"write", "wait for inputs"}, "pending ConnectionNotReady until 59m50s"},
		"a namespace without a team, past its deadline": {"deadlines of posts that are not accepted are extended as well", func(s *situation) {
			s.Suspended, s.Unowned, s.Suspensions = true, true, suspensions(-90)
			s.scheduled(-2 * time.Hour)
		}, []string{"write and warn of NoTeam", "wait for inputs"}, "pending NoTeam until -1h0m0s"},
		"a cancelled post": {"users cancel posts that should not be published", func(s *situation) {
			lasting(s)
			s.Post.Spec.Cancelled = true
			s.entered()
		}, []string{"write Cancelled"}, "withdrawn"},

		"the end": {"the post is published, with the claim's own write", func(s *situation) {
			s.Suspensions = suspensions(-90, -1)
			s.scheduled(-2 * time.Hour)
			b := suspended
			s.target.Blocked, s.target.State, s.target.TryUntil = &b, v1alpha1.TargetPending, v1alpha1.NewTimePtr(t0.Add(-time.Hour))
			s.entered()
		}, []string{"claim [0]", "wait 29m0.001s"}, "pending until 29m0s counted to -1m0s"},
		"the end, after the platform's pause": {"the deadline without the pause moves along", func(s *situation) {
			s.Suspensions = suspensions(-90, -1)
			s.scheduled(-150 * time.Minute)
			s.target.TryUntil, s.target.InitialDeadline = v1alpha1.NewTimePtr(t0.Add(-time.Hour)), v1alpha1.NewTimePtr(t0.Add(-80*time.Minute))
			s.entered()
		}, []string{"claim [0]", "wait 29m0.001s"}, "pending until 29m0s counted to -1m0s at first until 9m0s"},
		"the end, seen again": {"a counted suspension is not counted again", func(s *situation) {
			s.Suspensions = suspensions(-90, -1)
			s.scheduled(-2 * time.Hour)
			s.target.TryUntil, s.target.SuspendedUntil = v1alpha1.NewTimePtr(t0.Add(29*time.Minute)), v1alpha1.NewTimePtr(t0.Add(-time.Minute))
			s.entered()
		}, []string{"claim [0]", "wait 29m0.001s"}, "pending until 29m0s counted to -1m0s"},
		"the end of another one": {"only the time since the first one counts", func(s *situation) {
			s.Suspensions = suspensions(-90, -40, -20, -1)
			s.scheduled(-2 * time.Hour)
			s.target.TryUntil, s.target.SuspendedUntil = v1alpha1.NewTimePtr(t0.Add(-10*time.Minute)), v1alpha1.NewTimePtr(t0.Add(-40*time.Minute))
			s.entered()
		}, []string{"claim [0]", "wait 9m0.001s"}, "pending until 9m0s counted to -1m0s"},
		"long after the end": {"the moved deadline applies", func(s *situation) {
			s.Suspensions = suspensions(-200, -90)
			s.scheduled(-230 * time.Minute)
		}, []string{"write", "wait"}, "failed MissedSchedule counted to -1h30m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			if diff := cmp.Diff(tt.want, words(Decide(f))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if got := shown(f); tt.shows != "" && got != tt.shows {
				t.Errorf("%s: shows %q, want %q", tt.reason, got, tt.shows)
			}
		})
	}
}

// TestRecordedWhileSuspended checks the result of a call whose retry would be after the deadline.
func TestRecordedWhileSuspended(t *testing.T) {
	busy := platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, "busy")}
	for name, tt := range map[string]struct {
		reason  string
		held    Deadlines
		attempt string
		result  platforms.Result
		shows   string
	}{
		"a team without a suspension": {"the retry would be too late", Deadlines{}, "a1", busy, "failed PlatformUnavailable"},
		"a team that is suspended": {
			"the deadline is extended, by an unknown time",
			Deadlines{Suspended: true, Suspensions: suspensions(-5)},
			"a1", busy, "pending PlatformUnavailable until 1ms",
		},
		"a suspension that is not recorded yet":      {"the deadline is extended, by an unknown time", Deadlines{Suspended: true}, "a1", busy, "pending PlatformUnavailable until 1ms"},
		"a suspension that began after the deadline": {"the suspension does not extend a deadline that has passed", Deadlines{Suspended: true, Suspensions: suspensions(1)}, "a1", busy, "failed PlatformUnavailable"},
		"a past suspension": {
			"the deadline is later by then",
			Deadlines{Suspensions: suspensions(-5, -3)},
			"a1", busy, "pending PlatformUnavailable until 2m0.001s counted to -3m0s",
		},
		"a past suspension, not counted in full": {"the retry would be too late anyway", Deadlines{Suspensions: []v1alpha1.Suspension{
			{From: v1alpha1.NewTime(t0.Add(-2 * time.Millisecond)), Until: v1alpha1.NewTimePtr(t0)},
		}}, "a1", busy, "failed PlatformUnavailable counted to 0s"},
		"a pause that the platform announces": {
			"the starting deadline counts from its end",
			Deadlines{LongestDelay: 3 * time.Hour},
			"a1",
			platforms.Result{Outcome: platforms.NotSent, Err: &platforms.Error{Class: platforms.ClassTransient, Problem: "busy", RetryAt: t0.Add(10 * time.Minute)}},
			"pending PlatformUnavailable until 1h10m0s at first until 1ms",
		},
		"a permanent refusal": {
			"time does not change that, and the platform is queried first",
			Deadlines{Suspended: true, Suspensions: suspensions(-5)},
			"a1",
			platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(platforms.ClassPermanent, "no")},
			"pending Refused until 1ms",
		},
		"a late result": {"the late result has no effect", Deadlines{Suspensions: suspensions(-5, -3)}, "a0", busy, "pending until 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			p := open()
			p.Status.Targets[0].TryUntil = v1alpha1.NewTimePtr(t0.Add(time.Millisecond))
			tt.held.StartingDeadline = time.Hour
			if err := RecordResults(p, []Result{{Target: 0, Attempt: tt.attempt, Result: tt.result}}, &tt.held, t0); (err != nil) != (tt.attempt != "a1") {
				t.Fatal(err)
			}
			if got := shown(&Facts{View: posting.Of(p), Now: t0}); got != tt.shows {
				t.Errorf("%s: shows %q, want %q", tt.reason, got, tt.shows)
			}
		})
	}
	t.Run("a call that is looked up and absent", func(t *testing.T) {
		p := open()
		entry := &p.Status.Targets[0]
		entry.TryUntil, entry.Attempt.Lookups = v1alpha1.NewTimePtr(t0.Add(time.Millisecond)), 1
		answer := LookupAnswer{AskedAt: t0.Add(time.Hour), LookupResult: platforms.LookupResult{Proof: true}}
		held := Deadlines{Suspended: true, Suspensions: suspensions(-5), StartingDeadline: time.Hour}
		must.Succeed(t, RecordLookup(p, &answer, timing, &held, t0.Add(time.Hour)))
		if got := shown(&Facts{View: posting.Of(p), Now: t0}); got != "pending PlatformUnavailable until 1ms" {
			t.Errorf("shows %q: it is sent when the suspension has ended", got)
		}
	})
}

// TestExtendDeadlines checks how an announced pause affects a target's deadline.
func TestExtendDeadlines(t *testing.T) {
	held := Deadlines{StartingDeadline: time.Hour, LongestDelay: 3 * time.Hour}
	for name, tt := range map[string]struct {
		reason           string
		until, initial   time.Duration
		pause, now       time.Duration
		moved            bool
		wantUntil, wants time.Duration
	}{
		"within the deadline":     {"the owner's deadline is later than ten minutes", time.Hour, 0, 50 * time.Minute, 0, true, 110 * time.Minute, time.Hour},
		"over":                    {"the suspension no longer extends the deadline", time.Hour, 0, 20 * time.Minute, 20 * time.Minute, false, time.Hour, 0},
		"shorter than the last":   {"a deadline never moves back", 2 * time.Hour, time.Hour, 50 * time.Minute, 40 * time.Minute, false, 2 * time.Hour, time.Hour},
		"as long as the deadline": {"the deadline is extended to the end of the pause", time.Hour, 0, time.Hour, 0, true, 2 * time.Hour, time.Hour},
		"a second pause":          {"the bound counts from the first deadline", 2 * time.Hour, time.Hour, 2 * time.Hour, 90 * time.Minute, true, 3 * time.Hour, time.Hour},
		"near the limit":          {"the target is retried again", 2 * time.Hour, time.Hour, 170 * time.Minute, 90 * time.Minute, true, 3 * time.Hour, time.Hour},
		"beyond the limit":        {"the post would be unexpectedly late", time.Hour, 0, 181 * time.Minute, 0, false, time.Hour, 0},
		"after the deadline":      {"its time was over before", time.Hour, 0, 2 * time.Hour, 61 * time.Minute, false, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			target := &v1alpha1.TargetStatus{TryUntil: v1alpha1.NewTimePtr(t0.Add(tt.until))}
			if tt.initial > 0 {
				target.InitialDeadline = v1alpha1.NewTimePtr(t0.Add(tt.initial))
			}
			moved := held.extend(target, t0.Add(tt.pause), t0.Add(tt.now))
			initial := time.Duration(0)
			if target.InitialDeadline != nil {
				initial = target.InitialDeadline.Sub(t0)
			}
			if until := target.TryUntil.Sub(t0); moved != tt.moved || until != tt.wantUntil || initial != tt.wants {
				t.Errorf("moved %t until %s, first until %s; want %t, %s, %s (%s)", moved, until, initial, tt.moved, tt.wantUntil, tt.wants, tt.reason)
			}
		})
	}
}
