// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// post returns an immediate post on X with the given entries.
func post(entries ...v1alpha1.TargetStatus) *v1alpha1.Post {
	p := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "launch", Generation: 1, CreationTimestamp: metav1.NewTime(t0)}}
	for i := range entries {
		entries[i].Index, entries[i].Platform = int32(i), v1alpha1.PlatformX
		p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{Caption: "hello"})
	}
	p.Status.Targets = entries
	return p
}

// tree returns a post with a three-card tree.
func tree(t v1alpha1.TargetStatus) *v1alpha1.Post {
	p := post(t)
	p.Spec.Category, p.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, 3)}
	return p
}

func attempted(outcome v1alpha1.AttemptOutcome, change ...func(*v1alpha1.Attempt)) *v1alpha1.Attempt {
	a := &v1alpha1.Attempt{Number: 1, ID: "a1", StartedAt: v1alpha1.NewTime(t0), AccountID: "42", Outcome: outcome}
	for _, c := range change {
		c(a)
	}
	return a
}

func withOperation(a *v1alpha1.Attempt) { a.OperationID = "p~v2.1" }

// refusedUntil adds a refusal that a lookup has not confirmed.
func refusedUntil(retryAt *v1alpha1.Time) func(*v1alpha1.Attempt) {
	return func(a *v1alpha1.Attempt) { a.Refusal = &v1alpha1.Refusal{RetryAt: retryAt} }
}

func busy(reason string) *v1alpha1.Blocked {
	return &v1alpha1.Blocked{Reason: reason, Problem: "X is busy"}
}

var later = v1alpha1.NewTimePtr(t0.Add(time.Minute))

