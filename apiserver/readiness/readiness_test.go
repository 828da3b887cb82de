// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/readiness"
)

// world is one connection as the Kubernetes API and this process see it.
type world struct {
	mu       sync.Mutex
	seen     *v1alpha1.Connection // reported by the watch
	version  uint64
	requests []string
	err      error
	change   chan struct{}
	// requested is called after each request for a check, with its token.
	requested func(w *world, token string)
}

func (w *world) Get(string, string) *v1alpha1.Connection {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

func (w *world) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.change
}

func (w *world) RequestProbe(_ context.Context, _, _, token string) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	w.version++
	w.requests = append(w.requests, token)
	if w.requested != nil {
		version := w.version
		go func() { w.requested(w, token) }()
		return version, nil
	}
	return w.version, nil
}

// updateConnection makes the watch report the connection after a delay.
func (w *world) updateConnection(after time.Duration, edit func(*v1alpha1.Connection)) {
	time.Sleep(after) //nolint:forbidigo // inside a synctest bubble, where it takes no time
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.seen.DeepCopy()
	w.version++
	next.ResourceVersion = strconv.FormatUint(w.version, 10)
	edit(next)
	w.seen = next
	close(w.change)
	w.change = make(chan struct{})
}

func condition(status metav1.ConditionStatus, reason, message string) func(*v1alpha1.Connection) {
	return func(c *v1alpha1.Connection) {
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
}

// handled returns the manager's result of a check.
func handled(token string, result func(*v1alpha1.Connection)) func(*v1alpha1.Connection) {
	return func(c *v1alpha1.Connection) {
		c.Annotations = map[string]string{v1alpha1.ProbeAnnotation: token}
		c.Status.LastHandledProbe = token
		result(c)
	}
}

var good = condition(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")

func TestCheck(t *testing.T) {
	t.Parallel()
	const silent = "its platform has not answered yet"
	bad := condition(metav1.ConditionFalse, v1alpha1.ReasonRevoked, "withdrawn")
	away := condition(metav1.ConditionFalse, v1alpha1.ReasonPlatformUnavailable, "503")
	probed := func(result func(*v1alpha1.Connection), ago time.Duration) func(*v1alpha1.Connection, time.Time) {
		return func(c *v1alpha1.Connection, now time.Time) {
			result(c)
			c.Status.LastProbedAt = v1alpha1.NewTimePtr(now.Add(-ago))
		}
	}
	answers := func(result func(*v1alpha1.Connection)) func(*world, string) {
		return func(w *world, token string) { w.updateConnection(time.Second, handled(token, result)) }
	}
	ready, asked := readiness.Result{State: readiness.Ready}, func(message string) readiness.Result { return readiness.Result{Message: message} }
	for name, tc := range map[string]struct {
		reason     string
		connection func(c *v1alpha1.Connection, now time.Time)
		err        error                        // of the request
		answer     func(w *world, token string) // runs after it
		want       readiness.Result
		took       time.Duration
		asked      int
	}{
		"FreshAndGood": {"a good check younger than a minute is reused", probed(good, 59*time.Second), nil, nil, ready, 0, 0},
		"GoodButOld":   {"a good check that is a minute old is not reused", probed(good, time.Minute), nil, nil, asked(silent), 5 * time.Second, 1},
		"GoodForAnEarlierSpec": {"a check from before a change of the spec is not reused", func(c *v1alpha1.Connection, now time.Time) {
			probed(good, 0)(c, now)
			c.Generation, c.Status.ObservedGeneration = 2, 1
		}, nil, nil, asked(silent), 5 * time.Second, 1},
		"FreshButBad": {"a bad check is never reused: the cause may have been corrected", probed(bad, 0), nil, answers(good), ready, time.Second, 1},
		"Disabled": {
			"a disabled connection is not probed", func(c *v1alpha1.Connection, _ time.Time) { c.Spec.Disabled = true }, nil, nil,
			readiness.Result{State: readiness.Reconnect, Message: "it is disabled"},
			0, 0,
		},
		"Revoked": {
			"a user has to replace a revoked token", nil, nil, answers(bad), readiness.Result{State: readiness.Reconnect, Message: "withdrawn"}, time.Second, 1,
		},
		"PlatformDown": {"an outage is temporary", nil, nil, answers(away), asked("503"), time.Second, 1},
		"NoCondition": {
			"an update without a result is not a response", nil, nil, answers(func(*v1alpha1.Connection) {}), asked(silent), time.Second, 1,
		},
		"ChangesThatAreNoAnswer": {"other updates of the connection are not a response", nil, nil, func(w *world, token string) {
			w.updateConnection(time.Second, func(c *v1alpha1.Connection) { c.Status.AccountName = "Acme" })
			answers(good)(w, token)
		}, ready, 2 * time.Second, 1},
		"AnswerToAnEarlierRequest": {"the watch is delayed: it reports an earlier request and its response", nil, nil, func(w *world, token string) {
			w.updateConnection(time.Second, func(c *v1alpha1.Connection) {
				handled("earlier", bad)(c)
				c.ResourceVersion = "1"
			})
			answers(good)(w, token)
		}, ready, 2 * time.Second, 1},
		"AnotherReplicaAskedAfterUs": {
			"another request replaced this one, so its response is the only one", nil, nil,
			func(w *world, _ string) { answers(good)(w, "theirs") }, ready, time.Second, 1,
		},
		"Removed": {
			"the connection was just deleted", nil, apierrors.NewNotFound(schema.GroupResource{Resource: "connections"}, "c"), nil,
			readiness.Result{State: readiness.Reconnect, Message: "it has been removed"},
			0, 0,
		},
		"KubernetesDown": {"the request could not be written", nil, errors.New("boom"), nil, asked("its check could not be requested"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{
					change: make(chan struct{}), version: 10, err: tc.err, requested: tc.answer,
					seen: &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", ResourceVersion: "10"}},
				}
				start := time.Now()
				if tc.connection != nil {
					tc.connection(w.seen, start)
				}
				got := readiness.NewChecker(w, clock.RealClock{}, slog.New(slog.DiscardHandler)).Check(t.Context(), w.seen)
				if got != tc.want {
					t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("%s: waited %s, want %s", tc.reason, took, tc.took)
				}
				if len(w.requests) != tc.asked {
					t.Errorf("%s: sent %d probes, want %d", tc.reason, len(w.requests), tc.asked)
				}
			})
		})
	}
}

