// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
}

// However long an operation has failed, it is retried soon after it can succeed.
func TestPauses(t *testing.T) {
	limiter, waited := NewRateLimiter(), time.Duration(0)
	for n := range 1000 {
		longest := min(FirstRetry<<min(n, 20), MaxRetry)
		pause := limiter.When(request("one"))
		if pause < longest/2 || pause > longest {
			t.Fatalf("pause %d is %s, want between %s and %s", n, pause, longest/2, longest)
		}
		waited += pause
	}
	if waited < time.Hour {
		t.Fatalf("a thousand retries took only %s", waited)
	}
	if pause := limiter.When(request("another")); pause > FirstRetry {
		t.Errorf("an object's first retry waits for %s because of other objects", pause)
	}
	limiter.Forget(request("one"))
	if pause := limiter.When(request("one")); pause > FirstRetry {
		t.Errorf("a successful one waits for %s", pause)
	}
}

// Operations that failed at the same moment are not retried at the same moment: the recovered API would reject most of
// them.
func TestSpread(t *testing.T) {
	limiter, pauses := NewRateLimiter(), map[time.Duration]bool{}
	for n := range 100 {
		name := request(string(rune('a' + n)))
		for range 20 {
			limiter.When(name)
		}
		pauses[limiter.When(name)] = true
	}
	if len(pauses) < 50 {
		t.Errorf("100 objects are retried at %d times", len(pauses))
	}
}
