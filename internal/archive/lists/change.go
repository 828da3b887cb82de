// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/internal/media/store"
)

const atOnce = 8

// add returns the lists with the given rows, keyed by name, added. It returns nil if all of them are listed already.
func (w *Writer) add(ctx context.Context, of Team, now *loaded, rows map[string]*Row) (*loaded, error) {
	sealed, err := w.lookup(ctx, of, now.manifest, rows)
	if err != nil {
		return nil, err
	}
	head := make([]*Row, 0, len(now.head)+len(rows))
	changed := false
	pending := maps.Clone(rows)
	for _, r := range now.head {
		switch other := pending[r.Name]; {
		case other == nil:
			head = append(head, r)
		case r.same(other):
			head = append(head, r)
			delete(pending, r.Name)
		default:
			changed = true // it is added below
		}
	}
	var gone []*Row
	for name, r := range pending {
		if old := sealed[name]; old != nil {
			if n := r.name(); n.uid == old.uid && n.at == old.at && n.sameLists(old) {
				continue
			}
			gone = append(gone, &Row{SortKey: SortKey{old.at, name}, Kind: old.kind})
		}
		head, changed = append(head, r), true
	}
	if !changed {
		return nil, nil //nolint:nilnil // nil means that nothing has to be written
	}
	slices.SortFunc(head, byKey)
	if len(gone) == 0 && len(head) <= w.head {
		return &loaded{index: index{revision: now.revision, manifest: now.index.manifest, head: head}, manifest: now.manifest}, nil
	}
	return w.merge(ctx, of, now, head, gone)
}

func (w *Writer) without(ctx context.Context, of Team, now *loaded, rows []*Row) (*loaded, error) {
	gone := map[string]*Row{}
	for _, r := range rows {
		gone[r.Name] = r
	}
	var head []*Row
	for _, r := range now.head {
		if gone[r.Name] == nil {
			head = append(head, r)
		}
		delete(gone, r.Name)
	}
	if len(gone) == 0 {
		return &loaded{index: index{revision: now.revision, manifest: now.index.manifest, head: head}, manifest: now.manifest}, nil
	}
	return w.merge(ctx, of, now, head, slices.Collect(maps.Values(gone)))
}

func byKey(a, b *Row) int { return a.Compare(b.SortKey) }

