// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
)

// Search selects posts of a namespace, and one page of them.
type Search struct {
	// Status, Platform and Undecided filter the posts; the zero value matches all.
	Status    v1alpha1.PostPhase
	Platform  v1alpha1.Platform
	Undecided UndecidedFilter
	// From, inclusive, and To, exclusive, bound the display time, in whole milliseconds. A zero time is no bound.
	From, To time.Time
	Conditions

	// SoonestFirst reverses the default order of lists, which is newest first.
	SoonestFirst bool
	// Cursor is the post before or after the page; nil for the first page.
	Cursor *Cursor
	// Limit is the number of posts per page. It must be positive.
	Limit int
}

// Conditions are about data that the archive's lists lack: a search with any of them covers only the posts in the
// cluster. The zero value matches all posts.
type Conditions struct {
	// Words must all occur in the post's texts. They are in the form of Summary.Words.
	Words    []string
	Category v1alpha1.Category
	// Account is the name of a connection that the post goes to.
	Account       string
	Author, Agent string
	// Unhandled excludes posts that are Handled, and posts that have left the cluster and can no longer be handled.
	Unhandled bool
}

// CoversArchive reports whether there are no conditions.
func (c *Conditions) CoversArchive() bool {
	return len(c.Words) == 0 && c.Category == "" && c.Account == "" && c.Author == "" && c.Agent == "" && !c.Unhandled
}

// Cursor is a post next to a page. The post itself, which may have been deleted, is not on the page.
type Cursor struct {
	ID        string
	DisplayAt time.Time
	// Back selects the page before the post instead of the page after it.
	Back bool
}

// Found is a page of a search.
type Found struct {
	Posts []Summary
	// Total is the number of posts that match, and First is the position of the page's first post among them, counted from
	// 0.
	Total, First int
}

// Find returns the posts of a search, with archived posts if they are known and the search covers them.
func (x *Index) Find(namespace string, q *Search, rows map[lists.ID][]*lists.Row) (Found, Missing) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	of, missing := x.sequence(namespace, q, rows)
	if missing.View != nil {
		return Found{}, missing
	}
	found := q.page(of)
	return found, of.lacks()
}

// sequence is a list of posts, newest first.
type sequence interface {
	total() int
	// position counts the posts before a key.
	position(before lists.SortKey) int
	// page returns up to limit posts starting at a position, and overwrites into.
	page(first, limit int, into []Summary) []Summary
	// lacks returns the parts of the archive that the other methods lacked. If there are any, their results are wrong.
	lacks() Missing
}

// sequence returns all posts that match a search, ignoring its time bounds.
func (x *Index) sequence(namespace string, q *Search, rows map[lists.ID][]*lists.Row) (sequence, Missing) {
	p := x.namespaces[namespace]
	if p == nil {
		return &matches{}, Missing{}
	}
	f := filterOf(q.Status, q.Platform, q.Undecided)
	switch {
	case !q.CoversArchive():
		return p.matching(f, q), Missing{}
	case p.archived == nil:
		return &merger{posts: p, live: p.lists[f]}, Missing{}
	}
	m, names := p.merger(f, rows)
	if len(names) > 0 {
		return nil, Missing{View: p.archived.view, Names: names}
	}
	return m, Missing{}
}

// before returns the key that follows all posts displayed at or after a time.
func before(at time.Time) lists.SortKey { return lists.SortKey{DisplayAt: at.UnixMilli() - 1} }

// page returns the page of a search.
func (q *Search) page(of sequence) Found {
	low, high := 0, of.total()
	if !q.To.IsZero() {
		low = of.position(before(q.To))
	}
	if !q.From.IsZero() {
		high = of.position(before(q.From))
	}
	if low >= high {
		return Found{}
	}
	first, end := q.span(of, low, high)
	found := Found{Posts: of.page(first, max(end-first, 0), nil), Total: high - low, First: first - low}
	if q.SoonestFirst {
		slices.Reverse(found.Posts)
		found.First = high - end
	}
	return found
}

