// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"time"

	"k8s.io/utils/lru"
)

const (
	// stuckAfter is how long a graph may refuse to publish a container that it reports as finished before Herald
	// creates another. Threads keeps refusing some containers (code 24/4279009), and other clients create a new one
	// after 20 seconds. Instagram recommends a new one after two attempts (2207008, "Error codes"). The value is
	// twice the lag of a container's state, so that a container published by an earlier call is detected first.
	stuckAfter = time.Minute
	// newFor is how long after its creation a container that cannot be read is assumed to exist. Even a video has
	// been processed by then.
	newFor = 10 * time.Minute
	// idWait is how long to search for the post id of a published container. A listing may lag by 30 to 60 seconds.
	idWait = 2 * time.Minute
	// unreadWait is how long to retry a listing that cannot be read while searching for that id. Most graph outages
	// do not last longer.
	unreadWait = 10 * time.Minute
	// cacheSize is the maximum number of cached containers.
	cacheSize = 1000
)

// ContainerCache holds facts about containers that their graph does not return. It is kept in memory only: after a
// restart, determining them again costs an additional container or a minute.
type ContainerCache struct {
	// created has an entry for each container that this process created. refused has the time when a finished
	// container was first refused, and published the time when a container was first found to be published.
	created, refused, published *lru.Cache
}

// createdContainer is a container that this process created.
type createdContainer struct {
	at time.Time
	// unclear reports whether the outcome of a publishing call for the container is unknown.
	unclear bool
}

// NewContainerCache returns an empty cache.
func NewContainerCache() *ContainerCache {
	return &ContainerCache{created: lru.New(cacheSize), refused: lru.New(cacheSize), published: lru.New(cacheSize)}
}

func (m *ContainerCache) recordCreated(id string, now time.Time) {
	m.created.Add(id, createdContainer{at: now})
}

func (m *ContainerCache) recordUncertain(id string) {
	if c, known := m.created.Get(id); known {
		m.created.Add(id, createdContainer{at: c.(createdContainer).at, unclear: true}) //nolint:forcetypeassert // all entries have this type
	}
}

// isNew reports whether a container is too recent to have expired.
func (m *ContainerCache) isNew(id string, now time.Time) bool {
	c, known := m.created.Get(id)
	return known && now.Sub(c.(createdContainer).at) < newFor //nolint:forcetypeassert // all entries have this type
}

// isUnpublished reports whether a container is known to be unpublished without a request to the graph: this process
// created it recently, and every call for it was refused.
func (m *ContainerCache) isUnpublished(id string, now time.Time) bool {
	c, known := m.created.Get(id)
	return known && !c.(createdContainer).unclear && m.isNew(id, now) //nolint:forcetypeassert // all entries have this type
}

func (m *ContainerCache) recordRefused(id string, now time.Time) {
	if _, known := m.refused.Get(id); !known {
		m.refused.Add(id, now)
	}
}

// isStuck reports whether a container has been refused for stuckAfter and must be replaced.
func (m *ContainerCache) isStuck(id string, now time.Time) bool {
	since, known := m.refused.Get(id)
	return known && now.Sub(since.(time.Time)) >= stuckAfter //nolint:forcetypeassert // all entries have this type
}

// createdAt returns a container's creation time, or zero if another process created it.
func (m *ContainerCache) createdAt(id string) time.Time {
	if c, known := m.created.Get(id); known {
		return c.(createdContainer).at //nolint:forcetypeassert // all entries have this type
	}
	return time.Time{}
}

// observePublished records that a container is published, and returns how long ago that was first seen.
func (m *ContainerCache) observePublished(id string, now time.Time) time.Duration {
	since, known := m.published.Get(id)
	if !known {
		m.published.Add(id, now)
		return 0
	}
	return now.Sub(since.(time.Time)) //nolint:forcetypeassert // all entries have this type
}
