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
	"github.com/herald-social/herald/posting/attempt"
)

const testGroup = "herald-group-07/4711"

// inGroup opens an armed attempt of a post that is due after a while.
func (s *situation) inGroup(due time.Duration, state GroupState) *v1alpha1.TargetStatus {
	s.scheduled(due)
	t := s.entered()
	claim := attempt.Claim{ID: "a1", AccountID: "account", Group: testGroup, Window: ArmedWindow(due, s.Settings.SendWindow)}
	if err := attempt.Open(t, claim, t0); err != nil {
		panic(err)
	}
	s.Group = func(string) GroupState { return state }
	return t
}

// reclaimed closes an armed attempt as not sent.
func (s *situation) reclaimed(due time.Duration) *v1alpha1.TargetStatus {
	t := s.inGroup(due, GroupClosed)
	if err := RecordResults(s.Post, []Result{{Attempt: "a1", Result: platforms.Result{Outcome: platforms.NotSent, Withheld: true, Err: TakenBack}}}, &Deadlines{}, t0); err != nil {
		panic(err)
	}
	return t
}

// planted makes the post a tree, on a platform with trees.
func (s *situation) planted(cards int) {
	s.Post.Spec.Category, s.Post.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, cards)}
	s.Platforms = platforms.Registry{v1alpha1.PlatformX: publisher{delivers: []v1alpha1.Category{v1alpha1.CategoryTree}}}
}

// crowded makes the post part of a crowd that is due after a while.
func (s *situation) crowded(due time.Duration) {
	s.scheduled(due)
	s.Crowded = true
}

func TestArmAhead(t *testing.T) {
	for name, tt := range map[string]struct {
		posts int
		want  time.Duration
	}{
		"the smallest crowd has time for a slow Kubernetes API":      {50, 15 * time.Second},
		"a crowd whose claims take 15 s needs no more":               {1500, 15 * time.Second},
		"the time grows with the number of claims":                   {2000, 20 * time.Second},
		"an hour's crowd of a large installation":                    {5000, 50 * time.Second},
		"posts cannot be cancelled for at most 50 s":                 {6001, 50 * time.Second},
		"a crowd that can never be claimed ahead has the same limit": {1_000_000, 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ArmAhead(tt.posts); got != tt.want {
				t.Errorf("ArmAhead(%d) = %s, want %s", tt.posts, got, tt.want)
			}
		})
	}
}

