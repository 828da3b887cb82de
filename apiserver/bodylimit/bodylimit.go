// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bodylimit bounds what bodies of requests cost this process: how many bytes of them
// it holds at once, all together and of each caller, and how long one may take to arrive.
// Nothing is queued. A body that has no room is refused before its first byte is read, and
// its client comes again; one that waited would hold a connection, and the next one too.
// A body that arrives slowly keeps its room while nobody else needs it: some callers who
// dribble together would leave none to all others.
package bodylimit

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
	// MaxBytes is how many bytes of bodies are held at once, from the first byte read until
	// the answer is written. What is made of a body takes up to five times its size, so
	// these are 40 MiB.
	MaxBytes = 8 << 20
	// share is the part of it that one caller may take, as a divisor: the largest form.
	// A caller that sends nothing but large bodies leaves the rest to others.
	share = 4
	// small is the size of a body, in bytes, that may take the last quarter as well: all
	// posts that fit on a screen. Callers with large bodies cannot keep those out.
	small = 64 << 10
	// least is what a body counts at least, for what is held beside it, in bytes.
	least = 4 << 10
)

// readGrace and pace say how long a body may take to arrive: so long, and a second more for so
// many bytes. What dribbles holds its place as long as that.
const (
	readGrace   = 10 * time.Second
	minReadRate = 32 << 10
)

// minTransferTime and brisk say how long a body keeps its room that another one needs: so long, and
// a second more for so many bytes. Who is faster than that is never cut off.
const (
	minTransferTime = time.Second
	minTransferRate = 512 << 10
)

// RetryAfter is after how many seconds a client that was refused may try again. What is in
// the way takes milliseconds, if it arrives whole.
const RetryAfter = "1"

var (
	// ErrFull says that there is no room for a body at this moment.
	ErrFull = errors.New("there is no room for the body")
	// ErrUnread says that a body did not arrive in full, or not in time. It wraps the cause,
	// which is *http.MaxBytesError for one that is too large.
	ErrUnread = errors.New("read the body")
)

// Limiter counts the bytes of bodies that are held. It is safe for concurrent use.
type Limiter struct {
	most int64

	mu   sync.Mutex
	used int64
	// byCaller holds what each caller has taken; callers with nothing are not in it.
	byCaller map[string]int64
	// arriving are those whose last byte has not come.
	arriving map[*reservation]struct{}
}

// reservation is the room of one body.
type reservation struct {
	caller string
	size   int64
	// since is when it was taken, and cut ends the arrival of the body.
	since time.Time
	cut   func()
	// released says that the room is given back.
	released bool
}

// New returns a Gate for so many bytes at once.
func New(most int64) *Limiter {
	return &Limiter{most: most, byCaller: map[string]int64{}, arriving: map[*reservation]struct{}{}}
}

// acquire takes room for a body of a caller; nil if there is none. Slow bodies of others make
// room for it.
func (g *Limiter) acquire(caller string, size int64, now time.Time, cut func()) *reservation {
	g.mu.Lock()
	defer g.mu.Unlock()
	room := g.most
	if size > small {
		room -= g.most / share
	}
	if g.byCaller[caller]+size > g.most/share {
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

// evictSlow cuts bodies off that have had their time, until so many bytes are free: those of
// the callers who hold most come first, and of these the oldest. It cuts none if that is not
// enough. Its caller holds the lock.
func (g *Limiter) evictSlow(needed int64, now time.Time) bool {
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
		p.cut() // its reader wakes, and lets go of what has come
		g.releaseLocked(p)
	}
	return true
}

// finishRead notes that a body is read to its end, or never will be, so that it is not cut off
// any more. It reports whether it was.
func (g *Limiter) finishRead(p *reservation) (cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.arriving, p)
	return p.released
}

func (g *Limiter) release(p *reservation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.releaseLocked(p)
}

// releaseLocked gives room back, once; its caller holds the lock.
func (g *Limiter) releaseLocked(p *reservation) {
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

// Read reads the body of a caller's request, of at most so many bytes. done gives its room
// back, and is called once when neither the body nor what was made of it is needed any
// more; it is never nil. Errors are ErrFull, of a body too that gave its room to another, and
// ErrUnread; the body is what had arrived then, for who counts what was read. A nil Gate has
// room for all.
func (g *Limiter) Read(w http.ResponseWriter, r *http.Request, caller string, most int64) (body []byte, done func(), err error) {
	done = func() {}
	size := r.ContentLength
	if size > most {
		return nil, done, fmt.Errorf("%w: %w", ErrUnread, &http.MaxBytesError{Limit: most})
	}
	if size < 0 { // it is not told, and counts as the largest
		size = most
	}
	control := http.NewResponseController(w)
	now := time.Now() //nolint:forbidigo // deadlines of connections are the kernel's
	arrived := func() (cut bool) { return false }
	if g != nil {
		// A deadline that is past wakes the reader.
		taken := g.acquire(caller, max(size, least), now, func() { _ = control.SetReadDeadline(now) })
		if taken == nil {
			return nil, done, ErrFull
		}
		done = func() { g.release(taken) }
		arrived = func() bool { return g.finishRead(taken) }
	}
	// Tests read from memory, which has no deadlines; a connection has.
	_ = control.SetReadDeadline(now.Add(readTimeout(size)))
	body, err = read(w, r, most)
	switch cut := arrived(); {
	case cut:
		return body, done, ErrFull
	case err != nil:
		// The deadline stays: the server reads the rest of the body before it closes the
		// connection, and would wait for it as long as the client likes.
		return body, done, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	// The next read is that which finds out that the client has gone.
	_ = control.SetReadDeadline(time.Time{})
	return body, done, nil
}

// readTimeout is how long a body of so many bytes may take.
func readTimeout(size int64) time.Duration {
	return readGrace + time.Duration(size)*time.Second/minReadRate
}

// read reads into one piece of the announced size: growing by doubling would allocate
// several times the body.
func read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	return body.Bytes(), err
}
