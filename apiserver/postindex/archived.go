// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
)

// archived is the content of a namespace's archive.
type archived struct {
	view *lists.View
	// both holds the posts in a segment of the archive that are also in the cluster, or retained; lists show the cluster's
	// version. The value is the position in the archive; nil while unknown.
	both map[string]*lists.Sealed
}

// addOverlap adds a post in the index to both if the archive has it.
func (a *archived) addOverlap(id string) {
	if a.view.HasHash(lists.HashName(id)) {
		a.both[strings.Clone(id)] = nil
	}
}

// SetArchive sets the content of a namespace's archive; nil if unknown. left is the RetainedSeq from before the view
// was read: the view already reflects the posts up to it, so they are no longer retained.
func (x *Index) SetArchive(namespace string, view *lists.View, left uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.namespaces[namespace]
	if view == nil {
		if p != nil && p.archived != nil {
			p.archived = nil
			x.forgetEmpty(namespace, p)
		}
		return
	}
	if p == nil {
		p = newPosts(x.kinds, x.hash)
		x.namespaces[strings.Clone(namespace)] = p
	}
	now := &archived{view: view, both: map[string]*lists.Sealed{}}
	same := p.archived != nil && view.SameNames(p.archived.view)
	if same {
		now.both = p.archived.both
	}
	p.archived = now
	x.forget(namespace, p, left) // including those in both
	if same {
		return
	}
	for i := range p.entries {
		if e := &p.entries[i]; e.text != "" {
			p.archived.addOverlap(e.id())
		}
	}
}

// Missing lists the parts of the archive that a list needs.
type Missing struct {
	// View is the view to read from; nil if nothing is missing.
	View     *lists.View
	Segments []lists.ID
	Names    []string
}

// Archive returns the view of a namespace that SetArchive stored.
func (x *Index) Archive(namespace string) *lists.View {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.namespaces[namespace]; p != nil && p.archived != nil {
		return p.archived.view
	}
	return nil
}

// SetSealed stores the archive positions of posts that are also in the cluster.
func (x *Index) SetSealed(namespace string, view *lists.View, sealed map[string]*lists.Sealed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.namespaces[namespace]
	if p == nil || p.archived == nil || !view.SameNames(p.archived.view) {
		return
	}
	for name, s := range sealed {
		if _, both := p.archived.both[name]; both {
			p.archived.both[name] = s
		}
	}
}

// ListAll is List with the archived posts, if they are known.
func (x *Index) ListAll(namespace string, q Query, rows map[lists.ID][]*lists.Row) (page []Summary, total int, missing Missing) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	switch {
	case p == nil:
		return nil, 0, Missing{}
	case p.archived == nil || p.archived.view.Posts() == 0:
		page, total = p.pageOf(&q)
		return page, total, Missing{}
	}
	m, names := p.merger(q.filter(), rows)
	if len(names) > 0 {
		return nil, 0, Missing{View: p.archived.view, Names: names}
	}
	var of sequence = m
	if q.Version1 {
		beyond, _ := p.merger(q.beyond(), rows) // the names are the same for every filter
		of = &version1{m, beyond}
	}
	total = of.total()
	page = of.page(q.first(), q.Limit, q.Into)
	return page, total, of.lacks()
}

// CountsAll is Counts with the archived posts, if they are known.
func (x *Index) CountsAll(namespace string) (counts Counts, missing Missing) {
	counts = x.Counts(namespace)
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	if p == nil || p.archived == nil {
		return counts, Missing{}
	}
	for _, status := range []v1alpha1.PostPhase{v1alpha1.PhasePosted, v1alpha1.PhaseFailed} {
		m, names := p.merger(filter{status: status}, nil)
		if len(names) > 0 {
			return Counts{}, Missing{View: p.archived.view, Names: names}
		}
		if n := m.total(); n > 0 {
			counts.Status[status] = n
		}
	}
	return counts, Missing{}
}

