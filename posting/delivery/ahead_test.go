// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// illustrated adds an image of the given size to the post, and image support to the platform.
func (s *situation) illustrated(bytes int64) {
	s.Post.Spec.Category = v1alpha1.CategoryImage
	s.Post.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "m"}}}
	s.Platforms = platforms.Registry{v1alpha1.PlatformX: publisher{delivers: []v1alpha1.Category{v1alpha1.CategoryImage}}}
	m := &v1alpha1.Media{}
	m.Status.Phase, m.Status.SizeBytes = v1alpha1.MediaUploaded, bytes
	s.Media = map[string]*v1alpha1.Media{"m": m}
}

// aheadOf returns an early preparation.
func aheadOf(state PreparationState, change func(p *Preparation)) func(int) Preparation {
	p := Preparation{State: state, Hash: "hash", Checkpoint: "upload", EndedAt: t0.Add(-5 * time.Second), Ahead: true, TTL: 24 * time.Hour}
	if change != nil {
		change(&p)
	}
	return preparing(p)
}

func failedAhead(class platforms.Class, change func(p *Preparation)) func(int) Preparation {
	return aheadOf(PreparationFailed, func(p *Preparation) {
		p.Err = platforms.Errorf(class, "busy")
		if change != nil {
			change(p)
		}
	})
}

func prepared(change func(p *v1alpha1.Prepared)) *v1alpha1.Prepared {
	p := &v1alpha1.Prepared{ContentHash: "hash", Checkpoint: "upload", MadeAt: v1alpha1.NewTime(t0.Add(-5 * time.Second))}
	if change != nil {
		change(p)
	}
	return p
}

