// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
)

// Fail responds with the status.
func (a *API) Fail(w http.ResponseWriter, _ faults.Operation, status int) { a.fail(w, failure(status)) }

// RateLimited responds with a rate limit error in the API's own format. A header contains the time until the next retry
// in whole minutes, rounded up.
func (a *API) RateLimited(w http.ResponseWriter, r *faults.Request, _ faults.Operation, retryAfter time.Duration) {
	w.Header().Set("X-App-Usage", usage(100))
	whose := a.account(r)
	if whose == "" {
		whose = "0"
	}
	minutes := int((retryAfter + time.Minute - time.Nanosecond) / time.Minute)
	w.Header().Set("X-Business-Use-Case-Usage", fmt.Sprintf(`{%q:[{"type":%q,"call_count":100,"total_cputime":25,"total_time":25,`+
		`"estimated_time_to_regain_access":%d}]}`, whose, a.Limit.Usage, minutes))
	a.fail(w, Error{
		Status: a.Limit.Status, Type: typeOAuth, Code: a.Limit.Code, Message: a.Limit.Message, Transient: a.Limit.Code == appLimit,
	})
}

// Refused responds that the account is temporarily blocked, with the API's own code; that a permission is missing; or that a parameter is
// invalid.
func (a *API) Refused(w http.ResponseWriter, _ faults.Operation, why faults.Refusal) {
	switch why {
	case faults.RefusalSpam:
		a.fail(w, a.Block)
	case faults.RefusalPermission:
		a.fail(w, Error{
			Status: http.StatusForbidden, Type: typeOAuth, Code: a.PermissionCode,
			Message: fmt.Sprintf("(#%d) Application does not have permission for this action", a.PermissionCode),
		})
	default:
		a.fail(w, failure(http.StatusBadRequest))
	}
}

// SpamBlock returns Instagram's and Threads' error for an account blocked on suspicion of spam. It has the app rate limit's code (Instagram
// Platform, "Error Codes").
func SpamBlock() Error {
	return *Refusal(appLimit, "Application request limit reached").Because(2207051, "Action is blocked",
		"We restrict certain activity to protect our community. Tell us if you think we made a mistake.")
}

// Abuse returns Facebook's error for a Page that is blocked from posting ("Handling Errors": code 368, temporarily blocked for policies
// violations).
func Abuse() Error {
	return *Refusal(368, "The action attempted has been deemed abusive or is otherwise disallowed").Because(1390008,
		"You can't use this feature right now", "We limit how often you can post in a given amount of time. Try again later.")
}

// appLimit is the app rate limit's code, which the platform marks as transient.
const appLimit = 4

// TokenRefused responds as for a revoked token, or one that expired an hour ago.
func (a *API) TokenRefused(w http.ResponseWriter, _ faults.Operation, revoked bool) {
	if revoked {
		a.fail(w, *revokedToken())
		return
	}
	now := a.Clock.Now()
	a.fail(w, *expiredToken(now.Add(-time.Hour), now))
}

// usage returns the X-App-Usage content: percentages of the app's limits. Calls never exhaust them, because tests and benchmarks would
// exceed the limits.
func usage(percent int) string {
	content, err := json.Marshal(map[string]int{"call_count": percent, "total_cputime": percent, "total_time": percent})
	if err != nil {
		return "{}"
	}
	return string(content)
}