// merger merges the posts in the cluster, in the archive's head and in its segments into one list, without archived
// posts that are also in the cluster.
type merger struct {
	posts    *posts
	live     *list
	head     []*lists.Row
	segments []lists.Segment
	// hidden holds the positions of the segments' posts that are also in the cluster.
	hidden []lists.SortKey
	rows   map[lists.ID][]*lists.Row
	// missing collects the segments that rows lacks.
	missing Missing
}

// merger returns the merger for a list, or the names of posts whose archive positions must be read first.
func (p *posts) merger(f filter, rows map[lists.ID][]*lists.Row) (m *merger, names []string) {
	m = &merger{posts: p, live: p.lists[f], rows: rows}
	if f.undecided == OnlyUndecided {
		return m, nil
	}
	of := lists.Filter{Status: f.status, Platform: f.platform}
	for _, r := range p.archived.view.Head(of) {
		if p.find(r.Name) == 0 {
			m.head = append(m.head, r)
		}
	}
	m.segments = p.archived.view.Segments(of)
	for name, sealed := range p.archived.both {
		switch {
		case sealed == nil:
			names = append(names, name)
		case of.Passes(sealed.Kind):
			m.hidden = append(m.hidden, sealed.SortKey)
		}
	}
	slices.SortFunc(m.hidden, lists.SortKey.Compare)
	return m, names
}

func (m *merger) liveLen() int {
	if m.live == nil {
		return 0
	}
	return m.live.Len()
}

func (m *merger) total() int {
	total := m.liveLen() + len(m.head) - len(m.hidden)
	if n := len(m.segments); n > 0 {
		total += m.segments[n-1].Before + m.segments[n-1].Count
	}
	return total
}

func (m *merger) liveKey(i int) lists.SortKey {
	at, _ := m.live.GetAt(i)
	return m.posts.key(at)
}

func (m *merger) liveBefore(k lists.SortKey) int {
	return sort.Search(m.liveLen(), func(i int) bool { return m.liveKey(i).Compare(k) >= 0 })
}

func (m *merger) headBefore(k lists.SortKey) int {
	return sort.Search(len(m.head), func(i int) bool { return m.head[i].Compare(k) >= 0 })
}

// besides counts the posts before a key that are not in a segment.
func (m *merger) besides(k lists.SortKey) int { return m.liveBefore(k) + m.headBefore(k) }

// sealedBefore counts the visible archived posts before a segment.
func (m *merger) sealedBefore(segment int) int {
	s := &m.segments[segment]
	hidden := sort.Search(len(m.hidden), func(i int) bool { return m.hidden[i].Compare(s.First) >= 0 })
	return s.Before - hidden
}

// shown returns a segment's visible rows. If they must be read first, it adds the segment to missing.
func (m *merger) shown(segment int) []*lists.Row {
	s := &m.segments[segment]
	rows, ok := m.rows[s.ID]
	if !ok {
		m.missing.View = m.posts.archived.view
		if !slices.Contains(m.missing.Segments, s.ID) {
			m.missing.Segments = append(m.missing.Segments, s.ID)
		}
		return nil
	}
	if len(m.hidden) == 0 {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r *lists.Row) bool {
		_, hidden := slices.BinarySearchFunc(m.hidden, r.SortKey, lists.SortKey.Compare)
		return hidden
	})
}

// position counts the posts before a key.
func (m *merger) position(k lists.SortKey) int {
	before := m.besides(k)
	segment := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].First.Compare(k) >= 0 }) - 1
	if segment < 0 {
		return before
	}
	rows := m.shown(segment)
	return before + m.sealedBefore(segment) + sort.Search(len(rows), func(i int) bool { return rows[i].Compare(k) >= 0 })
}

// cursor is a position in the list: the next posts from the cluster, the head and the segments.
type cursor struct {
	// live are the places of the next posts from the cluster, as many as the page needs.
	live          []place
	head, segment int
	// rows are the segment's remaining visible rows, if read is true.
	rows []*lists.Row
	read bool
}

