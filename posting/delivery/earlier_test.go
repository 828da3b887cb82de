// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/test/must"
)

// earlierRecord returns the record of an earlier post to x's account, with changes.
func earlierRecord(change ...func(*v1alpha1.TargetStatus)) *record.Record {
	t := record.Target{Connection: "x", AccountID: "account", TargetStatus: v1alpha1.TargetStatus{
		Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPosted, ExternalID: "7", ExternalURL: "https://x.example/7",
		Attempt: &v1alpha1.Attempt{Number: 1, ID: "old", AccountID: "account", Outcome: v1alpha1.OutcomePosted, StartedAt: v1alpha1.NewTime(t0), SendBefore: v1alpha1.NewTime(t0)},
	}}
	for _, c := range change {
		c(&t.TargetStatus)
	}
	return &record.Record{Version: 1, Namespace: "team", Name: "post", UID: "earlier", Targets: []record.Target{t}}
}

// withdrawnThen returns the record of an object that was cancelled before its first call.
func withdrawnThen(uid types.UID) *record.Record {
	r := earlierRecord()
	r.UID, r.Phase, r.FinishedAt, r.Targets = uid, v1alpha1.PhaseCancelled, v1alpha1.NewTimePtr(t0.Add(-time.Hour)), nil
	return r
}

func staysCancelled(t *testing.T, p *v1alpha1.Post) {
	Describe(p, t0)
	if p.Status.Phase != v1alpha1.PhaseCancelled || !p.Status.Finished || p.Status.Earlier.Record != "earlier" || !p.Status.CancelledAt.Time.Equal(t0.Add(-time.Hour)) {
		t.Errorf("%+v", p.Status)
	}
}

// copied makes the post a copy of the object "earlier", restored with its status.
func (s *situation) copied() {
	s.target.State = v1alpha1.TargetPending
	s.entered()
	s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
}

// recordFound records that the record of the object "earlier" was found, without adopting it.
func (s *situation) recordFound() {
	s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: string(s.Post.UID), Record: "earlier"}
}

func isUndecided(t *testing.T, p *v1alpha1.Post) {
	isAskedAbout(t, p)
	if p.Status.Earlier == nil || p.Status.Earlier.Object != string(p.UID) {
		t.Errorf("%+v, %+v", p.Status.Targets[0], p.Status.Earlier)
	}
}

func isAskedAbout(t *testing.T, p *v1alpha1.Post) {
	if posting.StateOf(&p.Status.Targets[0]) != v1alpha1.TargetUndecided {
		t.Errorf("%+v", p.Status.Targets[0])
	}
}

