// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// withHold returns a change that lets a process hold the preparation for the given time from now on.
func withHold(holder string, until time.Duration) func(*v1alpha1.Prepared) {
	return func(p *v1alpha1.Prepared) {
		p.By = &v1alpha1.PreparedBy{Holder: holder, Until: v1alpha1.NewTime(t0.Add(until))}
	}
}

// preparedBy returns a recorded preparation after several changes.
func preparedBy(changes ...func(*v1alpha1.Prepared)) *v1alpha1.Prepared {
	return prepared(func(p *v1alpha1.Prepared) {
		for _, change := range changes {
			change(p)
		}
	})
}

func madeNow(p *v1alpha1.Prepared)    { p.MadeAt = v1alpha1.NewTime(t0) }
func isComplete(p *v1alpha1.Prepared) { p.Complete = true }
func hasFailed(p *v1alpha1.Prepared)  { p.Problem = "busy" }
func named(name string) func(*v1alpha1.Prepared) {
	return func(p *v1alpha1.Prepared) { p.Checkpoint = name }
}

// holdCase is a test case for an image post that two processes, "me" and "other", may prepare.
type holdCase struct {
	reason string
	change func(s *situation)
	want   []string
	// prepared is the preparation that is recorded afterwards.
	prepared *v1alpha1.Prepared
}

func (tt *holdCase) check(t *testing.T, due time.Duration, decide func(*Facts) []Action) {
	t.Helper()
	f := facts(func(s *situation) {
		s.illustrated(1)
		s.scheduled(due)
		s.Holder = "me"
		s.entered()
		if tt.change != nil {
			tt.change(s)
		}
	})
	if diff := cmp.Diff(tt.want, words(decide(f))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
	}
	if got := f.Post.Status.Targets[0].Prepared; !v1alpha1.SemanticEqual(got, tt.prepared) {
		t.Errorf("%s: recorded is %+v, want %+v", tt.reason, got, tt.prepared)
	}
}

// recorded returns a change that sets the post's recorded preparation and the state of this process's own.
func recorded(p *v1alpha1.Prepared, local func(int) Preparation) func(*situation) {
	return func(s *situation) { s.Post.Status.Targets[0].Prepared, s.Preparation = p, local }
}

