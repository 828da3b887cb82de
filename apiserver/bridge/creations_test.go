// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// TestCreations follows the creations in a namespace, of ten bytes each. The index contains those in seen.
func TestCreations(t *testing.T) {
	t.Parallel()
	f, seen, started := newCreations(), map[string]bool{}, map[string]func(bool, time.Time){}
	for _, step := range []struct {
		why, do, name string
		at            time.Duration
		want          string // the other creations with their bytes, and those that are remembered
	}{
		{"the first one", "begin", "a", 0, "0 0 [a]"},
		{"the post is not in the index yet", "begin", "b", 0, "1 10 [a b]"},
		{"a retry is the same creation", "begin", "a", 0, "1 10 [a b]"},
		{"a rejected creation is not remembered", "refuse", "c", 0, "2 20 [a b]"},
		{"a failed creation is not remembered", "fail", "b", 0, "[a]"},
		{"its other request may succeed", "fail", "a", 0, "[a]"},
		{"a successful creation is remembered", "land", "a", time.Second, "[a]"},
		{"the index does not show the post yet", "begin", "d", 2 * time.Second, "1 10 [a d]"},
		{"the post is in the index", "see", "a", 2 * time.Second, "[a d]"},
		{"the index counts it from now on", "begin", "e", 2 * time.Second, "1 10 [d e]"},
		{"a successful creation is remembered for ten seconds", "land", "d", 2 * time.Second, "[d e]"},
		{"the post was deleted before the index showed it", "begin", "f", 12 * time.Second, "1 10 [e f]"},
		{"the index shows it before its response", "see", "e", 12 * time.Second, "[e f]"},
		{"the outcome is unknown, so the post may be sent again", "begin", "g", 12 * time.Second, "1 10 [e f g]"},
		{"the other creation succeeded", "land", "e", 12 * time.Second, "[e f g]"},
		{"a repeated outcome counts once", "land", "f", 12 * time.Second, "[e f g]"},
		{"the last one failed", "fail", "g", 12 * time.Second, "[e f]"},
		{"the budget is used up", "refuse", "h", time.Minute, "0 0 none"},
		{"the next one is rejected immediately", "begin", "i", time.Minute, "0 0 [i]"},
		{"the budget has room again", "fail", "i", time.Minute, "none"},
	} {
		now, got := time.Unix(0, 0).Add(step.at), ""
		switch step.do {
		case "see":
			seen[step.name] = true
		case "fail", "land":
			started[step.name](step.do == "land", now)
		default:
			land, refused := f.admit("acme", step.name, 10, now, func(names []string) (known []bool) {
				for _, name := range names {
					known = append(known, seen[name])
				}
				return known
			}, func(more, moreBytes int64) *Error {
				got = fmt.Sprint(more, moreBytes, " ")
				if step.do == "refuse" {
					return errorf(CodeSubscriptionRequired, "full")
				}
				return nil
			})
			if (refused != nil) != (step.do == "refuse") {
				t.Fatalf("%s %s: %v", step.do, step.name, refused)
			}
			started[step.name] = land
		}
		if under, ok := f.under["acme"]; ok {
			got += fmt.Sprint(slices.Sorted(maps.Keys(under)))
		} else {
			got += "none"
		}
		if got != step.want {
			t.Errorf("%s %s: %q, want %q (%s)", step.do, step.name, got, step.want, step.why)
		}
	}
}
