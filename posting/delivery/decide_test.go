// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

var t0 = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// publisher is a platform that accepts text posts and the categories in delivers. It is never called.
type publisher struct {
	platforms.Publisher

	delivers   []v1alpha1.Category
	idempotent bool
}

func (p publisher) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		CallTimeout: 10 * time.Second, ListingLag: time.Minute, ListingAuthoritative: []v1alpha1.Category{v1alpha1.CategoryText},
		Delivers: append([]v1alpha1.Category{v1alpha1.CategoryText}, p.delivers...), Idempotent: p.idempotent,
	}
}

// situation is the state that a row of the table changes.
type situation struct {
	*Facts
	target *v1alpha1.TargetStatus
	conn   *v1alpha1.Connection
}

// facts returns the facts about an immediate text post to a ready X account, created ten seconds ago, after applying
// change.
func facts(change func(s *situation)) *Facts {
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{
		Name: "post", Namespace: "team", UID: "uid", Generation: 1, CreationTimestamp: metav1.NewTime(t0.Add(-10 * time.Second)),
	}}
	post.Spec = v1alpha1.PostSpec{
		Category: v1alpha1.CategoryText,
		Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"}},
	}
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "conn"}}
	conn.Spec = v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "account"}
	ready(conn, metav1.ConditionTrue, v1alpha1.ReasonConnected)
	s := &situation{conn: conn, target: &v1alpha1.TargetStatus{Platform: v1alpha1.PlatformX}}
	s.Facts = &Facts{
		Earlier: Earlier{State: EarlierDisabled},
		View:    posting.Of(post), Now: t0,
		Settings: Settings{
			StartingDeadline: time.Hour, SendWindow: 5 * time.Second, ClockMargin: 2 * time.Second, PrepareAhead: 30 * time.Minute, HoldFor: time.Minute,
		},
		Platforms:          platforms.Registry{v1alpha1.PlatformX: publisher{}},
		Connections:        map[string]*v1alpha1.Connection{"x": conn},
		BlockedUntil:       func(*v1alpha1.Connection) time.Time { return time.Time{} },
		Invalid:            func() field.ErrorList { return nil },
		CredentialsProblem: func(string) error { return nil },
		Preparation:        func(int) Preparation { return Preparation{State: PreparationNotNeeded} },
	}
	if change != nil {
		change(s)
	}
	return s.Facts
}

func ready(conn *v1alpha1.Connection, status metav1.ConditionStatus, reason string) {
	conn.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "so it is"}}
}

// entered stores the row's target in the post's status.
func (s *situation) entered() *v1alpha1.TargetStatus {
	s.Post.Status.ObservedGeneration = s.Post.Generation
	s.Post.Status.Targets = []v1alpha1.TargetStatus{*s.target}
	return &s.Post.Status.Targets[0]
}

// claimed opens an attempt for the first target that was claimed some time ago.
func (s *situation) claimed(ago time.Duration) *v1alpha1.TargetStatus {
	t := s.entered()
	if err := attempt.Open(t, attempt.Claim{ID: "a1", AccountID: "account", Window: s.Settings.SendWindow}, t0.Add(-ago)); err != nil {
		panic(err)
	}
	return t
}

// scheduled schedules the post relative to t0.
func (s *situation) scheduled(in time.Duration) {
	s.Post.Spec.ScheduledAt = v1alpha1.NewTimePtr(t0.Add(in))
}

// twoTargets adds a target on a second account.
func (s *situation) twoTargets() {
	other := s.conn.DeepCopy()
	other.Name = "y"
	s.Connections["y"] = other
	s.Post.Spec.Targets = append(s.Post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "y"}, Caption: "hello"})
}

func preparing(p Preparation) func(int) Preparation { return func(int) Preparation { return p } }

