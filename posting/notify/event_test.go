// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// noon is the time of most events.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func condition(kind string, status metav1.ConditionStatus, reason string, at time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because", LastTransitionTime: metav1.NewTime(at)}
}

func describeEvents(events ...Event) (out string) {
	for _, e := range events {
		out += fmt.Sprintf("%s %s %s;", e.Type, e.Name, e.At.UTC().Format("Jan 2 15:04"))
	}
	return out
}

func TestOfPost(t *testing.T) {
	at := v1alpha1.NewTimePtr(noon)
	unknown := []metav1.Condition{condition(v1alpha1.ConditionOutcomeUnknown, "True", "OutcomeUnknown", noon.Add(-time.Hour))}
	for name, tc := range map[string]struct {
		status v1alpha1.PostStatus
		want   string
	}{
		"a post that waits has no event": {v1alpha1.PostStatus{Phase: v1alpha1.PhaseScheduled}, ""},
		"a published post, when it became finished": {
			v1alpha1.PostStatus{Phase: v1alpha1.PhasePosted, Finished: true, FinishedAt: at}, "post.posted p Dec 1 12:00;",
		},
		"a post that is published on one target only has failed": {
			v1alpha1.PostStatus{Phase: v1alpha1.PhaseFailed, Finished: true, FinishedAt: at}, "post.failed p Dec 1 12:00;",
		},
		"a cancelled post has no event": {v1alpha1.PostStatus{Phase: v1alpha1.PhaseCancelled, Finished: true, FinishedAt: at}, ""},
		"an undecided post, when it became undecided": {
			v1alpha1.PostStatus{Phase: v1alpha1.PhaseFailed, Conditions: unknown}, "post.needs_attention p Dec 1 11:00;",
		},
		"an answered post is published and needs no attention": {
			v1alpha1.PostStatus{Phase: v1alpha1.PhasePosted, Finished: true, FinishedAt: at, Conditions: unknown}, "post.posted p Dec 1 12:00;",
		},
		"an older version recorded no time, so repeats could not be recognized": {
			v1alpha1.PostStatus{Phase: v1alpha1.PhasePosted, Finished: true}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if e, ok := OfPost(&v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: tc.status}); ok {
				got = describeEvents(e)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOfConnection(t *testing.T) {
	ready := condition(v1alpha1.ConditionReady, "True", v1alpha1.ReasonConnected, noon.Add(-30*24*time.Hour))
	recent := condition(v1alpha1.ConditionReady, "True", v1alpha1.ReasonConnected, noon.Add(-time.Hour))
	in := func(days int) *v1alpha1.Time {
		return v1alpha1.NewTimePtr(noon.Add(time.Duration(days) * 24 * time.Hour))
	}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		by         *v1alpha1.Time
		disabled   bool
		want       string
	}{
		"a healthy account has no event":                      {conditions: []metav1.Condition{ready}},
		"an account with a distant expiry needs no attention": {conditions: []metav1.Condition{ready}, by: in(8)},
		"the expiry is reported a week before":                {conditions: []metav1.Condition{ready}, by: in(7), want: "connection.expiring c Dec 1 12:00;"},
		"a later report is the same event":                    {conditions: []metav1.Condition{ready}, by: in(3), want: "connection.expiring c Nov 27 12:00;"},
		"an account connected with less than a week left": {
			conditions: []metav1.Condition{recent}, by: in(2), want: "connection.expiring c Dec 1 11:00;",
		},
		"a disabled account needs no reconnection":     {conditions: []metav1.Condition{ready}, by: in(3), disabled: true},
		"an account past the deadline needs attention": {conditions: []metav1.Condition{ready}, by: in(-1)},
		"a revoked account is not reported as expiring": {
			conditions: []metav1.Condition{
				condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRevoked, noon.Add(-2*time.Hour)),
				condition(v1alpha1.ConditionStalled, "True", v1alpha1.ReasonRevoked, noon.Add(-time.Hour)),
			}, by: in(3), want: "connection.broken c Dec 1 11:00;",
		},
		"a platform's outage ends by itself": {conditions: []metav1.Condition{
			condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonPlatformUnavailable, noon),
			condition(v1alpha1.ConditionReconciling, "True", v1alpha1.ReasonPlatformUnavailable, noon),
		}},
		"a disabled account has no event": {conditions: []metav1.Condition{
			condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonDisabled, noon),
			condition(v1alpha1.ConditionStalled, "True", v1alpha1.ReasonDisabled, noon),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.ConnectionSpec{Disabled: tc.disabled}}
			c.Status.Conditions, c.Status.ReconnectBy = tc.conditions, tc.by
			if got := describeEvents(OfConnection(c, noon)...); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOfMedia(t *testing.T) {
	stalled := []metav1.Condition{condition(v1alpha1.ConditionStalled, "True", v1alpha1.ReasonWrongType, noon)}
	for name, tc := range map[string]struct {
		phase      v1alpha1.MediaPhase
		conditions []metav1.Condition
		want       string
	}{
		"a rejected file":                        {v1alpha1.MediaRejected, stalled, "media.rejected m Dec 1 12:00;"},
		"a rejection without its time waits":     {v1alpha1.MediaRejected, nil, ""},
		"a file that was never uploaded expires": {v1alpha1.MediaExpired, stalled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Status: v1alpha1.MediaStatus{Phase: tc.phase, Conditions: tc.conditions}}
			got := ""
			if e, ok := OfMedia(m); ok {
				got = describeEvents(e)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestID(t *testing.T) {
	base := Event{Type: v1alpha1.EventPostFailed, UID: "post", At: noon}
	id := base.ID("notifier")
	if again := (&Event{Type: v1alpha1.EventPostFailed, UID: "post", At: noon.In(time.FixedZone("", 3600))}).ID("notifier"); again != id {
		t.Errorf("another process derives %s, not %s, so a repeat is not recognized", again, id)
	}
	for name, tc := range map[string]struct {
		event    Event
		notifier string
	}{
		"another notifier may have the same receiver": {base, "other"},
		"another event of the post":                   {Event{Type: v1alpha1.EventPostPosted, UID: "post", At: noon}, "notifier"},
		"a post of the same name":                     {Event{Type: v1alpha1.EventPostFailed, UID: "next", At: noon}, "notifier"},
		"the same event at a later time":              {Event{Type: v1alpha1.EventPostFailed, UID: "post", At: noon.Add(time.Millisecond)}, "notifier"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.event.ID("") == id || tc.event.ID(notifierUID(tc.notifier)) == id {
				t.Error("the receiver would ignore an event with the same id")
			}
		})
	}
}
