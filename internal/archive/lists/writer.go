// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/media/store"
)

const (
	// headRows is the number of posts in the index above which they are merged into segments. segmentRows and nameRows are
	// the maximum numbers of rows per segment of posts and of names.
	headRows    = 512
	segmentRows = 512
	nameRows    = 4096
	// readerGracePeriod is how long an unused file is kept, since a reader may still have an earlier index.
	readerGracePeriod = 10 * time.Minute
	// tries limits how often a change is attempted when another process keeps writing the index.
	tries = 5
	// openTeams is the number of teams whose manifests are cached. The manifest of a million posts takes about 2 MiB.
	openTeams = 16
	mimeType  = "application/octet-stream"
)

// Writer changes lists. Only one process does so at a time. If there is a second one, such as a deposed leader that
// does not know it yet, the conditional write of the index detects it. A Writer is safe for concurrent use.
type Writer struct {
	bucket Bucket
	clock  clock.PassiveClock
	// The maximum numbers of rows in a head, a segment of posts and a segment of names.
	head, segment, names int
	sealer               sealer

	mu    sync.Mutex
	teams map[Team]*team
	// recent are the teams whose state is cached, least recently used first.
	recent []Team
	swept  map[Team]time.Time
}

type team struct {
	Team

	mu sync.Mutex
	// loaded is nil if the state must be read.
	loaded *loaded

	// gathering guards next, the batch that Add writes next, or nil if there is none.
	gathering sync.Mutex
	next      *batch
}

type loaded struct {
	index
	manifest *manifest
	etag     string
}

// NewWriter returns a writer for bucket.
func NewWriter(bucket Bucket, c clock.PassiveClock) *Writer {
	return &Writer{bucket: bucket, clock: c, head: headRows, segment: segmentRows, names: nameRows, teams: map[Team]*team{}, swept: map[Team]time.Time{}}
}

// Shrink sets the maximum numbers of rows in heads, segments of posts and segments of names, so that tests fill many
// with few posts. Call it before any other method.
func (w *Writer) Shrink(head, segment, names int) { w.head, w.segment, w.names = head, segment, names }

// Add adds posts to a team's lists. When it returns nil, they are listed and stored. Adding a listed post again has no
// effect; a post with the same name but a different UID or different facts replaces it. Concurrent calls share one
// write.
func (w *Writer) Add(ctx context.Context, of Team, entries []Entry) error {
	rows, err := rowsOf(entries)
	if err != nil {
		return err
	}
	return w.addBatched(ctx, of, rows)
}

func rowsOf(entries []Entry) (map[string]*Row, error) {
	known, rows := newKinds(), map[string]*Row{}
	for i := range entries {
		row, err := rowOf(&entries[i], known)
		if err != nil {
			return nil, err
		}
		rows[row.Name] = row
	}
	return rows, nil
}

// RetainedError means that some posts are still listed because their records could not be deleted.
type RetainedError struct {
	// Names are the names of those posts.
	Names map[string]bool
	// Err is the error for the first of them.
	Err error
}

func (e *RetainedError) Error() string {
	return fmt.Sprintf("%d posts remain, the first because: %v", len(e.Names), e.Err)
}

// Unwrap returns the error for the first post.
func (e *RetainedError) Unwrap() error { return e.Err }

// Expire removes up to limit posts that finished before finishedBefore from a team's lists, and returns their number.
// It first calls forget, which deletes their other data. If forget fails or the process dies, the posts remain listed
// and the next call starts with them.
func (w *Writer) Expire(ctx context.Context, of Team, finishedBefore time.Time, limit int, forget func(context.Context, []Ref) error) (n int, err error) {
	var failed *RetainedError
	err = w.change(ctx, w.team(of), func(ctx context.Context, now *loaded) (*loaded, error) {
		rows, err := w.expired(ctx, of, now, finishedBefore.UnixMilli(), limit)
		if n = len(rows); n == 0 || err != nil {
			return nil, err
		}
		refs := make([]Ref, n)
		for i, r := range rows {
			refs[i] = Ref{r.Name, unpackUID(r.uid)}
		}
		failed = nil
		if err := forget(ctx, refs); errors.As(err, &failed) && len(failed.Names) < n {
			rows = slices.DeleteFunc(rows, func(r *Row) bool { return failed.Names[r.Name] })
			n = len(rows)
		} else if err != nil {
			return nil, err
		}
		return w.without(ctx, of, now, rows)
	})
	if err == nil && failed != nil {
		err = failed
	} else if err != nil {
		n = 0
	}
	if err != nil {
		return n, fmt.Errorf("cannot remove expired posts from the archive of team %s: %w", of.Name, err)
	}
	return n, nil
}

