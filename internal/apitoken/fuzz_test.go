// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apitoken_test

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/apitoken"
)

// FuzzParse parses untrusted tokens: the id for the lookup is short, and the secret is not shown.
func FuzzParse(f *testing.F) {
	token := apitoken.New("team-acme", "ci")
	f.Add(token)
	f.Add(token[:len(token)-1])
	f.Add("hrld_" + strings.Repeat("a", 300))
	f.Add("hrld__")
	f.Fuzz(func(t *testing.T, token string) {
		id, ok := apitoken.Parse(token)
		if !ok {
			return
		}
		shown := apitoken.Shown(token)
		if id == "" || !strings.HasPrefix(token, "hrld_"+id+"_") || !strings.HasPrefix(token, shown) {
			t.Errorf("%q has the id %q, and is shown as %q", token, id, shown)
		}
		if hidden := len(token) - len(shown); hidden < 43 {
			t.Errorf("%q is shown as %q: %d characters are hidden", token, shown, hidden)
		}
	})
}
