// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	typeBlank  = "about:blank"
	problemURL = "https://api.x.com/2/problems/"
	// notAuthorized is the problem type for objects of another account and permissions that the token lacks.
	notAuthorized = problemURL + "not-authorized-for-resource"
	// notPermitted is X's generic message.
	notPermitted = "You are not permitted to perform this action."
)

// problem is X's error body, in the style of RFC 7807.
type problem struct {
	Errors []badParameter `json:"errors,omitempty"`
	Title  string         `json:"title"`
	Detail string         `json:"detail"`
	Type   string         `json:"type"`
	Status int            `json:"status"`
}

// badParameter is the problem with one part of the request.
type badParameter struct {
	Parameters map[string][]string `json:"parameters"`
	Message    string              `json:"message"`
}

func unauthorized() *problem {
	return &problem{Title: "Unauthorized", Detail: "Unauthorized", Type: typeBlank, Status: http.StatusUnauthorized}
}

func forbidden(detail, kind string) *problem {
	return &problem{Title: "Forbidden", Detail: detail, Type: kind, Status: http.StatusForbidden}
}

// invalid returns the problem for a request that violates the schema or a documented limit.
func invalid(errs ...badParameter) *problem {
	return &problem{
		Errors: errs, Title: "Invalid Request", Detail: "One or more parameters to your request was invalid.",
		Type: problemURL + "invalid-request", Status: http.StatusBadRequest,
	}
}

// invalidBody is like invalid, for one part of the body.
func invalidBody(message string) *problem {
	return invalid(badParameter{Parameters: map[string][]string{}, Message: message})
}

// problemFor returns the generic body for a status.
func problemFor(status int) *problem {
	switch status {
	case http.StatusBadRequest:
		return invalid()
	case http.StatusPaymentRequired:
		return &problem{
			Title: "CreditsDepleted", Detail: "Your enrolled account does not have any credits to fulfill this request.",
			Type: problemURL + "credits", Status: status,
		}
	case http.StatusForbidden:
		return forbidden(notPermitted, typeBlank)
	case http.StatusNotFound:
		return &problem{
			Title: "Not Found Error", Detail: "Could not find what was requested.", Type: problemURL + "resource-not-found", Status: status,
		}
	case http.StatusInternalServerError:
		return &problem{Title: "Internal Server Error", Detail: "Something is broken.", Type: typeBlank, Status: status}
	default:
		text := http.StatusText(status)
		return &problem{Title: text, Detail: text, Type: typeBlank, Status: status}
	}
}

// broken logs an internal sandbox error and returns the problem for it, or nil if err is nil.
func (p *Platform) broken(what, id string, err error) *problem {
	if err == nil {
		return nil
	}
	p.Logger.Error("the simulated X is broken", "what", what, "id", id, "error", err)
	return problemFor(http.StatusInternalServerError)
}

// fail responds with a problem.
func (p *Platform) fail(w http.ResponseWriter, of endpoint, with *problem) {
	p.rateHeaders(w, of, with.Status == http.StatusTooManyRequests)
	simulator.WriteJSON(w, with.Status, "application/problem+json", with)
}

// answer responds with the problem, or with data if there is none.
func (p *Platform) answer(w http.ResponseWriter, of endpoint, with *problem, data any) {
	if with != nil {
		p.fail(w, of, with)
		return
	}
	p.succeed(w, of, http.StatusOK, map[string]any{"data": data})
}

// succeed responds with body.
func (p *Platform) succeed(w http.ResponseWriter, of endpoint, status int, body any) {
	p.rateHeaders(w, of, false)
	simulator.WriteJSON(w, status, "application/json; charset=utf-8", body)
}

const (
	limitHeaders = "X-Rate-Limit"
	// rateWindow is the window of X's limits per user. Windows start on the quarter hour.
	rateWindow = 15 * time.Minute
)

// rateHeaders sets the three rate limit headers that every response has. Calls never use up the limits, because tests
// and benchmarks would exceed them. Only the control API's quota and the rate_limit fault are enforced.
func (p *Platform) rateHeaders(w http.ResponseWriter, of endpoint, spent bool) {
	if w.Header().Get(limitHeaders+"-Reset") != "" {
		return // limitedUntil has set them
	}
	remaining := of.limit - 1
	if spent {
		remaining = 0
	}
	setLimit(w.Header(), limitHeaders, of.limit, remaining, p.Clock.Now().Truncate(rateWindow).Add(rateWindow))
}

// limitedUntil responds with 429 and the time at which the window ends.
func (p *Platform) limitedUntil(w http.ResponseWriter, of endpoint, reset time.Time) {
	setLimit(w.Header(), limitHeaders, of.limit, 0, reset)
	p.fail(w, of, problemFor(http.StatusTooManyRequests))
}

// quotaHeaders adds the daily limit for an account that has a quota.
func (p *Platform) quotaHeaders(w http.ResponseWriter, a state.Account) {
	if quota := a.Settings.Quota; quota != nil {
		setLimit(w.Header(), "X-User-Limit-24hour", *quota, max(0, *quota-p.Store.QuotaUsed(a.Key)), p.Clock.Now().Add(state.QuotaWindow))
	}
}

func setLimit(header http.Header, prefix string, limit, remaining int, reset time.Time) {
	header.Set(prefix+"-Limit", strconv.Itoa(limit))
	header.Set(prefix+"-Remaining", strconv.Itoa(remaining))
	// Round up to whole seconds: a client that waits until then must not be early.
	header.Set(prefix+"-Reset", strconv.FormatInt(reset.Add(time.Second-time.Nanosecond).Unix(), 10))
}

// dialect writes an endpoint's faults in X's format.
type dialect struct {
	p  *Platform
	of endpoint
}

func (d dialect) Fail(w http.ResponseWriter, op faults.Operation, status int) {
	switch oauth := op == faults.RefreshToken || op == opRevoke; {
	case oauth && status == http.StatusBadRequest:
		oauthFail(w, status, "invalid_request", "One or more parameters to your request was invalid.")
	case oauth && status == http.StatusUnauthorized:
		oauthFail(w, status, "unauthorized_client", "Missing valid authorization header")
	default:
		d.p.fail(w, d.of, problemFor(status))
	}
}

// RateLimited responds with 429 and the time at which to retry.
func (d dialect) RateLimited(w http.ResponseWriter, _ *faults.Request, _ faults.Operation, retryAfter time.Duration) {
	d.p.limitedUntil(w, d.of, d.p.Clock.Now().Add(retryAfter))
}

// Refused responds with errors from X's "Response codes" page: code 226 for a post that looks automated, and the
// generic errors for forbidden and invalid requests.
func (d dialect) Refused(w http.ResponseWriter, _ faults.Operation, why faults.Refusal) {
	switch why {
	case faults.RefusalSpam:
		d.p.fail(w, d.of, forbidden(automated, typeBlank))
	case faults.RefusalPermission:
		d.p.fail(w, d.of, forbidden(notPermitted, typeBlank))
	default:
		d.p.fail(w, d.of, invalid())
	}
}

// automated is X's message for code 226.
const automated = "This request looks like it might be automated. To protect our users from spam and other malicious activity, " +
	"we can't complete this action right now. Please try again later."

// TokenRefused responds with 401 or, at the token endpoint, which receives a refresh token, with an invalid request. X
// does not distinguish expired from revoked tokens.
func (d dialect) TokenRefused(w http.ResponseWriter, op faults.Operation, _ bool) {
	if op == faults.RefreshToken {
		oauthFail(w, http.StatusBadRequest, badGrant, badToken)
		return
	}
	d.p.fail(w, d.of, unauthorized())
}
