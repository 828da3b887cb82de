// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// MaxBodyBytes limits how many bytes of request bodies are in memory, from the first byte read until the response
	// is written. Processing a body takes up to five times its size, 40 MiB in total.
	MaxBodyBytes = 8 << 20
	// bodyShare is the divisor for the part of the limit that one caller may use, which is enough for the largest form.
	// The rest remains available to other callers.
	bodyShare = 4
	// smallBody is the maximum size, in bytes, of a body that may also use the last quarter of the limit. Every post that
	// fits on a screen is smaller, so callers with large bodies cannot block such posts.
	smallBody = 64 << 10
	// minBody is the minimum reservation for a body, in bytes. It covers the other memory that a request needs.
	minBody = 4 << 10
)

// A body must arrive within readGrace, plus a second per minReadRate bytes. A slow one keeps its reservation until
// then.
const (
	readGrace   = 10 * time.Second
	minReadRate = 32 << 10
)

// A body keeps its reservation against other demand for minTransferTime, plus a second per minTransferRate bytes. A
// body that arrives faster is never cut off.
const (
	minTransferTime = time.Second
	minTransferRate = 512 << 10
)

// BodyRetryAfter is a rejected request's Retry-After, in seconds: bodies take milliseconds.
const BodyRetryAfter = "1"

var (
	// ErrBodiesFull means that the body currently exceeds the limits.
	ErrBodiesFull = errors.New("there is no room for the body")
	// ErrBodyUnread means that a body did not arrive in full or in time. It wraps the cause, which is
	// *http.MaxBytesError for a body that is too large.
	ErrBodyUnread = errors.New("read the body")
)

// BodyLimiter limits the cost of request bodies: how many bytes are in memory at a time, in total and per caller, and
// how long a body may take to arrive. There is no queue. A body that exceeds the limits is rejected before its first
// byte is read, and the client retries; a waiting body would occupy a connection, and so would the next one. A body
// that arrives slowly keeps its reservation only while there is no other demand: a few slow callers together could
// otherwise use up the whole limit. It is safe for concurrent use.
type BodyLimiter struct {
	most int64

	mu   sync.Mutex
	used int64
	// byCaller holds each caller's bytes; callers without any have no entry.
	byCaller map[string]int64
	// arriving holds the bodies that are being read.
	arriving map[*reservation]struct{}
}

type reservation struct {
	caller string
	size   int64
	// since is when the reservation was made, and cut aborts reading the body.
	since    time.Time
	cut      func()
	released bool
}

// NewBodyLimiter returns a BodyLimiter for up to most bytes at a time.
func NewBodyLimiter(most int64) *BodyLimiter {
	return &BodyLimiter{most: most, byCaller: map[string]int64{}, arriving: map[*reservation]struct{}{}}
}

// acquire reserves memory for a body, evicting others' slow bodies if necessary, or returns nil.
func (g *BodyLimiter) acquire(caller string, size int64, now time.Time, cut func()) *reservation {
	g.mu.Lock()
	defer g.mu.Unlock()
	room := g.most
	if size > smallBody {
		room -= g.most / bodyShare
	}
	if g.byCaller[caller]+size > g.most/bodyShare {
		return nil
	}
	if needed := g.used + size - room; needed > 0 && !g.evictSlow(needed, now) {
		return nil
	}
	p := &reservation{caller: caller, size: size, since: now, cut: cut}
	g.used += size
	g.byCaller[caller] += size
	g.arriving[p] = struct{}{}
	return p
}

// evictSlow cuts off bodies past their transfer time until needed bytes are free. It starts with the callers that have
// the most bytes, and with the oldest of their bodies. If that would not be enough, it evicts none. The caller holds
// the lock.
func (g *BodyLimiter) evictSlow(needed int64, now time.Time) bool {
	var slow []*reservation
	var theirs int64
	for p := range g.arriving {
		if now.Sub(p.since) >= minTransferTime+time.Duration(p.size)*time.Second/minTransferRate {
			slow = append(slow, p)
			theirs += p.size
		}
	}
	if theirs < needed {
		return false
	}
	slices.SortFunc(slow, func(a, b *reservation) int {
		return cmp.Or(cmp.Compare(g.byCaller[b.caller], g.byCaller[a.caller]), a.since.Compare(b.since))
	})
	for _, p := range slow {
		if needed <= 0 {
			break
		}
		needed -= p.size
		p.cut() // wakes the reader, which drops the bytes read
		g.releaseLocked(p)
	}
	return true
}

// finishRead records that the body is no longer being read, so it can no longer be cut off, and reports whether it
// already was.
func (g *BodyLimiter) finishRead(p *reservation) (cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.arriving, p)
	return p.released
}

func (g *BodyLimiter) release(p *reservation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.releaseLocked(p)
}

// releaseLocked ends a reservation; calling it again has no effect. The caller holds the lock.
func (g *BodyLimiter) releaseLocked(p *reservation) {
	if p.released {
		return
	}
	p.released = true
	delete(g.arriving, p)
	g.used -= p.size
	if g.byCaller[p.caller] -= p.size; g.byCaller[p.caller] <= 0 {
		delete(g.byCaller, p.caller)
	}
}

// Read reads the body of a caller's request, of up to most bytes. done ends its reservation; the caller calls it once,
// when the body and the data made from it are no longer needed. done is never nil. The error is ErrBodiesFull,
// including for a body that was cut off, or ErrBodyUnread; body then contains the bytes that arrived, for charging. A
// nil BodyLimiter has no limits.
func (g *BodyLimiter) Read(w http.ResponseWriter, r *http.Request, caller string, most int64) (body []byte, done func(), err error) {
	done = func() {}
	size := r.ContentLength
	if size > most {
		return nil, done, fmt.Errorf("%w: %w", ErrBodyUnread, &http.MaxBytesError{Limit: most})
	}
	if size < 0 { // an unknown length counts as the largest
		size = most
	}
	control := http.NewResponseController(w)
	now := time.Now() //nolint:forbidigo // deadlines of connections use the system clock
	arrived := func() (cut bool) { return false }
	if g != nil {
		// A past deadline wakes the reader.
		taken := g.acquire(caller, max(size, minBody), now, func() { _ = control.SetReadDeadline(now) })
		if taken == nil {
			return nil, done, ErrBodiesFull
		}
		done = func() { g.release(taken) }
		arrived = func() bool { return g.finishRead(taken) }
	}
	// Ignore the error: connections have deadlines, but tests read from memory.
	_ = control.SetReadDeadline(now.Add(readTimeout(size)))
	body, err = readBody(w, r, most)
	switch cut := arrived(); {
	case cut:
		return body, done, ErrBodiesFull
	case err != nil:
		// Keep the read deadline: the server reads the rest of the body before it closes the connection, and would
		// otherwise wait indefinitely.
		return body, done, fmt.Errorf("%w: %w", ErrBodyUnread, err)
	}
	// The next read detects that the client has disconnected.
	_ = control.SetReadDeadline(time.Time{})
	return body, done, nil
}

func readTimeout(size int64) time.Duration {
	return readGrace + time.Duration(size)*time.Second/minReadRate
}

// readBody reads a body into one buffer of the declared size. Growing by doubling would allocate several times the
// size.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	return body.Bytes(), err
}
