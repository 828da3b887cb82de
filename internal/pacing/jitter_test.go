// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestFraction(t *testing.T) {
	low, high := 1.0, 0.0
	for i := range 1000 {
		f := Fraction(types.UID(fmt.Sprint(i)))
		low, high = min(low, f), max(high, f)
	}
	if low < 0 || high >= 1 || low > 0.1 || high < 0.9 {
		t.Errorf("a thousand objects lie between %g and %g", low, high)
	}
}

func TestDurations(t *testing.T) {
	const hour = time.Hour
	within, around := map[time.Duration]bool{}, map[time.Duration]bool{}
	for i := range 1000 {
		uid := types.UID(fmt.Sprint(i))
		w, a := Spread(hour, uid), Jitter(hour, uid)
		if w < 0 || w >= hour || a < 54*time.Minute || a > 66*time.Minute {
			t.Fatalf("%v within, and %v around, an hour", w, a)
		}
		if w != Spread(hour, uid) || a != Jitter(hour, uid) {
			t.Fatal("two objects have the same delay")
		}
		within[w.Truncate(6*time.Minute)], around[a.Truncate(time.Minute)] = true, true
	}
	if len(within) != 10 || len(around) != 12 {
		t.Errorf("only %d of 10 parts of an hour, and %d of 12 minutes around it, are used", len(within), len(around))
	}
}