// TestCheckTogether verifies that concurrent checks of a connection share one request, that a cancelled caller does not
// end it for the others, and that the next check sends a new request.
func TestCheckTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			change: make(chan struct{}), version: 10,
			seen: &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", ResourceVersion: "10"}},
			requested: func(w *world, token string) {
				w.updateConnection(time.Second, handled(token, condition(metav1.ConditionFalse, v1alpha1.ReasonRevoked, "withdrawn")))
			},
		}
		checker := readiness.NewChecker(w, clock.RealClock{}, slog.New(slog.DiscardHandler))
		impatient, leave := context.WithCancel(t.Context())
		first := make(chan readiness.Result, 1)
		go func() { first <- checker.Check(impatient, w.seen) }()
		synctest.Wait()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if got := checker.Check(t.Context(), w.Get("n", "c")); got.State != readiness.Reconnect {
					t.Errorf("got %+v, want reconnect", got)
				}
			})
		}
		synctest.Wait()
		leave()
		if got := <-first; got.State != readiness.Unavailable {
			t.Errorf("an aborted request gets %+v, want unavailable", got)
		}
		wg.Wait()
		if len(w.requests) != 1 {
			t.Errorf("sent %d probes for concurrent requests, want 1", len(w.requests))
		}
		checker.Check(t.Context(), w.Get("n", "c"))
		if len(w.requests) != 2 {
			t.Errorf("sent %d probes in total, want 2: a failed check is not reused", len(w.requests))
		}
	})
}
