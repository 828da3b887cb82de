// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// timing has a send window of a minute, and a listing lag of a minute.
var timing = attempt.Timing{
	SendWindow: time.Minute, CallTimeout: time.Minute, ClockMargin: time.Second, Lag: time.Minute,
	LookupTimeout: time.Hour, Authoritative: true,
}

// step is a change that the manager may make to a target's entry.
type step struct {
	name string
	do   func(*v1alpha1.TargetStatus, time.Time) error
}

var classes = []platforms.Class{
	platforms.ClassReconnect, platforms.ClassRefresh, platforms.ClassRateLimited, platforms.ClassQuota,
	platforms.ClassTransient, platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown,
}

// steps returns all of the recorder's steps, for a tree with the given number of cards or, if cards is 0, for other
// posts.
func steps(cards int) []step {
	record := func(r platforms.Result) func(*v1alpha1.TargetStatus, time.Time) error { return record(r, cards) }
	list := []step{
		{"claim", func(t *v1alpha1.TargetStatus, now time.Time) error {
			if t.TryUntil == nil {
				t.TryUntil = v1alpha1.NewTimePtr(now.Add(24 * time.Hour))
			}
			number := 1
			if t.Attempt != nil {
				number += int(t.Attempt.Number)
			}
			return attempt.Open(t, attempt.Claim{
				ID: fmt.Sprintf("a%d", number), ContentHash: "hash", Checkpoint: fmt.Sprintf("c%d", number), Window: timing.SendWindow,
				Card: min(attempt.NextCard(t), int32(max(cards-1, 0))),
			}, now)
		}},
		{"posted", record(platforms.Result{Outcome: platforms.Posted, ExternalID: "7", ExternalURL: "https://example.com/7"})},
		{"posted, without an id", record(platforms.Result{Outcome: platforms.Posted})},
		{"refused, without a reason", record(platforms.Result{Outcome: platforms.Refused})},
		{"not sent", record(platforms.Result{Outcome: platforms.NotSent})},
		{"unknown, without a reason", record(platforms.Result{Outcome: platforms.Unknown})},
		{"accepted", record(platforms.Result{Outcome: platforms.Accepted, OperationID: "p_pub_url~v2-1.1"})},
		{"accepted, without a name", record(platforms.Result{Outcome: platforms.Accepted})},
		{"failed", func(t *v1alpha1.TargetStatus, _ time.Time) error {
			return attempt.Fail(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonMissedSchedule, Problem: "too late", Remedy: "post again"})
		}},
		{"declared posted", func(t *v1alpha1.TargetStatus, now time.Time) error {
			return attempt.Resolve(t, attempt.Resolution{Index: t.Index, ExternalID: "7"}, cards, now.Add(time.Hour), now)
		}},
		{"declared not sent", func(t *v1alpha1.TargetStatus, now time.Time) error {
			return attempt.Resolve(t, attempt.Resolution{Index: t.Index}, cards, now.Add(time.Hour), now)
		}},
	}
	for _, class := range classes {
		err := &platforms.Error{Class: class, Problem: fmt.Sprintf("the platform said %s", class), Remedy: "do something"}
		list = append(list,
			step{"refused as " + string(class), record(platforms.Result{Outcome: platforms.Refused, Err: err})},
			step{"unknown as " + string(class), record(platforms.Result{Outcome: platforms.Unknown, Err: err})},
			step{"not prepared, " + string(class), func(t *v1alpha1.TargetStatus, now time.Time) error {
				return attempt.RecordNotPrepared(t, err, now.Add(-time.Minute), now)
			}})
	}
	for _, policy := range []v1alpha1.UnknownOutcomePolicy{v1alpha1.OnUnknownFail, v1alpha1.OnUnknownRetry} {
		for _, finding := range []platforms.LookupResult{
			{Matches: 1, ExternalID: "7"},
			{Matches: 2},
			{},
			{Proof: true},
			{Refused: platforms.Errorf(platforms.ClassPermanent, "given up")},
			{OperationID: "p_pub_url~v2-1.2"},
		} {
			for _, authoritative := range []bool{true, false} {
				list = append(list, step{fmt.Sprintf("looked: %+v, %s, authoritative %t", finding, policy, authoritative), func(t *v1alpha1.TargetStatus, now time.Time) error {
					timing := timing
					timing.Authoritative = authoritative
					return attempt.RecordLookup(t, finding, timing, policy, cards, now)
				}})
			}
		}
		list = append(list, step{"lookup impossible, " + string(policy), func(t *v1alpha1.TargetStatus, now time.Time) error {
			return attempt.RecordLookupFailure(t, platforms.Errorf(platforms.ClassTransient, "busy"), timing, policy, now)
		}})
	}
	return list
}

func record(r platforms.Result, cards int) func(*v1alpha1.TargetStatus, time.Time) error {
	return func(t *v1alpha1.TargetStatus, now time.Time) error {
		if t.Attempt == nil {
			return attempt.ErrSuperseded
		}
		return attempt.Record(t, t.Attempt.ID, r, cards, now)
	}
}

// transition is one write of the recorder.
type transition struct {
	name     string
	from, to *v1alpha1.TargetStatus
}

