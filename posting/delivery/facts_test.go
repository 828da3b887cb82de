// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
)

// TestDecideEnters checks how Decide changes the status, which the returned actions do not show.
func TestDecideEnters(t *testing.T) {
	accepted := func(f *Facts) string {
		c := meta.FindStatusCondition(f.Post.Status.Conditions, v1alpha1.ConditionAccepted)
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	entries := func(f *Facts) (out string) {
		for i := range f.Post.Status.Targets {
			t := &f.Post.Status.Targets[i]
			out += fmt.Sprintf("%d %s %s", t.Index, t.Platform, t.State)
			if t.Blocked != nil {
				out += fmt.Sprintf(" (%s: %s)", t.Blocked.Reason, t.Blocked.Problem)
			}
			if t.TryUntil != nil {
				out += fmt.Sprint(" until ", t.TryUntil.Sub(t0))
			}
			if t.Prepared != nil {
				out += " has " + t.Prepared.ContentHash + " " + t.Prepared.Checkpoint
			}
			out += ";"
		}
		return out
	}
	said := func(f *Facts) string { return f.Post.Status.Targets[0].Message }
	states := func(f *Facts) string {
		var all []v1alpha1.TargetState
		for i := range f.Post.Status.Targets {
			all = append(all, f.Post.Status.Targets[i].State)
		}
		return fmt.Sprint(all)
	}
	restore := func(s *situation) {
		s.Post.Annotations = map[string]string{v1alpha1.BornAnnotation: t0.Add(-time.Hour).Format(time.RFC3339Nano)}
	}
	missing := func(s *situation) {
		s.Invalid = func() field.ErrorList {
			return field.ErrorList{field.NotFound(field.NewPath("spec", "connectionRef"), "x")}
		}
	}
	running := func(checkpoint string) func(int) Preparation {
		return preparing(Preparation{State: PreparationRunning, Hash: "hash", Checkpoint: checkpoint, BegunAt: t0.Add(-time.Minute)})
	}
	for name, tt := range map[string]struct {
		reason string
		change func(s *situation)
		of     func(f *Facts) string
		want   string
	}{
		"due now":            {"the post passed every rule", nil, accepted, "True Accepted: the post passed every rule"},
		"scheduled":          {"the post passed every rule", func(s *situation) { s.scheduled(time.Hour) }, accepted, "True Accepted: the post passed every rule"},
		"scheduled: entries": {"users see its targets", func(s *situation) { s.scheduled(time.Hour) }, entries, "0 x pending;"},
		"a missing connection": {
			"the message contains the remedy", missing, accepted,
			`False ConnectionNotFound: spec.connectionRef: Not found: "x"; create the connection, or correct its name, and the post proceeds`,
		},
		"a namespace without a team": {
			"the message contains the remedy", func(s *situation) { s.Unowned = true }, accepted,
			`False NoTeam: no Team owns namespace "team", so Herald does nothing in it; use the namespace of a Team, or have an administrator create a Team ` +
				`that owns this one, and the post proceeds`,
		},
		"a namespace without a team, for too long": {"a failure is final, and has a reason", func(s *situation) {
			s.Unowned = true
			s.scheduled(-2 * time.Hour)
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-time.Hour - time.Second))
		}, entries, `0 x failed (MissedSchedule: not published within 1h0m0s of its time. The reason was: no Team owns namespace "team", so Herald does nothing in it);`},
		"a namespace whose team is not ready yet, after a restore": {"the earlier outcome is read from its record, however late", func(s *situation) {
			s.Unowned = true
			s.scheduled(-2 * time.Hour)
		}, entries, `0 x pending (NoTeam: no Team owns namespace "team", so Herald does nothing in it) until -1h0m0s;`},
		"a team that was created": {"the reason is resolved", func(s *situation) {
			s.scheduled(time.Hour)
			attempt.Block(s.entered(), noTeam(s.Post))
		}, entries, "0 x pending;"},
		"a connection that was never created": {"an earlier failure keeps its reason", func(s *situation) {
			missing(s)
			s.twoTargets()
			s.entered()
			s.scheduled(-2 * time.Hour)
			fail(s.entry(0), v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit, Problem: "no room"})
		}, entries, `0 x failed (PlanLimit: no room);1 x failed (MissedSchedule: not published within 1h0m0s of its time. The reason was: spec.connectionRef: Not found: "x");`},
		"an edit": {"the reasons belong to the previous content", func(s *situation) {
			s.scheduled(time.Hour)
			t := s.entered()
			t.Blocked, t.TryUntil = &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlatformBusy, Problem: "busy"}, v1alpha1.NewTimePtr(t0)
			s.Post.Generation++
		}, entries, "0 x pending;"},
		"an edit after a target has failed": {"failed is final, though another target waits and lets the post be edited", func(s *situation) {
			s.pausedSecond()
			s.entry(1).Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlatformBusy, Problem: "busy"}
			fail(s.entry(0), v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit, Problem: "no room"})
			s.Post.Generation++
		}, entries, "0 x failed (PlanLimit: no room);1 x pending until 1h0m0s;"},
		"restored from a backup": {"each target may have been published", func(s *situation) {
			restore(s)
			s.twoTargets()
		}, states, "[undecided undecided]"},
		"restored from a backup before its time": {"the post cannot have been sent", func(s *situation) {
			restore(s)
			s.scheduled(0)
			s.entered().State = v1alpha1.TargetPending
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: string(s.Post.UID)}
		}, states, "[pending]"},
		"restored from a backup, with its status": {"the post may have been sent since the backup", func(s *situation) {
			restore(s)
			s.scheduled(0)
			s.entered().State = v1alpha1.TargetPending
		}, states, "[undecided]"},
		"restored from a backup, a target removed and added again": {"a removed target does not show whether the post was published", func(s *situation) {
			restore(s)
			s.pausedSecond()
			fail(s.entry(0), restored)
			s.entry(1).State = v1alpha1.TargetWithdrawn
			s.Post.Generation++
		}, states, "[undecided undecided]"},
		"restored from a backup, a target added": {"a failure is final until a user answers", func(s *situation) {
			restore(s)
			fail(s.entered(), restored)
			s.twoTargets()
			s.Post.Generation++
		}, states, "[undecided undecided]"},
		"restored from a backup, and answered by a user": {"the answer remains, and the other targets still wait for an answer", func(s *situation) {
			restore(s)
			s.pausedSecond()
			fail(s.entry(0), restored)
			fail(s.entry(1), restored)
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: string(s.Post.UID)}
			RecordResolutions(s.Post, "0=not-sent", nil, &s.Settings, t0)
		}, states, "[pending undecided]"},
		"no edit": {"the reason remains", func(s *situation) {
			s.scheduled(time.Hour)
			t := s.entered()
			t.Blocked, t.TryUntil = &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlatformBusy, Problem: "busy"}, v1alpha1.NewTimePtr(t0)
		}, entries, "0 x  (PlatformUnavailable: busy) until 0s;"},
		"an attempt was made": {"the entry names the platform of the call, whatever the connection contains now", func(s *situation) {
			s.claimed(time.Second)
			s.conn.Spec.Platform = v1alpha1.PlatformTikTok
			s.Post.Generation++
		}, entries, "0 x pending;"},
		"a connection that was deleted": {"its platform remains known", func(s *situation) {
			s.entered()
			s.Connections = nil
		}, entries, `0 x pending (ConnectionNotReady: connection "x" does not exist) until 59m50s;`},
		"a slow upload": {"users see the reason for waiting", func(s *situation) {
			s.Preparation = running("")
		}, entries, "0 x pending (Preparing: the post's content is being uploaded to x or processed there; the post is published when that is done) until 59m50s;"},
		"a video that is being converted": {"users see the progress", func(s *situation) {
			s.entered().Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonPreparing, Problem: "39 % are done"}
			s.Preparation = preparing(Preparation{State: PreparationRunning, Converting: true, Converted: 40, BegunAt: t0.Add(-time.Minute)})
		}, entries, "0 x pending (Preparing: the video is being converted for x, 40 % is done; the post is published when it is finished) until 59m50s;"},
		"a long upload after a rejection": {"the rejection is more important", func(s *situation) {
			s.entered().Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlatformBusy, Problem: "busy"}
			s.Preparation = running("part 1")
		}, entries, "0 x  (PlatformUnavailable: busy) until 59m50s has hash part 1;"},
		"a long upload before a retry": {"a possible publication is more important", func(s *situation) {
			t := s.claimed(time.Hour)
			t.Attempt.Outcome, t.TryUntil = v1alpha1.OutcomeUnknown, v1alpha1.NewTimePtr(t0.Add(time.Hour))
			s.Preparation = running("")
		}, entries, "0 x pending until 1h0m0s;"},
		"a preparation that failed": {"the status is reported", func(s *situation) {
			s.Preparation = preparing(Preparation{State: PreparationFailed, Err: platforms.Errorf(platforms.ClassTransient, "busy")})
		}, said, "busy; Herald tries again"},
		"a preparation that failed: entries": {"the preparation can resume from its checkpoint", func(s *situation) {
			s.Preparation = preparing(Preparation{State: PreparationFailed, Hash: "hash", Checkpoint: "part 1", Err: platforms.Errorf(platforms.ClassTransient, "busy")})
		}, entries, "0 x pending (PlatformUnavailable: busy) until 59m50s has hash part 1;"},
		"a file that does not exist": {"the reason is its own", func(s *situation) {
			s.illustrated(1)
			s.Media = nil
		}, entries, `0 x pending (MediaNotReady: media file "m" does not exist; the post proceeds when it does) until 59m50s;`},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			Decide(f)
			if got := tt.of(f); got != tt.want {
				t.Errorf("%s: got\n%s, want\n%s", tt.reason, got, tt.want)
			}
		})
	}
}

