// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error codes (RFC 6749, sections 4.1.2.1 and 5.2; RFC 7591, section 3.2.2; RFC 8707, section 2).
const (
	invalidRequest      = "invalid_request"
	invalidClient       = "invalid_client"
	invalidGrant        = "invalid_grant"
	invalidScope        = "invalid_scope"
	invalidTarget       = "invalid_target"
	invalidRedirect     = "invalid_redirect_uri"
	invalidMetadata     = "invalid_client_metadata"
	unsupportedGrant    = "unsupported_grant_type"
	unsupportedResponse = "unsupported_response_type"
	accessDenied        = "access_denied"
	temporarily         = "temporarily_unavailable"
	serverError         = "server_error"
)

// problem is a protocol error. The description is for the client's developer.
type problem struct {
	status            int
	code, description string
	// forged reports that the code or token was never issued here, or expired too long ago to recognize.
	forged bool
	// retry is the value of Retry-After; 0 omits the header.
	retry time.Duration
}

func (p *problem) Error() string { return p.code + ": " + p.description }

// refusef returns a problem. It replaces the characters that RFC 6749 forbids in a description.
func refusef(status int, code, format string, args ...any) *problem {
	return &problem{status: status, code: code, description: plain(fmt.Sprintf(format, args...))}
}

// plain replaces the characters that RFC 6749, section 5.2 forbids in an error_description. Allowed are space to ~,
// except for the quotation mark and the backslash.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < ' ' || r > '~':
			return '?'
		default:
			return r
		}
	}, text)
}

func (p *problem) write(w http.ResponseWriter) {
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retry.Seconds()))))
	}
	writeJSON(w, p.status, map[string]string{"error": p.code, "error_description": p.description})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

// PageError is an error that is shown to the user and not returned to the client, whose identity is unverified.
type PageError struct {
	// Status is the page's HTTP status; Title and Message describe the error.
	Status         int
	Title, Message string
}

func (e *PageError) Error() string { return e.Title + ": " + e.Message }

func pageErrorf(title, format string, args ...any) *PageError {
	return &PageError{http.StatusBadRequest, title, fmt.Sprintf(format, args...)}
}

// Refused is an error that the browser carries back to the client.
type Refused struct {
	// Location is the address to redirect to, and Host its host for display.
	Location, Host string
	// AutoRedirect allows redirecting without asking. Otherwise the address comes from an unverified client, and the
	// person has to confirm it.
	AutoRedirect bool
	// Client is the requesting client.
	Client  *Client
	problem *problem
}

// What returns the error text for the client's developer.
func (e *Refused) What() string { return e.problem.description }

func (e *Refused) Error() string { return e.problem.Error() }
