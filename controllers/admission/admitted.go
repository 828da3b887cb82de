// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"sync"
	"time"
)

const (
	// recordTTL is when a record ends that no count has replaced: none comes while
	// what a team uses is as it was, or while no apiserver runs.
	recordTTL = 2 * time.Minute
	// seenLate is how far a count may be behind its own time: a watch tells a moment
	// later, and the clocks of two processes differ.
	seenLate = 2 * time.Second
	// maxAdmitted is how many posts of a namespace are told apart; the rest is added up.
	maxAdmitted = 10_000
)

// admitted is what this process admitted and the apiserver has not counted yet. It changes
// nothing outside of the process and ends with it. The zero value is ready.
type admitted struct {
	mu         sync.Mutex
	namespaces map[string]*recent
	swept      time.Time
}

// recent is what was admitted in one namespace. It has one record of each post, so that what
// a tool tries again and again, and something else refuses, counts once.
type recent struct {
	posts map[string]growing
	// rest adds up the records that are too many.
	rest growing
}

// growing is a post that became larger: how many bytes it took at the last count, and takes
// now, and whether it is one more.
type growing struct {
	was, is, created int64
	at               time.Time
}

// counted reports whether a count, or its age, has replaced a record.
func (g *growing) counted(countedAt, now time.Time) bool {
	return g.at.Before(countedAt.Add(-seenLate)) || now.Sub(g.at) >= recordTTL
}

// reserve enters a change of a post unless fits refuses it. fits learns what else was admitted
// since the last count. undo takes the change back if something else refuses it.
func (a *admitted) reserve(namespace, name string, change growing, countedAt time.Time, fits func(posts, bytes int64) bool) (undo func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep(change.at)
	r := a.namespaces[namespace]
	if r == nil {
		r = &recent{posts: map[string]growing{}}
	}
	posts, bytes := r.since(name, countedAt, change.at)
	before, again := r.posts[name]
	record := change
	if again {
		// Of this post itself only so much is stored as the change begins with.
		bytes += change.was - before.was
		posts += before.created - change.created
		record.was, record.created = before.was, before.created
	}
	if !fits(posts, bytes) || !again && record.is <= record.was && record.created == 0 {
		return func() {}
	}
	if a.namespaces == nil {
		a.namespaces = map[string]*recent{}
	}
	a.namespaces[namespace] = r
	if !again && len(r.posts) >= maxAdmitted {
		r.rest.add(record, 1)
		return a.locked(func() { r.rest.add(record, -1) })
	}
	r.posts[name] = record
	return a.locked(func() {
		switch {
		case r.posts[name] != record: // another change came after it
		case again:
			r.posts[name] = before
		default:
			delete(r.posts, name)
		}
	})
}

// since adds up what no count has replaced, but for one post, and forgets the rest.
func (r *recent) since(but string, countedAt, now time.Time) (posts, bytes int64) {
	maps.DeleteFunc(r.posts, func(_ string, g growing) bool { return g.counted(countedAt, now) })
	if r.rest.counted(countedAt, now) {
		r.rest = growing{}
	}
	posts, bytes = r.rest.created, r.rest.is
	for name, g := range r.posts {
		if name != but {
			posts += g.created
			bytes += max(0, g.is-g.was)
		}
	}
	return posts, bytes
}

// add adds a record to a sum, or takes it back.
func (g *growing) add(record growing, times int64) {
	g.is = max(0, g.is+times*(record.is-record.was))
	g.created = max(0, g.created+times*record.created)
	if times > 0 {
		g.at = record.at
	}
}

// locked makes a function that holds the lock.
func (a *admitted) locked(do func()) func() {
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		do()
	}
}

// sweep forgets, once in a while, namespaces in which nothing is admitted any more.
func (a *admitted) sweep(now time.Time) {
	if now.Sub(a.swept) < recordTTL {
		return
	}
	a.swept = now
	maps.DeleteFunc(a.namespaces, func(_ string, r *recent) bool {
		r.since("", time.Time{}, now)
		return len(r.posts) == 0 && r.rest == growing{}
	})
}
