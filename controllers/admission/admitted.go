// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"sync"
	"time"
)

const (
	// recordTTL is how long an uncounted record lasts. There is no new count while nothing changes or no apiserver runs.
	recordTTL = 2 * time.Minute
	// seenLate is how late a count may be: a watch event takes a moment, and the clocks of two processes differ.
	seenLate = 2 * time.Second
	// maxAdmitted limits the separate records of a namespace; other posts are summed.
	maxAdmitted = 10_000
)

// admitted records, in memory, what this process admitted since the apiserver's last count. The zero value is usable.
type admitted struct {
	mu         sync.Mutex
	namespaces map[string]*recent
	swept      time.Time
}

// recent holds one namespace's records, one per post: a post that is retried and rejected elsewhere counts once.
type recent struct {
	posts map[string]growing
	// rest is the sum of the records beyond maxAdmitted.
	rest growing
}

// growing is a post that has grown: its size in bytes at the last count and now, and 1 if it is a new post.
type growing struct {
	was, is, created int64
	at               time.Time
}

func (g *growing) coveredBy(countedAt, now time.Time) bool {
	return g.at.Before(countedAt.Add(-seenLate)) || now.Sub(g.at) >= recordTTL
}

// reserve records a change to a post unless fits rejects it. fits is given the other posts and bytes admitted since the
// last count. undo removes the record if another check rejects the post.
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
		// The post's stored size is its size before this change.
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
		case r.posts[name] != record: // a later change has replaced it
		case again:
			r.posts[name] = before
		default:
			delete(r.posts, name)
		}
	})
}

// since returns the sum of the uncounted records, excluding the post named but. It deletes the counted records.
func (r *recent) since(but string, countedAt, now time.Time) (posts, bytes int64) {
	maps.DeleteFunc(r.posts, func(_ string, g growing) bool { return g.coveredBy(countedAt, now) })
	if r.rest.coveredBy(countedAt, now) {
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

func (g *growing) add(record growing, times int64) {
	g.is = max(0, g.is+times*(record.is-record.was))
	g.created = max(0, g.created+times*record.created)
	if times > 0 {
		g.at = record.at
	}
}

func (a *admitted) locked(do func()) func() {
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		do()
	}
}

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
