// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema_test tests the CRDs' validation rules with a real API server: which objects they reject and admit, and
// that they never reject anything the manager writes.
package schema_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/suite"
)

func TestSchema(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Schema")
}

var (
	k8s    client.Client
	serial atomic.Int64
)

var _ = BeforeSuite(func() { k8s = suite.Start().Client })

func meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: fmt.Sprintf("o%d", serial.Add(1)), Namespace: metav1.NamespaceDefault}
}

func validPost() *v1alpha1.Post {
	return &v1alpha1.Post{ObjectMeta: meta(), Spec: v1alpha1.PostSpec{
		Category: v1alpha1.CategoryText,
		Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"}},
	}}
}

var future = v1alpha1.NewTimePtr(time.Now().Add(time.Hour))

func edit(change func(*v1alpha1.PostSpec)) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { change(&p.Spec) }
}

// refused expects that the API server rejects something with the message.
func refused(err error, message string) {
	GinkgoHelper()
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "got: %v", err)
	Expect(err.Error()).To(ContainSubstring(message))
	for _, cause := range causes(err) {
		Expect(cause.Field).NotTo(Equal("<nil>"), cause.Message)
	}
}

// causes returns the causes of a rejection, without Kubernetes' message that it has not checked the remaining rules.
func causes(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(status.Status().Details.Causes), func(c metav1.StatusCause) bool {
		return strings.Contains(c.Message, "some validation rules were not checked")
	})
}

// creates stores a post and expects that it is rejected with the message or, if that is empty, that it succeeds.
func creates(ctx SpecContext, change func(*v1alpha1.Post), message string) {
	p := validPost()
	change(p)
	outcomeIs(k8s.Create(ctx, p), message)
}

var _ = DescribeTable("a Post creation", creates,
	Entry("immediate", edit(func(*v1alpha1.PostSpec) {}), ""),
	Entry("scheduled", edit(func(s *v1alpha1.PostSpec) { s.ScheduledAt = future }), ""),
	Entry("a draft without a caption", edit(func(s *v1alpha1.PostSpec) { s.Draft = true; s.Targets[0].Caption = "" }), ""),
	Entry("the same connection twice", edit(func(s *v1alpha1.PostSpec) { s.Targets = append(s.Targets, s.Targets[0]) }), ""),
	Entry("a draft with a time", edit(func(s *v1alpha1.PostSpec) { s.Draft = true; s.ScheduledAt = future }), "a draft cannot have scheduledAt"),
	Entry("no caption", edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "" }), "every target needs a caption"),
	Entry("no target", edit(func(s *v1alpha1.PostSpec) { s.Targets = nil }), "spec.targets"),
	Entry("no connection", edit(func(s *v1alpha1.PostSpec) { s.Targets[0].ConnectionRef.Name = "" }), "spec.targets[0].connectionRef.name"),
	Entry("an unknown category", edit(func(s *v1alpha1.PostSpec) { s.Category = "poem" }), "spec.category"),
	Entry("an immediate post that is cancelled", edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), "only a draft or a scheduled post can be cancelled"),
	Entry("a cancelled draft", edit(func(s *v1alpha1.PostSpec) { s.Draft, s.Cancelled = true, true }), ""),
	Entry("an unknown policy", edit(func(s *v1alpha1.PostSpec) { s.OnUnknownOutcome = "guess" }), "spec.onUnknownOutcome"),
	Entry("too many targets", edit(func(s *v1alpha1.PostSpec) {
		for len(s.Targets) <= 100 {
			s.Targets = append(s.Targets, s.Targets[0])
		}
	}), "spec.targets"),
)

// withdrawn sets the status of a cancelled post.
func withdrawn(p *v1alpha1.Post) {
	p.Spec.Cancelled = true
	p.Status.Phase, p.Status.Finished, p.Status.CancelledAt = v1alpha1.PhaseCancelled, true, v1alpha1.NewTimePtr(time.Now())
}

func retryOf(name string) func(*v1alpha1.PostSpec) {
	return func(s *v1alpha1.PostSpec) { s.RetryOf = &v1alpha1.LocalReference{Name: name} }
}

