// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"

	"github.com/herald-social/herald/apiserver/bridge"
)

// StatusOf returns a code's HTTP status (contract, section Errors, and version 2). Package bridge is independent of HTTP.
func StatusOf(code bridge.Code) int {
	switch code {
	case bridge.CodeValidation, bridge.CodeTikTokPrivacy:
		return http.StatusBadRequest
	case bridge.CodeUnauthorized:
		return http.StatusUnauthorized
	case bridge.CodeSubscriptionRequired, bridge.CodeInsufficientScope:
		return http.StatusForbidden
	case bridge.CodeNotFound:
		return http.StatusNotFound
	case bridge.CodeConflict, bridge.CodeReconnectRequired, bridge.CodeReadinessUnavailable:
		return http.StatusConflict
	case bridge.CodePreconditionFailed:
		return http.StatusPreconditionFailed
	case bridge.CodePreconditionRequired:
		return http.StatusPreconditionRequired
	case bridge.CodeRateLimited:
		return http.StatusTooManyRequests
	case bridge.CodeInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusInternalServerError
	}
}
