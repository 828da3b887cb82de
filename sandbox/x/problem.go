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
	// notAuthorized is the type of problems about what another account owns, or what a token does not allow.
	notAuthorized = problemURL + "not-authorized-for-resource"
	// notPermitted is what X says when it does not say more.
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

// badParameter says what is wrong with one part of the request.
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

// invalid is the answer to a request that breaks the schema or a documented limit.
func invalid(errs ...badParameter) *problem {
	return &problem{
		Errors: errs, Title: "Invalid Request", Detail: "One or more parameters to your request was invalid.",
		Type: problemURL + "invalid-request", Status: http.StatusBadRequest,
	}
}

// invalidBody is invalid for a part of a body.
func invalidBody(message string) *problem {
	return invalid(badParameter{Parameters: map[string][]string{}, Message: message})
}

// problemFor is the body that goes with a status of which nothing else is known.
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

// broken logs an error of the sandbox itself and returns the answer to it; nil without an error.
func (p *Platform) broken(what, id string, err error) *problem {
	if err == nil {
		return nil
	}
	p.Logger.Error("the simulated X is broken", "what", what, "id", id, "error", err)
	return problemFor(http.StatusInternalServerError)
}

// fail answers a problem to a request to an endpoint.
func (p *Platform) fail(w http.ResponseWriter, of endpoint, with *problem) {
	p.rateHeaders(w, of, with.Status == http.StatusTooManyRequests)
	simulator.WriteJSON(w, with.Status, "application/problem+json", with)
}

// answer answers a problem, or else the data of a success.
func (p *Platform) answer(w http.ResponseWriter, of endpoint, with *problem, data any) {
	if with != nil {
		p.fail(w, of, with)
		return
	}
	p.succeed(w, of, http.StatusOK, map[string]any{"data": data})
}

// succeed answers body to a request to an endpoint.
func (p *Platform) succeed(w http.ResponseWriter, of endpoint, status int, body any) {
	p.rateHeaders(w, of, false)
	simulator.WriteJSON(w, status, "application/json; charset=utf-8", body)
}

const (
	limitHeaders = "X-Rate-Limit"
	// rateWindow is the window of X's limits per user. Windows begin at round quarter hours.
	rateWindow = 15 * time.Minute
)

// rateHeaders sets the three headers that every answer carries. They are never used up by calling: a limit that tests and
// benchmarks ran into would be in their way. What is enforced is the quota that the control API sets, and the rate_limit
// fault.
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

// limitedUntil answers 429 with the time at which the window ends.
func (p *Platform) limitedUntil(w http.ResponseWriter, of endpoint, reset time.Time) {
	setLimit(w.Header(), limitHeaders, of.limit, 0, reset)
	p.fail(w, of, problemFor(http.StatusTooManyRequests))
}

// quotaHeaders adds the daily limit of an account that has one.
func (p *Platform) quotaHeaders(w http.ResponseWriter, a state.Account) {
	if quota := a.Settings.Quota; quota != nil {
		setLimit(w.Header(), "X-User-Limit-24hour", *quota, max(0, *quota-p.Store.QuotaUsed(a.Key)), p.Clock.Now().Add(state.QuotaWindow))
	}
}

func setLimit(header http.Header, prefix string, limit, remaining int, reset time.Time) {
	header.Set(prefix+"-Limit", strconv.Itoa(limit))
	header.Set(prefix+"-Remaining", strconv.Itoa(remaining))
	// Whole seconds, rounded up: a client that waits until then must not be early.
	header.Set(prefix+"-Reset", strconv.FormatInt(reset.Add(time.Second-time.Nanosecond).Unix(), 10))
}

// dialect lets faults at an endpoint speak as X does.
type dialect struct {
	p  *Platform
	of endpoint
}

// Fail answers that status.
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

// RateLimited answers 429 with the time at which to come back.
func (d dialect) RateLimited(w http.ResponseWriter, _ *faults.Request, _ faults.Operation, retryAfter time.Duration) {
	d.p.limitedUntil(w, d.of, d.p.Clock.Now().Add(retryAfter))
}

// Refused answers what the page "Response codes" of X's API lists: code 226 for a post that looks automated, and the general
// answers to what is not permitted and to what is not valid.
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

// automated are X's words for code 226.
const automated = "This request looks like it might be automated. To protect our users from spam and other malicious activity, " +
	"we can't complete this action right now. Please try again later."

// TokenRefused answers 401; at the token endpoint, where the token is a refresh token, that the request is not valid. X
// does not tell an expired token from a revoked one.
func (d dialect) TokenRefused(w http.ResponseWriter, op faults.Operation, _ bool) {
	if op == faults.RefreshToken {
		oauthFail(w, http.StatusBadRequest, badGrant, badToken)
		return
	}
	d.p.fail(w, d.of, unauthorized())
}
