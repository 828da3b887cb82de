// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
)

var resource = schema.GroupResource{Group: "social.herald.dev", Resource: "posts"}

func hello(connection string) bridge.CreatePost {
	return bridge.CreatePost{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{target(connection)}}}
}

func target(connection string) v1alpha1.PostTarget {
	return v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: connection}, Caption: "Hello"}
}

func TestCreateAfterLostResponses(t *testing.T) {
	t.Parallel()
	lost := errors.New("read: connection reset by peer")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Post"}, "p", field.ErrorList{
		field.Invalid(field.NewPath("spec", "targets").Index(0).Child("connectionRef", "name"), "x", "is no name"),
	})
	tests := map[string]struct {
		reason  string
		faults  []fault
		creates int
		stored  int
		want    string // the result of code
		message string
	}{
		"Landed":    {"the response to a stored post was lost", []fault{{true, lost}}, 2, 1, "", ""},
		"NotLanded": {"the request was lost", []fault{{false, lost}}, 2, 1, "", ""},
		"TimedOut":  {"the Kubernetes API timed out after it had stored the post", []fault{{true, apierrors.NewTimeoutError("late", 1)}}, 2, 1, "", ""},
		"LostTwice": {"both requests timed out", []fault{{false, lost}, {true, lost}}, 3, 1, "", ""},
		"StaysLost": {"the Kubernetes API is unavailable", []fault{{false, lost}, {false, lost}, {false, lost}, {false, lost}}, 3, 0, "uncertain", ""},
		"Refused":   {"a definite rejection is not retried", []fault{{false, apierrors.NewForbidden(resource, "p", lost)}}, 1, 0, "internal", ""},
		"Invalid":   {"the CRD's message is reported in the API's terms", []fault{{false, invalid}}, 1, 0, "VALIDATION_ERROR", "targets[0].connection_id: "},
		"TooLarge":  {"the client can shorten a post that is too large", []fault{{false, apierrors.NewRequestEntityTooLargeError("limit")}}, 1, 0, "VALIDATION_ERROR", "too large"},
		"TooLargeForEtcd": {
			"etcd limits objects", []fault{{false, apierrors.NewInternalError(errors.New("etcdserver: request is too large"))}}, 1, 0, "VALIDATION_ERROR", "too large",
		},
		"TooLargeToSend": {
			"the Kubernetes client limits objects",
			[]fault{{false, apierrors.NewInternalError(errors.New("rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)"))}},
			1, 0, "VALIDATION_ERROR", "too large",
		},
		"NothingBad": {"the creation succeeds", nil, 1, 1, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &posts{stored: map[string]*v1alpha1.Post{}, faults: tc.faults}
			s := service(p, inMemory("acme"))
			got, err := s.CreatePost(t.Context(), caller, hello("acme"))
			if code(err) != tc.want || (err != nil && !strings.Contains(err.Error(), tc.message)) {
				t.Fatalf("%s: error %v, want %q with %q", tc.reason, err, tc.want, tc.message)
			}
			if p.creates != tc.creates || len(p.stored) != tc.stored {
				t.Errorf("%s: %d creates and %d posts, want %d and %d", tc.reason, p.creates, len(p.stored), tc.creates, tc.stored)
			}
			listed := pageOf(t, s, caller, postindex.Query{Limit: 10})
			if listed.Total != tc.stored || (err == nil && listed.Posts[0].ID != got.ID) {
				t.Errorf("%s: listed %+v", tc.reason, listed)
			}
		})
	}
}

// code returns an error's code: "" for none, "uncertain" if the request may have taken effect, "internal" for any other
// error without a code.
func code(err error) string {
	var known *bridge.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, bridge.ErrUncertain):
		return "uncertain"
	case errors.As(err, &known):
		return string(known.Code)
	default:
		return "internal"
	}
}

func TestCreateStopsAfterDisconnect(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{{false, context.Canceled}}}
	if _, err := service(p, inMemory("acme")).CreatePost(ctx, caller, hello("acme")); err == nil || p.creates != 1 {
		t.Errorf("error %v after %d creates, want one and 1", err, p.creates)
	}
}

func TestCreateFindsConnections(t *testing.T) {
	t.Parallel()
	leaving := onX("acme")
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	tests := map[string]struct {
		reason      string
		connections *connections
		name, want  string
	}{
		"InMemory":   {"an ordinary connection", inMemory("acme"), "acme", ""},
		"OnlyLive":   {"the connection was created just now, and the watch is delayed", &connections{live: map[string]*v1alpha1.Connection{"acme": onX("acme")}}, "acme", ""},
		"Nowhere":    {"the connection does not exist", &connections{}, "acme", "VALIDATION_ERROR"},
		"Leaving":    {"the connection is being deleted", &connections{memory: map[string]*v1alpha1.Connection{"acme": leaving}}, "acme", "VALIDATION_ERROR"},
		"Impossible": {"no resource can have this name, so none is requested", &connections{err: errors.New("boom")}, "../x", "VALIDATION_ERROR"},
		"Unknown":    {"the Kubernetes API is unavailable", &connections{err: errors.New("boom")}, "acme", "internal"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &posts{stored: map[string]*v1alpha1.Post{}}
			_, err := service(p, tc.connections).CreatePost(t.Context(), caller, hello(tc.name))
			if code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if want := map[bool]int{true: 1}[tc.want == ""]; len(p.stored) != want {
				t.Errorf("%s: %d posts, want %d", tc.reason, len(p.stored), want)
			}
		})
	}
}

