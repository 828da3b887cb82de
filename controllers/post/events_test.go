// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
)

var nine = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// heard counts the emitted events by note.
type heard struct {
	mu sync.Mutex
	of map[string]int
}

func (h *heard) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[fmt.Sprintf(note, args...)]++
}

func (h *heard) counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.of)
}

var _ events.EventRecorder = (*heard)(nil)

// idle reports that no posts wait.
func idle() bool { return false }

// TestEventsOfTeams: a team with excessive events does not silence others, and every target gets its final event.
func TestEventsOfTeams(t *testing.T) {
	about := func(namespace string) subject {
		return targetSubject(&v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}, 0, nil)
	}
	last := func(r *recorder, namespace string, times int) {
		for range times {
			r.emitFinal(about(namespace), delivery.Event{Reason: v1alpha1.ReasonPosted, Message: "last of " + namespace})
		}
	}
	warn := func(r *recorder, namespace string, times int) {
		for range times {
			r.warn(about(namespace), v1alpha1.ReasonRateLimited, "warning of "+namespace)
		}
	}
	for name, tc := range map[string]struct {
		reason string
		tell   func(r *recorder)
		// atOnce holds the events expected before any time passes. wait is the time until all final events are emitted.
		atOnce map[string]int
		wait   time.Duration
		want   map[string]int
	}{
		"warnings": {"the conditions report it as well; only the noisy team exceeds its own budget", func(r *recorder) {
			warn(r, "noisy", 1000)
			warn(r, "quiet", 1)
		}, map[string]int{"warning of noisy": warningsBurst, "warning of quiet": 1}, time.Hour, map[string]int{"warning of noisy": warningsBurst, "warning of quiet": 1}},
		"the final events of one team": {"no event is dropped, and another team's events are interleaved", func(r *recorder) {
			last(r, "noisy", 200)
			last(r, "quiet", 1)
		}, map[string]int{"last of noisy": finalBurst, "last of quiet": 1}, 100 * time.Second / finalPerSecond, map[string]int{"last of noisy": 200, "last of quiet": 1}},
		"the final events of many teams": {"all teams share a rate limit", func(r *recorder) {
			for n := range allFinalBurst + 200 {
				last(r, fmt.Sprint(n%100), 1)
			}
		}, nil, 200 * time.Second / allFinalPerSecond, nil},
		"the final event of a team that has used up its warnings": {"final events have their own budget", func(r *recorder) {
			warn(r, "noisy", 1000)
			last(r, "noisy", 1)
		}, map[string]int{"warning of noisy": warningsBurst, "last of noisy": 1}, 0, map[string]int{"warning of noisy": warningsBurst, "last of noisy": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, clk := &heard{of: map[string]int{}}, clocktesting.NewFakeClock(nine)
			tc.tell(newRecorder(got, clk, idle))
			if tc.atOnce != nil && !maps.Equal(got.counts(), tc.atOnce) {
				t.Errorf("got %v first, want %v: %s", got.counts(), tc.atOnce, tc.reason)
			}
			want := tc.want
			if want == nil {
				want = map[string]int{}
				for n := range allFinalBurst + 200 {
					want["last of "+fmt.Sprint(n%100)]++
				}
			}
			// A waiting goroutine may not have started its timer yet, so the clock advances until all events are
			// emitted.
			deadline := time.Now().Add(time.Minute)
			for clk.Step(tc.wait); !maps.Equal(got.counts(), want); clk.Step(time.Second) {
				if time.Now().After(deadline) {
					t.Fatalf("%v, want %v: %s", got.counts(), want, tc.reason)
				}
			}
		})
	}
	clk := clocktesting.NewFakeClock(nine)
	r := newRecorder(&heard{of: map[string]int{}}, clk, idle)
	for n := range 3 * manyTeams {
		warn(r, fmt.Sprint(n), 1)
		clk.Step(time.Second)
	}
	if len(r.teams) > manyTeams {
		t.Errorf("%d teams without events are stored", len(r.teams))
	}
}

func TestSubjects(t *testing.T) {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", UID: "u", ResourceVersion: "7"},
		Spec:       v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}}, {ConnectionRef: v1alpha1.LocalReference{Name: "x"}}}},
	}
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x", UID: "c"}}
	about := func(target string) *corev1.ObjectReference {
		return &corev1.ObjectReference{APIVersion: "social.herald.dev/v1alpha1", Kind: "Post", Namespace: "team", Name: "p", UID: "u", ResourceVersion: "7", FieldPath: target}
	}
	to := func(kind, name, uid string) *corev1.ObjectReference {
		return &corev1.ObjectReference{APIVersion: "social.herald.dev/v1alpha1", Kind: kind, Namespace: "team", Name: name, UID: types.UID(uid)}
	}
	for name, tc := range map[string]struct {
		reason         string
		got            subject
		about, related runtime.Object
	}{
		"a target":                       {"its connection is related", targetSubject(post, 0, conn), about("spec.targets[0]"), to("Connection", "x", "c")},
		"another one of that connection": {"its field differs", targetSubject(post, 1, conn), about("spec.targets[1]"), to("Connection", "x", "c")},
		"a connection that is gone":      {"its name is known", targetSubject(post, 1, nil), about("spec.targets[1]"), to("Connection", "x", "")},
		"a target that an edit removed":  {"its account is unknown", targetSubject(post, 2, nil), about("spec.targets[2]"), nil},
		"a file":                         {"a target may have many files", mediaSubject(post, 0, "film", nil), about("spec.targets[0]"), to("Media", "film", "")},
		"a target whose namespace is being deleted": {
			"the namespace does not accept events", deletedSubject(targetSubject(post, 1, conn), post, true),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, about("spec.targets[1]"),
		},
		"a post whose namespace is being deleted": {"its namespace rejects events", deletedSubject(postSubject(post), post, true), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, about("")},
		"a single deleted post":                   {"its namespace accepts events", deletedSubject(postSubject(post), post, false), about(""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(tc.got.about, tc.got.related); got != fmt.Sprint(tc.about, tc.related) {
				t.Errorf("%s, want %v %v: %s", got, tc.about, tc.related, tc.reason)
			}
		})
	}
}
