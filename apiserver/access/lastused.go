// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// lastUsedEvery is the minimum time between two writes for a key.
	lastUsedEvery = time.Hour
	// lastUsedRetry is the pause after a failed write; the next use after that retries.
	lastUsedRetry = time.Minute
	// lastUsedQueue limits the pending writes. Further uses are dropped, and a later use is recorded instead.
	lastUsedQueue = 256
	// lastUsedTimeout is the timeout of a write; without it, a write that hangs would block the others.
	lastUsedTimeout = 10 * time.Second
)

// TouchFunc stores when a key was last used.
type TouchFunc func(ctx context.Context, namespace, name string, at time.Time) error

// LastUsed records the use of keys or grants, at most hourly per key and never while a request waits.
type LastUsed struct {
	touch TouchFunc
	clock clock.PassiveClock
	log   *slog.Logger
	queue chan keyUse

	mu  sync.Mutex
	due map[types.UID]time.Time // when the next write is due
}

type keyUse struct {
	uid             types.UID
	namespace, name string
	at              time.Time
}

// NewLastUsed returns a LastUsed that writes with touch while Run runs.
func NewLastUsed(touch TouchFunc, clock clock.PassiveClock, log *slog.Logger) *LastUsed {
	return &LastUsed{
		touch: touch, clock: clock, log: log,
		queue: make(chan keyUse, lastUsedQueue),
		due:   map[types.UID]time.Time{},
	}
}

// Record records a use of a key now. It never blocks.
func (l *LastUsed) Record(key *v1alpha1.APIKey) { l.RecordUse(key, key.Status.LastUsedAt) }

// RecordUse records a use of an object now. at is its last recorded use, or nil. It never blocks.
func (l *LastUsed) RecordUse(key metav1.Object, at *v1alpha1.Time) {
	now := l.clock.Now()
	if at != nil && now.Sub(at.Time) < lastUsedEvery {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.due[key.GetUID()]) {
		return
	}
	select {
	case l.queue <- keyUse{uid: key.GetUID(), namespace: key.GetNamespace(), name: key.GetName(), at: now}:
		l.due[key.GetUID()] = now.Add(lastUsedEvery)
	default:
	}
}

// Run writes until the context is done.
func (l *LastUsed) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case u := <-l.queue:
			l.write(ctx, u)
		}
	}
}

func (l *LastUsed) write(ctx context.Context, u keyUse) {
	writing, cancel := context.WithTimeout(ctx, lastUsedTimeout)
	defer cancel()
	err := l.touch(writing, u.namespace, u.name, u.at)
	if err != nil && ctx.Err() == nil {
		l.log.WarnContext(ctx, "Cannot record the use of an API key or a grant", "namespace", u.namespace, "name", u.name, "error", err)
	}
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.due[u.uid] = now.Add(lastUsedRetry)
	}
	for uid, due := range l.due {
		if !now.Before(due) {
			delete(l.due, uid)
		}
	}
}
