// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// problem is an error response (AT Protocol, "HTTP API (XRPC)").
type problem struct {
	status     int
	name, text string
}

// invalid returns the error for a request that the server does not accept.
func invalid(text string) *problem { return named("InvalidRequest", text) }

// named returns an error for an invalid request that has a name of its own.
func named(name, text string) *problem { return &problem{http.StatusBadRequest, name, text} }

// unauthorized returns an error from package auth-verifier (packages/pds/src/auth-verifier.ts).
func unauthorized(name, text string) *problem { return &problem{http.StatusUnauthorized, name, text} }

// problemFor returns the generic error for a status (packages/xrpc/src/types.ts).
func problemFor(status int) *problem {
	switch status {
	case http.StatusBadRequest:
		return invalid("Invalid Request")
	case http.StatusUnauthorized:
		return unauthorized("AuthenticationRequired", "Authentication Required")
	case http.StatusForbidden:
		return &problem{status, "Forbidden", "Forbidden"}
	case http.StatusNotFound:
		return &problem{status, "XRPCNotSupported", "XRPC Not Supported"}
	case http.StatusRequestEntityTooLarge:
		return &problem{status, "PayloadTooLarge", "Payload Too Large"}
	case http.StatusTooManyRequests:
		return &problem{status, "RateLimitExceeded", "Rate Limit Exceeded"}
	case http.StatusInternalServerError:
		return &problem{status, "InternalServerError", "Internal Server Error"}
	case http.StatusServiceUnavailable:
		return &problem{status, "NotEnoughResources", "Not Enough Resources"}
	default:
		return &problem{status, "", http.StatusText(status)}
	}
}

// broken logs an internal sandbox error and returns the problem for it, or nil if err is nil.
func (p *Platform) broken(what, id string, err error) *problem {
	if err == nil {
		return nil
	}
	p.Logger.Error("the simulated Bluesky is broken", "what", what, "id", id, "error", err)
	return problemFor(http.StatusInternalServerError)
}

// fail responds with an error. An error without a name comes from a proxy in front of the server, in HTML.
func (p *Platform) fail(w http.ResponseWriter, with *problem) {
	if with.name == "" {
		http.Error(w, "<html><body>"+with.text+"</body></html>", with.status)
		return
	}
	p.write(w, with.status, map[string]string{"error": with.name, "message": with.text})
}

// write responds with a body and the rate limit headers.
func (p *Platform) write(w http.ResponseWriter, status int, body any) {
	if h := w.Header(); h.Get("RateLimit-Limit") == "" {
		p.setLimit(h, limitCalls, limitCalls-1, limitWindow)
	}
	simulator.WriteJSON(w, status, "application/json; charset=utf-8", body)
}

const (
	// limitCalls and limitWindow are the general limit on an address's calls (Bluesky, "Rate Limits"). Calls never use
	// it up, because tests would exceed it.
	limitCalls  = 3000
	limitWindow = 5 * time.Minute
	// limitPoints are the points of an account's writes in an hour, of which each write of a record costs writePoints.
	limitPoints = 5000
	writePoints = 2
)

// setLimit sets the headers of a limit (packages/xrpc-server/src/rate-limiter.ts).
func (p *Platform) setLimit(h http.Header, limit, remaining int, window time.Duration) {
	h.Set("RateLimit-Limit", strconv.Itoa(limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(remaining))
	h.Set("RateLimit-Reset", strconv.FormatInt(p.Clock.Now().Add(window).Unix(), 10))
	h.Set("RateLimit-Policy", strconv.Itoa(limit)+";w="+strconv.FormatInt(int64(window/time.Second), 10))
}

// limited responds with 429.
func (p *Platform) limited(w http.ResponseWriter, limit int, until time.Duration) {
	p.setLimit(w.Header(), limit, 0, until)
	w.Header().Set("Retry-After", strconv.FormatInt(int64(until/time.Second), 10))
	p.fail(w, problemFor(http.StatusTooManyRequests))
}

// pointHeaders sets the headers of the limit on an account's writes if less of it remains than of the general limit: a
// response contains the limit that is closest to being used up. An account's quota of posts replaces the points.
func (p *Platform) pointHeaders(w http.ResponseWriter, a state.Account) {
	limit, window := limitPoints, time.Hour
	if quota := a.Settings.Quota; quota != nil {
		limit, window = writePoints**quota, state.QuotaWindow
	}
	if left := max(0, limit-writePoints*p.Store.QuotaUsed(a.Key)); left < limitCalls-1 {
		p.setLimit(w.Header(), limit, left, window)
	}
}

// dialect writes faults in the server's format.
type dialect struct{ p *Platform }

// Fail responds with the generic error.
func (d dialect) Fail(w http.ResponseWriter, _ faults.Operation, status int) {
	d.p.fail(w, problemFor(status))
}

// RateLimited responds with 429 and the time at which to retry.
func (d dialect) RateLimited(w http.ResponseWriter, _ *faults.Request, _ faults.Operation, retryAfter time.Duration) {
	d.p.limited(w, limitPoints, retryAfter)
}

// Refused responds with a documented refusal.
func (d dialect) Refused(w http.ResponseWriter, _ faults.Operation, why faults.Refusal) {
	switch why {
	case faults.RefusalSpam:
		d.p.fail(w, unauthorized("AccountTakedown", "Account has been taken down"))
	case faults.RefusalPermission:
		d.p.fail(w, unauthorized("AccountDeactivated", "Account is deactivated"))
	default:
		d.p.fail(w, invalid("Invalid app.bsky.feed.post record: Missing required key \"text\" at $.record"))
	}
}

// TokenRefused responds that a session has expired, or that it ended when its owner revoked the app password.
func (d dialect) TokenRefused(w http.ResponseWriter, _ faults.Operation, revoked bool) {
	if revoked {
		d.p.fail(w, problemFor(http.StatusUnauthorized))
		return
	}
	d.p.fail(w, named("ExpiredToken", "Token has expired"))
}
