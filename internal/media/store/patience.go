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
	// answerWithin bounds what a request may keep the store busy with beside its
	// bodies, and slowest is how many bytes of them a second are waited for beyond.
	answerWithin = 2 * time.Minute
	slowest      = 128 << 10
)

// Within is how long reading or storing so many bytes may take.
func Within(bytes int64) time.Duration {
	return answerWithin + time.Duration(max(bytes, 0)/slowest)*time.Second
}

// errStalled is why a request is given up.
var errStalled = errors.New("the store does not go on")

// patient is a transport that gives up requests which the store does not go on with:
// net/http and minio-go bound how long the header of an answer takes, and not the
// bodies. Only the time counts in which the store is to act. A platform that takes the
// bytes of a file slowly, or a source that gives them so, has bounds of its own.
type patient struct {
	under http.RoundTripper
	stall time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watch{stall: p.stall, clock: clock.RealClock{}, left: Within(req.ContentLength), give: func() { cancel(errStalled) }}
	req = req.WithContext(ctx)
	// The dialer, the handshake and the header have bounds of their own, which are
	// longer than a stall.
	w.begin(answerWithin)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &sending{body: req.Body, watch: w}
	}
	response, err := p.under.RoundTrip(req)
	w.answer()
	if err != nil {
		cancel(nil)
		return nil, stalled(ctx, err)
	}
	w.add(response.ContentLength)
	response.Body = &receiving{ctx: ctx, cancel: cancel, body: response.Body, watch: w}
	return response, nil
}

// stalled names the cause of an error, if it is the patience that ended.
func stalled(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w: %w", errStalled, err)
	}
	return err
}

// watch measures the time in which the store is to act.
type watch struct {
	stall time.Duration
	clock clock.WithDelayedExecution
	// give gives the request up.
	give func()

	mu sync.Mutex
	// left is how long the store may act altogether, and since is when it began
	// to; zero while it is not its turn.
	left  time.Duration
	since time.Time
	timer clock.Timer
	// answered says that the header of the answer is there: what is still read of the
	// request's body does not count any more. over says that nothing does.
	answered, over bool
}

// begin says that it is the store's turn, for so long at most.
func (w *watch) begin(most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(most)
}

func (w *watch) start(most time.Duration) {
	w.stop()
	if w.over {
		return
	}
	w.since = w.clock.Now()
	w.timer = w.clock.AfterFunc(min(most, max(w.left, 0)), w.give)
}

// end says that it is not the store's turn any more.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
}

// answer is end when the header of the answer is there.
func (w *watch) answer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
	w.answered = true
}

// sent says how the body of the request goes: that a part of it is wanted, or that
// the store is to take it within so long.
func (w *watch) sent(wanted bool, within time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.answered:
	case wanted:
		w.stop()
	default:
		w.start(within)
	}
}

// close is end for good.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
	w.over = true
}

// add grants time for so many bytes more.
func (w *watch) add(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left += Within(bytes) - Within(0)
}

func (w *watch) stop() {
	if w.timer == nil {
		return
	}
	w.timer.Stop()
	w.timer = nil
	w.left -= w.clock.Since(w.since)
}

// sending is the body of a request. The store is to act when a part of it was read,
// until the next one is asked for.
type sending struct {
	body  io.ReadCloser
	watch *watch
}

func (s *sending) Read(p []byte) (int, error) {
	s.watch.sent(true, 0)
	n, err := s.body.Read(p)
	if err == nil {
		s.watch.sent(false, s.watch.stall)
	} else {
		// What is left is the header of the answer.
		s.watch.sent(false, answerWithin)
	}
	return n, err //nolint:wrapcheck // it is the body's
}

func (s *sending) Close() error { return s.body.Close() } //nolint:wrapcheck // it is the body's

// receiving is the body of an answer. The store is to act while it is read.
type receiving struct {
	ctx    context.Context //nolint:containedctx // it is that of the request
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	watch  *watch
}

func (r *receiving) Read(p []byte) (int, error) {
	r.watch.begin(r.watch.stall)
	n, err := r.body.Read(p)
	r.watch.end()
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader promises the bare value
		err = stalled(r.ctx, err)
	}
	return n, err //nolint:wrapcheck // it is the body's
}

func (r *receiving) Close() error {
	r.watch.close()
	err := r.body.Close()
	r.cancel(nil)
	return err //nolint:wrapcheck // it is the body's
}