// Stats returns the revision and size of a team's lists. They are zero for a team without lists.
func (w *Writer) Stats(ctx context.Context, of Team) (state Stats, err error) {
	t := w.team(of)
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := w.load(ctx, t)
	if err != nil {
		return Stats{}, fmt.Errorf("cannot read the archive of team %s: %w", of.Name, err)
	}
	return Stats{Revision: now.revision, Posts: int64(now.manifest.posts() + len(now.head))}, nil
}

// change replaces the index with the result of remake, or leaves it alone if that is nil. It retries if another process
// wrote the index in the meantime.
func (w *Writer) change(ctx context.Context, t *team, remake func(context.Context, *loaded) (*loaded, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last error
	for range tries {
		now, err := w.load(ctx, t)
		if err != nil {
			return err
		}
		next, err := remake(ctx, now)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrChanged) {
			// A segment is gone or the index has changed: another process has written the index since it was read here.
			t.loaded, last = nil, err
			continue
		}
		if err != nil || next == nil {
			return err
		}
		if err := w.store(ctx, t.Team, now, next); err == nil {
			t.loaded = next
			return nil
		} else if last, t.loaded = err, nil; !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
	if errors.Is(last, store.ErrNotFound) {
		return missing(last) // The index was read again and refers to a missing file.
	}
	return last
}

func missing(err error) error {
	return fmt.Errorf("%w: a file in it is missing: %w", ErrDamaged, err)
}

func (w *Writer) store(ctx context.Context, of Team, before, next *loaded) error {
	next.revision = before.revision + 1
	data, err := w.sealer.encodeIndex(of, &next.index)
	if err != nil {
		return err
	}
	next.etag, err = w.bucket.PutDocument(ctx, of.index(), mimeType, data, before.etag)
	return err //nolint:wrapcheck // the store has wrapped it, and callers check for it
}

func (w *Writer) load(ctx context.Context, t *team) (*loaded, error) {
	if t.loaded != nil {
		return t.loaded, nil
	}
	now := &loaded{manifest: &manifest{}}
	data, etag, err := w.bucket.ReadDocument(ctx, t.index(), "", maxIndex)
	if errors.Is(err, store.ErrNotFound) {
		return now, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // the store has wrapped it
	}
	x, err := decodeIndex(t.Team, data)
	if err != nil {
		return nil, err
	}
	now.index, now.etag = *x, etag
	if x.manifest != (ID{}) {
		now.manifest, err = readManifest(ctx, w.bucket, t.Team, x.manifest)
		if errors.Is(err, store.ErrNotFound) {
			return nil, missing(err)
		}
		if err != nil {
			return nil, err
		}
	}
	t.loaded = now
	return now, nil
}

// team returns the cached state of a team, and drops the state of the least recently used team.
func (w *Writer) team(of Team) *team {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.teams[of]
	if t == nil {
		t = &team{Team: of}
		w.teams[of] = t
	}
	if i := slices.Index(w.recent, of); i >= 0 {
		w.recent = slices.Delete(w.recent, i, i+1)
	}
	w.recent = append(w.recent, of)
	if len(w.recent) > openTeams {
		oldest := w.teams[w.recent[0]]
		// A team that is being changed remains cached a little longer.
		if oldest.mu.TryLock() {
			delete(w.teams, oldest.Team)
			w.recent = w.recent[1:]
			oldest.mu.Unlock()
		}
	}
	return t
}

// read returns an immutable file. It fails if the content does not match the name.
func read(ctx context.Context, bucket Bucket, of Team, id ID, most int64) ([]byte, error) {
	data, _, err := bucket.ReadDocument(ctx, of.segment(id), "", most)
	if err != nil {
		return nil, err //nolint:wrapcheck // the store has wrapped it, and callers check for it
	}
	if idOf(data) != id {
		return nil, fmt.Errorf("%w: the content of %s does not match its hash", ErrDamaged, of.segment(id))
	}
	return data, nil
}

func readManifest(ctx context.Context, bucket Bucket, of Team, id ID) (*manifest, error) {
	data, err := read(ctx, bucket, of, id, maxManifest)
	if err != nil {
		return nil, err
	}
	payload, err := unseal(magicManifest, data, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.segment(id), err)
	}
	return decodeManifest(payload)
}

func readRows(ctx context.Context, bucket Bucket, of Team, id ID) ([]*Row, error) {
	data, err := read(ctx, bucket, of, id, maxSegment)
	if err != nil {
		return nil, err
	}
	payload, err := unseal(magicRows, data, maxSegment)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.segment(id), err)
	}
	return decodeRows(payload)
}

func readNames(ctx context.Context, bucket Bucket, of Team, id ID) ([]*nameRow, error) {
	data, err := read(ctx, bucket, of, id, maxSegment)
	if err != nil {
		return nil, err
	}
	payload, err := unseal(magicNames, data, maxSegment)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.segment(id), err)
	}
	return decodeNames(payload)
}
