// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
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

// evidence is what failures say about a store that many objects share. One object alone, however often it fails, says
// nothing about the others: its key, what is stored under it, or a rule about it may be the cause. A second object that
// fails before any success does.
type evidence struct {
	// suspect is the object that failed last, if any did.
	suspect types.NamespacedName
	// since is when a failure of a second object confirmed the first one; zero before that.
	since time.Time
}

// fails takes the failure of an object.
func (e *evidence) fails(object types.NamespacedName, now time.Time) {
	if e.suspect != (types.NamespacedName{}) && e.suspect != object && e.since.IsZero() {
		e.since = now
	}
	e.suspect = object
}

// lasts is for how long a failure has been confirmed; zero without one.
func (e *evidence) lasts(clock clock.PassiveClock) time.Duration {
	if e.since.IsZero() {
		return 0
	}
	return clock.Since(e.since)
}

// ofOneRecord reports whether an error concerns the record of one post alone, while the store answers.
func ofOneRecord(err error) bool {
	return errors.As(err, new(*unreadable)) || archive.OfOneRecord(err)
}

// outage is what is known of the store being away, by all that ask it for records. A store that
// hangs answers each request after 15 seconds only: while it is away one request at a time finds out
// whether it is back, and all others end at once, so that thousands of deletions do not take
// hours. It is away when the requests for two posts have failed, and none has succeeded in between.
type outage struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// failures say whether the store is away, and failed is when it was last found to be.
	failures evidence
	failed   time.Time
	// asking is set while a request finds out.
	asking bool
}

// ask makes a request for a post to the store, or returns errAway.
func (o *outage) ask(post types.NamespacedName, request func() error) error {
	first, ok := o.begin()
	if !ok {
		return errAway
	}
	err := request()
	o.end(post, first, err)
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
	first = !o.failures.since.IsZero()
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
	return !o.failures.since.IsZero() && ago < outageKnown && (o.asking || ago < outagePause)
}

// end takes what came of a request for a post.
func (o *outage) end(post types.NamespacedName, first bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first {
		o.asking = false
	}
	switch {
	case err == nil, ofOneRecord(err):
		o.failures, o.failed = evidence{}, time.Time{}
	case errors.Is(err, context.Canceled): // The process ends, or the pass does.
	default:
		o.failed = o.clock.Now()
		o.failures.fails(post, o.failed)
	}
}

// lasts is for how long the store has been away; zero while it is not.
func (o *outage) lasts() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failures.lasts(o.clock)
}