func TestEarlier(t *testing.T) {
	answered := func(r *record.Record) Earlier { return Earlier{State: EarlierFetched, Record: r} }
	away := Earlier{State: EarlierUnavailable, Problem: "it is unavailable"}
	for name, tt := range map[string]struct {
		why    string
		change func(*situation)
		want   []string
		check  func(*testing.T, *v1alpha1.Post)
	}{
		"not read yet": {"no target is sent before", func(s *situation) { s.Earlier = Earlier{} }, []string{"find earlier"}, nil},
		"without an archive": {"the installation has no archive to read", func(s *situation) { s.Earlier = Earlier{State: EarlierDisabled} }, []string{"claim [0]", "wait"}, func(t *testing.T, p *v1alpha1.Post) {
			if p.Status.Earlier != nil {
				t.Error("the post counts as looked up, so a later archive would not be read")
			}
		}},
		"no earlier record": {"the post is new", func(s *situation) { s.Earlier = answered(nil) }, []string{"claim [0]", "wait"}, func(t *testing.T, p *v1alpha1.Post) {
			if p.Status.Earlier == nil || p.Status.Earlier.Object != "uid" {
				t.Errorf("%+v: the claim must record the lookup", p.Status.Earlier)
			}
		}},
		"published": {"the post is never sent again", func(s *situation) { s.Earlier = answered(earlierRecord()) }, []string{"write and warn of AlreadyPublished"}, func(t *testing.T, p *v1alpha1.Post) {
			if p.Status.Targets[0].State != v1alpha1.TargetPosted || p.Status.Targets[0].ExternalID != "7" {
				t.Errorf("%+v", p.Status.Targets[0])
			}
		}},
		"published, with an additional target": {"the other target is published", func(s *situation) {
			s.twoTargets()
			s.Connections["y"].Spec.AccountID = "other"
			s.Earlier = answered(earlierRecord())
		}, []string{"write and warn of AlreadyPublished"}, func(t *testing.T, p *v1alpha1.Post) {
			if len(p.Status.Targets) != 2 || p.Status.Targets[1].State != v1alpha1.TargetPending && p.Status.Targets[1].State != "" {
				t.Errorf("%+v", p.Status.Targets)
			}
		}},
		"possibly published": {"a user must answer", func(s *situation) {
			s.Earlier = answered(earlierRecord(undecidedThen))
		}, []string{"write and warn of AlreadyPublished"}, func(t *testing.T, p *v1alpha1.Post) {
			if posting.StateOf(&p.Status.Targets[0]) != v1alpha1.TargetUndecided {
				t.Errorf("%+v", p.Status.Targets[0])
			}
		}},
		"rejected": {"the post is sent", func(s *situation) {
			s.Earlier = answered(earlierRecord(refusedThen, func(t *v1alpha1.TargetStatus) { t.Attempt.SearchFrom = v1alpha1.NewTimePtr(t0.Add(-time.Hour)) }))
		}, []string{"claim [0]", "wait"}, func(t *testing.T, p *v1alpha1.Post) {
			must.Succeed(t, RecordClaims(p, []TargetClaim{{Claim: attempt.Claim{ID: "new"}}}, t0))
			if from := p.Status.Targets[0].Attempt.SearchFrom; !from.Equal(v1alpha1.NewTimePtr(t0.Add(-time.Hour))) {
				t.Errorf("lookups search from %v, want from the first call of the earlier post", from)
			}
		}},
		"a user requests it again": {"the annotation names the record", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.PublishAgainAnnotation: "earlier"}
			s.Earlier = answered(earlierRecord())
		}, []string{"claim [0]", "wait"}, func(t *testing.T, p *v1alpha1.Post) {
			if !p.Status.Earlier.PublishAgain {
				t.Error("a later pass would not know the request")
			}
		}},
		"a request for an older record": {"the request was processed, or never applied", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.PublishAgainAnnotation: "oldest"}
			s.Earlier = answered(earlierRecord())
		}, []string{"write and warn of AlreadyPublished"}, func(t *testing.T, p *v1alpha1.Post) {
			Describe(p, t0)
			adopted := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAdopted)
			if adopted == nil || !strings.Contains(adopted.Message, `"oldest"`) || !strings.Contains(adopted.Message, v1alpha1.PublishAgainAnnotation+": uid") {
				t.Errorf("%+v does not contain the state and the remedy", adopted)
			}
		}},
		"a copy that a user requests again": {"the user knows the first publication", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.PublishAgainAnnotation: "earlier", v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Earlier = answered(earlierRecord())
		}, []string{"claim [0]", "wait"}, nil},
		"a copy without a record": {"the post may have been sent", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Earlier = answered(nil)
		}, []string{"write"}, nil},
		"a copy of a post that was cancelled": {"a backup without status matches a manifest applied after the cancellation", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Earlier = answered(withdrawnThen("earlier"))
		}, []string{"write Cancelled"}, staysCancelled},
		"a copy of a cancelled API post": {"no other post had its name", func(s *situation) {
			s.Post.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
			s.Post.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(s.Post.CreationTimestamp.Add(-time.Hour)).String()}
			s.Earlier = answered(withdrawnThen("earlier"))
		}, []string{"write Cancelled"}, staysCancelled},
		"another post with the name was cancelled": {"a user has deleted that one, and applied a new one", func(s *situation) {
			s.Earlier = answered(withdrawnThen("earlier"))
		}, []string{"claim [0]", "wait"}, nil},
		"a copy of a cancelled post that a user requests": {"the annotation names the record", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier", v1alpha1.PublishAgainAnnotation: "earlier"}
			s.Earlier = answered(withdrawnThen("earlier"))
		}, []string{"claim [0]", "wait"}, nil},
		"a copy, without an archive": {"the post may have been sent", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Earlier = Earlier{State: EarlierDisabled}
		}, []string{"write"}, nil},
		"the archive is unavailable": {"the post waits, and reports the reason", func(s *situation) { s.Earlier = away }, []string{"write and warn of RecordUnavailable", "wait"}, func(t *testing.T, p *v1alpha1.Post) {
			if p.Status.Targets[0].Blocked == nil || p.Status.Earlier != nil {
				t.Errorf("%+v, %+v", p.Status.Targets[0], p.Status.Earlier)
			}
		}},
		"the archive is unavailable past the deadline": {"the post fails, and is not sent", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-time.Hour - time.Second))
			s.Earlier = away
		}, []string{"write"}, func(t *testing.T, p *v1alpha1.Post) {
			if p.Status.Targets[0].State != v1alpha1.TargetFailed {
				t.Errorf("%+v", p.Status.Targets[0])
			}
		}},
		"the archive is unavailable, and the object was created after the deadline": {"a restored cluster finds its bucket a moment later", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			s.Earlier = away
		}, []string{"write and warn of RecordUnavailable", "wait"}, nil},
		"a copy, and its team is not ready yet": {"the team's record contains the outcome", func(s *situation) {
			s.Unowned, s.Earlier = true, Earlier{}
			s.scheduled(-2 * time.Hour)
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
		}, []string{"write and warn of NoTeam", "wait"}, nil},
		"a copy whose team is never created": {"only a user can answer", func(s *situation) {
			s.copied()
			attempt.Block(&s.Post.Status.Targets[0], noTeam(s.Post))
			s.Post.Status.Targets[0].TryUntil = v1alpha1.NewTimePtr(t0.Add(-time.Second))
			s.Unowned, s.Earlier = true, Earlier{}
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-time.Hour - time.Second))
		}, []string{"write"}, isAskedAbout},
		"a copy whose team is not ready when the manager starts": {"the team had no time yet", func(s *situation) {
			s.Unowned, s.Earlier, s.StartedAt = true, Earlier{}, t0.Add(-time.Second)
			s.scheduled(-5 * time.Hour)
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-3 * time.Hour))
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
		}, []string{"write and warn of NoTeam", "wait"}, nil},
		"a copy with a rejected call whose team is not ready yet": {"a later call may have published the target", func(s *situation) {
			s.target.TryUntil = v1alpha1.NewTimePtr(t0.Add(-2 * time.Hour))
			s.resolved(v1alpha1.OutcomeRefused, v1alpha1.TargetPending)
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Unowned, s.Earlier = true, Earlier{}
		}, []string{"write and warn of NoTeam", "wait"}, nil},
		"a copy with an open call whose team is not ready yet": {"the platform is queried first", func(s *situation) {
			s.claimed(time.Hour)
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Unowned, s.Earlier = true, Earlier{}
		}, []string{"lookup [0]"}, nil},
		"a copy without entries, and a record of another object": {"its own original may be published", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/original"}
			s.Earlier = answered(earlierRecord(refusedThen))
		}, []string{"write"}, isUndecided},
		"a copy, and the archive is unavailable past the deadline": {"only a user can answer", func(s *situation) {
			s.scheduled(-2 * time.Hour)
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-time.Hour - time.Second))
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Earlier = away
		}, []string{"write"}, isAskedAbout},
		"a cancelled copy": {"the post is reported as cancelled once it is known not to be published", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.Spec.Cancelled, s.Earlier = true, Earlier{}
		}, []string{"find earlier"}, nil},
		"a cancelled copy, and its team is not ready yet": {"the post is reported as cancelled once it is known not to be published", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.Spec.Cancelled, s.Unowned, s.Earlier = true, true, Earlier{}
		}, []string{"wait"}, nil},
		"a cancelled copy whose team is never created": {"only a user can answer", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-time.Hour - time.Second))
			s.Post.Spec.Cancelled, s.Unowned, s.Earlier = true, true, Earlier{}
		}, []string{"write"}, isAskedAbout},
		"a cancelled copy with a future time whose team is never created": {"the post was not sent", func(s *situation) {
			s.scheduled(time.Hour)
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.CreationTimestamp = metav1.NewTime(t0.Add(-time.Hour - time.Second))
			s.Post.Spec.Cancelled, s.Unowned, s.Earlier = true, true, Earlier{}
		}, []string{"write Cancelled"}, nil},
		"a cancelled copy, and the archive is unavailable": {"the post is reported as cancelled once it is known not to be published", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.Spec.Cancelled, s.Earlier = true, away
		}, []string{"wait"}, nil},
		"a cancelled copy that is published": {"its record contains the outcome", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.Spec.Cancelled, s.Earlier = true, answered(earlierRecord())
			s.twoTargets()
			s.Connections["y"].Spec.AccountID = "other"
		}, []string{"write and warn of AlreadyPublished"}, func(t *testing.T, p *v1alpha1.Post) {
			if posting.StateOf(&p.Status.Targets[0]) != v1alpha1.TargetPosted || p.Status.Targets[1].State != v1alpha1.TargetFailed {
				t.Errorf("%+v", p.Status.Targets)
			}
		}},
		"a cancelled copy without a record": {"the post may have been sent", func(s *situation) {
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.Spec.Cancelled, s.Earlier = true, answered(nil)
		}, []string{"write"}, isUndecided},
		"a cancelled copy with a future time, without a record": {"the post was not sent", func(s *situation) {
			s.scheduled(time.Hour)
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Post.Spec.Cancelled, s.Earlier = true, answered(nil)
		}, []string{"write Cancelled"}, nil},
		"a copy that was looked up before its time, and whose team was deleted": {"the post cannot have been sent", func(s *situation) {
			s.copied()
			attempt.Block(&s.Post.Status.Targets[0], noTeam(s.Post))
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: string(s.Post.UID)}
			s.Unowned, s.Earlier = true, Earlier{}
		}, []string{"write and warn of NoTeam", "wait"}, nil},
		"a copy, after the archive was unavailable": {"entries without a lookup are not proof", func(s *situation) {
			s.target.State, s.target.Blocked = v1alpha1.TargetPending, &v1alpha1.Blocked{Reason: v1alpha1.ReasonRecordUnavailable, Problem: "away"}
			s.entered()
			s.Post.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "post/earlier"}
			s.Earlier = answered(nil)
		}, []string{"write"}, nil},
		"an unknown account": {"the account may be the one with the publication", func(s *situation) {
			s.Post.Spec.Targets[0].ConnectionRef.Name = "new"
			s.Earlier = answered(earlierRecord())
		}, []string{"write and warn of ConnectionNotFound", "wait"}, func(t *testing.T, p *v1alpha1.Post) {
			if p.Status.Earlier != nil {
				t.Error("the post is not looked up again")
			}
		}},
		"a draft":        {"a draft is not sent", func(s *situation) { s.Post.Spec.Draft, s.Earlier = true, Earlier{} }, []string{"write", "wait"}, nil},
		"without a team": {"the namespace has no records, and its post is not sent", func(s *situation) { s.Unowned, s.Earlier = true, Earlier{} }, []string{"write and warn of NoTeam", "wait"}, nil},
		"created through the API": {"no other post can have its name", func(s *situation) {
			s.Post.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
			s.Post.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(s.Post.CreationTimestamp.Time).String()}
			s.Earlier = Earlier{}
		}, []string{"claim [0]", "wait"}, nil},
		"a future time": {"users see now that it will not be published", func(s *situation) {
			s.scheduled(time.Hour)
			s.Earlier = Earlier{}
		}, []string{"find earlier"}, nil},
		"accepted by a version without records": {"a hundred thousand posts must not be looked up together", func(s *situation) {
			s.scheduled(time.Hour)
			s.entered()
			setAccepted(s.Post, t0, v1alpha1.ReasonAccepted, acceptedMessage)
			s.Earlier = Earlier{}
		}, []string{"write", "wait"}, nil},
		"accepted by such a version, and due": {"no target is sent before the lookup", func(s *situation) {
			s.scheduled(0)
			s.entered()
			setAccepted(s.Post, t0, v1alpha1.ReasonAccepted, acceptedMessage)
			s.Earlier = Earlier{}
		}, []string{"find earlier"}, nil},
		"a copy with its status, whose call is open": {"the call is settled first", func(s *situation) {
			s.claimed(time.Hour)
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: "another"}
			s.Earlier = Earlier{}
		}, []string{"lookup [0]"}, nil},
		"a copy with its status, without a record": {"the post may have been sent since the backup", func(s *situation) {
			s.copied()
			s.Earlier = answered(nil)
		}, []string{"write"}, isUndecided},
		"a copy with its status, without an archive": {"the post may have been sent since the backup", func(s *situation) {
			s.copied()
			s.Earlier = Earlier{State: EarlierDisabled}
		}, []string{"write"}, isUndecided},
		"a copy with its status, and an older record": {"the record does not describe the object in the backup", func(s *situation) {
			s.copied()
			s.Earlier = answered(earlierRecord(refusedThen))
			s.Earlier.Record.UID = "oldest"
		}, []string{"write"}, isUndecided},
		"a copy with its status, which was rejected": {"the record proves that it is not published", func(s *situation) {
			s.copied()
			s.Earlier = answered(earlierRecord(refusedThen))
		}, []string{"claim [0]", "wait"}, nil},
		"a copy with its status and a future time": {"the post is looked up while its outcome can still be determined", func(s *situation) {
			s.copied()
			s.scheduled(time.Hour)
			setAccepted(s.Post, t0, v1alpha1.ReasonAccepted, acceptedMessage)
			s.Earlier = Earlier{}
		}, []string{"find earlier"}, nil},
		"a copy with its status, which a user declared not published": {"an answered question is not repeated", func(s *situation) {
			s.copied()
			s.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: "uid"}
			s.Earlier = Earlier{}
		}, []string{"claim [0]", "wait"}, nil},
		"after a lookup, and due": {"an edit may have added targets since", func(s *situation) {
			s.recordFound()
			s.Earlier = Earlier{}
		}, []string{"find earlier"}, nil},
		"after a lookup, without new publications": {"the post is sent", func(s *situation) {
			s.recordFound()
			s.Connections["x"].Spec.AccountID = "other"
			s.Earlier = answered(earlierRecord())
		}, []string{"claim [0]", "wait"}, nil},
		"after a lookup, with a published account as a new target": {"the target is never sent again", func(s *situation) {
			s.recordFound()
			s.twoTargets()
			s.Connections["y"].Spec.AccountID = "other"
			s.Earlier = answered(earlierRecord())
			s.Earlier.Record.UID = "later"
		}, []string{"write and warn of AlreadyPublished"}, func(t *testing.T, p *v1alpha1.Post) {
			if len(p.Status.Targets) != 2 || p.Status.Targets[0].State != v1alpha1.TargetPosted || len(p.Status.Earlier.Targets) != 1 || p.Status.Earlier.Record != "later" {
				t.Errorf("%+v, %+v", p.Status.Targets, p.Status.Earlier)
			}
		}},
		"after a lookup, and cancelled": {"its targets are not sent", func(s *situation) {
			s.recordFound()
			s.Post.Spec.Cancelled, s.Earlier = true, Earlier{}
		}, []string{"write Cancelled"}, nil},
		"after a lookup, and finished": {"its targets are not sent", func(s *situation) {
			s.recordFound()
			s.Post.Status.Finished, s.Earlier = true, Earlier{}
		}, nil, nil},
		"after a lookup, while the archive is unavailable": {"the post waits, and reports the reason", func(s *situation) {
			s.recordFound()
			s.Earlier = away
		}, []string{"write and warn of RecordUnavailable", "wait"}, nil},
		"after a lookup, and the record was deleted since": {"its retention was over", func(s *situation) {
			s.recordFound()
			s.Earlier = answered(nil)
		}, []string{"claim [0]", "wait"}, nil},
		"after a lookup, and the Connection does not exist": {"the account may be one with the publication", func(s *situation) {
			s.recordFound()
			s.Post.Spec.Targets[0].ConnectionRef.Name = "new"
			s.Earlier = answered(earlierRecord())
		}, []string{"write and warn of ConnectionNotFound", "wait"}, nil},
		"after a lookup, and a user requests the post again": {"the lookup was requested once", func(s *situation) {
			s.recordFound()
			s.Post.Status.Earlier.PublishAgain, s.Earlier = true, Earlier{}
		}, []string{"claim [0]", "wait"}, nil},
		"after a lookup, with a future time": {"the post is looked up when it is due", func(s *situation) {
			s.recordFound()
			s.scheduled(time.Hour)
			s.Earlier = Earlier{}
		}, []string{"write", "wait"}, nil},
		"a copy whose own entry is published": {"the entry remains, whatever the record contains", func(s *situation) {
			s.copied()
			s.Post.Status.Targets[0] = earlierRecord(func(t *v1alpha1.TargetStatus) { t.ExternalID = "8" }).Targets[0].TargetStatus
			s.Earlier = answered(earlierRecord(undecidedThen))
		}, []string{"write", "wait"}, func(t *testing.T, p *v1alpha1.Post) {
			if p.Status.Targets[0].State != v1alpha1.TargetPosted || p.Status.Targets[0].ExternalID != "8" {
				t.Errorf("%+v", p.Status.Targets[0])
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			if diff := cmp.Diff(tt.want, untimed(words(Decide(f)))); diff != "" {
				t.Errorf("%s (%s)", diff, tt.why)
			}
			if tt.check != nil {
				tt.check(t, f.Post)
			}
		})
	}
}