// changes creates a scheduled post and changes it. It expects that the change is rejected with the message or, if that
// is empty, that it succeeds.
func changes(ctx SpecContext, before, after func(*v1alpha1.Post), message string) {
	p := validPost()
	p.Spec.ScheduledAt = future
	before(p)
	status := p.Status
	Expect(k8s.Create(ctx, p)).To(Succeed())
	if !v1alpha1.SemanticEqual(status, v1alpha1.PostStatus{}) {
		p.Status = status
		Expect(k8s.Status().Update(ctx, p)).To(Succeed())
	}
	after(p)
	outcomeIs(k8s.Update(ctx, p), message)
}

var _ = DescribeTable("a Post spec update", changes,
	Entry("a new time", edit(func(*v1alpha1.PostSpec) {}), edit(func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(future.Add(time.Hour)) }), ""),
	Entry("cancelled", edit(func(*v1alpha1.PostSpec) {}), edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), ""),
	Entry("a draft promoted", edit(func(s *v1alpha1.PostSpec) { s.ScheduledAt, s.Draft = nil, true }), edit(func(s *v1alpha1.PostSpec) { s.Draft = false }), ""),
	Entry("a cancellation withdrawn", edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), edit(func(s *v1alpha1.PostSpec) { s.Cancelled = false }), "status.cancelledAt"),
	Entry("a recorded cancellation withdrawn: a tool applies its file", withdrawn, edit(func(s *v1alpha1.PostSpec) { s.Cancelled = false }), ""),
	Entry("another text for a post that is cancelled permanently", withdrawn, edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "other" }), ""),
	Entry("another text for a post that was cancelled too late", func(p *v1alpha1.Post) {
		withdrawn(p)
		p.Status.Phase = v1alpha1.PhasePosted
	}, edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "other" }), "the post is finished"),
	Entry("made a retry of a third post", edit(retryOf("failed")), edit(retryOf("other")), "retryOf cannot be changed"),
	Entry("a retry with another text", edit(retryOf("failed")), edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "other" }), ""),
	Entry("made a draft when it is cancelled permanently", withdrawn, edit(func(s *v1alpha1.PostSpec) { s.ScheduledAt, s.Draft, s.Cancelled = nil, true, false }), ""),
	Entry("another category for a post that is cancelled permanently", withdrawn, edit(func(s *v1alpha1.PostSpec) { s.Category = v1alpha1.CategoryImage }), "category can be changed only while"),
	Entry("made a draft", edit(func(*v1alpha1.PostSpec) {}), edit(func(s *v1alpha1.PostSpec) { s.ScheduledAt, s.Draft = nil, true }), "cannot become one"),
	Entry("edited after a claim", claimed, edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "other" }), "delivery has already begun"),
	Entry("edited after a claim, with another phase next to it", claimed, func(p *v1alpha1.Post) {
		p.Spec.Targets[0].Caption, p.Status.Phase = "other", v1alpha1.PhasePosted
	}, "delivery has already begun"),
	Entry("edited after a claim without a phase", func(p *v1alpha1.Post) { claimed(p); p.Status.Phase = "" },
		edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "other" }), "delivery has already begun"),
	Entry("cancelled after a claim", claimed, edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), "delivery has already begun"),
	Entry("cancelled after a claim that is proven not to have been sent", unsent, edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), ""),
	Entry("edited after such a claim", unsent, edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "other" }), "delivery has already begun"),
	Entry("cancelled after a claim in a group that may be opened", unsentBut(func(a *v1alpha1.Attempt) { a.Outcome = "" }),
		edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), "delivery has already begun"),
	Entry("cancelled after a claim that follows one which may have been sent", unsentBut(func(a *v1alpha1.Attempt) { a.SearchFrom = &a.StartedAt }),
		edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), "delivery has already begun"),
	Entry("cancelled after a claim that follows an unknown outcome", unsentBut(func(a *v1alpha1.Attempt) { a.UnknownSince = &a.StartedAt }),
		edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), "delivery has already begun"),
	Entry("cancelled after a call that ended without a response", unsentBut(func(a *v1alpha1.Attempt) { a.EndedAt = &a.StartedAt }),
		edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), "delivery has already begun"),
	Entry("cancelled after a claim that a user declared not sent", unsentBut(func(a *v1alpha1.Attempt) { a.Group = "" }),
		edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), "delivery has already begun"),
	Entry("cancelled while another target may be sent", func(p *v1alpha1.Post) {
		unsent(p)
		second(1)(p)
		p.Status.Targets[1].Attempt = p.Status.Targets[0].Attempt.DeepCopy()
		p.Status.Targets[1].Attempt.Outcome = ""
	}, edit(func(s *v1alpha1.PostSpec) { s.Cancelled = true }), "delivery has already begun"),
	Entry("labelled after a claim", claimed, func(p *v1alpha1.Post) { p.Labels = map[string]string{"a": "b"} }, ""),
	Entry("another target while one is undecided", undecided, edit(func(s *v1alpha1.PostSpec) { s.Targets = append(s.Targets, s.Targets[0]) }), "the targets are frozen"),
	Entry("another connection for an undecided target", undecided, edit(func(s *v1alpha1.PostSpec) { s.Targets[0].ConnectionRef.Name = "other" }), "the targets are frozen"),
	Entry("another text for an undecided target", undecided, edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "other" }), ""),
	Entry("edited when finished", func(p *v1alpha1.Post) { p.Status.Finished = true }, edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "other" }), "finished"),
)

