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

// Item is what one target of a post takes.
type Item struct {
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
	// Items are those of the post, each target once; of what is only reserved,
	// where spans of time are limited, once for each time that was asked for.
	Items []Item `json:"shares,omitempty"`
	// Earlier are those of posts that had the same name and are gone.
	Earlier []Item `json:"earlier,omitempty"`
}

func (e *Entry) clone() *Entry {
	c := *e
	c.Items, c.Earlier = slices.Clone(e.Items), slices.Clone(e.Earlier)
	return &c
}

// empty tells whether an entry says nothing.
func (e *Entry) empty() bool { return len(e.Items) == 0 && len(e.Earlier) == 0 }

// Reduce sets what the targets of an entry take to what keep says, where that
// is less. changed tells whether any did.
func (e *Entry) Reduce(keep func(target int) int) (changed bool) {
	items := e.Items[:0:0]
	for _, item := range e.Items {
		if kept := max(keep(item.Target), 0); kept < item.Count {
			item.Count = kept
			changed = true
		}
		if item.Count > 0 {
			items = append(items, item)
		}
	}
	e.Items = items
	return changed
}

// Entries is the content of a counter: entries by the name of the post.
type Entries map[string]*Entry

// Used is how much has been taken in all.
func (p Entries) Used() int {
	used := 0
	for _, e := range p {
		for _, item := range slices.Concat(e.Items, e.Earlier) {
			used += item.Count
		}
	}
	return used
}

// Forget takes out what was to be published before a time.
func (p Entries) Forget(before time.Time) (changed bool) {
	past := func(item Item) bool { return item.At.Before(before) }
	for name, e := range p {
		n := len(e.Items) + len(e.Earlier)
		e.Items, e.Earlier = slices.DeleteFunc(e.Items, past), slices.DeleteFunc(e.Earlier, past)
		changed = changed || len(e.Items)+len(e.Earlier) < n
		if e.empty() {
			delete(p, name)
		}
	}
	return changed
}

// Reservation is what a post wants to take of a counter.
type Reservation struct {
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
	// Items are what its targets want, each target once.
	Items []Item
	// Keep, if it is set, says how much each target of the post may hold of what
	// it was given before. The rest is given back first.
	Keep func(target int) int
	// AllowPartial lets those targets have their share for which there is enough; else
	// all have theirs or none.
	AllowPartial bool
}

// Answer is what became of a wish.
type Answer struct {
	// Added are the targets that had no share, or a smaller one, before.
	Added []int
	// Before are the shares that the post had before, if any was added.
	Before []Item
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
func (p Entries) take(w *Reservation, limit Limit, now time.Time) (answer Answer, changed bool) {
	e := &Entry{Since: now.UTC()}
	if known := p[w.Post]; known != nil {
		e = known.clone()
	}
	if e.UID != "" && e.UID != w.UID {
		if w.UID == "" && e.UID != w.Gone {
			return Answer{Delivered: e.UID}, false
		}
		// A post of that name was delivered and has been deleted since.
		e = &Entry{Since: now.UTC(), Earlier: slices.Concat(e.Earlier, e.Items)}
		changed = true
	}
	if w.Keep != nil && e.Reduce(w.Keep) {
		changed = true
	}
	others, before := p.others(w.Post, e), e.Items
	for _, want := range w.Items {
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
			changed = changed || len(e.Items) < len(before)
		}
	}
	if len(answer.Refused) > 0 && !w.AllowPartial {
		first := w.Items[slices.IndexFunc(w.Items, func(s Item) bool { return s.Target == answer.Refused[0] })]
		return Answer{Refused: answer.Refused, Used: busiest(slices.Concat(others, before), first.At, limit.Within)}, false
	}
	if e.setOwner(w, now) {
		changed = true
	}
	p.set(w.Post, e)
	return answer, changed
}

// sign notes for whom the shares of an entry are held now.
func (e *Entry) setOwner(w *Reservation, now time.Time) (changed bool) {
	switch {
	case len(e.Items) == 0:
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
func (p Entries) undo(w *Reservation, granted Answer, limit Limit) (changed bool) {
	if p[w.Post] == nil || p[w.Post].UID != "" || p[w.Post].By != w.By {
		return false
	}
	e := p[w.Post].clone()
	e.Items = nil
	for _, item := range p[w.Post].Items {
		added := slices.Contains(granted.Added, item.Target) &&
			slices.ContainsFunc(w.Items, func(s Item) bool { return s.Target == item.Target && s.At.Equal(item.At) })
		if added {
			former := 0
			if had := slices.IndexFunc(granted.Before, limit.stands(item, false)); had >= 0 {
				former = granted.Before[had].Count
			}
			changed = changed || former < item.Count
			item.Count = min(item.Count, former)
		}
		if item.Count > 0 {
			e.Items = append(e.Items, item)
		}
	}
	p.set(w.Post, e)
	return changed
}

func (p Entries) set(post string, e *Entry) {
	if e.empty() {
		delete(p, post)
		return
	}
	p[post] = e
}

// verdict is what became of one share.
type decision int

const (
	held decision = iota // it was there before
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
func (l Limit) stands(want Item, exactly bool) func(Item) bool {
	return func(s Item) bool {
		apart := s.At.Sub(want.At).Abs()
		return s.Target == want.Target && (l.Within == 0 || apart == 0 || !exactly && apart <= sameMoment)
	}
}

// give adds a share to an entry, or takes it in place of a smaller one, if the
// limit allows it beside what others have. Who delivers gives up the target's
// other times; who reserves leaves them to the requests that they are of. used is
// what is taken without it.
func (e *Entry) give(want Item, others []Item, limit Limit, delivers bool) (used int, v decision) {
	want.At = want.At.UTC()
	stands := limit.stands(want, delivers)
	if slices.ContainsFunc(e.Items, func(s Item) bool { return stands(s) && s.Count >= want.Count }) {
		if delivers {
			e.Items = slices.DeleteFunc(slices.Clone(e.Items), func(s Item) bool { return s.Target == want.Target && !stands(s) })
		}
		return 0, held
	}
	rest := slices.DeleteFunc(slices.Clone(e.Items), func(s Item) bool {
		return stands(s) || delivers && s.Target == want.Target
	})
	if used = busiest(slices.Concat(others, rest), want.At, limit.Within); used+want.Count > limit.Most {
		return used, refused
	}
	rest = append(rest, want)
	e.Items = rest
	return used, given
}

// others are all shares but those of one entry's present post.
func (p Entries) others(post string, e *Entry) []Item {
	all := slices.Clone(e.Earlier)
	for name, other := range p {
		if name != post {
			all = append(append(all, other.Items...), other.Earlier...)
		}
	}
	return all
}

// busiest is how much is taken in that span of time around an instant in which
// most is. Spans do not include their end, so that what lies a whole span apart
// is never in the same one. Without a span everything counts.
func busiest(items []Item, at time.Time, span time.Duration) int {
	from := func(start time.Time) int {
		sum := 0
		for _, s := range items {
			if span == 0 || !s.At.Before(start) && s.At.Sub(start) < span {
				sum += s.Count
			}
		}
		return sum
	}
	most := from(at)
	for _, s := range items {
		if before := at.Sub(s.At); before > 0 && before < span {
			most = max(most, from(s.At))
		}
	}
	return most
}