// transitions runs all possible steps of the recorder, one after another, starting from an untouched target. Entries
// that differ only in times, strings and high numbers count as equal.
func transitions(cards int, attempts int32) []transition {
	steps := steps(cards)
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	type state struct {
		target *v1alpha1.TargetStatus
		now    time.Time
	}
	var found []transition
	seen, written := map[string]bool{}, map[string]bool{}
	queue := []state{{&v1alpha1.TargetStatus{Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPending, Phase: v1alpha1.PhaseProcessing}, start}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, step := range steps {
			for _, later := range []time.Duration{time.Second, 10 * time.Minute, 2 * time.Hour} {
				to, now := at.target.DeepCopy(), at.now.Add(later)
				if step.do(to, now) != nil {
					continue // no write follows
				}
				to = described(to, cards)
				if edge := key(at.target) + " > " + key(to); !written[edge] {
					written[edge] = true
					found = append(found, transition{step.name, at.target, to})
				}
				if !seen[key(to)] && (to.Attempt == nil || to.Attempt.Number <= attempts) {
					seen[key(to)] = true
					queue = append(queue, state{to, now})
				}
			}
		}
	}
	return found
}

// described returns an entry as the manager writes it, with the derived fields.
func described(t *v1alpha1.TargetStatus, cards int) *v1alpha1.TargetStatus {
	p := validPost()
	if cards > 0 {
		p.Spec.Category, p.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, cards)}
	}
	p.Status.Targets = []v1alpha1.TargetStatus{*t}
	delivery.Describe(p, time.Now())
	return &p.Status.Targets[0]
}

func key(t *v1alpha1.TargetStatus) string {
	k := fmt.Sprint(t.State, t.Reason, t.ExternalID, t.ExternalURL != "", t.PostedAt != nil, t.NextTryAt != nil, t.TryUntil != nil)
	k += fmt.Sprint(len(t.Cards))
	if a := t.Attempt; a != nil {
		k += fmt.Sprint(min(a.Number-int32(len(t.Cards)), 2), a.Card, a.Outcome, a.Duplicate, a.Lookups, a.EndedAt != nil, a.SearchFrom != nil, a.UnknownSince != nil, a.OperationID != "")
	}
	return k
}

// targetsAtOnce is the number of states in one post, each in its own target.
const targetsAtOnce = 100

// byState groups transitions by their initial state. States with the most transitions come first, so the states in one
// post have similar numbers of transitions.
func byState(all []transition) [][]transition {
	groups := map[*v1alpha1.TargetStatus][]transition{}
	var order []*v1alpha1.TargetStatus
	for _, one := range all {
		if groups[one.from] == nil {
			order = append(order, one.from)
		}
		groups[one.from] = append(groups[one.from], one)
	}
	states := make([][]transition, len(order))
	for i, from := range order {
		states[i] = groups[from]
	}
	slices.SortStableFunc(states, func(a, b []transition) int { return cmp.Compare(len(b), len(a)) })
	return states
}

// indexed returns a copy of a status for another target.
func indexed(t *v1alpha1.TargetStatus, index int) v1alpha1.TargetStatus {
	out := *t.DeepCopy()
	out.Index = int32(index)
	return out
}

// standing creates a post whose targets are in the initial states of the transitions.
func standing(ctx SpecContext, states [][]transition) *v1alpha1.Post {
	GinkgoHelper()
	p := validPost()
	p.Spec.Targets = slices.Repeat(p.Spec.Targets, len(states))
	Expect(k8s.Create(ctx, p)).To(Succeed())
	for i, ways := range states {
		p.Status.Targets = append(p.Status.Targets, indexed(ways[0].from, i))
	}
	Expect(k8s.Status().Update(ctx, p)).To(Succeed())
	return p
}

var _ = Describe("the recorder", func() {
	// A dry run is validated by every rule but not stored, so one post serves for all transitions from its states.
	DescribeTable("writes only what the schema accepts", func(ctx SpecContext, cards int, attempts int32) {
		all := transitions(cards, attempts)
		reached := map[v1alpha1.AttemptOutcome]bool{}
		tried := 0
		for states := range slices.Chunk(byState(all), targetsAtOnce) {
			p := standing(ctx, states)
			for way := range len(states[0]) {
				next, names := p.DeepCopy(), ""
				for i, ways := range states {
					if way >= len(ways) {
						continue
					}
					next.Status.Targets[i] = indexed(ways[way].to, i)
					names += fmt.Sprintf("target %d: %s\n", i, ways[way].name)
					tried++
					if ways[way].to.Attempt != nil {
						reached[ways[way].to.Attempt.Outcome] = true
					}
				}
				Expect(k8s.Status().Update(ctx, next, client.DryRunAll)).To(Succeed(), names)
			}
		}
		Expect(tried).To(Equal(len(all)))
		AddReportEntry(fmt.Sprintf("%d transitions", len(all)))
		for _, outcome := range []v1alpha1.AttemptOutcome{
			"", v1alpha1.OutcomePosted, v1alpha1.OutcomeRefused, v1alpha1.OutcomeNotSent, v1alpha1.OutcomeAbsent, v1alpha1.OutcomeUnknown,
		} {
			Expect(reached).To(HaveKey(outcome), "the recorder never reached the outcome %q", outcome)
		}
	},
		Entry("of a post that is published by one call", 0, int32(2)),
		Entry("of a tree of two cards", 2, int32(2)),
	)

	It("is also validated in a dry run", func(ctx SpecContext) {
		posted := &v1alpha1.TargetStatus{Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPosted, Phase: v1alpha1.PhasePosted, ExternalID: "7", PostedAt: v1alpha1.NewTimePtr(time.Now())}
		p := standing(ctx, [][]transition{{{from: posted}}})
		p.Status.Targets[0].ExternalID = "8"
		Expect(apierrors.IsInvalid(k8s.Status().Update(ctx, p, client.DryRunAll))).To(BeTrue())
	})
})
