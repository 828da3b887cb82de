// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota counts what a team may do only so often. A count is kept in a
// small object per team and limit, a ConfigMap in the team's namespace, which
// every apiserver replica and the manager write under optimistic concurrency:
// however they race, the limit holds.
//
// A book lists what each post has taken, by the name of the post, so that the
// same post never counts twice and what was taken in vain can be found and given
// back. Teams without limits have no books.
package quota

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Limit is how much of a book may be taken.
type Limit struct {
	// Most is how many.
	Most int
	// Within is the length of the span of time, wherever it begins, that Most
	// holds for; zero means the whole book.
	Within time.Duration
}

// Share is what one target of a post takes.
type Share struct {
	// Target is its index in the post.
	Target int `json:"target"`
	// Count is how much it takes; never zero.
	Count int `json:"count"`
	// At is when the target is to be published.
	At time.Time `json:"at"`
}

// Entry is what the posts of one name have taken.
type Entry struct {
	// UID is that of the post whose delivery took the shares. It is empty while
	// they are only reserved, ahead of the creation of the post or of its time.
	UID types.UID `json:"uid,omitempty"`
	// Since is when the entry was made.
	Since time.Time `json:"since"`
	// Settled says that the shares of the post do not change any more.
	Settled bool `json:"settled,omitempty"`
	// Shares are those of the post, each target once.
	Shares []Share `json:"shares,omitempty"`
	// Earlier are those of posts that had the same name and are gone.
	Earlier []Share `json:"earlier,omitempty"`
}

func (e *Entry) clone() *Entry {
	c := *e
	c.Shares, c.Earlier = slices.Clone(e.Shares), slices.Clone(e.Earlier)
	return &c
}

// empty tells whether an entry says nothing.
func (e *Entry) empty() bool { return len(e.Shares) == 0 && len(e.Earlier) == 0 }

// Reduce sets what the targets of an entry take to what keep says, where that
// is less. changed tells whether any did.
func (e *Entry) Reduce(keep func(target int) int) (changed bool) {
	shares := e.Shares[:0:0]
	for _, share := range e.Shares {
		if kept := max(keep(share.Target), 0); kept < share.Count {
			share.Count = kept
			changed = true
		}
		if share.Count > 0 {
			shares = append(shares, share)
		}
	}
	e.Shares = shares
	return changed
}

// Page is the content of a book: entries by the name of the post.
type Page map[string]*Entry

// Used is how much has been taken in all.
func (p Page) Used() int {
	used := 0
	for _, e := range p {
		for _, share := range slices.Concat(e.Shares, e.Earlier) {
			used += share.Count
		}
	}
	return used
}

// Forget takes out what was to be published before a time.
func (p Page) Forget(before time.Time) (changed bool) {
	past := func(share Share) bool { return share.At.Before(before) }
	for name, e := range p {
		n := len(e.Shares) + len(e.Earlier)
		e.Shares, e.Earlier = slices.DeleteFunc(e.Shares, past), slices.DeleteFunc(e.Earlier, past)
		changed = changed || len(e.Shares)+len(e.Earlier) < n
		if e.empty() {
			delete(p, name)
		}
	}
	return changed
}

// Wish is what a post wants to take of a book.
type Wish struct {
	// Post is its name.
	Post string
	// UID is set by whoever is about to deliver the post: from then on its
	// shares count whatever becomes of the object.
	UID types.UID
	// Shares are what its targets want, each target once.
	Shares []Share
	// Partly lets those targets have their share for which there is enough; else
	// all have theirs or none.
	Partly bool
}

// Answer is what became of a wish.
type Answer struct {
	// Added are the targets that had no share, or a smaller one, before.
	Added []int
	// Refused are the targets for which there is not enough left.
	Refused []int
	// Used is how much of the limit is taken, by anybody, where the first refused
	// target wanted its share.
	Used int
}

// take grants a wish as far as the limit allows. changed tells whether the page
// has to be stored.
func (p Page) take(w *Wish, limit Limit, now time.Time) (answer Answer, changed bool) {
	e := &Entry{Since: now.UTC()}
	if known := p[w.Post]; known != nil {
		e = known.clone()
	}
	if e.UID != "" && w.UID != "" && e.UID != w.UID {
		// A post of that name was delivered and has been deleted since.
		e = &Entry{Since: now.UTC(), Earlier: slices.Concat(e.Earlier, e.Shares)}
		changed = true
	}
	others, before := p.others(w.Post, e), e.Shares
	for _, want := range w.Shares {
		switch used, verdict := e.give(want, others, limit); verdict {
		case given:
			answer.Added = append(answer.Added, want.Target)
			changed = true
		case refused:
			if len(answer.Refused) == 0 {
				answer.Used = used
			}
			answer.Refused = append(answer.Refused, want.Target)
		case held:
		}
	}
	if len(answer.Refused) > 0 && !w.Partly {
		first := w.Shares[slices.IndexFunc(w.Shares, func(s Share) bool { return s.Target == answer.Refused[0] })]
		return Answer{Refused: answer.Refused, Used: busiest(slices.Concat(others, before), first.At, limit.Within)}, false
	}
	if w.UID != "" && len(e.Shares) > 0 && (e.UID != w.UID || e.Settled) {
		e.UID, e.Settled = w.UID, false
		changed = true
	}
	if changed && !e.empty() {
		p[w.Post] = e
	}
	return answer, changed && !e.empty()
}

// verdict is what became of one share.
type verdict int

const (
	held verdict = iota // it was there before
	given
	refused
)

// give adds a share to an entry, or takes it in place of the target's former
// one, if the limit allows it beside what others have. used is what is taken
// without it.
func (e *Entry) give(want Share, others []Share, limit Limit) (used int, v verdict) {
	want.At = want.At.UTC()
	rest := e.Shares
	if had := slices.IndexFunc(rest, func(s Share) bool { return s.Target == want.Target }); had >= 0 {
		if rest[had].Count >= want.Count && (limit.Within == 0 || rest[had].At.Equal(want.At)) {
			return 0, held
		}
		rest = slices.Delete(slices.Clone(rest), had, had+1)
	}
	if used = busiest(slices.Concat(others, rest), want.At, limit.Within); used+want.Count > limit.Most {
		return used, refused
	}
	e.Shares = append(slices.Clone(rest), want)
	return used, given
}

// others are all shares but those of one entry's present post.
func (p Page) others(post string, e *Entry) []Share {
	all := slices.Clone(e.Earlier)
	for name, other := range p {
		if name != post {
			all = append(append(all, other.Shares...), other.Earlier...)
		}
	}
	return all
}

// busiest is how much is taken in that span of time around an instant in which
// most is. Spans do not include their end, so that what lies a whole span apart
// is never in the same one. Without a span everything counts.
func busiest(shares []Share, at time.Time, span time.Duration) int {
	from := func(start time.Time) int {
		sum := 0
		for _, s := range shares {
			if span == 0 || !s.At.Before(start) && s.At.Sub(start) < span {
				sum += s.Count
			}
		}
		return sum
	}
	most := from(at)
	for _, s := range shares {
		if before := at.Sub(s.At); before > 0 && before < span {
			most = max(most, from(s.At))
		}
	}
	return most
}
