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

// Prepared is the result of a preparation, complete or in part.
type Prepared struct {
	// Checkpoint is the platform's reference to the prepared content, and Secret the upload session; see platforms.Job.
	Checkpoint, Secret string
}

const progressEvery = 15 * time.Second

// preparation is one target's preparation before its visible call. It holds no gate, so it may take a long time.
type preparation struct {
	uid       types.UID
	hash      string
	startedAt time.Time
	ahead     bool
	failures  int
	// upload is its upload, or nil for a text post.
	upload    *upload
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

// adopted returns another process's finished preparation, from the post's status.
func adopted(uid types.UID, hash string, result Prepared, at time.Time) *preparation {
	p := &preparation{
		uid: uid, hash: hash, startedAt: at, endedAt: at, ahead: true, result: result, stop: func() {}, done: make(chan struct{}),
	}
	close(p.done)
	return p
}

func (p *preparation) finished() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *preparation) ready() bool { return p.finished() && p.err == nil }

func (p *preparation) progress() Prepared {
	if p.ready() {
		return p.result
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.part
}

func (p *preparation) restore(part Prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = part
}

// recordProgress stores the progress. It reports whether to record it in the post, which is due every progressEvery.
func (p *preparation) recordProgress(part Prepared, now time.Time) (due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = part
	if due = now.Sub(p.savedAt) >= progressEvery; due {
		p.savedAt = now
	}
	return due
}

// Preparations holds the preparations for one post in this process, by target. Slow ones are also recorded in the post.
// The others are lost with the process, and leave an orphan on the platform that never becomes visible. Preparations
// does not need a lock: a post's reconciliations never overlap.
type Preparations struct{ byTarget map[int]*preparation }

// Empty reports whether there are no preparations.
func (m *Preparations) Empty() bool { return len(m.byTarget) == 0 }

func (m *Preparations) get(t *Target, hash string) *preparation {
	if p := m.byTarget[t.Index]; p != nil && p.uid == t.Post.UID && p.hash == hash {
		return p
	}
	return nil
}

// set stores the preparation of a target, and stops the one it replaces.
func (m *Preparations) set(target int, p *preparation) {
	if m.byTarget[target] != p {
		m.Drop(target)
	}
	if m.byTarget == nil {
		m.byTarget = map[int]*preparation{}
	}
	m.byTarget[target] = p
}

// Drop removes the preparation of a target, and stops it if it is running.
func (m *Preparations) Drop(target int) {
	if p := m.byTarget[target]; p != nil {
		p.stop()
	}
	delete(m.byTarget, target)
}

// DropAll removes all preparations, and stops the running ones.
func (m *Preparations) DropAll() {
	for target := range m.byTarget {
		m.Drop(target)
	}
}

// HasSecret reports whether any preparation has an upload session.
func (m *Preparations) HasSecret() bool {
	for _, p := range m.byTarget {
		if p.progress().Secret != "" {
			return true
		}
	}
	return false
}
