// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/herald-social/herald/internal/media/store"
)

// Reader reads lists. It is safe for concurrent use.
type Reader struct {
	bucket Bucket
	rows   *recent[[]*Row]
	names  *recent[[]*nameRow]
	loads  singleflight.Group
}

// NewReader returns a reader that uses up to the given number of bytes of memory to cache segments.
func NewReader(bucket Bucket, bytes int) *Reader {
	return &Reader{bucket: bucket, rows: newRecent[[]*Row](bytes * 3 / 4), names: newRecent[[]*nameRow](bytes / 4)}
}

// View is a snapshot of a team's lists. It never changes.
type View struct {
	reader   *Reader
	team     Team
	index    *index
	manifest *manifest
	etag     string
	// hashes are the hashes of names, by segment.
	hashes [][]uint64
}

// Open returns a team's current lists, or before if they have not changed. It reads the index, the manifest and the
// names, except what before already has. A team without an index has no archived posts.
func (r *Reader) Open(ctx context.Context, team Team, before *View) (*View, error) {
	etag := ""
	if before != nil {
		etag = before.etag
	}
	data, etag, err := r.bucket.ReadDocument(ctx, team.index(), etag, maxIndex)
	switch {
	case errors.Is(err, store.ErrSame):
		return before, nil
	case errors.Is(err, store.ErrNotFound):
		return &View{reader: r, team: team, index: &index{}, manifest: &manifest{}}, nil
	case err != nil:
		return nil, err //nolint:wrapcheck // the store has wrapped it, and callers check for it
	}
	v := &View{reader: r, team: team, etag: etag, manifest: &manifest{}}
	if v.index, err = decodeIndex(team, data); err != nil {
		return nil, err
	}
	if v.index.manifest == (ID{}) {
		return v, nil
	}
	if before != nil && before.index.manifest == v.index.manifest {
		v.manifest, v.hashes = before.manifest, before.hashes
		return v, nil
	}
	if v.manifest, err = readManifest(ctx, r.bucket, team, v.index.manifest); err != nil {
		return nil, err
	}
	if err := v.readHashes(ctx, before); err != nil {
		return nil, err
	}
	return v, nil
}

func (v *View) readHashes(ctx context.Context, before *View) error {
	known := map[ID][]uint64{}
	if before != nil {
		for i := range before.manifest.names {
			known[before.manifest.names[i].ID] = before.hashes[i]
		}
	}
	v.hashes = make([][]uint64, len(v.manifest.names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range v.manifest.names {
		id := v.manifest.names[i].ID
		if v.hashes[i] = known[id]; v.hashes[i] != nil {
			continue
		}
		group.Go(func() error {
			rows, err := readNames(ctx, v.reader.bucket, v.team, id)
			if err != nil {
				return err
			}
			v.hashes[i] = make([]uint64, len(rows))
			for j, row := range rows {
				v.hashes[i][j] = row.hash
			}
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // the read has wrapped it
}

// Revision is the revision of the lists.
func (v *View) Revision() int64 { return v.index.revision }

// Posts is the number of archived posts, including cancelled ones.
func (v *View) Posts() int { return v.manifest.posts() + len(v.index.head) }

// Bytes estimates the memory that the view takes.
func (v *View) Bytes() int {
	const each, segment = 200, 120
	bytes := 4096 + each*len(v.index.head)
	for _, hashes := range v.hashes {
		bytes += 8*len(hashes) + segment
	}
	for _, c := range v.manifest.lists {
		bytes += segment * len(c)
	}
	return bytes
}

// SameNames reports whether the segments of the two views hold the same names.
func (v *View) SameNames(other *View) bool {
	return other != nil && slices.EqualFunc(v.manifest.names, other.manifest.names, func(a, b Segment) bool { return a.ID == b.ID })
}

// Head returns the recently archived posts in a list that are not in a segment yet, in order.
func (v *View) Head(f Filter) []*Row {
	if f == hidden {
		return nil
	}
	var out []*Row
	for _, r := range v.index.head {
		if f.Passes(r.Kind) {
			out = append(out, r)
		}
	}
	return out
}

// Segments returns the segments of a list, in order.
func (v *View) Segments(f Filter) []Segment {
	if f == hidden {
		return nil
	}
	return v.manifest.lists[f]
}

// HasHash reports whether the segments contain a post whose name has the given hash (HashName).
func (v *View) HasHash(hash uint64) bool {
	at := v.manifest.names.at((&nameRow{hash: hash}).key())
	if at < 0 {
		return false
	}
	_, found := slices.BinarySearch(v.hashes[at], hash)
	return found
}

// Sealed is a post's position in the segments.
type Sealed struct {
	SortKey

	// Kind holds the status and the targets, which determine the post's lists.
	Kind *Kind
}

// Find returns the position of a post in the segments, or nil if they do not contain a post with that name.
func (v *View) Find(ctx context.Context, name string) (*Sealed, error) {
	hash := HashName(name)
	at := v.manifest.names.at((&nameRow{hash: hash}).key())
	if at < 0 {
		return nil, nil //nolint:nilnil // absence is a valid result
	}
	id := v.manifest.names[at].ID
	rows, err := fetch(ctx, v.reader, v.reader.names, v.team, id, readNames, nameBytes)
	if err != nil {
		return nil, err
	}
	i, found := slices.BinarySearchFunc(rows, hash, func(n *nameRow, hash uint64) int { return cmp.Compare(n.hash, hash) })
	if !found {
		return nil, nil //nolint:nilnil // absence is a valid result
	}
	return &Sealed{SortKey{rows[i].at, strings.Clone(name)}, rows[i].kind}, nil
}

// Rows reads a segment. The rows are read-only.
func (v *View) Rows(ctx context.Context, id ID) ([]*Row, error) {
	return fetch(ctx, v.reader, v.reader.rows, v.team, id, readRows, rowBytes)
}

func rowBytes(rows []*Row) int {
	const each = 88
	bytes := each * len(rows)
	for _, r := range rows {
		bytes += len(r.Name) + len(r.uid) + len(r.Title) + 8
	}
	return bytes
}

func nameBytes(rows []*nameRow) int {
	const each = 40
	return each * len(rows)
}

// fetch returns a segment from the cache, or reads it. Concurrent callers share one read.
func fetch[T any](ctx context.Context, r *Reader, from *recent[T], team Team, id ID, read func(context.Context, Bucket, Team, ID) (T, error),
	size func(T) int,
) (T, error) {
	if rows, ok := from.get(id); ok {
		return rows, nil
	}
	// The read continues even if the first caller is cancelled.
	result, err, _ := r.loads.Do(string(id[:]), func() (any, error) {
		rows, err := read(context.WithoutCancel(ctx), r.bucket, team, id)
		if err == nil {
			from.add(id, rows, size(rows))
		}
		return rows, err
	})
	if err != nil {
		var none T
		return none, err //nolint:wrapcheck // the read has wrapped it
	}
	return result.(T), nil //nolint:forcetypeassert // the read returns this type
}
