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

// Fail answers that status.
func (a *API) Fail(w http.ResponseWriter, _ faults.Operation, status int) { a.fail(w, failure(status)) }

// RateLimited answers that there were too many requests, in the API's own form. When to come back stands in a header, in
// whole minutes and never too early.
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

// Refused answers that the account is blocked for a while, with the code of the API's own, that a permission is missing, or
// that a parameter is wrong.
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

// SpamBlock is how Instagram and Threads keep an account from posting that they suspect of spam. Its code is that of a limit
// of the app ("Error Codes" of the Instagram Platform).
func SpamBlock() Error {
	return *Refusal(appLimit, "Application request limit reached").Because(2207051, "Action is blocked",
		"We restrict certain activity to protect our community. Tell us if you think we made a mistake.")
}

// Abuse is how Facebook keeps a Page from posting ("Handling Errors": code 368, temporarily blocked for policies violations).
func Abuse() Error {
	return *Refusal(368, "The action attempted has been deemed abusive or is otherwise disallowed").Because(1390008,
		"You can't use this feature right now", "We limit how often you can post in a given amount of time. Try again later.")
}

// appLimit is the code of the limit of the whole app: the one that the platform calls transient.
const appLimit = 4

// TokenRefused answers as to a token whose hour is over, or that was taken back.
func (a *API) TokenRefused(w http.ResponseWriter, _ faults.Operation, revoked bool) {
	if revoked {
		a.fail(w, *revokedToken())
		return
	}
	now := a.Clock.Now()
	a.fail(w, *expiredToken(now.Add(-time.Hour), now))
}

// usage is the content of X-App-Usage: percents of what the app may use. None is ever used up by calling: a limit that
// tests and benchmarks ran into would be in their way.
func usage(percent int) string {
	content, err := json.Marshal(map[string]int{"call_count": percent, "total_cputime": percent, "total_time": percent})
	if err != nil {
		return "{}"
	}
	return string(content)
}