func TestCancelRetriesConflicts(t *testing.T) {
	t.Parallel()
	conflict := fault{err: apierrors.NewConflict(resource, "p1", errors.New("written"))}
	tests := map[string]struct {
		reason string
		faults []fault
		want   string
	}{
		"AlwaysWritten": {"each update conflicts", []fault{conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict}, "CONFLICT"},
		"Frozen":        {"the CRD reports that delivery has started", []fault{conflict, {err: apierrors.NewInvalid(schema.GroupKind{}, "p1", nil)}}, "CONFLICT"},
		"Gone":          {"the post was deleted concurrently", []fault{{err: apierrors.NewNotFound(resource, "p1")}}, "NOT_FOUND"},
		"Down":          {"the Kubernetes API is unavailable", []fault{{err: errors.New("boom")}}, "internal"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &posts{faults: tc.faults, stored: map[string]*v1alpha1.Post{"p1": {Spec: v1alpha1.PostSpec{
				Draft: true, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}}},
			}}}}
			if err := service(p, inMemory("acme")).CancelPost(t.Context(), caller, "p1"); code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if len(p.faults) != 0 {
				t.Errorf("%s: %d tries too few", tc.reason, len(p.faults))
			}
		})
	}
}

func TestDetail(t *testing.T) {
	t.Parallel()
	refused := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalid, Message: "too long"}
	status := func(targets ...v1alpha1.TargetStatus) v1alpha1.PostStatus {
		return v1alpha1.PostStatus{Targets: targets}
	}
	onX := func(phase v1alpha1.PostPhase, message string) []bridge.PlatformDetail {
		return []bridge.PlatformDetail{{Platform: "x", ConnectionID: "acme", Status: phase, Caption: "a", ErrorMessage: message}}
	}
	waiting := status(v1alpha1.TargetStatus{Platform: "x", Phase: "scheduled", Message: "waiting"})
	waiting.Conditions = []metav1.Condition{refused}
	for name, tc := range map[string]struct {
		reason string
		status v1alpha1.PostStatus
		gone   bool // the connection is deleted
		want   []bridge.PlatformDetail
	}{
		"NothingKnownYet": {"the connection determines the platform", v1alpha1.PostStatus{}, false, onX("processing", "")},
		"ConnectionGone": {
			"the record determines the platform", status(v1alpha1.TargetStatus{Platform: "threads", Phase: "processing"}), true,
			[]bridge.PlatformDetail{{Platform: "threads", Status: "processing", Caption: "a"}},
		},
		"FailedWithMessage": {
			"the target's own message is the most precise",
			status(v1alpha1.TargetStatus{Platform: "x", Phase: "failed", Reason: "Refused", Message: "X said no"}), false, onX("failed", "X said no"),
		},
		"FailedWithReasonOnly": {
			"a reason is better than no message",
			status(v1alpha1.TargetStatus{Platform: "x", Phase: "failed", Reason: "Refused"}), false, onX("failed", "Refused"),
		},
		"NotAccepted": {"a rejected post can be corrected, so it has not failed", waiting, false, onX("processing", "")},
		"MessageWhileProcessing": {
			"a message is an error only after the delivery failed",
			status(v1alpha1.TargetStatus{Platform: "x", Phase: "processing", Message: "trying again"}), false, onX("processing", ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := inMemory("acme")
			if tc.gone {
				c.memory = nil
			}
			stored := &v1alpha1.Post{
				ObjectMeta: metav1.ObjectMeta{Name: "p1", CreationTimestamp: metav1.NewTime(now)},
				Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{
					{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}, Caption: "a"},
				}},
				Status: tc.status,
			}
			s := service(&posts{stored: map[string]*v1alpha1.Post{"p1": stored}}, c)
			got, err := s.GetPost(t.Context(), caller, "p1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Platforms); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			summary := s.Summarise(stored)
			if len(summary.Platforms) != len(tc.want) || (len(tc.want) > 0 && summary.Platforms[0].Status != tc.want[0].Status) {
				t.Errorf("%s: the list shows %+v", tc.reason, summary.Platforms)
			}
		})
	}
}

func TestCanCancelFollowsTheClock(t *testing.T) {
	t.Parallel()
	for at, want := range map[time.Duration]bool{time.Millisecond: true, 0: false, -time.Hour: false} {
		stored := &v1alpha1.Post{Spec: v1alpha1.PostSpec{
			ScheduledAt: v1alpha1.NewTimePtr(now.Add(at)),
			Targets:     []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}, Caption: "a"}},
		}}
		got, err := service(&posts{stored: map[string]*v1alpha1.Post{"p1": stored}}, inMemory("acme")).GetPost(t.Context(), caller, "p1")
		if err != nil || got.CanCancel != want {
			t.Errorf("due in %s: can_cancel %v, want %v (%v)", at, got.CanCancel, want, err)
		}
	}
}

func TestJoinProblems(t *testing.T) {
	t.Parallel()
	all := strings.Split(strings.Repeat("a", 20), "")
	if got, want := bridge.JoinProblems(all), strings.Repeat("a; ", 19)+"a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := bridge.JoinProblems(append(all, "b", "c")), strings.Repeat("a; ", 20)+"and 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIDsCannotBeGuessed(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := service(p, inMemory("acme"))
	for range 100 {
		if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.stored) != 100 {
		t.Fatalf("%d ids for 100 posts", len(p.stored))
	}
	for id := range p.stored {
		if len(id) != 26 || id[0] != 'p' {
			t.Errorf("id %q has %d characters, want 26 with a p in front", id, len(id))
		}
	}
}