// TestDecideShared covers the process that delivers the post, twenty minutes before its time.
func TestDecideShared(t *testing.T) {
	const unhurried = "wait 15m13.896638028s"
	missing, running, ready := aheadOf(PreparationMissing, nil), aheadOf(PreparationRunning, nil), aheadOf(PreparationReady, nil)
	failed := failedAhead(platforms.ClassTransient, nil)
	for name, tt := range map[string]holdCase{
		"nothing prepared": {
			"it starts once other processes know that", recorded(nil, missing), []string{"prepare ahead [] hold [0]", "write", unhurried}, nil,
		},
		"a text": {"its preparation is short, and not recorded", func(s *situation) {
			s.Post.Spec.Category, s.Post.Spec.Image = v1alpha1.CategoryText, nil
			s.scheduled(time.Second)
			s.Preparation = missing
		}, []string{"prepare ahead [0]", "write", "wait 1s in turn"}, nil},
		"nothing prepared, and uploads not shared": {"nobody else prepares it", func(s *situation) {
			s.Preparation, s.Holder = missing, ""
		}, []string{"prepare ahead [0]", "write", unhurried}, nil},
		"held by this process": {
			"the hold was stored before a restart, or before its slot was free", recorded(preparedBy(withHold("me", time.Second)), missing),
			[]string{"prepare ahead [0]", "write", unhurried},
			preparedBy(withHold("me", time.Second)),
		},
		"held by this process, for too long": {
			"another process may hold it now", recorded(preparedBy(withHold("me", 0)), missing),
			[]string{"prepare ahead [] hold [0]", "write", unhurried},
			preparedBy(withHold("me", 0)),
		},
		"held by another process": {
			"it is taken over when the hold has ended by any clock", recorded(preparedBy(withHold("other", time.Minute)), missing),
			[]string{"write", "wait 1m2s"},
			preparedBy(withHold("other", time.Minute)),
		},
		"held by another process, and uploads not shared": {"the others still do, in the middle of an upgrade", func(s *situation) {
			recorded(preparedBy(withHold("other", time.Minute)), missing)(s)
			s.Holder = ""
		}, []string{"write", "wait 1m2s"}, preparedBy(withHold("other", time.Minute))},
		"held by another process that may have died": {
			"its clock may be behind", recorded(preparedBy(withHold("other", -time.Second)), missing),
			[]string{"write", "wait 1s"},
			preparedBy(withHold("other", -time.Second)),
		},
		"held by another process that has died": {
			"its upload is continued", recorded(preparedBy(withHold("other", -2*time.Second)), missing),
			[]string{"prepare ahead [] hold [0]", "write", unhurried},
			preparedBy(withHold("other", -2*time.Second)),
		},
		"held for longer than possible": {
			"a wrong clock must not keep a post from its preparation", recorded(preparedBy(withHold("other", 65*time.Second)), missing),
			[]string{"prepare ahead [] hold [0]", "write", unhurried},
			preparedBy(withHold("other", 65*time.Second)),
		},
		"held by another process before an edit": {"it prepares content that is not sent", func(s *situation) {
			recorded(preparedBy(withHold("other", time.Minute), func(p *v1alpha1.Prepared) { p.ContentHash = "before" }), missing)(s)
		}, []string{"prepare ahead [] hold [0]", "write", unhurried}, nil},
		"completed by another process": {
			"it is adopted", recorded(preparedBy(isComplete), missing), []string{"prepare ahead [0]", "write", unhurried}, preparedBy(isComplete),
		},
		"completed by another process too long ago": {
			"the platform may have dropped it", func(s *situation) {
				recorded(preparedBy(isComplete, func(p *v1alpha1.Prepared) { p.MadeAt = v1alpha1.NewTime(t0.Add(-18 * time.Hour)) }), missing)(s)
			}, []string{"prepare ahead [] hold [0]", "write", unhurried}, preparedBy(isComplete, func(p *v1alpha1.Prepared) { p.MadeAt = v1alpha1.NewTime(t0.Add(-18 * time.Hour)) }),
		},
		"failed in another process": {
			"that process knows how often, and tries again", recorded(preparedBy(hasFailed), missing),
			[]string{"write", "wait 4m55s"},
			preparedBy(hasFailed),
		},
		"failed in another process some time ago": {
			"that process is gone", recorded(preparedBy(hasFailed, func(p *v1alpha1.Prepared) { p.MadeAt = v1alpha1.NewTime(t0.Add(-5 * time.Minute)) }), missing),
			[]string{"prepare ahead [] hold [0]", "write", unhurried},
			preparedBy(hasFailed, func(p *v1alpha1.Prepared) { p.MadeAt = v1alpha1.NewTime(t0.Add(-5 * time.Minute)) }),
		},
		"under way": {
			"the hold is extended after half of its time", recorded(preparedBy(withHold("me", 40*time.Second)), running),
			[]string{"write", "wait 10s"},
			preparedBy(withHold("me", 40*time.Second)),
		},
		"under way for half a minute": {
			"it is extended", recorded(preparedBy(withHold("me", 30*time.Second)), running),
			[]string{"write", "wait 30s"},
			preparedBy(withHold("me", time.Minute)),
		},
		"under way, with progress": {
			"the hold remains", recorded(preparedBy(named("before"), withHold("me", 40*time.Second)), running),
			[]string{"write", "wait 10s"},
			preparedBy(madeNow, withHold("me", 40*time.Second)),
		},
		"under way, though held by nobody": {
			"uploads were not shared when it started", recorded(nil, running), []string{"write", "wait 30s"}, preparedBy(madeNow, withHold("me", time.Minute)),
		},
		"under way, but taken over": {
			"one upload is enough", recorded(preparedBy(withHold("other", time.Minute)), running),
			[]string{"stop [0]", "write", "wait 1m2s"},
			preparedBy(withHold("other", time.Minute)),
		},
		"under way, but completed by another process": {
			"that one is adopted", recorded(preparedBy(isComplete, named("another")), running),
			[]string{"stop [0]", "prepare ahead [0]", "write", unhurried},
			preparedBy(isComplete, named("another")),
		},
		"completed": {
			"the hold ends", recorded(preparedBy(withHold("me", time.Second)), ready), []string{"write", unhurried}, preparedBy(isComplete),
		},
		"completed, though taken over": {
			"the other process adopts it", recorded(preparedBy(withHold("other", time.Minute)), ready), []string{"write", unhurried}, preparedBy(isComplete),
		},
		"completed, and by another process later": {
			"one of them is enough, and two would replace each other forever", recorded(preparedBy(isComplete, madeNow, named("another")), ready),
			[]string{"write", unhurried},
			preparedBy(isComplete, madeNow, named("another")),
		},
		"completed, and by another process at the same time": {
			"both decide for the same one", recorded(preparedBy(isComplete, named("zzz")), ready), []string{"write", unhurried}, preparedBy(isComplete, named("zzz")),
		},
		"completed, and by another process at the same time, with a smaller name": {
			"both decide for the same one", recorded(preparedBy(isComplete, named("a")), ready), []string{"write", unhurried}, preparedBy(isComplete),
		},
		"failed": {
			"the hold ends", recorded(preparedBy(withHold("me", time.Second)), failed), []string{"report 0 ahead", "write", "wait 5s"}, preparedBy(hasFailed),
		},
		"failed again": {
			"the hold ends, and the failure is known", recorded(preparedBy(hasFailed, withHold("me", time.Second)), failed), []string{"write", "wait 5s"}, preparedBy(hasFailed),
		},
		"failed, and taken over": {
			"the other process may succeed", recorded(preparedBy(withHold("other", time.Minute)), failed),
			[]string{"stop [0]", "write", "wait 1m2s"},
			preparedBy(withHold("other", time.Minute)),
		},
		"failed, and to be tried again": {"another process may hold it by now", func(s *situation) {
			recorded(preparedBy(hasFailed), failedAhead(platforms.ClassTransient, func(p *Preparation) { p.EndedAt = t0.Add(-10 * time.Second) }))(s)
		}, []string{"prepare ahead [] hold [0]", "write", unhurried}, preparedBy(hasFailed)},
	} {
		t.Run(name, func(t *testing.T) { tt.check(t, 20*time.Minute, Decide) })
	}
}

