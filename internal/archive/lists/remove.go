// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/media/store"
)

const (
	// sweepEvery is how often a team's folder is searched for segments left by interrupted merges. orphanAfter is the
	// minimum age for such a segment to be removed: a merge takes minutes.
	sweepEvery  = 24 * time.Hour
	orphanAfter = time.Hour
)

// Remove removes a team's lists. It does not touch the records of its posts.
func (w *Writer) Remove(ctx context.Context, of Team) error {
	t := w.team(of)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = nil
	// Without an index, nothing is listed. If the removal is interrupted, the next one removes the remaining segments.
	if err := w.bucket.Delete(ctx, of.index()); err != nil {
		return fmt.Errorf("cannot remove the archive of team %s: %w", of.Name, err)
	}
	for object, err := range w.bucket.List(ctx, of.segments()) {
		if err == nil {
			err = w.bucket.Delete(ctx, object.Key)
		}
		if err != nil {
			return fmt.Errorf("cannot remove the archive of team %s: %w", of.Name, err)
		}
	}
	return nil
}

func (w *Writer) sweep(ctx context.Context, of Team, now *loaded) error {
	at := w.clock.Now()
	w.mu.Lock()
	due := at.Sub(w.swept[of]) >= sweepEvery
	w.mu.Unlock()
	if !due {
		return nil
	}
	if now.etag != "" {
		// The state in memory may be stale if this process was paused.
		_, _, err := w.bucket.ReadDocument(ctx, of.index(), now.etag, maxIndex)
		if err == nil {
			return store.ErrChanged
		}
		if !errors.Is(err, store.ErrSame) {
			return err //nolint:wrapcheck // the store has wrapped it
		}
	}
	used := now.manifest.ids()
	used[now.index.manifest] = true
	for _, o := range now.manifest.obsolete {
		used[o.id] = true
	}
	for object, err := range w.bucket.List(ctx, of.segments()) {
		if err != nil {
			return err
		}
		var id ID
		name, err := hex.DecodeString(strings.TrimPrefix(object.Key, of.segments()))
		if err != nil || copy(id[:], name) != len(id) || used[id] || at.Sub(object.ModifiedAt) < orphanAfter {
			continue
		}
		if err := w.bucket.Delete(ctx, object.Key); err != nil {
			return err //nolint:wrapcheck // the store has wrapped it
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept[of] = at
	return nil
}
