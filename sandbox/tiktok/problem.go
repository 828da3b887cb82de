// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
)

// envelope wraps every response except that of the token endpoint. Failures have data too, which may be empty.
type envelope struct {
	Data  any      `json:"data"`
	Error envError `json:"error"`
}

type envError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	LogID   string `json:"log_id"`
}

// logID generates the id that TikTok's support team needs.
func (p *Platform) logID() string {
	return p.Clock.Now().UTC().Format("20060102150405") + rand.Text()[:20]
}

// succeed responds with data.
func (p *Platform) succeed(w http.ResponseWriter, data any) {
	simulator.WriteJSON(w, http.StatusOK, jsonType, envelope{Data: data, Error: envError{Code: "ok", LogID: p.logID()}})
}

// fail responds with an error. The status may be 200.
func (p *Platform) fail(w http.ResponseWriter, status int, code, message string) {
	simulator.WriteJSON(w, status, jsonType, envelope{Data: struct{}{}, Error: envError{Code: code, Message: message, LogID: p.logID()}})
}

// oauthFail responds with a token endpoint error, which has no envelope.
func (p *Platform) oauthFail(w http.ResponseWriter, status int, code, description string) {
	w.Header().Set("Cache-Control", "no-store")
	simulator.WriteJSON(w, status, jsonType, map[string]string{"error": code, "error_description": description, "log_id": p.logID()})
}

const jsonType = "application/json; charset=utf-8"

// dialect writes faults in TikTok's format.
type dialect struct{ p *Platform }

func (d dialect) Fail(w http.ResponseWriter, op faults.Operation, status int) {
	if op == faults.RefreshToken {
		code := "server_error"
		switch {
		case status == http.StatusUnauthorized:
			code = "invalid_client"
		case status == http.StatusServiceUnavailable:
			code = "temporarily_unavailable"
		case status < http.StatusInternalServerError:
			code = "invalid_request"
		}
		d.p.oauthFail(w, status, code, http.StatusText(status))
		return
	}
	code := "internal_error"
	switch {
	case status == http.StatusUnauthorized:
		code = "access_token_invalid"
	case status == http.StatusForbidden:
		code = "spam_risk_user_banned_from_posting"
	case status == http.StatusTooManyRequests:
		code = "rate_limit_exceeded"
	case status < http.StatusInternalServerError:
		code = "invalid_params"
	}
	d.p.fail(w, status, code, http.StatusText(status))
}

// RateLimited responds with 429. TikTok does not document when to retry: its window is a sliding minute.
func (d dialect) RateLimited(w http.ResponseWriter, _ *faults.Request, op faults.Operation, _ time.Duration) {
	if op == faults.RefreshToken {
		d.p.oauthFail(w, http.StatusTooManyRequests, "rate_limit_exceeded", rateExceeded)
		return
	}
	d.p.fail(w, http.StatusTooManyRequests, "rate_limit_exceeded", rateExceeded)
}

// Refused responds with errors from the Content Posting API's "Error Codes": too many posts, a scope that was not
// granted, and invalid parameters.
func (d dialect) Refused(w http.ResponseWriter, _ faults.Operation, why faults.Refusal) {
	switch why {
	case faults.RefusalSpam:
		d.p.fail(w, http.StatusForbidden, "spam_risk_too_many_posts", "The daily post cap from the API is reached for the current user.")
	case faults.RefusalPermission:
		d.p.fail(w, http.StatusUnauthorized, "scope_not_authorized", "The user did not authorize the scope required for completing this request.")
	default:
		d.p.fail(w, http.StatusBadRequest, "invalid_params", "The request parameters are incorrect.")
	}
}

// TokenRefused reports an invalid access token or, at the token endpoint, which receives a refresh token, an invalid
// grant. TikTok does not distinguish expired from revoked tokens.
func (d dialect) TokenRefused(w http.ResponseWriter, op faults.Operation, _ bool) {
	if op == faults.RefreshToken {
		d.p.oauthFail(w, http.StatusBadRequest, "invalid_grant", invalidGrant)
		return
	}
	d.p.fail(w, http.StatusUnauthorized, "access_token_invalid", invalidToken)
}

const (
	invalidGrant = "Refresh token is invalid or expired."
	rateExceeded = "The API rate limit was exceeded. Please try again later."
	invalidToken = "The access token is invalid or not found in the request."
)