// seek returns the cursor after the first posts of the list, for a page of the given size.
func (m *merger) seek(first, size int) cursor {
	// The last segment that starts before the position contains the last archived post before it.
	segment := sort.Search(len(m.segments), func(i int) bool {
		return m.sealedBefore(i)+m.besides(m.segments[i].First) >= first
	}) - 1
	c, sealed := cursor{}, 0
	if segment >= 0 {
		rows, before := m.shown(segment), m.sealedBefore(segment)
		n := sort.Search(len(rows), func(i int) bool { return before+i+m.besides(rows[i].SortKey) >= first })
		c.segment, c.rows, c.read, sealed = segment, rows[n:], true, before+n
	}
	others := first - sealed
	c.head = sort.Search(len(m.head), func(j int) bool { return j+m.liveBefore(m.head[j].SortKey) >= others })
	c.live = m.livePlaces(others-c.head, size)
	return c
}

// page returns up to limit posts starting at a position, and overwrites into. If missing is set afterwards, the caller
// reads it and calls page again.
func (m *merger) page(first, limit int, into []Summary) []Summary {
	total := m.total()
	if first >= total {
		return nil
	}
	size := min(limit, total-first)
	c := m.seek(first, size)
	page := slices.Grow(into[:0], size)[:size]
	for i := range page {
		if m.missing.View != nil || !m.next(&c, &page[i]) {
			return nil
		}
	}
	return page
}

// livePlaces returns the places of up to limit posts from the cluster, starting at a position.
func (m *merger) livePlaces(first, limit int) []place {
	size := min(limit, m.liveLen()-first)
	if size <= 0 {
		return nil
	}
	places := make([]place, 0, size)
	visit(m.live, first, size, func(i place) { places = append(places, i) })
	return places
}

// last sorts after every key.
var last = lists.SortKey{DisplayAt: math.MinInt64}

// next writes the post at the cursor to into, and advances.
func (m *merger) next(c *cursor, into *Summary) bool {
	live, head, sealed := last, last, last
	if len(c.live) > 0 {
		live = m.posts.key(c.live[0])
	}
	if c.head < len(m.head) {
		head = m.head[c.head].SortKey
	}
	for c.segment < len(m.segments) {
		if !c.read && min(live.Compare(m.segments[c.segment].First), head.Compare(m.segments[c.segment].First)) < 0 {
			break // its rows come later
		}
		if !c.read {
			if c.rows, c.read = m.shown(c.segment), true; m.missing.View != nil {
				return false
			}
		}
		if len(c.rows) > 0 {
			sealed = c.rows[0].SortKey
			break
		}
		c.segment, c.read = c.segment+1, false
	}
	switch {
	case live == last && head == last && sealed == last:
		return false
	case live.Compare(head) <= 0 && live.Compare(sealed) <= 0:
		m.posts.summarise(c.live[0], into)
		c.live = c.live[1:]
	case head.Compare(sealed) <= 0:
		summariseRow(m.head[c.head], into)
		c.head++
	default:
		summariseRow(c.rows[0], into)
		c.rows = c.rows[1:]
	}
	return true
}

func (p *posts) key(at place) lists.SortKey {
	e := p.at(at)
	return lists.SortKey{DisplayAt: e.displayAt, Name: e.id()}
}

func (p *posts) summarise(at place, into *Summary) {
	e := p.at(at)
	of := p.kind(e)
	title, rest, picture := e.shown()
	*into = Summary{
		ID: e.id(), Title: title, Rest: rest, Picture: picture, Author: p.origins.list[e.origin].key.author, Status: of.status, Category: of.category,
		Platforms: of.platforms, Agent: of.agent, Handled: of.handled, DisplayAt: time.UnixMilli(e.displayAt).UTC(),
	}
}

func summariseRow(r *lists.Row, into *Summary) {
	*into = Summary{
		ID: r.Name, Title: r.Title, Status: r.Kind.Status, Category: r.Kind.Category,
		Platforms: r.Kind.Targets, Agent: r.Kind.Agent, Archived: true, DisplayAt: time.UnixMilli(r.DisplayAt).UTC(),
	}
}
