// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/test/must"
)

var (
	published = platforms.Result{Outcome: platforms.Posted, ExternalID: "7"}
	timing    = attempt.Timing{LookupTimeout: time.Hour}
)

// open returns a post whose first target has the open attempt a1 and whose second target was never sent.
func open() *v1alpha1.Post {
	claimed := attempted("", func(a *v1alpha1.Attempt) { a.SendBefore = v1alpha1.NewTime(t0) })
	return post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: claimed}, v1alpha1.TargetStatus{State: v1alpha1.TargetPending})
}

// undecidedPost returns a post with an undecided target.
func undecidedPost() *v1alpha1.Post {
	return post(v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided, Attempt: attempted(v1alpha1.OutcomeUnknown), Blocked: busy(v1alpha1.ReasonOutcomeUnknown)})
}

// TestUnrecorded checks that Drain returns each fact once.
func TestUnrecorded(t *testing.T) {
	closed := open()
	closed.Status.Targets[0].Attempt.Outcome = v1alpha1.OutcomeAbsent
	for _, tt := range []struct {
		name, why string
		fill      func(m *Unrecorded)
		post      *v1alpha1.Post
		want      string
		// left is the number of entries that remain.
		left int
	}{
		{"nothing", "the map has no results", func(*Unrecorded) {}, open(), "", 0},
		{"a result", "the result is entered", func(m *Unrecorded) { m.AddResult(Result{Attempt: "a1", Result: published}) }, open(), "0 a1 posted;", 0},
		{"two results", "each result belongs to its attempt", func(m *Unrecorded) {
			m.AddResult(Result{Attempt: "a1", Result: published})
			m.AddResult(Result{Attempt: "a2", Result: published})
		}, open(), "0 a1 posted;", 1},
		{"a result of a call counted as unknown", "the result determines an unknown outcome", func(m *Unrecorded) {
			m.AddResult(Result{Attempt: "a1", Result: published})
		}, undecidedPost(), "0 a1 posted;", 0},
		{"a result that is known", "the result is removed", func(m *Unrecorded) { m.AddResult(Result{Attempt: "a1", Result: published}) }, closed, "", 0},
		{"not sent", "the claim was stored anyway", func(m *Unrecorded) { m.AddUnsent("a1", t0) }, open(), "0 a1 notSent;", 0},
		{"two not sent", "each result belongs to its attempt", func(m *Unrecorded) { m.AddUnsent("a1", t0); m.AddUnsent("a2", t0) }, open(), "0 a1 notSent;", 1},
		{"not sent, and recorded", "the fact is not recorded again", func(m *Unrecorded) { m.AddUnsent("a1", t0) }, closed, "", 1},
		{"another attempt not sent", "this attempt's outcome is unknown", func(m *Unrecorded) { m.AddUnsent("a2", t0) }, open(), "", 1},
		{"not sent an hour ago", "the memory lasts that long", func(m *Unrecorded) {
			m.AddUnsent("a1", t0)
			m.AddUnsent("a2", t0.Add(time.Hour))
		}, open(), "0 a1 notSent;", 1},
		{"not sent long ago", "the attempt is looked up", func(m *Unrecorded) {
			m.AddUnsent("a1", t0)
			m.AddUnsent("a2", t0.Add(time.Hour+1))
		}, open(), "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &Unrecorded{}
			tt.fill(m)
			// An entry without an attempt precedes the tested entry.
			tt.post.Status.Targets = append([]v1alpha1.TargetStatus{{Index: 9}}, tt.post.Status.Targets...)
			got := ""
			for _, r := range m.Drain(tt.post) {
				got += fmt.Sprintf("%d %s %s;", r.Target, r.Attempt, r.Outcome)
			}
			if got != tt.want || len(m.Results)+len(m.Unsent) != tt.left {
				t.Errorf("%s: got %q, want %q; %d remain, want %d", tt.why, got, tt.want, len(m.Results)+len(m.Unsent), tt.left)
			}
		})
	}
}

