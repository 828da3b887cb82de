// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// folds handles events like client-go: it counts events with the same key, and drops their notes.
type folds map[string]string

func (f folds) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	key := fmt.Sprint(regarding, related, kind, reason, action)
	if _, ok := f[key]; !ok {
		f[key] = fmt.Sprintf(note, args...)
	}
}

var _ events.EventRecorder = folds{}

func TestEvents(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", ResourceVersion: "1"}}
	other := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q", ResourceVersion: "1"}}
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"}}
	warn := func(r events.EventRecorder, about, related runtime.Object, notes ...string) {
		for _, note := range notes {
			r.Eventf(about, related, "Warning", "Refused", "Deliver", "%s", note)
		}
	}
	for name, tc := range map[string]struct {
		reason string
		tell   func(r events.EventRecorder, clk *clocktesting.FakeClock)
		want   []string
	}{
		"one":          {"the events are one series", func(r events.EventRecorder, _ *clocktesting.FakeClock) { warn(r, post, nil, "a") }, []string{"a"}},
		"a repetition": {"client-go counts repetitions", func(r events.EventRecorder, _ *clocktesting.FakeClock) { warn(r, post, nil, "a", "a", "a") }, []string{"a"}},
		"another note": {"a shared series would lose the second note", func(r events.EventRecorder, _ *clocktesting.FakeClock) { warn(r, post, nil, "a", "b") }, []string{"a", "b"}},
		"in turn":      {"each note has its own series", func(r events.EventRecorder, _ *clocktesting.FakeClock) { warn(r, post, conn, "a", "b", "a", "b", "c") }, []string{"a", "b", "c"}},
		"another object": {"the other object has its own key", func(r events.EventRecorder, _ *clocktesting.FakeClock) {
			warn(r, post, nil, "a")
			warn(r, other, nil, "a")
		}, []string{"a", "a"}},
		"another related": {"each related object has its own series", func(r events.EventRecorder, _ *clocktesting.FakeClock) {
			warn(r, post, nil, "a")
			warn(r, post, conn, "a")
		}, []string{"a", "a"}},
		"percent signs": {"a note is not a format string", func(r events.EventRecorder, _ *clocktesting.FakeClock) { warn(r, post, nil, "100%d") }, []string{"100%d"}},
		"minutes later": {"client-go stores a series for up to twelve minutes", func(r events.EventRecorder, clk *clocktesting.FakeClock) {
			warn(r, post, nil, "a")
			clk.Step(12 * time.Minute)
			warn(r, post, nil, "b")
		}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, clk := folds{}, clocktesting.NewFakeClock(time.Unix(0, 0))
			tc.tell(NewEventRecorder(got, scheme, clk), clk)
			var notes []string
			for _, note := range got {
				notes = append(notes, note)
			}
			slices.Sort(notes)
			if !slices.Equal(notes, tc.want) {
				t.Errorf("%q, want %q: %s", notes, tc.want, tc.reason)
			}
		})
	}
}

// The Kubernetes API rejects an event whose note or action is too long.
func TestBounds(t *testing.T) {
	got := folds{}
	r := NewEventRecorder(got, runtime.NewScheme(), clocktesting.NewFakeClock(time.Unix(0, 0)))
	for n := range 300 {
		r.Eventf(&v1alpha1.Post{}, nil, "Warning", "Refused", "Deliver", "%d%s", n, strings.Repeat("é", 2000))
	}
	if len(got) != 300 {
		t.Errorf("%d events for 300 different notes", len(got))
	}
	for _, note := range got {
		if len(note) > 1024 {
			t.Errorf("a note has %d bytes", len(note))
		}
	}
}

func TestNoRecorder(t *testing.T) {
	if got := NewEventRecorder(nil, runtime.NewScheme(), clocktesting.NewFakePassiveClock(time.Now())); got != nil {
		t.Errorf("without a recorder, got %T, want nil because controllers compare with nil", got)
	}
}