// span returns the positions of a page between two positions.
func (q *Search) span(of sequence, low, high int) (first, end int) {
	if c := q.Cursor; c != nil {
		at := c.DisplayAt.UnixMilli()
		// A page before a post in the reversed order comes after it in the sequence.
		if c.Back == q.SoonestFirst {
			first = min(max(of.position(lists.SortKey{DisplayAt: at, Name: c.ID + "\x00"}), low), high)
			end = min(first+q.Limit, high)
		} else {
			end = min(max(of.position(lists.SortKey{DisplayAt: at, Name: c.ID}), low), high)
			first = max(end-q.Limit, low)
		}
		if full := end-first == q.Limit; full || !c.Back && first < end {
			return first, end
		}
	}
	// If too few posts precede the cursor, this is the first page; if none follows it, the last one.
	atEnd := q.Cursor != nil && !q.Cursor.Back
	if q.SoonestFirst != atEnd {
		return max(high-q.Limit, low), high
	}
	return low, min(low+q.Limit, high)
}

// lacks returns the missing parts.
func (m *merger) lacks() Missing { return m.missing }

// matches are the posts that meet some conditions, newest first.
type matches struct {
	posts  *posts
	places []place
}

// Scans returns the number of posts that Find compares one by one: those within the search's time bounds if it has
// conditions, and none otherwise.
func (x *Index) Scans(namespace string, q *Search) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	if p == nil || q.CoversArchive() {
		return 0
	}
	low, high := p.within(p.lists[filterOf(q.Status, q.Platform, q.Undecided)], q)
	return high - low
}

// within returns the positions of a list's posts within a search's bounds.
func (p *posts) within(l *list, q *Search) (low, high int) {
	m := &merger{posts: p, live: l}
	low, high = 0, m.liveLen()
	if !q.To.IsZero() {
		low = m.liveBefore(before(q.To))
	}
	if !q.From.IsZero() {
		high = m.liveBefore(before(q.From))
	}
	return low, max(low, high)
}

// matching scans the posts within a search's bounds, which takes about 100 ns for each (BenchmarkFind).
func (p *posts) matching(f filter, q *Search) *matches {
	found := &matches{posts: p}
	l, c := p.lists[f], &q.Conditions
	low, high := p.within(l, q)
	if low == high {
		return found
	}
	meets := p.originsMeeting(c)
	visit(l, low, high-low, func(i place) {
		e := p.at(i)
		if (len(meets) == 0 || meets[e.origin]) && (c.Category == "" || p.kind(e).category == c.Category) && (!c.Unhandled || p.needsHandling(i)) && e.hasWords(c.Words) {
			found.places = append(found.places, i)
		}
	})
	return found
}

func (p *posts) needsHandling(i place) bool {
	_, left := p.retained[i]
	return !left && !p.kind(p.at(i)).handled
}

// originsMeeting reports for each origin, by number, whether it meets the conditions; nil if there are none.
func (p *posts) originsMeeting(c *Conditions) []bool {
	if c.Account == "" && c.Author == "" && c.Agent == "" {
		return nil
	}
	meets := make([]bool, len(p.origins.list))
	for i := range meets {
		of := &p.origins.list[i]
		meets[i] = (c.Account == "" || slices.Contains(of.value, c.Account)) &&
			(c.Author == "" || of.key.author == c.Author) && (c.Agent == "" || of.key.agent == c.Agent)
	}
	return meets
}

func (e *entry) hasWords(all []string) bool {
	words := e.words()
	for _, word := range all {
		if !strings.Contains(words, word) {
			return false
		}
	}
	return true
}

func (m *matches) total() int { return len(m.places) }

func (m *matches) position(before lists.SortKey) int {
	return sort.Search(len(m.places), func(i int) bool { return m.posts.key(m.places[i]).Compare(before) >= 0 })
}

func (m *matches) page(first, limit int, into []Summary) []Summary {
	size := max(min(limit, len(m.places)-first), 0)
	page := slices.Grow(into[:0], size)[:size]
	for i := range page {
		m.posts.summarise(m.places[first+i], &page[i])
	}
	return page
}

func (*matches) lacks() Missing { return Missing{} }
