// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxBody is the maximum request body size that a Gate reads, in bytes.
const maxBody = 1 << 20

// Request is an HTTP request with its complete body.
type Request struct {
	*http.Request
	// Content is the body. It is empty on a streaming route, where Body is unread.
	Content []byte
	// ListLag is the listing lag imposed by a fault; 0 without one.
	ListLag time.Duration
}

// Dialect writes fault failures in a platform's format.
type Dialect interface {
	// Fail responds with a non-2xx status and the platform's body for it.
	Fail(w http.ResponseWriter, op Operation, status int)
	// RateLimited responds with a rate limit error, including the retry time.
	RateLimited(w http.ResponseWriter, r *Request, op Operation, retryAfter time.Duration)
	// TokenRefused responds that the request's token is expired or revoked.
	TokenRefused(w http.ResponseWriter, op Operation, revoked bool)
	// Refused responds that the platform did not publish, for a reason other than RefusalRateLimit.
	Refused(w http.ResponseWriter, op Operation, why Refusal)
}

// Route is one operation of one platform.
type Route struct {
	Platform  string
	Operation Operation
	Dialect   Dialect
	// Streams leaves the body, which may exceed the memory, to Act. If a fault matches, the gate first spools the body to a file, which
	// preserves received data.
	Streams bool
	// Account returns a request's account, or "" if unknown.
	Account func(*Request) string
	// Act runs the operation. It must ignore the cancellation of the request's context, because a platform continues after the client
	// disconnects.
	Act func(http.ResponseWriter, *Request)
}

// Gate applies a Board's faults to operations.
type Gate struct {
	board *Board
	clock clock.Clock
	done  chan struct{}
}

// NewGate returns a gate that measures delays with clock.
func NewGate(board *Board, clock clock.Clock) *Gate {
	return &Gate{board: board, clock: clock, done: make(chan struct{})}
}

// Close ends all delays and drops their requests without acting. Call it once.
func (g *Gate) Close() { close(g.done) }

// Handler wraps a route with the gate.
func (g *Gate) Handler(route Route) http.Handler {
	counter := g.board.counter(route.Platform, route.Operation)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer counter.begin()()
		req := &Request{Request: r}
		if !route.Streams {
			// The body is read first, even before a delay, which preserves received data if the client disconnects.
			content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
			if err != nil {
				route.Dialect.Fail(w, route.Operation, bodyStatus(err))
				return
			}
			req.Content = content
		}
		faults := g.board.consume(route.Platform, route.Operation, func() string { return route.Account(req) })
		if route.Streams {
			// Go closes a connection with an unread body, and the client may then miss the response.
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

// meet applies the faults to a received request.
func (g *Gate) meet(w http.ResponseWriter, req *Request, route Route, faults met) {
	switch f := faults[groupDelay]; {
	case f == nil:
	case f.Kind == SlowAnswer:
		w = &slowWriter{ResponseWriter: w, pause: func() bool { return g.wait(f.Delay) }}
	case !g.wait(f.Delay):
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

// slowWriter waits before the response. If the wait is cut short, it aborts the exchange.
type slowWriter struct {
	http.ResponseWriter

	pause func() bool
	once  sync.Once
}

func (w *slowWriter) WriteHeader(status int) {
	w.wait()
	w.ResponseWriter.WriteHeader(status)
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.wait()
	return w.ResponseWriter.Write(p)
}

func (w *slowWriter) wait() {
	w.once.Do(func() {
		if !w.pause() {
			panic(http.ErrAbortHandler)
		}
	})
}

// misbehave applies a fault of the answer group.
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

// status responds with an HTTP status. A redirect points to the same address, so a client that follows it repeats its request.
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

// wait returns false if the gate is closed before d has passed.
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

// drop closes the connection without a response.
func drop(w http.ResponseWriter) {
	if hijacker, ok := w.(http.Hijacker); ok {
		if conn, _, err := hijacker.Hijack(); err == nil {
			// The client must see a closed connection, regardless of Close's result.
			_ = conn.Close()
			return
		}
	}
	panic(http.ErrAbortHandler) // HTTP/2 and wrapped writers: the server aborts the exchange
}
