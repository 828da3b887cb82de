// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package anonymous bounds what is asked for without a good key, token or session: how many requests of one address are
// answered, and how many lines of log they leave.
package anonymous

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/ratelimit"
	"github.com/herald-social/herald/apiserver/request"
)

// Surface is a part of the site. Each counts for itself, so that a program whose key is gone keeps nobody behind its address from
// signing in.
type Surface string

// The doors.
const (
	// Programs are REST and MCP.
	Programs Surface = "programs"
	// Pages are those of the web application and of the description, and paths where there is nothing.
	Pages Surface = "pages"
	// OAuth is what agents ask before they have a token.
	OAuth Surface = "oauth"
	// Preflights are the questions that browsers ask before a page of another site may send a token. They carry none
	// themselves.
	Preflights Surface = "preflights"
)

// Guard counts the requests of strangers, by address and door. A nil Guard lets everything through.
type Guard struct{ limiter *ratelimit.Limiter }

// New returns a Guard that lets so many requests in a minute pass for each address and door; all, if it is not positive.
func New(perMinute int, c clock.PassiveClock) *Guard {
	return &Guard{limiter: ratelimit.New(perMinute, c)}
}

// Allow counts a request and reports whether it may be answered. The answer to one that may not says when to come back, and its
// connection is closed.
func (g *Guard) Allow(r *http.Request, door Surface) (allowed bool, wait time.Duration) {
	if g == nil {
		return true, 0
	}
	// The answer does not say how much is left: other visitors share the address.
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

// Handler passes on the requests of those who are known, and as many others as may be answered; refuse answers the rest.
func (g *Guard) Handler(door Surface, next http.Handler, refuse func(w http.ResponseWriter, r *http.Request, wait time.Duration)) http.Handler {
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
