// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/http"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
)

// problem is Google's error format.
type problem struct {
	Code    int      `json:"code"`
	Message string   `json:"message"`
	Errors  []reason `json:"errors"`
	Status  string   `json:"status,omitempty"`
}

// reason is the machine-readable part of an error.
type reason struct {
	Message      string `json:"message"`
	Domain       string `json:"domain"`
	Reason       string `json:"reason"`
	Location     string `json:"location,omitempty"`
	LocationType string `json:"locationType,omitempty"`
}

// refuse returns an error with one reason. status is a status name shared by all Google APIs.
func refuse(code int, status, domain, why, message string) *problem {
	return &problem{
		Code: code, Message: message, Status: status, Errors: []reason{{Message: message, Domain: domain, Reason: why}},
	}
}

// badCredentials returns the error for an invalid token of any kind.
func badCredentials() *problem {
	out := refuse(http.StatusUnauthorized, "UNAUTHENTICATED", "global", "authError", "Request had invalid authentication "+
		"credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.")
	out.Errors[0].Message = "Invalid Credentials"
	out.Errors[0].Location, out.Errors[0].LocationType = "Authorization", "header"
	return out
}

// badParameter returns the error for a missing, unknown or invalid parameter.
func badParameter(why, name, message string) *problem {
	out := refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "youtube.parameter", why, message)
	out.Errors[0].Location, out.Errors[0].LocationType = name, "parameter"
	return out
}

// problemFor returns the generic body for a status.
func problemFor(status int) *problem {
	switch status {
	case http.StatusBadRequest:
		return refuse(status, "INVALID_ARGUMENT", "global", "badRequest", "Request contains an invalid argument.")
	case http.StatusUnauthorized:
		return badCredentials()
	case http.StatusForbidden:
		return refuse(status, "PERMISSION_DENIED", "global", "forbidden", "The caller does not have permission")
	case http.StatusNotFound:
		return refuse(status, "NOT_FOUND", "global", "notFound", "Requested entity was not found.")
	case http.StatusTooManyRequests:
		return refuse(status, "RESOURCE_EXHAUSTED", "usageLimits", "rateLimitExceeded", "Resource has been exhausted.")
	case http.StatusServiceUnavailable:
		return refuse(status, "UNAVAILABLE", "global", "backendError", "The service is currently unavailable.")
	default:
		return refuse(status, "INTERNAL", "global", "backendError", "Internal error encountered.")
	}
}

func fail(w http.ResponseWriter, with *problem) {
	writeJSON(w, with.Code, map[string]*problem{"error": with})
}

// oauthFail responds with an error as in RFC 6749, section 5.2.
func oauthFail(w http.ResponseWriter, status int, code, description string) {
	writeJSON(w, status, map[string]string{"error": code, "error_description": description})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Cache-Control", "no-cache, no-store, max-age=0, must-revalidate")
	simulator.WriteJSON(w, status, "application/json; charset=UTF-8", body)
}

// dialect writes faults in Google's format.
type dialect struct{}

func (dialect) Fail(w http.ResponseWriter, op faults.Operation, status int) {
	switch {
	case op == faults.Create && status == http.StatusTooManyRequests:
		fail(w, usedUp())
		return
	case op != faults.RefreshToken:
		fail(w, problemFor(status))
		return
	}
	code := "internal_failure"
	switch {
	case status == http.StatusUnauthorized:
		code = "invalid_client"
	case status < http.StatusInternalServerError:
		code = "invalid_request"
	}
	oauthFail(w, status, code, http.StatusText(status))
}

// usedUp returns the error for a client project that has used up its daily uploads across all channels
// (googleapis/google-api-python-client#2753). Its reason is the reason for a rate limit.
func usedUp() *problem {
	return refuse(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "global", "rateLimitExceeded", "Quota exceeded for quota metric "+
		"'Video Uploads' and limit 'Video Uploads per day' of service 'youtube.googleapis.com' for consumer 'project_number:1'.")
}

// RateLimited responds with 403 rateLimitExceeded. Google does not document when to retry.
func (dialect) RateLimited(w http.ResponseWriter, _ *faults.Request, op faults.Operation, _ time.Duration) {
	if op == faults.RefreshToken {
		oauthFail(w, http.StatusTooManyRequests, "rate_limit_exceeded", "Rate Limit Exceeded")
		return
	}
	fail(w, refuse(http.StatusForbidden, "RESOURCE_EXHAUSTED", "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded"))
}

// Refused responds with errors from "videos.insert": the channel's upload limit, a forbidden request, and an invalid
// request.
func (dialect) Refused(w http.ResponseWriter, _ faults.Operation, why faults.Refusal) {
	switch why {
	case faults.RefusalSpam:
		fail(w, uploadLimit())
	case faults.RefusalPermission:
		fail(w, problemFor(http.StatusForbidden))
	default:
		fail(w, problemFor(http.StatusBadRequest))
	}
}

// TokenRefused responds with 401 or, at the token endpoint, which receives a refresh token, with an invalid grant.
// Google does not distinguish expired from revoked tokens.
func (dialect) TokenRefused(w http.ResponseWriter, op faults.Operation, _ bool) {
	if op == faults.RefreshToken {
		oauthFail(w, http.StatusBadRequest, "invalid_grant", invalidGrant)
		return
	}
	fail(w, badCredentials())
}

const invalidGrant = "Token has been expired or revoked."