func TestDescribeTarget(t *testing.T) {
	first := []v1alpha1.CardStatus{{ExternalID: "7"}}
	const answer = "say so with the annotation " + v1alpha1.SettleAnnotation + ": \"0=posted:<id>\" or \"0=not-sent\""
	for _, tt := range []struct {
		name, why       string
		post            *v1alpha1.Post
		phase           v1alpha1.PostPhase
		reason, message string
	}{
		{
			"new", "no target was processed", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending}),
			v1alpha1.PhaseProcessing, "", "",
		},
		{
			"claimed", "its call is in progress", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted("")}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonProcessing, "",
		},
		{
			"in doubt", "the call is being looked up", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted(""), NextTryAt: later, Blocked: busy(v1alpha1.ReasonSettling)}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonSettling, "X is busy; asking the platform whether it published",
		},
		{
			"accepted", "the platform's own message", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted("", withOperation), NextTryAt: later, Blocked: busy(v1alpha1.ReasonProcessing)}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonProcessing, "X is busy",
		},
		{
			"accepted without a message", "the default message", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted("", withOperation), NextTryAt: later}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonProcessing, "the platform accepted the post and is processing it",
		},
		{
			"rejected temporarily", "the call will be retried", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted(v1alpha1.OutcomeRefused), NextTryAt: later, Blocked: busy(v1alpha1.ReasonPlatformBusy)}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonPlatformBusy, "X is busy; Herald tries again",
		},
		{
			"rejected, to be confirmed", "a rejection is final only after a lookup", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted("", refusedUntil(nil)), Blocked: busy(v1alpha1.ReasonRefused)}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonSettling, "X is busy; Herald checks whether the platform published the post anyway",
		},
		{
			"rejected temporarily, to be confirmed", "a retry follows the lookup", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted("", refusedUntil(later)), Blocked: busy(v1alpha1.ReasonPlatformBusy)}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonPlatformBusy, "X is busy; Herald checks whether the platform published the post anyway, and tries again if not",
		},
		{
			"not countable", "the target is retried, at a time that is not recorded", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: busy(v1alpha1.ReasonUsageUnavailable)}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonUsageUnavailable, "X is busy; Herald tries again",
		},
		{
			"waits for its connection", "the message contains the remedy", post(v1alpha1.TargetStatus{
				State: v1alpha1.TargetPending, Blocked: &v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady, Problem: "the connection is disabled", Remedy: "enable it"},
			}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonConnectionNotReady, "the connection is disabled; enable it",
		},
		{
			"to be retried with an unknown outcome", "the post's owner allows a retry", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted(v1alpha1.OutcomeUnknown), NextTryAt: later}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonPlatformBusy, "it is unknown whether the post was published; sending it again, as onUnknownOutcome asks",
		},
		{
			"a card of three", "the other cards follow", tree(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Attempt: attempted(v1alpha1.OutcomePosted), ExternalID: "7", Cards: first}),
			v1alpha1.PhaseProcessing, v1alpha1.ReasonProcessing, "1 of 3 cards are published",
		},
		{
			"posted", "a posted target needs no message", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalID: "7", Attempt: attempted(v1alpha1.OutcomePosted)}),
			v1alpha1.PhasePosted, v1alpha1.ReasonPosted, "",
		},
		{
			"failed", "no retry is announced", post(v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, Attempt: attempted(v1alpha1.OutcomeRefused), Blocked: busy(v1alpha1.ReasonPlatformBusy)}),
			v1alpha1.PhaseFailed, v1alpha1.ReasonPlatformBusy, "X is busy",
		},
		{
			"a card failed", "the message contains the published cards", tree(v1alpha1.TargetStatus{
				State: v1alpha1.TargetFailed, ExternalID: "7", ExternalURL: "https://x/7", Cards: first, Attempt: attempted(v1alpha1.OutcomeRefused), Blocked: busy(v1alpha1.ReasonRefused),
			}),
			v1alpha1.PhaseFailed, v1alpha1.ReasonRefused, "card 2 was not published: X is busy; the cards before it are online, beginning at https://x/7",
		},
		{
			"undecided", "the message explains where to look and how to answer", post(v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided, Attempt: attempted(v1alpha1.OutcomeUnknown), Blocked: busy(v1alpha1.ReasonOutcomeUnknown)}),
			v1alpha1.PhaseFailed, v1alpha1.ReasonOutcomeUnknown,
			"it is unknown whether the post was published (X is busy). Check the account for a post made after 2026-12-01T09:00:00.000Z, then " + answer,
		},
		{
			"an undecided card", "the card is named", tree(v1alpha1.TargetStatus{
				State: v1alpha1.TargetUndecided, ExternalID: "7", Cards: first, Attempt: attempted(v1alpha1.OutcomeUnknown), Blocked: busy(v1alpha1.ReasonOutcomeUnknown),
			}),
			v1alpha1.PhaseFailed, v1alpha1.ReasonOutcomeUnknown,
			"it is unknown whether card 2 was published (X is busy). Check the account for a post made after 2026-12-01T09:00:00.000Z, then " + answer +
				"; the cards before it are online, beginning at 7",
		},
		{
			"undecided without an attempt", "a copy from a backup has lost its record", post(v1alpha1.TargetStatus{
				State: v1alpha1.TargetUndecided, Blocked: &v1alpha1.Blocked{Reason: v1alpha1.ReasonOutcomeUnknown, Problem: "it seems to be a copy"},
			}),
			v1alpha1.PhaseFailed, v1alpha1.ReasonOutcomeUnknown, "it seems to be a copy. Check the account, then " + answer,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.post.DeepCopy()
			Describe(tt.post, t0)
			got := tt.post.Status.Targets[0]
			if got.Phase != tt.phase || got.Reason != tt.reason || got.Message != tt.message {
				t.Errorf("%s, %q: %q; want %s, %q: %q (%s)", got.Phase, got.Reason, got.Message, tt.phase, tt.reason, tt.message, tt.why)
			}
			got.Phase, got.Reason, got.Message = "", "", ""
			if !v1alpha1.SemanticEqual(got, before.Status.Targets[0]) {
				t.Errorf("the facts changed: %+v", got)
			}
			again := tt.post.DeepCopy()
			Describe(again, t0.Add(time.Minute))
			if !v1alpha1.SemanticEqual(again.Status, tt.post.Status) {
				t.Error("describing twice must not change the status: each change is a write")
			}
		})
	}
}

func TestDescribeMessageFits(t *testing.T) {
	p := post(v1alpha1.TargetStatus{
		State: v1alpha1.TargetFailed, Cards: []v1alpha1.CardStatus{{ExternalID: "7"}}, ExternalURL: "https://x/" + strings.Repeat("é", 2000),
		Blocked: &v1alpha1.Blocked{Reason: "Refused", Problem: strings.Repeat("é", 1024), Remedy: strings.Repeat("é", 512)},
	})
	Describe(p, t0)
	if n := len([]rune(p.Status.Targets[0].Message)); n != 2048 {
		t.Errorf("a message of %d characters exceeds the schema's 2048, which would reject the status", n)
	}
}

