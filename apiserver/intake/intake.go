// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intake bounds what bodies of requests cost this process: how many bytes of them
// it holds at once, all together and of each caller, and how long one may take to arrive.
// Nothing is queued. A body that has no room is refused before its first byte is read, and
// its client comes again; one that waited would hold a connection, and the next one too.
package intake

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// Most is how many bytes of bodies are held at once, from the first byte read until
	// the answer is written. What is made of a body takes up to five times its size, so
	// these are 40 MiB.
	Most = 8 << 20
	// share is the part of it that one caller may take, as a divisor: the largest form.
	// A caller that sends nothing but large bodies leaves the rest to others.
	share = 4
	// small is the size of a body, in bytes, that may take the last quarter as well: all
	// posts that fit on a screen. Callers with large bodies cannot keep those out.
	small = 64 << 10
	// least is what a body counts at least, for what is held beside it, in bytes.
	least = 4 << 10
)

// grace and pace say how long a body may take to arrive: so long, and a second more for so
// many bytes. What dribbles holds its place as long as that.
const (
	grace = 10 * time.Second
	pace  = 32 << 10
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

// Gate counts the bytes of bodies that are held. It is safe for concurrent use.
type Gate struct {
	most int64

	mu   sync.Mutex
	used int64
	// of holds what each caller has taken; callers with nothing are not in it.
	of map[string]int64
}

// NewGate returns a Gate for so many bytes at once.
func NewGate(most int64) *Gate { return &Gate{most: most, of: map[string]int64{}} }

// enter takes room for a body of a caller; false if there is none.
func (g *Gate) enter(caller string, size int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	room := g.most
	if size > small {
		room -= g.most / share
	}
	if g.used+size > room || g.of[caller]+size > g.most/share {
		return false
	}
	g.used += size
	g.of[caller] += size
	return true
}

func (g *Gate) leave(caller string, size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= size
	if g.of[caller] -= size; g.of[caller] <= 0 {
		delete(g.of, caller)
	}
}

// Read reads the body of a caller's request, of at most so many bytes. done gives its room
// back, and is called once when neither the body nor what was made of it is needed any
// more; it is never nil. Errors are ErrFull and ErrUnread. A nil Gate has room for all.
func (g *Gate) Read(w http.ResponseWriter, r *http.Request, caller string, most int64) (body []byte, done func(), err error) {
	done = func() {}
	size := r.ContentLength
	if size > most {
		return nil, done, fmt.Errorf("%w: %w", ErrUnread, &http.MaxBytesError{Limit: most})
	}
	if size < 0 { // it is not told, and counts as the largest
		size = most
	}
	if g != nil {
		counted := max(size, least)
		if !g.enter(caller, counted) {
			return nil, done, ErrFull
		}
		done = sync.OnceFunc(func() { g.leave(caller, counted) })
	}
	control := http.NewResponseController(w)
	// Tests read from memory, which has no deadlines; a connection has.
	_ = control.SetReadDeadline(time.Now().Add(within(size))) //nolint:forbidigo // deadlines of connections are the kernel's
	body, err = read(w, r, most)
	// The next read is that which finds out that the client has gone.
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		return nil, done, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	return body, done, nil
}

// within is how long a body of so many bytes may take.
func within(size int64) time.Duration {
	return grace + time.Duration(size)*time.Second/pace
}

// read reads into one piece of the announced size: growing by doubling would allocate
// several times the body.
func read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	return body.Bytes(), err
}
