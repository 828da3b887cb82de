// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import "testing"

func TestPasswordToken(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	for name, tc := range map[string]struct{ reason, user, password, want string }{
		"handle":        {"users type their handle", "acme.bsky.social", "abcd-efgh-ijkl-mnop", "acme.bsky.social:abcd-efgh-ijkl-mnop"},
		"with an at":    {"pages show handles with an @", " @acme.bsky.social ", " abcd-efgh-ijkl-mnop\n", "acme.bsky.social:abcd-efgh-ijkl-mnop"},
		"DID":           {"the id contains colons", "did:plc:abc", "2345-efgh-ijkl-mnop", "did:plc:abc:2345-efgh-ijkl-mnop"},
		"no domain":     {"a handle contains a dot", "acme", "abcd-efgh-ijkl-mnop", ""},
		"own password":  {"the account's own password would grant every right", "acme.bsky.social", "correct horse", ""},
		"another shape": {"servers create only this form", "acme.bsky.social", "abcd-efgh-ijkl-mno1", ""},
	} {
		got, err := p.PasswordToken(tc.user, tc.password)
		if got.Access != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %s: %q, %v", name, tc.reason, got.Access, err)
		}
	}
}