func TestEnterClaims(t *testing.T) {
	claim := func(target int) TargetClaim {
		return TargetClaim{Target: target, Claim: attempt.Claim{ID: "new", ContentHash: "hash", Checkpoint: "upload", Window: time.Second}}
	}
	secret := claim(0)
	secret.Secret = true
	for _, tt := range []struct {
		name, why string
		post      *v1alpha1.Post
		claim     TargetClaim
		prepared  *v1alpha1.Prepared
		card      int32
		problem   string
	}{
		{"a text", "the attempt contains the prepared content", post(v1alpha1.TargetStatus{Prepared: prepared(nil)}), claim(0), nil, 0, ""},
		{"a Secret's content", "a lookup needs it", post(v1alpha1.TargetStatus{}), secret, prepared(func(p *v1alpha1.Prepared) {
			p.Secret, p.MadeAt = true, v1alpha1.NewTime(t0)
		}), 0, ""},
		{"a card", "the claim names the next card", cardsOf(2), claim(0), nil, 2, ""},
		{"an open attempt", "its call may have published", open(), claim(0), nil, 0, "cannot claim target 0: an earlier attempt is still open"},
		{"no such target", "an edit removed it", open(), claim(5), nil, 0, "cannot claim target 5: the post has no such target"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := RecordClaims(tt.post, []TargetClaim{tt.claim}, t0)
			if tt.problem != "" {
				if err == nil || err.Error() != tt.problem {
					t.Errorf("%s: got %v, want %s", tt.why, err, tt.problem)
				}
				return
			}
			must.Succeed(t, err)
			got := &tt.post.Status.Targets[0]
			if got.Attempt.ID != "new" || got.Attempt.Card != tt.card || !attempt.IsOpen(got.Attempt) || !v1alpha1.SemanticEqual(got.Prepared, tt.prepared) {
				t.Errorf("%s: %+v of card %d, prepared %+v, want %+v", tt.why, got.Attempt, got.Attempt.Card, got.Prepared, tt.prepared)
			}
			if tt.post.Status.Phase != v1alpha1.PhaseProcessing {
				t.Errorf("people read %q", tt.post.Status.Phase)
			}
		})
	}
}

func TestEnterResults(t *testing.T) {
	p := open()
	p.Status.Targets[0].TryUntil, p.Status.Targets[0].InitialDeadline = later, later
	err := RecordResults(p, []Result{
		{Target: 5, Attempt: "a1", Result: published},
		{Target: 0, Attempt: "a0", Result: published},
		{Target: 0, Attempt: "a1", Result: published},
	}, &Deadlines{}, t0)
	if first := p.Status.Targets[0]; first.ExternalID != "7" || first.Phase != v1alpha1.PhasePosted || first.Reason != v1alpha1.ReasonPosted || first.InitialDeadline != nil {
		t.Errorf("the result of an open attempt is entered, and described: %+v", first)
	}
	const want = `target 0: the result "posted" (7) of attempt a0 came too late to be recorded: another attempt has superseded this one`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want only the replaced attempt's: %s", err, want)
	}
	if err := RecordResults(p, nil, &Deadlines{}, t0); err != nil {
		t.Errorf("recording without results returned %v", err)
	}
}

// TestEnterWithheld checks the deadline of a call that was not made.
func TestEnterWithheld(t *testing.T) {
	for name, tt := range map[string]struct {
		reason   string
		due      time.Duration
		withheld bool
		remains  bool
	}{
		"ahead of its time":           {"the next claim sets its deadline", 10 * time.Second, true, false},
		"at its time":                 {"the target is tried until its deadline", 0, true, true},
		"a call, ahead of its time":   {"a call was tried, so the post is being delivered", 10 * time.Second, false, true},
		"a call, at its time":         {"the target is tried until its deadline", 0, false, true},
		"a millisecond ahead of time": {"the post is scheduled", time.Millisecond, true, false},
	} {
		f := facts(func(s *situation) { s.inGroup(tt.due, GroupMayBeOpen) })
		target := f.Target(0)
		target.TryUntil, target.SuspendedUntil, target.InitialDeadline = later, later, later
		must.Succeed(t, RecordResults(f.Post, []Result{{Attempt: "a1", Result: platforms.Result{Outcome: platforms.NotSent, Withheld: tt.withheld, Err: TakenBack}}}, &Deadlines{}, t0))
		if (target.TryUntil != nil) != tt.remains || (target.SuspendedUntil != nil) != tt.remains || (target.InitialDeadline != nil) != tt.remains {
			t.Errorf("%s: until %s, suspended until %s, first until %s; want a deadline: %t (%s)",
				name, target.TryUntil, target.SuspendedUntil, target.InitialDeadline, tt.remains, tt.reason)
		}
	}
}

