// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/archive"
)

const (
	// outagePause is the pause between two requests to a store that does not answer.
	outagePause = time.Second
	// outageKnown is how long it is believed after a failure that the store is away, if
	// nobody asks it: longer than one request takes, with the two halves of writing a record.
	outageKnown = time.Minute
)

// errAway is why the store is not asked.
var errAway = errors.New("the store did not answer a moment ago")

// outage is what is known of the store being away, by all who ask it for records. One that
// hangs answers each request after 15 seconds only: while it is away one request at a time finds out
// whether it is back, and all others end at once, so that thousands of deletions do not take
// hours.
type outage struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// since is since when the store has not answered, and failed when it was last found not
	// to; zero while it does.
	since, failed time.Time
	// asking is set while somebody finds out.
	asking bool
}

// ask makes a request to the store, or returns errAway.
func (o *outage) ask(request func() error) error {
	first, ok := o.begin()
	if !ok {
		return errAway
	}
	err := request()
	o.end(first, err)
	return err
}

// begin reports whether the store is to be asked now, and whether the others wait for what
// comes of it.
func (o *outage) begin() (first, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed() {
		return false, false
	}
	first = !o.since.IsZero()
	o.asking = o.asking || first
	return first, true
}

// knows reports whether the store would not be asked now.
func (o *outage) knows() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed()
}

// closed reports whether the store is not asked. The caller holds the lock.
func (o *outage) closed() bool {
	ago := o.clock.Since(o.failed)
	return !o.since.IsZero() && ago < outageKnown && (o.asking || ago < outagePause)
}

// end takes what came of a request.
func (o *outage) end(first bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first {
		o.asking = false
	}
	if err == nil || errors.As(err, new(*unreadable)) || errors.Is(err, archive.ErrNotFound) {
		o.since, o.failed = time.Time{}, time.Time{}
		return
	}
	o.failed = o.clock.Now()
	if o.since.IsZero() {
		o.since = o.failed
	}
}

// lasts is for how long the store has not answered; zero while it does.
func (o *outage) lasts() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return 0
	}
	return o.clock.Since(o.since)
}
