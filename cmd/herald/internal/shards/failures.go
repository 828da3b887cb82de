// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import "time"

// maxPause limits how long a replica leaves a shard to the others after it failed to deliver its posts.
const maxPause = 30 * time.Second

// failures are the shards whose delivery has ended by itself. Without a pause, a replica that cannot deliver a shard
// would release it and take it over again as fast as the API server allows, and no other replica would get it.
type failures map[int]failure

type failure struct {
	until time.Time
	pause time.Duration
}

// add records that a delivery has failed after it had run for some time. The pause doubles with each failure until a
// delivery runs longer than the longest pause.
func (f failures) add(shard int, now time.Time, ran, shortest time.Duration) {
	pause := shortest
	if before, again := f[shard]; again && ran < maxPause {
		pause = min(2*before.pause, maxPause)
	}
	f[shard] = failure{now.Add(pause), pause}
}

// isRecent reports whether the shard is left to other replicas.
func (f failures) isRecent(shard int, now time.Time) bool { return now.Before(f[shard].until) }

// anyRecent reports whether any shard is left to other replicas.
func (f failures) anyRecent(now time.Time) bool {
	for shard := range f {
		if f.isRecent(shard, now) {
			return true
		}
	}
	return false
}