func TestDecideArmed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(s *situation)
		want   []string
	}{
		"a post of a crowd is claimed ahead of its time":                          {func(s *situation) { s.crowded(10 * time.Second) }, []string{"arm [0]", "wait 10s in turn"}},
		"all its targets are claimed together":                                    {func(s *situation) { s.crowded(10 * time.Second); s.twoTargets() }, []string{"arm [0 1]", "wait 10s in turn"}},
		"at most 50 s before its time, because it cannot be cancelled afterwards": {func(s *situation) { s.crowded(50*time.Second + time.Millisecond) }, []string{"write", "wait 50.001s in turn"}},
		"50 s ahead is not too early, because large crowds need it":               {func(s *situation) { s.crowded(50 * time.Second) }, []string{"arm [0]", "wait 50s in turn"}},
		"in the last second its group may be opened before its claim is stored":   {func(s *situation) { s.crowded(time.Second - time.Millisecond) }, []string{"write", "wait 999ms in turn"}},
		"a second ahead is not too late":                                          {func(s *situation) { s.crowded(time.Second) }, []string{"arm [0]", "wait 1s in turn"}},
		"a post outside a crowd waits for its time":                               {func(s *situation) { s.scheduled(10 * time.Second) }, []string{"write", "wait 10s in turn"}},
		"a suspended team's posts are not claimed":                                {func(s *situation) { s.crowded(10 * time.Second); s.Suspended = true }, []string{"write", "wait 10s in turn"}},
		"a target whose connection is not ready is not claimed":                   {func(s *situation) { s.crowded(10 * time.Second); ready(s.conn, metav1.ConditionFalse, "Expired") }, []string{"write", "wait 10s in turn"}},
		"a target whose credentials cannot be read is not claimed": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.CredentialsProblem = func(string) error { return errors.New("no") }
		}, []string{"write", "wait 10s in turn"}},
		"a target that would probe the app's limit is not claimed, because others wait for the result": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.NeedsProbe = func(*v1alpha1.Connection) bool { return true }
		}, []string{"write", "wait 10s in turn"}},
		"the slots for probes are not used before the time": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.MayProbe = func(*v1alpha1.Connection) bool { panic("it is taken by asking") }
		}, []string{"arm [0]", "wait 10s in turn"}},
		"a draft is not claimed":                              {func(s *situation) { s.crowded(10 * time.Second); s.Post.Spec.Draft = true }, []string{"write", "wait"}},
		"the cards of a tree are claimed one after the other": {func(s *situation) { s.crowded(10 * time.Second); s.planted(2) }, []string{"write", "wait 10s in turn"}},
		"a tree of one card is a single call":                 {func(s *situation) { s.crowded(10 * time.Second); s.planted(1) }, []string{"arm [0]", "wait 10s in turn"}},
		"a retry is claimed when it is due, because its target is reserved just before": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.retries(nil)
		}, []string{"write", "wait 10s in turn"}},
		"a post is claimed as a whole, and one of its targets has failed": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.twoTargets()
			fail(s.entered(), v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit, Problem: "no room"})
		}, []string{"write", "wait 10s in turn"}},
		"a target that is paused beyond the post's time cannot be sent then": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.entered().NextTryAt = v1alpha1.NewTimePtr(t0.Add(11 * time.Second))
		}, []string{"write", "wait 10s in turn"}},
		"prepared content is claimed": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.Preparation = preparing(Preparation{State: PreparationReady})
		}, []string{"arm [0]", "wait 10s in turn"}},
		"a call that uploads a file's last part is bound by memory": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.Preparation = preparing(Preparation{State: PreparationReady, Secret: true, TTL: time.Hour})
		}, []string{"write", "wait 10s in turn"}},
		"content that is still being prepared is claimed when it is due": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.Preparation = preparing(Preparation{State: PreparationRunning, TTL: time.Hour})
		}, []string{"write", "wait 10s in turn"}},
		"public content is looked up when it is due": {func(s *situation) {
			s.crowded(10 * time.Second)
			s.Preparation = preparing(Preparation{State: PreparationVisible, Err: platforms.Errorf(platforms.ClassPermanent, "no"), TTL: time.Hour, EndedAt: t0})
		}, []string{"report 0 ahead", "write", "wait 10s in turn"}},
		"the group of an armed attempt is read first":            {func(s *situation) { s.inGroup(10*time.Second, GroupUnread) }, []string{"take back [" + testGroup + "]"}},
		"its own group is awaited until a call would have ended": {func(s *situation) { s.inGroup(10*time.Second, GroupMayBeOpen) }, []string{"wait 32.001s"}},
		"a closed group proves that nothing was sent":            {func(s *situation) { s.inGroup(10*time.Second, GroupClosed) }, []string{"record"}},
		"a group that may be open is settled as any call":        {func(s *situation) { s.inGroup(10*time.Second, GroupMayBeOpen); s.Now = t0.Add(time.Minute) }, []string{"lookup [0]"}},
		"a group is read before a call is looked up":             {func(s *situation) { s.inGroup(10*time.Second, GroupUnread); s.Now = t0.Add(time.Minute) }, []string{"take back [" + testGroup + "]"}},
		"a deleted post whose call was not made has no unknown outcome": {func(s *situation) {
			s.inGroup(10*time.Second, GroupUnread)
			s.Post.DeletionTimestamp = &metav1.Time{Time: t0}
		}, []string{"take back [" + testGroup + "]"}},
		"after a rollback the group is not proof, because it was restored as well": {func(s *situation) {
			s.inGroup(time.Second, GroupClosed)
			s.Now = t0.Add(time.Minute)
			s.Rollback.DetectedAt = s.Now
			s.Earlier = Earlier{State: EarlierFetched}
		}, []string{"lookup [0]"}},
		"a post without records is not armed": {func(s *situation) {
			s.inGroup(time.Second, GroupClosed)
			s.Now = t0.Add(time.Minute)
			s.Rollback.DetectedAt, s.Earlier = s.Now, Earlier{State: EarlierDisabled}
		}, []string{"lookup [0]"}},
		"a deleted post is not armed": {func(s *situation) {
			s.inGroup(time.Second, GroupUnread)
			s.Now = t0.Add(time.Minute)
			s.Rollback.DetectedAt, s.NamespaceTerminating = s.Now, true
			s.Post.DeletionTimestamp = &metav1.Time{Time: s.Now}
		}, []string{"lookup [0]"}},
		"a group that was armed after a rollback proves that nothing was sent": {func(s *situation) {
			s.inGroup(10*time.Second, GroupClosed)
			s.Rollback.DetectedAt = t0.Add(-time.Second)
			s.Post.CreationTimestamp = metav1.Time{Time: t0}
		}, []string{"record"}},
		"a recovered post waits for its time": {func(s *situation) { s.reclaimed(10 * time.Second) }, []string{"write", "wait 10s in turn"}},
		"a recovered post is armed again":     {func(s *situation) { s.reclaimed(10 * time.Second); s.Crowded = true }, []string{"arm [0]", "wait 10s in turn"}},
		"two managers that recover a post from each other stop eventually": {func(s *situation) {
			s.reclaimed(10 * time.Second).Attempt.Number = maxArmed
			s.Crowded = true
		}, []string{"write", "wait 10s in turn"}},
		"a recovered post can be cancelled": {func(s *situation) { s.reclaimed(10 * time.Second); s.Post.Spec.Cancelled = true }, []string{"write Cancelled"}},
		"an armed post cannot be cancelled: nothing proves yet that it is not sent": {func(s *situation) {
			s.inGroup(10*time.Second, GroupMayBeOpen)
			s.Post.Spec.Cancelled = true
		}, []string{"wait 32.001s"}},
		"a recovered post is sent at its time":                                  {func(s *situation) { s.reclaimed(time.Second); s.Now = t0.Add(time.Second) }, []string{"claim [0]", "wait 1h0m1.001s"}},
		"a recovered post is sent when it is due":                               {func(s *situation) { s.reclaimed(time.Second); s.Now = t0.Add(2 * time.Second) }, []string{"claim [0]", "wait 1h0m1.001s"}},
		"a process that does not read groups settles an armed attempt as usual": {func(s *situation) { s.inGroup(10*time.Second, GroupUnread); s.Group = nil }, []string{"wait 32.001s"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, words(Decide(facts(tt.change)))); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
		})
	}
}

