// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"sync/atomic"
	"time"
)

// Held is a shard that this process has taken, under one version of its Lease.
type Held struct {
	// Shard is the shard's name: the value of the label and of a Team's status.shard.
	Shard string
	// Version is the random id that the take-over stored in the Lease. Claims name it.
	Version string

	current func() bool
	given   atomic.Bool
	listed  atomic.Bool
	since   time.Time
	stop    context.CancelFunc
	stopped chan struct{}
}

// Valid reports whether this process still holds the shard: it has not given the shard up, and has renewed its member
// Lease recently enough. Call it before and after each claim. A process that was paused may get a true result for a
// shard that was taken from it meanwhile.
func (h *Held) Valid() bool { return !h.given.Load() && h.current() }

// MarkListed records that the delivery has listed the shard's posts, and so delivers them.
func (h *Held) MarkListed() { h.listed.Store(true) }

// giveUp ends the validity and cancels the delivery.
func (h *Held) giveUp() {
	h.given.Store(true)
	h.stop()
}

// hasStopped reports whether the delivery has ended.
func (h *Held) hasStopped() bool {
	select {
	case <-h.stopped:
		return true
	default:
		return false
	}
}

// version returns the version of a held shard, or "" if h is nil.
func (h *Held) version() string {
	if h == nil {
		return ""
	}
	return h.Version
}
