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

// retriesOneOfTwo makes the post a retry of a finished post with two refused targets of its connection, which these
// posts have reserved.
func (s *situation) retriesOneOfTwo(first, second string) {
	s.retries(func(o *v1alpha1.Post, t *v1alpha1.TargetStatus) {
		o.Spec.Targets = append(o.Spec.Targets, o.Spec.Targets[0])
		t.RetriedBy = first
		o.Status.Targets = append(o.Status.Targets, refusedTarget(1))
		o.Status.Targets[1].RetriedBy = second
	})
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
		"never claimed": {"the target had no call", func(s *situation) { s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.Attempt = nil }) }, []string{"reserve [0]"}, ""},
		"reserved for this post": {"the process died before the claim", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.RetriedBy = "post" })
		}, []string{"claim [0]", "write", "wait 59m50.001s"}, ""},
		"reserved for another": {"the other post may publish the target", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.RetriedBy = "other" })
		}, []string{"write", "wait"}, `already retried by post "other"`},
		"posted": {"the target is public", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.State = v1alpha1.TargetPosted })
		}, []string{"write", "wait"}, "is published"},
		"cancelled": {"the retry is no longer needed", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.State = v1alpha1.TargetWithdrawn })
		}, []string{"write", "wait"}, "is withdrawn"},
		"an unconfirmed refusal": {"an unconfirmed refusal is not proof", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) {
				t.Attempt.Refusal = &v1alpha1.Refusal{Unconfirmed: true}
			})
		}, []string{"write", "wait"}, "not proven"},
		"an earlier unknown call": {"the earlier call may have published", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.Attempt.UnknownSince = v1alpha1.NewTimePtr(t0) })
		}, []string{"write", "wait"}, "not proven"},
		"a broken tree": {"a card is public", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.Cards = make([]v1alpha1.CardStatus, 1) })
		}, []string{"write", "wait"}, "a part of"},
		"another account": {"the post may be public on the other account", func(s *situation) {
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.Attempt.AccountID = "other" })
		}, []string{"write", "wait"}, "another account"},
		"another connection": {"its account has no proof", func(s *situation) {
			s.retries(func(o *v1alpha1.Post, _ *v1alpha1.TargetStatus) { o.Spec.Targets[0].ConnectionRef.Name = "y" })
		}, []string{"write", "wait"}, "no other target"},
		"undecided": {"a user has to answer first", func(s *situation) {
			s.retries(func(o *v1alpha1.Post, t *v1alpha1.TargetStatus) {
				o.Status.Finished, t.State, t.Attempt.Outcome = false, v1alpha1.TargetUndecided, v1alpha1.OutcomeUnknown
			})
		}, []string{"write", waits}, "answer as described in its OutcomeUnknown condition"},
		"unfinished": {"the target may still be published", func(s *situation) {
			s.retries(func(o *v1alpha1.Post, _ *v1alpha1.TargetStatus) { o.Status.Finished = false })
		}, []string{"write", waits}, "is not finished"},
		"deleted": {"the original no longer exists", func(s *situation) { s.retries(nil); s.Original.Post = nil }, []string{"write", "wait"}, "no longer exists"},
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
		"one of two":                  {"targets are retried in order", func(s *situation) { s.retriesOneOfTwo("", "") }, []string{"reserve [0]"}, ""},
		"one of two, with the second": {"no other target is reserved for the post", func(s *situation) { s.retriesOneOfTwo("", "post") }, []string{"claim [0]", "write", "wait 59m50.001s"}, ""},
		"a call was not sent": {"its target was reserved before the call", func(s *situation) {
			s.retries(nil)
			s.Original = nil
			s.claimed(time.Minute).Attempt.Outcome = v1alpha1.OutcomeNotSent
		}, []string{"claim [0]", "wait 59m50.001s"}, ""},
		"beside a target that is paused": {"the failure is stored at once", func(s *situation) {
			s.pausedSecond()
			s.retries(func(_ *v1alpha1.Post, t *v1alpha1.TargetStatus) { t.State = v1alpha1.TargetPosted })
		}, []string{"write", "wait 2m0s"}, "is published"},
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

// TestReserve verifies that each post refers to the other.
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

// TestRecordRetry verifies what is recorded about the reserved targets, which outlives the failed post.
func TestRecordRetry(t *testing.T) {
	reservation := func(object string, targets ...int32) *v1alpha1.RetryStatus {
		return &v1alpha1.RetryStatus{Object: object, Targets: targets}
	}
	for name, tt := range map[string]struct {
		reason        string
		first, second string
		known, want   *v1alpha1.RetryStatus
		writes        bool
	}{
		"not reserved yet":      {"another post may reserve the target", "", "", nil, nil, false},
		"the first is reserved": {"the failed post may be deleted", "post", "", nil, reservation("first-uid", 0), true},
		"the second is":         {"the failed post may be deleted", "", "post", nil, reservation("first-uid", 1), true},
		"already recorded":      {"each write costs", "post", "", reservation("first-uid", 0), reservation("first-uid", 0), false},
		"previously empty":      {"the targets have changed", "post", "", reservation("first-uid", nothingToRetry), reservation("first-uid", 0), true},
		"applied again":         {"another object is reserved", "post", "", reservation("earlier-uid", 0), reservation("first-uid", 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(func(s *situation) { s.retriesOneOfTwo(tt.first, tt.second) })
			f.Post.Status.Retry = tt.known
			got := words(Decide(f))
			if diff := cmp.Diff(tt.want, f.Post.Status.Retry); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if slices.Contains(got, "write") != tt.writes {
				t.Errorf("got %q, want a write: %t (%s)", got, tt.writes, tt.reason)
			}
		})
	}
}

// TestDescribeRetry verifies that the conditions show what is recorded, regardless of their previous state.
func TestDescribeRetry(t *testing.T) {
	retried := v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, RetriedBy: "other"}
	retry := func(status *v1alpha1.RetryStatus) *v1alpha1.Post {
		p := post(v1alpha1.TargetStatus{State: v1alpha1.TargetPending})
		p.Spec.RetryOf, p.Status.Retry = &v1alpha1.LocalReference{Name: "first"}, status
		return p
	}
	for name, tt := range map[string]struct {
		reason  string
		post    *v1alpha1.Post
		kind    string
		message string
	}{
		"retried":        {"an object that adopted the record shows it too", post(retried), v1alpha1.ConditionRetried, `target 0 (x) is retried by post "other"`},
		"not retried":    {"an entry from a backup may not be reserved", post(v1alpha1.TargetStatus{State: v1alpha1.TargetFailed}), v1alpha1.ConditionRetried, ""},
		"a retry":        {"the post retries only the targets that it reserved", retry(&v1alpha1.RetryStatus{Targets: []int32{nothingToRetry, 2}}), v1alpha1.ConditionRetryOf, `retries target 2 of post "first"`},
		"no reservation": {"a status from a backup may lack the reservation", retry(nil), v1alpha1.ConditionRetryOf, ""},
	} {
		t.Run(name, func(t *testing.T) {
			setCondition(tt.post, t0, tt.kind, metav1.ConditionTrue, v1alpha1.ReasonRetried, "as it was before")
			Describe(tt.post, t0)
			message := ""
			if c := meta.FindStatusCondition(tt.post.Status.Conditions, tt.kind); c != nil {
				message = c.Message
			}
			if message != tt.message {
				t.Errorf("%s: it shows %q, want %q", tt.reason, message, tt.message)
			}
		})
	}
}
