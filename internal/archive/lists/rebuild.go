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

// Rebuild writes a team's lists anew, from all that is to be on them, and returns how many posts
// those are. It is for lists of which a file is damaged or gone: nothing is read of them but
// their revision. What is there stays until one write of the index takes its place, so that
// whoever dies in between has changed nothing.
func (w *Writer) Rebuild(ctx context.Context, of Team, all iter.Seq2[[]Entry, error]) (posts int, err error) {
	t := w.team(of)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = nil
	before, err := w.outline(ctx, of)
	if err != nil {
		return 0, fmt.Errorf("cannot write the archive of team %s anew: %w", of.Name, err)
	}
	// What the damaged lists are made of is still read, and is looked through in a day.
	w.mu.Lock()
	w.swept[of] = w.clock.Now()
	w.mu.Unlock()
	next := &loaded{index: index{revision: before.revision}, manifest: &manifest{}}
	for entries, err := range all {
		if err == nil {
			next, err = w.withEntries(ctx, of, next, entries)
		}
		if err != nil {
			return 0, fmt.Errorf("cannot write the archive of team %s anew: %w", of.Name, err)
		}
	}
	if err := w.store(ctx, of, before, next); err != nil {
		return 0, fmt.Errorf("cannot write the archive of team %s anew: %w", of.Name, err)
	}
	t.loaded = next
	return next.manifest.posts() + len(next.head), nil
}

// outline reads what has to be known of lists whose place others take. The revision of an index
// that cannot be read is not known; that of the clock is greater.
func (w *Writer) outline(ctx context.Context, of Team) (*loaded, error) {
	data, etag, err := w.bucket.ReadDocument(ctx, of.index(), "", maxIndex)
	if errors.Is(err, store.ErrNotFound) {
		return &loaded{}, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it is the store's
	}
	before := &loaded{index: index{revision: w.clock.Now().UnixMilli()}, etag: etag}
	if x, err := decodeIndex(of, data); err == nil {
		before.revision = x.revision
	}
	return before, nil
}

// withEntries returns lists with entries added, none of which is stored as an index yet.
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
