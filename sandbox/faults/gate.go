// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// maxBody is the longest request that a Gate reads, in bytes.
const maxBody = 1 << 20

// Request is an HTTP request that has arrived whole.
type Request struct {
	*http.Request
	// Content is the body; empty on a route that streams, where Body is still to be read.
	Content []byte
	// ListLag is how far a listing must lag because of a fault; 0 otherwise.
	ListLag time.Duration
}

// Dialect words, as one platform does, the failures that faults ask for.
type Dialect interface {
	// Fail answers an HTTP status that is not 2xx with the body that the platform would give.
	Fail(w http.ResponseWriter, op Operation, status int)
	// RateLimited answers that there were too many requests, and when to come back.
	RateLimited(w http.ResponseWriter, r *Request, op Operation, retryAfter time.Duration)
	// TokenRefused answers that the token of the request does not work: because its time is over, or because it was
	// revoked.
	TokenRefused(w http.ResponseWriter, op Operation, revoked bool)
	// Refused answers that the platform did not publish, for a reason other than RefusalRateLimit.
	Refused(w http.ResponseWriter, op Operation, why Refusal)
}

// Route is one operation of one platform.
type Route struct {
	Platform  string
	Operation Operation
	Dialect   Dialect
	// Streams leaves the body, which may be too large for the memory, to Act. When a fault is in the way, the gate takes it
	// in first, into a file, so that what has arrived cannot get lost.
	Streams bool
	// Account tells whose request it is, or "" when that cannot be told.
	Account func(*Request) string
	// Act does what the platform would do. It must not stop when the request's context ends: a platform goes on when
	// the client has gone.
	Act func(http.ResponseWriter, *Request)
}

// Gate puts a Board's faults in front of operations.
type Gate struct {
	board *Board
	clock clock.Clock
	done  chan struct{}
}

// NewGate returns a gate whose delays are measured by clock.
func NewGate(board *Board, clock clock.Clock) *Gate {
	return &Gate{board: board, clock: clock, done: make(chan struct{})}
}

// Close ends all delays; their requests are dropped without acting. Call it once.
func (g *Gate) Close() { close(g.done) }

// Handler serves a route through the gate.
func (g *Gate) Handler(route Route) http.Handler {
	counter := g.board.counter(route.Platform, route.Operation)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counter.Add(1)
		req := &Request{Request: r}
		if !route.Streams {
			// The body is read before anything else, also before a delay: what has arrived cannot get lost any more when
			// the client goes.
			content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
			if err != nil {
				route.Dialect.Fail(w, route.Operation, bodyStatus(err))
				return
			}
			req.Content = content
		}
		faults := g.board.consume(route.Platform, route.Operation, func() string { return route.Account(req) })
		if route.Streams {
			// Go closes a connection on which a body is left, and the client may then never see the answer.
			defer func() { _, _ = io.Copy(io.Discard, r.Body) }()
			if faults != (met{}) {
				forget, err := spool(req)
				if err != nil {
					route.Dialect.Fail(w, route.Operation, http.StatusInternalServerError)
					return
				}
				defer forget()
			}
		}
		g.meet(w, req, route, faults)
	})
}

// meet lets a request that has arrived meet its faults.
func (g *Gate) meet(w http.ResponseWriter, req *Request, route Route, faults met) {
	if f := faults[groupDelay]; f != nil && !g.wait(f.Delay) {
		drop(w)
		return
	}
	if f := faults[groupStale]; f != nil {
		req.ListLag = f.Delay
	}
	if f := faults[groupAnswer]; f != nil {
		route.misbehave(w, req, f)
		return
	}
	route.Act(w, req)
}

// misbehave answers, or does not, as a fault of the answer group says.
func (route Route) misbehave(w http.ResponseWriter, req *Request, f *Fault) {
	switch f.Kind {
	case DropBefore:
		drop(w)
	case DropAfter:
		route.Act(newAnswer(), req)
		drop(w)
	case ErrorAfter:
		route.Act(newAnswer(), req)
		route.status(w, req, f.Status)
	case PublishesAndRefuses:
		route.publishAndRefuse(w, req, f)
	case AnswerStatus:
		route.status(w, req, f.Status)
	case RateLimit:
		route.Dialect.RateLimited(w, req, route.Operation, f.RetryAfter)
	case TokenExpired, TokenRevoked:
		route.Dialect.TokenRefused(w, route.Operation, f.Kind == TokenRevoked)
	}
}

// status answers an HTTP status. A redirect leads back to the same address, so that a client that follows it asks for
// the same thing twice.
func (route Route) status(w http.ResponseWriter, req *Request, status int) {
	switch {
	case status < 300 || status == http.StatusNotModified:
		w.WriteHeader(status)
	case status < 400:
		w.Header().Set("Location", req.URL.RequestURI())
		w.WriteHeader(status)
	default:
		route.Dialect.Fail(w, route.Operation, status)
	}
}

// wait returns false when the gate was closed before d was over.
func (g *Gate) wait(d time.Duration) bool {
	timer := g.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-g.done:
		return false
	}
}

func bodyStatus(err error) int {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) {
	if hijacker, ok := w.(http.Hijacker); ok {
		if conn, _, err := hijacker.Hijack(); err == nil {
			// The client is to see a closed connection, however closing went.
			_ = conn.Close()
			return
		}
	}
	panic(http.ErrAbortHandler) // HTTP/2 and wrapped writers: the server aborts the exchange
}
