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
	// breakerPause is the pause between two requests to a store that does not answer.
	breakerPause = time.Second
	// breakerTTL is how long it is believed after a failure that the store is away, if
	// nobody asks it: longer than one request takes, with the two halves of writing a record.
	breakerTTL = time.Minute
)

// errStoreUnavailable is why the store is not asked.
var errStoreUnavailable = errors.New("the store did not answer a moment ago")

// evidence is what failures say about a store that many objects share. One object alone, however often it fails, says
// nothing about the others: its key, what is stored under it, or a rule about it may be the cause. A second object that
// fails before any success does.
type evidence struct {
	// suspect is the object that failed last, if any did.
	suspect types.NamespacedName
	// since is when a failure of a second object confirmed the first one; zero before that.
	since time.Time
}

// recordFailure takes the failure of an object.
func (e *evidence) recordFailure(object types.NamespacedName, now time.Time) {
	if e.suspect != (types.NamespacedName{}) && e.suspect != object && e.since.IsZero() {
		e.since = now
	}
	e.suspect = object
}

// duration is for how long a failure has been confirmed; zero without one.
func (e *evidence) duration(clock clock.PassiveClock) time.Duration {
	if e.since.IsZero() {
		return 0
	}
	return clock.Since(e.since)
}

// isRecordError reports whether an error concerns the record of one post alone, while the store answers.
func isRecordError(err error) bool {
	return errors.As(err, new(*unreadable)) || archive.IsRecordError(err)
}

// storeBreaker is what is known of the store being away, by all that ask it for records. A store that
// hangs answers each request after 15 seconds only: while it is away one request at a time finds out
// whether it is back, and all others end at once, so that thousands of deletions do not take
// hours. It is away when the requests for two posts have failed, and none has succeeded in between.
type storeBreaker struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// failures say whether the store is away, and failed is when it was last found to be.
	failures evidence
	failed   time.Time
	// probing is set while a request finds out.
	probing bool
}

// execute makes a request for a post to the store, or returns errAway.
func (o *storeBreaker) execute(post types.NamespacedName, request func() error) error {
	first, ok := o.allow()
	if !ok {
		return errStoreUnavailable
	}
	err := request()
	o.recordResult(post, first, err)
	return err
}

// allow reports whether the store is to be asked now, and whether the others wait for what
// comes of it.
func (o *storeBreaker) allow() (first, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.openLocked() {
		return false, false
	}
	first = !o.failures.since.IsZero()
	o.probing = o.probing || first
	return first, true
}

// isOpen reports whether the store would not be asked now.
func (o *storeBreaker) isOpen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.openLocked()
}

// openLocked reports whether the store is not asked. The caller holds the lock.
func (o *storeBreaker) openLocked() bool {
	ago := o.clock.Since(o.failed)
	return !o.failures.since.IsZero() && ago < breakerTTL && (o.probing || ago < breakerPause)
}

// recordResult takes what came of a request for a post.
func (o *storeBreaker) recordResult(post types.NamespacedName, first bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first {
		o.probing = false
	}
	switch {
	case err == nil, isRecordError(err):
		o.failures, o.failed = evidence{}, time.Time{}
	case errors.Is(err, context.Canceled): // The process ends, or the pass does.
	default:
		o.failed = o.clock.Now()
		o.failures.recordFailure(post, o.failed)
	}
}

// openFor is for how long the store has been away; zero while it is not.
func (o *storeBreaker) openFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failures.duration(o.clock)
}