func TestDescribePost(t *testing.T) {
	pending := v1alpha1.TargetStatus{State: v1alpha1.TargetPending}
	failed := v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, Blocked: busy(v1alpha1.ReasonRefused)}
	open := v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided, Attempt: attempted(v1alpha1.OutcomeUnknown), Blocked: busy(v1alpha1.ReasonOutcomeUnknown)}
	posted := v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalID: "7"}
	refused := func(reason string) *v1alpha1.Post {
		p := post(pending)
		setAccepted(p, t0, reason, "why")
		return p
	}
	accepted := post(failed)
	setAccepted(accepted, t0, v1alpha1.ReasonAccepted, acceptedMessage)
	answered := post(posted)
	setCondition(answered, t0, v1alpha1.ConditionAdopted, metav1.ConditionTrue, v1alpha1.ReasonAlreadyPublished, "as recorded for another object")
	setCondition(answered, t0, v1alpha1.ConditionOutcomeUnknown, metav1.ConditionTrue, v1alpha1.ReasonOutcomeUnknown, "look")
	draft := post(pending)
	draft.Spec.Draft = true
	cancelled := post(pending, failed)
	cancelled.Spec.Draft, cancelled.Spec.Cancelled = true, true
	for _, tt := range []struct {
		name, why       string
		post            *v1alpha1.Post
		phase           v1alpha1.PostPhase
		finished        bool
		conditions      string
		reason, message string
	}{
		{"in progress", "the first target's reason", post(posted, v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: busy("PlatformBusy")}), v1alpha1.PhaseProcessing, false, "Ready=False Reconciling=True", "PlatformBusy", "target 1: X is busy"},
		{"one failed, one waits", "the waiting target's reason", post(failed, v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: busy("PlatformBusy")}), v1alpha1.PhaseProcessing, false, "Ready=False Reconciling=True", "PlatformBusy", "target 1: X is busy"},
		{"two wait", "the first target's reason", post(
			v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: busy("PlatformBusy")}, v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: busy("RateLimited")},
		), v1alpha1.PhaseProcessing, false, "Ready=False Reconciling=True", "PlatformBusy", "target 0: X is busy"},
		{"failed after it was accepted", "the targets contain the reasons", accepted, v1alpha1.PhaseFailed, true, "Accepted=True Ready=False Stalled=True", "Refused", "target 0 (x): X is busy"},
		{"failed without a reason", "an earlier version recorded no reason", post(v1alpha1.TargetStatus{State: v1alpha1.TargetFailed}), v1alpha1.PhaseFailed, true, "Ready=False Stalled=True", "TargetsFailed", "target 0 (x): "},
		{"answered", "the question is answered", answered, v1alpha1.PhasePosted, true, "Ready=True", "Posted", "published to 1 target"},
		{"posted", "all targets are published", post(posted, posted), v1alpha1.PhasePosted, true, "Ready=True", "Posted", "published to 2 targets"},
		{"failed in part", "the message names the failed target", post(posted, failed), v1alpha1.PhaseFailed, true, "Ready=False Stalled=True", "Refused", "target 1 (x): X is busy"},
		{"undecided", "a user may answer", post(posted, open), v1alpha1.PhaseFailed, false, "OutcomeUnknown=True Ready=False Stalled=True", "OutcomeUnknown", ""},
		{"failed differently", "each target contains its reason", post(failed, open), v1alpha1.PhaseFailed, false, "OutcomeUnknown=True Ready=False Stalled=True", "TargetsFailed", ""},
		{"refused", "a user has to correct it", refused(v1alpha1.ReasonInvalid), v1alpha1.PhaseProcessing, false, "Accepted=False Ready=False Stalled=True", "Invalid", "why"},
		{"waits for a file", "the post continues automatically", refused(v1alpha1.ReasonMediaNotReady), v1alpha1.PhaseProcessing, false, "Accepted=False Ready=False Reconciling=True", "MediaNotReady", "why"},
		{"draft", "a draft needs no action", draft, v1alpha1.PhaseDraft, false, "Ready=True", "Draft", ""},
		{"cancelled", "the post was not published", cancelled, v1alpha1.PhaseCancelled, true, "Ready=True", "Cancelled", "cancelled; nothing was published"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			Describe(tt.post, t0)
			s := &tt.post.Status
			if s.ObservedGeneration != tt.post.Generation {
				t.Errorf("the generation %d is not recorded", tt.post.Generation)
			}
			var conditions []string
			for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionAdopted, v1alpha1.ConditionOutcomeUnknown, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
					conditions = append(conditions, kind+"="+string(c.Status))
				}
			}
			ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if s.Phase != tt.phase || s.Finished != tt.finished || strings.Join(conditions, " ") != tt.conditions || ready.Reason != tt.reason || tt.message != "" && ready.Message != tt.message {
				t.Errorf("%s, finished %t, %v, %s: %q; want %s, %t, %s, %s: %q (%s)",
					s.Phase, s.Finished, conditions, ready.Reason, ready.Message, tt.phase, tt.finished, tt.conditions, tt.reason, tt.message, tt.why)
			}
		})
	}
}