var _ = It("rejects an edit of a published Post with a single error about the spec", func(ctx SpecContext) {
	p := validPost()
	Expect(k8s.Create(ctx, p)).To(Succeed())
	claimed(p)
	p.Status.Finished = true
	Expect(k8s.Status().Update(ctx, p)).To(Succeed())
	p.Spec.Targets[0].Caption = "other"
	Expect(causes(k8s.Update(ctx, p))).To(HaveExactElements(And(
		HaveField("Field", "spec"), HaveField("Message", ContainSubstring("create a new Post instead")),
	)))
})

// undecided makes a target undecided without a claimed call.
func undecided(p *v1alpha1.Post) {
	p.Status.Phase = v1alpha1.PhaseFailed
	p.Status.Targets = []v1alpha1.TargetStatus{{Index: 0, Phase: v1alpha1.PhaseFailed, State: v1alpha1.TargetUndecided}}
}

func claimed(p *v1alpha1.Post) {
	now := v1alpha1.NewTime(time.Now())
	p.Status.Phase = v1alpha1.PhaseProcessing
	p.Status.Targets = []v1alpha1.TargetStatus{{
		Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPending, Phase: v1alpha1.PhaseProcessing,
		Attempt: &v1alpha1.Attempt{Number: 1, ID: "a1", StartedAt: now, SendBefore: now},
	}}
}

// unsent records a claim in a group that was closed before it was opened.
func unsent(p *v1alpha1.Post) {
	claimed(p)
	a := p.Status.Targets[0].Attempt
	a.Group, a.Outcome = "herald-group-00/7", v1alpha1.OutcomeNotSent
}

// unsentBut records a claim as unsent does, then changes the attempt.
func unsentBut(change func(*v1alpha1.Attempt)) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		unsent(p)
		change(p.Status.Targets[0].Attempt)
	}
}

// second adds the entry of another target to a claimed one.
func second(index int32) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		if p.Status.Targets == nil {
			claimed(p)
		}
		p.Status.Targets = append(p.Status.Targets, v1alpha1.TargetStatus{Index: index, Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPending, Phase: v1alpha1.PhaseScheduled})
	}
}

func closed(outcome v1alpha1.AttemptOutcome, state v1alpha1.TargetState, id string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		claimed(p)
		p.Status.Targets[0].Attempt.Outcome, p.Status.Targets[0].ExternalID = outcome, id
		stands(state)(p)
	}
}

// stands sets a target's state.
func stands(state v1alpha1.TargetState) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		t := &p.Status.Targets[0]
		t.State, t.Phase = state, v1alpha1.PhaseFailed
		switch state {
		case v1alpha1.TargetPosted:
			t.Phase = v1alpha1.PhasePosted
		case v1alpha1.TargetPending:
			t.Phase = v1alpha1.PhaseProcessing
		case v1alpha1.TargetWithdrawn:
			t.Phase = v1alpha1.PhaseCancelled
		case v1alpha1.TargetFailed, v1alpha1.TargetUndecided:
		}
	}
}

// stateless removes the state, as a version of Herald without states would have written it.
func stateless(then func(*v1alpha1.Post)) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		then(p)
		p.Status.Targets[0].State, p.Status.Targets[0].Blocked = "", nil
	}
}

func blocked(b v1alpha1.Blocked) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Status.Targets[0].Blocked = &b }
}

func next(p *v1alpha1.Post) {
	a := *p.Status.Targets[0].Attempt
	a.Number, a.ID, a.Outcome = a.Number+1, "a2", ""
	p.Status.Targets[0].Attempt = &a
	stands(v1alpha1.TargetPending)(p)
}

