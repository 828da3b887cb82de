// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// heard counts the events that are told, by the namespace that they are about.
type heard map[string]int

func (h heard) Eventf(about, _ runtime.Object, _, _, _, _ string, _ ...any) { h[namespaceOf(about)]++ }

var _ events.EventRecorder = heard{}

// A team that tells more than a person can read silences no other.
func TestEventsOfTeams(t *testing.T) {
	about := func(namespace string) *v1alpha1.Post {
		return &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
	}
	for name, tc := range map[string]struct {
		reason string
		tell   func(r *recorder, clk *clocktesting.FakeClock)
		want   heard
	}{
		"warnings": {"the noisy one has used up its own budget", func(r *recorder, _ *clocktesting.FakeClock) {
			for range 1000 {
				r.warn(about("noisy"), "Refused", "x")
			}
			r.warn(about("quiet"), v1alpha1.ReasonOutcomeUnknown, "x")
		}, heard{"noisy": warningsBurst, "quiet": 1}},
		"good news": {"warnings have a budget of their own", func(r *recorder, _ *clocktesting.FakeClock) {
			for range 1000 {
				r.tell(about("noisy"), v1alpha1.ReasonPosted, "x")
			}
			r.warn(about("noisy"), v1alpha1.ReasonOutcomeUnknown, "x")
		}, heard{"noisy": newsBurst + 1}},
		"later": {"a budget comes back", func(r *recorder, clk *clocktesting.FakeClock) {
			for range 2 {
				for range 1000 {
					r.tell(about("noisy"), v1alpha1.ReasonPosted, "x")
				}
				clk.Step(time.Hour)
			}
		}, heard{"noisy": 2 * newsBurst}},
		"a namespace": {"what is told of it is its own team's", func(r *recorder, _ *clocktesting.FakeClock) {
			r.warn(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, "x", "x")
		}, heard{"team": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, clk := heard{}, clocktesting.NewFakeClock(nine)
			tc.tell(newRecorder(got, clk), clk)
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
	got, clk := heard{}, clocktesting.NewFakeClock(nine)
	r := newRecorder(got, clk)
	for n := range 3 * manyTeams {
		r.warn(about(fmt.Sprint(n)), "x", "x")
		clk.Step(time.Second)
	}
	if len(r.teams) > manyTeams {
		t.Errorf("%d teams are remembered that tell nothing", len(r.teams))
	}
}
