// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/record"
)

// own returns the post's own record, written after the snapshot.
func own(change ...func(*v1alpha1.TargetStatus)) *record.Record {
	r := earlierRecord(change...)
	r.UID = "uid"
	return r
}

// undecidedThen and refusedThen are other outcomes of the record's target.
func undecidedThen(t *v1alpha1.TargetStatus) {
	t.State, t.ExternalID, t.ExternalURL, t.Attempt.Outcome = v1alpha1.TargetUndecided, "", "", v1alpha1.OutcomeUnknown
}

func refusedThen(t *v1alpha1.TargetStatus) {
	t.State, t.ExternalID, t.ExternalURL, t.Attempt.Outcome = v1alpha1.TargetFailed, "", "", v1alpha1.OutcomeRefused
}

// putBack sets a rollback that was detected a second ago, and what the archive returns.
func (s *situation) putBack(found *record.Record) {
	s.Rollback.DetectedAt = t0.Add(-time.Second)
	s.Earlier = Earlier{State: EarlierFetched, Record: found}
}

// cancelled cancels the post, which the manager has not noticed yet.
func (s *situation) cancelled() { s.Post.Spec.Cancelled = true }

// resolved closes the attempt that claimed has opened.
func (s *situation) resolved(outcome v1alpha1.AttemptOutcome, state v1alpha1.TargetState) {
	t := s.claimed(10 * time.Minute)
	t.Attempt.Outcome, t.State = outcome, state
}