func TestDescribeFinished(t *testing.T) {
	posted := v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalID: "7"}
	late := time.Date(2026, 12, 31, 23, 59, 59, 999_900_000, time.UTC)
	for _, tt := range []struct {
		name, why string
		before    v1alpha1.PostStatus
		now       time.Time
		at, on    string
	}{
		{"just now", "the write that finishes a post records the day", v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{posted}}, late, "2026-12-31T23:59:59.999Z", "2026-12-31"},
		{
			"in another zone", "days are UTC",
			v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{posted}},
			late.Add(time.Second).In(time.FixedZone("", -5*3600)), "2027-01-01T00:00:00.999Z", "2027-01-01",
		},
		{"no longer", "an answer has reopened it", v1alpha1.PostStatus{
			Targets: []v1alpha1.TargetStatus{{State: v1alpha1.TargetPending}}, Finished: true, FinishedAt: v1alpha1.NewTimePtr(t0), FinishedOn: t0.Format(time.DateOnly),
		}, late, "", ""},
		{"before", "the post was finished once", v1alpha1.PostStatus{
			Targets: []v1alpha1.TargetStatus{posted}, Finished: true, FinishedAt: v1alpha1.NewTimePtr(t0), FinishedOn: t0.Format(time.DateOnly),
		}, late, v1alpha1.NewTime(t0).String(), t0.Format(time.DateOnly)},
		{"finished by a version that recorded no time", "lists need the day", v1alpha1.PostStatus{
			Targets: []v1alpha1.TargetStatus{posted}, Finished: true,
		}, late, "2026-12-31T23:59:59.999Z", "2026-12-31"},
		{"not yet", "no target is finished", v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{State: v1alpha1.TargetPending}}}, late, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := post(tt.before.Targets...)
			p.Status.Finished, p.Status.FinishedAt, p.Status.FinishedOn = tt.before.Finished, tt.before.FinishedAt, tt.before.FinishedOn
			Describe(p, tt.now)
			at := ""
			if p.Status.FinishedAt != nil {
				at = p.Status.FinishedAt.String()
			}
			if at != tt.at || p.Status.FinishedOn != tt.on {
				t.Errorf("finished at %q, on %q; want %q, %q (%s)", at, p.Status.FinishedOn, tt.at, tt.on, tt.why)
			}
		})
	}
}

func TestDescribeCancelled(t *testing.T) {
	refused := v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, Blocked: &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit}}
	asked := v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided}
	waits := v1alpha1.TargetStatus{Index: 1, State: v1alpha1.TargetPending}
	for name, tt := range map[string]struct {
		why     string
		targets []v1alpha1.TargetStatus
		spec    func(*v1alpha1.PostSpec)
		phase   v1alpha1.PostPhase
		latched bool
	}{
		"no target was sent":       {"the cancellation is recorded", []v1alpha1.TargetStatus{refused, waits}, func(*v1alpha1.PostSpec) {}, v1alpha1.PhaseCancelled, true},
		"another spec afterwards":  {"the post stays cancelled", []v1alpha1.TargetStatus{refused, waits}, func(s *v1alpha1.PostSpec) { s.Cancelled = false }, v1alpha1.PhaseCancelled, true},
		"fewer targets afterwards": {"the remaining target has failed, which does not describe the post", []v1alpha1.TargetStatus{refused, waits}, func(s *v1alpha1.PostSpec) { s.Cancelled, s.Targets = false, s.Targets[:1] }, v1alpha1.PhaseCancelled, true},
		"more targets afterwards":  {"no added target is sent", []v1alpha1.TargetStatus{refused, waits}, func(s *v1alpha1.PostSpec) { s.Cancelled, s.Targets = false, append(s.Targets, s.Targets[0]) }, v1alpha1.PhaseCancelled, true},
		"a user is asked":          {"the question remains", []v1alpha1.TargetStatus{asked, waits}, func(*v1alpha1.PostSpec) {}, v1alpha1.PhaseCancelled, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := post(tt.targets...)
			p.Spec.Targets = append(p.Spec.Targets[:1:1], p.Spec.Targets[0])
			p.Spec.Cancelled = true
			Describe(p, t0)
			tt.spec(&p.Spec)
			p.Generation++
			Describe(p, t0.Add(time.Hour))
			if p.Status.Phase != tt.phase || (p.Status.CancelledAt != nil) != tt.latched || p.Status.Finished != tt.latched {
				t.Errorf("%s: phase %s, cancelled at %v, finished %t", tt.why, p.Status.Phase, p.Status.CancelledAt, p.Status.Finished)
			}
		})
	}
}

