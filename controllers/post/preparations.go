// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/platforms"
)

// made is what was prepared for a call, or the part of it that is there.
type made struct {
	// checkpoint is the platform's name for it, and secret what carries
	// authority over it; see platforms.Job.
	checkpoint, secret string
}

// preparation is what is made for one target before its visible call. Nobody
// holds a gate meanwhile: it may take long, and it disturbs no one.
type preparation struct {
	uid     types.UID
	hash    string
	begunAt time.Time
	// ahead is set if it was begun before the post's time.
	ahead bool
	// failures counts those before it, one after another, that failed.
	failures int
	stop     context.CancelFunc
	// done is closed when result, err and endedAt are set.
	done    chan struct{}
	result  made
	err     *platforms.Error
	endedAt time.Time

	mu      sync.Mutex
	part    made
	savedAt time.Time
}

// finished reports whether the preparation has ended.
func (p *preparation) finished() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ready reports whether it has ended and nothing but the call is left.
func (p *preparation) ready() bool { return p.finished() && p.err == nil }

// progress is what is there so far.
func (p *preparation) progress() made {
	if p.ready() {
		return p.result
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.part
}

// note keeps how far it has come, and reports whether that is worth writing
// down: the last time was long enough ago.
func (p *preparation) note(part made, now time.Time) (due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = part
	if due = now.Sub(p.savedAt) >= progressEvery; due {
		p.savedAt = now
	}
	return due
}

// preparations remembers what is being prepared and what is not claimed yet.
// What takes long to make is remembered by the post as well; the rest is lost
// with the process, which costs an orphan that nobody sees.
type preparations struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	byPost map[types.NamespacedName]map[int]*preparation
}

func newPreparations(c clock.PassiveClock) *preparations {
	return &preparations{clock: c, byPost: map[types.NamespacedName]map[int]*preparation{}}
}

// known returns the preparation of a target for this content, if there is one.
func (p *preparations) known(key types.NamespacedName, i int, uid types.UID, hash string) *preparation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byPost[key][i]; known != nil && known.uid == uid && known.hash == hash {
		return known
	}
	return nil
}

// outdate stops and forgets the preparation of a target for another content than
// this. It gives its place back when it has ended, and wakes the post.
func (p *preparations) outdate(key types.NamespacedName, i int, uid types.UID, hash string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byPost[key][i]; known != nil && (known.uid != uid || known.hash != hash) {
		p.remove(key, i)
	}
}

// underWay reports whether a preparation of a target has not ended.
func (p *preparations) underWay(key types.NamespacedName, i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byPost[key][i]
	return known != nil && !known.finished()
}

// put remembers a preparation in the place of what was known of its target, which
// is stopped.
func (p *preparations) put(key types.NamespacedName, i int, begun *preparation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPost[key] == nil {
		p.byPost[key] = map[int]*preparation{}
	}
	if replaced := p.byPost[key][i]; replaced != nil {
		replaced.stop()
	}
	p.byPost[key][i] = begun
}

// work makes what precedes a call. It notes in the preparation how far it has
// come.
type work func(ctx context.Context, p *preparation) (made, *platforms.Error)

// start begins the preparation of a target, and calls wake when it has ended. A
// pass over the post is the only one to do so. It outlives the pass, is cut off
// after a while, and nothing is lost if it ends with the process.
func (p *preparations) start(ctx context.Context, within time.Duration, begun *preparation, do work, wake func()) *preparation {
	ctx, begun.stop = context.WithTimeout(context.WithoutCancel(ctx), within)
	begun.begunAt = p.clock.Now()
	begun.savedAt = begun.begunAt
	begun.done = make(chan struct{})
	go func() {
		defer begun.stop()
		begun.result, begun.err = do(ctx, begun)
		begun.endedAt = p.clock.Now()
		close(begun.done)
		wake()
	}()
	return begun
}

// adopted is a preparation that ended before, of which the post remembers the
// result.
func adopted(uid types.UID, hash string, result made, at time.Time) *preparation {
	p := &preparation{
		uid: uid, hash: hash, begunAt: at, endedAt: at, ahead: true, result: result, stop: func() {}, done: make(chan struct{}),
	}
	close(p.done)
	return p
}

// drop forgets the preparation of a target, and stops it if it is under way: it
// is claimed, or has failed.
func (p *preparations) drop(key types.NamespacedName, i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(key, i)
}

func (p *preparations) remove(key types.NamespacedName, i int) {
	if dropped := p.byPost[key][i]; dropped != nil {
		dropped.stop()
	}
	delete(p.byPost[key], i)
	if len(p.byPost[key]) == 0 {
		delete(p.byPost, key)
	}
}

// holdsSecret reports whether an upload of a post is known to be kept in a Secret.
func (p *preparations) holdsSecret(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.byPost[key] {
		if known.progress().secret != "" {
			return true
		}
	}
	return false
}

// forget drops everything that was prepared for a post.
func (p *preparations) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, dropped := range p.byPost[key] {
		dropped.stop()
	}
	delete(p.byPost, key)
}
