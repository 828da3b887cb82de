// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota counts what a team may do only so often. A count is kept in a
// small object per team and limit, a ConfigMap, which every apiserver replica and
// the manager write under optimistic concurrency: however they race, the limit
// holds. All counts are in one namespace of their own, since whoever works in a
// team's may well be allowed to change the ConfigMaps there.
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
	// Since is when the entry was made, or the last reservation in it.
	Since time.Time `json:"since"`
	// By is the request that was the last to ask for what is only reserved. Only
	// it may undo what it was given: another may rely on that by now.
	By string `json:"by,omitempty"`
	// Settled says that the shares of the post do not change any more.
	Settled bool `json:"settled,omitempty"`
	// Shares are those of the post, each target once; of what is only reserved,
	// where spans of time are limited, once for each time that was asked for.
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
	// By tells requests apart that reserve for the same post, so that none undoes
	// what another relies on. It may be empty if there is only one.
	By string
	// Gone is the UID of a post of that name that is known not to exist any more.
	Gone types.UID
	// Shares are what its targets want, each target once.
	Shares []Share
	// Keep, if it is set, says how much each target of the post may hold of what
	// it was given before. The rest is given back first.
	Keep func(target int) int
	// Partly lets those targets have their share for which there is enough; else
	// all have theirs or none.
	Partly bool
}

// Answer is what became of a wish.
type Answer struct {
	// Added are the targets that had no share, or a smaller one, before.
	Added []int
	// Before are the shares that the post had before, if any was added.
	Before []Share
	// Refused are the targets for which there is not enough left.
	Refused []int
	// Used is how much of the limit is taken, by anybody, where the first refused
	// target wanted its share.
	Used int
	// Delivered is the UID of the post of that name whose delivery has taken the
	// entry, if the wish comes from somebody who only reserves and does not know
	// that post to be gone. Nothing was taken then: it is either the same post,
	// which needs no more, or another, which still counts.
	Delivered types.UID
}

// take grants a wish as far as the limit allows. changed tells whether the page
// has to be stored.
func (p Page) take(w *Wish, limit Limit, now time.Time) (answer Answer, changed bool) {
	e := &Entry{Since: now.UTC()}
	if known := p[w.Post]; known != nil {
		e = known.clone()
	}
	if e.UID != "" && e.UID != w.UID {
		if w.UID == "" && e.UID != w.Gone {
			return Answer{Delivered: e.UID}, false
		}
		// A post of that name was delivered and has been deleted since.
		e = &Entry{Since: now.UTC(), Earlier: slices.Concat(e.Earlier, e.Shares)}
		changed = true
	}
	if w.Keep != nil && e.Reduce(w.Keep) {
		changed = true
	}
	others, before := p.others(w.Post, e), e.Shares
	for _, want := range w.Shares {
		switch used, verdict := e.give(want, others, limit, w.UID != ""); verdict {
		case given:
			answer.Added, answer.Before = append(answer.Added, want.Target), before
			changed = true
		case refused:
			if len(answer.Refused) == 0 {
				answer.Used = used
			}
			answer.Refused = append(answer.Refused, want.Target)
		case held:
			changed = changed || len(e.Shares) < len(before)
		}
	}
	if len(answer.Refused) > 0 && !w.Partly {
		first := w.Shares[slices.IndexFunc(w.Shares, func(s Share) bool { return s.Target == answer.Refused[0] })]
		return Answer{Refused: answer.Refused, Used: busiest(slices.Concat(others, before), first.At, limit.Within)}, false
	}
	if e.sign(w, now) {
		changed = true
	}
	p.set(w.Post, e)
	return answer, changed
}

// sign notes for whom the shares of an entry are held now.
func (e *Entry) sign(w *Wish, now time.Time) (changed bool) {
	switch {
	case len(e.Shares) == 0:
		return false
	case w.UID != "":
		changed = e.UID != w.UID || e.Settled || e.By != ""
		e.UID, e.Settled, e.By = w.UID, false, ""
	case e.By != w.By:
		changed = true
		// Whoever asks now may take a while to create the post.
		e.By, e.Since = w.By, now.UTC()
	}
	return changed
}

// undo puts back what a post had before a wish was granted, unless somebody else
// has asked for the same post since or its delivery has begun.
func (p Page) undo(w *Wish, granted Answer, limit Limit) (changed bool) {
	if p[w.Post] == nil || p[w.Post].UID != "" || p[w.Post].By != w.By {
		return false
	}
	e := p[w.Post].clone()
	e.Shares = nil
	for _, share := range p[w.Post].Shares {
		added := slices.Contains(granted.Added, share.Target) &&
			slices.ContainsFunc(w.Shares, func(s Share) bool { return s.Target == share.Target && s.At.Equal(share.At) })
		if added {
			former := 0
			if had := slices.IndexFunc(granted.Before, limit.stands(share, false)); had >= 0 {
				former = granted.Before[had].Count
			}
			changed = changed || former < share.Count
			share.Count = min(share.Count, former)
		}
		if share.Count > 0 {
			e.Shares = append(e.Shares, share)
		}
	}
	p.set(w.Post, e)
	return changed
}

func (p Page) set(post string, e *Entry) {
	if e.empty() {
		delete(p, post)
		return
	}
	p[post] = e
}

// verdict is what became of one share.
type verdict int

const (
	held verdict = iota // it was there before
	given
	refused
)

// sameMoment is how far the times of two requests for the same post may lie
// apart. One that is to be published at once has the time of its request, and
// the same request sent again has another.
const sameMoment = time.Minute

// stands returns what tells whether a share of the same target stands for one
// that is wanted, as far as its time goes: where spans of time are limited, only
// one of the same time does, which has to be the very same for who delivers.
func (l Limit) stands(want Share, exactly bool) func(Share) bool {
	return func(s Share) bool {
		apart := s.At.Sub(want.At).Abs()
		return s.Target == want.Target && (l.Within == 0 || apart == 0 || !exactly && apart <= sameMoment)
	}
}

// give adds a share to an entry, or takes it in place of a smaller one, if the
// limit allows it beside what others have. Who delivers gives up the target's
// other times; who reserves leaves them to the requests that they are of. used is
// what is taken without it.
func (e *Entry) give(want Share, others []Share, limit Limit, delivers bool) (used int, v verdict) {
	want.At = want.At.UTC()
	stands := limit.stands(want, delivers)
	if slices.ContainsFunc(e.Shares, func(s Share) bool { return stands(s) && s.Count >= want.Count }) {
		if delivers {
			e.Shares = slices.DeleteFunc(slices.Clone(e.Shares), func(s Share) bool { return s.Target == want.Target && !stands(s) })
		}
		return 0, held
	}
	rest := slices.DeleteFunc(slices.Clone(e.Shares), func(s Share) bool {
		return stands(s) || delivers && s.Target == want.Target
	})
	if used = busiest(slices.Concat(others, rest), want.At, limit.Within); used+want.Count > limit.Most {
		return used, refused
	}
	rest = append(rest, want)
	e.Shares = rest
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
