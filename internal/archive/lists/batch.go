// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"errors"
	"fmt"
	"maps"
)

// batch holds rows from several callers of Add, which a single write adds to a team's lists. Thousands of a team's
// posts may be deleted at the same time by separate calls. If each call made its own write, they would queue for the
// better part of an hour.
type batch struct {
	rows map[string]*Row
	// done is closed when the write has finished; err is its result.
	done chan struct{}
	err  error
}

// join adds rows to the team's next batch. The caller that starts a batch writes it.
func (t *team) join(rows map[string]*Row) (b *batch, begins bool) {
	t.gathering.Lock()
	defer t.gathering.Unlock()
	if t.next == nil {
		t.next, begins = &batch{rows: map[string]*Row{}, done: make(chan struct{})}, true
	}
	maps.Copy(t.next.rows, rows)
	return t.next, begins
}

// drain closes the batch, so that later callers start another one.
func (t *team) drain(b *batch) map[string]*Row {
	t.gathering.Lock()
	defer t.gathering.Unlock()
	if t.next == b {
		t.next = nil
	}
	return b.rows
}

// write writes a batch. The batch gathers rows while an earlier write for the team is in progress.
func (w *Writer) write(ctx context.Context, t *team, b *batch) {
	defer close(b.done)
	defer t.drain(b)
	b.err = w.change(ctx, t, func(ctx context.Context, now *loaded) (*loaded, error) { return w.add(ctx, t.Team, now, t.drain(b)) })
	if b.err != nil {
		b.err = fmt.Errorf("cannot enter %d posts into the archive of team %s: %w", len(b.rows), t.Name, b.err)
	}
}

func (w *Writer) addBatched(ctx context.Context, of Team, rows map[string]*Row) error {
	for {
		t := w.team(of)
		b, begins := t.join(rows)
		if begins {
			w.write(ctx, t, b)
			return b.err
		}
		select {
		case <-b.done:
		case <-ctx.Done():
			return fmt.Errorf("stopped before the archive of team %s was written: %w", of.Name, ctx.Err())
		}
		if ended := errors.Is(b.err, context.Canceled) || errors.Is(b.err, context.DeadlineExceeded); !ended || ctx.Err() != nil {
			return b.err
		}
		// The caller that wrote the batch was cancelled, not this one.
	}
}
