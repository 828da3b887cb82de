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
	// DefaultStall is how long the store may pause while sending or receiving a body.
	DefaultStall = 30 * time.Second
	// responseTimeout is the store's total time for a request, not counting bodies. A body adds time according to its
	// length and minSpeed, in bytes per second.
	responseTimeout = 2 * time.Minute
	minSpeed        = 128 << 10
)

// TimeoutFor returns the timeout for reading or storing the given number of bytes.
func TimeoutFor(bytes int64) time.Duration {
	return responseTimeout + time.Duration(max(bytes, 0)/minSpeed)*time.Second
}

var errStalled = errors.New("the store has stalled")

// stallTimeout is a transport that aborts stalled requests: net/http and minio-go limit the wait for response headers,
// but not for bodies. Only the store's own time counts. Slow platforms and sources are limited elsewhere.
type stallTimeout struct {
	next  http.RoundTripper
	stall time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p *stallTimeout) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &stallTimer{stall: p.stall, clock: clock.RealClock{}, budget: TimeoutFor(req.ContentLength), cancel: func() { cancel(errStalled) }}
	req = req.WithContext(ctx)
	// The dialer, the handshake and the header have separate timeouts, which are longer than a stall.
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

// wrapStall adds errStalled to an error that a stall caused.
func wrapStall(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w: %w", errStalled, err)
	}
	return err
}

type stallTimer struct {
	stall  time.Duration
	clock  clock.WithDelayedExecution
	cancel func()

	mu sync.Mutex
	// budget is the store's remaining time, and since is when its turn started, or zero while it is not its turn.
	budget time.Duration
	since  time.Time
	timer  clock.Timer
	// answered is true after the response header: reads of the request body no longer count. over stops all counting.
	answered, over bool
}

// start starts the timer for the store's turn, which may last up to most.
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

func (w *stallTimer) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked()
}

// headerReceived pauses the timer once the response header has arrived.
func (w *stallTimer) headerReceived() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked()
	w.answered = true
}

// bodyProgress reports that the request body's next part is being read, or is due at the store within the given time.
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

// close stops the timer permanently.
func (w *stallTimer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked()
	w.over = true
}

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

// requestBody is a request body. It is the store's turn from the end of one read to the start of the next.
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
		// Only the response header is outstanding.
		s.timer.bodyProgress(false, responseTimeout)
	}
	return n, err //nolint:wrapcheck // the error comes from the body
}

func (s *requestBody) Close() error { return s.body.Close() } //nolint:wrapcheck // the error comes from the body

// responseBody is a response body. It is the store's turn during reads.
type responseBody struct {
	ctx    context.Context //nolint:containedctx // the context of the request
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
	return n, err //nolint:wrapcheck // the error comes from the body
}

func (r *responseBody) Close() error {
	r.timer.close()
	err := r.body.Close()
	r.cancel(nil)
	return err //nolint:wrapcheck // the error comes from the body
}