func outcome(o v1alpha1.AttemptOutcome) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Status.Targets[0].Attempt.Outcome = o }
}

func checkpoint(name string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Status.Targets[0].Attempt.Checkpoint = name }
}

// inGroup moves the attempt to a group, which no process does after the claim.
func inGroup(name string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		if len(p.Status.Targets) == 0 {
			claimed(p)
		}
		p.Status.Targets[0].Attempt.Group = name
	}
}

// inShard sets the version of the shard that the attempt was claimed under.
func inShard(version string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		if len(p.Status.Targets) == 0 {
			claimed(p)
		}
		p.Status.Targets[0].Attempt.Shard = version
	}
}

func operation(name string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Status.Targets[0].Attempt.OperationID = name }
}

// reopened sets an attempt with the name to look it up by.
func reopened(name string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		outcome("")(p)
		operation(name)(p)
		stands(v1alpha1.TargetPending)(p)
	}
}

// retriedBy refuses the first target and reserves it for a retry.
func retriedBy(name string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		if len(p.Status.Targets) == 0 {
			closed(v1alpha1.OutcomeRefused, v1alpha1.TargetFailed, "")(p)
		}
		p.Status.Targets[0].RetriedBy = name
	}
}

func prepared(name string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		claimed(p)
		checkpoint(name)(p)
	}
}

// statusOf creates a post of a category and writes its status twice. It expects that the second write is rejected with
// the message or, if that is empty, that it succeeds.
func statusOf(category func(*v1alpha1.PostSpec)) func(SpecContext, func(*v1alpha1.Post), func(*v1alpha1.Post), string) {
	return func(ctx SpecContext, before, after func(*v1alpha1.Post), message string) {
		p := validPost()
		category(&p.Spec)
		Expect(k8s.Create(ctx, p)).To(Succeed())
		before(p)
		Expect(k8s.Status().Update(ctx, p)).To(Succeed())
		after(p)
		outcomeIs(k8s.Status().Update(ctx, p), message)
	}
}