func TestDescribePlatforms(t *testing.T) {
	p := post(v1alpha1.TargetStatus{}, v1alpha1.TargetStatus{}, v1alpha1.TargetStatus{}, v1alpha1.TargetStatus{})
	for i, platform := range []v1alpha1.Platform{v1alpha1.PlatformX, "", v1alpha1.PlatformTikTok, v1alpha1.PlatformX} {
		p.Status.Targets[i].Platform = platform
	}
	Describe(p, t0)
	if got := p.Status.Platforms; got != "x,tiktok" {
		t.Errorf("got %q, want each known platform once", got)
	}
}

// TestDescribePosted checks the count of posted targets and the list of their addresses.
func TestDescribePosted(t *testing.T) {
	at := func(address string) v1alpha1.TargetStatus {
		return v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalURL: address}
	}
	fits, tooLong := strings.Repeat("a", 1023), strings.Repeat("a", 1024)
	for _, tt := range []struct {
		name, why    string
		post         *v1alpha1.Post
		posted, urls string
	}{
		{"a tree in progress", "its first cards are not a posted target", post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending, ExternalURL: "https://x/1"}), "0/1", ""},
		{"some posted", "each address is listed", post(at("https://x/1"), v1alpha1.TargetStatus{State: v1alpha1.TargetPending}, at("https://x/2")), "2/3", "https://x/1 https://x/2"},
		{"no address", "a posted target counts without one", post(at(""), at("https://x/2")), "2/2", "https://x/2"},
		{"the longest list", "the message has the maximum length of 1024 bytes with its space", post(at(fits)), "1/1", fits},
		{"too long", "an address that does not fit is omitted", post(at(tooLong), at("https://x/2")), "2/2", "https://x/2"},
	} {
		Describe(tt.post, t0)
		if s := &tt.post.Status; s.Posted != tt.posted || s.URLs != tt.urls {
			t.Errorf("%s: %q, %q; want %q, %q (%s)", tt.name, s.Posted, s.URLs, tt.posted, tt.urls, tt.why)
		}
	}
}

// TestDescribePrepared checks the progress reported before the scheduled time.
func TestDescribePrepared(t *testing.T) {
	done := &v1alpha1.Prepared{Complete: true}
	begun := &v1alpha1.Prepared{Checkpoint: "part 1"}
	trouble := &v1alpha1.Prepared{Problem: "too slow"}
	forgotten := &v1alpha1.Prepared{Secret: true}
	for _, tt := range []struct {
		name, why string
		prepared  []*v1alpha1.Prepared
		due       bool
		want      string
	}{
		{"nothing", "the target has no preparation", []*v1alpha1.Prepared{nil}, false, ""},
		{"an old Secret", "the preparation belongs to earlier content", []*v1alpha1.Prepared{forgotten}, false, ""},
		{"done", "only the calls remain", []*v1alpha1.Prepared{done, nil, done}, false, "True Prepared: everything before the visible calls is done"},
		{"in progress", "the message names the target", []*v1alpha1.Prepared{done, begun}, false, "False Preparing: under way: target 1 (x)"},
		{"an old Secret, and one in progress", "the others count", []*v1alpha1.Prepared{forgotten, begun}, false, "False Preparing: under way: target 1 (x)"},
		{
			"in trouble", "a problem is more important than another's progress",
			[]*v1alpha1.Prepared{begun, trouble},
			false,
			"False PreparationFailed: it is retried at the scheduled time at the latest: target 1 (x): too slow",
		},
		{"due now", "the targets report the progress", []*v1alpha1.Prepared{begun}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var entries []v1alpha1.TargetStatus
			for _, p := range tt.prepared {
				entries = append(entries, v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Prepared: p})
			}
			p := post(entries...)
			if !tt.due {
				p.Spec.ScheduledAt = later
			}
			// An existing condition is replaced or removed.
			setCondition(p, t0, v1alpha1.ConditionPrepared, metav1.ConditionUnknown, "Before", "")
			Describe(p, t0)
			got := ""
			if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionPrepared); c != nil {
				got = string(c.Status) + " " + c.Reason + ": " + c.Message
			}
			if got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.why, got, tt.want)
			}
		})
	}
}

