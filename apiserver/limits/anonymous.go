// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/request"
)

// Surface is a part of the site with its own rate limit, so that a program with a revoked key does not lock out
// sign-ins from the same address.
type Surface string

const (
	// SurfacePrograms covers REST and MCP.
	SurfacePrograms Surface = "programs"
	// SurfacePages covers the web application, the API description and unknown paths.
	SurfacePages Surface = "pages"
	// SurfaceOAuth covers agents' requests before they have a token.
	SurfaceOAuth Surface = "oauth"
	// SurfacePreflights covers CORS preflight requests, which browsers send without a token.
	SurfacePreflights Surface = "preflights"
)

// AnonymousGuard limits unauthenticated requests by address and surface. A nil AnonymousGuard allows all requests.
type AnonymousGuard struct{ limiter *RateLimiter }

// NewAnonymousGuard returns an AnonymousGuard that allows perMinute requests for each address and surface. There is no
// limit if perMinute is not positive.
func NewAnonymousGuard(perMinute int, c clock.PassiveClock) *AnonymousGuard {
	return &AnonymousGuard{limiter: NewRateLimiter(perMinute, c)}
}

// Allow counts a request and reports whether it may be served. For a rejected request it sets Retry-After and closes
// the connection.
func (g *AnonymousGuard) Allow(r *http.Request, door Surface) (allowed bool, wait time.Duration) {
	if g == nil {
		return true, 0
	}
	// Other visitors may share the address, so the rate limit headers are not sent.
	said := http.Header{}
	allowed, wait = g.limiter.Allow(string(door)+" "+request.Address(r), said)
	if allowed {
		return true, 0
	}
	answer := request.From(r.Context()).Header
	answer.Set("Connection", "close")
	answer.Set("Retry-After", said.Get("Retry-After"))
	return false, max(wait, time.Second)
}

// Handler passes authenticated requests to next, as well as unauthenticated ones within the limit; refuse responds to
// the others.
func (g *AnonymousGuard) Handler(door Surface, next http.Handler, refuse func(w http.ResponseWriter, r *http.Request, wait time.Duration)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !request.From(r.Context()).Authenticated {
			if allowed, wait := g.Allow(r, door); !allowed {
				refuse(w, r, wait)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
