// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// posts holds one namespace's posts. Entries and lists refer to entries by number instead of by pointer, to meet goal
// B4 in docs/performance.md: the slowest 1 % of list requests coincide with a garbage collection, which follows every
// pointer. With 100,000 posts, a collection takes 4 ms of CPU time, compared with 7 ms for a map from ids to entries
// with two strings each.
type posts struct {
	kinds *shared[facts, kind]
	// origins are the namespace's own: its accounts and authors.
	origins *shared[origin, []string]
	hash    func(id string) uint64
	entries []entry
	// heads maps a hash to the first place of the chain of entries with that hash; free is the first place of the chain of
	// unused entries.
	heads map[uint64]place
	free  place
	// tally covers all posts, including cancelled ones, which are not listed.
	tally Tally
	// lists holds every non-empty list, in display order.
	lists map[filter]*list
	// less is the method before as a function value, created once for all lists.
	less func(i, j place) bool
	// archived is the archive's content; nil while unknown.
	archived *archived
	// retained maps the posts that have left the cluster, and remain on the lists until the archive is known to have
	// them, to their sequence number.
	retained map[place]uint64
}

// place is the number of an entry, counted from 1; zero means none.
type place uint32

// filter is the filter of a list; zero fields match all.
type filter struct {
	status    v1alpha1.PostPhase
	platform  v1alpha1.Platform
	undecided UndecidedFilter
}

type list = btree.BTreeG[place]

// entry is a stored summary, or an unused place.
type entry struct {
	// text is the id, the title, the rest of the heading, the picture and the words, one after the other: one string
	// instead of five for the garbage collector. It is empty in an unused place.
	text string
	// displayAt is in milliseconds since 1970.
	displayAt int64
	version   uint64
	kind      uint32
	// round is the last relist that contained the post.
	round uint32
	// next is the next entry of the chain.
	next place
	// sizes holds the length of the id in the lowest idBits, and the post's bytes above them. Together they fit in the
	// space that the length and its padding would take.
	sizes  uint32
	origin uint32
	// parts holds the lengths of the title, the rest of the heading and the picture.
	parts parts
}

const (
	// idBits hold an id's length: names in the Kubernetes API have at most 253 bytes.
	idBits = 8
	// maxBytes is the largest size that is counted exactly: 16 MiB. A post with a hundred targets and cards counts 3 MiB.
	maxBytes = 1<<(32-idBits) - 1
)

func sizes(s *Summary) uint32 {
	return uint32(len(s.ID)) | uint32(min(max(s.Bytes, 0), maxBytes))<<idBits //nolint:gosec // both are bounded
}

// parts packs the lengths of texts, in bytes: the title's in the lowest titleBits, then the rest's in restBits, and the
// picture's above them. A title has at most 256 characters and its rest fewer, and a picture is a Kubernetes name.
type parts uint32

const (
	titleBits = 12
	restBits  = 12
)

func partsOf(s *Summary) parts {
	return parts(len(s.Title)) | parts(len(s.Rest))<<titleBits | parts(len(s.Picture))<<(titleBits+restBits) //nolint:gosec // see parts
}

func (e *entry) idLength() uint32 { return e.sizes & (1<<idBits - 1) }

func (e *entry) bytes() int64 { return int64(e.sizes >> idBits) }

func (e *entry) id() string { return e.text[:e.idLength()] }

// ends returns where the title, the rest of the heading and the picture end in the text.
func (e *entry) ends() (title, rest, picture uint32) {
	title = e.idLength() + uint32(e.parts&(1<<titleBits-1))
	rest = title + uint32(e.parts>>titleBits&(1<<restBits-1))
	return title, rest, rest + uint32(e.parts>>(titleBits+restBits))
}

// shown returns the texts on pages: the title, the rest of the heading and the picture.
func (e *entry) shown() (title, rest, picture string) {
	titleEnd, restEnd, pictureEnd := e.ends()
	return e.text[e.idLength():titleEnd], e.text[titleEnd:restEnd], e.text[restEnd:pictureEnd]
}

func (e *entry) words() string {
	_, _, end := e.ends()
	return e.text[end:]
}

func (e *entry) sameTexts(s *Summary) bool {
	title, rest, picture := e.shown()
	return title == s.Title && rest == s.Rest && picture == s.Picture && e.words() == s.Words
}

func newPosts(k *shared[facts, kind], hash func(id string) uint64) *posts {
	p := &posts{kinds: k, origins: newShared[origin, []string](), hash: hash, heads: map[uint64]place{}, lists: map[filter]*list{}}
	p.less = p.before
	return p
}

func (p *posts) at(i place) *entry { return &p.entries[i-1] }

func (p *posts) kind(e *entry) *kind { return p.kinds.at(e.kind) }

func (p *posts) kindOf(s *Summary) uint32 {
	f := s.facts()
	return p.kinds.acquire(f, func() (facts, kind) { return newKind(f, s.Platforms) })
}

