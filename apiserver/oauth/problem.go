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

// Codes of errors (RFC 6749, sections 4.1.2.1 and 5.2; RFC 7591, section 3.2.2; RFC 8707, section 2).
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

// problem is an error of the protocol. Its description is for the developer of the client.
type problem struct {
	status            int
	code, description string
	// forged says that what was sent was never made here, or too long ago to know.
	forged bool
	// retry is when to come back; 0 if it is not said.
	retry time.Duration
}

func (p *problem) Error() string { return p.code + ": " + p.description }

// refusef makes a problem. The description holds what RFC 6749 lets it hold.
func refusef(status int, code, format string, args ...any) *problem {
	return &problem{status: status, code: code, description: plain(fmt.Sprintf(format, args...))}
}

// plain is a text without what an error_description may not hold (RFC 6749, section 5.2): it has characters from space to ~ but
// the quotation mark and the backslash.
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

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retry.Seconds()))))
	}
	writeJSON(w, p.status, map[string]string{"error": p.code, "error_description": p.description})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}

// PageError is an error that a person is shown, and of which the client hears nothing: it is not known to be the client.
type PageError struct {
	// Status is that of the page; Title and Message say what is wrong.
	Status         int
	Title, Message string
}

func (e *PageError) Error() string { return e.Title + ": " + e.Message }

func pageErrorf(title, format string, args ...any) *PageError {
	return &PageError{http.StatusBadRequest, title, fmt.Sprintf(format, args...)}
}

// Refused is an error that the client hears of, by the way of the browser.
type Refused struct {
	// Location is where the browser goes on to, and Host what people are shown of it.
	Location, Host string
	// AutoRedirect says that the browser may go on by itself. Otherwise a stranger has chosen the address, and a person has to say so.
	AutoRedirect bool
	// Client is the one that asked.
	Client  *Client
	problem *problem
}

// What says what is wrong, for the developer of the client.
func (e *Refused) What() string { return e.problem.description }

func (e *Refused) Error() string { return e.problem.Error() }