// TestArmedResult checks what is recorded about a group that was closed.
func TestArmedResult(t *testing.T) {
	f := facts(func(s *situation) { s.inGroup(10*time.Second, GroupClosed) })
	Decide(f)
	if err := RecordResults(f.Post, f.Results, f.deadlines(), t0); err != nil {
		t.Fatal(err)
	}
	target := f.Target(0)
	a := target.Attempt
	if a.Outcome != v1alpha1.OutcomeNotSent || a.Group != testGroup || target.State != v1alpha1.TargetPending {
		t.Errorf("attempt %+v of a target that is %s; want an unsent attempt of a pending target", a, target.State)
	}
	if target.Blocked != nil || target.NextTryAt != nil {
		t.Errorf("the target waits until %s for %+v; want no wait, since no call has failed", target.NextTryAt, target.Blocked)
	}
}

// TestUnsentPhase checks what users see of a post whose claim was taken back or withheld.
func TestUnsentPhase(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(s *situation)
		want      v1alpha1.PostPhase
		canCancel bool
	}{
		"an armed post is being delivered":                {func(s *situation) { s.inGroup(10*time.Second, GroupMayBeOpen) }, v1alpha1.PhaseProcessing, false},
		"a recovered post is scheduled":                   {func(s *situation) { s.reclaimed(10 * time.Second) }, v1alpha1.PhaseScheduled, true},
		"when it is due, it waits as usual":               {func(s *situation) { s.reclaimed(0); s.Target(0).TryUntil = v1alpha1.NewTimePtr(t0.Add(time.Hour)) }, v1alpha1.PhaseProcessing, false},
		"a post that was sent before is still being sent": {func(s *situation) { s.reclaimed(10 * time.Second).Attempt.SearchFrom = v1alpha1.NewTimePtr(t0) }, v1alpha1.PhaseProcessing, false},
		"a post that is cancelled then is cancelled":      {func(s *situation) { s.reclaimed(10 * time.Second); s.Post.Spec.Cancelled = true }, v1alpha1.PhaseCancelled, false},
		"a claim outside a group is not proof":            {func(s *situation) { s.reclaimed(10 * time.Second).Attempt.Group = "" }, v1alpha1.PhaseProcessing, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			Decide(f)
			Describe(f.Post, t0)
			if f.Post.Status.Phase != tt.want || f.CanCancel(t0) != tt.canCancel {
				t.Errorf("phase %s, can be cancelled: %t; want %s and %t", f.Post.Status.Phase, f.CanCancel(t0), tt.want, tt.canCancel)
			}
		})
	}
}

// TestArmedWithheld checks what can prevent an armed call at the last moment.
func TestArmedWithheld(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(s *situation)
		want   string
	}{
		"no block":                          {func(*situation) {}, ""},
		"its team was suspended":            {func(s *situation) { s.Suspended = true }, v1alpha1.ReasonSuspended},
		"its connection was disconnected":   {func(s *situation) { ready(s.conn, metav1.ConditionFalse, "Expired") }, v1alpha1.ReasonConnectionNotReady},
		"its connection was deleted":        {func(s *situation) { s.Connections = nil }, v1alpha1.ReasonConnectionNotReady},
		"its connection is beyond the plan": {func(s *situation) { ready(s.conn, metav1.ConditionFalse, v1alpha1.ReasonPlanLimit) }, v1alpha1.ReasonPlanLimit},
		"its account has reached a limit": {func(s *situation) {
			s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(time.Minute) }
		}, v1alpha1.ReasonRateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(func(s *situation) { s.inGroup(0, GroupMayBeOpen); tt.change(s) })
			var got string
			if b := f.Withheld(0); b != nil {
				got = b.Reason
			}
			if got != tt.want {
				t.Errorf("withheld for %q, want %q", got, tt.want)
			}
		})
	}
}