func TestEnterIDs(t *testing.T) {
	p := open()
	refused := platforms.Result{Outcome: platforms.Refused}
	left := RecordIDs(p, []Result{{Target: 0, Attempt: "a1", Result: published}, {Target: 1, Attempt: "b1", Result: refused}, {Target: 5, Attempt: "c1", Result: published}}, t0)
	if fmt.Sprint(left) != "[1]" || p.Status.Targets[0].ExternalID != "7" {
		t.Errorf("%v remain, want the rejected one: %+v", left, p.Status.Targets[0])
	}
}

func goes(p *v1alpha1.Post) *v1alpha1.Post {
	p.DeletionTimestamp = new(metav1.NewTime(t0))
	return p
}

func resent(p *v1alpha1.Post) *v1alpha1.Post {
	p.Spec.OnUnknownOutcome = v1alpha1.OnUnknownRetry
	return p
}

func TestEnterLookup(t *testing.T) {
	for _, tt := range []struct {
		why    string
		post   *v1alpha1.Post
		answer LookupAnswer
		want   func(t *v1alpha1.TargetStatus) bool
		fails  bool
	}{
		{"the post is published", open(), LookupAnswer{AskedAt: t0, LookupResult: platforms.LookupResult{Matches: 1, ExternalID: "7"}}, func(t *v1alpha1.TargetStatus) bool {
			return t.ExternalID == "7" && t.PostedAt.Time.Equal(t0)
		}, false},
		{"the lookup is repeated", open(), LookupAnswer{Err: platforms.Errorf(platforms.ClassTransient, "busy")}, func(t *v1alpha1.TargetStatus) bool {
			return attempt.IsOpen(t.Attempt) && strings.Contains(t.Blocked.Problem, "busy")
		}, false},
		{"no further lookup is possible, but the post remains", open(), LookupAnswer{Last: true, Err: platforms.Errorf(platforms.ClassReconnect, "gone")}, func(t *v1alpha1.TargetStatus) bool {
			return attempt.IsOpen(t.Attempt)
		}, false},
		{"no further lookup is possible, and the post is deleted", goes(open()), LookupAnswer{Last: true, Err: platforms.Errorf(platforms.ClassReconnect, "gone")}, func(t *v1alpha1.TargetStatus) bool {
			return t.Attempt.Outcome == v1alpha1.OutcomeUnknown && t.State == v1alpha1.TargetUndecided
		}, false},
		{"the post is deleted, so an unknown target is not sent again", goes(resent(open())), LookupAnswer{Last: true, AskedAt: t0}, func(t *v1alpha1.TargetStatus) bool {
			return t.Attempt.Outcome == v1alpha1.OutcomeUnknown && t.State == v1alpha1.TargetUndecided
		}, false},
		{"the last lookup was successful", goes(open()), LookupAnswer{Last: true, AskedAt: t0, LookupResult: platforms.LookupResult{Matches: 1, ExternalID: "7"}}, func(t *v1alpha1.TargetStatus) bool {
			return t.ExternalID == "7" && t.State == v1alpha1.TargetPosted
		}, false},
		{"the lookup settles the target", undecidedPost(), LookupAnswer{AskedAt: t0}, nil, true},
	} {
		err := RecordLookup(tt.post, &tt.answer, timing, &Deadlines{}, t0)
		if (err != nil) != tt.fails || err == nil && !tt.want(&tt.post.Status.Targets[0]) || err != nil && err.Error() != "target 0: the target is settled" {
			t.Errorf("%s: got %v, %+v", tt.why, err, tt.post.Status.Targets[0])
		}
	}
}

// TestEnterForeignResolutions checks that an annotation causes at most one request to the platform per target.
func TestEnterForeignResolutions(t *testing.T) {
	for _, tt := range []struct{ why, value string }{
		{"the platform denies the id", "0=posted:7"},
		{"an annotation has room for twenty thousand ids, and each question costs a call", strings.Repeat("0=posted:7,", 20_000) + "0=posted:8"},
		{"the first answer counts, and was invalid: the second must not cause a call", "0=posted:7,0=not-sent"},
	} {
		p, asked := undecidedPost(), 0
		problems := RecordResolutions(p, tt.value, func(*v1alpha1.TargetStatus, attempt.Resolution) Confirmation {
			asked++
			return Confirmation{Refused: "it is another account's"}
		}, &Settings{StartingDeadline: time.Hour}, t0)
		if asked != 1 || len(problems) != 1 || p.Status.Targets[0].State != v1alpha1.TargetUndecided {
			t.Errorf("%s: looked up %d times, %d problems, state %s", tt.why, asked, len(problems), p.Status.Targets[0].State)
		}
	}
}

