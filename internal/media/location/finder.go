// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/herald-social/herald/internal/media/store"
)

const (
	// atOnce limits concurrent searches. Searching a file takes a megabyte of memory, and a few more for hostile metadata.
	atOnce = 2
	// maxCached limits the approximate size of cached results in bytes. Almost all take about a hundred.
	maxCached = 16 << 20
)

// File is a file in the store.
type File struct {
	Key, ETag, MIMEType string
	Size                int64
}

// Finder searches files in the store for locations, each file only once. It is safe for concurrent use.
type Finder struct {
	open      store.Open
	searching singleflight.Group
	places    chan struct{}

	mu sync.Mutex
	// entries holds the results by key and etag; used holds them most recently used first; cachedBytes is their size.
	entries     map[string]*list.Element
	used        *list.List
	cachedBytes int64
}

type result struct {
	id    string
	found Patches
	err   error
}

// NewFinder returns a Finder for files that open reads.
func NewFinder(open store.Open) *Finder {
	return &Finder{open: open, places: make(chan struct{}, atOnce), entries: map[string]*list.Element{}, used: list.New()}
}

// Find is like the function Find, for a file in the store. Calls for the same file share one search, which continues
// even if all of them stop waiting. The error may come from the store.
func (f *Finder) Find(ctx context.Context, file File) (Patches, error) {
	id := file.Key + "\n" + file.ETag
	if known, ok := f.recall(id); ok {
		return known.found, known.err
	}
	searched := f.searching.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.TimeoutFor(file.Size))
		defer cancel()
		return f.search(ctx, id, file)
	})
	select {
	case answer := <-searched:
		found, _ := answer.Val.(Patches)
		return found, answer.Err
	case <-ctx.Done():
		return Patches{}, fmt.Errorf("the search for the file's location timed out: %w", ctx.Err())
	}
}

// search searches a file, and caches the result unless the file could not be read.
func (f *Finder) search(ctx context.Context, id string, file File) (Patches, error) {
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	case <-ctx.Done():
		return Patches{}, fmt.Errorf("the search for the file's location timed out: %w", ctx.Err())
	}
	found, err := Find(store.ReaderAt(ctx, f.open, file.Key, file.ETag, file.Size), file.Size, file.MIMEType)
	if problem := new(UnreadableError); err == nil || errors.As(err, &problem) {
		f.remember(&result{id, found, err})
	}
	return found, err
}

func (f *Finder) recall(id string) (*result, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.entries[id]
	if at == nil {
		return nil, false
	}
	f.used.MoveToFront(at)
	known, ok := at.Value.(*result)
	return known, ok
}

func (f *Finder) remember(r *result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(f.entries[r.id])
	f.entries[r.id] = f.used.PushFront(r)
	for f.cachedBytes += r.weight(); f.cachedBytes > maxCached; {
		f.forget(f.used.Back())
	}
}

// forget drops a result. It ignores nil.
func (f *Finder) forget(at *list.Element) {
	if at == nil {
		return
	}
	if old, ok := f.used.Remove(at).(*result); ok {
		delete(f.entries, old.id)
		f.cachedBytes -= old.weight()
	}
}

func (r *result) weight() int64 { return 2*patchCosts + 2*int64(len(r.id)) + r.found.Weight() }