// TestRecordProgress checks that only changes are recorded, since each costs a write.
func TestRecordProgress(t *testing.T) {
	known := func() *v1alpha1.Prepared { return &v1alpha1.Prepared{ContentHash: "hash", Checkpoint: "part 1"} }
	for _, tt := range []struct {
		reason           string
		known            *v1alpha1.Prepared
		hash, checkpoint string
		want             bool
	}{
		{"the target has no preparation", nil, "hash", "", false},
		{"the preparation belongs to earlier content", known(), "edited", "", false},
		{"the first part", nil, "hash", "part 1", true},
		{"the same part", known(), "hash", "part 1", false},
		{"the next part", known(), "hash", "part 2", true},
		{"the first part of the present content", known(), "edited", "part 1", true},
	} {
		target := &v1alpha1.TargetStatus{Prepared: tt.known}
		f := facts(nil)
		if got := f.recordProgress(target, &Preparation{Hash: tt.hash, Checkpoint: tt.checkpoint}); got != tt.want {
			t.Errorf("%s: news %t, want %t", tt.reason, got, tt.want)
		}
		entered := target.Prepared != nil && target.Prepared.ContentHash == tt.hash && target.Prepared.Checkpoint == tt.checkpoint && target.Prepared.MadeAt.Time.Equal(t0)
		if entered != tt.want {
			t.Errorf("%s: recorded %+v", tt.reason, target.Prepared)
		}
	}
}