func TestEnterResolutions(t *testing.T) {
	settings := &Settings{StartingDeadline: time.Hour}
	for _, tt := range []struct {
		why, value string
		problems   []string
		want       v1alpha1.TargetState
	}{
		{"the user found it", "0=posted:7", nil, v1alpha1.TargetPosted},
		{"the user did not find it", "0=not-sent", nil, v1alpha1.TargetPending},
		{"an unreadable answer", "maybe", []string{"is not a resolution"}, v1alpha1.TargetUndecided},
		{"the other answer is applied anyway", "5=not-sent,0=posted:7", []string{"there is no target 5; targets are counted from 0"}, v1alpha1.TargetPosted},
		{"an answered target cannot be answered again", "0=posted:7,0=not-sent", []string{"only a target whose outcome is unknown"}, v1alpha1.TargetPosted},
	} {
		p := undecidedPost()
		problems := RecordResolutions(p, tt.value, nil, settings, t0)
		got := p.Status.Targets[0]
		if len(problems) != len(tt.problems) || got.State != tt.want {
			t.Errorf("%s: %v, and it is %s; want %v, %s", tt.why, problems, got.State, tt.problems, tt.want)
			continue
		}
		for i := range problems {
			if !strings.Contains(problems[i].Error(), tt.problems[i]) {
				t.Errorf("%s: got %q, want %q", tt.why, problems[i], tt.problems[i])
			}
		}
		if got.State == v1alpha1.TargetPending && !got.TryUntil.Time.Equal(t0.Add(time.Hour)) {
			t.Errorf("%s: it is tried until %s, want for the starting deadline", tt.why, got.TryUntil)
		}
	}
}

// TestEnterNamed records the platform's responses about posts that users have named.
func TestEnterNamed(t *testing.T) {
	const address = "https://www.threads.com/@acme/post/DAbC123"
	for _, tt := range []struct {
		why, value string
		found      Confirmation
		problem    string
		want       v1alpha1.TargetStatus
	}{
		{"the platform lists the post of an address", "0=posted:" + address, Confirmation{AccountID: "4711", ExternalID: "7", ExternalURL: "https://t/7"}, "", v1alpha1.TargetStatus{
			State: v1alpha1.TargetPosted, ExternalID: "7", ExternalURL: "https://t/7",
		}},
		{"only the URL is known", "0=posted:" + address, Confirmation{}, "", v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalURL: address, Unconfirmed: true}},
		{"an answer without an id needs no confirmation", "0=posted", Confirmation{Refused: "it was asked"}, "", v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, Unconfirmed: true}},
		{"a rejected answer is requested again, with the reason", "0=posted:" + address, Confirmation{Refused: "it is on another account"}, "target 0: it is on another account", v1alpha1.TargetStatus{
			State: v1alpha1.TargetUndecided, AnswerProblem: "target 0: it is on another account", Candidates: []v1alpha1.Candidate{{ExternalID: "9"}},
		}},
	} {
		p := undecidedPost()
		p.Status.Targets[0].Candidates = []v1alpha1.Candidate{{ExternalID: "9"}}
		problems := RecordResolutions(p, tt.value, func(*v1alpha1.TargetStatus, attempt.Resolution) Confirmation { return tt.found }, &Settings{StartingDeadline: time.Hour}, t0)
		Describe(p, t0)
		s := &p.Status.Targets[0]
		got := v1alpha1.TargetStatus{
			State: s.State, ExternalID: s.ExternalID, ExternalURL: s.ExternalURL, Unconfirmed: s.Unconfirmed, AnswerProblem: s.AnswerProblem, Candidates: s.Candidates,
		}
		if said := fmt.Sprint(problems); !strings.Contains(said, tt.problem) || (len(problems) > 0) != (tt.problem != "") || !v1alpha1.SemanticEqual(got, tt.want) {
			t.Errorf("%s: %s, and it is %+v, want %+v", tt.why, said, got, tt.want)
		}
	}
}