// TestQuestions checks the questions about undecided targets.
func TestQuestions(t *testing.T) {
	const head = "check the account, then run one of these two commands; replace ID with the id of the post that you found; " +
		"one command can contain the answers for several targets, separated by commas"
	entry := func(change func(*v1alpha1.TargetStatus)) v1alpha1.TargetStatus {
		t := v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided, Attempt: attempted(v1alpha1.OutcomeUnknown), Blocked: busy(v1alpha1.ReasonOutcomeUnknown)}
		if change != nil {
			change(&t)
		}
		return t
	}
	commands := func(name string) string {
		return "\n" + name + " was published:\n  kubectl annotate --overwrite -n acme posts.social.herald.dev/launch '" + v1alpha1.SettleAnnotation + "=0=posted:ID'\n" +
			name + " was not published and should be sent now:\n  kubectl annotate --overwrite -n acme posts.social.herald.dev/launch '" + v1alpha1.SettleAnnotation + "=0=not-sent'"
	}
	card := entry(func(t *v1alpha1.TargetStatus) { t.Cards = []v1alpha1.CardStatus{{ExternalID: "7"}} })
	lone := tree(entry(nil))
	lone.Spec.Tree.Cards = lone.Spec.Tree.Cards[:1]
	for _, tt := range []struct {
		name, why string
		post      *v1alpha1.Post
		want      string
	}{
		{"a text", "the command shows where and when it was sent", post(entry(nil)), head + commands("target 0 (x account 42, sent after 2026-12-01T09:00:00.000Z)")},
		{"an unknown account", "an earlier version did not record it", post(entry(func(t *v1alpha1.TargetStatus) { t.Attempt.AccountID = "" })), head + commands("target 0 (x, sent after 2026-12-01T09:00:00.000Z)")},
		{"a copy from a backup", "when it was sent is lost", post(entry(func(t *v1alpha1.TargetStatus) { t.Attempt = nil })), head + commands("target 0 (x)")},
		{"a card", "the card that is looked up", tree(card), head + commands("target 0 (x account 42, card 2 of 3, sent after 2026-12-01T09:00:00.000Z)")},
		{"a tree of one card", "the tree has no other card", lone, head + commands("target 0 (x account 42, sent after 2026-12-01T09:00:00.000Z)")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			Describe(tt.post, t0)
			if c := meta.FindStatusCondition(tt.post.Status.Conditions, v1alpha1.ConditionOutcomeUnknown); c == nil || c.Message != tt.want {
				t.Errorf("%s: got\n%+v, want\n%s", tt.why, c, tt.want)
			}
		})
	}
	t.Run("many", func(t *testing.T) {
		p := post(entry(nil), entry(nil), entry(nil), entry(nil), entry(nil), entry(nil), entry(nil))
		got := questions(p, undecided(p))
		if n := strings.Count(got, "=not-sent'"); n != 5 || !strings.HasSuffix(got, "\n2 more targets wait for an answer; they are shown once others are answered") {
			t.Errorf("a condition has room for the commands of five, and this has %d: %s", n, got)
		}
	})
}

