// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"time"

	"k8s.io/utils/lru"
)

const (
	// stuckAfter is for how long a graph refuses to publish a container that it
	// calls finished until another one takes its place. Threads keeps saying so of
	// some (code 24/4279009), for which clients make a new one after 20 seconds;
	// Instagram advises a new one after two tries (2207008, "Error codes"). It is
	// twice as long as a container may be behind its publication, so that one which
	// an earlier call has published is found out before.
	stuckAfter = time.Minute
	// newFor is for how long a container that cannot be read is taken for there,
	// since it was made: a video is processed by then.
	newFor = 10 * time.Minute
	// idWait is for how long the id of a post is looked for whose container is
	// published: a listing may lag by half a minute to a minute.
	idWait = 2 * time.Minute
	// unreadWait is for how long a listing is asked for that id which cannot be read:
	// outages of a graph are mostly over by then.
	unreadWait = 10 * time.Minute
	// cacheSize is how many containers are remembered.
	cacheSize = 1000
)

// ContainerCache knows of containers what their graph does not tell. It ends with the
// process: what is not remembered is found out anew, at the cost of a container or
// of a minute.
type ContainerCache struct {
	// created holds the containers that this process made, refused when their
	// publication was refused first, though they were finished, and published when
	// they were first seen to be published.
	created, refused, published *lru.Cache
}

// createdContainer is a container that this process made.
type createdContainer struct {
	at time.Time
	// unclear says that a call for it did not tell whether it published.
	unclear bool
}

// NewContainerCache makes an empty memory.
func NewContainerCache() *ContainerCache {
	return &ContainerCache{created: lru.New(cacheSize), refused: lru.New(cacheSize), published: lru.New(cacheSize)}
}

// recordCreated enters that a container was made.
func (m *ContainerCache) recordCreated(id string, now time.Time) {
	m.created.Add(id, createdContainer{at: now})
}

// recordUncertain enters that a call did not tell whether it published a container.
func (m *ContainerCache) recordUncertain(id string) {
	if c, known := m.created.Get(id); known {
		m.created.Add(id, createdContainer{at: c.(createdContainer).at, unclear: true}) //nolint:forcetypeassert // nothing else is entered
	}
}

// isNew reports whether a container was made so lately that its graph cannot have
// forgotten it.
func (m *ContainerCache) isNew(id string, now time.Time) bool {
	c, known := m.created.Get(id)
	return known && now.Sub(c.(createdContainer).at) < newFor //nolint:forcetypeassert // nothing else is entered
}

// isUnpublished reports whether a container is known not to be published without
// its graph's word: this process made it lately, and every call for it was refused.
func (m *ContainerCache) isUnpublished(id string, now time.Time) bool {
	c, known := m.created.Get(id)
	return known && !c.(createdContainer).unclear && m.isNew(id, now) //nolint:forcetypeassert // nothing else is entered
}

// recordRefused enters that a finished container was refused.
func (m *ContainerCache) recordRefused(id string, now time.Time) {
	if _, known := m.refused.Get(id); !known {
		m.refused.Add(id, now)
	}
}

// isStuck reports whether a container was refused for so long that another one is
// to take its place.
func (m *ContainerCache) isStuck(id string, now time.Time) bool {
	since, known := m.refused.Get(id)
	return known && now.Sub(since.(time.Time)) >= stuckAfter //nolint:forcetypeassert // only times are entered
}

// createdAt returns when this process made a container; zero if it did not.
func (m *ContainerCache) createdAt(id string) time.Time {
	if c, known := m.created.Get(id); known {
		return c.(createdContainer).at //nolint:forcetypeassert // nothing else is entered
	}
	return time.Time{}
}

// observePublished returns for how long a container has been seen to be published, now
// for the first time or not.
func (m *ContainerCache) observePublished(id string, now time.Time) time.Duration {
	since, known := m.published.Get(id)
	if !known {
		m.published.Add(id, now)
		return 0
	}
	return now.Sub(since.(time.Time)) //nolint:forcetypeassert // only times are entered
}
