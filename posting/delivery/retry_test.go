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

	"github.com/herald-social/herald/api/v1alpha1"
)

// refusedTarget is the status of a target whose refusal a lookup has confirmed.
func refusedTarget(index int32) v1alpha1.TargetStatus {
	return v1alpha1.TargetStatus{
		Index: index, Platform: v1alpha1.PlatformX, State: v1alpha1.TargetFailed,
		Attempt: &v1alpha1.Attempt{Number: 1, ID: "a1", AccountID: "account", Outcome: v1alpha1.OutcomeRefused},
	}
}

// retries makes the post a retry of a finished post with one refused target on the same account.
func (s *situation) retries(change func(original *v1alpha1.Post, t *v1alpha1.TargetStatus)) {
	original := s.Post.DeepCopy()
	original.Name, original.UID = "first", "first-uid"
	original.Status.Finished, original.Status.Targets = true, []v1alpha1.TargetStatus{refusedTarget(0)}
	if change != nil {
		change(original, &original.Status.Targets[0])
	}
	s.Post.Spec.RetryOf = &v1alpha1.LocalReference{Name: "first"}
	s.Original = &Original{Post: original}
}

func TestDecideRetry(t *testing.T) {
	const waits = "wait 15s"
	for name, tt := range map[string]struct {
		reason string
		change func(s *situation)
		want   []string
		// problem is part of what the status says about target 0.
		problem string
	}{
		"not read yet":  {"the proof is read before each decision", func(s *situation) { s.retries(nil); s.Original = nil }, []string{"read original"}, ""},
		"refused":       {"the target is reserved before the claim", func(s *situation) { s.retries(nil) }, []string{"reserve [0]"}, ""},
		"never claimed": {"there was no call", func(s *situation) { s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.Attempt = nil }) }, []string{"reserve [0]"}, ""},
		"reserved for this post": {"the process died before the claim", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.RetriedBy = "post" })
		}, []string{"claim [0]", "write", "wait 59m50.001s"}, ""},
		"reserved for another": {"it may publish it", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.RetriedBy = "other" })
		}, []string{"write", "wait"}, `already retried by post "other"`},
		"posted": {"it is public", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.State = v1alpha1.TargetPosted })
		}, []string{"write", "wait"}, "is published"},
		"cancelled": {"it is no longer needed", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.State = v1alpha1.TargetWithdrawn })
		}, []string{"write", "wait"}, "is withdrawn"},
		"an unconfirmed refusal": {"it is not proof", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) {
				t.Attempt.Refusal = &v1alpha1.Refusal{Unconfirmed: true}
			})
		}, []string{"write", "wait"}, "not proven"},
		"an earlier unknown call": {"it may have published", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.Attempt.UnknownSince = v1alpha1.NewTimePtr(t0) })
		}, []string{"write", "wait"}, "not proven"},
		"a broken tree": {"a card is public", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.Cards = make([]v1alpha1.CardStatus, 1) })
		}, []string{"write", "wait"}, "a part of"},
		"another account": {"it may be public there", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.Attempt.AccountID = "other" })
		}, []string{"write", "wait"}, "another account"},
		"another connection": {"its account has no proof", func(s *situation) {
			s.retries(func(o *v1alpha1.Post, _ *v1alpha1.TargetStatus) { o.Spec.Targets[0].ConnectionRef.Name = "y" })
		}, []string{"write", "wait"}, "no other target"},
		"undecided": {"a user has to answer first", func(s *situation) {
			s.retries(func(o *v1alpha1.Post, t *v1alpha1.TargetStatus) {
				o.Status.Finished, t.State, t.Attempt.Outcome = false, v1alpha1.TargetUndecided, v1alpha1.OutcomeUnknown
			})
		}, []string{"write", waits}, "answer as its condition OutcomeUnknown says"},
		"unfinished": {"it may still be published", func(s *situation) {
			s.retries(func(o *v1alpha1.Post, _ *v1alpha1.TargetStatus) { o.Status.Finished = false })
		}, []string{"write", waits}, "is not finished"},
		"deleted": {"there is no object to reserve", func(s *situation) { s.retries(nil); s.Original.Post = nil }, []string{"write", "wait"}, "does not exist any more"},
		"deleted after the reservation": {"no other post can retry it", func(s *situation) {
			s.retries(nil)
			s.Original.Post, s.Post.Status.Retry = nil, &v1alpha1.RetryStatus{Object: "first-uid", Targets: []int32{0}}
		}, []string{"claim [0]", "wait 59m50.001s"}, ""},
		"a draft": {"drafts reserve nothing", func(s *situation) { s.retries(nil); s.Original, s.Post.Spec.Draft = nil, true }, []string{"write", "wait"}, ""},
		"later":   {"posts reserve when they are due", func(s *situation) { s.retries(nil); s.Original = nil; s.scheduled(time.Hour); s.Crowded = true }, nil, ""},
		"two of one connection": {"each retries another one", func(s *situation) {
			s.Post.Spec.Targets = append(s.Post.Spec.Targets, s.Post.Spec.Targets[0])
			s.retries(func(o *v1alpha1.Post, t *v1alpha1.TargetStatus) {
				t.State = v1alpha1.TargetPosted
				o.Status.Targets = append(o.Status.Targets, refusedTarget(1))
			})
		}, []string{"reserve [1]"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tt.change)
			got := words(Decide(f))
			if tt.want != nil && !cmp.Equal(got, tt.want) {
				t.Errorf("got %q, want %q: %s", got, tt.want, tt.reason)
			}
			if tt.want == nil && slices.ContainsFunc(got, func(w string) bool { return w == "read original" || strings.HasPrefix(w, "reserve") }) {
				t.Errorf("got %q: %s", got, tt.reason)
			}
			Describe(f.Post, t0)
			if len(f.Post.Status.Targets) == 0 {
				return
			}
			if b := f.Post.Status.Targets[0].Blocked; tt.problem != "" && (b == nil || b.Reason != v1alpha1.ReasonRetryRefused || !strings.Contains(b.Problem, tt.problem)) {
				t.Errorf("got %+v, want %q: %s", b, tt.problem, tt.reason)
			}
		})
	}
}

// TestReserve verifies that both posts show the other one.
func TestReserve(t *testing.T) {
	f := facts(func(s *situation) { s.retries(nil) })
	if got := words(Decide(f)); !cmp.Equal(got, []string{"reserve [0]"}) {
		t.Fatalf("got %q", got)
	}
	Reserve(f.Original.Post, []int{0}, f.Post.Name, t0)
	Decide(f)
	Describe(f.Post, t0)
	if diff := cmp.Diff(&v1alpha1.RetryStatus{Object: "first-uid", Targets: []int32{0}}, f.Post.Status.Retry); diff != "" {
		t.Error("-want +got: " + diff)
	}
	for kind, tt := range map[string]struct {
		post *v1alpha1.Post
		want string
	}{
		v1alpha1.ConditionRetried: {f.Original.Post, `target 0 (x) is retried by post "post"`},
		v1alpha1.ConditionRetryOf: {f.Post, `retries target 0 of post "first"`},
	} {
		if c := meta.FindStatusCondition(tt.post.Status.Conditions, kind); c == nil || c.Message != tt.want {
			t.Errorf("%s is %+v, want %q", kind, c, tt.want)
		}
	}
}