// words formats actions as in the tables.
func words(actions []Action) (out []string) {
	for _, action := range actions {
		switch a := action.(type) {
		case Record, Release:
			out = append(out, strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", a), "delivery.")))
		case FindEarlier:
			out = append(out, "find earlier")
		case Resolve:
			out = append(out, "resolve "+a.Value)
		case Lookup:
			out = append(out, fmt.Sprint("lookup ", a.Targets))
		case Prepare:
			word := "prepare "
			if a.Ahead {
				word = "prepare ahead "
			}
			if word += fmt.Sprint(a.Targets); len(a.Hold) > 0 {
				word += fmt.Sprint(" hold ", a.Hold)
			}
			out = append(out, word)
		case StopPreparing:
			out = append(out, fmt.Sprint("stop ", a.Targets))
		case ReportPreparation:
			if a.Ahead {
				out = append(out, fmt.Sprintf("report %d ahead", a.Target))
			} else {
				out = append(out, fmt.Sprint("report ", a.Target))
			}
		case ReadOriginal:
			out = append(out, "read original")
		case ReserveRetry:
			out = append(out, fmt.Sprint("reserve ", a.Targets))
		case Claim:
			out = append(out, fmt.Sprint("claim ", a.Targets))
		case Arm:
			out = append(out, fmt.Sprint("arm ", a.Targets))
		case TakeBack:
			out = append(out, fmt.Sprint("take back ", a.Groups))
		case Write:
			if a.Event.Warning {
				out = append(out, "write and warn of "+a.Event.Reason)
			} else {
				out = append(out, strings.TrimSpace("write "+a.Event.Reason))
			}
		case Wait:
			w := "wait"
			if !a.Until.IsZero() {
				w = fmt.Sprint("wait ", a.Until.Sub(t0))
			}
			if a.ForInputs {
				w += " for inputs"
			}
			if a.InTurn {
				w += " in turn"
			}
			out = append(out, w)
		}
	}
	return out
}

func TestDecide(t *testing.T) {
	noFile := field.ErrorList{field.NotFound(field.NewPath("spec", "image", "mediaRefs").Index(0).Child("name"), "m")}
	for name, tt := range map[string]struct {
		reason string
		change func(s *situation)
		want   []string
	}{
		"an immediate post": {"the post is published immediately; its deadline is an hour after its creation", nil, []string{"claim [0]", "wait 59m50.001s"}},
		"results that were not recorded": {"facts come first, before any decision about the post", func(s *situation) {
			s.claimed(time.Second)
			s.Results = []Result{{Attempt: "a1"}}
			s.Post.Annotations = map[string]string{v1alpha1.SettleAnnotation: "0=not-sent"}
		}, []string{"record"}},
		"a user's resolution": {"no target is claimed until it is applied and its annotation removed", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.SettleAnnotation: "0=not-sent"}
		}, []string{"resolve 0=not-sent"}},
		"a post that is being deleted": {"no call is in progress, so it can be deleted", func(s *situation) { s.deleted() }, []string{"release"}},
		"deleted during a call": {"the object stays until the outcome is known", func(s *situation) {
			s.claimed(time.Second)
			s.deleted()
		}, []string{"wait 16.001s for inputs"}},
		"deleted with its namespace during a call": {"its result may still arrive", func(s *situation) {
			s.claimed(time.Second)
			s.deleted()
			s.NamespaceTerminating = true
		}, []string{"wait 16.001s for inputs"}},
		"deleted with its namespace during a lookup pause": {"the credentials are deleted too: this is the last chance for a lookup", func(s *situation) {
			t := s.claimed(time.Hour)
			s.Post.Status.Targets[0].NextTryAt = v1alpha1.NewTimePtr(t0.Add(time.Minute))
			t.Attempt.EndedAt = v1alpha1.NewTimePtr(t0.Add(-time.Hour))
			s.deleted()
			s.NamespaceTerminating = true
		}, []string{"lookup [0]"}},
		"deleted with its namespace, answered by a user": {"no call is open", func(s *situation) {
			t := s.claimed(time.Hour)
			if err := attempt.Abandon(t, t0); err != nil {
				panic(err)
			}
			s.deleted()
			s.NamespaceTerminating = true
		}, []string{"release"}},
		"immediate, in a namespace without a team": {"the post is not sent there, and fails if no team owns the namespace in time", func(s *situation) { s.Unowned = true }, []string{
			"write and warn of NoTeam", "wait 59m50.001s for inputs",
		}},
		"scheduled, in a namespace without a team": {"the post stays scheduled", func(s *situation) { s.Unowned = true; s.scheduled(time.Minute) }, []string{
			"write and warn of NoTeam", "wait 1m0s for inputs in turn",
		}},
		"a draft in a namespace without a team": {"the post stays a draft", func(s *situation) { s.Unowned = true; s.Post.Spec.Draft = true }, []string{
			"write and warn of NoTeam", "wait for inputs",
		}},
		"between two tries, in a namespace that lost its team": {"a team is required", func(s *situation) {
			t := s.claimed(time.Minute)
			t.Attempt.Outcome, t.TryUntil = v1alpha1.OutcomeRefused, v1alpha1.NewTimePtr(t0.Add(time.Hour))
			s.Unowned = true
		}, []string{"write", "wait 1h0m0.001s for inputs"}},
		"a call to look up, in a namespace that lost its team": {"a lookup does not publish", func(s *situation) {
			s.claimed(time.Minute)
			s.Unowned = true
		}, []string{"lookup [0]"}},
		"deleted with a call to look up": {"the outcome is looked up before the object is deleted", func(s *situation) {
			s.claimed(time.Minute)
			s.deleted()
		}, []string{"lookup [0]"}},
		"finished":                 {"a finished post needs no action", func(s *situation) { s.entered(); s.Post.Status.Finished = true }, nil},
		"cancelled before a claim": {"the post is not published", func(s *situation) { s.scheduled(time.Hour); s.Post.Spec.Cancelled = true }, []string{"write Cancelled"}},
		"cancelled after a claim": {"the claimed target is delivered", func(s *situation) {
			s.Post.Spec.Cancelled = true
			s.claimed(time.Second)
		}, []string{"wait 16.001s"}},
		"a copy with an open call": {"the call's outcome comes before the original's record", func(s *situation) {
			s.claimed(time.Second)
			s.Post.Status.Earlier, s.Earlier = &v1alpha1.EarlierPost{Object: "another"}, Earlier{}
		}, []string{"wait 16.001s for inputs"}},
		"a cancelled copy in a namespace without a team": {"a team wakes it", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.Spec.Cancelled, s.Unowned = true, true
		}, []string{"wait 59m50s for inputs"}},
		"cancelled after a rollback, in a namespace without a team": {"a team wakes it", func(s *situation) {
			s.cancelled()
			s.putBack(nil)
			s.Unowned = true
		}, []string{"wait 59m59s for inputs"}},
		"scheduled, while the archive is unavailable": {"the archive is read again soon, before the post is due", func(s *situation) {
			s.scheduled(time.Minute)
			s.Earlier = Earlier{State: EarlierUnavailable, Problem: "it is unavailable"}
		}, []string{"write and warn of RecordUnavailable", "wait 15.463221267s for inputs"}},
		"cancelled after a claim of one of two": {"the other is not sent, which is stored immediately", func(s *situation) {
			s.cancelled()
			s.claimed(time.Second)
			s.twoTargets()
		}, []string{"write", "wait 16.001s"}},
		"a draft": {"the draft waits for its promotion", func(s *situation) { s.Post.Spec.Draft = true }, []string{"write", "wait"}},
		"a draft that was accepted": {"the acceptance is reported once", func(s *situation) {
			s.Post.Spec.Draft = true
			s.accepted()
		}, []string{"write", "wait"}},
		"scheduled for later":      {"the post is checked again some minutes before its time", func(s *situation) { s.scheduled(time.Hour) }, []string{"write", "wait 55m13.896638028s"}},
		"scheduled for next year":  {"the post needs no resources until then", func(s *situation) { s.scheduled(365 * 24 * time.Hour) }, []string{"write", "wait 8759h55m13.896638028s"}},
		"woken for the last check": {"the post then sleeps until its time", func(s *situation) { s.scheduled(286103 * time.Millisecond); s.accepted() }, []string{"write", "wait 4m46.103s in turn"}},
		"woken too early for that": {"the clock was set back, so the timer ended early", func(s *situation) { s.scheduled(286104 * time.Millisecond); s.accepted() }, []string{"write", "wait 638.028µs"}},
		"woken too early":          {"the clock was set back, so the timer ended early", func(s *situation) { s.scheduled(time.Millisecond); s.accepted() }, []string{"write", "wait 1ms in turn"}},
		"scheduled for soon":       {"the post wakes exactly at its time", func(s *situation) { s.scheduled(time.Minute) }, []string{"write", "wait 1m0s in turn"}},
		"due now":                  {"the deadline counts from its time", func(s *situation) { s.scheduled(0) }, []string{"claim [0]", "wait 1h0m0.001s"}},
		"its time passed long ago": {"an old post does not surprise anyone", func(s *situation) {
			s.scheduled(-time.Hour - time.Second)
		}, []string{"write", "wait"}},
		"restored from a backup": {"whether the original was published is unknown", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.BornAnnotation: t0.Add(-time.Hour).Format(time.RFC3339Nano)}
		}, []string{"write"}},
		"a broken rule": {"the owner has to correct the spec", func(s *situation) {
			s.Invalid = func() field.ErrorList {
				return field.ErrorList{field.Invalid(field.NewPath("spec"), "", "bad")}
			}
		}, []string{"write and warn of Invalid", "wait 59m50.001s for inputs"}},
		"a broken rule, due in a while": {"the post stays scheduled", func(s *situation) {
			s.scheduled(time.Minute)
			s.Invalid = func() field.ErrorList { return notFound }
		}, []string{"write and warn of ConnectionNotFound", "wait 1m0s for inputs in turn"}},
		"a missing connection": {"the connection may be created within the starting deadline", func(s *situation) {
			s.Invalid = func() field.ErrorList { return notFound }
		}, []string{"write and warn of ConnectionNotFound", "wait 59m50.001s for inputs"}},
		"a connection that was never created": {"the deadline has passed", func(s *situation) {
			s.Invalid = func() field.ErrorList { return notFound }
			s.entered().TryUntil = v1alpha1.NewTimePtr(t0.Add(-time.Second))
		}, []string{"write"}},
		"a connection and a file are missing": {"the connection is the graver", func(s *situation) {
			s.Invalid = func() field.ErrorList { return append(slices.Clone(notFound), noFile...) }
		}, []string{"write and warn of ConnectionNotFound", "wait 59m50.001s for inputs"}},
		"a file and a connection are missing": {"the connection is the graver", func(s *situation) {
			s.Invalid = func() field.ErrorList { return append(slices.Clone(noFile), notFound...) }
		}, []string{"write and warn of ConnectionNotFound", "wait 59m50.001s for inputs"}},
		"a missing file": {"the file may be created within the starting deadline", func(s *situation) {
			s.Invalid = func() field.ErrorList { return noFile }
		}, []string{"write and warn of MediaNotFound", "wait 59m50.001s for inputs"}},
		"a file that is not uploaded": {"the file may be uploaded within the starting deadline", func(s *situation) {
			s.Media = map[string]*v1alpha1.Media{"m": {}}
			s.Invalid = func() field.ErrorList { return noFile }
		}, []string{"write and warn of MediaNotReady", "wait 59m50.001s for inputs"}},
		"a missing connection of a draft": {"a draft has time", func(s *situation) {
			s.Post.Spec.Draft = true
			s.Invalid = func() field.ErrorList { return notFound }
		}, []string{"write and warn of ConnectionNotFound", "wait for inputs"}},
		"a draft that was edited": {"its owner sees that the edit is accepted", func(s *situation) {
			s.Post.Spec.Draft = true
			s.accepted()
			s.Post.Generation++
		}, []string{"write", "wait"}},
		"a draft that was rejected": {"its owner sees that it is valid now", func(s *situation) {
			s.Post.Spec.Draft = true
			setAccepted(s.Post, s.Now, v1alpha1.ReasonConnectionNotFound, "missing")
			s.Post.Status.ObservedGeneration = s.Post.Generation
		}, []string{"write", "wait"}},
		"a call that may be in progress": {"a lookup must wait until its window and the call's timeout have passed", func(s *situation) {
			s.claimed(16 * time.Second)
		}, []string{"wait 1.001s"}},
		"a call that is certainly over": {"after window, call limit and clock difference it is looked up, without a claim", func(s *situation) {
			s.claimed(17 * time.Second)
		}, []string{"lookup [0]"}},
		"one target open, one ready": {"the ready one does not wait for the other's window", func(s *situation) {
			s.claimed(time.Second)
			s.twoTargets()
		}, []string{"claim [1]", "wait 16.001s"}},
		"one to look up, one ready": {"recorded facts come first", func(s *situation) {
			s.claimed(time.Minute)
			s.twoTargets()
		}, []string{"lookup [0]"}},
		"a pause between two tries": {"the pause is not over", func(s *situation) {
			t := s.claimed(time.Minute)
			t.Attempt.Outcome, t.NextTryAt = v1alpha1.OutcomeNotSent, v1alpha1.NewTimePtr(t0.Add(time.Second))
		}, []string{"wait 1s"}},
		"a pause that is over": {"the next attempt may follow a closed one", func(s *situation) {
			t := s.claimed(time.Minute)
			t.Attempt.Outcome, t.NextTryAt = v1alpha1.OutcomeNotSent, v1alpha1.NewTimePtr(t0)
		}, []string{"claim [0]", "wait 59m50.001s"}},
		"a disabled connection": {
			"a disabled account is not published to", func(s *situation) { s.conn.Spec.Disabled = true },
			[]string{"write", "wait 59m50.001s for inputs"},
		},
		"a connection that is not ready": {
			"a change of the connection wakes the post", func(s *situation) { ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonTokenExpired) },
			[]string{"write", "wait 59m50.001s for inputs"},
		},
		"a platform that did not answer a check": {
			"only a call can determine whether it accepts posts again", func(s *situation) {
				ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlatformUnavailable)
				s.conn.Status.CredentialsVersion, s.conn.Status.VerifiedVersion = "7", "7"
			},
			[]string{"claim [0]", "wait 59m50.001s"},
		},
		"a platform that never reported the token's account": {
			"the post could be published to any account", func(s *situation) { ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlatformUnavailable) },
			[]string{"write", "wait 59m50.001s for inputs"},
		},
		"a platform that did not tell whose account the new credentials are": {
			"only the old credentials are verified", func(s *situation) {
				ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlatformUnavailable)
				s.conn.Status.CredentialsVersion, s.conn.Status.VerifiedVersion = "8", "7"
			},
			[]string{"write", "wait 59m50.001s for inputs"},
		},
		"another post asks whether a limit is over": {
			"one call probes, not a thousand", func(s *situation) { s.MayProbe = func(*v1alpha1.Connection) bool { return false } },
			[]string{"write", "wait 59m50.001s for inputs"},
		},
		"a connection beyond the plan": {
			"the target fails, since waiting would not change that", func(s *situation) { ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlanLimit) },
			[]string{"write", "wait"},
		},
		"a platform that this process does not have": {
			"another version may support the platform", func(s *situation) { s.Platforms = platforms.Registry{} },
			[]string{"write", "wait 59m50.001s for inputs"},
		},
		"a category that is not delivered": {
			"incomplete content is not published", func(s *situation) { s.Post.Spec.Category = v1alpha1.CategoryVideo },
			[]string{"write", "wait"},
		},
		"a rate limit": {"the post is woken when the platform accepts calls again", func(s *situation) {
			s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(time.Minute) }
		}, []string{"write", "wait 1m0.185288507s for inputs"}},
		"a rate limit that is noted": {"a waiting post needs one write", func(s *situation) {
			s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(time.Minute) }
			attempt.Block(s.target, v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: "as it is"})
			s.entered()
		}, []string{"wait 1m0.185288507s for inputs"}},
		"a rate limit that is noted, and moves the deadline": {"another process must see the same deadline", func(s *situation) {
			s.Settings.LongestDelay = 3 * time.Hour
			s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(50 * time.Minute) }
			attempt.Block(s.target, v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: "as it is"})
			s.entered()
		}, []string{"write", "wait 50m0.185288507s for inputs"}},
		"another post probes a limit, and that is recorded": {"a waiting post needs one write", func(s *situation) {
			s.MayProbe = func(*v1alpha1.Connection) bool { return false }
			attempt.Block(s.target, v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: "as it is"})
			s.entered()
		}, []string{"wait 59m50.001s for inputs"}},
		"credentials that cannot be read": {"the credentials are read again soon, or when the connection changes", func(s *situation) {
			s.CredentialsProblem = func(string) error { return errors.New("no such Secret") }
		}, []string{"write", "wait 5s for inputs"}},
		"not prepared yet": {"a slot is requested, and the post is decided again", func(s *situation) {
			s.Preparation = preparing(Preparation{State: PreparationMissing})
		}, []string{"prepare [0]"}},
		"no slot for the preparation": {"the post is woken when a slot is free", func(s *situation) {
			s.Preparation = preparing(Preparation{State: PreparationMissing})
			s.SlotsRequested = true
		}, []string{"wait 59m50.001s"}},
		"a preparation that has just started": {"the others wait for it, so that one write claims all", func(s *situation) {
			s.twoTargets()
			s.Preparation = func(i int) Preparation {
				return []Preparation{{State: PreparationRunning, BegunAt: t0.Add(-time.Second)}, {State: PreparationReady}}[i]
			}
		}, []string{"wait 2s"}},
		"a slow preparation": {"the others are published without it", func(s *situation) {
			s.twoTargets()
			s.Preparation = func(i int) Preparation {
				return []Preparation{{State: PreparationRunning, BegunAt: t0.Add(-3 * time.Second)}, {State: PreparationReady}}[i]
			}
		}, []string{"claim [1]", "write", "wait 59m50.001s"}},
		"prepared": {
			"only the call remains", func(s *situation) { s.Preparation = preparing(Preparation{State: PreparationReady}) },
			[]string{"claim [0]", "wait 59m50.001s"},
		},
		"visible already": {
			"the claim allows the lookup that follows", func(s *situation) { s.Preparation = preparing(Preparation{State: PreparationVisible}) },
			[]string{"claim [0]", "wait 59m50.001s"},
		},
		"a preparation that failed": {"the failure is reported, and the preparation retried", func(s *situation) {
			s.Preparation = preparing(Preparation{State: PreparationFailed, Err: platforms.Errorf(platforms.ClassTransient, "busy")})
		}, []string{"report 0", "write", "wait 10s for inputs"}},
		"a connection that was deleted": {"the connection may be recreated", func(s *situation) {
			s.Connections = nil
		}, []string{"write", "wait 59m50.001s for inputs"}},
		"one gives up, one waits": {"its failure is stored immediately", func(s *situation) {
			s.pausedSecond()
			s.entry(0).TryUntil = v1alpha1.NewTimePtr(t0.Add(-time.Second))
		}, []string{"write", "wait 2m0s"}},
		"one is not delivered, one waits": {"its failure is stored immediately", func(s *situation) {
			s.pausedSecond()
			s.conn.Spec.Platform = v1alpha1.PlatformTikTok
			s.Platforms[v1alpha1.PlatformTikTok] = publisher{delivers: []v1alpha1.Category{}}
			s.Platforms[v1alpha1.PlatformX] = publisher{delivers: []v1alpha1.Category{v1alpha1.CategoryVideo}}
			s.Post.Spec.Category = v1alpha1.CategoryVideo
		}, []string{"write", "wait 2m0s"}},
		"one is beyond the plan, one waits": {"its failure is stored immediately", func(s *situation) {
			s.pausedSecond()
			ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlanLimit)
		}, []string{"write", "wait 2m0s"}},
		"one is posted and its account limited, one waits": {"the posted target needs no further action", func(s *situation) {
			s.pausedSecond()
			s.entry(0).State = v1alpha1.TargetPosted
			s.BlockedUntil = func(conn *v1alpha1.Connection) time.Time {
				if conn.Name == "y" {
					return time.Time{}
				}
				return t0.Add(time.Minute)
			}
		}, []string{"wait 2m0s"}},
		"a tree whose account fell beyond the plan": {"a started tree is not abandoned: it waits for the plan", func(s *situation) {
			s.entered().Cards = []v1alpha1.CardStatus{{ExternalID: "7"}}
			ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlanLimit)
		}, []string{"write", "wait 59m50.001s for inputs"}},
		"a pause because of the connection": {"a change of the connection wakes the post", func(s *situation) {
			s.turnedAway()
		}, []string{"wait 1m0s for inputs"}},
		"a pause because of a busy platform": {"a change of the connection does not end the pause", func(s *situation) {
			s.turnedAway().Blocked.Reason = v1alpha1.ReasonPlatformBusy
			s.conn.Status.LastHandledProbe = "a1"
		}, []string{"wait 1m0s"}},
		"the connection was checked since, and is good": {"the target does not wait any longer", func(s *situation) {
			s.turnedAway()
			s.conn.Status.LastHandledProbe = "a1"
		}, []string{"claim [0]", "wait 1m0s"}},
		"the connection was checked for another call": {"the check concerned another call", func(s *situation) {
			s.turnedAway()
			s.conn.Status.LastHandledProbe = "a0"
		}, []string{"wait 1m0s for inputs"}},
		"the connection was checked since, and is not good": {"the target still waits", func(s *situation) {
			s.turnedAway()
			s.conn.Status.LastHandledProbe = "a1"
			ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonTokenExpired)
		}, []string{"wait 1m0s for inputs"}},
		"a pause because of the connection before any call": {"no check is requested", func(s *situation) {
			s.turnedAway().Attempt = nil
		}, []string{"wait 1m0s for inputs"}},
		"a pause because of a connection that was deleted": {"the connection may be recreated", func(s *situation) {
			s.turnedAway()
			s.Connections = nil
		}, []string{"wait 1m0s for inputs"}},
		"an upload in progress": {"another process can continue it", func(s *situation) {
			s.entered().Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonPreparing}
			s.Preparation = preparing(Preparation{State: PreparationRunning, Hash: "hash", Checkpoint: "upload", BegunAt: t0.Add(-time.Minute)})
		}, []string{"write", "wait 59m50.001s"}},
		"a stalled upload": {"a waiting post does not cause writes", func(s *situation) {
			t := s.entered()
			t.Blocked, t.TryUntil = &v1alpha1.Blocked{Reason: v1alpha1.ReasonPreparing}, v1alpha1.NewTimePtr(t0.Add(time.Hour))
			s.Preparation = preparing(Preparation{State: PreparationRunning, BegunAt: t0.Add(-time.Minute)})
		}, []string{"wait 1h0m0.001s"}},
		"an upload whose connection is ready again": {"the target now waits for the upload", func(s *situation) {
			t := s.entered()
			t.Blocked, t.TryUntil = &v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady}, v1alpha1.NewTimePtr(t0.Add(time.Hour))
			s.Preparation = preparing(Preparation{State: PreparationRunning, BegunAt: t0.Add(-time.Minute)})
		}, []string{"write", "wait 1h0m0.001s"}},
		"an upload that is tried again": {"the reason for the retry is more useful", func(s *situation) {
			t := s.entered()
			t.Blocked, t.TryUntil = &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlatformBusy}, v1alpha1.NewTimePtr(t0.Add(time.Hour))
			s.Preparation = preparing(Preparation{State: PreparationRunning, BegunAt: t0.Add(-time.Minute)})
		}, []string{"wait 1h0m0.001s"}},
		"a target that failed before its time": {"the post is due, so the pause does not apply", func(s *situation) {
			s.Preparation = preparing(Preparation{State: PreparationFailed, Ahead: true, Err: platforms.Errorf(platforms.ClassTransient, "busy")})
		}, []string{"prepare [0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			if diff := cmp.Diff(tt.want, words(Decide(f)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// entry returns status entry i.
func (s *situation) entry(i int) *v1alpha1.TargetStatus { return s.Target(i) }

// pausedSecond adds a second target that is paused for two minutes.
func (s *situation) pausedSecond() {
	s.twoTargets()
	s.entered()
	s.Post.Status.Targets = append(s.Post.Status.Targets, v1alpha1.TargetStatus{
		Index: 1, Platform: v1alpha1.PlatformX, NextTryAt: v1alpha1.NewTimePtr(t0.Add(2 * time.Minute)), TryUntil: v1alpha1.NewTimePtr(t0.Add(time.Hour)),
	})
}

// turnedAway closes an attempt that the platform refused because of the connection. The retry is in one minute.
func (s *situation) turnedAway() *v1alpha1.TargetStatus {
	t := s.claimed(time.Minute)
	t.Attempt.Outcome, t.NextTryAt = v1alpha1.OutcomeRefused, v1alpha1.NewTimePtr(t0.Add(time.Minute))
	t.Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady, Problem: "the token was refused"}
	return t
}

func (s *situation) deleted() { s.Post.DeletionTimestamp = new(metav1.NewTime(t0)) }

func (s *situation) accepted() {
	s.Post.Status.ObservedGeneration = s.Post.Generation
	setAccepted(s.Post, s.Now, v1alpha1.ReasonAccepted, acceptedMessage)
}

// notFound is the error for a missing connection.
var notFound = field.ErrorList{field.NotFound(field.NewPath("spec", "targets").Index(0).Child("connectionRef", "name"), "x")}

// TestRefuse checks the messages of the targets of a post that is not accepted.
func TestRefuse(t *testing.T) {
	path := field.NewPath("spec", "targets")
	missing := field.ErrorList{field.NotFound(path.Index(1).Child("connectionRef", "name"), "y")}
	for name, tt := range map[string]struct {
		reason  string
		change  func(s *situation)
		errs    field.ErrorList
		phase   v1alpha1.PostPhase
		reasons []string
	}{
		"one target's error": {"the other target is published once this one is corrected, and reports why it waits", nil, missing, v1alpha1.PhaseProcessing, []string{"ConnectionNotFound", "ConnectionNotFound"}},
		"each its own": {
			"a user corrects one by one", nil, append(field.ErrorList{field.Required(path.Index(0).Child("caption"), "")}, missing...),
			v1alpha1.PhaseProcessing,
			[]string{"Invalid", "ConnectionNotFound"},
		},
		"of a draft":      {"a draft stays a draft", func(s *situation) { s.Post.Spec.Draft = true }, missing, v1alpha1.PhaseDraft, []string{"ConnectionNotFound", "ConnectionNotFound"}},
		"before its time": {"the post is not due", func(s *situation) { s.scheduled(time.Hour) }, missing, v1alpha1.PhaseScheduled, []string{"ConnectionNotFound", "ConnectionNotFound"}},
		"too late":        {"failed is final", func(s *situation) { s.scheduled(-2 * time.Hour) }, missing, v1alpha1.PhaseFailed, []string{"MissedSchedule", "MissedSchedule"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(func(s *situation) {
				s.twoTargets()
				if tt.change != nil {
					tt.change(s)
				}
				s.Invalid = func() field.ErrorList { return tt.errs }
			})
			Decide(f)
			Describe(f.Post, f.Now)
			var reasons []string
			for i := range f.Post.Status.Targets {
				got := &f.Post.Status.Targets[i]
				if got.Message == "" {
					t.Errorf("target %d has no message", i)
				}
				reasons = append(reasons, got.Reason)
			}
			if f.Post.Status.Phase != tt.phase || !slices.Equal(reasons, tt.reasons) {
				t.Errorf("%s, %v; want %s, %v (%s)", f.Post.Status.Phase, reasons, tt.phase, tt.reasons, tt.reason)
			}
			accepted := meta.FindStatusCondition(f.Post.Status.Conditions, v1alpha1.ConditionAccepted)
			if accepted == nil || accepted.Status != metav1.ConditionFalse || accepted.Reason != (&Facts{}).refusalReason(tt.errs) {
				t.Errorf("Accepted is %+v", accepted)
			}
			if tt.phase == v1alpha1.PhaseFailed {
				f.Invalid = func() field.ErrorList { return nil }
				if actions := Decide(f); len(actions) > 0 {
					t.Errorf("a late correction must have no effect: %v", actions)
				}
				return
			}
			f.Invalid = func() field.ErrorList { return nil }
			Decide(f)
			for i := range f.Post.Status.Targets {
				if b := f.Post.Status.Targets[i].Blocked; b != nil {
					t.Errorf("target %d still has the reason %s: %s", i, b.Reason, b.Problem)
				}
			}
		})
	}
}

// TestDecideFails checks why targets fail.
func TestDecideFails(t *testing.T) {
	for name, tt := range map[string]struct {
		why    string
		change func(s *situation)
		reason string
		words  string
	}{
		"missed": {"only time passed", func(s *situation) { s.scheduled(-2 * time.Hour) }, v1alpha1.ReasonMissedSchedule, "schedule a new post"},
		"blocked": {"the platform is known to reject calls", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(time.Minute) }
		}, v1alpha1.ReasonMissedSchedule, "does not accept calls for this account before"},
		"still being uploaded": {"the user can act", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			s.Preparation = preparing(Preparation{State: PreparationRunning})
		}, v1alpha1.ReasonMissedSchedule, "use smaller files"},
		"missed, the message": {"the message describes the missed post", func(s *situation) { s.scheduled(-2 * time.Hour) }, v1alpha1.ReasonMissedSchedule, "not published: its time passed"},
		"a reason for waiting, with a remedy": {"the message contains the remedy, and the next step", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			attempt.Block(s.target, v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady, Problem: "it is disabled", Remedy: "enable it"})
			s.entered().TryUntil = v1alpha1.NewTimePtr(t0.Add(-time.Second))
		}, v1alpha1.ReasonMissedSchedule, "it is disabled; enable it, and post again"},
		"a reason for waiting, without a remedy": {"posting again is the only remedy", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			attempt.Block(s.target, v1alpha1.Blocked{Reason: v1alpha1.ReasonPlatformBusy, Problem: "it is busy"})
			s.entered().TryUntil = v1alpha1.NewTimePtr(t0.Add(-time.Second))
		}, v1alpha1.ReasonMissedSchedule, "it is busy; post again"},
		"a reason for waiting, after a pause": {"the announced pause is part of the time", func(s *situation) {
			s.scheduled(-3 * time.Hour)
			attempt.Block(s.target, v1alpha1.Blocked{Reason: v1alpha1.ReasonPlatformBusy, Problem: "it is busy"})
			s.target.InitialDeadline = v1alpha1.NewTimePtr(t0.Add(-time.Hour - time.Second))
			s.entered().TryUntil = v1alpha1.NewTimePtr(t0.Add(-time.Second))
		}, v1alpha1.ReasonMissedSchedule, "not published within 2h0m0s of its time"},
		"a reason for waiting": {"the message contains the reason", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			attempt.Block(s.target, v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady, Problem: "the token was revoked"})
			s.entered().TryUntil = v1alpha1.NewTimePtr(t0.Add(-time.Second))
		}, v1alpha1.ReasonMissedSchedule, "The reason was: the token was revoked"},
		"a connection that was never created": {"the message contains the remedy", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			s.Invalid = func() field.ErrorList { return notFound }
		}, v1alpha1.ReasonMissedSchedule, "create the connection, or correct its name, and post again"},
		"a rule that is still violated": {"the message is the rule's", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			s.Invalid = func() field.ErrorList {
				return field.ErrorList{field.Invalid(field.NewPath("spec", "targets").Index(0).Child("caption"), "a", "is too long")}
			}
		}, v1alpha1.ReasonInvalid, "caption: Invalid value: \"a\": is too long; correct the post, and post again"},
		"beyond the plan": {
			"the owner can change the plan", func(s *situation) { ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlanLimit) },
			v1alpha1.ReasonPlanLimit, "change the plan",
		},
		"not delivered": {
			"no wait would help", func(s *situation) { s.Post.Spec.Category = v1alpha1.CategoryVideo },
			v1alpha1.ReasonUnsupported, "does not deliver posts of category video to x yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			Decide(f)
			Describe(f.Post, f.Now)
			got := f.Target(0)
			if !attempt.Settled(got) || attempt.Posted(got) || got.Reason != tt.reason || !strings.Contains(got.Message, tt.words) {
				t.Errorf("%s: got %s %s: %s", tt.why, got.Phase, got.Reason, got.Message)
			}
		})
	}
}
