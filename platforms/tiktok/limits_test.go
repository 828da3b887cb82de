// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"testing"

	"github.com/herald-social/herald/platforms"
)

// TestWhomALimitStops tells the limit for drafts, which does not affect direct posts, from the account's limits.
func TestWhomALimitStops(t *testing.T) {
	for code, alone := range map[string]bool{
		"spam_risk_too_many_pending_share": true, "spam_risk_too_many_posts": false, "reached_active_user_cap": false,
	} {
		t.Run(code, func(t *testing.T) {
			_, p := newDesk(t)
			for name, got := range map[string]*platforms.Error{
				"answer": p.classify(apiError{status: http.StatusForbidden, code: code}).Error, "status": failedOf(code),
			} {
				if got.Class != platforms.ClassQuota || got.PostOnly != alone {
					t.Errorf("%s: got %+v, want a quota, of drafts alone: %v", name, got, alone)
				}
			}
		})
	}
}