// untimed removes the times from waits.
func untimed(actions []string) []string {
	for i := range actions {
		if strings.HasPrefix(actions[i], "wait") {
			actions[i] = "wait"
		}
	}
	return actions
}

// TestCopiesAreSpread checks that a post with many published targets names only the first ones.
func TestCopiesAreSpread(t *testing.T) {
	p := post(make([]v1alpha1.TargetStatus, 7)...)
	p.Status.Earlier = &v1alpha1.EarlierPost{Record: "earlier", Targets: []int32{0, 1, 2, 3, 4, 5, 6}}
	if got := alreadyPublishedMessage(p); !strings.Contains(got, "target 4 (x) is pending, and 2 more. None") {
		t.Errorf("want five of seven targets: %s", got)
	}
}

// TestLookupsBeforeTheirTime checks that a post waiting to learn about an earlier one is requeued when that wait ends,
// even if its own deadline has passed.
func TestLookupsBeforeTheirTime(t *testing.T) {
	f := facts(func(s *situation) {
		s.Unowned, s.Earlier = true, Earlier{}
		s.scheduled(-2 * time.Hour)
	})
	actions := Decide(f)
	wait, ok := actions[len(actions)-1].(Wait)
	if want := f.Post.CreationTimestamp.Add(f.Settings.StartingDeadline); !ok || !wait.Until.After(want) || wait.Until.Sub(want) > time.Second {
		t.Errorf("%v: until %s, want just after %s", words(actions), wait.Until, want)
	}
}

