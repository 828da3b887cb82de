// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import "testing"

func TestErrorJoinsProblemAndRemedy(t *testing.T) {
	for want, err := range map[string]*Error{
		"X is busy": Errorf(ClassTransient, "%s is busy", "X"),
		"the token has ended; connect the account again": {Problem: "the token has ended", Remedy: "connect the account again"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