func TestWithdrawn(t *testing.T) {
	waiting := v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: busy("ConnectionNotReady"), TryUntil: later}
	p := post(waiting, waiting)
	p.Spec.Draft, p.Spec.Targets = true, p.Spec.Targets[:1]
	Describe(p, t0)
	if got, want := p.Status.Targets[1], (v1alpha1.TargetStatus{Index: 1, State: v1alpha1.TargetWithdrawn, Phase: v1alpha1.PhaseCancelled, Reason: v1alpha1.ReasonCancelled}); !v1alpha1.SemanticEqual(got, want) {
		t.Errorf("the target was removed: got %+v, want %+v", got, want)
	}
	p.Spec.Targets = append(p.Spec.Targets, p.Spec.Targets[0])
	Describe(p, t0)
	if got := p.Status.Targets[1]; got.State != v1alpha1.TargetPending || got.Phase != v1alpha1.PhaseDraft {
		t.Errorf("another edit brought it back: %+v", got)
	}
	p.Spec.Cancelled = true
	Describe(p, t0)
	if got := p.Status.Targets[0]; got.State != v1alpha1.TargetWithdrawn || got.Blocked != nil || got.Phase != v1alpha1.PhaseCancelled {
		t.Errorf("the post was cancelled: %+v", got)
	}
}

// TestDescribeEarlierVersion describes entries written by a version that recorded the state in phase and reason.
func TestDescribeEarlierVersion(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target v1alpha1.TargetStatus
		want   v1alpha1.TargetState
	}{
		{"posted", v1alpha1.TargetStatus{Phase: v1alpha1.PhasePosted, Reason: v1alpha1.ReasonPosted, ExternalID: "7", Attempt: attempted(v1alpha1.OutcomePosted)}, v1alpha1.TargetPosted},
		{"posted without an id", v1alpha1.TargetStatus{Phase: v1alpha1.PhasePosted, Reason: v1alpha1.ReasonPosted, Attempt: attempted(v1alpha1.OutcomePosted)}, v1alpha1.TargetPosted},
		{"failed before a claim", v1alpha1.TargetStatus{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonMissedSchedule, Message: "too late"}, v1alpha1.TargetFailed},
		{"refused", v1alpha1.TargetStatus{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonRefused, Message: "no", Attempt: attempted(v1alpha1.OutcomeRefused)}, v1alpha1.TargetFailed},
		{"undecided", v1alpha1.TargetStatus{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonOutcomeUnknown, Message: "look", Attempt: attempted(v1alpha1.OutcomeUnknown)}, v1alpha1.TargetUndecided},
		{"waiting", v1alpha1.TargetStatus{Phase: v1alpha1.PhaseProcessing, Attempt: attempted(v1alpha1.OutcomeRefused), NextTryAt: later}, v1alpha1.TargetPending},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := post(tt.target)
			Describe(p, t0)
			got := p.Status.Targets[0]
			if got.State != tt.want || got.Phase != tt.target.Phase {
				t.Errorf("state %s, phase %s; want %s, %s", got.State, got.Phase, tt.want, tt.target.Phase)
			}
			if tt.want != v1alpha1.TargetPending && (got.Reason != tt.target.Reason || got.Message != tt.target.Message) {
				t.Errorf("its message is missing: %s: %q, before %s: %q", got.Reason, got.Message, tt.target.Reason, tt.target.Message)
			}
			if posting.Of(p).Settled(0) != (tt.want != v1alpha1.TargetPending) {
				t.Error("the post must not be published again")
			}
		})
	}
}

// TestPublished checks the Published condition, and how much of Ready's message it repeats.
func TestPublished(t *testing.T) {
	long := func(n int) v1alpha1.TargetStatus {
		return v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, Blocked: &v1alpha1.Blocked{Reason: v1alpha1.ReasonRefused, Problem: strings.Repeat("a", n-len("target 0 (x): "))}}
	}
	posted := v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalID: "7"}
	for name, tt := range map[string]struct {
		reason  string
		post    *v1alpha1.Post
		want    string
		message func(ready string) string
	}{
		"posted":         {"all targets are published", post(posted, posted), "True Posted", func(ready string) string { return ready }},
		"posted in part": {"one target failed", post(posted, long(20)), "False Refused", func(ready string) string { return ready }},
		"short":          {"the longest message that is repeated", post(long(256)), "False Refused", func(ready string) string { return ready }},
		"long":           {"once is enough in one object", post(long(257)), "False Refused", func(string) string { return "see the condition Ready" }},
	} {
		t.Run(name, func(t *testing.T) {
			Describe(tt.post, t0)
			ready := meta.FindStatusCondition(tt.post.Status.Conditions, v1alpha1.ConditionReady)
			got := meta.FindStatusCondition(tt.post.Status.Conditions, v1alpha1.ConditionPublished)
			if got == nil || string(got.Status)+" "+got.Reason != tt.want || got.Message != tt.message(ready.Message) {
				t.Errorf("%+v, want %s (%s)", got, tt.want, tt.reason)
			}
		})
	}
}