func TestRollback(t *testing.T) {
	const ask, out, look = "write", "write and warn of AlreadyPublished", "find earlier"
	for name, tt := range map[string]struct {
		why    string
		change func(*situation)
		want   []string
		// state is the first target's state, and looked is whether the lookup is recorded.
		state  v1alpha1.TargetState
		looked bool
	}{
		"not read yet": {"the post must wait", func(s *situation) {
			s.putBack(nil)
			s.Earlier = Earlier{}
		}, []string{look}, "", false},
		"cancelled since": {"the post stays cancelled, whatever the restored spec contains", func(s *situation) {
			s.putBack(withdrawnThen("uid"))
		}, []string{"write Cancelled"}, "", true},
		"created through the API": {"the post has its own UID and name again", func(s *situation) {
			s.putBack(nil)
			s.Earlier = Earlier{}
			s.Post.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
			s.Post.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(s.Post.CreationTimestamp.Time).String()}
		}, []string{look}, "", false},
		"an earlier object was looked up": {"the lookup did not concern this post", func(s *situation) {
			s.putBack(nil)
			s.Earlier = Earlier{}
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: "uid"}
		}, []string{look}, "", false},
		"its delivery had started":       {"a later call may have published the post", func(s *situation) { s.resolved(v1alpha1.OutcomeRefused, v1alpha1.TargetPending); s.putBack(nil) }, []string{ask}, v1alpha1.TargetUndecided, true},
		"published before the rollback":  {"its record contains the outcome", func(s *situation) { s.putBack(own()) }, []string{out}, v1alpha1.TargetPosted, true},
		"published by a later call":      {"its record contains the outcome", func(s *situation) { s.resolved(v1alpha1.OutcomeRefused, v1alpha1.TargetPending); s.putBack(own()) }, []string{out}, v1alpha1.TargetPosted, true},
		"published by the restored call": {"its record is more precise than a lookup", func(s *situation) { s.claimed(time.Hour); s.putBack(own()) }, []string{out}, v1alpha1.TargetPosted, true},
		"a user answered":                {"its record contains the answer", func(s *situation) { s.resolved(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided); s.putBack(own()) }, []string{out}, v1alpha1.TargetPosted, true},
		"unknown before the rollback":    {"a user must answer", func(s *situation) { s.putBack(own(undecidedThen)) }, []string{out}, v1alpha1.TargetUndecided, true},
		"rejected before the rollback":   {"its record is complete: it is not published", func(s *situation) { s.putBack(own(refusedThen)) }, []string{"write"}, "", true},
		"published, and recreated": {"the later record contains the outcome", func(s *situation) {
			s.putBack(earlierRecord())
			s.Earlier.Record.UID, s.Earlier.Record.Earlier = "later", []types.UID{"uid"}
		}, []string{out}, v1alpha1.TargetPosted, true},
		"another one with its name was published": {"a publication under a name is never repeated", func(s *situation) { s.putBack(earlierRecord()) }, []string{out}, v1alpha1.TargetPosted, true},
		"without a record":                        {"the post may have been published", func(s *situation) { s.putBack(nil) }, []string{ask}, v1alpha1.TargetUndecided, true},
		"only an earlier, rejected record":        {"the record does not describe this post", func(s *situation) { s.putBack(earlierRecord(refusedThen)) }, []string{ask}, v1alpha1.TargetUndecided, true},
		"published again on request": {"whether that was done is unknown", func(s *situation) {
			s.putBack(earlierRecord())
			s.Post.Annotations = map[string]string{v1alpha1.PublishAgainAnnotation: "earlier"}
		}, []string{ask}, v1alpha1.TargetUndecided, true},
		"published again on request, according to its status": {"the earlier object's record does not cover this post", func(s *situation) {
			s.putBack(earlierRecord())
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: "uid", Record: "earlier", PublishAgain: true}
		}, []string{ask}, v1alpha1.TargetUndecided, true},
		"its call is open":                               {"the platform is queried first", func(s *situation) { s.claimed(time.Hour); s.putBack(nil) }, []string{"lookup [0]"}, "", false},
		"a future time":                                  {"the post cannot have been published", func(s *situation) { s.scheduled(time.Hour); s.putBack(nil) }, []string{"write"}, "", true},
		"its time has passed since":                      {"the post was not due when the rollback was detected", func(s *situation) { s.scheduled(-time.Second / 2); s.putBack(nil) }, []string{"write"}, "", true},
		"its time passed in the second of the detection": {"the post may have been published", func(s *situation) { s.scheduled(-time.Second); s.putBack(nil) }, []string{ask}, v1alpha1.TargetUndecided, true},
		"a future time, and it was published":            {"a user has rescheduled it", func(s *situation) { s.scheduled(time.Hour); s.putBack(own()) }, []string{out}, v1alpha1.TargetPosted, true},
		"its time passed long ago, and the archive is unavailable": {"the post is looked up when the bucket is available again", func(s *situation) {
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-3 * time.Hour))
			s.scheduled(-2 * time.Hour)
			s.putBack(nil)
			s.Earlier = Earlier{State: EarlierUnavailable, Problem: "it is unavailable"}
		}, []string{"write and warn of RecordUnavailable", "wait"}, v1alpha1.TargetPending, false},
		"a draft":                    {"a draft cannot have been published", func(s *situation) { s.Post.Spec.Draft = true; s.putBack(nil) }, []string{"write"}, "", true},
		"a draft that was published": {"a user has promoted it", func(s *situation) { s.Post.Spec.Draft = true; s.putBack(own()) }, []string{out}, v1alpha1.TargetPosted, true},
		"a draft that is promoted later": {"the post was a draft when it was looked up", func(s *situation) {
			s.putBack(nil)
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: "uid", Rewound: v1alpha1.NewTimePtr(s.Rollback.DetectedAt)}
		}, []string{"claim [0]", "wait"}, "", true},
		"restored again": {"the previous lookup does not cover the time since", func(s *situation) {
			s.putBack(nil)
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: "uid", Rewound: v1alpha1.NewTimePtr(s.Rollback.DetectedAt.Add(-time.Hour))}
		}, []string{ask}, v1alpha1.TargetUndecided, true},
		"created since": {"the post is newer than the backup", func(s *situation) {
			s.Post.CreationTimestamp = metav1.NewTime(t0)
			s.putBack(nil)
			s.Earlier = Earlier{State: EarlierDisabled}
		}, []string{"claim [0]", "wait"}, "", false},
		"withdrawn, and not read yet":          {"a post that may be published is not reported as cancelled", func(s *situation) { s.cancelled(); s.putBack(nil); s.Earlier = Earlier{} }, []string{look}, "", false},
		"withdrawn, and it was published":      {"its record contains the outcome", func(s *situation) { s.cancelled(); s.putBack(own()) }, []string{out}, v1alpha1.TargetPosted, true},
		"withdrawn, and it was rejected":       {"the post is not published", func(s *situation) { s.cancelled(); s.putBack(own(refusedThen)) }, []string{"write Cancelled"}, "", true},
		"withdrawn, without a record":          {"the post may have been published", func(s *situation) { s.cancelled(); s.putBack(nil) }, []string{ask}, v1alpha1.TargetUndecided, true},
		"withdrawn before its time":            {"the post cannot have been published", func(s *situation) { s.cancelled(); s.scheduled(time.Hour); s.putBack(nil) }, []string{"write Cancelled"}, "", true},
		"withdrawn, and finished as cancelled": {"the cancellation was reported before the rollback", func(s *situation) { s.cancelled(); s.Post.Status.Finished = true; s.putBack(nil) }, nil, "", false},
		"withdrawn, and the archive is unavailable": {"the cancellation is reported when the archive responds", func(s *situation) {
			s.cancelled()
			s.scheduled(time.Hour)
			s.putBack(nil)
			s.Earlier = Earlier{State: EarlierUnavailable, Problem: "it is unavailable"}
		}, []string{"wait"}, "", false},
		"withdrawn, and the outcome is uncertain": {"the post may be published", func(s *situation) {
			s.cancelled()
			s.Rollback = Rollback{UncertainSince: t0, Problem: "it is unavailable"}
		}, []string{"wait"}, "", false},
		"cancelled, and its team is not ready yet": {"its record may show that it is published", func(s *situation) {
			s.cancelled()
			s.Unowned = true
			s.putBack(nil)
		}, []string{"wait"}, "", false},
		"cancelled, and its team is never created": {"only the record of its team shows whether it is published", func(s *situation) {
			s.cancelled()
			s.Unowned = true
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-3 * time.Hour))
			s.putBack(nil)
			s.Rollback.DetectedAt = t0.Add(-time.Hour)
		}, []string{ask}, v1alpha1.TargetUndecided, true},
		"cancelled before its time, and its team is never created": {"the post cannot have been published", func(s *situation) {
			s.cancelled()
			s.Unowned = true
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-3 * time.Hour))
			s.scheduled(-30 * time.Minute)
			s.putBack(nil)
			s.Rollback.DetectedAt = t0.Add(-time.Hour)
		}, []string{"write Cancelled"}, "", false},
		"cancelled, with an unknown account": {"the unknown account may have the publication", func(s *situation) {
			s.cancelled()
			s.Post.Spec.Targets[0].ConnectionRef.Name = "new"
			s.putBack(own())
		}, []string{ask}, v1alpha1.TargetUndecided, true},
		"cancelled, and a user is asked already": {"the question remains", func(s *situation) {
			s.cancelled()
			s.target.State = v1alpha1.TargetUndecided
			s.entered()
			s.scheduled(time.Hour)
			s.putBack(nil)
		}, []string{"write"}, v1alpha1.TargetUndecided, true},
		"due before, and the archive remains unavailable": {"only a user can answer", func(s *situation) {
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-3 * time.Hour))
			s.scheduled(-2 * time.Hour)
			s.putBack(nil)
			s.Rollback.DetectedAt = t0.Add(-time.Hour - time.Second)
			s.Earlier = Earlier{State: EarlierUnavailable, Problem: "it is unavailable"}
		}, []string{"write"}, v1alpha1.TargetUndecided, false},
		"finished":                          {"a finished post is not sent", func(s *situation) { s.Post.Status.Finished = true; s.putBack(nil) }, nil, "", false},
		"without a team":                    {"the post is not sent", func(s *situation) { s.Unowned = true; s.putBack(nil) }, []string{"write and warn of NoTeam", "wait"}, v1alpha1.TargetPending, false},
		"being deleted":                     {"its record reports a possible publication, if the post is applied again", func(s *situation) { s.deleted(); s.putBack(nil) }, []string{ask}, v1alpha1.TargetUndecided, false},
		"being deleted during an open call": {"the platform is queried first", func(s *situation) { s.deleted(); s.claimed(time.Hour); s.putBack(nil) }, []string{"lookup [0]"}, "", false},
		"being deleted before its time":     {"the post cannot have been published", func(s *situation) { s.deleted(); s.scheduled(time.Hour); s.putBack(nil) }, []string{"release"}, "", false},
		"being deleted after it was looked up": {"its outcome is recorded", func(s *situation) {
			s.deleted()
			s.putBack(nil)
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: "uid", Rewound: v1alpha1.NewTimePtr(s.Rollback.DetectedAt)}
		}, []string{"release"}, "", true},
		"withdrawn and being deleted": {"its record reports that it may be published", func(s *situation) { s.deleted(); s.cancelled(); s.putBack(nil) }, []string{ask}, v1alpha1.TargetUndecided, false},
		"withdrawn and finished, and being deleted": {"the cancellation was reported before the rollback", func(s *situation) {
			s.deleted()
			s.cancelled()
			s.Post.Status.Finished = true
			s.putBack(nil)
		}, []string{"release"}, "", false},
		"being deleted with its namespace": {"records are no longer written", func(s *situation) {
			s.deleted()
			s.putBack(nil)
			s.NamespaceTerminating = true
		}, []string{"release"}, "", false},
		"uncertain since an earlier detection, and being deleted": {
			"its time has passed in between", func(s *situation) {
				s.deleted()
				s.putBack(nil)
				s.scheduled(-time.Second / 2)
				s.Rollback.UncertainSince = t0
			},
			[]string{ask},
			v1alpha1.TargetUndecided, false,
		},
		"uncertain, and being deleted": {
			"the outcome is recorded as uncertain", func(s *situation) {
				s.deleted()
				s.Rollback = Rollback{UncertainSince: t0, Problem: "it is unavailable"}
			},
			[]string{ask},
			v1alpha1.TargetUndecided, false,
		},
		"answered before the lookup": {"the answer may precede the rollback", func(s *situation) {
			s.resolved(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided)
			s.Post.Annotations = map[string]string{v1alpha1.SettleAnnotation: "0=not-sent"}
			s.putBack(own())
		}, []string{out}, v1alpha1.TargetPosted, true},
		"answered, without a record": {"the answer is applied next", func(s *situation) {
			s.resolved(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided)
			s.Post.Annotations = map[string]string{v1alpha1.SettleAnnotation: "0=not-sent"}
			s.putBack(nil)
		}, []string{"write"}, v1alpha1.TargetUndecided, true},
		"without an archive": {"the outcome cannot be determined", func(s *situation) {
			s.putBack(nil)
			s.Earlier = Earlier{State: EarlierDisabled}
		}, []string{"claim [0]", "wait"}, "", false},
		"the archive is unavailable": {"the post is never published automatically", func(s *situation) {
			s.putBack(nil)
			s.Earlier = Earlier{State: EarlierUnavailable, Problem: "it is unavailable"}
		}, []string{"write and warn of RecordUnavailable", "wait"}, v1alpha1.TargetPending, false},
		"the archive is unavailable, and it was finished": {"the answer waits", func(s *situation) {
			s.resolved(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided)
			s.Post.Status.Finished, s.Post.Annotations = true, map[string]string{v1alpha1.SettleAnnotation: "0=not-sent"}
			s.putBack(nil)
			s.Earlier = Earlier{State: EarlierUnavailable, Problem: "it is unavailable"}
		}, []string{"wait"}, v1alpha1.TargetUndecided, false},
		"uncertain": {
			"the post is never published automatically", func(s *situation) { s.Rollback = Rollback{UncertainSince: t0, Problem: "it is unavailable"} },
			[]string{"write and warn of RecordUnavailable", "wait"},
			v1alpha1.TargetPending, false,
		},
		"uncertain, with an open call": {
			"a lookup does not publish", func(s *situation) {
				s.claimed(time.Hour)
				s.Rollback = Rollback{UncertainSince: t0, Problem: "it is unavailable"}
			},
			[]string{"lookup [0]"},
			"", false,
		},
		"uncertain, with a future time": {
			"the outcome will be known by then", func(s *situation) { s.scheduled(time.Hour); s.Rollback = Rollback{UncertainSince: t0} },
			[]string{"write", "wait"},
			v1alpha1.TargetPending, false,
		},
		"uncertain, and created since": {
			"the post is newer than the backup", func(s *situation) { s.Rollback = Rollback{UncertainSince: t0.Add(-time.Minute)} },
			[]string{"claim [0]", "wait"},
			"", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			if diff := cmp.Diff(tt.want, untimed(words(Decide(f)))); diff != "" {
				t.Errorf("%s (%s)", diff, tt.why)
			}
			if entry := f.Target(0); tt.state != "" && (entry == nil || posting.StateOf(entry) != tt.state) {
				t.Errorf("%+v, want %s (%s)", entry, tt.state, tt.why)
			}
			earlier := f.Post.Status.Earlier
			if looked := earlier != nil && earlier.Rewound != nil && earlier.Rewound.Equal(v1alpha1.NewTimePtr(f.Rollback.DetectedAt)); looked != tt.looked {
				t.Errorf("%+v, want looked up: %t (%s)", earlier, tt.looked, tt.why)
			}
		})
	}
}