// TestDecideSharedDue covers the process that delivers the post, when it has been due for a minute.
func TestDecideSharedDue(t *testing.T) {
	const deadline = "wait 59m0.001s"
	missing := aheadOf(PreparationMissing, nil)
	for name, tt := range map[string]holdCase{
		"nothing prepared": {"it starts at once", recorded(nil, missing), []string{"prepare [] hold [0]"}, nil},
		"held by another process": {
			"its upload is almost done", recorded(preparedBy(withHold("other", time.Minute)), missing),
			[]string{"write", "wait 1m2s"},
			preparedBy(withHold("other", time.Minute)),
		},
		"held by another process that has died": {
			"it is taken over", recorded(preparedBy(withHold("other", -2*time.Second)), missing),
			[]string{"prepare [] hold [0]"},
			preparedBy(withHold("other", -2*time.Second)),
		},
		"completed by another process": {
			"it is adopted, and then claimed", recorded(preparedBy(isComplete), missing), []string{"prepare [0]"}, preparedBy(isComplete),
		},
		"failed in another process": {
			"the post is due, so this process tries at once", recorded(preparedBy(hasFailed), missing), []string{"prepare [] hold [0]"}, preparedBy(hasFailed),
		},
		"failed in this process before its time": {
			"the post is due, so the retry is immediate", recorded(preparedBy(hasFailed), failedAhead(platforms.ClassTransient, nil)),
			[]string{"prepare [] hold [0]"},
			preparedBy(hasFailed),
		},
		"failed in this process": {
			"the hold ends", recorded(preparedBy(withHold("me", time.Minute)), failedAhead(platforms.ClassTransient, func(p *Preparation) { p.Ahead = false })),
			[]string{"report 0", "write", "wait 1m0s for inputs"},
			preparedBy(),
		},
		"under way": {
			"the hold is extended", recorded(preparedBy(withHold("me", time.Second)), aheadOf(PreparationRunning, nil)),
			[]string{"write", "wait 30s"},
			preparedBy(withHold("me", time.Minute)),
		},
		"under way, but taken over": {
			"one upload is enough", recorded(preparedBy(withHold("other", time.Minute)), aheadOf(PreparationRunning, nil)),
			[]string{"stop [0]", "wait 1m2s"},
			preparedBy(withHold("other", time.Minute)),
		},
		"of a suspended team, and held by another process": {"preparations continue", func(s *situation) {
			recorded(preparedBy(withHold("other", time.Minute)), missing)(s)
			s.Suspended = true
		}, []string{"write", "wait 1m2s for inputs"}, preparedBy(withHold("other", time.Minute))},
		"of a suspended team, under way": {"preparations continue", func(s *situation) {
			recorded(preparedBy(withHold("me", time.Second)), aheadOf(PreparationRunning, nil))(s)
			s.Suspended = true
		}, []string{"write", "wait 30s for inputs"}, preparedBy(withHold("me", time.Minute))},
		"claimed before": {"an earlier call may have published, which only this process looks up", func(s *situation) {
			t := s.turnedAway()
			t.NextTryAt, t.TryUntil = nil, v1alpha1.NewTimePtr(t0.Add(time.Hour))
			s.Preparation = missing
		}, []string{"prepare [0]"}, nil},
		"ready": {"it is claimed", recorded(preparedBy(withHold("other", time.Minute)), aheadOf(PreparationReady, nil)), []string{"claim [0]", deadline}, preparedBy(withHold("other", time.Minute))},
	} {
		t.Run(name, func(t *testing.T) { tt.check(t, -time.Minute, Decide) })
	}
}

