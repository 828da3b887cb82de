// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/test/storetest"
)

// gated is a store that reports the start of each write of an index, and finishes it when the test permits it.
type gated struct {
	*storetest.Memory

	begun, end chan struct{}
	writes     atomic.Int32
}

func newGated() *gated {
	return &gated{Memory: storetest.NewMemory(time.Now), begun: make(chan struct{}), end: make(chan struct{})}
}

func (g *gated) PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (string, error) {
	if strings.HasSuffix(key, "/index") {
		g.writes.Add(1)
		g.begun <- struct{}{}
		select {
		case <-g.end:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return g.Memory.PutDocument(ctx, key, mimeType, data, etag)
}

// awaitGathered waits until the given number of posts wait for the next write.
func awaitGathered(w *lists.Writer, want int) {
	for w.Gathered(acme) != want {
		runtime.Gosched()
	}
}

// TestConcurrentAddsAreMerged checks that a thousand concurrent calls, each of which adds one post, take two writes:
// one for the first post, and one for all that arrived in the meantime.
func TestConcurrentAddsAreMerged(t *testing.T) {
	g := newGated()
	w := lists.NewWriter(g, clocktesting.NewFakePassiveClock(epoch))
	var callers sync.WaitGroup
	for i, e := range many(1000) {
		callers.Go(func() {
			if err := w.Add(t.Context(), acme, []lists.Entry{e}); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			<-g.begun
		}
	}
	awaitGathered(w, 999)
	g.end <- struct{}{}
	<-g.begun
	g.end <- struct{}{}
	callers.Wait()
	if state, err := w.Stats(t.Context(), acme); err != nil || state.Posts != 1000 || g.writes.Load() != 2 {
		t.Errorf("%+v, %v after %d writes of the index; want 1,000 posts after 2", state, err, g.writes.Load())
	}
}

// TestMergedAddsOutliveTheirCaller checks that the posts in another caller's batch are written even if that caller is
// cancelled.
func TestMergedAddsOutliveTheirCaller(t *testing.T) {
	g := newGated()
	w := lists.NewWriter(g, clocktesting.NewFakePassiveClock(epoch))
	some := many(3)
	var callers sync.WaitGroup
	enter := func(ctx context.Context, i int, want error) {
		callers.Go(func() {
			if err := w.Add(ctx, acme, some[i:i+1]); !errors.Is(err, want) {
				t.Errorf("post %d: %v, want %v", i, err, want)
			}
		})
	}
	enter(t.Context(), 0, nil)
	<-g.begun
	hasty, giveUp := context.WithCancel(t.Context())
	enter(hasty, 1, context.Canceled)
	awaitGathered(w, 1) // it starts the second batch
	enter(t.Context(), 2, nil)
	awaitGathered(w, 2)
	g.end <- struct{}{}
	<-g.begun
	giveUp()
	<-g.begun // a caller from the batch writes again
	g.end <- struct{}{}
	callers.Wait()
	if state, err := w.Stats(t.Context(), acme); err != nil || state.Posts != 2 {
		t.Errorf("got %+v, %v; want both waiting callers' posts", state, err)
	}
}
