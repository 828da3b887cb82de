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