// TestArchiveIsRetried checks how long a post waits once the archive is available again.
func TestArchiveIsRetried(t *testing.T) {
	for name, in := range map[string]time.Duration{"due": -time.Minute, "in an hour": time.Hour} {
		f := facts(func(s *situation) {
			s.scheduled(in)
			s.Earlier = Earlier{State: EarlierUnavailable, Problem: "it is unavailable"}
		})
		actions := Decide(f)
		wait, ok := actions[len(actions)-1].(Wait)
		if left := wait.Until.Sub(t0); !ok || left < archiveRetryPause || left > 2*archiveRetryPause {
			t.Errorf("%s: %v; the next read is after %s", name, words(actions), left)
		}
	}
}

// TestAdoptedPostContinues covers a post with one adopted target.
func TestAdoptedPostContinues(t *testing.T) {
	f := facts(func(s *situation) {
		s.twoTargets()
		s.Connections["y"].Spec.AccountID = "other"
		s.scheduled(time.Hour)
		s.Earlier = Earlier{State: EarlierFetched, Record: earlierRecord()}
	})
	Decide(f)
	Describe(f.Post, t0)
	for range 2 { // before and after it is accepted
		if got := words(Decide(f)); len(got) == 0 || strings.HasPrefix(got[0], "claim") || got[0] == "find earlier" {
			t.Errorf("%v: an unpublished target must wait for its time", got)
		}
		Describe(f.Post, t0)
	}
	f.Now, f.Invalid = t0.Add(time.Hour), func() field.ErrorList { return notFound } // an accepted post is not validated again
	if got := words(Decide(f)); len(got) == 0 || got[0] != "claim [1]" {
		t.Errorf("%v: only an unpublished target is claimed at its time", got)
	}
	f.Post.DeletionTimestamp = new(metav1.NewTime(t0))
	if got := words(Decide(f)); cmp.Diff([]string{"release"}, got) != "" {
		t.Errorf("%v: the object must be released", got)
	}
}
