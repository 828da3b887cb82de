// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// TestVerifyStored compares a claim with the object that an API server returns for it.
func TestVerifyStored(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 9, 0, 0, 123_456_789, time.UTC)
	for name, tt := range map[string]struct {
		reason string
		drop   func(*v1alpha1.TargetStatus)
		want   error
	}{
		"whole":           {"times are truncated to milliseconds, and invalid UTF-8 is replaced", func(*v1alpha1.TargetStatus) {}, nil},
		"no attempt":      {"the post would be sent again", func(s *v1alpha1.TargetStatus) { s.Attempt = nil }, ErrDropped},
		"no state":        {"its outcome could not be stored", func(s *v1alpha1.TargetStatus) { s.State = "" }, ErrDropped},
		"no window":       {"the attempt could never be settled", func(s *v1alpha1.TargetStatus) { s.Attempt.SendBefore = v1alpha1.Time{} }, ErrDropped},
		"no message":      {"an older CRD may drop the message", func(s *v1alpha1.TargetStatus) { s.Message = "" }, ErrDropped},
		"a default":       {"a newer CRD may add defaults", func(s *v1alpha1.TargetStatus) { s.ExternalURL = "https://x.example/1" }, nil},
		"another attempt": {"another attempt was written", func(s *v1alpha1.TargetStatus) { s.Attempt.ID = "b" }, ErrDropped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := &v1alpha1.Post{Status: v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{
				Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPending, Message: "a platform said \xff",
				Attempt: &v1alpha1.Attempt{Number: 1, ID: "a", SendBefore: v1alpha1.NewTime(at)},
			}}}}
			written, err := json.Marshal(post.Status.Targets)
			must.Succeed(t, err)
			answered := &v1alpha1.Post{}
			must.Succeed(t, json.Unmarshal(written, &answered.Status.Targets))
			tt.drop(&answered.Status.Targets[0])
			if got := verifyStored(written, answered); !errors.Is(got, tt.want) {
				t.Errorf("%v, want %v (%s)", got, tt.want, tt.reason)
			}
		})
	}
}
