// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/tidwall/btree"

	"github.com/herald-social/herald/api/v1alpha1"
)

// posts are those of one namespace.
type posts struct {
	byID map[string]*entry
	// lists holds every list that is not empty, in the order in which it is
	// read.
	lists map[filter]*list
}

// filter says what a list is narrowed to; what is empty narrows nothing.
type filter struct {
	status   v1alpha1.PostPhase
	platform v1alpha1.Platform
}

type list = btree.BTreeG[*entry]

// entry is a summary as it is kept. A team may have a hundred thousand of them:
// it holds no pointer that it can do without, and shares what is mostly the
// same in other posts.
type entry struct {
	// text is the id, idLength bytes long, and the title behind it: one thing
	// less for the garbage collector to look at.
	text     string
	idLength uint8
	// round is the relist that last held the post.
	round uint32
	// displayAt is in milliseconds since 1970.
	displayAt int64
	version   uint64
	facts     unique.Handle[facts]
}

func (e *entry) id() string { return e.text[:e.idLength] }

func (e *entry) title() string { return e.text[e.idLength:] }

// facts are of few kinds: posts of a team mostly go to the same platforms.
type facts struct {
	status   v1alpha1.PostPhase
	category v1alpha1.Category
	// targets holds "platform=status" of each, separated by commas.
	targets string
}

func newPosts() *posts {
	return &posts{byID: map[string]*entry{}, lists: map[filter]*list{}}
}

// before is the order of lists: the newest first, and equal times by id.
func before(a, b *entry) bool {
	if a.displayAt != b.displayAt {
		return a.displayAt > b.displayAt
	}
	return a.id() < b.id()
}

// text is what an entry keeps of the strings: a copy, for a title is cut out of
// a caption, which it would keep alive.
func (s *Summary) text() string {
	var b strings.Builder
	b.Grow(len(s.ID) + len(s.Title))
	b.WriteString(s.ID)
	b.WriteString(s.Title)
	return b.String()
}

// add takes in a post that is not there.
func (p *posts) add(s *Summary, version uint64) *entry {
	e := &entry{
		text: s.text(), idLength: uint8(len(s.ID)), //nolint:gosec // names of the Kubernetes API have at most 253 bytes
		displayAt: s.DisplayAt.UnixMilli(), version: version, facts: s.facts(),
	}
	p.byID[e.id()] = e
	p.enlist(e, e.facts.Value())
	return e
}

// change brings an entry up to date. It moves only if its place or the lists
// that it is on change.
func (p *posts) change(e *entry, s *Summary, version uint64) {
	e.version = version
	if e.title() != s.Title {
		// The key would keep the old text alive.
		delete(p.byID, e.id())
		e.text = s.text()
		p.byID[e.id()] = e
	}
	displayAt, now := s.DisplayAt.UnixMilli(), s.facts()
	if displayAt == e.displayAt && now == e.facts {
		return
	}
	p.delist(e, e.facts.Value())
	e.displayAt, e.facts = displayAt, now
	p.enlist(e, now.Value())
}

// drop takes an entry out.
func (p *posts) drop(e *entry) {
	delete(p.byID, e.id())
	p.delist(e, e.facts.Value())
}

func (p *posts) enlist(e *entry, facts facts) {
	facts.eachFilter(func(f filter) {
		l := p.lists[f]
		if l == nil {
			// The index has a lock of its own.
			l = btree.NewBTreeGOptions(before, btree.Options{NoLocks: true})
			p.lists[f] = l
		}
		l.Set(e)
	})
}

func (p *posts) delist(e *entry, facts facts) {
	facts.eachFilter(func(f filter) {
		l := p.lists[f]
		l.Delete(e)
		if l.Len() == 0 {
			delete(p.lists, f)
		}
	})
}

// page returns up to limit posts of a list from a position on, and the length
// of the list. It writes over the summaries of into.
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
	from, _ := l.GetAt(first)
	next := 0
	l.Ascend(from, func(e *entry) bool {
		e.summarise(&page[next])
		next++
		return next < size
	})
	return page, total
}

// summarise writes over a summary.
func (e *entry) summarise(s *Summary) {
	facts := e.facts.Value()
	*s = Summary{
		ID: e.id(), Title: e.title(), Status: facts.status, Category: facts.category,
		Platforms: facts.platforms(s.Platforms[:0]), DisplayAt: time.UnixMilli(e.displayAt).UTC(),
	}
}

func (s *Summary) facts() unique.Handle[facts] {
	var targets strings.Builder
	for i, p := range s.Platforms {
		if i > 0 {
			targets.WriteByte(',')
		}
		targets.WriteString(string(p.Platform))
		targets.WriteByte('=')
		targets.WriteString(string(p.Status))
	}
	return unique.Make(facts{status: s.Status, category: s.Category, targets: targets.String()})
}

// platforms appends each target's platform and status.
func (f facts) platforms(to []PlatformStatus) []PlatformStatus {
	if f.targets == "" {
		return to
	}
	for target := range strings.SplitSeq(f.targets, ",") {
		platform, status, _ := strings.Cut(target, "=")
		to = append(to, PlatformStatus{Platform: v1alpha1.Platform(platform), Status: v1alpha1.PostPhase(status)})
	}
	return to
}

// eachFilter visits the filters that let the post through, each once, however
// many targets it has on a platform.
func (f facts) eachFilter(visit func(filter)) {
	visit(filter{})
	visit(filter{status: f.status})
	platforms := f.platforms(nil)
	for i, p := range platforms {
		again := slices.ContainsFunc(platforms[:i], func(q PlatformStatus) bool { return q.Platform == p.Platform })
		if p.Platform != "" && !again {
			visit(filter{platform: p.Platform})
			visit(filter{f.status, p.Platform})
		}
	}
}
