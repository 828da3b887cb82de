// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientworkqueue "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// prefetchAhead is how long before a post is due its connections' tokens are read. Tokens are cached for a minute, so
	// they are also used for the posts of the following seconds.
	prefetchAhead = 15 * time.Second
	// prefetchStep is the interval between checks for tokens to read.
	prefetchStep = time.Second
	// maxPrefetches is the maximum number of concurrent reads per shard.
	maxPrefetches = 4
)

// tokenPrefetcher reads tokens shortly before they are needed. A token takes two reads of the API server, which would
// otherwise delay the first post of each connection by several milliseconds, and would compete with the claims of all
// posts that are due at the same time.
//
// A token that is not read in time, or cannot be read, is read when the post is due.
type tokenPrefetcher struct {
	client client.Reader
	tokens Tokens
	clock  clock.WithTicker

	mu sync.Mutex
	// bySecond holds the connections of waiting posts by due time, in Unix seconds. Posts register within five minutes of
	// their due time, so there are at most a few hundred entries.
	bySecond map[int64]map[types.NamespacedName]bool
}

func newTokenPrefetcher(o *Options) *tokenPrefetcher {
	return &tokenPrefetcher{client: o.Client, tokens: o.Tokens, clock: o.Clock, bySecond: map[int64]map[types.NamespacedName]bool{}}
}

// expect registers the connections of a post that waits until it is due.
func (f *tokenPrefetcher) expect(post *v1alpha1.Post, due time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	connections := f.bySecond[due.Unix()]
	if connections == nil {
		connections = map[types.NamespacedName]bool{}
		f.bySecond[due.Unix()] = connections
	}
	for i := range post.Spec.Targets {
		connections[types.NamespacedName{Namespace: post.Namespace, Name: post.Spec.Targets[i].ConnectionRef.Name}] = true
	}
}

// Start implements manager.Runnable.
func (f *tokenPrefetcher) Start(ctx context.Context) error {
	ticker := f.clock.NewTicker(prefetchStep)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			f.prefetch(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// prefetch reads the tokens for the posts that are due within prefetchAhead.
func (f *tokenPrefetcher) prefetch(ctx context.Context) {
	next := f.next()
	clientworkqueue.ParallelizeUntil(ctx, maxPrefetches, len(next), func(i int) { f.read(ctx, next[i]) })
}

type prefetch struct {
	connection types.NamespacedName
	// until is the end of the second in which the connection's posts are due.
	until time.Time
}

// next removes and returns the connections to read now, the earliest posts' first. It drops a second that has passed.
func (f *tokenPrefetcher) next() (due []prefetch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	for second, connections := range f.bySecond {
		at := time.Unix(second, 0)
		if at.Sub(now) > prefetchAhead {
			continue
		}
		delete(f.bySecond, second)
		if until := at.Add(time.Second); until.After(now) {
			for connection := range connections {
				due = append(due, prefetch{connection, until})
			}
		}
	}
	slices.SortFunc(due, func(a, b prefetch) int { return a.until.Compare(b.until) })
	return due
}

func (f *tokenPrefetcher) read(ctx context.Context, p prefetch) {
	if ctx.Err() != nil || !p.until.After(f.clock.Now()) {
		return // earlier reads took too long
	}
	var conn v1alpha1.Connection
	err := f.client.Get(ctx, p.connection, &conn)
	if err == nil && !conn.Spec.Disabled && conn.DeletionTimestamp.IsZero() {
		err = f.tokens.Prefetch(ctx, &conn, p.until)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("cannot prefetch a token; it is read when the post is due", "namespace", p.connection.Namespace, "connection", p.connection.Name, "error", err.Error())
	}
}
