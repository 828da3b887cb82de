// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/herald-social/herald/internal/media/store"
)

// Rebuild writes a team's lists from scratch, given all their entries, and returns the number of posts. It is for lists
// with a damaged or missing file: all it reads from the old lists is the revision. They remain until a single write of
// the index replaces them, so an interrupted rebuild has no effect.
func (w *Writer) Rebuild(ctx context.Context, of Team, all iter.Seq2[[]Entry, error]) (posts int, err error) {
	t := w.team(of)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = nil
	before, err := w.outline(ctx, of)
	if err != nil {
		return 0, fmt.Errorf("cannot rebuild the archive of team %s: %w", of.Name, err)
	}
	// The files of the damaged lists may still be in use, so the next sweep is a day away.
	w.mu.Lock()
	w.swept[of] = w.clock.Now()
	w.mu.Unlock()
	next := &loaded{index: index{revision: before.revision}, manifest: &manifest{}}
	for entries, err := range all {
		if err == nil {
			next, err = w.withEntries(ctx, of, next, entries)
		}
		if err != nil {
			return 0, fmt.Errorf("cannot rebuild the archive of team %s: %w", of.Name, err)
		}
	}
	if err := w.store(ctx, of, before, next); err != nil {
		return 0, fmt.Errorf("cannot rebuild the archive of team %s: %w", of.Name, err)
	}
	t.loaded = next
	return next.manifest.posts() + len(next.head), nil
}

// outline reads what new lists take over from the old. If the index is unreadable, the clock yields a greater revision.
func (w *Writer) outline(ctx context.Context, of Team) (*loaded, error) {
	data, etag, err := w.bucket.ReadDocument(ctx, of.index(), "", maxIndex)
	if errors.Is(err, store.ErrNotFound) {
		return &loaded{}, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // the store has wrapped it
	}
	before := &loaded{index: index{revision: w.clock.Now().UnixMilli()}, etag: etag}
	if x, err := decodeIndex(of, data); err == nil {
		before.revision = x.revision
	}
	return before, nil
}

// withEntries returns lists with the given entries added. No index refers to them yet.
func (w *Writer) withEntries(ctx context.Context, of Team, now *loaded, entries []Entry) (*loaded, error) {
	rows, err := rowsOf(entries)
	if err != nil {
		return nil, err
	}
	next, err := w.add(ctx, of, now, rows)
	if err != nil || next == nil {
		return now, err
	}
	return next, nil
}
