// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recorder provides a server for tests of a single platform: it sends configured responses and records
// requests. The behavior that platforms have in common is tested against the sandbox; see package platformtest.
package recorder

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/platforms"
)

// Request is a recorded request.
type Request struct {
	// Method and Path of the request. Path excludes the query.
	Method, Path string
	// Query and Form are its parameters.
	Query, Form url.Values
	// Token is the token from the Authorization header.
	Token string
	// Header and Body of the request.
	Header http.Header
	Body   string
}

// Noon is the current time in tests with a recorder.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Server is a server that sends configured responses.
type Server struct {
	// URL is its address, without a trailing slash.
	URL string

	mu   sync.Mutex
	seen []Request
}

// Start starts a server that stops at the end of the test.
func Start(t *testing.T, answer http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("cannot read the request: %v", err)
		}
		form, err := url.ParseQuery(string(body))
		if err != nil && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
			t.Errorf("the request has no form: %v", err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, Request{
			Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Form: form,
			Token: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Header: r.Header.Clone(), Body: string(body),
		})
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Requests returns the requests received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// Paths returns the methods and paths of the requests received so far.
func (s *Server) Paths() []string {
	var out []string
	for _, r := range s.Requests() {
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

// Respond returns a handler that responds with the given status and body, and with headers given as names and values.
func Respond(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// HangUp closes the connection without a response.
func HangUp(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// Sequence returns a handler that sends the responses in order, and then repeats the last one.
func Sequence(answers []http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		next := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		mu.Unlock()
		next(w, r)
	}
}

// Clock is a clock whose pauses end immediately.
type Clock struct{ *clocktesting.FakeClock }

// NewTimer returns a timer that has already fired.
func (c Clock) NewTimer(pause time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(pause)
	c.Step(pause)
	return timer
}

// ClassOf returns the class of a platform's error, or "" for nil and for errors that are not a *platforms.Error.
func ClassOf(err error) platforms.Class {
	if failure, ok := errors.AsType[*platforms.Error](err); ok && failure != nil {
		return failure.Class
	}
	return ""
}
