// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestRemembers shows which sessions of a Secret are used: the one that the post's status
// has the hash of, whoever wrote the Secret.
func TestRemembers(t *testing.T) {
	genuine := Session{ContentHash: "content", Checkpoint: "checkpoint", Secret: "https://upload.example/?id=1"}
	noted := genuine.hash()
	for name, tc := range map[string]struct {
		reason string
		kept   Session
		noted  string
		want   bool
	}{
		"the same":           {"it is the one that was stored", genuine, noted, true},
		"another address":    {"it leads elsewhere", Session{"content", "checkpoint", "http://10.0.0.1/"}, noted, false},
		"another checkpoint": {"it is another upload", Session{"content", "another", genuine.Secret}, noted, false},
		"another content":    {"it was made for another content", Session{"another", "checkpoint", genuine.Secret}, noted, false},
		"moved bytes":        {"the parts are told apart", Session{"contentc", "heckpoint", genuine.Secret}, noted, false},
		"nothing noted":      {"what nobody remembers was never used for a call", genuine, "", false},
		"nothing kept":       {"and nothing is no session", Session{}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			post := &v1alpha1.Post{Status: v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{Prepared: &v1alpha1.Prepared{SecretHash: tc.noted}}}}}
			post.Spec.Targets = make([]v1alpha1.PostTarget, 1)
			owner := ownerOf(post, 0, "content")
			if owner.remembers(&tc.kept) != tc.want {
				t.Errorf("%s: remembered is %v", tc.reason, !tc.want)
			}
		})
	}
}
