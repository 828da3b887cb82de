// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"testing"

	"github.com/herald-social/herald/platforms"
)

// TestSessions tests that the sessions of replaced app passwords do not accumulate in memory, and that a session in use
// outlives them.
func TestSessions(t *testing.T) {
	t.Parallel()
	known := newSessions(2)
	of := func(password string) *signIn { return known.of(platforms.Token{Access: "acme.test:" + password}) }
	used, replaced := of("used"), of("replaced")
	for _, tc := range []struct {
		name, password string
		want           *signIn
	}{
		{"a session is found again", "used", used},
		{"a third one replaces the one that was not used for longest", "new", nil},
		{"the one in use remains", "used", used},
	} {
		if got := of(tc.password); tc.want != nil && got != tc.want || got == replaced {
			t.Errorf("%s: got another session", tc.name)
		}
		if n := known.known.Len(); n > 2 {
			t.Errorf("%s: %d sessions are in memory, want at most 2", tc.name, n)
		}
	}
	if of("replaced") == replaced {
		t.Error("the replaced session is still in memory")
	}
}
