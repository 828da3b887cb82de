// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

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
	breakerPause = time.Second
	// breakerTTL is the longest time that the breaker stays open after a failure without another result. It exceeds the
	// time of one request, including both halves of writing a record.
	breakerTTL = time.Minute
)

var errStoreUnavailable = errors.New("the store did not respond a moment ago")

// evidence collects failures of a store that many objects share. Failures for one object, however many, do not prove
// that the store is unavailable: the cause may be the key, the stored content, or a rule about it. A failure for a
// second object before any success proves it.
type evidence struct {
	suspect types.NamespacedName
	// since is the time when a second object confirmed the failure, or zero before that.
	since time.Time
}

func (e *evidence) recordFailure(object types.NamespacedName, now time.Time) {
	if e.suspect != (types.NamespacedName{}) && e.suspect != object && e.since.IsZero() {
		e.since = now
	}
	e.suspect = object
}

func (e *evidence) duration(clock clock.PassiveClock) time.Duration {
	if e.since.IsZero() {
		return 0
	}
	return clock.Since(e.since)
}

// isRecordError reports whether an error concerns only the record of one post. The store itself has responded.
func isRecordError(err error) bool {
	return errors.As(err, new(*unreadable)) || archive.IsRecordError(err)
}

// storeBreaker is the circuit breaker for all requests about records. A hanging store takes 15 seconds to fail each
// request. While the breaker is open, one request at a time probes the store and all others fail immediately; otherwise
// thousands of deletions would take hours. It opens when two posts' requests have failed without a success in between.
type storeBreaker struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// failures is the evidence that the store is unavailable, and failed is the time of the last failure.
	failures evidence
	failed   time.Time
	probing  bool
}

// execute sends a request for a post to the store, or returns errStoreUnavailable.
func (o *storeBreaker) execute(post types.NamespacedName, request func() error) error {
	first, ok := o.allow()
	if !ok {
		return errStoreUnavailable
	}
	err := request()
	o.recordResult(post, first, err)
	return err
}

// allow reports whether a request may be sent. first is true if the request is the probe that all others wait for.
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

// isOpen reports whether a request would fail without being sent.
func (o *storeBreaker) isOpen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.openLocked()
}

func (o *storeBreaker) openLocked() bool {
	ago := o.clock.Since(o.failed)
	return !o.failures.since.IsZero() && ago < breakerTTL && (o.probing || ago < breakerPause)
}

func (o *storeBreaker) recordResult(post types.NamespacedName, first bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first {
		o.probing = false
	}
	switch {
	case err == nil, isRecordError(err):
		o.failures, o.failed = evidence{}, time.Time{}
	case errors.Is(err, context.Canceled): // The process or the reconciliation is stopping.
	default:
		o.failed = o.clock.Now()
		o.failures.recordFailure(post, o.failed)
	}
}

func (o *storeBreaker) openFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failures.duration(o.clock)
}
