// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/platforms"
)

// Prepared is what was prepared for a call, or the part of it that is there.
type Prepared struct {
	// Checkpoint is the platform's name for it, and Secret carries authority over
	// it; see platforms.Job.
	Checkpoint, Secret string
}

// progressEvery is how often it is recorded how far an upload has come.
const progressEvery = 15 * time.Second

// preparation is what is made for one target before its visible call. It holds no
// gate: it may take long, and it disturbs no other post.
type preparation struct {
	uid       types.UID
	hash      string
	startedAt time.Time
	// ahead is set if it began before the post's time.
	ahead bool
	// failures counts the failures in a row before it.
	failures int
	// upload is what it sends; nil for a text.
	upload *upload
	// converted is how much of a conversion is done.
	converted tenths
	stop      context.CancelFunc
	// done is closed when result, err and endedAt are set.
	done    chan struct{}
	result  Prepared
	err     *platforms.Error
	endedAt time.Time

	mu      sync.Mutex
	part    Prepared
	savedAt time.Time
}

// adopted is a preparation that another process made and the post remembers.
func adopted(uid types.UID, hash string, result Prepared, at time.Time) *preparation {
	p := &preparation{
		uid: uid, hash: hash, startedAt: at, endedAt: at, ahead: true, result: result, stop: func() {}, done: make(chan struct{}),
	}
	close(p.done)
	return p
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
func (p *preparation) progress() Prepared {
	if p.ready() {
		return p.result
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.part
}

// restore keeps what the Secret has of an earlier preparation.
func (p *preparation) restore(part Prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = part
}

// recordProgress keeps how far it has come, and reports whether that is worth recording: the
// last time was long enough ago.
func (p *preparation) recordProgress(part Prepared, now time.Time) (due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = part
	if due = now.Sub(p.savedAt) >= progressEvery; due {
		p.savedAt = now
	}
	return due
}

// Preparations is what a process remembers of the preparations of one post, by target.
// What takes long is recorded in the post as well; the rest is lost with the
// process, which leaves an orphan on the platform that is never visible. The passes
// over one post come one after another, so that it needs no lock.
type Preparations struct{ byTarget map[int]*preparation }

// Empty reports whether nothing is remembered.
func (m *Preparations) Empty() bool { return len(m.byTarget) == 0 }

// get returns the preparation of a target for this content; nil if there is none.
func (m *Preparations) get(t *Target, hash string) *preparation {
	if p := m.byTarget[t.Index]; p != nil && p.uid == t.Post.UID && p.hash == hash {
		return p
	}
	return nil
}

// set remembers a preparation in the place of what was known of its target, which
// is stopped.
func (m *Preparations) set(target int, p *preparation) {
	if m.byTarget[target] != p {
		m.Drop(target)
	}
	if m.byTarget == nil {
		m.byTarget = map[int]*preparation{}
	}
	m.byTarget[target] = p
}

// Drop forgets the preparation of a target, and stops it if it is under way.
func (m *Preparations) Drop(target int) {
	if p := m.byTarget[target]; p != nil {
		p.stop()
	}
	delete(m.byTarget, target)
}

// DropAll forgets every preparation, and stops those under way.
func (m *Preparations) DropAll() {
	for target := range m.byTarget {
		m.Drop(target)
	}
}

// HasSecret reports whether an upload is known to be kept in a Secret.
func (m *Preparations) HasSecret() bool {
	for _, p := range m.byTarget {
		if p.progress().Secret != "" {
			return true
		}
	}
	return false
}
