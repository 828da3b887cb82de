// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// problem is an error response: a status, and a text in the field error (entities/Error).
type problem struct {
	status int
	text   string
}

func invalid(text string) *problem { return &problem{http.StatusUnprocessableEntity, text} }

// notValid returns the error for a record that Mastodon does not accept.
func notValid(text string) *problem { return invalid("Validation failed: " + text) }

func notFound() *problem { return problemFor(http.StatusNotFound) }

// problemFor returns the generic error for a status (app/controllers/concerns/api/error_handling.rb).
func problemFor(status int) *problem {
	switch status {
	case http.StatusUnauthorized:
		return &problem{status, "The access token is invalid"}
	case http.StatusForbidden:
		return &problem{status, "This action is not allowed"}
	case http.StatusNotFound:
		return &problem{status, "Record not found"}
	case http.StatusUnprocessableEntity:
		return notValid("Text can't be blank")
	case http.StatusTooManyRequests:
		return &problem{status, "Too many requests"}
	default:
		return &problem{status, http.StatusText(status)}
	}
}

// broken logs an internal sandbox error and returns the problem for it, or nil if err is nil.
func (p *Platform) broken(what, id string, err error) *problem {
	if err == nil {
		return nil
	}
	p.Logger.Error("the simulated Mastodon is broken", "what", what, "id", id, "error", err)
	return problemFor(http.StatusInternalServerError)
}

func (p *Platform) fail(w http.ResponseWriter, with *problem) {
	p.write(w, with.status, map[string]string{"error": with.text})
}

// write responds with a body and the rate limit headers.
func (p *Platform) write(w http.ResponseWriter, status int, body any) {
	p.limitHeaders(w.Header())
	simulator.WriteJSON(w, status, "application/json; charset=utf-8", body)
}

const (
	// limitCalls and limitWindow are the general limit on an account's calls (api/rate-limits). Calls never use it up,
	// because tests would exceed it.
	limitCalls  = 300
	limitWindow = 5 * time.Minute
)

// limitHeaders sets the headers of the general limit, unless those of another limit are already set.
func (p *Platform) limitHeaders(h http.Header) {
	if h.Get("X-RateLimit-Limit") == "" {
		setLimit(h, limitCalls, limitCalls-1, p.Clock.Now().Truncate(limitWindow).Add(limitWindow))
	}
}

// setLimit sets the headers of a limit. The time of its reset is in ISO 8601 (api/rate-limits, api/datetime-format).
func setLimit(h http.Header, limit, remaining int, reset time.Time) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(remaining))
	h.Set("X-RateLimit-Reset", reset.UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// limitedUntil responds with 429.
func (p *Platform) limitedUntil(w http.ResponseWriter, limit int, reset time.Time) {
	setLimit(w.Header(), limit, 0, reset)
	p.fail(w, problemFor(http.StatusTooManyRequests))
}

// quotaHeaders sets the headers for an account that has a quota of posts.
func (p *Platform) quotaHeaders(w http.ResponseWriter, a state.Account) {
	if quota := a.Settings.Quota; quota != nil {
		setLimit(w.Header(), *quota, max(0, *quota-p.Store.QuotaUsed(a.Key)), p.Clock.Now().Add(state.QuotaWindow))
	}
}

// authorized returns the account of a request's token, if the token has one of the scopes. Otherwise it responds with
// an error and returns false.
func (p *Platform) authorized(w http.ResponseWriter, r *faults.Request, scopes ...string) (state.Account, bool) {
	account, bearer, ok := p.Authorized(r, Name)
	if !ok {
		p.fail(w, problemFor(http.StatusUnauthorized))
		return state.Account{}, false
	}
	if slices.ContainsFunc(scopes, bearer.Allows) {
		return account, true
	}
	p.fail(w, &problem{http.StatusForbidden, "This action is outside the authorized scopes"})
	return state.Account{}, false
}

// dialect writes faults in Mastodon's format.
type dialect struct{ p *Platform }

// Fail responds with the generic error. A reverse proxy in front of Mastodon sends 413 and 502, in HTML.
func (d dialect) Fail(w http.ResponseWriter, _ faults.Operation, status int) {
	if status == http.StatusRequestEntityTooLarge || status == http.StatusBadGateway {
		http.Error(w, "<html><body>"+http.StatusText(status)+"</body></html>", status)
		return
	}
	d.p.fail(w, problemFor(status))
}

// RateLimited responds with 429 and the time at which to retry.
func (d dialect) RateLimited(w http.ResponseWriter, _ *faults.Request, _ faults.Operation, retryAfter time.Duration) {
	d.p.limitedUntil(w, limitCalls, d.p.Clock.Now().Add(retryAfter))
}

// Refused responds with a documented refusal.
func (d dialect) Refused(w http.ResponseWriter, _ faults.Operation, why faults.Refusal) {
	switch why {
	case faults.RefusalSpam:
		d.p.fail(w, &problem{http.StatusForbidden, "Your login is currently disabled"})
	case faults.RefusalPermission:
		d.p.fail(w, &problem{http.StatusForbidden, "This action is outside the authorized scopes"})
	default:
		d.p.fail(w, problemFor(http.StatusUnprocessableEntity))
	}
}

// TokenRefused responds as Doorkeeper does (config/locales/doorkeeper.en.yml).
func (d dialect) TokenRefused(w http.ResponseWriter, _ faults.Operation, revoked bool) {
	text := "The access token expired"
	if revoked {
		text = "The access token was revoked"
	}
	d.p.fail(w, &problem{http.StatusUnauthorized, text})
}