// TestRollbackStores checks what the first pass after a rollback stores besides the targets.
func TestRollbackStores(t *testing.T) {
	f := facts(func(s *situation) { s.claimed(time.Hour); s.putBack(nil) })
	Decide(f)
	if f.Post.Status.Earlier == nil || f.Post.Status.Earlier.Object != "uid" {
		t.Errorf("%+v: the lookup must store the archive's answer", f.Post.Status.Earlier)
	}
	f = facts(func(s *situation) {
		setAccepted(s.Post, t0, v1alpha1.ReasonRecordUnavailable, "away")
		s.putBack(own(refusedThen))
	})
	Decide(f)
	if f.accepted() {
		t.Error("a post with an unstarted delivery is accepted before its validation")
	}
}

// TestRollbackContinues covers posts after they have been looked up.
func TestRollbackContinues(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*situation)
		then   string
	}{
		"that a user declared not sent": {func(s *situation) { s.putBack(nil) }, "claim [0]"},
		"that is due": {func(s *situation) {
			s.scheduled(time.Minute)
			s.putBack(nil)
		}, "claim [0]"},
		"that was rejected": {func(s *situation) { s.putBack(own(refusedThen)) }, "claim [0]"},
		"that waited for the archive": {func(s *situation) {
			s.resolved(v1alpha1.OutcomeRefused, v1alpha1.TargetPending)
			setAccepted(s.Post, t0, v1alpha1.ReasonRecordUnavailable, "away")
			attempt.Block(s.entry(0), v1alpha1.Blocked{Reason: v1alpha1.ReasonRecordUnavailable, Problem: "away"})
			s.putBack(own(refusedThen))
		}, "claim [0]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			if got := words(Decide(f)); len(got) != 1 {
				t.Fatalf("%v, want that it is written", got)
			}
			Describe(f.Post, t0)
			if attempt.Undecided(f.Target(0)) {
				if problems := RecordResolutions(f.Post, "0=not-sent", nil, &f.Settings, t0); len(problems) > 0 {
					t.Fatal(problems)
				}
			}
			f.Now = t0.Add(time.Minute)
			if got := words(Decide(f)); len(got) == 0 || got[0] != tt.then {
				t.Errorf("%v, want %s", got, tt.then)
			}
			if c := meta.FindStatusCondition(f.Post.Status.Conditions, v1alpha1.ConditionAccepted); c != nil && c.Status != metav1.ConditionTrue {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestRollbackWithdrawn covers posts cancelled after a rollback: published targets become posted, and the others are
// not sent.
func TestRollbackWithdrawn(t *testing.T) {
	for name, tt := range map[string]struct {
		why    string
		change func(*situation)
		answer string
		phase  v1alpha1.PostPhase
		states []v1alpha1.TargetState
	}{
		"no target is published": {"the post is cancelled", func(s *situation) { s.putBack(own(refusedThen)) }, "", v1alpha1.PhaseCancelled, []v1alpha1.TargetState{v1alpha1.TargetPending}},
		"published":              {"a published post cannot be cancelled", func(s *situation) { s.putBack(own()) }, "", v1alpha1.PhasePosted, []v1alpha1.TargetState{v1alpha1.TargetPosted}},
		"one of two is published": {"the other one is not sent", func(s *situation) { s.twoTargets(); s.putBack(own()) }, "", v1alpha1.PhaseFailed, []v1alpha1.TargetState{
			v1alpha1.TargetPosted, v1alpha1.TargetFailed,
		}},
		"one of two may be published": {"a user must answer for this target only", func(s *situation) {
			s.twoTargets()
			s.putBack(own(undecidedThen))
		}, "", v1alpha1.PhaseFailed, []v1alpha1.TargetState{v1alpha1.TargetUndecided, v1alpha1.TargetFailed}},
		"one of two may be published, by an unfinished record": {"the call was not claimed for this object", func(s *situation) {
			s.twoTargets()
			s.putBack(own(func(t *v1alpha1.TargetStatus) { t.State, t.ExternalID, t.Attempt = v1alpha1.TargetPending, "", nil }))
			s.Earlier.Record.Underway = true
		}, "", v1alpha1.PhaseFailed, []v1alpha1.TargetState{v1alpha1.TargetUndecided, v1alpha1.TargetFailed}},
		"without a record": {"a user must answer", func(s *situation) { s.putBack(nil) }, "", v1alpha1.PhaseFailed, []v1alpha1.TargetState{v1alpha1.TargetUndecided}},
		"a user declares it not sent": {
			"the target is not sent", func(s *situation) { s.putBack(nil) }, "0=not-sent",
			v1alpha1.PhaseFailed,
			[]v1alpha1.TargetState{v1alpha1.TargetFailed},
		},
		"a user declares a recorded publication not sent": {
			"the target is not sent", func(s *situation) { s.putBack(own(undecidedThen)) }, "0=not-sent",
			v1alpha1.PhaseFailed,
			[]v1alpha1.TargetState{v1alpha1.TargetFailed},
		},
		"a user declares it published": {
			"the declaration is recorded", func(s *situation) { s.putBack(nil) }, "0=posted:7",
			v1alpha1.PhasePosted,
			[]v1alpha1.TargetState{v1alpha1.TargetPosted},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(func(s *situation) { s.cancelled(); tt.change(s) })
			decide := func() {
				for pass := range 3 { // a reconciliation ends with its write
					for _, word := range words(Decide(f)) {
						if strings.HasPrefix(word, "claim") {
							t.Errorf("the decision is %q (%s)", word, tt.why)
						}
					}
					if second := f.Target(1); pass == 0 && second != nil && posting.StateOf(second) == v1alpha1.TargetPending {
						t.Errorf("the first write still shows the second target as pending (%s)", tt.why)
					}
					Describe(f.Post, f.Now)
				}
			}
			decide()
			if tt.answer != "" {
				if problems := RecordResolutions(f.Post, tt.answer, nil, &f.Settings, t0); len(problems) > 0 {
					t.Fatal(problems)
				}
				decide()
			}
			var states []v1alpha1.TargetState
			for i := range f.Post.Spec.Targets {
				entry := f.Target(i)
				if entry == nil {
					entry = &v1alpha1.TargetStatus{}
				}
				states = append(states, posting.StateOf(entry))
			}
			asked := slices.Contains(states, v1alpha1.TargetUndecided)
			if diff := cmp.Diff(tt.states, states); diff != "" || f.Post.Status.Phase != tt.phase || f.Post.Status.Finished == asked {
				t.Errorf("%s, finished %t: %s (%s)", f.Post.Status.Phase, f.Post.Status.Finished, diff, tt.why)
			}
		})
	}
}

// TestWithdrawnWhileUndecided checks that a post with an undecided target is not reported as cancelled.
func TestWithdrawnWhileUndecided(t *testing.T) {
	f := facts(func(s *situation) {
		s.twoTargets()
		s.entered()
		s.entry(0).State, s.entry(0).Blocked = v1alpha1.TargetUndecided, &maybePublished
		s.cancelled()
	})
	if diff := cmp.Diff([]string{"write"}, words(Decide(f))); diff != "" {
		t.Error(diff)
	}
	Describe(f.Post, f.Now)
	if f.Post.Status.Finished || !attempt.Undecided(f.Target(0)) || posting.StateOf(f.Target(1)) != v1alpha1.TargetFailed {
		t.Errorf("finished %t: %+v", f.Post.Status.Finished, f.Post.Status.Targets)
	}
}

// TestRollbackMessages checks the messages of a post published before the rollback.
func TestRollbackMessages(t *testing.T) {
	f := facts(func(s *situation) { s.putBack(own()) })
	Decide(f)
	Describe(f.Post, t0)
	adopted := meta.FindStatusCondition(f.Post.Status.Conditions, v1alpha1.ConditionAdopted)
	if adopted == nil || !strings.HasPrefix(adopted.Message, "this post was already sent, before the cluster was restored") || !strings.Contains(adopted.Message, "https://x.example/7") {
		t.Errorf("%+v", adopted)
	}
	if !f.Post.Status.Finished {
		t.Error("the post must be finished")
	}
}