var _ = DescribeTable("a Post status update", statusOf(asText),
	Entry("open, recorded as posted", claimed, closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), ""),
	Entry("open, recorded as refused", claimed, closed(v1alpha1.OutcomeRefused, v1alpha1.TargetFailed, ""), ""),
	Entry("open, recorded as not sent", claimed, closed(v1alpha1.OutcomeNotSent, v1alpha1.TargetPending, ""), ""),
	Entry("open, proved absent", claimed, closed(v1alpha1.OutcomeAbsent, v1alpha1.TargetPending, ""), ""),
	Entry("open, recorded as unknown", claimed, closed(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided, ""), ""),
	Entry("refused, retried", closed(v1alpha1.OutcomeRefused, v1alpha1.TargetPending, ""), next, ""),
	Entry("not sent, tried again", closed(v1alpha1.OutcomeNotSent, v1alpha1.TargetPending, ""), next, ""),
	Entry("absent, tried again", closed(v1alpha1.OutcomeAbsent, v1alpha1.TargetPending, ""), next, ""),
	Entry("unknown, tried again as the post allows", closed(v1alpha1.OutcomeUnknown, v1alpha1.TargetPending, ""), next, ""),
	Entry("unknown, declared not sent", closed(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided, ""), outcome(v1alpha1.OutcomeNotSent), ""),
	Entry("unknown, declared posted", closed(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided, ""), closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), ""),
	Entry("unknown, reopened", closed(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided, ""), outcome(""), "keeps its outcome"),
	Entry("unknown, reopened with its operation id", closed(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided, ""), reopened("op1"), ""),
	Entry("unknown although it had an operation id, reopened", func(p *v1alpha1.Post) {
		closed(v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided, "")(p)
		operation("op1")(p)
	}, outcome(""), "keeps its outcome"),
	Entry("declared not sent, reopened with an operation id", closed(v1alpha1.OutcomeNotSent, v1alpha1.TargetFailed, ""), reopened("op1"), "keeps its outcome"),
	Entry("open, another attempt", claimed, next, "needs the previous one closed"),
	Entry("refused, another attempt with the same id: ids are never reused", closed(v1alpha1.OutcomeRefused, v1alpha1.TargetPending, ""), func(p *v1alpha1.Post) {
		id := p.Status.Targets[0].Attempt.ID
		next(p)
		p.Status.Targets[0].Attempt.ID = id
	}, "keeps its outcome"),
	Entry("posted, another attempt", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), next, "needs the previous one closed"),
	Entry("refused, reopened", closed(v1alpha1.OutcomeRefused, v1alpha1.TargetPending, ""), outcome(""), "keeps its outcome"),
	Entry("posted, changed to refused", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), outcome(v1alpha1.OutcomeRefused), "keeps its outcome"),
	Entry("another id for the same number", claimed, func(p *v1alpha1.Post) { p.Status.Targets[0].Attempt.ID = "other" }, "keeps its id"),
	Entry("refused, another id for the same number: numbers count the calls", closed(v1alpha1.OutcomeRefused, v1alpha1.TargetPending, ""), func(p *v1alpha1.Post) {
		next(p)
		p.Status.Targets[0].Attempt.Number = 1
	}, "keeps its id"),
	Entry("another checkpoint for the same attempt", prepared("c1"), checkpoint("c2"), "keeps its checkpoint"),
	Entry("a checkpoint added after the claim", claimed, checkpoint("c1"), "keeps its checkpoint"),
	Entry("a checkpoint removed", prepared("c1"), checkpoint(""), "keeps its checkpoint"),
	Entry("an armed attempt that becomes one outside a group, as an older version writes it", inGroup("herald-group-07/1"), inGroup(""), ""),
	Entry("another group for the same attempt", inGroup("herald-group-07/1"), inGroup("herald-group-07/2"), "never moved to a group"),
	Entry("a group added after the claim", claimed, inGroup("herald-group-07/1"), "never moved to a group"),
	Entry("a group that is not named by its version", claimed, inGroup("herald-group-07"), "should match"),
	Entry("a claim without its shard, as an older version writes it", inShard("v1"), inShard(""), ""),
	Entry("another version of a shard for the same attempt", inShard("v1"), inShard("v2"), "never gets another version of a shard"),
	Entry("a shard added after the claim", claimed, inShard("v1"), "never gets another version of a shard"),
	Entry("the next attempt, under another version of the shard", func(p *v1alpha1.Post) {
		inShard("v1")(p)
		outcome(v1alpha1.OutcomeAbsent)(p)
	}, func(p *v1alpha1.Post) { next(p); inShard("v2")(p) }, ""),
	Entry("an operation id added with the response", claimed, operation("op1"), ""),
	Entry("another operation id for the same attempt", func(p *v1alpha1.Post) { claimed(p); operation("op1")(p) }, operation("op2"), "keeps its operation id"),
	Entry("an operation id removed", func(p *v1alpha1.Post) { claimed(p); operation("op1")(p) }, operation(""), "keeps its operation id"),
	Entry("the next attempt, with another checkpoint", func(p *v1alpha1.Post) {
		prepared("c1")(p)
		outcome(v1alpha1.OutcomeAbsent)(p)
	}, func(p *v1alpha1.Post) { next(p); checkpoint("c2")(p) }, ""),
	Entry("the number decreases", func(p *v1alpha1.Post) { claimed(p); p.Status.Targets[0].Attempt.Number = 2 },
		func(p *v1alpha1.Post) { p.Status.Targets[0].Attempt.Number = 1 }, "never decreases"),
	Entry("failed, and reserved for a retry", closed(v1alpha1.OutcomeRefused, v1alpha1.TargetFailed, ""), retriedBy("again"), ""),
	Entry("failed, and reserved for another retry", retriedBy("again"), retriedBy("once-more"), "retriedBy never changes"),
	Entry("the external id is replaced", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), func(p *v1alpha1.Post) { p.Status.Targets[0].ExternalID = "8" }, "externalID never changes"),
	Entry("the external id is removed", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), func(p *v1alpha1.Post) { p.Status.Targets[0].ExternalID = "" }, "externalID never changes"),
	Entry("posted, changed to failed", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), stands(v1alpha1.TargetFailed), "stays posted"),
	Entry("posted, changed to pending", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), stands(v1alpha1.TargetPending), "stays posted"),
	Entry("posted, changed to undecided", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), stands(v1alpha1.TargetUndecided), "stays posted"),
	Entry("posted, withdrawn", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), stands(v1alpha1.TargetWithdrawn), "stays posted"),
	Entry("posted, described as failed", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), func(p *v1alpha1.Post) { p.Status.Targets[0].Phase = v1alpha1.PhaseFailed }, "stays posted"),
	Entry("posted under an earlier version, changed to failed", stateless(closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7")), stands(v1alpha1.TargetFailed), "stays posted"),
	Entry("posted under an earlier version, changed to pending", stateless(closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7")), stands(v1alpha1.TargetPending), "stays posted"),
	Entry("posted under an earlier version, its state recorded", stateless(closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7")), stands(v1alpha1.TargetPosted), ""),
	Entry("posted, then written by an earlier version", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), stateless(func(*v1alpha1.Post) {}), ""),
	Entry("posted, changed to failed by an earlier version", closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7"), stateless(stands(v1alpha1.TargetFailed)), "stays posted"),
	Entry("posted under an earlier version, changed to failed by it", stateless(closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7")), stateless(stands(v1alpha1.TargetFailed)), "stays posted"),
	Entry("failed, edited and pending again", closed(v1alpha1.OutcomeRefused, v1alpha1.TargetFailed, ""), stands(v1alpha1.TargetPending), ""),
	Entry("an unknown state", claimed, stands("sent"), "Unsupported value"),
	Entry("a blocking reason", claimed, blocked(v1alpha1.Blocked{Reason: strings.Repeat("R", 64), Problem: strings.Repeat("é", 1024), Remedy: strings.Repeat("é", 512)}), ""),
	Entry("a problem that is too long", claimed, blocked(v1alpha1.Blocked{Reason: "R", Problem: strings.Repeat("é", 1025)}), "blocked.problem: Too long"),
	Entry("a remedy that is too long", claimed, blocked(v1alpha1.Blocked{Reason: "R", Problem: "p", Remedy: strings.Repeat("é", 513)}), "blocked.remedy: Too long"),
	Entry("a reason that is too long", claimed, blocked(v1alpha1.Blocked{Reason: strings.Repeat("R", 65), Problem: "p"}), "blocked.reason: Too long"),
	Entry("an attempt is removed", claimed, func(p *v1alpha1.Post) { p.Status.Targets[0].Attempt = nil }, "never removed"),
	Entry("all entries are removed", claimed, func(p *v1alpha1.Post) { p.Status.Targets = nil }, "record of a target is never removed"),
	Entry("one of two entries is removed", second(1), func(p *v1alpha1.Post) { p.Status.Targets = p.Status.Targets[1:] }, "record of a target is never removed"),
	Entry("one of two entries is replaced", second(1), func(p *v1alpha1.Post) { p.Status.Targets[1].Index = 2 }, "record of a target is never removed"),
	Entry("two entries swapped, and a third added", second(1), func(p *v1alpha1.Post) {
		second(2)(p)
		p.Status.Targets[0], p.Status.Targets[1] = p.Status.Targets[1], p.Status.Targets[0]
	}, ""),
)

// others creates an object, then applies the change, if any. It expects that the last write is rejected with the
// message or, if that is empty, that it succeeds.
func others(ctx SpecContext, create client.Object, change func(client.Object), message string) {
	err := k8s.Create(ctx, create)
	if change != nil {
		Expect(err).NotTo(HaveOccurred())
		change(create)
		err = k8s.Update(ctx, create)
	}
	outcomeIs(err, message)
}

var _ = DescribeTable("the other kinds", others,
	Entry("a team", team("acme", v1alpha1.Subscription{}), nil, ""),
	Entry("a team in kube-system", team("kube-system", v1alpha1.Subscription{}), nil, "kube-*"),
	Entry("a team in default", team("default", v1alpha1.Subscription{}), nil, "default namespace"),
	Entry("a trial without an end", team("trial", v1alpha1.Subscription{State: v1alpha1.SubscriptionTrialing}), nil, ""),
	Entry("a trial with one", team("trial", v1alpha1.Subscription{State: v1alpha1.SubscriptionTrialing, TrialEndsAt: future}), nil, ""),
	Entry("a team that moves", team("moves", v1alpha1.Subscription{}), func(o client.Object) { o.(*v1alpha1.Team).Spec.Namespace = "away" }, "cannot be changed"),
	Entry("a key", &v1alpha1.APIKey{ObjectMeta: meta()}, nil, ""),
	Entry("a key that is revoked", &v1alpha1.APIKey{ObjectMeta: meta()}, func(o client.Object) { o.(*v1alpha1.APIKey).Spec.Revoked = true }, ""),
	Entry("a key that is restored", &v1alpha1.APIKey{ObjectMeta: meta(), Spec: v1alpha1.APIKeySpec{Revoked: true, Description: "old"}},
		func(o client.Object) { o.(*v1alpha1.APIKey).Spec.Revoked = false }, "stays revoked"),
	Entry("a key that lists its token later", &v1alpha1.APIKey{ObjectMeta: meta()},
		func(o client.Object) { o.(*v1alpha1.APIKey).Spec.Tokens = apiKey("token").Spec.Tokens }, ""),
	Entry("a key with a second token", apiKey("a"), func(o client.Object) {
		o.(*v1alpha1.APIKey).Spec.Tokens = apiKey("a", "b").Spec.Tokens
	}, ""),
	Entry("a key that loses its first token", apiKey("a", "b"), func(o client.Object) {
		o.(*v1alpha1.APIKey).Spec.Tokens = apiKey("b").Spec.Tokens
	}, ""),
	Entry("a key with three tokens", apiKey("a", "b", "c"), nil, "at most 2"),
	Entry("a key with one name twice", apiKey("a", "a"), nil, "Duplicate"),
	Entry("a key whose token has no name", apiKey(""), nil, "name"),
	Entry("a key whose token's name is not valid in a Secret's name", apiKey("A_1"), nil, "name"),
	Entry("a key whose hash is replaced", apiKey("a"),
		func(o client.Object) { o.(*v1alpha1.APIKey).Spec.Tokens[0].SHA256 = strings.Repeat("b", 64) }, "cannot be replaced"),
	Entry("a key whose hash is removed", apiKey("a"),
		func(o client.Object) { o.(*v1alpha1.APIKey).Spec.Tokens[0].SHA256 = "" }, "cannot be replaced"),
	Entry("a key whose token expires sooner", apiKey("a"),
		func(o client.Object) { o.(*v1alpha1.APIKey).Spec.Tokens[0].ExpiresAt = future }, ""),
	Entry("a key with an invalid hash", &v1alpha1.APIKey{ObjectMeta: meta(), Spec: v1alpha1.APIKeySpec{
		Tokens: []v1alpha1.APIKeyToken{{Name: "a", SHA256: "secret"}},
	}}, nil, "sha256"),
	Entry("a connection", connection(), nil, ""),
	Entry("a connection whose account changes", connection(), func(o client.Object) { o.(*v1alpha1.Connection).Spec.AccountID = "2" }, "account cannot be changed"),
	Entry("a connection whose platform changes", connection(), func(o client.Object) { o.(*v1alpha1.Connection).Spec.Platform = v1alpha1.PlatformThreads }, "platform cannot be changed"),
	Entry("a connection with other credentials", connection(), func(o client.Object) { o.(*v1alpha1.Connection).Spec.CredentialsSecretRef.Name = "new" }, ""),
	Entry("a connection to X with a server", onServer(v1alpha1.PlatformX, "https://x.com", "1@x.com"), nil, "server is only allowed for Mastodon"),
	Entry("a connection to Mastodon", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example", "1@mastodon.example"), nil, ""),
	Entry("a connection to a server at a port", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example:8443", "1@mastodon.example:8443"), nil, ""),
	Entry("a connection to a server at the last port", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example:65535", "1@mastodon.example:65535"), nil, ""),
	Entry("a connection to a server behind the last port", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example:65536", "1@mastodon.example:65536"), nil, "at most 65535"),
	Entry("a connection to a server with another spelling of its address", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example:443", "1@mastodon.example:443"), nil, "omitted if it is 443"),
	Entry("a connection to a server at a port with a leading zero", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example:0443", "1@mastodon.example:0443"), nil, "spec.server"),
	Entry("a connection to Mastodon without a server", onServer(v1alpha1.PlatformMastodon, "", "1"), nil, "requires a server"),
	Entry("a connection whose account is on another server", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example", "1@other.example"), nil, "must end in @ and its server's host"),
	Entry("a connection whose account has no server", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example", "1"), nil, "must end in @ and its server's host"),
	Entry("a connection without encryption", onServer(v1alpha1.PlatformMastodon, "http://mastodon.example", "1@mastodon.example"), nil, "spec.server"),
	Entry("a connection to a server with a path", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example/a", "1@mastodon.example/a"), nil, "spec.server"),
	Entry("a connection to a server with a user", onServer(v1alpha1.PlatformMastodon, "https://a@mastodon.example", "1@a@mastodon.example"), nil, "spec.server"),
	Entry("a connection to a server with a name that only a cluster resolves", onServer(v1alpha1.PlatformMastodon, "https://kubernetes", "1@kubernetes"), nil, "spec.server"),
	Entry("a connection whose server changes", onServer(v1alpha1.PlatformMastodon, "https://mastodon.example", "1@mastodon.example"), func(o client.Object) {
		o.(*v1alpha1.Connection).Spec.Server = "https://other.example"
	}, "server cannot be changed"),
)

// apiKey returns a key whose tokens were created elsewhere.
func apiKey(tokens ...string) *v1alpha1.APIKey {
	k := &v1alpha1.APIKey{ObjectMeta: meta()}
	for _, name := range tokens {
		k.Spec.Tokens = append(k.Spec.Tokens, v1alpha1.APIKeyToken{Name: name, SHA256: strings.Repeat("a", 64)})
	}
	return k
}

func team(namespace string, s v1alpha1.Subscription) *v1alpha1.Team {
	m := meta()
	m.Namespace = ""
	return &v1alpha1.Team{ObjectMeta: m, Spec: v1alpha1.TeamSpec{Namespace: namespace, Subscription: s}}
}

func onServer(platform v1alpha1.Platform, server, account string) *v1alpha1.Connection {
	c := connection()
	c.Spec.Platform, c.Spec.Server, c.Spec.AccountID = platform, server, account
	return c
}

func connection() *v1alpha1.Connection {
	return &v1alpha1.Connection{ObjectMeta: meta(), Spec: v1alpha1.ConnectionSpec{
		Platform: v1alpha1.PlatformX, AccountID: "1", CredentialsSecretRef: v1alpha1.LocalReference{Name: "s"},
	}}
}

var _ = DescribeTable("times written by users",
	func(ctx SpecContext, value any, admitted bool) {
		p := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Post",
			"metadata": map[string]any{"name": fmt.Sprintf("o%d", serial.Add(1)), "namespace": metav1.NamespaceDefault},
			"spec": map[string]any{"category": "text", "scheduledAt": value, "targets": []any{
				map[string]any{"connectionRef": map[string]any{"name": "x"}, "caption": "hi"},
			}},
		}}
		err := k8s.Create(ctx, p)
		if !admitted {
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "got: %v", err)
			return
		}
		Expect(err).NotTo(HaveOccurred())
		readable(ctx, p)
	},
	Entry("UTC", "2026-12-01T09:00:00Z", true),
	Entry("milliseconds", "2026-12-01T09:00:00.123Z", true),
	Entry("an offset", "2026-12-01T09:00:00+02:00", true),
	Entry("nanoseconds", "2026-12-01T09:00:00.123456789Z", true),
	Entry("a leap day", "2028-02-29T00:00:00Z", true),
	Entry("a leap day in a common year", "2027-02-29T00:00:00Z", false),
	Entry("the thirtieth of February", "2026-02-30T00:00:00Z", false),
	Entry("the 31st of June", "2026-06-31T00:00:00Z", false),
	Entry("hour 24", "2026-12-01T24:00:00Z", false),
	Entry("a leap second", "2026-12-31T23:59:60Z", false),
	Entry("no zone", "2026-12-01T09:00:00", false),
	Entry("lower case", "2026-12-01t09:00:00z", false),
	Entry("a date", "2026-12-01", false),
	Entry("ten digits of a second", "2026-12-01T09:00:00.0123456789Z", false),
	Entry("offset beyond a day", "2026-12-01T09:00:00+24:00", false),
	Entry("words", "tomorrow", false),
	Entry("the earliest time that can be written", "1000-01-01T00:00:00Z", true),
	Entry("the earliest time, with an offset that leads before it", "1000-01-01T00:00:00+00:01", false),
	Entry("the latest time that can be written", "2999-12-31T23:59:59.999999999Z", true),
	Entry("the latest time, with an offset that leads behind it", "2999-12-31T23:59:59-00:01", false),
	Entry("a list, which the API server lets pass for a format", []any{}, false),
	Entry("a list of times", []any{"2026-12-01T09:00:00Z"}, false),
	Entry("a number", int64(1), false),
)

// readable expects that an object can be decoded into its Go type. An object that cannot would break every informer.
func readable(ctx context.Context, o client.Object) {
	GinkgoHelper()
	var p v1alpha1.Post
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(o), &p)).To(Succeed())
	Expect(p.Spec.ScheduledAt).NotTo(BeNil())
}
