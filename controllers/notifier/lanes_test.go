// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestLanes(t *testing.T) {
	l := newLanes()
	leave := func() {}
	for range slowCalls {
		var err error
		if leave, err = l.enter(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.enter(ended, true); !errors.Is(err, context.Canceled) {
		t.Errorf("the lane has one more slow call than places: %v", err)
	}
	if _, err := l.enter(t.Context(), false); err != nil {
		t.Errorf("slow calls take other receivers' places: %v", err)
	}
	leave()
	if _, err := l.enter(t.Context(), true); err != nil {
		t.Errorf("a released place is not free: %v", err)
	}
}

// TestLaneOfANewWorker checks that receivers that failed before a restart do not delay the others after it.
func TestLaneOfANewWorker(t *testing.T) {
	r := &Reconciler{Options: Options{Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}}
	n := &v1alpha1.Notifier{}
	if newWorker(r, nil, n).isSlow {
		t.Error("a new receiver may be quick")
	}
	n.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailing, Status: metav1.ConditionTrue, Message: failingMessage + "it took too long to respond"}}
	if w := newWorker(r, nil, n); !w.isSlow || w.failing != "it took too long to respond" {
		t.Errorf("the state of the receiver is lost: slow %v, %q", w.isSlow, w.failing)
	}
}