// TestDecideAhead covers an image post that is due in twenty minutes. Its preparation starts half an hour ahead, minus
// its own spread of up to a quarter of an hour.
func TestDecideAhead(t *testing.T) {
	// The delays until the last look, and until the preparation of a post due in three hours.
	const unhurried, early = "wait 15m13.896638028s", "wait 2h31m23.379828173s"
	complete := func(p *v1alpha1.Prepared) { p.Complete = true }
	failed := func(p *v1alpha1.Prepared) { p.Problem = "busy" }
	kept := func(hash string) func(p *v1alpha1.Prepared) {
		return func(p *v1alpha1.Prepared) { p.Secret, p.SecretHash = true, hash }
	}
	keeps := func(p *Preparation) { p.Secret, p.SecretHash = true, "now" }
	earlier := func(p *v1alpha1.Prepared) { p.MadeAt = v1alpha1.NewTime(t0.Add(-time.Hour)) }
	for name, tt := range map[string]struct {
		reason string
		change func(s *situation)
		want   []string
		// prepared is the preparation that is recorded afterwards.
		prepared *v1alpha1.Prepared
	}{
		"no preparation needed": {"the post waits for its time", nil, []string{"write", unhurried}, nil},
		"not prepared yet": {"a slot is requested", func(s *situation) {
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"prepare ahead [0]", "write", unhurried}, nil},
		"no place": {"the post is woken when a slot is free", func(s *situation) {
			s.Preparation, s.SlotsRequested = aheadOf(PreparationMissing, nil), true
		}, []string{"write", unhurried}, nil},
		"too early": {"the post is woken when the preparation may start", func(s *situation) {
			s.scheduled(31 * time.Minute)
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", "wait 2m23.379828173s"}, nil},
		"two uploads, the second sooner": {"the post is woken for the earlier one", func(s *situation) {
			s.twoTargets()
			s.scheduled(31 * time.Minute)
			s.Preparation = func(i int) Preparation {
				return []Preparation{{State: PreparationMissing, TTL: time.Hour - 2*time.Minute}, {State: PreparationMissing, TTL: 24 * time.Hour}}[i]
			}
		}, []string{"write", "wait 2m23.379828173s"}, nil},
		"two uploads, the first sooner": {"the post is woken for the earlier one", func(s *situation) {
			s.twoTargets()
			s.scheduled(31 * time.Minute)
			s.Preparation = func(i int) Preparation {
				return []Preparation{{State: PreparationMissing, TTL: 24 * time.Hour}, {State: PreparationMissing, TTL: time.Hour - 2*time.Minute}}[i]
			}
		}, []string{"write", "wait 2m23.379828173s"}, nil},
		"two uploads, the second blocked": {"the post is woken for the first", func(s *situation) {
			s.twoTargets()
			s.Connections["y"].Spec.Disabled = true
			s.Preparation = failedAhead(platforms.ClassTransient, nil)
		}, []string{"report 0 ahead", "write", "wait 5s for inputs"}, prepared(failed)},
		"a big file": {"the preparation starts one second earlier per MiB: an hour earlier for this file", func(s *situation) {
			s.illustrated(3600 << 20)
			s.scheduled(88 * time.Minute)
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", "wait 2m10.139484521s"}, nil},
		"a text": {"its preparation is short, and starts a minute before", func(s *situation) {
			s.Post.Spec.Category, s.Post.Spec.Image = v1alpha1.CategoryText, nil
			s.scheduled(62 * time.Second)
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", "wait 4.779327605s"}, nil},
		"short-lived content": {"the preparation starts when at most half of the content's lifetime remains", func(s *situation) {
			s.scheduled(22 * time.Minute)
			s.Preparation = aheadOf(PreparationMissing, func(p *Preparation) { p.TTL = 40 * time.Minute })
		}, []string{"write", "wait 2m55.586552115s"}, nil},
		"a failed target": {"the target failed before the post was rescheduled, and is no longer sent", func(s *situation) {
			fail(s.entered(), v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit, Problem: "no room"})
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", unhurried}, nil},
		"no connection": {"the preparation needs a connection", func(s *situation) {
			s.Connections = nil
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", unhurried}, nil},
		"a category that is not delivered": {"a useless preparation is avoided", func(s *situation) {
			s.Post.Spec.Category = v1alpha1.CategoryVideo
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", unhurried}, nil},
		"a disabled connection": {"its change wakes the post", func(s *situation) {
			s.conn.Spec.Disabled = true
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", unhurried + " for inputs"}, nil},
		"a connection beyond the plan": {"its change wakes the post, which has not failed yet", func(s *situation) {
			ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlanLimit)
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", unhurried + " for inputs"}, nil},
		"a file that does not exist": {"the file may be created later", func(s *situation) {
			s.Media = nil
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", unhurried + " for inputs"}, nil},
		"a rate limit": {"the post is woken when the platform accepts calls again", func(s *situation) {
			s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(time.Minute) }
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", "wait 1m0s for inputs"}, nil},
		"a rate limit beyond the last look": {"the post is woken for the check", func(s *situation) {
			s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(16 * time.Minute) }
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", unhurried + " for inputs"}, nil},
		"a rate limit until its time": {"the post is woken at its time", func(s *situation) {
			s.scheduled(time.Minute)
			s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(time.Minute) }
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", "wait 1m0s for inputs in turn"}, nil},
		"credentials that cannot be read": {"the credentials are read again soon", func(s *situation) {
			s.CredentialsProblem = func(string) error { return errors.New("no such Secret") }
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", "wait 5s for inputs"}, nil},
		"under way": {"another process can continue it", func(s *situation) {
			s.Preparation = aheadOf(PreparationRunning, nil)
		}, []string{"write", unhurried}, prepared(func(p *v1alpha1.Prepared) { p.MadeAt = v1alpha1.NewTime(t0) })},
		"in progress, with another secret than before": {"the Secret's content is used only if the status contains its hash", func(s *situation) {
			s.entered().Prepared = prepared(kept("before"))
			s.Preparation = aheadOf(PreparationRunning, keeps)
		}, []string{"write", unhurried}, prepared(func(p *v1alpha1.Prepared) { kept("now")(p); p.MadeAt = v1alpha1.NewTime(t0) })},
		"done, with another secret than recorded": {"the preparation was recorded with another secret", func(s *situation) {
			s.entered().Prepared = prepared(func(p *v1alpha1.Prepared) { complete(p); kept("before")(p) })
			s.Preparation = aheadOf(PreparationReady, keeps)
		}, []string{"write", unhurried}, prepared(func(p *v1alpha1.Prepared) { complete(p); kept("now")(p) })},
		"failed, and reported, with another secret than before": {"the failure is reported once, and recorded", func(s *situation) {
			s.entered().Prepared = prepared(func(p *v1alpha1.Prepared) { failed(p); kept("before")(p) })
			s.Preparation = failedAhead(platforms.ClassTransient, keeps)
		}, []string{"write", "wait 5s"}, prepared(func(p *v1alpha1.Prepared) { failed(p); kept("now")(p) })},
		"in progress, and its secret not read yet": {"the upload session of a call must not be lost", func(s *situation) {
			s.entered().Prepared = prepared(kept("before"))
			s.Preparation = aheadOf(PreparationRunning, nil)
		}, []string{"write", unhurried}, prepared(kept("before"))},
		"failed before its secret was read": {"the upload session of a call must not be lost", func(s *situation) {
			s.entered().Prepared = prepared(kept("before"))
			s.Preparation = failedAhead(platforms.ClassTransient, nil)
		}, []string{"report 0 ahead", "write", "wait 5s"}, prepared(func(p *v1alpha1.Prepared) { failed(p); kept("before")(p) })},
		"a text in progress": {"a text's preparation is not recorded", func(s *situation) {
			s.Post.Spec.Category, s.Post.Spec.Image = v1alpha1.CategoryText, nil
			s.scheduled(time.Second)
			s.Preparation = aheadOf(PreparationRunning, nil)
		}, []string{"write", "wait 1s in turn"}, nil},
		"done": {"a finished preparation is recorded", func(s *situation) {
			s.Preparation = aheadOf(PreparationReady, nil)
		}, []string{"write", unhurried}, prepared(complete)},
		"done and recorded": {"the entry is not written again", func(s *situation) {
			s.entered().Prepared = prepared(func(p *v1alpha1.Prepared) { complete(p); earlier(p) })
			s.Preparation = aheadOf(PreparationReady, nil)
		}, []string{"write", unhurried}, prepared(func(p *v1alpha1.Prepared) { complete(p); earlier(p) })},
		"done, and recorded as in progress": {"only the call remains", func(s *situation) {
			s.entered().Prepared = prepared(earlier)
			s.Preparation = aheadOf(PreparationReady, nil)
		}, []string{"write", unhurried}, prepared(complete)},
		"done a second time": {"the platform calls it otherwise now", func(s *situation) {
			s.entered().Prepared = prepared(func(p *v1alpha1.Prepared) { complete(p); p.Checkpoint = "another" })
			s.Preparation = aheadOf(PreparationReady, nil)
		}, []string{"write", unhurried}, prepared(complete)},
		"a text that is done": {"the preparation takes moments and is not recorded", func(s *situation) {
			s.Post.Spec.Category, s.Post.Spec.Image = v1alpha1.CategoryText, nil
			s.scheduled(time.Second)
			s.entered().Prepared = prepared(failed)
			s.Preparation = aheadOf(PreparationReady, nil)
		}, []string{"write", "wait 1s in turn"}, nil},
		"prepared for an earlier version of the post": {"the preparation is useless now", func(s *situation) {
			s.scheduled(3 * time.Hour)
			s.entered().Prepared = prepared(func(p *v1alpha1.Prepared) { p.ContentHash = "before" })
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", early}, nil},
		"prepared for the present version of the post": {"the preparation remains valid", func(s *situation) {
			s.scheduled(3 * time.Hour)
			s.entered().Prepared = prepared(complete)
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", early}, prepared(complete)},
		"prepared for an earlier version of the post, with a Secret": {"the Secret's content is removed later", func(s *situation) {
			s.scheduled(3 * time.Hour)
			s.entered().Prepared = prepared(func(p *v1alpha1.Prepared) { p.ContentHash, p.Secret = "before", true; complete(p) })
			s.Preparation = aheadOf(PreparationMissing, nil)
		}, []string{"write", early}, prepared(func(p *v1alpha1.Prepared) { p.Checkpoint, p.Secret = "", true })},
		"failed": {"the failure is reported, and retried after ten seconds", func(s *situation) {
			s.Preparation = failedAhead(platforms.ClassTransient, nil)
		}, []string{"report 0 ahead", "write", "wait 5s"}, prepared(failed)},
		"failed, and reported": {"the failure is reported once", func(s *situation) {
			s.entered().Prepared = prepared(func(p *v1alpha1.Prepared) { failed(p); earlier(p) })
			s.Preparation = failedAhead(platforms.ClassTransient, nil)
		}, []string{"write", "wait 5s"}, prepared(func(p *v1alpha1.Prepared) { failed(p); earlier(p) })},
		"failed otherwise than before": {"a different failure is reported", func(s *situation) {
			s.entered().Prepared = prepared(func(p *v1alpha1.Prepared) { p.Problem = "too slow" })
			s.Preparation = failedAhead(platforms.ClassTransient, nil)
		}, []string{"report 0 ahead", "write", "wait 5s"}, prepared(failed)},
		"failed three times": {"each pause is twice the one before", func(s *situation) {
			s.Preparation = failedAhead(platforms.ClassTransient, func(p *Preparation) { p.Failures = 2 })
		}, []string{"report 0 ahead", "write", "wait 35s"}, prepared(failed)},
		"failed often": {"no pause is longer than five minutes", func(s *situation) {
			s.Preparation = failedAhead(platforms.ClassTransient, func(p *Preparation) { p.Failures, p.EndedAt = 20, t0.Add(-4*time.Minute) })
		}, []string{"report 0 ahead", "write", "wait 1m0s"}, prepared(func(p *v1alpha1.Prepared) {
			failed(p)
			p.MadeAt = v1alpha1.NewTime(t0.Add(-4 * time.Minute))
		})},
		"the pause is over": {"the preparation is retried", func(s *situation) {
			s.Preparation = failedAhead(platforms.ClassTransient, func(p *Preparation) { p.EndedAt = t0.Add(-10 * time.Second) })
		}, []string{"report 0 ahead", "prepare ahead [0]", "write", unhurried}, prepared(func(p *v1alpha1.Prepared) {
			failed(p)
			p.MadeAt = v1alpha1.NewTime(t0.Add(-10 * time.Second))
		})},
		"the platform named the time": {"the preparation is not retried before that time", func(s *situation) {
			s.Preparation = failedAhead(platforms.ClassRateLimited, func(p *Preparation) { p.Err.RetryAt = t0.Add(time.Minute) })
		}, []string{"report 0 ahead", "write", "wait 1m0s"}, prepared(failed)},
		"rejected permanently": {"the preparation is retried at the post's time", func(s *situation) {
			s.Preparation = failedAhead(platforms.ClassPermanent, nil)
		}, []string{"report 0 ahead", "write", unhurried}, prepared(failed)},
		"rejected as a duplicate": {"the preparation is retried at the post's time", func(s *situation) {
			s.Preparation = failedAhead(platforms.ClassDuplicate, nil)
		}, []string{"report 0 ahead", "write", unhurried}, prepared(failed)},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(func(s *situation) {
				s.illustrated(1)
				s.scheduled(20 * time.Minute)
				if tt.change != nil {
					tt.change(s)
				}
			})
			if diff := cmp.Diff(tt.want, words(Decide(f))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if got := f.Post.Status.Targets[0].Prepared; !v1alpha1.SemanticEqual(got, tt.prepared) {
				t.Errorf("%s: recorded %+v, want %+v", tt.reason, got, tt.prepared)
			}
		})
	}
}
