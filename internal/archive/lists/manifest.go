// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Segment is a stored part of a list.
type Segment struct {
	ID ID
	// First is the key of the segment's first row.
	First SortKey
	Count int
	// Before is the number of rows in the preceding segments.
	Before int
	// oldest is the earliest finish time of the segment's posts, in milliseconds since 1970.
	oldest int64
}

// chain is a stored list: its segments, in order.
type chain []Segment

func (c chain) total() int {
	if len(c) == 0 {
		return 0
	}
	last := &c[len(c)-1]
	return last.Before + last.Count
}

func (c chain) number() {
	before := 0
	for i := range c {
		c[i].Before = before
		before += c[i].Count
	}
}

// at returns the index of the segment that may contain k: the last one that starts at or before it, otherwise the
// first. It returns -1 if there are no segments.
func (c chain) at(k SortKey) int {
	i := sort.Search(len(c), func(i int) bool { return c[i].First.Compare(k) > 0 })
	return max(i-1, min(0, len(c)-1))
}

// manifest lists the segments of a team's lists. It never changes.
type manifest struct {
	lists map[Filter]chain
	names chain
	// obsolete are the unused files, each with the time when it became unused.
	obsolete []obsolete
}

type obsolete struct {
	id    ID
	since time.Time
}

// index is the only mutable file. It refers to all others.
type index struct {
	revision int64
	// manifest is zero until the first merge.
	manifest ID
	head     []*Row
}

func (m *manifest) posts() int { return m.names.total() }

func (m *manifest) ids() map[ID]bool {
	used := map[ID]bool{}
	for _, c := range m.lists {
		for i := range c {
			used[c[i].ID] = true
		}
	}
	for i := range m.names {
		used[m.names[i].ID] = true
	}
	return used
}

func encodeManifest(m *manifest) []byte {
	filters := make([]Filter, 0, len(m.lists))
	for f := range m.lists {
		filters = append(filters, f)
	}
	slices.SortFunc(filters, func(a, b Filter) int {
		return strings.Compare(string(a.Status)+"/"+string(a.Platform), string(b.Status)+"/"+string(b.Platform))
	})
	b := binary.AppendUvarint(nil, uint64(len(filters)))
	for _, f := range filters {
		b = appendChain(appendText(appendText(b, string(f.Status)), string(f.Platform)), m.lists[f])
	}
	b = appendChain(b, m.names)
	b = binary.AppendUvarint(b, uint64(len(m.obsolete)))
	for _, o := range m.obsolete {
		b = binary.AppendVarint(append(b, o.id[:]...), o.since.UnixMilli())
	}
	return b
}

func appendChain(b []byte, c chain) []byte {
	b = binary.AppendUvarint(b, uint64(len(c)))
	for i := range c {
		s := &c[i]
		b = append(b, s.ID[:]...)
		b = appendText(binary.AppendVarint(b, s.First.DisplayAt), s.First.Name)
		b = binary.AppendUvarint(b, uint64(s.Count)) //nolint:gosec // it is not negative
		b = binary.AppendVarint(b, s.oldest)
	}
	return b
}

func decodeManifest(payload string) (*manifest, error) {
	const most = 1 << 24
	d := &decoder{rest: strings.Clone(payload)}
	m := &manifest{lists: map[Filter]chain{}}
	for range d.count(maxRows) {
		f := Filter{v1alpha1.PostPhase(d.text()), v1alpha1.Platform(d.text())}
		m.lists[f] = d.chain(most)
	}
	m.names = d.chain(most)
	for range d.count(most) {
		m.obsolete = append(m.obsolete, obsolete{d.id(), time.UnixMilli(d.varint())})
	}
	return m, d.done()
}

func (d *decoder) chain(most int) chain {
	c := make(chain, 0, min(d.peekCount(most), 1<<16))
	for range d.count(most) {
		s := Segment{ID: d.id(), First: SortKey{DisplayAt: d.varint(), Name: d.text()}, Count: d.countOf(maxRows), oldest: d.varint()}
		if s.Count == 0 || len(c) > 0 && c[len(c)-1].First.Compare(s.First) >= 0 {
			d.fail("segments are not in their order")
		}
		if d.err != nil {
			return nil
		}
		c = append(c, s)
	}
	c.number()
	return c
}

func (d *decoder) peekCount(most int) int {
	ahead := *d
	return ahead.count(most)
}

// countOf reads the number of items that are stored elsewhere.
func (d *decoder) countOf(most int) int {
	n := d.uvarint()
	if n > uint64(most) { //nolint:gosec // it is positive
		d.fail("a segment holds too much")
		return 0
	}
	return int(n) //nolint:gosec // bounded above
}

// encodeIndex returns the whole file. It starts with its own hash, because the file's name does not contain one.
func (s *sealer) encodeIndex(team Team, x *index) ([]byte, error) {
	b := appendText(appendText(nil, team.Namespace), team.Name)
	b = binary.AppendVarint(b, x.revision)
	b = append(b, x.manifest[:]...)
	sealed, err := s.seal(magicIndex, append(b, encodeRows(x.head)...))
	if err != nil {
		return nil, err
	}
	id := idOf(sealed)
	return append(id[:], sealed...), nil
}

func decodeIndex(team Team, data []byte) (*index, error) {
	if len(data) < len(ID{}) || idOf(data[len(ID{}):]) != ID(data[:len(ID{})]) {
		return nil, fmt.Errorf("%w: the content of %s does not match its hash", ErrDamaged, team.index())
	}
	payload, err := unseal(magicIndex, data[len(ID{}):], maxIndex)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", team.index(), err)
	}
	d := &decoder{rest: payload}
	if of := (Team{d.text(), d.text()}); d.err == nil && of != team {
		return nil, fmt.Errorf("%w: %s belongs to team %s in namespace %s", ErrDamaged, team.index(), of.Name, of.Namespace)
	}
	x := &index{revision: d.varint(), manifest: d.id()}
	x.head = d.rows()
	if err := d.done(); err != nil {
		return nil, fmt.Errorf("%s: %w", team.index(), err)
	}
	return x, nil
}
