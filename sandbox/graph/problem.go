// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The error types.
const (
	typeOAuth  = "OAuthException"
	typeMethod = "GraphMethodException"
)

// Error is Graph's error body.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    int    `json:"code"`
	Subcode int    `json:"error_subcode,omitempty"`
	// Transient means that a retry may succeed.
	Transient   bool   `json:"is_transient"`
	UserTitle   string `json:"error_user_title,omitempty"`
	UserMessage string `json:"error_user_msg,omitempty"`
	TraceID     string `json:"fbtrace_id"`
	// flat selects the code exchange hosts' format.
	flat bool
}

// Because adds the subcode and the human-readable messages.
func (e *Error) Because(subcode int, title, message string) *Error {
	e.Subcode, e.UserTitle, e.UserMessage = subcode, title, message
	return e
}

// Refusal returns an error with a code and a message.
func Refusal(code int, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: typeOAuth, Code: code}
}

// BadParam returns the error for a missing or invalid parameter. The API sets its type.
func BadParam(format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: "(#100) " + fmt.Sprintf(format, args...), Code: 100}
}

// NoObject returns the error for an ID that is unknown or not accessible with the token. method is get or post.
func NoObject(method, id string) *Error {
	return &Error{
		Status: http.StatusBadRequest, Type: typeMethod, Code: 100, Subcode: 33,
		Message: fmt.Sprintf("Unsupported %s request. Object with ID '%s' does not exist, cannot be loaded due to missing "+
			"permissions, or does not support this operation. Please read the Graph API documentation.", method, id),
	}
}

func unknownPath(path string) Error {
	return *Refusal(2500, "Unknown path components: %s", path)
}

func noToken() *Error {
	return Refusal(104, "An access token is required to request this resource.")
}

func unknownToken() *Error {
	return Refusal(190, "Invalid OAuth access token - Cannot parse access token")
}

// expiredToken returns the error for a token that expired at end.
func expiredToken(end, now time.Time) *Error {
	const form = "Monday, 02-Jan-06 15:04:05 MST"
	out := Refusal(190, "Error validating access token: Session has expired on %s. The current time is %s.",
		end.UTC().Format(form), now.UTC().Format(form))
	out.Subcode = 463
	return out
}

// revokedToken returns the error for a revoked token.
func revokedToken() *Error {
	out := Refusal(190, "Error validating access token: The session has been invalidated because the user changed their "+
		"password or the session was changed for security reasons.")
	out.Subcode = 460
	return out
}

// missingScope returns the error for a token without the scope.
func (a *API) missingScope(scope string) *Error {
	out := Refusal(a.PermissionCode, "(#%d) Application does not have permission for this action; it requires %s.",
		a.PermissionCode, scope)
	out.Status = http.StatusForbidden
	return out
}

// failure returns a status's generic body.
func failure(status int) Error {
	out := Error{Status: status, Type: typeOAuth}
	switch status {
	case http.StatusBadRequest:
		out.Code, out.Message = 100, "Invalid parameter"
	case http.StatusUnauthorized:
		out = *unknownToken()
		out.Status = status
	case http.StatusForbidden:
		out.Code, out.Message = 10, "(#10) Application does not have permission for this action"
	case http.StatusNotFound:
		out.Code, out.Message = 2500, "Unknown path components: /"
	case http.StatusTooManyRequests:
		out.Code, out.Message = 613, "(#613) Calls to this api have exceeded the rate limit."
	case http.StatusInternalServerError:
		out.Code, out.Message = 1, "An unknown error has occurred."
	default:
		out.Code, out.Transient = 2, true
		out.Message = "An unexpected error has occurred. Please retry your request later."
	}
	return out
}

// traceID generates the ID requested by Meta's support.
func traceID() string { return "A" + strings.ToLower(rand.Text())[:21] }
