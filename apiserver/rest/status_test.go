// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"testing"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest"
)

// TestOf verifies that every code of package bridge has an explicit status, and that an unknown code is an internal
// error.
func TestOf(t *testing.T) {
	t.Parallel()
	for code, want := range map[bridge.Code]int{
		bridge.CodeValidation: 400, bridge.CodeTikTokPrivacy: 400, bridge.CodeUnauthorized: 401, bridge.CodeSubscriptionRequired: 403,
		bridge.CodeNotFound: 404, bridge.CodeConflict: 409, bridge.CodeReconnectRequired: 409, bridge.CodeReadinessUnavailable: 409,
		bridge.CodeRateLimited: 429, bridge.CodeInternal: 500, "NEW": 500,
	} {
		if got := rest.StatusOf(code); got != want {
			t.Errorf("%s is answered with %d, want %d", code, got, want)
		}
	}
}