// TestDecidePreparation covers a process that does not deliver the post, twenty minutes before its time.
func TestDecidePreparation(t *testing.T) {
	missing, running := aheadOf(PreparationMissing, nil), aheadOf(PreparationRunning, nil)
	left := []string{"stop [0]", "wait"}
	changed := func(change func(*situation)) func(*situation) {
		return func(s *situation) {
			s.Preparation = running
			change(s)
		}
	}
	for name, tt := range map[string]holdCase{
		"nothing prepared": {"the process that delivers it has not started in time", recorded(nil, missing), []string{"prepare ahead [] hold [0]", "wait"}, nil},
		"nothing to prepare": {
			"its call is made by the process that delivers it", nil, []string{"wait"}, nil,
		},
		"too early": {"it is woken when the preparation may start, a moment after the process that delivers it", func(s *situation) {
			s.scheduled(31 * time.Minute)
			s.Preparation = missing
		}, []string{"wait 2m24.723149002s"}, nil},
		"due just now": {"the process that delivers it prepares it first", func(s *situation) {
			s.Post.Spec.ScheduledAt = nil
			s.Post.CreationTimestamp = metav1.NewTime(t0)
			s.Preparation = missing
		}, []string{"wait 1.343320829s"}, nil},
		"due for a while": {"the process that delivers it has no free slot", func(s *situation) {
			s.Post.Spec.ScheduledAt = nil
			s.Preparation = missing
		}, []string{"prepare ahead [] hold [0]", "wait"}, nil},
		"under way": {
			"the hold is extended", recorded(preparedBy(withHold("me", time.Second)), running), []string{"write", "wait 30s"}, preparedBy(withHold("me", time.Minute)),
		},
		"completed":                    {"the process that delivers it adopts that", recorded(preparedBy(withHold("me", time.Second)), aheadOf(PreparationReady, nil)), []string{"write", "wait"}, preparedBy(isComplete)},
		"completed by another process": {"nothing is left to do", recorded(preparedBy(isComplete), running), left, preparedBy(isComplete)},
		"other content prepared": {
			"the process that delivers it decides which one is sent", recorded(preparedBy(func(p *v1alpha1.Prepared) { p.ContentHash = "other" }), running),
			left, preparedBy(func(p *v1alpha1.Prepared) { p.ContentHash = "other" }),
		},
		"uploads not shared": {"only one process prepares", changed(func(s *situation) { s.Holder = "" }), left, nil},
		"deleted":            {"it is not sent", changed(func(s *situation) { s.deleted() }), left, nil},
		"finished":           {"it was sent", changed(func(s *situation) { s.Post.Status.Finished = true }), left, nil},
		"a draft":            {"it may never be sent", changed(func(s *situation) { s.Post.Spec.Draft = true }), left, nil},
		"cancelled":          {"it is not sent", changed(func(s *situation) { s.Post.Spec.Cancelled = true }), left, nil},
		"without a team":     {"it is not sent", changed(func(s *situation) { s.Unowned = true }), left, nil},
		"edited":             {"the process that delivers it has not accepted it yet", changed(func(s *situation) { s.Post.Generation++ }), left, nil},
		"against a rule":     {"it is not sent", changed(func(s *situation) { s.Invalid = func() field.ErrorList { return notFound } }), left, nil},
		"a target added": {"the process that delivers it has not accepted it yet", changed(func(s *situation) {
			s.Post.Status.Targets = nil
			s.Post.Status.Targets = append(s.Post.Status.Targets, v1alpha1.TargetStatus{Index: 1})
			s.Post.Spec.Targets = append(s.Post.Spec.Targets, s.Post.Spec.Targets[0])
			s.Preparation = func(int) Preparation { return Preparation{} }
		}), left, nil},
		"claimed":              {"its upload is being published", changed(func(s *situation) { s.claimed(time.Second) }), left, nil},
		"to be tried later":    {"its preparation failed in the process that delivers it", changed(func(s *situation) { s.Post.Status.Targets[0].NextTryAt = v1alpha1.NewTimePtr(t0) }), left, nil},
		"the retry of another": {"targets may be left out of it", changed(func(s *situation) { s.Post.Spec.RetryOf = &v1alpha1.LocalReference{Name: "post"} }), left, nil},
		"failed": {"the target has failed", changed(func(s *situation) {
			fail(&s.Post.Status.Targets[0], v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit, Problem: "no room"})
		}), left, nil},
		"no connection":    {"the preparation needs one", changed(func(s *situation) { s.Connections = nil }), left, nil},
		"another category": {"it is not delivered", changed(func(s *situation) { s.Post.Spec.Category = v1alpha1.CategoryVideo }), left, nil},
		"a disabled connection": {"its change wakes the post", func(s *situation) {
			s.conn.Spec.Disabled = true
			s.Preparation = missing
		}, []string{"wait for inputs"}, nil},
		"its preparation failed": {"the owner learns it from the event", recorded(preparedBy(withHold("me", time.Second)), failedAhead(platforms.ClassTransient, nil)), []string{"report 0 ahead", "write", "wait 5s"}, preparedBy(hasFailed)},
	} {
		t.Run(name, func(t *testing.T) { tt.check(t, 20*time.Minute, DecidePreparation) })
	}
}