// TestUndeliverable checks that a post is never published in part: a tree with files needs a platform that also
// delivers images.
func TestUndeliverable(t *testing.T) {
	treeOf := func(files ...string) func(*v1alpha1.PostSpec) {
		return func(s *v1alpha1.PostSpec) {
			s.Category = v1alpha1.CategoryTree
			s.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{MediaRefs: refs(files...)}}}
		}
	}
	trees, images := v1alpha1.CategoryTree, v1alpha1.CategoryImage
	for _, tt := range []struct {
		reason   string
		spec     func(*v1alpha1.PostSpec)
		delivers []v1alpha1.Category
		want     bool
	}{
		{"a text", func(*v1alpha1.PostSpec) {}, nil, false},
		{"a tree of texts needs trees", treeOf(), []v1alpha1.Category{trees}, false},
		{"a tree of texts where only images are delivered", treeOf(), []v1alpha1.Category{images}, true},
		{"a tree with a file needs images as well", treeOf("m"), []v1alpha1.Category{trees}, true},
		{"a tree with a file", treeOf("m"), []v1alpha1.Category{trees, images}, false},
		{"an image", func(s *v1alpha1.PostSpec) { s.Category = images }, []v1alpha1.Category{images}, false},
	} {
		f := facts(func(s *situation) {
			s.Platforms = platforms.Registry{v1alpha1.PlatformX: publisher{delivers: tt.delivers}}
			tt.spec(&s.Post.Spec)
		})
		if got := f.categoryProblem(0) != ""; got != tt.want {
			t.Errorf("%s: undeliverable %t, want %t", tt.reason, got, tt.want)
		}
	}
}

func TestTiming(t *testing.T) {
	f := facts(nil)
	want := attempt.Timing{
		SendWindow: 5 * time.Second, ClockMargin: 2 * time.Second, LookupTimeout: time.Hour,
		CallTimeout: 10 * time.Second, Lag: time.Minute, ConfirmAfter: time.Minute, Authoritative: true,
	}
	if got, ok := f.Timing(v1alpha1.PlatformX); !ok || got != want {
		t.Errorf("got %+v, %t, want %+v", got, ok, want)
	}
	f.Post.Spec.Category = v1alpha1.CategoryImage
	if got, _ := f.Timing(v1alpha1.PlatformX); got.Authoritative {
		t.Error("the listing is authoritative for texts only")
	}
	if _, ok := f.Timing(v1alpha1.PlatformTikTok); ok {
		t.Error("this process lacks the platform")
	}
	f.Platforms = platforms.Registry{v1alpha1.PlatformX: publisher{idempotent: true}}
	if got, _ := f.Timing(v1alpha1.PlatformX); !got.Idempotent || got.Lag != 0 || got.ConfirmAfter != 0 {
		t.Errorf("a post that is read by its key does not depend on a listing: %+v", got)
	}
}

// TestFailPosted checks that failing a published target panics.
func TestFailPosted(t *testing.T) {
	for name, do := range map[string]func(f *Facts, t *v1alpha1.TargetStatus){
		"failed": func(_ *Facts, t *v1alpha1.TargetStatus) { fail(t, v1alpha1.Blocked{}) },
		"not prepared": func(f *Facts, t *v1alpha1.TargetStatus) {
			f.notPrepared(0, t, platforms.Errorf(platforms.ClassPermanent, "no"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the call must panic")
				}
			}()
			do(facts(nil), &v1alpha1.TargetStatus{State: v1alpha1.TargetPosted})
		})
	}
}
