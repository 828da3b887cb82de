// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// DefaultStall is how long the store may neither send nor take a byte of a body.
	DefaultStall = 30 * time.Second
	// responseTimeout bounds what a request may keep the store busy with beside its
	// bodies, and slowest is how many bytes of them a second are waited for beyond.
	responseTimeout = 2 * time.Minute
	minSpeed        = 128 << 10
)

// TimeoutFor is how long reading or storing so many bytes may take.
func TimeoutFor(bytes int64) time.Duration {
	return responseTimeout + time.Duration(max(bytes, 0)/minSpeed)*time.Second
}

// errStalled is why a request is given up.
var errStalled = errors.New("the store does not go on")

// stallTimeout is a transport that gives up requests which the store does not go on with:
// net/http and minio-go bound how long the header of an answer takes, and not the
// bodies. Only the time counts in which the store is to act. A platform that takes the
// bytes of a file slowly, or a source that gives them so, has bounds of its own.
type stallTimeout struct {
	next  http.RoundTripper
	stall time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p *stallTimeout) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &stallTimer{stall: p.stall, clock: clock.RealClock{}, budget: TimeoutFor(req.ContentLength), cancel: func() { cancel(errStalled) }}
	req = req.WithContext(ctx)
	// The dialer, the handshake and the header have bounds of their own, which are
	// longer than a stall.
	w.start(responseTimeout)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &requestBody{body: req.Body, timer: w}
	}
	response, err := p.next.RoundTrip(req)
	w.headerReceived()
	if err != nil {
		cancel(nil)
		return nil, wrapStall(ctx, err)
	}
	w.extend(response.ContentLength)
	response.Body = &responseBody{ctx: ctx, cancel: cancel, body: response.Body, timer: w}
	return response, nil
}

// wrapStall names the cause of an error, if it is the patience that ended.
func wrapStall(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w: %w", errStalled, err)
	}
	return err
}

// stallTimer measures the time in which the store is to act.
type stallTimer struct {
	stall time.Duration
	clock clock.WithDelayedExecution
	// cancel gives the request up.
	cancel func()

	mu sync.Mutex
	// budget is how long the store may act altogether, and since is when it began
	// to; zero while it is not its turn.
	budget time.Duration
	since  time.Time
	timer  clock.Timer
	// answered says that the header of the answer is there: what is still read of the
	// request's body does not count any more. over says that nothing does.
	answered, over bool
}

// start says that it is the store's turn, for so long at most.
func (w *stallTimer) start(most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.startLocked(most)
}

func (w *stallTimer) startLocked(most time.Duration) {
	w.stopLocked()
	if w.over {
		return
	}
	w.since = w.clock.Now()
	w.timer = w.clock.AfterFunc(min(most, max(w.budget, 0)), w.cancel)
}

// pause says that it is not the store's turn any more.
func (w *stallTimer) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked()
}

// headerReceived is end when the header of the answer is there.
func (w *stallTimer) headerReceived() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked()
	w.answered = true
}

// bodyProgress says how the body of the request goes: that a part of it is wanted, or that
// the store is to take it within so long.
func (w *stallTimer) bodyProgress(wanted bool, within time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.answered:
	case wanted:
		w.stopLocked()
	default:
		w.startLocked(within)
	}
}

// close is end for good.
func (w *stallTimer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked()
	w.over = true
}

// extend grants time for so many bytes more.
func (w *stallTimer) extend(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget += TimeoutFor(bytes) - TimeoutFor(0)
}

func (w *stallTimer) stopLocked() {
	if w.timer == nil {
		return
	}
	w.timer.Stop()
	w.timer = nil
	w.budget -= w.clock.Since(w.since)
}

// requestBody is the body of a request. The store is to act when a part of it was read,
// until the next one is asked for.
type requestBody struct {
	body  io.ReadCloser
	timer *stallTimer
}

func (s *requestBody) Read(p []byte) (int, error) {
	s.timer.bodyProgress(true, 0)
	n, err := s.body.Read(p)
	if err == nil {
		s.timer.bodyProgress(false, s.timer.stall)
	} else {
		// What is left is the header of the answer.
		s.timer.bodyProgress(false, responseTimeout)
	}
	return n, err //nolint:wrapcheck // it is the body's
}

func (s *requestBody) Close() error { return s.body.Close() } //nolint:wrapcheck // it is the body's

// responseBody is the body of an answer. The store is to act while it is read.
type responseBody struct {
	ctx    context.Context //nolint:containedctx // it is that of the request
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	timer  *stallTimer
}

func (r *responseBody) Read(p []byte) (int, error) {
	r.timer.start(r.timer.stall)
	n, err := r.body.Read(p)
	r.timer.pause()
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader promises the bare value
		err = wrapStall(r.ctx, err)
	}
	return n, err //nolint:wrapcheck // it is the body's
}

func (r *responseBody) Close() error {
	r.timer.close()
	err := r.body.Close()
	r.cancel(nil)
	return err //nolint:wrapcheck // it is the body's
}