// lookup returns the segments' entries for the names in rows. Names in the head are not in segments.
func (w *Writer) lookup(ctx context.Context, of Team, m *manifest, rows map[string]*Row) (map[string]*nameRow, error) {
	wanted := map[int][]*nameRow{}
	names := map[uint64]string{}
	for name, r := range rows {
		if len(m.names) == 0 {
			break
		}
		n := r.name()
		names[n.hash] = name
		at := m.names.at(n.key())
		wanted[at] = append(wanted[at], n)
	}
	found := make([]map[string]*nameRow, len(m.names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for at, hashes := range wanted {
		group.Go(func() error {
			segment, err := readNames(ctx, w.bucket, of, m.names[at].ID)
			if err != nil {
				return err
			}
			found[at] = map[string]*nameRow{}
			for _, n := range hashes {
				if i, ok := slices.BinarySearchFunc(segment, n.hash, byHash); ok {
					found[at][names[n.hash]] = segment[i]
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // the read has wrapped it
	}
	all := map[string]*nameRow{}
	for _, part := range found {
		maps.Copy(all, part)
	}
	return all, nil
}

func byHash(n *nameRow, hash uint64) int { return cmp.Compare(n.hash, hash) }

// merge returns lists whose segments contain put and do not contain gone. Their head is empty.
func (w *Writer) merge(ctx context.Context, of Team, now *loaded, put, gone []*Row) (*loaded, error) {
	if err := w.sweep(ctx, of, now); err != nil {
		return nil, err
	}
	old := now.manifest
	next := &manifest{lists: maps.Clone(old.lists)}
	if next.lists == nil {
		next.lists = map[Filter]chain{}
	}
	var unused []ID
	puts, drops := byFilter(put), byFilter(gone)
	for f := range union(puts, drops) {
		of := merging[*Row]{w, of, magicRows, w.segment, encodeRows, readRows}
		c, out, err := of.merge(ctx, old.lists[f], puts[f], keysOf(puts[f], drops[f]))
		if err != nil {
			return nil, err
		}
		unused = append(unused, out...)
		if next.lists[f] = c; len(c) == 0 {
			delete(next.lists, f)
		}
	}
	names, lost := namesOf(put), namesOf(gone)
	var out []ID
	var err error
	ofNames := merging[*nameRow]{w, of, magicNames, w.names, encodeNames, readNames}
	if next.names, out, err = ofNames.merge(ctx, old.names, names, keysOf(names, lost)); err != nil {
		return nil, err
	}
	unused = append(unused, out...)
	if now.index.manifest != (ID{}) {
		unused = append(unused, now.index.manifest)
	}
	if next.obsolete, err = w.prune(ctx, of, old.obsolete, unused); err != nil {
		return nil, err
	}
	id, err := w.seal(ctx, of, magicManifest, encodeManifest(next))
	if err != nil {
		return nil, err
	}
	return &loaded{index: index{revision: now.revision, manifest: id}, manifest: next}, nil
}

// prune removes obsolete files once the readers' grace period is over. It returns those that remain, plus the files
// that are unused from now on. It removes only files that an earlier index already listed as obsolete.
func (w *Writer) prune(ctx context.Context, of Team, known []obsolete, unused []ID) ([]obsolete, error) {
	now := w.clock.Now()
	var left []obsolete
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, o := range known {
		if now.Sub(o.since) < readerGracePeriod {
			left = append(left, o)
			continue
		}
		group.Go(func() error { return w.bucket.Delete(ctx, of.segment(o.id)) })
	}
	for _, id := range unused {
		left = append(left, obsolete{id, now})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("cannot remove unused files: %w", err)
	}
	return left, nil
}

func byFilter(rows []*Row) map[Filter][]*Row {
	out := map[Filter][]*Row{}
	for _, r := range slices.SortedFunc(slices.Values(rows), byKey) {
		for _, f := range r.Kind.filters() {
			out[f] = append(out[f], r)
		}
	}
	return out
}

func union[V any](a, b map[Filter][]V) map[Filter]struct{} {
	out := map[Filter]struct{}{}
	for f := range a {
		out[f] = struct{}{}
	}
	for f := range b {
		out[f] = struct{}{}
	}
	return out
}

func namesOf(rows []*Row) []*nameRow {
	out := make([]*nameRow, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.name())
	}
	slices.SortFunc(out, func(a, b *nameRow) int { return cmp.Compare(a.hash, b.hash) })
	return out
}

// keysOf returns the keys of gone, except those that put replaces.
func keysOf[T item](put, gone []T) []SortKey {
	var out []SortKey
	for _, r := range gone {
		k := r.key()
		if _, again := slices.BinarySearchFunc(put, k, func(p T, k SortKey) int { return p.key().Compare(k) }); !again {
			out = append(out, k)
		}
	}
	return out
}

type merging[T item] struct {
	writer *Writer
	team   Team
	magic  string
	most   int
	encode func([]T) []byte
	read   func(context.Context, Bucket, Team, ID) ([]T, error)
}

// merge writes the parts of a chain that a change affects, and returns the new chain and the unused segments.
func (m merging[T]) merge(ctx context.Context, c chain, put []T, drop []SortKey) (chain, []ID, error) {
	runs := plan(c, put, drop, m.most)
	fresh := make([][]Segment, len(runs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range runs {
		group.Go(func() (err error) {
			fresh[i], err = m.rewrite(ctx, c, &runs[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err //nolint:wrapcheck // the store has wrapped it
	}
	out, gone := spliced(c, runs, fresh)
	return out, gone, nil
}

func (m merging[T]) rewrite(ctx context.Context, c chain, r *run[T]) ([]Segment, error) {
	var rows []T
	for i := r.from; i < r.to; i++ {
		part, err := m.read(ctx, m.writer.bucket, m.team, c[i].ID)
		if err != nil {
			return nil, err
		}
		rows = append(rows, part...)
	}
	parts := r.cut(r.apply(rows), m.most)
	out := make([]Segment, len(parts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, part := range parts {
		group.Go(func() error {
			id, err := m.writer.seal(ctx, m.team, m.magic, m.encode(part))
			if err != nil {
				return err
			}
			out[i] = summary(id, part)
			return nil
		})
	}
	return out, group.Wait() //nolint:wrapcheck // the store has wrapped it
}

func (w *Writer) seal(ctx context.Context, of Team, magic string, payload []byte) (ID, error) {
	data, err := w.sealer.seal(magic, payload)
	if err != nil {
		return ID{}, err
	}
	id := idOf(data)
	_, err = w.bucket.PutDocument(ctx, of.segment(id), mimeType, data, store.Any)
	return id, err //nolint:wrapcheck // the store has wrapped it
}

func (w *Writer) expired(ctx context.Context, of Team, now *loaded, before int64, limit int) ([]*Row, error) {
	var out []*Row
	for _, r := range now.head {
		if r.finished < before && len(out) < limit {
			out = append(out, r)
		}
	}
	for _, f := range []Filter{{}, hidden} {
		c := now.manifest.lists[f]
		// The oldest are at the end.
		for i := len(c) - 1; i >= 0 && len(out) < limit; i-- {
			if c[i].oldest >= before {
				continue
			}
			rows, err := readRows(ctx, w.bucket, of, c[i].ID)
			if err != nil {
				return nil, err
			}
			for _, r := range rows {
				if r.finished < before && len(out) < limit {
					out = append(out, r)
				}
			}
		}
	}
	return out, nil
}
