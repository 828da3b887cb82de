// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
)

const (
	typeBlank  = "about:blank"
	problemURL = "https://api.x.com/2/problems/"
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

func unauthorized() problem {
	return problem{Title: "Unauthorized", Detail: "Unauthorized", Type: typeBlank, Status: http.StatusUnauthorized}
}

func forbidden(detail string) problem {
	return problem{Title: "Forbidden", Detail: detail, Type: typeBlank, Status: http.StatusForbidden}
}

func notFound(detail string) problem {
	return problem{Title: "Not Found Error", Detail: detail, Type: problemURL + "resource-not-found", Status: http.StatusNotFound}
}

func tooManyRequests() problem {
	return problem{
		Title: "Too Many Requests", Detail: "Too Many Requests", Type: typeBlank, Status: http.StatusTooManyRequests,
	}
}

func internal() problem {
	return problem{
		Title: "Internal Server Error", Detail: "Something is broken.", Type: typeBlank, Status: http.StatusInternalServerError,
	}
}

// invalid is the answer to a request that breaks the schema or a documented limit.
func invalid(errs ...badParameter) problem {
	return problem{
		Errors: errs, Title: "Invalid Request", Detail: "One or more parameters to your request was invalid.",
		Type: problemURL + "invalid-request", Status: http.StatusBadRequest,
	}
}

// invalidBody is invalid for parts of a JSON body.
func invalidBody(messages ...string) problem {
	errs := make([]badParameter, len(messages))
	for i, message := range messages {
		errs[i] = badParameter{Parameters: map[string][]string{}, Message: message}
	}
	return invalid(errs...)
}

// problemFor is the body that goes with a status of which nothing else is known.
func problemFor(status int) problem {
	switch status {
	case http.StatusBadRequest:
		return invalid()
	case http.StatusUnauthorized:
		return unauthorized()
	case http.StatusPaymentRequired:
		return problem{
			Title: "CreditsDepleted", Detail: "Your enrolled account does not have any credits to fulfill this request.",
			Type: problemURL + "credits", Status: status,
		}
	case http.StatusForbidden:
		return forbidden(notPermitted)
	case http.StatusNotFound:
		return notFound("Could not find what was requested.")
	case http.StatusTooManyRequests:
		return tooManyRequests()
	default:
		text := http.StatusText(status)
		return problem{Title: text, Detail: text, Type: typeBlank, Status: status}
	}
}

// notPermitted is what X says when it does not say more.
const notPermitted = "You are not permitted to perform this action."

// fail answers a problem to a request to an endpoint.
func (p *Platform) fail(w http.ResponseWriter, of endpoint, with problem) {
	p.rateHeaders(w, of, with.Status == http.StatusTooManyRequests)
	writeJSON(w, with.Status, "application/problem+json", with)
}

// succeed answers body to a request to an endpoint.
func (p *Platform) succeed(w http.ResponseWriter, of endpoint, status int, body any) {
	p.rateHeaders(w, of, false)
	writeJSON(w, status, "application/json; charset=utf-8", body)
}

// writeJSON answers a JSON body. It does not escape <, > and &: JSON needs no such thing, and X does not do it.
func writeJSON(w http.ResponseWriter, status int, contentType string, body any) {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(content.Bytes()) // the client may be gone; what was done stays done
}

// dialect lets faults at an endpoint speak as X does.
type dialect struct {
	p  *Platform
	of endpoint
}

// Fail answers that status.
func (d dialect) Fail(w http.ResponseWriter, op faults.Operation, status int) {
	if op == faults.RefreshToken || op == opRevoke {
		switch status {
		case http.StatusBadRequest:
			oauthFail(w, status, "invalid_request", "One or more parameters to your request was invalid.")
			return
		case http.StatusUnauthorized:
			oauthFail(w, status, "unauthorized_client", "Missing valid authorization header")
			return
		}
	}
	d.p.fail(w, d.of, problemFor(status))
}

// RateLimited answers 429 with the time at which to come back.
func (d dialect) RateLimited(w http.ResponseWriter, _ *faults.Request, _ faults.Operation, retryAfter time.Duration) {
	d.p.limitedUntil(w, d.of, d.p.Clock.Now().Add(retryAfter))
}

// TokenRefused answers 401; at the token endpoint, where the token is a refresh token, that the grant is not valid. X
// does not tell an expired token from a revoked one.
func (d dialect) TokenRefused(w http.ResponseWriter, op faults.Operation, _ bool) {
	if op == faults.RefreshToken {
		oauthFail(w, http.StatusBadRequest, "invalid_grant", "Value passed for the token was invalid.")
		return
	}
	d.p.fail(w, d.of, unauthorized())
}