func (p *posts) originOf(s *Summary) uint32 {
	o := s.origin()
	return p.origins.acquire(o, func() (origin, []string) { return newOrigin(o) })
}

// before reports whether entry i precedes entry j in lists: newest first, and equal times by id.
func (p *posts) before(i, j place) bool {
	a, b := p.at(i), p.at(j)
	if a.displayAt != b.displayAt {
		return a.displayAt > b.displayAt
	}
	return a.id() < b.id()
}

func (p *posts) find(id string) place {
	i := p.heads[p.hash(id)]
	for i != 0 && p.at(i).id() != id {
		i = p.at(i).next
	}
	return i
}

// text returns an entry's text. It is a copy, because a title is a substring of a caption and would keep it in memory.
func (s *Summary) text() string {
	return strings.Join([]string{s.ID, s.Title, s.Rest, s.Picture, s.Words}, "")
}

func (p *posts) add(s *Summary, version uint64) *entry {
	i := p.free
	if i != 0 {
		p.free = p.at(i).next
	} else {
		p.entries = append(p.entries, entry{})
		i = place(len(p.entries)) //nolint:gosec // a store holds fewer objects
	}
	hash := p.hash(s.ID)
	e := p.at(i)
	*e = entry{
		text: s.text(), parts: partsOf(s), sizes: sizes(s),
		displayAt: s.DisplayAt.UnixMilli(), version: version, kind: p.kindOf(s), origin: p.originOf(s), next: p.heads[hash],
	}
	p.heads[hash] = i
	p.addToTally(e, 1)
	p.enlist(i)
	if p.archived != nil {
		p.archived.addOverlap(e.id())
	}
	return e
}

// addToTally adds an entry to the tally (1) or subtracts it (-1).
func (p *posts) addToTally(e *entry, by int64) {
	p.tally.Posts += by
	p.tally.Bytes += by * e.bytes()
	if posting.Unfinished(p.kind(e).status) {
		p.tally.Unfinished += by
	}
}

func (p *posts) listed() int {
	if all := p.lists[filter{}]; all != nil {
		return all.Len()
	}
	return 0
}

// change updates an entry. The entry moves only if its position or its set of lists changes.
func (p *posts) change(i place, s *Summary, version uint64) *entry {
	e := p.at(i)
	p.stays(i)
	e.version = version
	if !e.sameTexts(s) {
		e.text, e.parts = s.text(), partsOf(s)
	}
	if was := e.origin; s.origin() != p.origins.list[was].key {
		e.origin = p.originOf(s)
		p.origins.release(was)
	}
	displayAt, now := s.DisplayAt.UnixMilli(), s.facts()
	p.addToTally(e, -1)
	defer p.addToTally(e, 1)
	e.sizes = sizes(s)
	if displayAt == e.displayAt && now == p.kind(e).facts {
		return e
	}
	p.delist(i)
	p.kinds.release(e.kind)
	e.displayAt, e.kind = displayAt, p.kindOf(s)
	p.enlist(i)
	return e
}

func (p *posts) drop(i place) {
	p.delist(i)
	e := p.at(i)
	p.stays(i)
	p.addToTally(e, -1)
	if p.archived != nil {
		delete(p.archived.both, e.id())
	}
	p.kinds.release(e.kind)
	p.origins.release(e.origin)
	hash := p.hash(e.id())
	switch before := p.heads[hash]; {
	case before != i:
		for p.at(before).next != i {
			before = p.at(before).next
		}
		p.at(before).next = e.next
	case e.next != 0:
		p.heads[hash] = e.next
	default:
		delete(p.heads, hash)
	}
	*e = entry{next: p.free}
	p.free = i
}

func (p *posts) enlist(i place) {
	p.kind(p.at(i)).eachFilter(func(f filter) {
		l := p.lists[f]
		if l == nil {
			// The index has its own lock.
			l = btree.NewBTreeGOptions(p.less, btree.Options{NoLocks: true})
			p.lists[f] = l
		}
		l.Set(i)
	})
}

func (p *posts) delist(i place) {
	p.kind(p.at(i)).eachFilter(func(f filter) {
		l := p.lists[f]
		l.Delete(i)
		if l.Len() == 0 {
			delete(p.lists, f)
		}
	})
}

// page returns up to limit posts from a list, starting at a position, and the length of the list. It overwrites into.
func (p *posts) page(f filter, first, limit int, into []Summary) (page []Summary, total int) {
	l := p.lists[f]
	if l == nil {
		return nil, 0
	}
	total = l.Len()
	if first >= total {
		return nil, total
	}
	size := min(limit, total-first)
	page = slices.Grow(into[:0], size)[:size]
	next := 0
	visit(l, first, size, func(i place) {
		p.summarise(i, &page[next])
		next++
	})
	return page, total
}

// visit calls f for the given number of posts of a list, starting at a position. The list must have that many.
func visit(l *list, first, number int, f func(place)) {
	if number <= 0 {
		return
	}
	from, _ := l.GetAt(first)
	l.Ascend(from, func(i place) bool {
		f(i)
		number--
		return number > 0
	})
}