// TestRecordHolds checks which facts of a recorded preparation a hold keeps.
func TestRecordHolds(t *testing.T) {
	for name, tt := range map[string]struct {
		reason       string
		before, want *v1alpha1.Prepared
	}{
		"nothing":         {"it names the content", nil, preparedBy(named(""), madeNow, withHold("me", time.Minute))},
		"an upload":       {"it is continued", preparedBy(withHold("other", -time.Hour)), preparedBy(withHold("me", time.Minute))},
		"other content":   {"it is not continued", preparedBy(func(p *v1alpha1.Prepared) { p.ContentHash = "before" }), preparedBy(named(""), madeNow, withHold("me", time.Minute))},
		"an old complete": {"it is not used again", preparedBy(isComplete), preparedBy(named(""), madeNow, withHold("me", time.Minute))},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(func(s *situation) {
				s.illustrated(1)
				s.scheduled(time.Minute)
				s.Holder = "me"
				s.entered().Prepared = tt.before
				s.Preparation = aheadOf(PreparationMissing, nil)
			})
			f.RecordHolds([]int{0})
			if got := f.Post.Status.Targets[0].Prepared; !v1alpha1.SemanticEqual(got, tt.want) {
				t.Errorf("%s: recorded is %+v, want %+v", tt.reason, got, tt.want)
			}
		})
	}
}
